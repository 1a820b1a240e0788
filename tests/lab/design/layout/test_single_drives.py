# SPDX-License-Identifier: Apache-2.0
"""Servers of object stores: a local file system on each drive, mounted at numbered directories by lines of fstab."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pytest
from planted_layout_faults import check_outputs

from sonde.design.layout.check_peer_attributes import find_attribute_differences
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

OPTIONS = "rw,noatime,attr2,inode64,logbufs=8,logbsize=32k,noquota"
NUMBERS = range(1, 7)


def check_server(
    unmounted: Collection[int] = (), options: Mapping[int, str] | None = None, cache: Mapping[int, str] | None = None,
    line_options: str = "defaults,noatime", directories: Mapping[int, str] | None = None, lines: int = len(NUMBERS),
) -> LayoutCheck:  # fmt: skip
    mounts = [{"target": "/", "source": "/dev/sdz", "fstype": "xfs", "options": "rw,relatime"}]
    root = {"name": "sdz", "kname": "sdz", "type": "disk", "size": 4 * 10**11, "fstype": "xfs", "uuid": "1111-root"}
    rows, fstab, settings = [root], "UUID=1111-root / xfs defaults 0 0\n", ""
    for number in NUMBERS:
        name, directory = f"sd{chr(96 + number)}", (directories or {}).get(number, f"/mnt/disk{number}")
        rows.append({"name": name, "kname": name, "type": "disk", "size": 14 * 10**12, "rota": True, "fstype": "xfs",
                     "label": f"DISK{number}", "uuid": f"aaaa-{number}"})  # fmt: skip
        fstab += f"LABEL=DISK{number} /mnt/disk{number} xfs {line_options} 0 2\n" * (number <= lines)
        settings += f"/sys/block/{name}/queue/write_cache:{(cache or {}).get(number, 'write back')}\n"
        if number not in unmounted:
            mounts.append({"target": directory, "source": f"/dev/{name}", "fstype": "xfs",
                           "options": (options or {}).get(number, OPTIONS)})  # fmt: skip
    return check_outputs({
        "lsblk": json.dumps({"blockdevices": rows}), "findmnt": json.dumps({"filesystems": mounts}), "fstab": fstab,
        "queues": settings,
    })  # fmt: skip


def test_drives_with_a_file_system_each_are_sound() -> None:
    verdict = check_server()
    assert verdict.faults == ()
    subjects = {item.subject for item in verdict.checked_items}
    assert {"the mount of a line of fstab", "write_cache of single drives with xfs"} <= subjects


def test_line_of_fstab_without_its_mount_is_reported() -> None:
    (fault,) = check_server(unmounted=[3]).faults
    assert (fault.kind, fault.location) == ("not mounted", "/mnt/disk3")
    assert fault.problem == "fstab mounts LABEL=DISK3 there, which is sdc, but nothing is mounted there"


@pytest.mark.parametrize("line_options", ["noauto,noatime", "noatime,x-systemd.automount", "user,noatime"])
def test_line_that_no_start_mounts_is_sound(line_options: str) -> None:
    assert check_server(unmounted=[3], line_options=line_options).faults == ()


def test_mount_at_another_directory_names_it() -> None:
    (fault,) = check_server(directories={3: "/mnt/old"}).faults
    assert fault.problem.endswith("nothing is mounted there; it is mounted at /mnt/old")


def test_exchanged_mounts_are_one_fault() -> None:
    (fault,) = check_server(directories={3: "/mnt/disk4", 4: "/mnt/disk3"}).faults
    assert (fault.kind, fault.location) == ("fstab names another device", "/mnt/disk3, /mnt/disk4")
    assert "which is sdc; mounted now is sdd, and at /mnt/disk4 it is the reverse" in fault.problem


def test_cache_of_one_drive_differs_from_its_peers() -> None:
    (fault,) = check_server(cache={5: "write through"}).faults
    assert (fault.kind, fault.location, fault.attributes) == ("differs from its peers", "sde", ("write_cache",))
    assert "write_cache is write through; on 5 of 6 single drives with xfs it is write back" in fault.problem


@pytest.mark.parametrize(("options", "kind"), [("ro", "mounted read-only"), ("ro,norecovery", "mount option")])
def test_mount_for_reads_alone_is_one_fault(options: str, kind: str) -> None:
    (fault,) = check_server(options={2: OPTIONS.replace("rw", options)}).faults
    assert (fault.kind, fault.location) == (kind, "/mnt/disk2")
    assert any("mount option ro" in text for text in fault.consequences)


@pytest.mark.parametrize(("lines", "absent"), [(6, []), (5, ["/mnt/disk6"]), (3, [])])
def test_mount_without_the_line_that_its_peers_have(lines: int, absent: list[str]) -> None:
    """Where half of the lines are absent, something else mounts them."""
    faults = check_server(lines=lines).faults
    assert [fault.location for fault in faults] == absent
    assert all(fault.kind == "not mounted at a start" and "like those of the others" in fault.remedy
               for fault in faults)  # fmt: skip


@pytest.mark.parametrize(("odd", "locations"), [(("sdb",), ["sdb"]), (("sda", "sdb", "sdc"), [])])
def test_drives_below_one_volume_each_are_peers(odd: Collection[str], locations: list[str]) -> None:
    """Three of six have no clear majority against them."""
    names = [f"sd{letter}" for letter in "abcdef"]
    disks = {name: ObservedDisk(name, "disk", 10**13, flash=False, settings={"fs_kind": "LVM2_member"},
                                queue={"write_cache": "write through" if name in odd else "write back"})
             for name in names}  # fmt: skip
    volumes = {f"dm-{number}": ObservedDisk(f"dm-{number}", "lvm", members=(name,))
               for number, name in enumerate(names)}  # fmt: skip
    results = find_attribute_differences(ObservedStorage((), disks | volumes), ())
    assert [each.location for each in results if isinstance(each, LayoutFault)] == locations
