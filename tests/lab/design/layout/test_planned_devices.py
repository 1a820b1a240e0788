# SPDX-License-Identifier: Apache-2.0
"""Devices, labels and mount points against those that a plan names: exchanged ones are faults, unknown ones are not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from storage_builders import build_lustre

from sonde.design.layout.check import check_layout
from sonde.design.layout.device_identity import is_planned_device
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live import inspection
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.errors import UserError
from sonde.model.system import make_system

_TIB = 2**40
WWN = "/dev/disk/by-id/wwn-0x5000c5000000000"
PATHS = "/dev/disk/by-path/pci-0000:01:00.0-sas-phy"


def describe(level: str = "6", device: str = f"{WWN}[1-7]", kind: str = "xfs") -> dict[str, Any]:
    """A host with one array of six drives and a spare; the plan names the device of each."""
    data, parity = {"6": (4, 2), "10": (3, 3)}[level]
    return {
        "schema": "sonde-system/2", "id": "array", "nodes": [{"id": "host"}],
        "drives": [{"id": "d[1-7]", "kind": "hdd", "server": "host", "capacity": f"{2 * _TIB} B", "block": "4096 B",
                    "rate": "200 MB/s", "device": device}],
        "raid_groups": [{"id": "md0", "level": level, "data": data, "parity": parity, "segment": "256 KiB",
                         "drives": "d[1-6]", "spares": "d7"}],
        "file_systems": [{"id": "scratch", "kind": kind, "device": "md0", "purpose": "scratch"}],
        "mounts": [{"id": "scratch-mount", "file_system": "scratch", "path": "/scratch", "on": "host"}],
    }  # fmt: skip


def print_host(level: str = "6", slots: str = "123456", spare: str = "7", mount: str = "/scratch") -> dict[str, str]:
    """lsblk and mdadm of that host: drive N is sd(b+N-1) with the WWN that ends in N."""
    names = {digit: f"sd{letter}" for digit, letter in zip("123456789", "bcdefghij", strict=True)}
    rows = [{"name": name, "kname": name, "type": "disk", "size": 2 * _TIB, "rota": True,
             "wwn": f"0x5000c5000000000{digit}", "serial": f"SN{digit}"} for digit, name in names.items()]  # fmt: skip
    table = "".join(f"{number:8}{8:8}{16:9}{number:9}      active sync   /dev/{names[digit]}\n"
                    for number, digit in enumerate(slots))  # fmt: skip
    layout = "near=2" if level == "10" else "left-symmetric"
    detail = f"""/dev/md127:
           Version : 1.2
        Raid Level : raid{level}
      Raid Devices : 6
     Total Devices : 7
     Intent Bitmap : Internal
             State : clean
    Active Devices : 6
    Failed Devices : 0
     Spare Devices : 1
            Layout : {layout}
        Chunk Size : 256K
Consistency Policy : bitmap
              Name : host:md0  (local to host host)

    Number   Major   Minor   RaidDevice State
{table}       6       8      240        -      spare   /dev/{names[spare]}
"""
    options = "rw,noatime,logbsize=256k,largeio,swalloc"
    row = {"target": mount, "source": "/dev/md127", "fstype": "xfs", "options": options}
    return {"lsblk": json.dumps({"blockdevices": rows}), "mdadm": detail, "findmnt": json.dumps({"filesystems": [row]})}


def check(
    outputs: Mapping[str, str], document: dict[str, Any], name: str = "scratch", mounts: Sequence[str] = ("/scratch",)
) -> LayoutCheck:
    plan = plan_layout(make_system(document, "made.toml"))
    storage = ObservedStorage()
    for origin, text in outputs.items():
        storage = merge_observations(storage, read_saved_output(text, origin))
    written = list_written_attributes(plan.system, plan.get_layout(name))
    return check_layout(join_observations(storage), plan.get_layout(name), (), mounts, written)


def test_planned_drives_are_compared_and_sound() -> None:
    verdict = check(print_host(), describe())
    assert verdict.faults == ()
    assert not re.search(r"mdadm(,|$)|mount(,|$)", " ".join(verdict.not_compared).replace(" because", ","))
    outputs = print_host(slots="123756", spare="4")
    (fault,) = check(outputs, describe()).faults
    assert "member sdh (0x5000c50000000007) is planned as spare, and its spare sde" in fault.problem
    text = re.sub(r".*spare   /dev/sde\n", "", outputs["mdadm"]).replace("Spare Devices : 1", "Spare Devices : 0")
    verdict = check(outputs | {"mdadm": text}, describe())
    kinds = [fault.kind for fault in verdict.faults if "sdh" in fault.problem]
    assert kinds == ["spare in the place of a drive"], "the spare took over, and is no odd member"
    assert {fault.location for fault in verdict.faults} == {"md127"}


@pytest.mark.parametrize(("device", "expected_text"), [
    (f"{WWN}[1-7]", f"{WWN}4"), ("/dev/disk/by-id/scsi-35000c5000000000[1-7]", "scsi-35000c50000000004"),
    ("/dev/disk/by-id/ata-ST2000_SN[1-7]", "ata-ST2000_SN4")])  # fmt: skip
def test_exchanged_drive_of_array_is_reported(device: str, expected_text: str) -> None:
    document = describe(device=device.replace("scsi-35000c5000000000", "scsi-35000c5000000000"))
    (fault,) = check(print_host(slots="123956"), document).faults
    assert (fault.kind, fault.location) == ("not as planned", "md127")
    assert "sdj (0x5000c50000000009)" in fault.problem
    assert expected_text in fault.problem


def test_exchanged_drive_is_reported_by_path() -> None:
    links = "".join(f"{PATHS}{digit}-lun-0 ../../sd{letter}\n"
                    for digit, letter in zip("123456789", "bcdefghij", strict=True))  # fmt: skip
    document = describe(device=f"{PATHS}[1-7]-lun-0")
    assert check(print_host() | {"links": links}, document).faults == ()
    (fault,) = check(print_host(slots="128456") | {"links": links}, document).faults
    assert "sdi" in fault.problem
    assert f"{PATHS}3-lun-0" in fault.problem
    alone = check(print_host(slots="128456"), document)
    assert alone.faults == ()
    assert any("mdadm" in text and "no output shows its links" in text for text in alone.not_compared)


def test_exchanged_copies_of_raid10_are_reported() -> None:
    document = describe("10")
    assert check(print_host("10"), document).faults == ()
    assert check(print_host("10", slots="214365"), document).faults == ()
    (fault,) = check(print_host("10", slots="132456"), document).faults
    assert fault.location == "md127"
    assert "sdb and sdd hold copies of the same data, and so do sdc and sde;" in fault.problem


def test_other_mount_point_is_reported() -> None:
    (fault,) = check(print_host(mount="/data"), describe()).faults
    assert (fault.kind, fault.location) == ("not as planned", "/data")
    assert "planned is /scratch" in fault.problem


def print_pool(first: str, second: str) -> str:
    rows = "".join(
        f"\t  raidz2-{number}  ONLINE       0     0     0\n"
        + "".join(f"\t    wwn-0x5000c5000000000{digit}  ONLINE       0     0     0\n" for digit in digits)
        for number, digits in enumerate((first, second))
    )
    scan = "  scan: scrub repaired 0B in 09:41:22 with 0 errors on Sun Nov  8 10:05:24 2026\n"
    return (f"  pool: scratch\n state: ONLINE\n{scan}config:\n\n\tNAME        STATE     READ WRITE CKSUM\n"
            f"\tscratch  ONLINE       0     0     0\n{rows}"
            "\tspares\n\t  sdz      AVAIL\n\nerrors: No known data errors\n")  # fmt: skip


def test_exchanged_drives_of_vdevs_are_reported() -> None:
    document = describe(kind="zfs", device=f"{WWN}[1-8]")
    document["drives"][0]["id"] = "d[1-8]"
    document["raid_groups"] = [{"id": "g[0-1]", "level": "6", "data": 2, "parity": 2, "segment": "256 KiB",
                                "drives": "d[1-8]"}]  # fmt: skip
    document["volumes"] = [{"id": "pool", "kind": "zfs", "members": "g[0-1]"}]
    document["file_systems"][0]["device"] = "pool"
    sound = check({"zpool": print_pool("1234", "5678")}, document)
    assert sound.faults == ()
    (fault,) = check({"zpool": print_pool("1235", "4678")}, document).faults
    assert fault.kind == "not as planned"
    assert "wwn-0x5000c50000000005 in raidz2-0 is planned where raidz2-1 is" in fault.problem
    assert "wwn-0x5000c50000000004 in raidz2-1 where raidz2-0 is" in fault.problem
    faults = check({"zpool": print_pool("1239", "5678")}, document).faults
    assert any("wwn-0x5000c50000000009 is in raidz2-0" in fault.problem and f"{WWN}4" in fault.problem
               for fault in faults)  # fmt: skip


def test_exchanged_labels_of_targets_are_reported() -> None:
    def print_arrays(first: str, second: str) -> dict[str, str]:
        tops = [{"name": f"md{number}", "kname": f"md{number}", "type": "raid6", "size": 4 * _TIB, "fstype": "ext4",
                 "label": label} for number, label in ((126, first), (127, second))]  # fmt: skip
        details = {
            f"mdadm {number}": print_host()["mdadm"].replace("md127", f"md{number}").replace("host:md0", f"oss:{name}")
            .replace("/dev/sd", f"/dev/sd{number % 2}x") for number, name in ((126, "g0"), (127, "g1"))
        }  # fmt: skip
        return {"lsblk": json.dumps({"blockdevices": tops}), **details}

    def find_problems(first: str, second: str) -> list[str]:
        faults = check(print_arrays(first, second), build_lustre(separate_mgt=True), "fs").faults
        return [f"{fault.location} {fault.problem}" for fault in faults if "md127" in fault.problem]

    assert find_problems("fs-OST0000", "fs-OST0001") == []
    (problem,) = find_problems("fs-OST0001", "fs-OST0000")
    assert "their devices are exchanged: fs-OST0000 is on md127 and fs-OST0001 is on md126" in problem


def test_target_with_another_index_is_reported_once() -> None:
    disk = {"name": "md127", "kname": "md127", "type": "raid6", "size": 4 * _TIB, "fstype": "ext4",
            "label": "fs-OST0009"}  # fmt: skip
    outputs = {
        "lsblk": json.dumps({"blockdevices": [disk]}),
        "mdadm": print_host()["mdadm"].replace("host:md0", "oss:g1"),
        "tunefs": "   Read previous values:\nTarget:     fs-OST0009\nIndex:      9\nLustre FS:  fs\n"
        "Mount type: ldiskfs\nFlags:      0x2\n              (OST )\nPersistent mount opts: ,errors=remount-ro\n"
        "Parameters: mgsnode=10.0.0.1@o2ib\n",
    }  # fmt: skip
    faults = [fault for fault in check(outputs, build_lustre(separate_mgt=True), "fs").faults
              if "OST" in fault.location]  # fmt: skip
    assert [(fault.location, fault.problem) for fault in faults] == [
        ("fs-OST0001", "it is missing: its device md127 holds fs-OST0009")]  # fmt: skip


@pytest.mark.parametrize(("path", "disk", "answer"), [
    ("/dev/mapper/mpatha", ObservedDisk("dm-3", "multipath", settings={"name": "mpathb"}), None),
    ("/dev/mapper/mpatha", ObservedDisk("sda"), None),
    ("/dev/disk/by-id/dm-uuid-mpath-36005", ObservedDisk("dm-3", settings={"uuid": "36005"}), True),
    ("/dev/disk/by-id/wwn-0x6005", ObservedDisk("dm-3", "multipath", settings={"uuid": "36005"}), True),
    ("/dev/mapper/mpathz", ObservedDisk("dm-3", "multipath", settings={"name": "mpathb"}), False),
    ("/dev/md/a", ObservedDisk("md1", "md", settings={"array_name": "b"}), None),
    ("/dev/md/z", ObservedDisk("md1", "md", settings={"array_name": "b"}), False),
    ("/dev/vg/z", ObservedDisk("vg-b", "lvm"), False), ("/dev/vg/a", ObservedDisk("vg-b", "lvm"), None),
    ("/dev/sda", ObservedDisk("sdb"), False), ("/dev/my-disk", ObservedDisk("sdb"), None),
    ("$DEV_LUN0", ObservedDisk("sdb"), None), ("/dev/vg-a/work", ObservedDisk("vg--a-work", "lvm"), True),
    ('$(slice "/dev/sda" 2)', ObservedDisk("sda2", "part", on="sda"), True),
    ('$(slice "/dev/sda" 1)', ObservedDisk("sda2", "part", on="sda"), False)])  # fmt: skip
def test_planned_device_is_identified(path: str, disk: ObservedDisk, answer: bool | None) -> None:
    peers = [ObservedDisk("sda"), ObservedDisk("dm-9", "multipath", settings={"name": "mpathz"}),
             ObservedDisk("md9", "md", settings={"array_name": "z"}), ObservedDisk("vg-z", "lvm")]  # fmt: skip
    storage = ObservedStorage(disks={each.name: each for each in (*peers, disk)})
    assert is_planned_device(storage, path, disk) is answer


def test_other_order_of_parity_is_reported() -> None:
    outputs = print_host()
    outputs["mdadm"] = outputs["mdadm"].replace("left-symmetric", "ddf-N-restart")
    (fault,) = check(outputs, describe()).faults
    assert (fault.kind, fault.location) == ("not as planned", "md127")
    assert "ddf-N-restart; planned is left-symmetric" in fault.problem
    document = describe()
    document["raid_groups"][0]["layout"] = "ddf-N-restart"
    assert check(outputs, document).faults == ()
    document["raid_groups"][0]["layout"] = "diagonal"
    with pytest.raises(UserError, match="md0 has the layout 'diagonal'; mdadm has left-symmetric"):
        check(outputs, document)


@pytest.mark.parametrize(("bytes_per_inode", "cost"), [(2**20, ""), (2**26, "creates fail"), (16384, "inodes take")])
def test_inodes_of_df_are_compared_with_plan(bytes_per_inode: int, cost: str) -> None:
    document = describe("10", kind="ext4")
    outputs = print_host("10")
    outputs["findmnt"] = (
        outputs["findmnt"].replace("xfs", "ext4").replace("logbsize=256k,largeio,swalloc", "stripe=192")
    )
    rows = json.loads(outputs["lsblk"])["blockdevices"]
    rows[0]["children"] = [{"name": "md127", "kname": "md127", "type": "raid10", "size": 6 * _TIB, "rota": True}]
    outputs["lsblk"] = json.dumps({"blockdevices": rows})
    inodes = 6 * _TIB // bytes_per_inode
    outputs["df"] = (f"Filesystem Type Inodes IUsed IFree IUse% Mounted on\n/dev/md127 ext4 {inodes}"
                     " 11 100 1% /scratch\n")  # fmt: skip
    verdict = check(outputs, document)
    assert [cost in fault.cost for fault in verdict.faults] == [True] * bool(cost)
    assert not any("mke2fs -T" in text for text in verdict.not_compared)


@pytest.mark.parametrize(("old", "new", "cost"), [
    ("largeio", "nolargeio", "write one block instead of a full width"),
    ("swalloc", "noswalloc", "not allocated from the begin of a full width"),
    ("logbsize=256k", "logbsize=32k", "the log is written in smaller pieces")])  # fmt: skip
def test_cost_is_that_of_the_mount_option(old: str, new: str, cost: str) -> None:
    outputs = print_host()
    outputs["findmnt"] = outputs["findmnt"].replace(old, new)
    (fault,) = check(outputs, describe()).faults
    assert cost in fault.cost


def test_cost_of_misalignment_depends_on_parity() -> None:
    def find_cost(level: str) -> str:
        disks = {"md5": ObservedDisk("md5", "md", level=level, unit=2**18, data=4),
                 "md5p1": ObservedDisk("md5p1", "part", on="md5", start=2**19)}  # fmt: skip
        return next(
            fault.cost for fault in check_layout(ObservedStorage(disks=disks)).faults if "md5p1" in fault.location
        )

    assert "271 against 136" in find_cost("raid5")
    assert "271 against 136" not in find_cost("raid10")


def test_planned_target_that_no_client_lists_is_reported() -> None:
    head = "UUID 1K-blocks Used Available Use% Mounted on\n"
    rows = [f"fs-{name}_UUID 30000000000 6000000000 24000000000 20% /fs[{name[:3]}:0]\n"
            for name in ("MDT0000", "OST0000", "OST0001")]  # fmt: skip
    document = build_lustre(separate_mgt=True)
    assert check({"df": head + "".join(rows)}, document, "fs").faults == ()
    (fault,) = check({"df": head + "".join(rows[:2])}, document, "fs").faults
    assert (fault.location, fault.cost) == ("fs-OST0001", "its capacity and bandwidth are missing")


def test_other_name_of_array_is_sound() -> None:
    outputs = print_host()
    outputs["mdadm"] = outputs["mdadm"].replace("host:md0", "host:data")
    assert check(outputs, describe()).faults == ()


def test_spare_that_is_not_planned_is_reported() -> None:
    (fault,) = check(print_host(spare="9"), describe()).faults
    assert (fault.kind, fault.location) == ("not as planned", "md127")
    assert "its spare sdj (0x5000c50000000009)" in fault.problem


@pytest.mark.parametrize(
    ("inodes", "cost"), [(28_600_000, ""), (7_000_000, "creates fail"), (900_000_000, "inodes take")]
)
def test_inodes_of_planned_target_are_compared(inodes: int, cost: str) -> None:
    size = "UUID 1K-blocks Used Available Use% Mounted on\n"
    numbers = "UUID Inodes IUsed IFree IUse% Mounted on\n"
    for name, count in (("MDT0000", 12_000_000_000), ("OST0000", 28_600_000), ("OST0001", inodes)):
        size += f"fs-{name}_UUID 30000000000 6000000 29994000000 1% /fs[{name[:3]}:0]\n"
        numbers += f"fs-{name}_UUID {count} 300 {count - 300} 1% /fs[{name[:3]}:0]\n"
    faults = check({"df": size, "inodes": numbers}, build_lustre(separate_mgt=True), "fs").faults
    assert [fault.location for fault in faults] == ["fs-OST0001"] * bool(cost)
    assert all(cost in fault.cost for fault in faults)
    zfs = {f"label {number}": f"Target: fs-OST000{number}\nLustre FS:  fs\nMount type: zfs\n" for number in (0, 1)}
    faults = check({"df": size, "inodes": numbers, **zfs}, build_lustre(separate_mgt=True), "fs").faults
    assert not any("an inode for" in fault.problem for fault in faults)


def test_links_of_this_machine_are_added_to_its_devices(tmp_path: Path) -> None:
    for name in ("disk/by-id/wwn-0x5000c50000000001", "disk/by-path/pci-0-sas-phy1", "md/scratch"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to("../md127" if "md" in name else "../../sdb")
    storage = ObservedStorage(disks={name: ObservedDisk(name, settings={"timeout": "30"}) for name in ("sdb", "md127")})
    disks = inspection._add_device_links(storage, tmp_path).disks
    assert disks["md127"].settings == {"timeout": "30", "links": "/dev/md/scratch"}
    assert is_planned_device(ObservedStorage(disks=disks), f"{WWN}1", disks["sdb"])
    assert is_planned_device(ObservedStorage(disks=disks), f"{WWN}2", disks["sdb"]) is False


def test_mount_point_of_another_node_is_sound() -> None:
    assert check(print_host(mount="/data"), describe(), mounts=("/scratch", "/data")).faults == ()


def test_other_mount_point_of_client_is_reported() -> None:
    row = {"target": "/lustre", "source": "10.0.0.2@o2ib:10.0.0.1@o2ib:/fs", "fstype": "lustre", "options": "rw,flock"}
    outputs = {"findmnt": json.dumps({"filesystems": [row]})}
    document = build_lustre(separate_mgt=True)
    assert check(outputs, document, "fs", ["/lustre"]).faults == ()
    (fault,) = check(outputs, document, "fs", ["/work"]).faults
    assert (fault.location, fault.problem) == ("/lustre", "it is mounted at /lustre; planned is /work")
    other = {"findmnt": outputs["findmnt"].replace(":/fs", ":/home")}
    assert check(other, document, "fs", ["/work"]).faults == ()
