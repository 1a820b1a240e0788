# SPDX-License-Identifier: Apache-2.0
"""The memory that a client of storage takes on its node: locks, tokens, pinned pages, buffers of the kernel.

MemAvailable (proc(5)) counts the page cache as available, so a fall of it is memory that programs cannot get.
"""

from __future__ import annotations

from sonde.model.record import PhaseRecord, RecordReader
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.phase_telemetry import parse_utc_time

_AVAILABLE_MEMORY_METRIC = "memory_available_bytes"
# The sample of the end of a phase comes so much later at most.
_MAX_SAMPLE_DELAY_S = 0.25


def compute_occupied_memory(record: RecordReader, phase: PhaseRecord, telemetry: TelemetryData) -> float | None:
    """Bytes by which the available memory of the sampled node fell, from the first sample of the run to the lowest in
    the phase; never negative. None without a sample in the phase."""
    started = record.run.started if record.run is not None else ""
    epoch = parse_utc_time(started) if "." in started else None
    hosts = [node.host for node in record.nodes if node.host in telemetry.hosts]
    series = telemetry.find_series(_AVAILABLE_MEMORY_METRIC, "", hosts[0]) if hosts else None
    if epoch is None or series is None or phase.end is None:
        return None
    in_phase = (series.times >= epoch + phase.begin.t) & (series.times <= epoch + phase.end.t + _MAX_SAMPLE_DELAY_S)
    if not in_phase.any():
        return None
    return max(0.0, float(series.values[0] - series.values[in_phase].min()))
