# SPDX-License-Identifier: Apache-2.0
"""Planned file systems that are not mounted: no other file system is compared in their place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from array_host import PrintedArray, describe_arrays, print_detail, print_links

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.system import make_system

ROOT = [{"target": "/", "source": "/dev/nvme0n1p3", "fstype": "xfs", "options": "rw,relatime,logbsize=32k"},
        {"target": "/home", "source": "/dev/nvme0n1p4", "fstype": "ext4", "options": "rw,noatime"}]  # fmt: skip


def describe(kind: str = "xfs") -> dict[str, Any]:
    """A host with one array of six drives and a spare, and its file system."""
    document = describe_arrays()
    document["raid_groups"] = document["raid_groups"][:1]
    document["volumes"] = []
    document["file_systems"] = [{"id": "scratch", "kind": kind, "device": "md0", "purpose": "scratch"}]
    document["mounts"] = [{"id": "m", "file_system": "scratch", "path": "/scratch", "on": "host"}]
    return document


def find_faults(outputs: Mapping[str, str], document: dict[str, Any]) -> list[LayoutFault]:
    plan, storage = plan_layout(make_system(document, "system.toml")), ObservedStorage()
    for origin, text in outputs.items():
        storage = merge_observations(storage, read_saved_output(text, origin))
    layout = plan.get_layout("scratch")
    written = list_written_attributes(plan.system, layout)
    mount_points = [mount["path"] for mount in document["mounts"]]
    return list(check_layout(join_observations(storage), layout, (), mount_points, written).faults)


def print_unmounted_host(label: str = "scratch", chunk_kib: int = 128) -> dict[str, str]:
    """The host with its array, on which nothing is mounted, and the mounts of the operating system."""
    array = {"name": "md0", "kname": "md0", "type": "raid6", "size": 8 * 10**12, "fstype": "xfs", "label": label}
    return {
        "links": print_links(), "detail": print_detail(PrintedArray("md0", range(6), [12], chunk_kib=chunk_kib)),
        "lsblk": json.dumps({"blockdevices": [array]}), "findmnt": json.dumps({"filesystems": ROOT}),
    }  # fmt: skip


@pytest.mark.parametrize("label", ["scratch", ""])
def test_file_system_that_is_not_mounted_is_one_fault(label: str) -> None:
    (fault,) = find_faults(print_unmounted_host(label), describe())
    assert (fault.kind, fault.location) == ("not mounted", "scratch")
    assert "it is on md0" in fault.problem
    assert "planned is /scratch" in fault.problem


def test_inactive_volume_explains_the_absent_mount() -> None:
    volume = {"lv_name": "work", "vg_name": "vg0", "lv_attr": "-wi-------", "stripes": "1", "segtype": "linear",
              "seg_size": "1099511627776", "devices": "/dev/md0(0)", "lv_size": "1099511627776"}  # fmt: skip
    home = {"name": "sdz", "kname": "sdz", "type": "disk", "size": 10**12, "fstype": "xfs", "label": "home"}
    mount = {"target": "/home", "source": "/dev/sdz", "fstype": "xfs", "options": "rw,noatime"}
    outputs = {"lvs": json.dumps({"report": [{"seg": [volume]}]}), "lsblk": json.dumps({"blockdevices": [home]})}
    outputs |= {"findmnt": json.dumps({"filesystems": [mount]}), "fstab": "LABEL=scratch /scratch xfs noatime 0 0\n"}
    (fault,) = [each for each in find_faults(outputs, describe()) if each.kind == "not mounted"]
    assert "vg0-work of LVM is not active" in fault.problem
    assert "vgchange -ay" in fault.remedy
    assert "it may be on vg0-work, which is not active" in fault.consequences[0]


@pytest.mark.parametrize(("line", "problem"), [
    ("LABEL=scratch /scratch xfs noatime 0 0", ""),
    ("LABEL=scratch /scratch xfs noauto,x-systemd.automount 0 0", ""),
    ("LABEL=scratch /scratch xfs noauto,noatime 0 0", "its line of fstab has noauto"),
    ("LABEL=home /home ext4 noatime 0 2", "fstab has no line for it"),
    ("LABEL=scratch /scratch2 xfs noatime 0 0", "no line for it; it mounts LABEL=scratch at /scratch2")])  # fmt: skip
def test_planned_mount_is_mounted_at_a_start(line: str, problem: str) -> None:
    mount = {"target": "/scratch", "source": "/dev/md0", "fstype": "xfs", "options": "rw,noatime"}
    outputs = print_unmounted_host() | {"findmnt": json.dumps({"filesystems": [mount, *ROOT]})}
    outputs["fstab"] = f"UUID=1-2 / xfs defaults 0 0\n{line}\n"
    faults = [fault for fault in find_faults(outputs, describe()) if fault.kind == "not mounted at a start"]
    assert [fault.location for fault in faults] == ["/scratch"] * bool(problem)
    assert all(problem in fault.problem for fault in faults)


def test_arrays_are_compared_while_no_file_system_is_mounted() -> None:
    problems = [fault.problem for fault in find_faults(print_unmounted_host(chunk_kib=64), describe())]
    assert len(problems) == 2
    assert any("one member holds 64 KiB" in problem for problem in problems)


def test_root_file_system_is_not_compared_with_the_plan() -> None:
    outputs = print_unmounted_host()
    del outputs["lsblk"]
    assert find_faults(outputs | {"findmnt": json.dumps({"filesystems": ROOT[:1]})}, describe()) == []


def test_pool_that_is_not_imported_is_reported() -> None:
    rows = [{"name": f"sd{letter}", "kname": f"sd{letter}", "type": "disk", "size": 2 * 10**12, "rota": True,
             "children": [{"name": f"sd{letter}1", "kname": f"sd{letter}1", "type": "part", "start": 2048,
                           "size": 10**12, "fstype": "zfs_member", "label": "scratch"}]}
            for letter in "abcdef"]  # fmt: skip
    (fault,) = find_faults({"lsblk": json.dumps({"blockdevices": rows})}, describe("zfs"))
    assert (fault.kind, fault.location) == ("pool not imported", "scratch")
    assert "6 devices hold parts of it" in fault.problem


def test_array_that_is_not_assembled_explains_the_absent_mount() -> None:
    rows = [{"name": f"sd{letter}", "kname": f"sd{letter}", "type": "disk", "size": 2 * 10**12, "rota": True,
             "fstype": "linux_raid_member", "label": "host:md0", "uuid": "1-2-3-4"} for letter in "abcdef"]  # fmt: skip
    home = {"name": "sdz", "kname": "sdz", "type": "disk", "size": 10**12, "fstype": "xfs", "label": "home"}
    mount = {"target": "/home", "source": "/dev/sdz", "fstype": "xfs", "options": "rw,noatime"}
    (fault,) = find_faults({
        "links": print_links(), "lsblk": json.dumps({"blockdevices": [*rows, home]}),
        "findmnt": json.dumps({"filesystems": [mount]}),
    }, describe())  # fmt: skip
    assert (fault.kind, fault.location) == ("array not assembled", "/dev/md0")
    assert "6 of its 6 drives are there" in fault.problem
    assert fault.consequences == ("scratch: nothing is mounted at /scratch, and no device holds it",)


def print_storage_server(mounted: tuple[int, ...] = (0, 1, 2), options: str = "rw,noatime") -> dict[str, str]:
    """A server of BeeGFS: XFS on each of three arrays, and home of the operating system on a mirror."""
    arrays = [{"name": f"md{number}", "kname": f"md{number}", "type": "raid6", "size": 8 * 10**12, "fstype": "xfs",
               "label": f"target{number}"} for number in range(3)]  # fmt: skip
    home = {"name": "md9", "kname": "md9", "type": "raid1", "size": 10**12, "fstype": "ext4", "label": "home"}
    mounts = [{"target": f"/data/target{number}", "source": f"/dev/md{number}", "fstype": "xfs",
               "options": options if number == 2 else "rw,noatime"} for number in mounted]  # fmt: skip
    return {
        "links": print_links(21),
        **{f"md{number}": print_detail(PrintedArray(f"md{number}", range(6 * number, 6 * number + 6), [18 + number]))
           for number in range(3)},
        "lsblk": json.dumps({"blockdevices": [*arrays, home]}),
        "findmnt": json.dumps({"filesystems": [*mounts, *ROOT]}),
    }  # fmt: skip


def describe_targets() -> dict[str, Any]:
    document = describe()
    document["servers"] = [{"id": "s"}]
    document["drives"][0] |= {"id": "d[0-20]", "device": "/dev/disk/by-path/pci-0000:3b:00.0-sas-phy[0-20]-lun-0"}
    document["raid_groups"][0] |= {"id": "md[0-2]", "drives": "d[0-17]", "spares": "d[18-20]", "blocks": 3,
                                   "device": "/dev/md[0-2]"}  # fmt: skip
    document["file_systems"] = [{"id": "scratch", "kind": "beegfs"}]
    document["targets"] = [{"id": "t[0-2]", "kind": "target", "file_system": "scratch", "server": "s", "on": "md[0-2]"}]
    return document


def test_local_file_systems_of_targets_are_sound() -> None:
    assert find_faults(print_storage_server(), describe_targets()) == []


def test_target_of_local_file_system_that_is_not_mounted_is_reported() -> None:
    (fault,) = find_faults(print_storage_server((0, 2)), describe_targets())
    assert (fault.kind, fault.location) == ("target not mounted", "md1")


def test_array_below_a_target_is_compared_with_the_plan() -> None:
    outputs = print_storage_server()
    outputs["md1"] = outputs["md1"].replace("Chunk Size : 128K", "Chunk Size : 64K")
    (fault,) = find_faults(outputs, describe_targets())
    assert fault.location == "md1"
    assert "64 KiB" in fault.problem


def test_mount_option_of_one_target_is_reported() -> None:
    (fault,) = find_faults(print_storage_server(options="rw,relatime"), describe_targets())
    assert (fault.kind, fault.location) == ("differs from its peers", "/data/target2")
    assert "mount option of access times is relatime; on 2 of 3 xfs at /data/target* it is noatime" in fault.problem


BIND_OPTIONS = "rw,noatime,largeio,swalloc,logbsize=256k"
SCRATCH_LINE = "LABEL=scratch /scratch xfs noatime,largeio,swalloc,logbsize=256k 0 0\n"


def make_mount(target: str, source: str = "/dev/md0", options: str = BIND_OPTIONS) -> dict[str, str]:
    return {"target": target, "source": source, "fstype": "xfs", "options": options}


def check_mounts(*mounts: dict[str, str], fstab: str = SCRATCH_LINE) -> list[LayoutFault]:
    outputs = print_unmounted_host() | {"findmnt": json.dumps({"filesystems": [*ROOT, *mounts]}), "fstab": fstab}
    return find_faults(outputs, describe())


@pytest.mark.parametrize(("target", "source", "options", "fstab"), [
    ("/export/scratch", "/dev/md0", BIND_OPTIONS, SCRATCH_LINE + "/scratch /export/scratch none bind 0 0\n"),
    ("/export/scratch", "/dev/md0", BIND_OPTIONS.replace("rw", "ro"), SCRATCH_LINE),
    ("/srv/data", "/dev/md0[/data]", BIND_OPTIONS.replace("rw", "ro"), SCRATCH_LINE),
])  # fmt: skip
def test_bind_mount_of_a_planned_file_system_is_sound(target: str, source: str, options: str, fstab: str) -> None:
    assert check_mounts(make_mount(target, source, options), make_mount("/scratch"), fstab=fstab) == []


def test_directory_at_the_planned_mount_point_is_no_mount() -> None:
    (fault,) = check_mounts(make_mount("/scratch", "/dev/nvme0n1p3[/scratch]", "rw,relatime"))
    assert (fault.kind, fault.location) == ("not mounted", "scratch")
    assert "mounted nowhere; planned is /scratch" in fault.problem


def test_planned_mount_point_follows_from_the_script() -> None:
    document = describe()
    document["mounts"] = []
    home = {"name": "nvme0n1p4", "kname": "nvme0n1p4", "type": "part", "size": 10**12, "fstype": "xfs", "label": "home"}
    outputs = print_unmounted_host()
    disks = json.loads(outputs["lsblk"])["blockdevices"]
    outputs |= {"lsblk": json.dumps({"blockdevices": [*disks, home]}),
                "findmnt": json.dumps({"filesystems": [ROOT[0], ROOT[1] | {"fstype": "xfs"}]})}  # fmt: skip
    (fault,) = find_faults(outputs, document)
    assert (fault.kind, fault.location) == ("not mounted", "scratch")


def test_label_is_corrected_without_making_the_file_system_again() -> None:
    outputs = print_unmounted_host("scratch2")
    outputs |= {"findmnt": json.dumps({"filesystems": [*ROOT, make_mount("/scratch")]})}
    (fault,) = [fault for fault in find_faults(outputs, describe()) if "label" in fault.problem]
    assert "xfs_admin -L" in fault.remedy
    assert "save the data" not in fault.remedy
