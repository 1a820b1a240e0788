# SPDX-License-Identifier: Apache-2.0
"""Everything that the scripts of a plan write is compared by a check, or its report says why it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from scripted_machines import (
    ScriptedMachine,
    describe_array,
    describe_array_with_bitmap_file,
    describe_luns,
    make_machine,
    print_array_host,
    print_lun_host,
    print_lustre_servers,
    print_multipath_host,
    print_pool_host,
)
from storage_builders import build_lun_system, build_lustre, make_requirement

from sonde.design.layout.check_planned_devices import DEVICE_SUBJECTS
from sonde.design.layout.check_written import COMPARISONS, REASONS, list_not_compared
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import WrittenAttribute, list_written_attributes
from sonde.model.bundled_files import find_system_file
from sonde.model.system import make_system, read_system

MACHINES: dict[str, ScriptedMachine] = {
    "raid6-xfs": make_machine(describe_array("6", 4, 2, "xfs"), "scratch", print_array_host),
    "bitmap-file": make_machine(describe_array_with_bitmap_file(), "scratch", print_array_host),
    "mirror-xfs": make_machine(describe_array("1", 1, 1, "xfs"), "scratch", print_array_host),
    "raid10-ext4": make_machine(describe_array("10", 3, 3, "ext4"), "scratch", print_array_host),
    "luns": make_machine(describe_luns(), "scratch", print_lun_host),
    "multipath": make_machine(describe_luns(), "scratch", print_multipath_host),
    "pool": make_machine(describe_array("6", 4, 2, "zfs"), "scratch", print_pool_host),
    "lustre": make_machine(build_lustre(separate_mgt=True), "fs", print_lustre_servers),
}
# What a wrong machine has instead; other values are half of the planned number.
OTHER_VALUES: dict[tuple[str, str], str] = {
    ("mdadm", "--level"): "5", ("mdadm", "--bitmap"): "none",
    ("mdadm", "--metadata"): "1.0", ("mdadm", "--spare-devices"): "0",
    ("lvcreate", "--extents"): "50%FREE", ("pvcreate", "--dataalignment"): "1025k",
    ("sgdisk", "--change-name"): "1:other", ("sgdisk", "--new"): "1:4096K:+2147483648K",
    ("mkfs.xfs", "-L"): "other", ("mke2fs", "-L"): "other", ("mke2fs", "-t"): "ext3", ("mke2fs", "-T"): "default",
    ("mke2fs", "-m"): "5",
    ("mke2fs", "-b"): "2048", ("zpool", ""): "create scratch raidz1 a b c d e f", ("zpool", "-O atime"): "on",
    ("zpool", "-O xattr"): "on", ("zpool", "-O compression"): "off", ("zfs", "mountpoint"): "/other",
    ("queue", "queue/scheduler"): "bfq", ("mkfs.lustre", "--fsname"): "other", ("mkfs.lustre", "--index"): "7",
    ("mkfs.lustre", "--mgsnode"): "10.9.9.9@o2ib", ("mkfs.lustre", "--servicenode"): "10.9.9.9@o2ib",
    ("mkfs.lustre", "--backfstype"): "zfs",
}  # fmt: skip
# What the report must say of an attribute whose rule describes it in other words.
REASONS_OF_FAULTS: dict[tuple[str, str], str] = {
    ("mdadm", "--chunk"): "chunk",
    ("mdadm", "--bitmap"): "no bitmap", ("lvcreate", "--extents"): "it has .*; planned are",
    ("mkfs.xfs", "-d size"): "it has .*; planned are", ("mkfs.xfs", "-l size"): "its log has",
    ("mkfs.xfs", "-l logdev"): "its log is inside", ("mke2fs", "-J size"): "its log has",
    ("mke2fs", "-t"): "no extents", ("mke2fs", "-E stride"): "sunit", ("mke2fs", "-E stripe_width"): "swidth",
    ("mount", "-o noatime"): "mounted with strictatime", ("mount", "-o logdev"): "its log is inside",
    ("mkfs.lustre", "--mdt"): "targets|used twice", ("mkfs.lustre", "--ost"): "targets|used twice",
    ("mkfs.lustre", "--index"): "targets", ("mkfs.lustre", "--mgs"): "management",
    ("mkfs.lustre", "--fsname"): "its file system name is other",
    ("mkfs.lustre", "--mgsnode"): "its management server is .*; planned is",
    ("mkfs.lustre", "--mkfsoptions -b"): "a block has 2 KiB; planned is 4 KiB",
    ("mke2fs", "-m"): "reserved for root; planned is 0 %",
}  # fmt: skip
ROLES = {("mkfs.lustre", "--ost"): "--mdt", ("mkfs.lustre", "--mdt"): "--ost"}
# Places that two commands write.
PAIRS = {("mount", "-o logdev"): ("mkfs.xfs", "-l logdev")}


def list_compared() -> Iterator[tuple[str, int]]:
    """Each option of each machine that is compared, once, and each value of a queue, which flash has others of: the
    machine and the number of the attribute."""
    for name, machine in MACHINES.items():
        keys: set[tuple[str, str, str]] = set()
        for index, attribute in enumerate(machine.written):
            key = (*attribute.key, attribute.value if attribute.program == "queue" else "")
            if attribute.key in COMPARISONS and key not in keys:
                keys.add(key)
                yield name, index


def change(machine: ScriptedMachine, index: int) -> list[WrittenAttribute]:
    """A machine that differs in one attribute: another value, or no value for an option without one."""
    attribute = machine.written[index]
    key = PAIRS.get(attribute.key, attribute.key)
    others = [each for each in machine.written if each.key not in (key, attribute.key)]
    if key == ("mount", "-o noatime"):
        return [*others, replace(attribute, option="-o strictatime")]
    if key == ("mkfs.xfs", "-d noalign"):
        return [*others, *(replace(attribute, option=f"-d {name}", value="512") for name in ("sunit", "swidth"))]
    if key in ROLES:
        return [replace(each, option=ROLES[key]) if each is attribute else each for each in machine.written]
    if key == ("mkfs.xfs", "-l logdev") or not attribute.value:
        return [each for each in machine.written if each is not attribute and each.key != key]
    if key == ("mdadm", "--layout"):
        return [replace(each, value="n3" if each.value == "n2" else "right-asymmetric") if each is attribute else each
                for each in machine.written]  # fmt: skip
    value = OTHER_VALUES.get(key) or re.sub(r"\d+", lambda match: str(int(match[0]) // 2), attribute.value, count=1)
    assert value != attribute.value
    return [replace(each, value=value) if each is attribute else each for each in machine.written]


@pytest.mark.parametrize("case_name", MACHINES)
def test_machine_as_written_has_no_fault(case_name: str) -> None:
    machine = MACHINES[case_name]
    verdict = machine.check(machine.written)
    assert verdict.faults == ()
    reported = " ".join(verdict.not_compared)
    subjects = {item.subject for item in verdict.checked_items}
    for program, option in {attribute.key for attribute in machine.written}:
        text = f"{program} {option}" if option else f"the arguments of {program}"
        if DEVICE_SUBJECTS.get((program, option)) in subjects:
            assert not re.search(rf"{re.escape(text)}(,|$)", reported)
        elif (program, option) in REASONS:
            assert any(text in line and REASONS[program, option] in line for line in verdict.not_compared)
        else:
            assert not re.search(rf"{re.escape(text)}(,|$)", reported), f"{text}: {reported}"


COMPARED = list(list_compared())


IDS = [f"{name} {' '.join(MACHINES[name].written[index].key)} {index}" for name, index in COMPARED]


@pytest.mark.parametrize(("case_name", "index"), COMPARED, ids=IDS)
def test_changed_attribute_is_reported_by_check(case_name: str, index: int) -> None:
    machine = MACHINES[case_name]
    key = machine.written[index].key
    reason = REASONS_OF_FAULTS.get(key) or re.escape(COMPARISONS[key].subject.removeprefix("the planned "))
    faults = machine.check(change(machine, index)).faults
    texts = [f"{fault.kind} {fault.problem} {' '.join(fault.consequences)}" for fault in faults]
    assert any(re.search(reason, text) for text in texts), texts


@pytest.mark.parametrize(
    ("option", "command"), [("-E stripe_width", "tune2fs -E stripe_width="), ("-J size", "tune2fs -J")]
)
def test_targets_are_tuned_without_losing_their_data(option: str, command: str) -> None:
    key = ("mkfs.lustre", f"--mkfsoptions {option}")
    case_name, index = next(each for each in COMPARED if MACHINES[each[0]].written[each[1]].key == key)
    machine = MACHINES[case_name]
    remedies = [fault.remedy for fault in machine.check(change(machine, index)).faults]
    assert any(command in remedy for remedy in remedies)
    assert not any("save the data" in remedy for remedy in remedies)


def list_all_written() -> set[tuple[str, str]]:
    """Every option that the scripts of many plans write."""
    attributes: list[WrittenAttribute] = [each for machine in MACHINES.values() for each in machine.written]
    names = ("edison", "cray-x1", "cray-x1-requirements", "nvme-enclosure", "sonexion-1300", "slingshot-lustre")
    plans = [plan_layout(read_system(find_system_file(name))) for name in names]
    for kind in ("xfs", "ext4", "btrfs"):
        for purpose in ("scratch", "home", "checkpoint", "root"):
            required = [make_requirement("fs", purpose, kind, capacity="4 GB")]
            plans.append(plan_layout(make_system(build_lun_system(file_systems=required), "made.toml")))
    for kind, purpose in (("swap", "swap"), ("zfs", "home")):
        plans.append(plan_layout(make_system(describe_array("6", 4, 2, kind, purpose), "made.toml")))
    for plan in plans:
        for layout in plan.file_systems:
            attributes += list_written_attributes(plan.system, layout)
    return {attribute.key for attribute in attributes}


def test_every_written_attribute_has_a_comparison_or_a_reason() -> None:
    written = list_all_written()
    assert written - COMPARISONS.keys() - REASONS.keys() == set()
    assert len(written) > 80
    assert COMPARISONS.keys() - written == set(), "comparisons of what no plan writes"


def test_every_comparison_is_tried() -> None:
    tried = {MACHINES[name].written[index].key for name, index in COMPARED}
    assert COMPARISONS.keys() - tried == set()


def test_report_states_why_attribute_is_not_compared() -> None:
    written = [WrittenAttribute("zpool", "-o ashift", "12", 1), WrittenAttribute("zpool", "-O new", "7", 1)]
    assert list_not_compared(written, set()) == (
        "zpool -o ashift, because no output shows it", "zpool -O new, because no rule reads it",
    )  # fmt: skip
    assert list_not_compared(written[:1], {"the planned ashift"}) == ()
