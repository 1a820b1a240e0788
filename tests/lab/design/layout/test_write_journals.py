# SPDX-License-Identifier: Apache-2.0
"""Write journals of md (mdadm --write-journal): no members, and reported when the array has lost its own."""

from __future__ import annotations

import json

import pytest
from planted_layout_faults import check_outputs

from sonde.design.layout.live.saved_output import read_saved_output

DETAIL = """/dev/md0:
           Version : 1.2
        Raid Level : raid5
      Raid Devices : 3
     Total Devices : 5
             State : {state}
    Active Devices : 3
    Failed Devices : {failed}
     Spare Devices : 1
            Layout : left-symmetric
        Chunk Size : 256K

Consistency Policy : journal

    Number   Major   Minor   RaidDevice State
       0       8        0        0      active sync   /dev/sda
       1       8       16        1      active sync   /dev/sdb
       2       8       32        2      active sync   /dev/sdc

       3       8       48        -      spare   /dev/sdd
{journal}"""
ROW = "       4     259        2        -      {state}   /dev/{device}\n"
MDSTAT = """Personalities : [raid5]
md0 : active {state}raid5 nvme0n1[4]{flags} sdd[3](S) sdc[2] sdb[1] sda[0]
      7800000000 blocks super 1.2 level 5, 256k chunk, algorithm 2 [3/3] [UUU]

"""
DRIVES = [
    {"name": name, "kname": name, "type": "disk", "size": 4_000_000_000_000, "rota": True,
     "children": [{"name": "md0", "kname": "md0", "type": "raid5", "size": 7_987_200_000_000}]}
    for name in ("sda", "sdb", "sdc", "sdd")
]  # fmt: skip
FLASH = {**DRIVES[0], "name": "nvme0n1", "kname": "nvme0n1", "size": 800_000_000_000, "rota": False}


def make_outputs(journal_state: str = "journal", array_state: str = "clean") -> dict[str, str]:
    return {
        "lsblk": json.dumps({"blockdevices": [*DRIVES, FLASH][: None if journal_state else -1]}),
        "mdadm": DETAIL.format(
            state=array_state, failed=int("faulty" in journal_state),
            journal=ROW.format(state=journal_state, device="nvme0n1") if journal_state else "",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("mdstat", ["", MDSTAT.format(state="", flags="(J)")])
def test_journal_of_an_array_is_no_member(mdstat: str) -> None:
    outputs = {**({"mdstat": mdstat} if mdstat else {}), **make_outputs()}
    assert not check_outputs(outputs).faults
    array = read_saved_output(outputs["mdadm"], "mdadm").disks["md0"]
    assert array.members == ("sda", "sdb", "sdc")
    assert array.settings["spare_devices"] == "sdd"


def test_journal_on_an_array_has_its_name_in_the_kernel() -> None:
    row = "\n       0       9      126        -      journal   /dev/md/m:r6_wjournal\n"
    text = DETAIL.format(state="clean", failed=0, journal=row)
    assert read_saved_output(text, "mdadm").disks["md0"].settings["journal_devices"] == "md126"


def test_failed_journal_on_an_array_is_lost() -> None:
    row = "\n       0       9      126        -      faulty journal   /dev/md/m:r6_wjournal\n"
    text = DETAIL.format(state="clean, readonly", failed=1, journal=row)
    (fault,) = (fault for fault in check_outputs({"mdadm": text}).faults if fault.kind == "write journal lost")
    assert "md126 has failed" in fault.problem


@pytest.mark.parametrize("mdstat", ["", MDSTAT.format(state="(read-only) ", flags="(J)(F)")])
def test_failed_journal_explains_the_read_only_array(mdstat: str) -> None:
    outputs = {**({"mdstat": mdstat} if mdstat else {}), **make_outputs("faulty journal", "readonly")}
    (fault,) = check_outputs(outputs).faults
    assert fault.kind == "write journal lost"
    assert "nvme0n1 has failed" in fault.problem
    assert "--add-journal" in fault.remedy


def test_array_without_its_journal_is_reported() -> None:
    (fault,) = check_outputs(make_outputs("", "readonly")).faults
    assert (fault.kind, fault.location) == ("write journal lost", "md0")
    assert "has none" in fault.problem


def test_write_back_journal_on_one_drive_is_reported() -> None:
    mode = "/sys/block/md0/md/journal_mode:write-through [write-back]\n"
    (fault,) = check_outputs({**make_outputs(), "sysfs": mode}).faults
    assert fault.kind == "write-back journal on one drive"
    quiet = mode.replace("write-through [write-back]", "[write-through] write-back")
    assert not check_outputs({**make_outputs(), "sysfs": quiet}).faults


def test_mode_of_an_array_without_its_journal_is_no_error() -> None:
    mode = "/sys/block/md0/md/journal_mode:[write-through] write-back\n"
    assert not check_outputs({**make_outputs(""), "sysfs": mode}).faults


def test_journal_on_a_rotating_drive_is_reported() -> None:
    outputs = make_outputs()
    outputs["lsblk"] = json.dumps({"blockdevices": [*DRIVES, {**FLASH, "rota": True}]})
    (fault,) = check_outputs(outputs).faults
    assert fault.kind == "write journal on rotating drives"


def test_partial_parity_log_replaces_the_bitmap() -> None:
    detail = DETAIL.format(state="clean", failed=0, journal="").replace("Policy : journal", "Policy : ppl")
    mdstat = MDSTAT.format(state="", flags="(J)").replace(" nvme0n1[4](J)", "")
    assert not check_outputs({"mdstat": mdstat, "mdadm": detail}).faults
