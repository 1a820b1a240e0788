# SPDX-License-Identifier: Apache-2.0
"""Swap space on drives that hold data, and on those of the system."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planted_layout_faults import check_outputs


def make_part(name: str, size: int, kind: str, mount: str | None = None, **children: Any) -> dict[str, Any]:
    return {"name": name, "kname": name, "type": "part", "size": size, "fstype": kind, "mountpoint": mount, **children}


def print_lsblk(mount_of_array: str | None, swap_mount: str | None, level: str = "raid1") -> str:
    """Two drives with a member of md0 each, and swap on the first one."""
    array = {"name": "md0", "kname": "md0", "type": level, "size": 900, "fstype": "xfs", "mountpoint": mount_of_array}
    drives = [
        {"name": name, "kname": name, "type": "disk", "size": 1000, "rota": True,
         "children": [make_part(f"{name}1", 900, "linux_raid_member", children=[array])]}
        for name in ("sda", "sdb")
    ]  # fmt: skip
    children = drives[0]["children"]
    assert isinstance(children, list)
    children.append(make_part("sda2", 90, "swap", swap_mount))
    return json.dumps({"blockdevices": drives})


def find_kinds(lsblk: str) -> list[tuple[str, str]]:
    return [(fault.kind, fault.location) for fault in check_outputs({"lsblk": lsblk}).faults if "swap" in fault.kind]


@pytest.mark.parametrize("mount_of_array", [None, "/scratch"])
def test_swap_on_a_member_of_a_data_array_is_reported(mount_of_array: str | None) -> None:
    assert find_kinds(print_lsblk(mount_of_array, "[SWAP]")) == [("swap on a drive of data", "sda2")]


@pytest.mark.parametrize(("mount_of_array", "swap_mount"), [("/", "[SWAP]"), ("/scratch", None)])
def test_swap_of_the_system_or_idle_swap_is_sound(mount_of_array: str, swap_mount: str | None) -> None:
    assert find_kinds(print_lsblk(mount_of_array, swap_mount)) == []
