# SPDX-License-Identifier: Apache-2.0
"""LUNs and drives that one host of a pair lacks, and names of maps that differ, are one fault each without a plan."""

from __future__ import annotations

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import FstabEntry, ObservedDisk, ObservedPath, ObservedStorage

PATHS = (ObservedPath("sda", None, True), ObservedPath("sdb", None, True))


def make_host(names: list[str], fstab: tuple[FstabEntry, ...] = ()) -> ObservedStorage:
    """A host with maps of LUNs of one size, in the order of their WWIDs; an empty name is a LUN that it lacks."""
    disks = {f"dm-{number}": ObservedDisk(f"dm-{number}", "multipath", size=10**13, paths=PATHS,
                                          settings={"name": name, "uuid": f"mpath-3600a09800000000{number}"})
             for number, name in enumerate(names) if name}  # fmt: skip
    return ObservedStorage(disks=disks, fstab=fstab)


def find_faults(first: ObservedStorage, second: ObservedStorage) -> list[LayoutFault]:
    kinds = ("device not visible", "names of maps differ", "fstab names no device")
    return [fault for fault in check_hosts({"a": first, "b": second}).faults if fault.kind in kinds]


def test_pair_with_equal_luns_is_sound() -> None:
    assert find_faults(make_host(["ost0", "ost1", "ost2"]), make_host(["ost0", "ost1", "ost2"])) == []
    assert find_faults(make_host(["mpatha", "mpathb", "mpathc"]), make_host(["mpathb", "mpatha", "mpathc"])) == []


def test_lun_that_one_host_lacks_is_reported() -> None:
    (fault,) = find_faults(make_host(["ost0", "ost1", "ost2"]), make_host(["ost0", "", "ost2"]))
    assert (fault.kind, fault.location) == ("device not visible", "b")
    assert fault.problem == "it does not see ost1, which a sees; both see 2 other LUNs"


def test_exchanged_names_of_maps_are_one_fault() -> None:
    (fault,) = find_faults(make_host(["ost0", "ost1", "ost2"]), make_host(["ost0", "ost2", "ost1"]))
    assert (fault.kind, fault.location) == ("names of maps differ", "a, b")
    assert "ost2 is the LUN 600a098000000001 on b, which is ost1 on a" in fault.problem.replace("LUN 3", "LUN ")


def make_array_host(drives: int, members: tuple[str, ...] = ()) -> ObservedStorage:
    disks = {f"sd{'abcdef'[number]}": ObservedDisk(f"sd{'abcdef'[number]}", settings={"wwn": f"0x5000c500{number}"})
             for number in range(drives)}  # fmt: skip
    array = ObservedDisk("md0", "md", level="raid6", members=members)
    return ObservedStorage(disks=disks | ({"md0": array} if members else {}))


def test_member_that_the_partner_lacks_is_reported() -> None:
    running = make_array_host(6, tuple(f"sd{letter}" for letter in "abcdef"))
    kinds = "device not visible"
    (fault,) = [each for each in check_hosts({"a": running, "b": make_array_host(5)}).faults if each.kind == kinds]
    assert fault.problem.startswith("b sees 5 of the 6 members of md0, which a runs; it does not see sdf")
    assert [each for each in check_hosts({"a": running, "b": make_array_host(6)}).faults if each.kind == kinds] == []
    other_host = make_array_host(0)
    assert [each for each in check_hosts({"a": running, "b": other_host}).faults if each.kind == kinds] == []
