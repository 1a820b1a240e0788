# SPDX-License-Identifier: Apache-2.0
"""Failed members, idle spares and members of another size: each is named."""

from __future__ import annotations

import json

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_saved_output

_TIB = 2**40
DETAIL = """/dev/md0:
           Version : 1.2
        Raid Level : raid6
      Raid Devices : 4
     Total Devices : 5
             State : clean, degraded
    Active Devices : 3
    Failed Devices : 1
     Spare Devices : 1
            Layout : left-symmetric
        Chunk Size : 256K
Consistency Policy : bitmap

    Number   Major   Minor   RaidDevice State
       0       8        0        0      active sync   /dev/sda
       1       8       16        1      active sync   /dev/sdb
       -       0        0        2      removed
       3       8       48        3      active sync   /dev/sdd

       2       8       32        {slot}      faulty   /dev/sdc
       4       8       64        -      spare   /dev/sde
"""
MDSTAT = """Personalities : [raid6]
md0 : active raid6 sdd[3] sdb[1] sda[0] sde[4](S) sdc[2](F)
      3900000000 blocks super 1.2 level 6, 256k chunk, algorithm 2 [4/3] [UU_U]
      bitmap: 0/15 pages [0KB], 65536KB chunk
"""


def get_degraded(outputs: dict[str, str]) -> LayoutFault:
    (fault,) = (fault for fault in check_outputs(outputs).faults if fault.kind == "degraded")
    return fault


@pytest.mark.parametrize("text", [DETAIL.format(slot="-"), DETAIL.format(slot="2"), MDSTAT])
def test_failed_member_and_idle_spare_are_reported(text: str) -> None:
    fault = get_degraded({"output": text})
    assert "failed: sdc;" in fault.problem
    assert fault.problem.endswith("no rebuild runs, although it has the spare sde")
    assert read_saved_output(text, "output").disks["md0"].members == ("sda", "sdb", "sdd")


def test_spare_that_is_rebuilt_is_not_idle() -> None:
    text = MDSTAT.replace(
        "      bitmap", "      [=>....]  recovery = 12.6% (1/9) finish=12.1min speed=100K/sec\n      bitmap"
    )
    assert "no rebuild" not in get_degraded({"output": text}).problem
    text = DETAIL.format(slot="-").replace("clean, degraded", "clean, degraded, recovering")
    assert "no rebuild" not in get_degraded({"output": text}).problem


@pytest.mark.parametrize(("size", "expected_text"), [
    (4 * _TIB, "sdh has 4 TiB; 9 of 10 members have "), (-(2**19), ""), (40 * _TIB, "")])  # fmt: skip
def test_only_members_that_cost_space_are_reported(size: int, expected_text: str) -> None:
    outputs = make_server_outputs()
    document = json.loads(outputs["lsblk"])
    for row in document["blockdevices"]:
        if row["name"] == "sdh":
            row["size"] = size if size > 0 else row["size"] + size
    outputs["lsblk"] = json.dumps(document)
    faults = [fault for fault in check_outputs(outputs).faults if fault.kind == "unequal members of a stripe"]
    assert [fault.location for fault in faults] == ["md5"] * bool(expected_text)
    assert all(fault.problem.startswith(expected_text) for fault in faults)


def test_larger_and_slightly_smaller_drive_are_sound() -> None:
    outputs = make_server_outputs()
    document = json.loads(outputs["lsblk"])
    for row in document["blockdevices"]:
        row["size"] += {"sdh": 30 * _TIB, "sdg": -(2**19)}.get(row["name"], 0)
    outputs["lsblk"] = json.dumps(document)
    assert "unequal members of a stripe" not in [fault.kind for fault in check_outputs(outputs).faults]


@pytest.mark.parametrize(("second", "count"), [("nvme0n1p2", 1), ("nvme1n1p1", 0)])
def test_mirror_of_partitions_of_one_drive_is_reported(second: str, count: int) -> None:
    lsblk = {"blockdevices": [
        {"name": drive, "kname": drive, "type": "disk", "size": 2 * _TIB, "children": [
            {"name": f"{drive}p{number}", "kname": f"{drive}p{number}", "type": "part", "size": _TIB - 2**20,
             "start": 2048 + (number - 1) * (_TIB // 512 - 2048)} for number in (1, 2)]}
        for drive in ("nvme0n1", "nvme1n1")]}  # fmt: skip
    detail = (
        "/dev/md0:\n        Raid Level : raid1\n      Raid Devices : 2\n             State : clean\n"
        "   0  259  1  0  active sync   /dev/nvme0n1p1\n"
        f"   1  259  2  1  active sync   /dev/{second}\n"
    )
    outputs = {"lsblk": json.dumps(lsblk), "detail": detail}
    faults = [fault for fault in check_outputs(outputs).faults if fault.kind == "one disk twice in a mirror"]
    assert [(fault.location, fault.problem) for fault in faults] == [("md0", "several members are on nvme0n1")] * count


@pytest.mark.parametrize(("odd", "usual", "cost"), [
    ("write back", "write through", "at a power failure"),
    ("write through", "write back", "a flush takes as long"),
])  # fmt: skip
def test_write_cache_of_one_member_has_its_cost(odd: str, usual: str, cost: str) -> None:
    outputs = make_server_outputs()
    outputs["sysfs"] += "".join(f"/sys/block/sd{letter}/queue/write_cache:{odd if letter == 'c' else usual}\n"
                                for letter in "abcdefghijklmno")  # fmt: skip
    (fault,) = check_outputs(outputs).faults
    assert fault.attributes == ("write_cache",)
    assert fault.cost.startswith(cost)
    assert ("hdparm -W 0" in fault.remedy) == (odd == "write back")


@pytest.mark.parametrize(("extents", "count"), [((100, 100), 0), ((100, 101), 0), ((100, 60), 1)])
def test_stripes_of_equal_physical_volumes_are_fine(extents: tuple[int, int], count: int) -> None:
    drives = [{"name": name, "kname": name, "type": "disk", "size": 10**9 + number * 10**8}
              for number, name in enumerate(("sdb", "sdc"))]  # fmt: skip
    volumes = [{"pv_name": f"/dev/{drive['name']}", "vg_name": "vg", "pe_start": "1048576",
                "vg_extent_size": "4194304", "pv_size": str(extent_count * 4194304)}
               for drive, extent_count in zip(drives, extents, strict=True)]  # fmt: skip
    segment = {"lv_name": "lv", "vg_name": "vg", "lv_attr": "-wi-ao----", "segtype": "striped", "stripes": "2",
               "stripe_size": "1048576", "seg_size": "251658240", "devices": "/dev/sdb(0),/dev/sdc(0)",
               "lv_size": "251658240"}  # fmt: skip
    outputs = {
        "lsblk": json.dumps({"blockdevices": drives}),
        "pvs": json.dumps({"report": [{"pv": volumes}]}),
        "lvs": json.dumps({"report": [{"seg": [segment]}]}),
    }
    faults = [fault for fault in check_outputs(outputs).faults if fault.kind == "unequal members of a stripe"]
    assert len(faults) == count
