# SPDX-License-Identifier: Apache-2.0
"""Local file systems and pools that two hosts use at the same time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lustre_hosts import find_faults as find_lustre_faults
from planted_layout_faults import make_server_outputs

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output

WWN = "0x600a098000b0f4c2000005105f8e2a1c"
KIND = "used by several hosts"


def read_host(wwn: str = WWN, uuid: str = "1-2-3", options: str = "rw,noatime", level: str = "") -> ObservedStorage:
    """A host that has mounted a file system on a LUN, or on an array that contains it."""
    top = {"name": "md9" if level else "vg-data", "kname": "md9" if level else "dm-4", "type": level or "lvm",
           "size": 10**13, "fstype": "xfs", "uuid": uuid, "mountpoint": "/data"}  # fmt: skip
    lun = {"name": "sdb", "kname": "sdb", "type": "disk", "size": 10**13, "wwn": wwn, "children": [top]}
    mount = {"target": "/data", "source": f"/dev/{'md9' if level else 'mapper/vg-data'}", "fstype": "xfs",
             "options": options}  # fmt: skip
    storage = ObservedStorage()
    for origin, output in (("lsblk", {"blockdevices": [lun]}), ("findmnt", {"filesystems": [mount]})):
        storage = merge_observations(storage, read_saved_output(json.dumps(output), origin))
    return join_observations(storage)


def find_faults(first: ObservedStorage, second: ObservedStorage) -> list[LayoutFault]:
    return [fault for fault in check_hosts({"a": first, "b": second}).faults if fault.kind == KIND]


def test_file_system_mounted_on_two_hosts_is_reported() -> None:
    (fault,) = find_faults(read_host(), read_host())
    assert fault.location == "a: /data; b: /data"
    assert "a (/data) and b (/data) have one xfs mounted at the same time" in fault.problem
    assert "unmount it at once" in fault.remedy


@pytest.mark.parametrize(("first", "second"), [
    (read_host(), read_host(wwn="0x600a098000b0f4c2000005115f8e2a1c")),  # system disks copied with their UUID
    (read_host(), read_host(uuid="4-5-6")),  # two volumes of a volume group that both hosts use
    (read_host(options="ro,norecovery"), read_host(options="ro,norecovery")),
    (read_host(level="raid6"), read_host(level="raid6")),
])  # fmt: skip
def test_file_systems_of_two_hosts_are_sound(first: ObservedStorage, second: ObservedStorage) -> None:
    assert find_faults(first, second) == []


def test_pool_imported_on_two_hosts_is_reported() -> None:
    rows = [{"name": f"sdb{letter}", "kname": f"sdb{letter}", "type": "disk", "size": 10**13,
             "wwn": f"0x5000c500a1b2c3{number:02}"} for number, letter in enumerate("abcdefgh")]  # fmt: skip
    storage = read_saved_output(make_server_outputs()["zpool"], "zpool")
    storage = merge_observations(storage, read_saved_output(json.dumps({"blockdevices": rows}), "lsblk"))
    host = join_observations(storage)
    (fault,) = find_faults(host, host)
    assert fault.location == "a: tank; b: tank"
    assert "multihost=on" in fault.remedy


@pytest.mark.parametrize(("kind", "options", "is_fault"), [
    ("lustre", ("defaults", "defaults"), True), ("xfs", ("noatime", "nofail"), True),
    ("lustre", ("defaults", "noauto"), False), ("lustre", ("noauto", "noauto"), False),
    ("xfs", ("ro", "ro"), False)])  # fmt: skip
def test_device_that_two_hosts_mount_at_a_start_is_reported(
    kind: str, options: tuple[str, str], is_fault: bool
) -> None:
    hosts = {}
    for host, option in zip("ab", options, strict=True):
        multipath = (
            f"ost5 (3{WWN[2:]}) dm-5 ACME,LUN\nsize=14T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
        )
        multipath += "`-+- policy='service-time 0' prio=50 status=active\n  `- 2:0:0:5 sdb 8:16 active ready running\n"
        storage = read_saved_output(multipath, "multipath")
        line = f"/dev/mapper/ost5 /lustre/ost5 {kind} {option},_netdev 0 0\n"
        hosts[host] = join_observations(merge_observations(storage, read_saved_output(line, "fstab")))
    faults = [fault for fault in check_hosts(hosts).faults if fault.kind == "mounted at a start of several hosts"]
    assert [fault.location for fault in faults] == ["a: /lustre/ost5; b: /lustre/ost5"] * is_fault


def test_system_disks_of_equal_identity_are_sound() -> None:
    root = {"name": "nvme0n1", "kname": "nvme0n1", "type": "disk", "size": 10**11, "wwn": "eui.3634", "fstype": "xfs",
            "uuid": "1-2-3", "mountpoint": "/"}  # fmt: skip
    storage = read_saved_output(json.dumps({"blockdevices": [root]}), "lsblk")
    storage = merge_observations(storage, read_saved_output("UUID=1-2-3 / xfs defaults 0 0\n", "fstab"))
    host = join_observations(storage)
    assert check_hosts({"a": host, "b": host}).faults == ()


def test_shared_line_explains_that_of_one_host() -> None:
    hosts = {}
    for host in "ab":
        text = ""
        for number in range(3):
            text += f"ost{number} (3{WWN[2:-1]}{number}) dm-{number} ACME,LUN\n"
            text += "size=14T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
            text += "`-+- policy='service-time 0' prio=50 status=active\n"
            text += f"  `- 2:0:0:{number} sd{'abc'[number]} 8:16 active ready running\n"
        lines = "".join(f"/dev/mapper/ost{number} /lustre/ost{number} lustre {'noauto' if number else 'defaults'} 0 0\n"
                        for number in range(3))  # fmt: skip
        storage = merge_observations(read_saved_output(text, "multipath"), read_saved_output(lines, "fstab"))
        hosts[host] = join_observations(storage)
    faults = [fault for fault in check_hosts(hosts).faults if "start" in fault.kind]
    assert [fault.kind for fault in faults] == ["mounted at a start of several hosts"]


def test_lines_without_noauto_on_both_partners_are_one_fault(tmp_path: Path) -> None:
    """Also where a server does not see the devices of its partner, because their arrays do not run there."""
    (fault,) = find_lustre_faults(tmp_path, options="defaults,_netdev")
    assert fault.kind == "mounted at a start of several hosts"
    assert "fstab of oss1 and oss2 mounts LABEL=fs-OST0000 at /mnt/ost0, LABEL=fs-OST0001 at /mnt/ost1" in fault.problem
