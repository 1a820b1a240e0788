# SPDX-License-Identifier: Apache-2.0
"""Simulated records say what arithmetic says of six machines, and the page of it is the one that stands in the docs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import calibration  # noqa: E402
import calibration_machines as machines  # noqa: E402

try:
    find_simulator()
except MachineError as reason:  # a tree without C++ programs
    pytest.skip(str(reason), allow_module_level=True)

Found = dict[str, tuple[machines.Run, list[machines.Comparison]]]


@pytest.fixture(scope="module")
def measured_machines() -> Found:
    return machines.simulate_and_compare_all_machines()


@pytest.mark.parametrize("name", [machine.name for machine in machines.MACHINES])
def test_record_of_a_machine_matches_its_rates_and_costs(measured_machines: Found, name: str) -> None:
    rows = measured_machines[name][1]
    assert len(rows) >= 7
    assert [f"{row.quantity}: {row.truth} {row.reported}" for row in rows if not row.holds] == []


def test_calibration_page_and_picture_are_up_to_date(measured_machines: Found) -> None:
    again = "run .venv/bin/python tools/calibration.py"
    assert calibration.PAGE_FILE.read_text(encoding="utf-8") == calibration.format_page(measured_machines), again
    assert calibration.PICTURE_FILE.read_text(encoding="utf-8") == calibration.draw_rates(measured_machines), again


def test_half_a_percent_faster_machine_is_detected() -> None:
    machine = machines.MACHINES[0]
    run = machines.simulate_machine(replace(machine, target_rate="100.5 MB/s"))
    rows = [*machine.truth(run), *machines.compare_rate_over_time(run, machine)]
    wrong = {row.quantity for row in rows if not row.holds}
    assert wrong == {row.quantity for row in rows if "bytes at target" not in row.quantity}
