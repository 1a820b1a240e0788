# SPDX-License-Identifier: Apache-2.0
"""Arrays of md whose drives two servers see: one of them runs each array, the other one sees its members only."""

from __future__ import annotations

from pathlib import Path

from md_pair import DRIVES_OF_ARRAY, MdServer, check_md_pair, make_md_pair

from sonde.design.layout.faults import LayoutFault

# The arrays of this pair have no spare, which is another fault.
SPARES = frozenset({"no spare"})


def find_faults(servers: dict[str, MdServer], folder: Path) -> list[LayoutFault]:
    return [fault for fault in check_md_pair(servers, folder).faults if fault.kind not in SPARES]


def test_partner_that_sees_all_members_is_sound(tmp_path: Path) -> None:
    assert find_faults(make_md_pair(), tmp_path) == []


def test_partner_that_lacks_members_is_reported(tmp_path: Path) -> None:
    servers = make_md_pair()
    servers["oss2"].drives = range(2, 24)
    (fault,) = find_faults(servers, tmp_path)
    assert (fault.kind, fault.location) == ("device not visible", "fs-OST0000")
    assert fault.problem == (
        "oss2 sees 4 of the 6 members of its array, which oss1 runs; it does not see sda (0x5000c500a0000010), sdb"
        " (0x5000c500a0000011)"
    )


def test_partner_that_sees_no_member_is_reported(tmp_path: Path) -> None:
    servers = make_md_pair()
    servers["oss2"].drives = range(DRIVES_OF_ARRAY, 24)
    (fault,) = find_faults(servers, tmp_path)
    assert (fault.kind, fault.location) == ("device not visible", "fs-OST0000")
    assert fault.problem == "oss2 does not see its device, which oss1 sees"


def test_array_that_runs_on_both_hosts_is_one_fault(tmp_path: Path) -> None:
    servers = make_md_pair()
    servers["oss2"].arrays = (2, 3, 0)
    (fault,) = find_faults(servers, tmp_path)
    assert (fault.kind, fault.location) == ("array active on several hosts", "ost0")
    assert fault.problem == "oss1 and oss2 run it at the same time; oss1 has its file system mounted"
    assert "data is destroyed" in fault.cost
    assert fault.remedy.startswith("mdadm --stop /dev/md120 on oss2, at once")
    assert "AUTO -all" in fault.remedy
    assert "mount -t lustre" not in fault.remedy
    assert any("no target of it is mounted" in text for text in fault.consequences)


def test_equal_array_uuid_of_cloned_hosts_is_sound(tmp_path: Path) -> None:
    """The system disks of hosts that were copied from one image: one UUID, but other drives."""
    servers = {"oss1": MdServer((0, 1), (0, 1)), "oss2": MdServer((0, 1), (), wwn_prefix="0x5000c500b00000")}
    assert "array active on several hosts" not in {fault.kind for fault in find_faults(servers, tmp_path)}


def test_inactive_array_that_the_partner_runs_is_never_erased(tmp_path: Path) -> None:
    servers = make_md_pair()
    servers["oss2"].inactive = (0,)
    (fault,) = find_faults(servers, tmp_path)
    assert (fault.kind, fault.location) == ("array inactive", "oss2: md110")
    assert fault.problem == "ost0 is inactive here, and oss1 runs it (md120)"
    assert fault.remedy.startswith("mdadm --stop /dev/md110 on oss2; its drives hold the data of oss1: never")
    servers["oss2"] = MdServer((2, 3), (), inactive=(0,), wwn_prefix="0x5000c500b00000")
    (fault,) = [each for each in find_faults(servers, tmp_path) if each.kind == "array inactive"]
    assert "oss1" not in fault.problem, "the UUID of a clone, on other drives"
