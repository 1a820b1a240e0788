# SPDX-License-Identifier: Apache-2.0
"""Paths of multipath maps that lead to another LUN."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault

_WWNS = {name: f"600a098000b0f4c2000005{number:02x}5f8e2a1c" for number, name in enumerate(("lun0", "lun1"))}
_PATHS = {"lun0": "sdxa sdya", "lun1": "sdxb sdyb"}
_DELETION = "/device/delete"


def find_path_faults(
    changes: Mapping[str, Mapping[str, object]], *, are_maps_identified: bool = True
) -> list[LayoutFault]:
    maps, disks = "", []
    for number, (name, paths) in enumerate(_PATHS.items(), start=10):
        first, second = paths.split()
        maps += (
            f"{name} {f'(3{_WWNS[name]}) ' if are_maps_identified else ''}dm-{number} ACME,LUN\n"
            f"size=10T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
            f"`-+- policy='service-time 0' prio=50 status=active\n"
            f"  |- 2:0:0:{number} {first} 65:{number} active ready running\n"
            f"  `- 3:0:0:{number} {second} 66:{number} active ready running\n"
        )
        disks += [{"name": path, "type": "disk", "size": 10 << 40, "wwn": f"0x{_WWNS[name]}", "serial": name}
                  | dict(changes.get(path, {})) for path in (first, second)]  # fmt: skip
    outputs = {"multipath": maps, "lsblk": json.dumps({"blockdevices": disks})}
    return list(check_outputs(make_server_outputs() | outputs).faults)


@pytest.mark.parametrize("path", ["sdxa", "sdya"])
def test_wwid_of_map_decides_which_path_is_foreign(path: str) -> None:
    (fault,) = find_path_faults({path: {"wwn": f"0x{_WWNS['lun1']}", "serial": "lun1"}})
    assert (fault.kind, fault.location) == ("path to another LUN", path)
    assert f"{path} is a path of lun0, and has the wwn of lun1" in fault.problem
    assert f"/sys/block/{path}{_DELETION}" in fault.remedy


@pytest.mark.parametrize("path", ["sdxa", "sdya"])
def test_even_split_without_wwid_names_no_path_to_remove(path: str) -> None:
    (fault,) = find_path_faults({path: {"wwn": "0x600b", "serial": "other"}}, are_maps_identified=False)
    assert (fault.kind, fault.location) == ("path to another LUN", "dm-10")
    assert "0x" not in fault.remedy
    assert _DELETION not in fault.remedy


def test_serial_numbers_of_controllers_with_one_wwn_are_accepted() -> None:
    controllers = {path: {"serial": f"controller-{path[2]}"} for paths in _PATHS.values() for path in paths.split()}
    assert find_path_faults(controllers) == []


@pytest.mark.parametrize("wwn", ["", "0x600a098000b0f4c2"], ids=["absent", "of the array"])
def test_serial_numbers_decide_where_no_wwn_separates_luns(wwn: str) -> None:
    changes: dict[str, dict[str, object]] = {path: {"wwn": wwn} for paths in _PATHS.values() for path in paths.split()}
    assert find_path_faults(changes) == []
    changes["sdya"]["serial"] = "lun1"
    (fault,) = find_path_faults(changes)
    assert (fault.kind, fault.location) == ("path to another LUN", "dm-10")
    assert _DELETION not in fault.remedy


def test_map_of_another_lun_is_reported() -> None:
    changes = {path: {"wwn": f"0x{_WWNS['lun1']}", "serial": "lun1"} for path in _PATHS["lun0"].split()}
    (fault,) = find_path_faults(changes)
    assert (fault.kind, fault.location) == ("path to another LUN", "dm-10")
    assert "all paths of lun0 have the wwn of lun1" in fault.problem
    assert _DELETION not in fault.remedy


@pytest.mark.parametrize(("map_size", "kinds"), [
    (10 << 40, []), (9 << 40, ["map smaller than its LUN"]), (11 << 40, ["map larger than its LUN"])])  # fmt: skip
def test_size_of_a_map_is_that_of_its_lun(map_size: int, kinds: list[str]) -> None:
    top = {"name": "lun0", "kname": "dm-10", "type": "mpath", "size": map_size}
    changes = {path: {"kname": path, "children": [top]} for path in _PATHS["lun0"].split()}
    faults = find_path_faults(changes)
    assert [fault.kind for fault in faults] == kinds
    assert all(fault.location == "dm-10" for fault in faults)
