# SPDX-License-Identifier: Apache-2.0
"""Spares that are lost for one cause, and failed drives with what smartctl prints of them, are one fault each."""

from __future__ import annotations

import json

import pytest
from array_host import PATHS, PrintedArray, check_outputs, describe_arrays, name_drive, print_detail

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.design.layout.merge_faults import merge_faults

FIRST, SECOND = range(6), range(6, 12)
CONF = "ARRAY /dev/md/md0 name=host:md0{group}\nARRAY /dev/md/md1 name=host:md1{group}\n"
INACTIVE = """/dev/md125:
           Version : 1.2
        Raid Level : raid6
     Total Devices : 1
       Persistence : Superblock is persistent

             State : inactive
   Working Devices : 1

              Name : delta:bulk
              UUID : 11111111:22222222:33333333:44444444

    Number   Major   Minor   RaidDevice

       -       8      240        -        /dev/sdz
"""


def find_faults(first: str, conf: str, foreign_size: int = 0) -> list[LayoutFault]:
    """The faults of two arrays that share one spare in the plan; with the size of a drive of another host."""
    rows = [{"name": name_drive(number), "kname": name_drive(number), "type": "disk", "size": 2 * 10**12, "rota": True}
            for number in range(13)]  # fmt: skip
    links = "".join(f"{PATHS}{number}-lun-0 ../../{name_drive(number)}\n" for number in range(13))
    outputs = {"first": first, "second": print_detail(PrintedArray("md1", SECOND)), "conf": conf}
    if foreign_size:
        rows = [row for row in rows if row["name"] != "sdm"]
        rows.append({"name": "sdz", "kname": "sdz", "type": "disk", "size": foreign_size, "rota": True})
        links = links.replace("phy12-lun-0 ../../sdm", "phy20-lun-0 ../../sdz")
        outputs["inactive"] = INACTIVE
    outputs |= {"lsblk": json.dumps({"blockdevices": rows}), "links": links}
    return list(check_outputs(outputs, describe_arrays(("d12", "d12"))).faults)


def test_planned_common_spare_asks_for_a_spare_group() -> None:
    (fault,) = find_faults(print_detail(PrintedArray("md0", FIRST, [12])), CONF.format(group=""))
    assert (fault.kind, fault.location) == ("no spare", "md1")
    assert "planned is that it shares that of md0" in fault.problem
    assert "into the lines of md0 and md1" in fault.remedy


def test_foreign_drive_in_the_slot_of_the_spare_is_its_cause() -> None:
    first = print_detail(PrintedArray("md0", FIRST))
    (fault,) = find_faults(first, CONF.format(group=" spare-group=all"), 2 * 10**12)
    assert (fault.kind, fault.location) == ("array inactive", "md125")
    assert any("number of spares: 0" in text for text in fault.consequences)
    assert "md1: raid6 md1 has no hot spare" in fault.consequences
    assert "then add a spare (mdadm --manage /dev/md0 --add)" in fault.remedy


def test_smaller_foreign_drive_is_not_the_cause_of_a_lost_spare() -> None:
    first = print_detail(PrintedArray("md0", FIRST))
    faults = find_faults(first, CONF.format(group=" spare-group=all"), 10**12)
    assert [fault.location for fault in faults if fault.attributes == ("spares",)] == ["md0"]
    assert [fault.consequences for fault in faults if fault.kind == "array inactive"] == [()]


@pytest.mark.parametrize(("failed", "count"), [("sdc", 1), ("sdd", 2)])
def test_health_of_a_failed_drive_belongs_to_its_array(failed: str, count: int) -> None:
    storage = ObservedStorage((), {"md0": ObservedDisk("md0", "md", settings={"failed_devices": failed}),
                                   "sdc": ObservedDisk("sdc"), "sdd": ObservedDisk("sdd")})  # fmt: skip
    faults = [
        LayoutFault("failed drive in an array", "md0", f"failed: {failed}", "", ""),
        LayoutFault("drive about to fail", "sdc", "smartctl -H says of it: FAILED!", "", ""),
    ]
    merged = [each for each in merge_faults(faults, storage) if isinstance(each, LayoutFault)]
    assert len(merged) == count
    assert (merged[0].problem == "failed: sdc (smartctl -H says of it: FAILED!)") == (count == 1)


@pytest.mark.parametrize("is_planned", [True, False])
def test_planned_mirrors_without_a_spare_are_sound(is_planned: bool) -> None:
    document = describe_arrays()
    document["raid_groups"][0] |= {"level": "10", "data": 3, "parity": 3, "spares": [] if is_planned else "d12"}
    array = PrintedArray("md0", FIRST, (), "raid10", layout="near=2")
    second = print_detail(PrintedArray("md1", SECOND, [13]))
    faults = check_outputs({"first": print_detail(array), "second": second, "conf": CONF.format(group="")}, document)
    texts = [fault.problem for fault in faults.faults] + [
        text for fault in faults.faults for text in fault.consequences
    ]
    assert any("raid10 md0 has no hot spare" in text for text in texts) is not is_planned
