# SPDX-License-Identifier: Apache-2.0
"""Members and spares of arrays against the plan: drives of another array, exchanged ones, and absent spares."""

from __future__ import annotations

import json

import pytest
from array_host import PrintedArray, check_arrays, check_outputs, describe_arrays, name_drive, print_detail

FIRST, SECOND = range(6), range(6, 12)
GROUPS = "ARRAY /dev/md/md0 name=host:md0 spare-group=all\nARRAY /dev/md/md1 name=host:md1{}\n"


def test_arrays_as_planned_are_sound() -> None:
    verdict = check_arrays([PrintedArray("md0", FIRST, [12]), PrintedArray("md1", SECOND, [13])], describe_arrays())
    assert verdict.faults == ()
    subjects = {item.subject for item in verdict.checked_items}
    assert {"the planned drives of an array", "the planned spares of an array"} <= subjects


def test_names_of_arrays_below_a_volume_may_differ() -> None:
    volume = {"lv_name": "vol", "vg_name": "vol", "segtype": "striped", "stripes": "2", "stripe_size": "524288",
              "lv_size": "16000000000000", "devices": "/dev/md0(0),/dev/md1(0)"}  # fmt: skip
    arrays = [PrintedArray("md0", FIRST, [12]), PrintedArray("md1", SECOND, [13])]
    lvs = json.dumps({"report": [{"lv": [volume]}]})
    assert not any("name" in fault.problem for fault in check_arrays(arrays, describe_arrays(), lvs=lvs).faults)


@pytest.mark.parametrize("count", [1, 6])
def test_exchanged_members_are_one_fault(count: int) -> None:
    first, second = [*range(6, 6 + count), *range(count, 6)], [*range(count), *range(6 + count, 12)]
    arrays = [PrintedArray("md0", first, [12]), PrintedArray("md1", second, [13])]
    (fault,) = check_arrays(arrays, describe_arrays()).faults
    assert fault.location == "md0, md1"
    assert f"sdg ({'/dev/disk/by-path/pci-0000:3b:00.0-sas-phy6-lun-0'})" in fault.problem
    assert "in md0" in fault.problem
    assert "planned for md1" in fault.problem


def test_exchanged_spares_are_reported_with_their_arrays() -> None:
    arrays = [PrintedArray("md0", FIRST, [13]), PrintedArray("md1", SECOND, [12])]
    (fault,) = check_arrays(arrays, describe_arrays()).faults
    assert fault.location == "md0, md1"
    assert "spares are exchanged: sdn" in fault.problem
    assert "in md0 is planned for md1" in fault.problem


def test_shared_spare_of_either_array_is_sound() -> None:
    document = describe_arrays(("d[12-13]", "d[12-13]"))
    arrays = [PrintedArray("md0", FIRST, [12]), PrintedArray("md1", SECOND, [13])]
    assert check_arrays(arrays, document).faults == ()


def test_drive_of_array_that_outputs_lack_is_one_fault() -> None:
    verdict = check_arrays([PrintedArray("md0", [0, 1, 2, 3, 4, 8], [12])], describe_arrays())
    (fault,) = verdict.faults
    assert (fault.kind, fault.location) == ("not as planned", "md0")
    assert "sdi" in fault.problem
    assert "but of that for /dev/md1" in fault.problem
    assert "planned is /dev/disk/by-path/pci-0000:3b:00.0-sas-phy5-lun-0" in fault.problem


def test_spare_of_array_that_outputs_lack_is_reported() -> None:
    (fault,) = check_arrays([PrintedArray("md0", FIRST, [13])], describe_arrays()).faults
    assert "its spare sdn" in fault.problem
    assert "but of that for /dev/md1" in fault.problem


def test_absent_spare_is_reported_with_its_array() -> None:
    arrays = [PrintedArray("md0", FIRST, [12]), PrintedArray("md1", SECOND)]
    faults = check_arrays(arrays, describe_arrays(), conf=GROUPS.format(" spare-group=all")).faults
    assert [(fault.location, fault.problem) for fault in faults] == [
        ("md1", "number of spares: 0 (without /dev/disk/by-path/pci-0000:3b:00.0-sas-phy13-lun-0); planned is 1")
    ]


def test_spare_that_took_a_slot_explains_the_missing_spare() -> None:
    arrays = [PrintedArray("md0", [0, 1, 12, 3, 4, 5]), PrintedArray("md1", SECOND, [13])]
    (fault,) = check_arrays(arrays, describe_arrays(), conf=GROUPS.format("")).faults
    assert (fault.kind, fault.location) == ("spare in the place of a drive", "md0")
    assert "its planned spare sdm" in fault.problem
    assert "is in slot 2 of md0 for /dev/disk/by-path/pci-0000:3b:00.0-sas-phy2-lun-0" in fault.problem
    assert any("number of spares: 0" in text for text in fault.consequences)


def test_spare_that_took_a_slot_and_has_a_successor_is_sound() -> None:
    arrays = [PrintedArray("md0", [0, 1, 12, 3, 4, 5], [2]), PrintedArray("md1", SECOND, [13])]
    kinds = [fault.kind for fault in check_arrays(arrays, describe_arrays(), conf=GROUPS.format("")).faults]
    assert "spare in the place of a drive" not in kinds


@pytest.mark.parametrize(
    ("conf", "kinds", "unknown"),
    [(GROUPS.format(" spare-group=all"), [], False), (GROUPS.format(""), ["no spare"], False), ("", [], True)],
)
def test_shared_spares_follow_from_mdadm_conf(conf: str, kinds: list[str], unknown: bool) -> None:
    document = describe_arrays(("d[12-13]", "d[12-13]"))
    arrays = [PrintedArray("md0", FIRST, [12, 13]), PrintedArray("md1", SECOND)]
    verdict = check_arrays(arrays, document, **({"conf": conf} if conf else {}))
    assert [fault.kind for fault in verdict.faults] == kinds
    assert any("whether md1 shares spares" in text for text in verdict.unknown) == unknown


def test_failed_map_of_an_array_is_reported_with_its_name() -> None:
    rows = [{"name": "jb-07", "kname": "dm-7", "type": "mpath", "size": 2 * 10**12}]
    detail = print_detail(PrintedArray("md0", FIRST)).replace("State : clean", "State : clean, degraded")
    detail = detail.replace("Active Devices : 6", "Active Devices : 5").replace(
        "Failed Devices : 0", "Failed Devices : 1"
    )
    detail = detail.replace("        5      active sync   /dev/sdf", "        -      faulty   /dev/dm-7")
    faults = check_outputs({"detail": detail, "lsblk": json.dumps({"blockdevices": rows})}, describe_arrays()).faults
    assert any("failed: dm-7 (jb-07)" in fault.problem for fault in faults)


def test_bitmap_is_equal_in_detail_and_mdstat() -> None:
    members = " ".join(f"{name_drive(number)}[{slot}]" for slot, number in enumerate(SECOND))
    mdstat = f"""Personalities : [raid6]
md1 : active raid6 sdm[6](S) sdn[7](S) {members}
      7813529600 blocks super 1.2 level 6, 128k chunk, algorithm 2 [6/6] [UUUUUU]
      bitmap: 0/15 pages [0KB], 65536KB chunk
"""
    detail = print_detail(PrintedArray("md0", FIRST, [12]))
    volume = json.dumps({"report": [{"lv": [
        {"lv_name": "vol", "vg_name": "vol", "segtype": "striped", "stripes": "2", "stripe_size": "524288",
         "lv_size": "16000000000000", "devices": "/dev/md0(0),/dev/md1(0)"}]}]})  # fmt: skip
    for outputs in ({"detail": detail, "mdstat": mdstat, "lvs": volume}, {"mdstat": mdstat, "detail": detail}):
        problems = [fault.problem for fault in check_outputs(outputs, describe_arrays()).faults]
        assert not any("bitmap" in problem for problem in problems)


def test_array_that_only_mdadm_conf_has_is_ignored() -> None:
    conf = GROUPS.format(" spare-group=all") + "ARRAY /dev/md/old UUID=0:0:0:0\n"
    arrays = [PrintedArray("md127", FIRST, [12]), PrintedArray("md1", SECOND, [13])]
    details = check_arrays(arrays, describe_arrays(), conf=conf.replace("host:md0", "host:md127"))
    assert details.faults == ()
    assert not any("old" in item.location for item in details.checked_items)


UNSHARED = "ARRAY /dev/md/md0 name=host:md0\nARRAY /dev/md/md1 name=host:md1 spare-group=all\n"


def test_spare_outside_its_group_is_a_fault_of_its_array() -> None:
    arrays = [PrintedArray("md0", FIRST, [12, 13]), PrintedArray("md1", SECOND)]
    (fault,) = check_arrays(arrays, describe_arrays(("d[12-13]", "d[12-13]")), conf=UNSHARED).faults
    assert (fault.kind, fault.location, fault.parts) == ("spare not shared", "md0", ("md0", "md1"))
    assert "write spare-group=all into the line of md0" in fault.remedy


def test_used_spare_of_a_group_explains_its_other_array() -> None:
    arrays = [PrintedArray("md0", [0, 1, 12, 3, 4, 5]), PrintedArray("md1", SECOND)]
    first, second = (print_detail(array) for array in arrays)
    first = first.replace("Failed Devices : 0", "Failed Devices : 1").replace(
        "/dev/sdf\n", "/dev/sdf\n       6      -      faulty   /dev/sdc\n"
    )
    outputs = {"first": first, "second": second, "conf": GROUPS.format(" spare-group=all")}
    faults = check_outputs(outputs, describe_arrays(("d[12-13]", "d[12-13]"))).faults
    assert [fault.location for fault in faults if fault.kind == "no spare"] == []
    (fault,) = faults
    assert "md1: raid6 md1 has no hot spare" in fault.consequences
