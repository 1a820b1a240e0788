# SPDX-License-Identifier: Apache-2.0
"""Records of the engine on the mounted model equal the calculated values of six machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import calibration_machines  # noqa: E402
import calibration_on_mount as on_mount  # noqa: E402


@pytest.mark.nightly
@pytest.mark.parametrize(
    "machine", on_mount.list_mounted_machines(), ids=[machine.name for machine in on_mount.list_mounted_machines()]
)
def test_record_on_a_mount_matches_rates_and_costs(
    machine: calibration_machines.Machine, mount_program: Path, simulator: Path, engine: Path
) -> None:
    wrong = [
        row
        for row in on_mount.measure_with_retries(machine)
        if not row.holds and not on_mount.find_deviation_reason(machine.name, row.quantity)
    ]
    assert [f"{row.quantity}: {row.truth} {row.reported}" for row in wrong] == []


def test_table_has_every_machine_and_a_reason_beyond_the_limit() -> None:
    lines = [line.split("|")[1:-1] for line in on_mount.PAGE_FILE.read_text(encoding="utf-8").splitlines()[2:]]
    assert [line[0].strip() for line in lines if line[0].strip()] == [
        machine.name for machine in on_mount.list_mounted_machines()
    ]
    beyond = [line for line in lines if float(line[4].strip().rstrip("%")) / 100 > on_mount.MAX_RELATIVE_ERROR]
    assert all(line[5].strip() and "not known" not in line[5] for line in beyond)
    kinds = ("bandwidth", "operations", "p50", "p99", "series", "bytes at target")
    assert all(any(kind in line[1] for line in lines) for kind in kinds)


def test_record_times_are_converted_to_simulated_time() -> None:
    speed = on_mount.CLOCK_SPEED
    lines: list[dict[str, Any]] = [
        {
            "type": "phase_end",
            "rates": {"total": {"bytes_per_s": 5.0, "ops_per_s": 2.0}, "none": None},
            "latency": {"write": {"p50_ns": 4.0, "count": 3}},
        },
        {"type": "series", "slice_s": 0.2, "bytes": [1]},
        {"type": "tasks", "columns": ["task", "transfer_s"], "rows": [[0, 3.0]]},
    ]
    end, series, tasks = on_mount.convert_to_machine_time(lines)
    assert end["rates"]["total"] == {"bytes_per_s": 5 / speed, "ops_per_s": 2 / speed}
    assert end["latency"]["write"] == {"p50_ns": 4 * speed, "count": 3}
    assert (series["slice_s"], series["bytes"], tasks["rows"]) == (0.2 * speed, [1], [[0, 3.0 * speed]])
    assert lines[1]["slice_s"] == 0.2
