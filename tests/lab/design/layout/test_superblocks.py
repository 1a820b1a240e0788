# SPDX-License-Identifier: Apache-2.0
"""Superblocks of members of md, drives that left their array, and the lines of mdadm.conf."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from array_host import PrintedArray, name_drive, print_detail
from planted_layout_faults import check_outputs

from sonde.design.layout.faults import LayoutFault

UUID, OTHER = "11112222:33334444:55556666:77778888", "99992222:33334444:55556666:77778888"
LINE = "ARRAY /dev/md/{0} metadata=1.2 UUID={1} name=host:{0}\n"


def print_superblock(number: int, events: int = 48213, members: str = "AAAAAA", checksum: str = "correct") -> str:
    """What mdadm --examine prints of a member of an array of six drives."""
    return f"""/dev/{name_drive(number)}:
          Magic : a92b4efc
        Version : 1.2
     Array UUID : {UUID}
    Data Offset : 262144 sectors
    Update Time : Sat Nov 28 08:00:01 2026
       Checksum : 5f1b7e02 - {checksum}
         Events : {events}

   Device Role : Active device {number}
   Array State : {members} ('A' == active, '.' == missing, 'R' == replacing)
"""


def find_faults(
    superblocks: Sequence[str], configuration: str = "", drives: Sequence[int] = range(6)
) -> list[LayoutFault]:
    """The faults of a host with one array and these superblocks; lsblk shows all `drives` with its signature."""
    detail = print_detail(PrintedArray("md0", range(6), [6])) + f"              UUID : {UUID}\n"
    rows = [{"name": name_drive(number), "kname": name_drive(number), "type": "disk", "size": 2 * 10**12, "rota": True,
             "fstype": "linux_raid_member", "uuid": "11112222-3333-4444-5555-666677778888"}
            for number in drives]  # fmt: skip
    outputs = {"detail": detail, "lsblk": json.dumps({"blockdevices": rows})}
    outputs |= {f"examine {number}": text for number, text in enumerate(superblocks)}
    outputs |= {"mdadm.conf": configuration} if configuration else {}
    return list(check_outputs(outputs).faults)


def test_equal_superblocks_are_sound() -> None:
    assert find_faults([print_superblock(number) for number in range(6)], LINE.format("md0", UUID), range(7)) == []
    while_written = [print_superblock(number, 48213 + 2 * number) for number in range(6)]
    assert find_faults(while_written) == [], "the array counts events while its members are examined"


@pytest.mark.parametrize(("events", "members"), [(47102, "AAAAAA"), (48208, "AAA.AA")])
def test_member_with_old_superblock_is_reported(events: int, members: str) -> None:
    superblocks = [print_superblock(number, members=members) for number in range(6)]
    superblocks[3] = print_superblock(3, events)
    (fault,) = find_faults(superblocks)
    assert (fault.kind, fault.location) == ("stale member", "sdd")
    assert f"Events {events:,}, those have 48,213" in fault.problem
    assert "--re-add" in fault.remedy


def test_superblock_without_its_checksum_is_reported() -> None:
    superblocks = [print_superblock(number) for number in range(6)]
    superblocks[4] = print_superblock(4, checksum="expected 9a11c3f0")
    (fault,) = find_faults(superblocks)
    assert (fault.kind, fault.location) == ("superblock damaged", "sde")
    assert "expected 9a11c3f0" in fault.problem


def test_drive_outside_of_its_array_is_reported() -> None:
    (fault,) = find_faults([], drives=range(8))
    assert (fault.kind, fault.location) == ("drive left its array", "sdh")
    assert "superblock of md0" in fault.problem


def test_second_path_of_a_member_did_not_leave_the_array() -> None:
    """Two drives of one WWN are one drive, which no map joins: --re-add of the second path would destroy the array."""
    detail = print_detail(PrintedArray("md0", range(6), [6])) + f"              UUID : {UUID}\n"
    rows = [{"name": name_drive(number), "kname": name_drive(number), "type": "disk", "size": 2 * 10**12, "rota": True,
             "wwn": f"0x5000c500a000{1000 + number % 7}", "fstype": "linux_raid_member",
             "uuid": "11112222-3333-4444-5555-666677778888"} for number in range(8)]  # fmt: skip
    faults = check_outputs({"detail": detail, "lsblk": json.dumps({"blockdevices": rows})}).faults
    assert "path used without its map" in {fault.kind for fault in faults}
    assert "drive left its array" not in {fault.kind for fault in faults}
    assert not any("--re-add" in fault.remedy for fault in faults)


@pytest.mark.parametrize(("lines", "kind", "text"), [
    (LINE.format("md0", OTHER), "another UUID in mdadm.conf", f"UUID {OTHER}; the array has {UUID}"),
    (LINE.format("md0", OTHER) + LINE.format("md0", UUID), "another UUID in mdadm.conf", f"UUID {OTHER};"),
    (f"ARRAY /dev/md0 UUID={OTHER}\n", "another UUID in mdadm.conf", "/dev/md0 with UUID"),
    (f"ARRAY <ignore> UUID={UUID}\n", "array ignored by mdadm.conf", f"ARRAY <ignore> (UUID {UUID})"),
    (LINE.format("md7", OTHER), "array not in mdadm.conf", f"none of md0 (UUID {UUID})")])  # fmt: skip
def test_line_of_mdadm_conf_is_compared_with_its_array(lines: str, kind: str, text: str) -> None:
    (fault,) = find_faults([], lines)
    assert (fault.kind, fault.location) == (kind, "md0")
    assert text in fault.problem


@pytest.mark.parametrize("lines", [
    LINE.format("md0", UUID), f"ARRAY /dev/md/another metadata=1.2 UUID={UUID.upper()}\n",
    "MAILADDR root\nARRAY /dev/md0 spare-group=all\n",
    f"# ARRAY /dev/md0 UUID={OTHER}\n" + LINE.format("md0", UUID)])  # fmt: skip
def test_sound_mdadm_conf_has_no_fault(lines: str) -> None:
    assert find_faults([], lines) == []


@pytest.mark.parametrize(("keyword", "is_fault"), [
    ("", True), ("MAILFROM md@host", True), ("#MAILADDR root", True), ("MAILADDR", True),
    ("MAILADDR root", False), ("mail root", False), ("PROGRAM /usr/sbin/alert", False)])  # fmt: skip
def test_array_without_an_address_for_alerts_is_reported(keyword: str, is_fault: bool) -> None:
    detail = print_detail(PrintedArray("md0", range(6), [6])) + f"              UUID : {UUID}\n"
    outputs = {"detail": detail, "cat /etc/mdadm.conf": LINE.format("md0", UUID) + keyword + "\n"}
    faults = [(fault.kind, fault.location) for fault in check_outputs(outputs).faults]
    assert faults == [("no alert of failures", "md0")] * is_fault
