# SPDX-License-Identifier: Apache-2.0
"""Mounts of clients of Lustre against fstab, and devices that options of fstab name."""

from __future__ import annotations

import json

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output

SERVERS = "10.0.0.1@o2ib:10.0.0.2@o2ib:/fs"
ROOT = "UUID=1111-root / ext4 defaults 0 1\n"
LINKS = "/dev/md/logs ../md125\n/dev/md/logs2 ../md125p2\n/dev/md/other1 ../md124p1\n"


KINDS = ("not mounted", "mount differs from fstab", "fstab differs from the mount", "name of a device may change")


def find_faults(
    fstab: str, mount: dict[str, str] | None, kinds: tuple[str, ...] = KINDS, **more: str
) -> list[LayoutFault]:
    mounts = [{"target": "/", "source": "/dev/nvme0n1p2", "fstype": "ext4", "options": "rw,relatime"}]
    outputs = {"findmnt": json.dumps({"filesystems": [*mounts, *([mount] if mount else [])]}), "fstab": ROOT + fstab}
    storage = ObservedStorage()
    for origin, text in (outputs | more).items():
        storage = merge_observations(storage, read_saved_output(text, origin))
    return [fault for fault in check_layout(join_observations(storage)).faults if fault.kind in kinds]


def make_client(options: str) -> dict[str, str]:
    return {"target": "/fs", "source": SERVERS, "fstype": "lustre", "options": f"rw,{options},lazystatfs"}


@pytest.mark.parametrize(("planned", "mounted", "text"), [
    ("flock,_netdev", "flock,user_xattr", ""), ("defaults,_netdev", "noflock,user_xattr", ""),
    ("flock,_netdev", "noflock,user_xattr", "it is mounted with noflock; fstab says flock"),
    ("noflock", "flock,user_xattr", "it is mounted with flock; fstab says noflock"),
    ("flock,user_xattr", "flock,nouser_xattr", "it is mounted with nouser_xattr; fstab says user_xattr")])  # fmt: skip
def test_client_options_other_than_in_fstab_are_reported(planned: str, mounted: str, text: str) -> None:
    faults = find_faults(f"{SERVERS} /fs lustre {planned} 0 0\n", make_client(mounted))
    assert [(fault.kind, fault.location, fault.problem) for fault in faults] == (
        [("mount differs from fstab", "/fs", text)] if text else [])  # fmt: skip


@pytest.mark.parametrize(("options", "is_fault"), [
    ("flock,_netdev", True), ("flock,noauto", False), ("flock,x-systemd.automount", False)])  # fmt: skip
def test_client_in_fstab_without_mount_is_reported(options: str, is_fault: bool) -> None:
    faults = find_faults(f"{SERVERS} /fs lustre {options} 0 0\n", None)
    assert [(fault.kind, fault.location) for fault in faults] == [("not mounted", "/fs")] * is_fault


@pytest.mark.parametrize(("log", "mounted_log", "kind", "text"), [
    ("/dev/md/logs2", "/dev/md/logs2", "", ""), ("/dev/md/logs2", "/dev/md125p2", "", ""),
    ("/dev/md125p2", "/dev/md125p2", "name of a device may change", "write logdev=/dev/md/logs2 into fstab"),
    ("/dev/sdb1", "/dev/sdb1", "name of a device may change", "a link below /dev/disk/by-id"),
    ("/dev/md/other1", "/dev/md/logs2", "fstab differs from the mount", "write logdev=/dev/md/logs2")])  # fmt: skip
def test_log_device_of_fstab_is_compared(log: str, mounted_log: str, kind: str, text: str) -> None:
    mount = {"target": "/data", "source": "/dev/sdc1", "fstype": "xfs", "options": f"rw,noatime,logdev={mounted_log}"}
    faults = find_faults(f"LABEL=data /data xfs noatime,logdev={log} 0 0\n", mount, links=LINKS)
    assert [(fault.kind, fault.location) for fault in faults] == ([(kind, "/data")] if kind else [])
    assert all(text in fault.remedy for fault in faults)


def test_number_of_an_array_that_mdadm_conf_fixes_is_sound() -> None:
    detail = (
        "/dev/md5:\n        Raid Level : raid1\n      Raid Devices : 2\n             State : clean\n"
        "              UUID : 1:2:3:4\n   0  8  0  0  active sync   /dev/sda\n   1  8  16  1  active sync   /dev/sdb\n"
    )
    mount = {"target": "/data", "source": "/dev/sdc1", "fstype": "xfs", "options": "rw,noatime,logdev=/dev/md5"}
    line = "LABEL=data /data xfs noatime,logdev=/dev/md5 0 0\n"
    for device, kinds in (("/dev/md5", []), ("/dev/md/logs", ["name of a device may change"])):
        faults = find_faults(line, mount, detail=detail, conf=f"ARRAY {device} UUID=1:2:3:4\n")
        assert [fault.kind for fault in faults] == kinds


@pytest.mark.parametrize(("automatic", "locations"), [
    ((), []), ((5,), ["/lustre/ost5"]), ((3, 5), []), ((1, 3, 5), [])])  # fmt: skip
def test_target_without_noauto_differs_from_its_peers(automatic: tuple[int, ...], locations: list[str]) -> None:
    options = {number: "defaults" if number in automatic else "noauto" for number in (1, 3, 5)}
    lines = "".join(f"/dev/mapper/ost{number} /lustre/ost{number} lustre {option},_netdev 0 0\n"
                    for number, option in options.items())  # fmt: skip
    faults = find_faults(lines, None, kinds=("target mounted at a start",))
    assert [fault.location for fault in faults] == locations


@pytest.mark.parametrize(("planned", "mounted", "kind", "text"), [
    ("noatime,uquota,pquota", "noatime,noquota", "mount differs from fstab", "without quotas of projects and users"),
    ("noatime,uquota,pquota", "noatime,usrquota", "mount differs from fstab", "without quotas of projects; fstab"),
    ("noatime", "noatime,usrquota,prjquota", "fstab differs from the mount", "with quotas of projects and users"),
    ("noatime,quota,gquota", "noatime,usrquota,grpquota", "", ""), ("noatime", "noatime,noquota", "", ""),
])  # fmt: skip
def test_quotas_of_fstab_are_compared(planned: str, mounted: str, kind: str, text: str) -> None:
    mount = {"target": "/data", "source": "/dev/sdb", "fstype": "xfs", "options": f"rw,{mounted}"}
    faults = find_faults(f"LABEL=data /data xfs {planned} 0 0\n", mount)
    assert [(fault.kind, fault.location) for fault in faults] == [(kind, "/data")] * bool(kind)
    assert all(text in fault.problem for fault in faults)


@pytest.mark.parametrize(("source", "is_fault"), [
    (SERVERS, False), ("10.0.0.2@o2ib:10.0.0.1@o2ib:/fs", False), ("mds1@o2ib:mds2@o2ib:/fs", False),
    ("10.0.0.1@o2ib:/fs", True)])  # fmt: skip
def test_management_servers_of_fstab_are_compared(source: str, is_fault: bool) -> None:
    faults = find_faults(f"{source} /fs lustre flock,_netdev 0 0\n", make_client("flock"))
    assert [(fault.kind, fault.attributes) for fault in faults] == [
        ("fstab differs from the mount", ("management",))] * is_fault  # fmt: skip


@pytest.mark.parametrize(("source", "kind"), [
    ("/dev/mapper/ost2", ""), ("/dev/sdc", "fstab names an unstable device"),
    ("/dev/mapper/ost3", "fstab names another device"), ("/dev/mapper/ost22", "fstab names no device")])  # fmt: skip
def test_device_of_a_target_line_is_compared(source: str, kind: str) -> None:
    mount = {"target": "/lustre/ost2", "source": "/dev/mapper/ost2", "fstype": "lustre", "options": "rw,svname=OST2"}
    kinds = ("fstab names an unstable device", "fstab names another device", "fstab names no device")
    links = "/dev/mapper/ost2 ../dm-2\n/dev/mapper/ost3 ../dm-3\n"
    rows = [{"kname": f"dm-{number}", "name": f"ost{number}", "type": "mpath", "size": 10**13} for number in (2, 3)]
    more = {"links": links, "lsblk": json.dumps({"blockdevices": rows})}
    faults = find_faults(f"{source} /lustre/ost2 lustre noauto 0 0\n", mount, kinds, **more)
    assert [fault.kind for fault in faults] == [kind] * bool(kind)


def test_external_log_that_fstab_lacks_stops_the_mount() -> None:
    mount = {"target": "/data", "source": "/dev/sdc1", "fstype": "xfs", "options": "rw,noatime,logdev=/dev/md125p2"}
    (fault,) = find_faults("LABEL=data /data xfs noatime 0 0\n", mount, links=LINKS)
    assert (fault.kind, fault.problem) == ("fstab differs from the mount", "fstab mounts it without logdev")
    assert "is not mounted without logdev: the next start of the machine does not mount it" in fault.cost
    assert fault.remedy == "write logdev=/dev/md/logs2 into its line of fstab"
