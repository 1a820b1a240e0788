# SPDX-License-Identifier: Apache-2.0
"""Hosts with parts of several kinds, each as its plan has it: no part is compared with the plan of another kind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.check_inodes import find_planned_inode_faults
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import (
    ObservedDisk,
    ObservedFileSystem,
    ObservedStorage,
    merge_observations,
)
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_attributes_of_plan, list_written_attributes
from sonde.model.system import make_system

_GIB, _TIB = 2**30, 2**40


def describe_metadata_servers() -> dict[str, Any]:
    """A pair of metadata servers: a management target on a mirror, and a target on RAID 10 for each server."""
    return {
        "schema": "sonde-system/2", "id": "lake",
        "networks": [{"id": "ib", "kind": "infiniband", "addresses": ["10.0.0.0/24"], "lnet": "o2ib"}],
        "servers": [{"id": "mds[1-2]", "roles": ["mds", "mgs"], "failover": "pairs",
                     "interfaces": [{"network": "ib", "addresses": "10.0.0.[1-2]"}]},
                    {"id": "oss1", "roles": ["oss"],
                     "interfaces": [{"network": "ib", "addresses": "10.0.0.11"}]}],
        "drives": [{"id": "m[0-9]", "kind": "ssd", "capacity": "1.92 TB", "rate": "1 GB/s"},
                   {"id": "o[0-9]", "kind": "hdd", "capacity": "16 TB", "rate": "200 MB/s"}],
        "raid_groups": [
            {"id": "mgt", "level": "1", "data": 1, "parity": 1, "drives": "m[0-1]", "device": "/dev/md/mgt"},
            {"id": "mdt[0-1]", "level": "10", "data": 2, "parity": 2, "segment": "64 KiB", "drives": "m[2-9]",
             "device": "/dev/md/mdt[0-1]"},
            {"id": "ost0", "level": "6", "data": 8, "parity": 2, "segment": "128 KiB", "drives": "o[0-9]",
             "device": "/dev/md/ost0"}],
        "targets": [
            {"id": "lake-MGT", "kind": "mgt", "file_system": "lake", "on": "mgt", "server": "mds1",
             "failover": "mds2"},
            {"id": "lake-MDT[0000-0001]", "kind": "mdt", "index": 0, "file_system": "lake", "on": "mdt[0-1]",
             "server": "mds[1-2]"},
            {"id": "lake-OST0000", "kind": "ost", "index": 0, "file_system": "lake", "on": "ost0", "server": "oss1"}],
        "file_systems": [{"id": "lake", "kind": "lustre"}],
    }  # fmt: skip


def find_array_faults(geometry: str, unit: int | None = None) -> list[str]:
    """The faults of the array of the metadata target of the second server, which has that geometry and chunk."""
    drives = {f"sd{letter}": ObservedDisk(f"sd{letter}", flash=True) for letter in "abcd"}
    array = ObservedDisk("md127", "md", members=tuple(drives), level="raid10", geometry=geometry, data=2, unit=unit,
                         settings={"array_name": "mdt1"})  # fmt: skip
    target = ObservedFileSystem("/mnt/mdt1", "lustre", "/dev/md127", options=("rw", "svname=lake-MDT0001"))
    plan = plan_layout(make_system(describe_metadata_servers(), "lake.toml"))
    layout = plan.get_layout("lake")
    written = list_written_attributes(plan.system, layout)
    storage = ObservedStorage((target,), {**drives, "md127": array})
    faults = check_layout(storage, layout, (), ["/lake"], written).faults
    return [fault.problem for fault in faults if {"geometry", "unit"} & set(fault.attributes)]


def test_array_of_metadata_next_to_management_is_sound() -> None:
    assert find_array_faults("2x2", 64 << 10) == []
    assert find_array_faults("3x2", 64 << 10) == ["it is 3x2; planned is 1x2, 2x2"]
    (problem,) = find_array_faults("2x2", 512 << 10)
    assert "(chunk); planned is 64 KiB" in problem


def test_inodes_of_management_target_are_not_planned() -> None:
    """mkfs.lustre passes -i to mke2fs for targets of data and of metadata only."""
    names = ("MGS", "lake-MDT0000")
    size = 1_920_000_000_000 // 4096
    targets = [ObservedFileSystem(name, "ldiskfs", block=4096, blocks=size,
                                  facts={"inodes": str(size * 4096 // 16384)}) for name in names]  # fmt: skip
    results = find_planned_inode_faults(targets, names)
    assert [each.location for each in results if isinstance(each, LayoutFault)] == ["lake-MDT0000"]


def describe_array_host() -> dict[str, Any]:
    """A host with six LUNs of an array: four below a volume, one for homes, and a small one for a log."""
    return {
        "schema": "sonde-system/2", "id": "harbor", "nodes": [{"id": "nas1", "role": "service"}],
        "drives": [{"id": "d[00-43]", "kind": "hdd", "capacity": "10 TB", "block": "4096 B", "rate": "220 MB/s"}],
        "raid_groups": [
            {"id": "g[0-3]", "level": "6", "data": 8, "parity": 2, "segment": "128 KiB", "drives": "d[00-39]"},
            {"id": "g4", "level": "1", "data": 2, "parity": 2, "segment": "128 KiB", "drives": "d[40-43]"}],
        "luns": [
            {"id": "lun[0-3]", "raid_group": "g[0-3]", "number": 0, "size": "65192 GiB",
             "device": "/dev/mapper/lun[0-3]"},
            {"id": "lun4", "raid_group": "g4", "number": 4, "size": "3725 GiB", "device": "/dev/mapper/lun4"},
            {"id": "lun5", "raid_group": "g4", "number": 5, "size": "100 GiB", "device": "/dev/mapper/lun5"}],
        "volumes": [{"id": "vgdata", "kind": "stripe", "software": "LVM", "members": "lun[0-3]",
                     "stripe_unit": "1 MiB", "device": "/dev/vgdata/data"}],
        "file_systems": [
            {"id": "data", "kind": "xfs", "device": "vgdata", "log": "lun5", "log_size": "1 GiB",
             "purpose": "scratch"},
            {"id": "home", "kind": "ext4", "device": "lun4", "purpose": "home"}],
        "mounts": [{"id": f"m-{name}", "file_system": name, "path": f"/{name}", "on": "nas1", "through": "local"}
                   for name in ("data", "home")],
    }  # fmt: skip


GIB_BY_LUN = {**dict.fromkeys(range(4), 65192), 4: 3725, 5: 100}
QUEUES = {"read_ahead_kb": ["128"] * 4 + ["4096", "128"], "max_sectors_kb": ["1024"] * 4 + ["256", "1280"],
          "nr_requests": ["256"] * 5 + ["64"]}  # fmt: skip


def print_array_host(queues: dict[str, list[str]], gib_by_lun: dict[int, int]) -> list[str]:
    """lsblk, multipath, findmnt and settings of that host; the values of queues are those of its maps in order."""
    volume = {"name": "vgdata-data", "kname": "dm-9", "type": "lvm", "fstype": "xfs", "mountpoint": "/data"}
    rows, maps = list[dict[str, Any]](), ""
    for number, size in gib_by_lun.items():
        top: dict[str, Any] = {"name": f"lun{number}", "kname": f"dm-{number}", "type": "mpath", "size": size * _GIB}
        if number == 4:
            top |= {"fstype": "ext4", "mountpoint": "/home"}
        elif number < 4:
            top |= {"fstype": "LVM2_member", "children": [volume]}
        disks = [f"sd{path}{'abcdef'[number]}" for path in "xy"]
        rows += [{"name": disk, "kname": disk, "type": "disk", "size": size * _GIB, "children": [top]}
                 for disk in disks]  # fmt: skip
        maps += (f"lun{number} (3600{number}) dm-{number} ACME,LUN\nsize={size}G features='0' hwhandler='1 alua'"
                 " wp=rw\n`-+- policy='service-time 0' prio=50 status=active\n"
                 + "".join(f"  |- {path}:0:0:{number} {disk} 8:{16 * number + path} active ready running\n"
                           for path, disk in enumerate(disks)))  # fmt: skip
    lines = "".join(f"/sys/block/dm-{number}/queue/{name}:{value}\n" for name, values in queues.items()
                    for number, value in enumerate(values))  # fmt: skip
    mounts = [{"target": "/home", "source": "/dev/mapper/lun4", "fstype": "ext4", "options": "rw,noatime,stripe=64"},
              {"target": "/data", "source": "/dev/mapper/vgdata-data", "fstype": "xfs",
               "options": "rw,noatime,largeio,swalloc,logdev=/dev/mapper/lun5"}]  # fmt: skip
    return [json.dumps({"blockdevices": rows}), maps, lines, json.dumps({"filesystems": mounts})]


def find_host_faults(texts: Sequence[str], name: str, *attributes: str) -> list[tuple[str, str]]:
    """Locations and problems of the faults of that host that are about some attributes, compared with one plan."""
    storage = ObservedStorage()
    for text in texts:
        storage = merge_observations(storage, read_saved_output(text, "output"))
    plan = plan_layout(make_system(describe_array_host(), "harbor.toml"))
    layout = plan.get_layout(name)
    written = list_written_attributes(plan.system, layout)
    verdict = check_layout(
        join_observations(storage), layout, (), [f"/{name}"], written,
        written_by_plan=list_attributes_of_plan(plan.system, plan.file_systems),
    )  # fmt: skip
    return [(fault.location, fault.problem) for fault in verdict.faults if set(attributes) & set(fault.attributes)]


@pytest.mark.parametrize("name", ["data", "home"])
def test_planned_values_of_another_lun_are_not_odd(name: str) -> None:
    texts = print_array_host(QUEUES, GIB_BY_LUN)
    assert find_host_faults(texts, name, *QUEUES) == []


@pytest.mark.parametrize("name", ["data", "home"])
def test_value_unlike_that_of_equal_luns_is_odd(name: str) -> None:
    wrong = {**QUEUES, "nr_requests": ["256", "256", "512", "256", "256", "64"]}
    faults = find_host_faults(print_array_host(wrong, GIB_BY_LUN), name, *QUEUES)
    assert faults == [("dm-2", "nr_requests is 512; on 4 of 5 maps of ACME,LUN it is 256")]


def test_size_of_lun_is_compared_with_luns() -> None:
    assert find_host_faults(print_array_host(QUEUES, GIB_BY_LUN), "home", "size") == []
    (fault,) = find_host_faults(print_array_host(QUEUES, {**GIB_BY_LUN, 4: 1000}), "home", "size")
    assert fault[1].startswith("size of the LUN: 1000 GiB; planned is 3.64 TiB")


FSTAB = "LABEL=home /home ext4 noatime,stripe=64 0 2\n/dev/vgdata/data /data xfs noatime,largeio,swalloc 0 0\n"


def add_lun(texts: Sequence[str], **values: Any) -> list[str]:
    """The outputs of that host with one more LUN, whose map has these values in lsblk."""
    document = json.loads(texts[0])
    top = {"name": "mpatha", "kname": "dm-10", "type": "mpath", "size": 8 * _TIB} | values
    document["blockdevices"] += [{"name": name, "kname": name, "type": "disk", "size": 8 * _TIB, "children": [top]}
                                 for name in ("sdxg", "sdyg")]  # fmt: skip
    paths = "".join(f"  |- {'xy'.index(name[2])}:0:0:8 {name} 8:1 active ready running\n" for name in ("sdxg", "sdyg"))
    head = ("mpatha (36008) dm-10 ACME,LUN\nsize=8.0T features='0' hwhandler='1 alua' wp=rw\n"
            "`-+- policy='service-time 0' prio=50 status=active\n")  # fmt: skip
    return [json.dumps(document), texts[1] + head + paths, *texts[2:]]


def find_foreign_luns(texts: Sequence[str], fstab: str = FSTAB) -> list[tuple[str, str]]:
    storage = ObservedStorage()
    for text in [*texts, fstab]:
        storage = merge_observations(storage, read_saved_output(text, "output"))
    plan = plan_layout(make_system(describe_array_host(), "harbor.toml"))
    written = list_attributes_of_plan(plan.system, plan.file_systems)
    verdict = check_layout(join_observations(storage), written_by_plan=written)
    return [(fault.location, fault.problem) for fault in verdict.faults if fault.kind == "LUN of no known use"]


def test_lun_of_another_host_is_reported() -> None:
    texts = print_array_host(QUEUES, GIB_BY_LUN)
    assert find_foreign_luns(texts) == []
    assert find_foreign_luns(add_lun(texts, fstype="ext4", label="mailstore")) == [
        ("dm-10", "mpatha (ext4 with the label mailstore, 8 TiB) is visible here and belongs to nothing that is planned"
                  " or mounted")]  # fmt: skip


@pytest.mark.parametrize(("values", "line"), [
    ({"fstype": "ext4", "mountpoint": "/mail"}, ""),
    ({"fstype": "ext4", "label": "mail"}, "LABEL=mail /mail ext4 noauto"),
    ({"fstype": "xfs"}, "/dev/mapper/mpatha /mail xfs noauto"), ({}, ""), ({"fstype": "LVM2_member"}, ""),
    ({"fstype": "ext4", "label": "lake-OST0003"}, "")])  # fmt: skip
def test_lun_in_use_is_not_foreign(values: dict[str, str], line: str) -> None:
    texts = add_lun(print_array_host(QUEUES, GIB_BY_LUN), **values)
    assert find_foreign_luns(texts, f"{FSTAB}{line} 0 0\n" if line else FSTAB) == []
