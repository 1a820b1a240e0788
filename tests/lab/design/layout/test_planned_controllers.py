# SPDX-License-Identifier: Apache-2.0
"""LUNs that another controller of their array owns than the plan says, as the priorities of paths show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from storage_builders import make_requirement

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_controllers import find_planned_controller_faults
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_hosts
from sonde.design.layout.plan import plan_layout
from sonde.model.system import make_system

SYSTEM: dict[str, Any] = {
    "schema": "sonde-system/2", "id": "san", "nodes": [{"id": "host"}], "enclosures": [{"id": "e"}],
    "controllers": [{"id": f"ctl-{side}", "enclosure": "e"} for side in "ab"],
    "drives": [{"id": "d[0-39]", "enclosure": "e", "kind": "hdd", "capacity": "4 TB"}],
    "raid_groups": [{"id": "g[0-3]", "level": "6", "data": 8, "parity": 2, "segment": "128 KiB", "drives": "d[0-39]",
                     "controller": ["ctl-a", "ctl-b", "ctl-a", "ctl-b"]}],
    "luns": [{"id": "lun[0-3]", "raid_group": "g[0-3]", "device": "/dev/mapper/data[0-3]"}],
    "file_systems": [make_requirement("scratch", "scratch", capacity="100 TB")],
}  # fmt: skip


def print_map(number: int, owner: int, priorities: tuple[int, int] = (50, 10)) -> str:
    text = f"data{number} (3600a098000b0f4c20000{number}5f8e2a1c0011) dm-{number} ACME,LUN\n"
    text += "size=29T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
    for target, priority in zip((owner, 1 - owner), priorities, strict=True):
        text += f"|-+- policy='service-time 0' prio={priority} status=active\n"
        for host in (2, 3):
            text += f"| |- {host}:0:{target}:{number} sd{'abcd'[number]}{host}{target} 65:1 active ready running\n"
    return text


def find_results(owners: str, folder: Path, **more: Any) -> list[LayoutFault | CheckedItem]:
    """The results for LUNs that each of these targets of the adapters owns."""
    path = folder / "host.txt"
    maps = "".join(print_map(number, int(owner), **more) for number, owner in enumerate(owners))
    path.write_text(f"=== sonde layout collect: multipath -ll ===\n{maps}\n")
    (storage,) = read_hosts([path]).values()
    layout = plan_layout(make_system(SYSTEM, "san.toml")).get_layout("scratch")
    return list(find_planned_controller_faults(storage, layout))


def find_problems(owners: str, folder: Path, **more: Any) -> list[tuple[str, str]]:
    results = find_results(owners, folder, **more)
    return [(each.location, each.problem) for each in results if isinstance(each, LayoutFault)]


@pytest.mark.parametrize("owners", ["0101", "1010"])
def test_planned_owners_are_sound_for_each_order_of_targets(owners: str, tmp_path: Path) -> None:
    assert [each.location for each in find_results(owners, tmp_path)] == ["dm-0, dm-1, dm-2, dm-3"]
    assert find_problems(owners, tmp_path) == []


def test_lun_of_another_controller_is_reported(tmp_path: Path) -> None:
    expected = "the optimized paths of data1 lead to the controller of data0, data2; planned is ctl-b"
    assert find_problems("0001", tmp_path) == [("dm-1", expected)]


def test_one_owner_of_all_luns_is_one_fault(tmp_path: Path) -> None:
    ((location, problem),) = find_problems("0000", tmp_path)
    assert location == "dm-0, dm-1, dm-2, dm-3"
    assert problem == "one controller owns all of data0, data1, data2, data3; planned are ctl-a, ctl-b"


def test_evenly_divided_luns_are_reported_by_controller(tmp_path: Path) -> None:
    locations = [location for location, _ in find_problems("0011", tmp_path)]
    assert locations == ["dm-0, dm-2", "dm-1, dm-3"]


def test_equal_priorities_show_no_owner(tmp_path: Path) -> None:
    assert find_results("0001", tmp_path, priorities=(50, 50)) == []
