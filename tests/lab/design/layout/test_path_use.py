# SPDX-License-Identifier: Apache-2.0
"""Volumes, arrays, pools and file systems on one path of a LUN instead of its multipath map."""

from __future__ import annotations

import json

import pytest
from planted_layout_faults import Outputs, check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault

_WWN = "600a098000b0f4c2000005{:02x}5f8e2a1c"
_PATHS = {"lun0": ("sdxa", "sdya", "sdza"), "lun1": ("sdxb", "sdyb", "sdzb"), "lun2": ("sdxc", "sdyc", "sdzc")}


def print_host(without_map: str = "", free_path: str = "sdza") -> Outputs:
    """Three LUNs of three paths. A map lacks the path `free_path`, and one LUN may have no map."""
    maps, disks = "", []
    for number, (name, paths) in enumerate(_PATHS.items(), start=10):
        rows = "".join(f"  |- {host}:0:0:{number} {path} 65:{number} active ready running\n"
                       for host, path in enumerate(paths, start=2) if path != free_path)  # fmt: skip
        if name != without_map:
            maps += f"{name} (3{_WWN.format(number)}) dm-{number} ACME,LUN\nsize=10T features='1 queue_if_no_path'"
            maps += f" hwhandler='1 alua' wp=rw\n`-+- policy='service-time 0' prio=50 status=active\n{rows}"
        disks += [{"name": path, "type": "disk", "size": 10 << 40, "wwn": f"0x{_WWN.format(number)}"} for path in paths]
    return make_server_outputs() | {"multipath": maps, "lsblk": json.dumps({"blockdevices": disks})}


def find_faults(outputs: Outputs) -> list[LayoutFault]:
    return list(check_outputs(outputs).faults)


def print_volumes(device: str) -> Outputs:
    volume = {"lv_name": "data", "vg_name": "vg0", "lv_attr": "-wi-ao----", "stripes": "1", "segtype": "linear",
              "seg_size": "1099511627776", "devices": f"/dev/{device}(0)", "lv_size": "1099511627776"}  # fmt: skip
    physical = {"pv_name": f"/dev/{device}", "vg_name": "vg0", "pe_start": "1048576"}
    return {"lvs": json.dumps({"report": [{"seg": [volume]}]}), "pvs": json.dumps({"report": [{"pv": [physical]}]})}


def test_volume_on_one_path_explains_the_path_that_its_map_lacks() -> None:
    (fault,) = find_faults(print_host() | print_volumes("sdza"))
    assert (fault.kind, fault.location) == ("path used without its map", "sdza")
    assert "of vg0 lies on one path of lun0, not on the map, so it has no failover" in fault.problem
    assert "global_filter" in fault.remedy
    assert "/dev/mapper/lun0" in fault.remedy
    assert fault.consequences == ("dm-10: lun0 has 2 paths; others have 3; none of its own leads through host4",)


@pytest.mark.parametrize("path", ["sdxb", "sdyb"])
def test_volume_on_one_path_without_map_is_one_fault(path: str) -> None:
    (fault,) = find_faults(print_host("lun1", free_path="") | print_volumes(path))
    assert (fault.kind, fault.location) == ("path used without its map", path)
    assert "one of 3 paths of a LUN (sdxb, sdyb, sdzb), which no map joins" in fault.problem
    assert "they are one drive, by several paths" in fault.consequences[0]


def test_file_system_on_one_path_is_reported() -> None:
    mount = {"target": "/data", "source": "/dev/sdza", "fstype": "xfs", "options": "rw,noatime"}
    faults = find_faults(print_host() | {"findmnt": json.dumps({"filesystems": [mount]})})
    assert [(fault.kind, fault.location) for fault in faults] == [("path used without its map", "sdza")]
    assert "the file system at /data" in faults[0].problem


def test_pool_on_one_path_is_reported() -> None:
    outputs = print_host()
    outputs["zpool"] = outputs["zpool"].replace("sdba ", "sdza ")
    faults = find_faults(outputs)
    assert [(fault.kind, fault.location) for fault in faults] == [("path used without its map", "sdza")]
    assert "pool tank" in faults[0].problem


def test_volume_on_a_map_is_sound() -> None:
    assert find_faults(print_host(free_path="") | print_volumes("mapper/lun0")) == []
