# SPDX-License-Identifier: Apache-2.0
"""Controllers of an array as multipath priorities show them: one that all maps have lost, and one that a map lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from planted_layout_faults import check_outputs

from sonde.design.layout.faults import LayoutFault


def print_maps(
    priorities_by_map: Mapping[str, Sequence[int]],
    status: str = "active",
    absent_port: str = "",
    multibus: bool = False,
    owners: Sequence[int] = (),
) -> str:
    """What multipath -ll prints of maps with a group of two paths for each priority."""
    text = ""
    for number, (name, priorities) in enumerate(priorities_by_map.items(), start=10):
        text += f"{name} (3600a098000b0f4c20000{number}5f8e2a1c00) dm-{number} ACME,LUN\n"
        text += "size=10T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
        for group, priority in enumerate(priorities):
            state = "enabled" if group else status
            if not multibus or not group:
                text += f"|-+- policy='service-time 0' prio={priority} status={state}\n"
            for host in (2, 3):
                path = f"sd{'xy'[host - 2]}{'ab'[group]}{chr(87 + number)}"
                port = group ^ owners[number - 10] if owners else group
                if absent_port != f"{host}:0:{port}":
                    text += f"| |- {host}:0:{port}:{number} {path} 65:{number} active ready running\n"
    return text


def find_faults(multipath: str) -> list[LayoutFault]:
    return list(check_outputs({"multipath": multipath}).faults)


@pytest.mark.parametrize(("product", "remedy"), [
    ("ACME,LUN", "map and zone it to host3 too, then rescan"), ("ACME,TRAY", "connect a second adapter, and zone it"),
])  # fmt: skip
def test_adapters_of_other_products_are_no_advice(product: str, remedy: str) -> None:
    text = print_maps({"lun0": (50, 10), "lun1": (50, 10)})
    first, second = text.split("lun1", 1)
    second = second.replace("ACME,LUN", product).replace("3:0:", "2:1:")
    (fault,) = (each for each in find_faults(f"{first}lun1{second}") if each.kind == "one adapter for all paths")
    assert (fault.location, fault.remedy) == ("dm-11", remedy)


def test_paths_to_both_controllers_are_sound() -> None:
    maps = {"lun0": (50, 10), "lun1": (50, 10), "lun2": (50, 10)}
    assert find_faults(print_maps(maps, owners=(0, 1, 0))) == []


def test_one_controller_that_owns_all_maps_is_reported() -> None:
    (fault,) = find_faults(print_maps({"lun0": (50, 10), "lun1": (50, 10), "lun2": (50, 10)}))
    assert (fault.kind, fault.parts) == ("one controller owns all disks", ("dm-10", "dm-11", "dm-12"))
    assert "the one behind 2:0:1, 3:0:1 has nothing to do" in fault.problem


def test_owner_of_all_maps_explains_the_idle_adapter() -> None:
    text = print_maps({"lun0": (50, 10), "lun1": (50, 10), "lun2": (50, 10)})
    zoned = "".join(line for line in text.splitlines(keepends=True) if " 2:0:1:" not in line and " 3:0:0:" not in line)
    (fault,) = find_faults(zoned)
    assert fault.kind == "one controller owns all disks"
    assert any("host3 is idle" in text for text in fault.consequences)


def test_equal_priorities_of_all_maps_are_sound() -> None:
    assert find_faults(print_maps({"lun0": (50,), "lun1": (50,), "lun2": (50,)})) == []


def test_lost_controller_is_one_fault_of_all_maps() -> None:
    (fault,) = find_faults(print_maps({"lun0": (50,), "lun1": (10,), "lun2": (50,)}))
    assert (fault.kind, fault.parts) == ("one controller for all disks", ("dm-10", "dm-11", "dm-12"))
    assert "lun0, lun2 have paths of priority 50 only, lun1 of 10" in fault.problem


def test_lost_controller_explains_groups_that_are_not_active() -> None:
    (fault,) = find_faults(print_maps({"lun0": (50,), "lun1": (10,)}, status="enabled"))
    assert fault.kind == "one controller for all disks"
    assert any("none of its path groups is active, although 2 paths are ready" in text for text in fault.consequences)


def test_map_without_its_preferred_controller_is_reported() -> None:
    (fault,) = find_faults(print_maps({"lun0": (50, 10), "lun1": (10,), "lun2": (50, 10)}))
    assert (fault.kind, fault.location) == ("on alternate paths", "dm-11")
    assert "its paths have priority 10 at most" in fault.problem
    assert fault.consequences[0] == "dm-11: lun1 has 2 paths; others have 4"


@pytest.mark.parametrize(("priority", "reason"), [(1, "prio const"), (30, "multibus")])
def test_paths_of_both_controllers_in_one_group_are_reported(priority: int, reason: str) -> None:
    maps = dict.fromkeys(("lun0", "lun1"), (priority, priority))
    (fault,) = find_faults(print_maps(maps, multibus=True))
    assert (fault.kind, fault.location) == ("paths of both controllers in use", "dm-10, dm-11")
    assert reason in fault.problem


@pytest.mark.parametrize("priority", [50, 130])
def test_equal_priority_of_alua_in_one_group_is_sound(priority: int) -> None:
    assert find_faults(print_maps(dict.fromkeys(("lun0", "lun1"), (priority, priority)), multibus=True)) == []


def test_adapter_that_sees_one_controller_less_is_reported() -> None:
    maps = {"lun0": (50, 10), "lun1": (50, 10), "lun2": (50, 10)}
    (fault,) = find_faults(print_maps(maps, absent_port="3:0:0", owners=(0, 1, 0)))
    assert (fault.kind, fault.location) == ("adapter sees fewer ports", "host3")
    assert (
        "adapter host3 sees 3:0:1 of ACME,LUN, host2 sees 2:0:0, 2:0:1: all 3 maps (lun0, lun1, lun2) lack paths"
        in fault.problem
    )
