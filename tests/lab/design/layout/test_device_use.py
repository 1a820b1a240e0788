# SPDX-License-Identifier: Apache-2.0
"""Settings of drives that nothing uses, of arrays that divide bios, and sectors of LUNs are no faults."""

from __future__ import annotations

import json
from typing import Any

import pytest
from array_host import check_outputs as check_against_plan
from planted_layout_faults import check_outputs, make_server_outputs

STICK_SETTINGS = """/sys/block/sdy/device/queue_depth:1
/sys/block/sdy/queue/nr_requests:2
/sys/block/sdy/queue/scheduler:none [bfq]
/sys/block/sdy/queue/rotational:1
/sys/block/sdy/ro:1
"""


def find_kinds(drive: dict[str, Any]) -> set[str]:
    """The kinds of faults of a server with one more drive, whose settings are those of a USB stick."""
    outputs = make_server_outputs()
    document = json.loads(outputs["lsblk"])
    document["blockdevices"].append(
        {"name": "sdy", "kname": "sdy", "type": "disk", "size": 2**34, "rota": True} | drive
    )
    outputs["lsblk"] = json.dumps(document)
    outputs["stick"] = STICK_SETTINGS
    return {fault.kind for fault in check_outputs(outputs).faults}


def describe_partition(kind: str, mount: str | None = None) -> dict[str, Any]:
    part = {"name": "sdy1", "kname": "sdy1", "type": "part", "size": 2**33, "fstype": kind, "mountpoint": mount}
    return {"children": [part]}


@pytest.mark.parametrize("drive", [
    {}, describe_partition("vfat"), describe_partition("vfat", "/media/stick"), describe_partition("xfs"),
    {"fstype": "iso9660"}])  # fmt: skip
def test_settings_of_unused_drive_are_no_faults(drive: dict[str, Any]) -> None:
    assert find_kinds(drive) == set()


@pytest.mark.parametrize("drive", [
    describe_partition("xfs", "/local"), describe_partition("LVM2_member"), {"fstype": "linux_raid_member"},
    {"fstype": "ext4", "label": "fs1-OST0003"}, {"fstype": "zfs_member"}])  # fmt: skip
def test_settings_of_used_drive_are_faults(drive: dict[str, Any]) -> None:
    assert {"queue too short", "scheduler", "write-protected"} <= find_kinds(drive)


@pytest.mark.parametrize("device", ["md5", "md6"])
def test_short_requests_of_an_array_are_no_fault(device: str) -> None:
    """md divides bios and gathers them in its stripe cache: the kernel's default is shorter than a stripe."""
    outputs = make_server_outputs()
    outputs["more"] = (
        f"/sys/block/{device}/queue/max_sectors_kb:512\n/sys/block/{device}/queue/max_hw_sectors_kb:4096\n"
    )
    assert check_outputs(outputs).faults == ()


def test_sectors_of_a_lun_are_no_fault() -> None:
    """The controller shows sectors of 512 bytes whatever its drives have, and rotating flash."""
    document = {
        "schema": "sonde-system/2", "id": "luns", "nodes": [{"id": "host"}], "enclosures": [{"id": "e", "slots": 12}],
        "controllers": [{"id": "c", "enclosure": "e", "rate": "4 GB/s"}],
        "drives": [{"id": "d[0-5]", "kind": "ssd", "enclosure": "e", "capacity": "2 TB", "block": "4096 B",
                    "rate": "1 GB/s"}],
        "raid_groups": [{"id": "g", "level": "6", "data": 4, "parity": 2, "segment": "128 KiB", "drives": "d[0-5]",
                         "controller": "c"}],
        "luns": [{"id": "lun", "raid_group": "g", "number": 0, "device": "/dev/mapper/lun0"}],
        "file_systems": [{"id": "scratch", "kind": "xfs", "device": "lun", "purpose": "scratch"}],
    }  # fmt: skip
    path = {"type": "disk", "size": 8 * 10**12, "rota": True, "phy-sec": 512, "log-sec": 512, "fstype": "mpath_member"}
    lun = {"name": "lun0", "kname": "dm-0", "type": "mpath", "size": 8 * 10**12, "fstype": "xfs", "label": "scratch",
           "mountpoint": "/scratch", "rota": True, "phy-sec": 512, "log-sec": 512}  # fmt: skip
    rows = [path | {"name": name, "kname": name, "children": [lun]} for name in ("sda", "sdb")]
    mount = {"target": "/scratch", "source": "/dev/mapper/lun0", "fstype": "xfs",
             "options": "rw,noatime,logbsize=256k,largeio,swalloc"}  # fmt: skip
    outputs = {"lsblk": json.dumps({"blockdevices": rows}), "findmnt": json.dumps({"filesystems": [mount]})}
    verdict = check_against_plan(outputs, document)
    assert "the planned drives" in {item.subject for item in verdict.checked_items}
    assert verdict.faults == ()
