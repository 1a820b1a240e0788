# SPDX-License-Identifier: Apache-2.0
"""Servers of Lustre as their own tools show them: arrays of metadata next to those of data, and mounts of targets."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from array_host import PrintedArray, check_outputs, print_detail, print_links
from storage_builders import build_lustre

from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.planned_roles import select_planned
from sonde.model.system import make_system

ROOT = Path(__file__).resolve().parents[4]
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
    assert problems == ["sda, sdb, sdc, sdd: technology of the drive: a rotating drive; planned is flash"]


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


def print_object_server(mounted: bool = True, first: str = "md0", second: str = "md1") -> dict[str, str]:
    """The outputs of a server of two object targets, the second of which may not be mounted."""
    rows: list[dict[str, Any]] = [
        {"name": name, "kname": name, "type": "raid6", "size": 10**13} for name in ("md0", "md1")
    ]
    for name, index in ((first, 0), (second, 1)):
        label = {"fstype": "ext4", "label": f"fs-OST000{index}", "uuid": f"u{index}"}
        if name in ("md0", "md1"):
            rows[int(name[2])] |= label
        else:
            part = {"name": name, "kname": name, "type": "part", "size": 5 * 10**12, "start": 2048, **label}
            rows[0].setdefault("children", []).append(part)
    mounts = [{"target": f"/ost{index}", "source": f"/dev/{name}", "fstype": "lustre",
               "options": f"ro,svname=fs-OST000{index},osd=osd-ldiskfs"}
              for name, index in ((first, 0), *([(second, 1)] if mounted else []))]  # fmt: skip
    return {"lsblk": json.dumps({"blockdevices": rows}), "findmnt": json.dumps({"filesystems": mounts})}


def test_planned_target_that_is_not_mounted_is_reported() -> None:
    assert find_problems(print_object_server()) == []
    (problem,) = find_problems(print_object_server(mounted=False))
    assert problem == "fs-OST0001: its device md1 runs here, but no target of it is mounted"
    outputs = print_object_server(mounted=False)
    root = {"target": "/", "source": "/dev/sdz1", "fstype": "xfs", "options": "rw"}
    idle = outputs | {"findmnt": json.dumps({"filesystems": [root]})}
    assert len([problem for problem in find_problems(idle) if "runs here" in problem]) == 2
    active = outputs | {"lctl": " 0 UP obdfilter fs-OST0001 fs-OST0001_UUID 9\n"}
    assert find_problems(active) == []


def test_targets_on_one_array_are_reported() -> None:
    problems = find_problems(print_object_server(first="md0p1", second="md0p2"))
    assert [problem for problem in problems if "object targets are on md0" in problem] == [
        "fs-OST0000, fs-OST0001: 2 object targets are on md0: fs-OST0000 on md0p1, fs-OST0001 on md0p2"]  # fmt: skip
    assert not any("planned is" in problem for problem in problems)


def test_targets_on_slices_of_one_array_are_sound_when_planned() -> None:
    document = describe_servers()
    document["slices"] = [{"id": "s[0-1]", "on": "g0", "share": "50 %"}]
    document["targets"][0]["on"] = "s[0-1]"
    outputs = print_object_server(first="md0p1", second="md0p2")
    kinds = {fault.kind for fault in check_outputs(outputs, document, "fs").faults}
    assert "targets share a device" not in kinds


def test_targets_of_a_server_that_is_a_client_too_are_planned() -> None:
    layout = plan_layout(make_system(describe_servers(), "system.toml")).get_layout("fs")
    client = ObservedFileSystem("/fs", "lustre", "10.0.0.1@o2ib:/fs", options=("rw",))
    target, other = (
        ObservedFileSystem(f"/{name}", "lustre", f"/dev/mapper/{name}", options=("ro", f"svname={name}-OST0001"))
        for name in ("fs", "home")
    )
    selected = select_planned(ObservedStorage((client, replace(target, location="/ost1"), other)), layout, ["/fs"])
    assert [each.location for each in selected] == ["/fs", "/ost1"]


@pytest.mark.parametrize("file_system", ["edison fs1", "hpcs-demo demo", "sonexion-1300 lustre"])
def test_clients_are_compared_with_plans_without_devices(file_system: str) -> None:
    name, file_system_id = file_system.split()
    document = tomllib.loads((ROOT / "systems" / f"{name}.toml").read_text())
    mount = {"target": "/scratch", "source": "10.0.0.1@o2ib:/x", "fstype": "lustre", "options": "rw"}
    check = check_outputs({"findmnt": json.dumps({"filesystems": [mount]})}, document, file_system_id)
    assert check.faults == ()
