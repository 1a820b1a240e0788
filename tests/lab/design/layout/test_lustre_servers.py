# SPDX-License-Identifier: Apache-2.0
"""Servers of Lustre as their own tools show them: arrays of metadata next to those of data, and mounts of targets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from array_host import PrintedArray, check_outputs, print_detail, print_links
from storage_builders import build_lustre

FLASH, DISKS = "/dev/disk/by-id/m", "/dev/disk/by-id/d"


def describe_servers() -> dict[str, Any]:
    """A metadata target on RAID 10 of flash, and two object targets on RAID 6 of disks."""
    document = build_lustre("128 KiB")
    document["raid_groups"] = [
        {"id": "g[0-1]", "level": "6", "data": 8, "parity": 2, "segment": "128 KiB", "drives": "d[0-19]",
         "device": "/dev/md[0-1]"},
        {"id": "mm0", "level": "10", "data": 2, "parity": 2, "segment": "64 KiB", "drives": "m[0-3]",
         "device": "/dev/md100"},
    ]  # fmt: skip
    document["drives"][0] |= {"kind": "hdd"}
    return document


def print_metadata_server(chunk_kib: int = 64, rotating: bool = False, options: str = "ro") -> dict[str, str]:
    """The outputs of the metadata server: its array, its drives and its mount."""
    drives = [{"name": f"sd{letter}", "kname": f"sd{letter}", "type": "disk", "size": 10**12, "rota": rotating}
              for letter in "abcd"]  # fmt: skip
    array = {"name": "md100", "kname": "md100", "type": "raid10", "size": 2 * 10**12, "fstype": "ext4",
             "label": "fs-MDT0000", "rota": rotating}  # fmt: skip
    mount = {"target": "/lustre/mdt0", "source": "/dev/md100", "fstype": "lustre",
             "options": f"{options},svname=fs-MDT0000,mgs,osd=osd-ldiskfs"}  # fmt: skip
    return {
        "links": print_links(4, FLASH, ""), "lsblk": json.dumps({"blockdevices": [*drives, array]}),
        "md100": print_detail(PrintedArray("md100", range(4), (), "raid10", chunk_kib, "near=2")),
        "findmnt": json.dumps({"filesystems": [mount]}),
    }  # fmt: skip


def find_problems(outputs: dict[str, str]) -> list[str]:
    faults = check_outputs(outputs, describe_servers(), "fs").faults
    return [f"{fault.location}: {fault.problem}" for fault in faults if fault.kind != "no spare"]


def test_metadata_array_is_compared_with_its_plan() -> None:
    assert find_problems(print_metadata_server()) == []
    (problem,) = find_problems(print_metadata_server(chunk_kib=128))
    assert problem.startswith("md100: one member holds 128 KiB before the next (chunk); planned is 64 KiB")


def test_rotating_drives_of_metadata_are_reported() -> None:
    problems = find_problems(print_metadata_server(rotating=True))
    assert problems == [f"sd{letter}: technology of the drive: a rotating drive; planned is flash" for letter in "abcd"]


@pytest.mark.parametrize(
    ("kind", "options", "is_fault"),
    [("lustre", "ro,svname=fs-OST0000,osd=osd-ldiskfs", False), ("lustre", "ro,flock", True), ("xfs", "ro", True)],
)
def test_read_only_mount_of_a_target_is_sound(kind: str, options: str, is_fault: bool) -> None:
    row = {"target": "/mnt", "source": "/dev/md0", "fstype": kind, "options": options}
    faults = check_outputs({"findmnt": json.dumps({"filesystems": [row]})}, describe_servers(), "fs").faults
    assert ("mounted read-only" in {fault.kind for fault in faults}) == is_fault


@pytest.mark.parametrize(
    ("label", "percent", "is_fault"), [("fs-OST0000", 5, False), ("fs-OST0000", 8, True), ("home", 5, True)]
)
def test_usual_reserve_of_a_target_is_sound(label: str, percent: int, is_fault: bool) -> None:
    blocks = 3 * 10**9
    dump = f"""Filesystem volume name:   {label}
Filesystem magic number:  0xEF53
Filesystem features:      has_journal extent flex_bg metadata_csum dir_index
Inode count:              {blocks // 256}
Block count:              {blocks}
Reserved block count:     {blocks * percent // 100}
Block size:               4096
"""
    faults = check_outputs({"dumpe2fs": dump}, describe_servers(), "fs").faults
    assert ("space reserved for root" in {fault.kind for fault in faults}) == is_fault
