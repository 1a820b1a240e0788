# SPDX-License-Identifier: Apache-2.0
"""Drives of arrays that mdadm.conf leaves out, that are of another kind, or that hide their zones; inodes of XFS."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_saved_output

CONFIGURATION = "ARRAY /dev/md5 UUID=aaaa\nARRAY /dev/md6 UUID=bbbb\n"
LINKS = "".join(f"/dev/disk/by-id/wwn-0x5000c500{number:04} ../../sd{letter}\n"
                for number, letter in enumerate("abcdefghijklmnoz"))  # fmt: skip


def find_faults(**more: str) -> list[LayoutFault]:
    return list(check_outputs(make_server_outputs() | more).faults)


@pytest.mark.parametrize(("lines", "arrays", "names"), [
    ("DEVICE /dev/sd[a-h]\nDEVICE /dev/sd[k-o] /dev/sdz\n", ["md5"], "does not match sdi, sdj"),
    ("dev /dev/sd[a-o]\n", ["md5, md6"], "does not match sdz"),
    ("DEVICE /dev/disk/by-id/wwn-*\n", [], ""), ("DEVICE partitions containers\n", [], ""),
    ("DEVICE /dev/disk/by-path/*\n", [], ""),  # no output lists these links
])  # fmt: skip
def test_drives_outside_of_device_lines_are_reported(lines: str, arrays: list[str], names: str) -> None:
    faults = find_faults(configuration=lines + CONFIGURATION, links=LINKS)
    assert [(fault.kind, fault.location) for fault in faults] == [
        ("drives left out by mdadm.conf", array) for array in arrays
    ]
    assert all(names in fault.problem for fault in faults)


def print_disks(name: str, **columns: Any) -> str:
    """The disks of the server with one that is printed in another way, or added."""
    disks = json.loads(make_server_outputs()["lsblk"])["blockdevices"]
    if name not in {disk["name"] for disk in disks}:
        disks.append(disks[0] | {"name": name, "kname": name, "children": []})
    return json.dumps({"blockdevices": [disk | columns if disk["name"] == name else disk for disk in disks]})


@pytest.mark.parametrize(("is_rotating", "arrays"), [(False, ["md5, md6"]), (True, [])])
def test_flash_spare_of_rotating_drives_is_reported(is_rotating: bool, arrays: list[str]) -> None:
    faults = find_faults(lsblk=print_disks("sdz", rota=is_rotating))
    assert [(fault.kind, fault.location) for fault in faults] == [("spare of another kind", array) for array in arrays]
    assert all("spare sdz is flash" in fault.problem for fault in faults)


@pytest.mark.parametrize(("model", "is_zoned"), [
    ("ST8000DM004-2CX188", True), ("WDC WD40EFAX-68JH4N1", True), ("ST8000NM0055-1RM112", False),
    ("WDC WD80EFAX-68LHPN0", False), ("ST3000DM008-2DM166", False),
])  # fmt: skip
def test_model_with_hidden_zones_is_reported(model: str, is_zoned: bool) -> None:
    faults = find_faults(lsblk=print_disks("sdc", model=model))
    assert [(fault.kind, fault.location) for fault in faults] == [("zoned drive", "sdc")] * is_zoned


@pytest.mark.parametrize(("used", "count"), [(96_000, 1), (90_000, 0)])
def test_xfs_without_free_inodes_is_reported(used: int, count: int) -> None:
    row = f"/dev/md5 xfs 100000 {used} {100_000 - used} {used // 1000}% /scratch\n"
    faults = find_faults(df=f"Filesystem Type Inodes IUsed IFree IUse% Mounted on\n{row}")
    assert [(fault.kind, fault.location) for fault in faults] == [("too full", "/scratch")] * count


def test_single_member_of_another_kind_is_reported() -> None:
    (fault,) = find_faults(lsblk=print_disks("sdc", rota=False), sysfs="/sys/block/md5/md/sync_action:idle\n")
    assert fault.problem == "sdc of it is flash, the others are not"


@pytest.mark.parametrize("action", ["create", "reload"])
def test_map_after_its_action_is_read(action: str) -> None:
    before = make_server_outputs()["multipath"]
    text = re.sub(r"^(?=\S+ (?:\(\S+\) )?dm-\d)", f"{action}: ", before, flags=re.MULTILINE)
    first, second = (dict(read_saved_output(each, "multipath").disks) for each in (before, text))
    assert text != before
    assert second == first
