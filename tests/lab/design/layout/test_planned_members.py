# SPDX-License-Identifier: Apache-2.0
"""Members, spares, targets and logs on other devices than planned: each is named once, as people read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.device_identity import describe_planned_devices
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.bundled_files import find_system_file
from sonde.model.system import System, read_system

LISTING = Path(__file__).parents[3] / "data" / "layout" / "xlv0.txt"


def find_faults(system: System, name: str, *texts: str) -> list[LayoutFault]:
    plan = plan_layout(system)
    storage = ObservedStorage()
    for text in texts:
        storage = merge_observations(storage, read_saved_output(text, "output"))
    layout = plan.get_layout(name)
    written = list_written_attributes(plan.system, layout)
    return list(check_layout(join_observations(storage), layout, (), [f"/{name}"], written).faults)


def find_faults_of_volume(old: str, new: str) -> list[LayoutFault]:
    text = LISTING.read_text(encoding="utf-8")
    assert old in text
    return find_faults(read_system(find_system_file("cray-x1")), "large", text.replace(old, new))


def test_published_volume_has_the_planned_members() -> None:
    assert find_faults_of_volume("xlv0", "xlv0") == []


@pytest.mark.parametrize(("old", "new"), [("pm1d6L10s11", "pm1d6L4s11"), ("pm1d6L6s4", "pm1d6L7s4")])
def test_other_member_of_volume_is_reported(old: str, new: str) -> None:
    (fault,) = find_faults_of_volume(old, new)
    assert fault.kind == "not as planned"
    assert fault.problem == f"{new} is no member of it in the plan; planned is {old}"


@pytest.mark.parametrize("slice_name", ["pm1d6L7s11", "pm1d6L7s12"])
def test_disk_that_is_twice_in_a_volume_is_reported(slice_name: str) -> None:
    faults = find_faults_of_volume("pm1d6L10s11", slice_name)
    (fault,) = (fault for fault in faults if fault.kind == "one disk twice in a stripe")
    assert "pm1d6L7" in fault.problem


def test_slice_of_a_script_is_described() -> None:
    paths = ["$(slice /dev/mapper/lun3 1)", "/dev/md/g0"]
    assert describe_planned_devices(paths) == "partition 1 of /dev/mapper/lun3, /dev/md/g0"
