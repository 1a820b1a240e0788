# SPDX-License-Identifier: Apache-2.0
"""Usual faults of volumes, mounts, pools and drives, planted into the outputs of a sound server: each is named once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from planted_layout_faults import Outputs, change, check_outputs, make_server_outputs

import sonde.design.layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_collector_output

ZPOOL_LIST = "NAME SIZE ALLOC FREE CKPOINT EXPANDSZ FRAG CAP DEDUP HEALTH ALTROOT\n{}\n"
VOLUMES = [
    {"lv_name": "work", "vg_name": "vg0", "lv_attr": "-wi-ao----", "stripes": "2", "segtype": "striped",
     "stripe_size": "1048576", "seg_size": "4398046511104", "devices": "/dev/sdp(0),/dev/sdq(0)",
     "lv_size": "4398046511104", "origin": "", "data_percent": ""},
    {"lv_name": "pool", "vg_name": "vg0", "lv_attr": "twi-aotz--", "stripes": "1", "segtype": "thin-pool",
     "seg_size": "1099511627776", "devices": "pool_tdata(0)", "lv_size": "1099511627776", "data_percent": "41.20"},
]  # fmt: skip


def print_volumes() -> str:
    return json.dumps({"report": [{"seg": VOLUMES}]})


def make_outputs() -> Outputs:
    """The outputs of the sound server with those of LVM and zpool list, models of drives and their use."""
    outputs = make_server_outputs()
    rows = json.loads(outputs["lsblk"])["blockdevices"]
    for row in rows:
        row |= {"model": "ST10000NM0096", "rev": "E005"}
        row["children"][0]["fsuse%"] = "61%"
    outputs["lsblk"] = json.dumps({"blockdevices": rows})
    outputs["lvs"] = print_volumes()
    outputs["dmsetup"] = "vg0-work: 0 8589934592 striped 2 2048 8:240 2048 65:0 2048\n"
    outputs["pvs"] = json.dumps({"report": [{"pv": [{"pv_name": f"/dev/sd{letter}", "vg_name": "vg0",
                                                     "pe_start": "1048576"} for letter in "pq"]}]})  # fmt: skip
    outputs["zpool list"] = ZPOOL_LIST.format("tank 58.2T 23.9T 34.3T - - 4% 41% 1.00x ONLINE -")
    return outputs


def find_faults(*edits: tuple[str, str, str]) -> list[LayoutFault]:
    outputs = make_outputs()
    for output, old, new in edits:
        change(output, old, new)(outputs)
    return list(check_outputs(outputs).faults)


def test_server_with_volumes_is_sound() -> None:
    assert find_faults() == []


@pytest.mark.parametrize(("kind", "location", "text", "edit"), [
    ("too full", "/scratch", "96 % of it are used", (
        "lsblk", '"opt-io": 2097152, "rota": true, "fsuse%": "61%"',
        '"opt-io": 2097152, "rota": true, "fsuse%": "96%"')),
    ("differs from its peers", "sdd", "firmware of ST10000NM0096 is E002; on 9 of 10 members", (
        "lsblk", '"rev": "E005"}, {"name": "sde"', '"rev": "E002"}, {"name": "sde"')),
    ("mount option", "/scratch", "nouuid", ("findmnt", "noatime,largeio", "noatime,nouuid")),
    ("mount option", "/home", "commit=300", ("findmnt", '"rw,noatime"', '"rw,noatime,commit=300"')),
    ("mount option", "/home", "errors=continue", ("findmnt", '"rw,noatime"', '"rw,errors=continue"')),
    ("no index of directories", "/home", "dir_index", ("dumpe2fs", "has_journal ext_attr", "has_journal filetype")),
    ("copies differ", "vg0-work", "attribute m", ("lvs", "-wi-ao----", "-wi-ao--m-")),
    ("volume needs a refresh", "vg0-work", "attribute r", ("lvs", "-wi-ao----", "-wi-ao--r-")),
    ("thin pool failed", "vg0-pool", "attribute F", ("lvs", "twi-aotz--", "twi-aotzF-")),
    ("thin pool almost full", "vg0-pool", "96 %", ("lvs", "41.20", "96.20")),
    ("volume lacks a device", "vg0", "pvs does not find", ("pvs", "/dev/sdq", "[unknown]")),
    ("another table is active", "vg0-work", "stripes of 256 KiB, LVM says 1 MiB", (
        "dmsetup", "striped 2 2048", "striped 2 512")),
    ("partly unused", "tank", "29.1T of its drives", ("zpool list", "34.3T - - ", "34.3T - 29.1T ")),
    ("checkpoint of the pool", "tank", "1.2T", ("zpool list", "34.3T - ", "34.3T 1.2T ")),
    ("imported with another root", "tank", "/mnt", ("zpool list", "ONLINE -", "ONLINE /mnt")),
    ("repaired by a scrub", "tank", "12.5M", ("zpool", "repaired 0B", "repaired 12.5M")),
    ("errors without drives", "tank", "continue", (
        "zpool", "tank  ashift", "tank  failmode  continue  -\ntank  ashift")),
    ("data lost", "tank", "2 data errors", ("zpool", "errors: No known data errors", "errors: Permanent errors have"
     " been detected in the following files:\n\n        /tank/a.h5\n        tank/proj:<0x1b>\n")),
    ("degraded", "tank", "(was /dev/disk/by-vdev/A7-part1)", ("zpool", "sdbb    ONLINE       0     0     0",
     "1234567890123456789  UNAVAIL      0     0     0  was /dev/disk/by-vdev/A7-part1")),
])  # fmt: skip
def test_usual_fault_is_reported_once(kind: str, location: str, text: str, edit: tuple[str, str, str]) -> None:
    (fault,) = find_faults(edit)
    assert (fault.kind, fault.location) == (kind, location)
    assert text in fault.problem


def test_partial_volume_and_missing_device_are_one_fault() -> None:
    (fault,) = find_faults(("pvs", "/dev/sdq", "[unknown]"), ("lvs", "-wi-ao----", "-wi-ao--p-"))
    assert (fault.kind, fault.location) == ("volume lacks a device", "vg0-work")


@pytest.mark.parametrize(("kind", "location", "text", "edit"), [
    ("resilver waits", "tank", "sdbe awaits a resilver", (
        "zpool", "sdbe    ONLINE       0     0     0", "sdbe    ONLINE       0     0     0  (awaiting resilver)")),
    ("vdev is removed", "tank", "away from raidz2-1", (
        "zpool", "\nerrors:", "\nremove: Evacuation of raidz2-1 in progress since Fri Nov 27 10:00:00\n\nerrors:")),
    ("slow spare", "md5, md6", "spare sdz is a rotating drive", ("lsblk", '"rota": true', '"rota": false')),
])  # fmt: skip
def test_waiting_or_slow_part_is_reported(kind: str, location: str, text: str, edit: tuple[str, str, str]) -> None:
    outputs = make_outputs()
    change(*edit)(outputs)
    if kind == "slow spare":
        outputs["sysfs"] = outputs["sysfs"].replace("rotational:1", "rotational:0")
    rows = json.loads(outputs["lsblk"])["blockdevices"]
    rows.append({"name": "sdz", "kname": "sdz", "type": "disk", "size": 10 << 40, "rota": True})
    faults = check_outputs(outputs | {"lsblk": json.dumps({"blockdevices": rows})}).faults
    problems = [fault.problem for fault in faults if (fault.kind, fault.location) == (kind, location)]
    assert len(problems) == 1
    assert text in problems[0]


@pytest.mark.parametrize(("kind", "count"), [("linux_raid_member", 1), ("xfs", 1), ("zfs_member", 0)])
@pytest.mark.parametrize("name", ["sdbz", "sdba"])
def test_foreign_signature_on_drive_of_pool_is_reported(kind: str, count: int, name: str) -> None:
    outputs = make_outputs() | {"blkid": f'/dev/{name}: UUID="77" LABEL="nas:3" TYPE="{kind}"\n'}
    faults = check_outputs(outputs).faults
    assert [(fault.kind, fault.location) for fault in faults] == [("signature of another use", name)] * count
    assert all("never wipefs" in fault.remedy or name == "sdbz" for fault in faults)


@pytest.mark.parametrize(("size", "count"), [(10_995_112_083_456, 0), (5_497_558_138_880, 1)])
def test_physical_volume_smaller_than_its_device_is_reported(size: int, count: int) -> None:
    sizes = f'"pe_start": "1048576", "pv_size": "{size}", "dev_size": "10995116277760"'
    faults = find_faults(("pvs", '"pe_start": "1048576"', sizes))
    assert {fault.kind for fault in faults} == {"physical volume smaller than its device"} if count else not faults
    assert all("5 TiB of the 10 TiB" in fault.problem and "pvresize" in fault.remedy for fault in faults)


def test_unfinished_pvmove_is_one_fault() -> None:
    move = "vg0-pvmove0: 0 8589934592 mirror core 1 1024 2 8:240 2048 65:0 2048 1 handle_errors\n"
    (fault,) = find_faults(("dmsetup", "vg0-work:", f"{move}vg0-work:"))
    assert (fault.kind, fault.location) == ("pvmove not finished", "vg0-pvmove0")
    assert "pvmove --abort" in fault.remedy


def test_server_without_imported_pools_is_empty_output() -> None:
    text = "=== sonde layout collect: zpool status ===\nno pools available\n"
    assert read_collector_output(text, "host").unknown == ("zpool status: the output is empty or has no entry",)


def test_remedies_that_make_storage_again_save_the_data_first() -> None:
    """A remedy that only says to make a file system, target or pool again destroys what it holds."""
    texts = [
        " ".join(re.split(r'"\s*f?"', path.read_text(encoding="utf-8")))
        for path in Path(sonde.design.layout.__file__).parent.glob("*.py")
    ]
    remedies = [match for text in texts for match in re.findall(
        r'"([^"\n]*\b(?:make|create) (?:it|them|one|the (?:pool|volume|file system|target|LUN)) again[^"\n]*)"', text)
    ]  # fmt: skip
    assert len(remedies) > 10
    careful = re.compile(r"save|empty|copy the files|never make|before you|is restored|holds nothing|csmadd", re.I)
    assert [remedy for remedy in remedies if not careful.search(remedy)] == []


@pytest.mark.parametrize(("state", "remedy"), [
    ("OFFLINE", "zpool online tank sdbb, which somebody took offline (zpool offline)"),
    ("REMOVED", "look for sdbb (slot, cable, lsblk): zpool online it when it is back, else zpool replace it"),
    ("FAULTED", "zpool replace the drive that failed"),
])  # fmt: skip
def test_remedy_of_a_degraded_pool_fits_the_state(state: str, remedy: str) -> None:
    (fault,) = find_faults(("zpool", "sdbb    ONLINE ", f"sdbb    {state} "))
    assert (fault.kind, fault.remedy) == ("degraded", remedy)


@pytest.mark.parametrize("state", ["AVAIL", "UNAVAIL"])
def test_spare_with_a_mounted_file_system_is_one_fault(state: str) -> None:
    outputs = make_outputs()
    rows = json.loads(outputs["lsblk"])["blockdevices"]
    part = {"name": "sdbz1", "kname": "sdbz1", "type": "part", "size": 1 << 40, "fstype": "xfs", "mountpoint": "/old"}
    rows.append({"name": "sdbz", "kname": "sdbz", "type": "disk", "size": 10 << 40, "rota": True, "children": [part]})
    outputs["lsblk"] = json.dumps({"blockdevices": rows})
    change("zpool", "sdbz      AVAIL", f"sdbz      {state}")(outputs)
    (fault,) = [each for each in check_outputs(outputs).faults if "spare" in each.kind]
    assert (fault.kind, fault.location) == ("spare in other use", "tank")
    assert "spare sdbz holds the file system that is mounted at /old (sdbz1)" in fault.problem
