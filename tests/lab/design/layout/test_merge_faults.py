# SPDX-License-Identifier: Apache-2.0
"""Findings of one cause are one fault: its consequences, the planned value, and equal findings of several parts."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import (
    ObservedDisk,
    ObservedFileSystem,
    ObservedPath,
    ObservedStorage,
)
from sonde.design.layout.merge_faults import RULES, CauseRule, merge_faults
from sonde.design.layout.merge_hosts import join_faults_of_targets

PATHS = tuple(ObservedPath(name, None, True) for name in ("sda", "sdb"))
STORAGE = ObservedStorage(
    (ObservedFileSystem("/scratch", "xfs", "/dev/dm-9"),),
    {
        "dm-9": ObservedDisk("dm-9", "lvm", members=("md0", "md1")),
        "md0": ObservedDisk("md0", "md", members=("dm-0", "sdc")),
        "md1": ObservedDisk("md1", "md", members=("sdd",)),
        "dm-0": ObservedDisk("dm-0", "multipath", paths=PATHS),
        **{name: ObservedDisk(name) for name in ("sda", "sdb", "sdc", "sdd")},
    },
)


def make_fault(kind: str, location: str, attribute: str = "", problem: str = "it is wrong") -> LayoutFault:
    planned = problem.partition("; planned is ")[2]
    return LayoutFault(kind, location, problem, "time", "repair it", (attribute,) if attribute else (), planned=planned)


def merge(*faults: LayoutFault) -> list[LayoutFault]:
    return [each for each in merge_faults(faults, STORAGE) if isinstance(each, LayoutFault)]


def test_small_drive_explains_array_and_file_system() -> None:
    drive = make_fault("not as planned", "sda", "size", "size of the drive: 1 TiB; planned is 2 TiB")
    volume = make_fault("unequal members of a stripe", "dm-9", "size", "md0 has 4 TiB")
    capacity = make_fault("not as planned", "/scratch", "capacity", "it has 8 TiB; planned are 9 TiB")
    (fault,) = merge(capacity, volume, drive)
    assert (fault.location, fault.problem) == ("sda", drive.problem)
    assert set(fault.consequences) == {"dm-9: md0 has 4 TiB", "/scratch: it has 8 TiB; planned are 9 TiB"}


def test_cache_of_a_drive_explains_unequal_arrays_above() -> None:
    drive = make_fault("unequal members of a stripe", "md0", "write_cache")
    drive = replace(drive, parts=("dm-0",))
    arrays = replace(make_fault("differs from its peers", "md0", "write_cache"), parts=("md0", "md1"))
    (fault,) = merge(arrays, drive)
    assert (fault.kind, fault.parts) == ("unequal members of a stripe", ("dm-0",))
    assert len(merge(replace(arrays, parts=("md1",)), drive)) == 2


@pytest.mark.parametrize("effect", ["minimum_io_size", "physical_block_size"])
def test_sectors_of_a_member_explain_its_other_sizes(effect: str) -> None:
    drive = replace(make_fault("unequal members of a stripe", "md1", "logical_block_size"), parts=("sdd",))
    kind = "differs from its peers" if effect == "minimum_io_size" else "not as planned"
    (fault,) = merge(make_fault(kind, "sdd", effect, "it is 512"), drive)
    assert (fault.location, fault.consequences) == ("md1", ("sdd: it is 512",))
    assert len(merge(make_fault(kind, "sdc", effect), drive)) == 2


def test_fault_of_other_devices_is_no_consequence() -> None:
    drive = make_fault("not as planned", "sdd", "size")
    array = make_fault("unequal members of a stripe", "md0", "size", "dm-0 has 4 TiB")
    assert len(merge(drive, array)) == 2


def test_rule_and_plan_of_one_setting_are_one_fault() -> None:
    rule = make_fault("read-ahead too short", "dm-9", "read_ahead_kb", "read_ahead_kb is 128")
    plan = make_fault("not as planned", "dm-9", "read_ahead_kb", "read_ahead_kb is 128; planned is 8192")
    (fault,) = merge(plan, rule)
    assert (fault.kind, fault.problem) == ("read-ahead too short", "read_ahead_kb is 128; planned is 8192")
    assert len(merge(plan, make_fault("read-ahead too short", "md0", "read_ahead_kb"))) == 2


def test_remedy_sets_the_planned_value() -> None:
    rule = replace(make_fault("read-ahead too short", "dm-9", "read_ahead_kb", "it is 16"), remedy="echo 3072")
    plan = make_fault("not as planned", "dm-9", "read_ahead_kb", "read_ahead_kb is 16; planned is 4096")
    (fault,) = merge(rule, replace(plan, remedy="echo 4096"))
    assert (fault.problem, fault.planned, fault.remedy) == ("it is 16; planned is 4096", "4096", "echo 4096")


@pytest.mark.parametrize("remedy", ["echo none", "echo mq-deadline"])
def test_planned_setting_of_some_parts_is_no_second_fault(remedy: str) -> None:
    rules = [replace(make_fault("scheduler", name, "scheduler", "it is bfq"), remedy="echo none")
             for name in ("sda", "sdb", "sdc")]  # fmt: skip
    plan = replace(make_fault("not as planned", "sdb", "scheduler", "it is bfq; planned is x"), remedy=remedy)
    (fault,) = merge(*rules, plan)
    assert (fault.location, fault.problem) == ("sda, sdb, sdc", "it is bfq")
    assert fault.consequences == (() if remedy == "echo none" else ("sdb: it is bfq; planned is x",))


def test_chunk_explains_the_unit_of_the_log() -> None:
    (fault,) = merge(make_fault("not as planned", "/scratch", "log_unit"), make_fault("not as planned", "md0", "unit"))
    assert (fault.location, fault.consequences) == ("md0", ("/scratch: it is wrong",))


def test_few_paths_explain_the_one_adapter() -> None:
    faults = make_fault("one adapter for all paths", "dm-0"), make_fault("fewer paths than others", "dm-0")
    (fault,) = merge(*faults)
    assert (fault.kind, fault.consequences) == ("fewer paths than others", ("dm-0: it is wrong",))


@pytest.mark.parametrize(("kind", "location"), [
    ("mounted read-only", "md5"), ("file system with errors", "/scratch"), ("file system stopped", "/scratch"),
])  # fmt: skip
def test_errors_of_a_file_system_in_the_log_are_one_fault(kind: str, location: str) -> None:
    log = replace(make_fault("errors in the kernel log", "md5", "kernel errors"), parts=("md5", "/scratch"))
    (fault,) = merge(log, make_fault(kind, "/scratch"))
    assert fault.location == location


def test_planned_value_of_other_parts_is_a_consequence() -> None:
    array = make_fault("not as planned", "md0", "unit", "chunk of 64 KiB; planned is 128 KiB")
    target = make_fault("not as planned", "/scratch", "unit", "stride of 64 KiB; planned is 128 KiB")
    (fault,) = merge(target, array)
    assert fault.consequences == ("/scratch: stride of 64 KiB; planned is 128 KiB",)


def test_equal_findings_are_one_fault_of_all_parts() -> None:
    faults = [make_fault("not as planned", name, "scheduler", "scheduler is none") for name in ("sdc", "sdd")]
    (fault,) = merge(*faults, make_fault("not as planned", "md0", "chunk"))[:1]
    assert (fault.location, fault.parts) == ("sdc, sdd", ("sdc", "sdd"))
    assert fault.covers("sdd", "scheduler")


def test_setting_of_paths_is_that_of_their_map() -> None:
    peers = make_fault("differs from its peers", "dm-0", "max_sectors_kb", "max_sectors_kb is 128")
    paths = [
        make_fault("not as planned", name, "max_sectors_kb", "it is 128; planned is 1024") for name in ("sda", "sdb")
    ]
    (fault,) = merge(*paths, peers)
    assert (fault.location, fault.problem) == ("dm-0", "max_sectors_kb is 128; planned is 1024")
    assert len(merge(make_fault("not as planned", "sdc", "max_sectors_kb"), peers)) == 2


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.cause}-{rule.effect}" for rule in RULES])
def test_each_rule_needs_its_parts_and_attributes(rule: CauseRule) -> None:
    causes = sorted(rule.cause_attributes) or [""]
    effects = sorted(rule.effect_attributes) or [""]
    cause = make_fault(rule.cause, "md0", causes[0], "the cause")
    effect = make_fault(rule.effect, "dm-9" if rule.is_above else "md0", effects[0], "the effect")
    (fault,) = merge(effect, cause)
    assert fault.problem == "the cause"
    elsewhere = make_fault(rule.effect, "md1" if rule.is_above else "sdd", effects[0], "the effect")
    assert len(merge(elsewhere, cause)) == 2


def test_comparisons_stay_in_the_results() -> None:
    item = CheckedItem("queue settings", "sda")
    assert merge_faults([item, make_fault("log", "md0")], STORAGE)[0] == item


def test_many_findings_are_merged_in_linear_time() -> None:
    """3,000 findings of as many drives: comparing each with each for every rule took a minute."""
    count = 1500
    disks = {f"sd{number}": ObservedDisk(f"sd{number}") for number in range(count)}
    faults = [make_fault(kind, f"sd{number}", "nr_requests", f"nr_requests is {number}")
              for kind in ("queue too short", "not as planned") for number in range(count)]  # fmt: skip
    begin = time.process_time()
    merged = merge_faults(faults, ObservedStorage((), disks))
    assert time.process_time() - begin < 3
    assert len(merged) == count


@pytest.mark.parametrize(("cause", "effect"), [
    (("width does not fit the stripe", "fs-OST0001", "width"), ("differs from its peers", "fs-OST0001", "width")),
    (("parameter too small", "oss2: fs-OST0001 brw_size", "brw_size"),
     ("targets differ", "gele01: fs-OST0001-osc-ffff max_pages_per_rpc", "max_pages_per_rpc")),
    (("target with another name", "oss1: fs-OST0001", "index"), ("target not mounted", "fs-OST0001", "")),
])  # fmt: skip
def test_effect_on_another_host_is_a_consequence(cause: tuple[str, str, str], effect: tuple[str, str, str]) -> None:
    (fault,) = join_faults_of_targets([make_fault(*effect), make_fault(*cause)])
    assert (fault.kind, fault.consequences) == (cause[0], (f"{effect[1]}: it is wrong",))


def test_effects_on_other_targets_stay_separate() -> None:
    faults = [make_fault("width does not fit the stripe", "fs-OST0001", "width"),
              make_fault("differs from its peers", "fs-OST0002", "width")]  # fmt: skip
    assert join_faults_of_targets(faults) == faults


def test_read_only_mount_follows_from_errors_of_the_file_system() -> None:
    (fault,) = merge(make_fault("mounted read-only", "/scratch"), make_fault("file system with errors", "/scratch"))
    assert fault.kind == "file system with errors"
