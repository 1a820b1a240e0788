# SPDX-License-Identifier: Apache-2.0
"""Memory that a client takes: the fall of the available memory from the first sample to the lowest in a phase."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sonde.model.record import RecordReader, read_record
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile, TelemetrySample
from sonde.telemetry.memory_use import compute_occupied_memory

EPOCH = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
GIB = float(1 << 30)


def write_record(folder: Path, host: str = "n1") -> RecordReader:
    """A run of one phase from second 10 to second 20."""
    lines = [
        {"type": "run", "t": 0, "schema": "sonde-record/2", "started": "2026-11-20T12:00:00.000000Z", "tasks": 1,
         "nodes": 1, "plan": {}},
        {"type": "node", "t": 0, "node": 0, "host": host},
        {"type": "phase_begin", "t": 10, "phase": "p", "op": "write", "measured": True},
        {"type": "phase_end", "t": 20, "phase": "p"},
    ]  # fmt: skip
    path = folder / "record.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_record(path)


def sample_memory(available_by_second: dict[float, float]) -> TelemetryData:
    columns: dict[str, tuple[str, ...]] = {"memory": ("memory_available_bytes",)}
    samples = [
        TelemetrySample(EPOCH + second, "memory", {"": (value,)}) for second, value in available_by_second.items()
    ]
    return TelemetryData([TelemetryFile("t", "n1", "sampler", 1.0, columns, samples=samples)])


@pytest.mark.parametrize(("available", "occupied"), [
    ({1: 8 * GIB, 10: 7 * GIB, 15: 5 * GIB, 20: 6 * GIB, 21: 1 * GIB}, 3 * GIB),
    ({1: 8 * GIB, 20.2: 6 * GIB}, 2 * GIB),  # the sample of the end is late
    ({1: 8 * GIB, 12: 9 * GIB}, 0.0),  # others released memory
    ({1: 8 * GIB, 25: 5 * GIB}, None),  # no sample in the phase
])  # fmt: skip
def test_occupied_memory_is_fall_to_lowest_in_phase(
    tmp_path: Path, available: dict[float, float], occupied: float | None
) -> None:
    record = write_record(tmp_path)
    assert compute_occupied_memory(record, record.phases["p"], sample_memory(available)) == occupied


def test_memory_of_another_node_does_not_count(tmp_path: Path) -> None:
    record = write_record(tmp_path, host="n2")
    assert compute_occupied_memory(record, record.phases["p"], sample_memory({1: GIB, 15: 0.0})) is None
