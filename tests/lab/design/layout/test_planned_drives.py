# SPDX-License-Identifier: Apache-2.0
"""Drives, settings and layers below a planned file system that the plan does not have, and read-only parts."""

from __future__ import annotations

import json

import pytest
from planted_layout_faults import check_outputs, make_server_outputs
from scripted_machines import (
    WrittenState,
    describe_array,
    describe_luns,
    make_machine,
    print_array_host,
    print_lun_host,
    print_multipath_host,
)

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output

ARRAY = make_machine(describe_array("6", 4, 2, "xfs"), "scratch", print_array_host)
LUNS = make_machine(describe_luns(), "scratch", print_lun_host)


def find_faults(old: str, new: str, more: str = "", is_lun_host: bool = False) -> list[LayoutFault]:
    """The faults of a planned machine in whose outputs a text is replaced."""
    machine, storage, count = LUNS if is_lun_host else ARRAY, ObservedStorage(), 0
    for text in [*machine.print_outputs(WrittenState(machine.written, machine.plan)), more]:
        count += text.count(old)
        if text:
            storage = merge_observations(storage, read_saved_output(text.replace(old, new), "output"))
    assert count or not old
    return list(check_layout(join_observations(storage), machine.plan, (), ["/scratch"], machine.written).faults)


DRIVE = '"name": "sdc", "kname": "sdc", "type": "disk", "size": 2199023255552, "rota": true, "phy-sec": 4096'


@pytest.mark.parametrize(("old", "new", "expected_text"), [
    ('"phy-sec": 4096', '"phy-sec": 512', "physical sector of the drive: 512; planned is 4096"),
    ("2199023255552", "1099511627776", "size of the drive: 1 TiB; planned is 2 TiB")])  # fmt: skip
def test_drive_unlike_the_planned_is_reported(old: str, new: str, expected_text: str) -> None:
    faults = find_faults(DRIVE, DRIVE.replace(old, new))
    assert [fault.location for fault in faults if expected_text in fault.problem] == ["sdc"]


def test_larger_drive_of_array_is_reported_once() -> None:
    faults = find_faults(DRIVE, DRIVE.replace("2199023255552", "4398046511104"))
    assert [(fault.location, fault.problem) for fault in faults] == [
        ("sdc", "size of the drive: 4 TiB; planned is 2 TiB")]  # fmt: skip


def test_drives_of_other_technology_are_reported() -> None:
    faults = find_faults('"type": "disk", "size": 2199023255552, "rota": true', '"type": "disk", "size": 2199023255552,'
                         ' "rota": false')  # fmt: skip
    problems = [fault.problem for fault in faults if "technology" in fault.problem]
    assert problems == ["technology of the drive: flash; planned is a rotating drive"]


@pytest.mark.parametrize(("setting", "factor", "is_fault"), [
    ("queue/read_ahead_kb", 2, False), ("queue/read_ahead_kb", 8, True),
    ("md/stripe_cache_size", 8, True)])  # fmt: skip
def test_much_larger_setting_is_reported(setting: str, factor: int, is_fault: bool) -> None:
    planned = next(each.value for each in ARRAY.written if each.option == setting)
    line = f"/sys/block/md0/{setting}:{planned}"
    faults = find_faults(line, f"/sys/block/md0/{setting}:{int(planned) * factor}")
    assert [fault.location for fault in faults] == ["md0"] * is_fault
    assert all("planned is" in fault.problem and "memory" in fault.cost for fault in faults)


def test_layer_that_no_plan_has_is_reported() -> None:
    table = "vol-vol: 0 2048 crypt aes-xts-plain64 :64:logon:key 0 8:17 32768\n"
    assert find_faults("", "", is_lun_host=True) == []
    (fault,) = find_faults("", "", more=table, is_lun_host=True)
    assert "crypt" in fault.problem
    assert fault.kind == "not as planned"


def test_member_that_fails_fast_alone_is_reported() -> None:
    outputs = make_server_outputs()
    assert "active sync   /dev/sdc" in outputs["mdadm md5"]
    outputs["mdadm md5"] = outputs["mdadm md5"].replace("active sync   /dev/sdc", "active sync failfast   /dev/sdc")
    (fault,) = check_outputs(outputs).faults
    assert "failfast is not the same on all members: sdc has another value" in fault.problem
    outputs["mdadm md5"] = outputs["mdadm md5"].replace("active sync   /dev/", "active sync failfast   /dev/")
    assert check_outputs(outputs).faults == ()


@pytest.mark.parametrize(("fault_kind", "rows"), [
    ("md", [{"name": "sda", "type": "disk", "children": [{"name": "md5", "type": "raid6", "ro": True}]}]),
    ("part", [{"name": "sda", "type": "disk", "children": [{"name": "md5", "type": "part", "ro": "1"}]}])])  # fmt: skip
def test_read_only_device_is_reported(fault_kind: str, rows: list[dict[str, object]]) -> None:
    faults = check_outputs({"lsblk": json.dumps({"blockdevices": rows})}).faults
    assert [(fault.kind, fault.location) for fault in faults] == [("write-protected", "md5")]


def test_read_only_volume_is_reported() -> None:
    segment = {"vg_name": "vg0", "lv_name": "work", "lv_attr": "-ri-ao----", "stripes": "1", "devices": "/dev/sdp(0)"}
    (fault,) = check_outputs({"lvs": json.dumps({"report": [{"seg": [segment]}]})}).faults
    assert (fault.kind, fault.location) == ("write-protected", "vg0-work")


@pytest.mark.parametrize(("line", "fault_kind"), [
    ("Inode size:               128", "small inodes"),
    ("FS Error count:           3", "file system with errors")])  # fmt: skip
def test_line_of_dumpe2fs_is_judged(line: str, fault_kind: str) -> None:
    outputs = make_server_outputs()
    outputs["dumpe2fs"] += f"{line}\n"
    assert [(fault.kind, fault.location) for fault in check_outputs(outputs).faults] == [(fault_kind, "/home")]


@pytest.mark.parametrize(("old", "new", "fault_kind", "expected_text"), [
    ("isize=512", "isize=256", "small inodes", "256 bytes"), ("sparse=1", "sparse=0", "no sparse inodes", "sparse=0"),
    ("sectsz=4096  sunit", "sectsz=512   sunit", "sectors too small", "writes sectors of 512"),
    ("realtime =none", "realtime =/dev/sdx", "not as planned", "realtime device, /dev/sdx"),
    ('"rw,', '"rw,logbufs=2,', "mount option", "logbufs=2"),
    ("Consistency Policy : bitmap", "Consistency Policy : journal", "not as planned", "journal; planned is internal"),
])  # fmt: skip
def test_other_number_of_xfs_or_md_is_reported(old: str, new: str, fault_kind: str, expected_text: str) -> None:
    (fault,) = find_faults(old, new)
    assert fault.kind == fault_kind
    assert expected_text in fault.problem


def test_reason_differs_when_outputs_show_attribute_elsewhere() -> None:
    def list_reasons(array: str) -> str:
        detail = make_server_outputs()["mdadm md5"].replace("md5", array)
        mount = '{"filesystems": [{"target": "/scratch", "source": "/dev/md0", "fstype": "xfs", "options": "rw"}]}'
        disks = '{"blockdevices": [{"name": "sdx", "type": "disk", "children": [{"name": "md0", "type": "raid6"}]}]}'
        storage = ObservedStorage()
        for text in (detail, mount, disks):
            storage = merge_observations(storage, read_saved_output(text, "output"))
        verdict = check_layout(join_observations(storage), ARRAY.plan, (), ["/scratch"], ARRAY.written)
        return " | ".join(text for text in verdict.not_compared if "--metadata" in text)

    assert list_reasons("md0") == ""
    assert "the outputs show it, but not for which of their parts" in list_reasons("md7")


def find_faults_of_linked_luns(disks: str) -> list[LayoutFault]:
    """The faults of the host with LUNs whose plan names paths, which links lead to these disks in turn."""
    document = describe_luns()
    document["luns"][0]["device"] = "/dev/disk/by-path/lun[0-3]"
    machine = make_machine(document, "scratch", print_lun_host)
    links = "".join(f"/dev/disk/by-path/lun{number} ../../{disk}\n" for number, disk in enumerate(disks.split()))
    storage = ObservedStorage()
    for text in [*machine.print_outputs(WrittenState(machine.written, machine.plan)), links]:
        storage = merge_observations(storage, read_saved_output(text, "output"))
    return list(check_layout(join_observations(storage), machine.plan, (), ["/scratch"], machine.written).faults)


def test_exchanged_luns_of_log_and_data_are_reported() -> None:
    assert find_faults_of_linked_luns("sdb sdc sdd sdg") == []
    problems = {fault.location: fault.problem for fault in find_faults_of_linked_luns("sdb sdc sdg sdd")}
    assert set(problems) == {"sdd3", "/scratch"}
    assert "its log is on sdg1" in problems["/scratch"]
    assert "physical volume of vol; planned are" in problems["sdd3"]


def test_volume_of_other_type_is_reported() -> None:
    (fault,) = find_faults('"stripes": "3"', '"segtype": "raid5_ls", "stripes": "3"', is_lun_host=True)
    assert (fault.kind, fault.location) == ("not as planned", "dm-0")
    assert "raid" in fault.problem


def test_smaller_map_of_volume_is_reported() -> None:
    machine = make_machine(describe_luns(), "scratch", print_multipath_host)
    storage = ObservedStorage()
    for text in machine.print_outputs(WrittenState(machine.written, machine.plan)):
        smaller = text.replace("mpathb (36001) dm-2 ACME,LUN\nsize=8.0T", "mpathb (36001) dm-2 ACME,LUN\nsize=4.0T")
        storage = merge_observations(storage, read_saved_output(smaller, "output"))
    (fault,) = check_layout(join_observations(storage), machine.plan, (), ["/scratch"], machine.written).faults
    assert (fault.kind, fault.location) == ("differs from its peers", "dm-2")
    assert "map_size is 4.0T" in fault.problem


def test_cost_of_other_group_size_holds_for_every_size() -> None:
    assert ARRAY.plan.groups is not None
    size = ARRAY.plan.groups.size
    faults = find_faults(f"agsize={size} ", f"agsize={size - 64} ")
    (cost,) = [fault.cost for fault in faults if "agsize in blocks" in fault.problem]
    assert "one drive" not in cost
    assert "ends of groups" in cost
