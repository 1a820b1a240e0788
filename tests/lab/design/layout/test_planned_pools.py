# SPDX-License-Identifier: Apache-2.0
"""Spares of planned pools, drives that are being replaced, and vdevs that the plan does not have."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.bundled_files import find_system_file
from sonde.model.system import make_system, read_system

PATHS = "/dev/disk/by-path/pci-0000:3b:00.0-sas-phy"
SCAN = "  scan: scrub repaired 0B in 09:41:22 with 0 errors on Sun Nov  8 10:05:24 2026\n"
GROUPS = """            /large: 3258 groups
meta-data=/large                 isize=256    agcount=3258, agsize=262144 blks
data     =                       bsize=4096   blocks=853951488, imaxpct=25
         =                       sunit=512    swidth=3072 blks, unwritten=1
naming   =version 2              bsize=4096
log      =external               bsize=4096   blocks=32768
realtime =none                   extsz=65536  blocks=0, rtextents=0
"""


def describe_pool() -> dict[str, Any]:
    """A system with a pool of raidz2 4+2 and a spare."""
    return {
        "schema": "sonde-system/2", "id": "pool", "nodes": [{"id": "host"}],
        "drives": [{"id": "d[0-6]", "kind": "hdd", "interface": "SAS", "server": "host", "capacity": "2 TB",
                    "device": f"{PATHS}[0-6]-lun-0"}],
        "raid_groups": [{"id": "g", "level": "6", "data": 4, "parity": 2, "segment": "256 KiB", "drives": "d[0-5]",
                         "spares": "d6"}],
        "file_systems": [{"id": "scratch", "kind": "zfs", "device": "g", "purpose": "scratch"}],
    }  # fmt: skip


def print_row(depth: int, name: str, state: str = "ONLINE") -> str:
    return f"\t{'  ' * depth}{name}  {state}       0     0     0\n"


def print_drive(depth: int, number: int) -> str:
    return print_row(depth, f"pci-0000:3b:00.0-sas-phy{number}-lun-0")


def print_pool(rows: str, spare: int | None = 6) -> str:
    spares = "" if spare is None else f"\tspares\n\t  pci-0000:3b:00.0-sas-phy{spare}-lun-0  AVAIL\n"
    return (f"  pool: scratch\n state: ONLINE\n{SCAN}config:\n\n"
            f"\tNAME  STATE  READ WRITE CKSUM\n{print_row(0, 'scratch')}"
            f"{rows}{spares}\nerrors: No known data errors\n")  # fmt: skip


def print_raidz(numbers: str = "012345", group: str = "") -> str:
    drives = "".join(print_drive(2, int(number)) for number in numbers)
    return print_row(1, "raidz2-0") + drives + group


def check_pool(status: str, lsblk: str = '{"blockdevices": []}', document: dict[str, Any] | None = None) -> LayoutCheck:
    """The check of a pool against its plan."""
    plan = plan_layout(make_system(document or describe_pool(), "pool.toml"))
    links = "".join(f"{PATHS}{number}-lun-0 ../../sd{chr(97 + number)}\n" for number in range(10))
    storage = ObservedStorage()
    for name, text in (("zpool", status), ("links", links), *([("lsblk", lsblk)] if "name" in lsblk else [])):
        storage = merge_observations(storage, read_saved_output(text, name))
    layout = plan.get_layout("scratch")
    return check_layout(join_observations(storage), layout, (), (), list_written_attributes(plan.system, layout))


def test_script_makes_the_spare_of_a_pool() -> None:
    (text,) = make_layout_scripts(plan_layout(make_system(describe_pool(), "pool.toml"))).values()
    assert f" {PATHS}5-lun-0 spare {PATHS}6-lun-0\n" in text
    (disks,) = [line for line in text.splitlines() if line.startswith("set -- ")]
    assert f"{PATHS}6-lun-0" in disks


def test_planned_pool_with_spare_is_sound() -> None:
    verdict = check_pool(print_pool(print_raidz()))
    assert verdict.faults == ()
    assert {"the planned vdevs", "the planned drives of vdevs"} <= {item.subject for item in verdict.checked_items}


@pytest.mark.parametrize(("vdev_type", "new", "problems"), [
    ("replacing", 9, ["drive pci-0000:3b:00.0-sas-phy9-lun-0 replaces pci-0000:3b:00.0-sas-phy5-lun-0 in raidz2-0;"
                      " the plan does not have it there"]),
    ("spare", 6, [])])  # fmt: skip
def test_drive_and_its_replacement_are_one_member(vdev_type: str, new: int, problems: list[str]) -> None:
    group = print_row(2, f"{vdev_type}-5") + print_drive(3, 5) + print_drive(3, new)
    status = print_pool(print_raidz("01234", group))
    (pool,) = read_saved_output(status, "zpool").file_systems
    assert pool.facts["vdevs"] == "raidz2-0=6"
    faults = check_pool(status).faults
    assert [fault.problem for fault in faults if fault.kind == "not as planned"] == problems


def test_absent_spare_of_a_pool_is_reported() -> None:
    verdict = check_pool(print_pool(print_raidz(), spare=None))
    assert f"{PATHS}6-lun-0 is no spare of it; planned are 1" in [fault.problem for fault in verdict.faults]
    in_use = "".join(print_drive(2, number) for number in range(5)) + print_row(2, "spare-5") + print_drive(3, 5)
    pool = print_pool(print_row(1, "raidz2-0") + in_use + print_drive(3, 6))
    assert not any("is no spare" in fault.problem for fault in check_pool(pool).faults)
    (*_, fault) = check_pool(print_pool(print_raidz("012346"), spare=None)).faults
    name = f"{PATHS}6-lun-0".rpartition("/")[2]
    assert f"{PATHS}6-lun-0 is no spare of it, {name} is a drive of raidz2-0; planned are 1" in fault.problem


@pytest.mark.parametrize(("size", "is_fault"), [(10**12, True), (2 * 10**12, False)])
def test_spare_smaller_than_the_drives_is_reported(size: int, is_fault: bool) -> None:
    disks = [{"name": f"sd{letter}", "kname": f"sd{letter}", "type": "disk", "rota": True,
              "size": size if letter == "g" else 2 * 10**12} for letter in "abcdefg"]  # fmt: skip
    verdict = check_pool(print_pool(print_raidz()), json.dumps({"blockdevices": disks}))
    assert ("spare too small" in {fault.kind for fault in verdict.faults}) == is_fault


def test_spare_as_top_level_vdev_is_reported() -> None:
    faults = check_pool(print_pool(print_raidz() + print_drive(1, 6), None)).faults
    (fault,) = [each for each in faults if "no vdev like" in each.problem]
    assert fault.problem.endswith("pci-0000:3b:00.0-sas-phy6-lun-0 is planned as spare")
    assert not any("planned there" in each.problem or "exchange" in each.remedy for each in faults)
    assert not any("raidz2 of" in each.problem for each in faults), "the numbers of vdevs follow from it"
    assert [each.kind for each in faults if each.kind != "no spare"] == ["vdev not planned"]
    name = "pci-0000:3b:00.0-sas-phy6-lun-0"
    assert f"{name} is a vdev by itself; planned are 1" in " ".join(fault.consequences)
    assert f"until then zpool attach scratch {name} and another drive" in fault.remedy


def describe_pool_with_log() -> dict[str, Any]:
    """The pool with a mirror of two SSDs for its log."""
    document = describe_pool()
    document["drives"].append({"id": "s[0-1]", "kind": "ssd", "interface": "SAS", "server": "host",
                               "capacity": "100 GB", "device": f"{PATHS}[7-8]-lun-0"})  # fmt: skip
    document["raid_groups"].append({"id": "slog", "level": "1", "data": 1, "parity": 1, "drives": "s[0-1]"})
    document["volumes"] = [{"id": "pool", "kind": "zfs", "software": "ZFS", "members": "g", "log": "slog"}]
    document["file_systems"][0]["device"] = "pool"
    return document


def print_log(*numbers: int) -> str:
    drives = "".join(print_drive(2 if len(numbers) > 1 else 1, number) for number in numbers)
    return "\tlogs\n" + (print_row(1, "mirror-1") if len(numbers) > 1 else "") + drives


def test_log_of_a_pool_is_in_its_script() -> None:
    (text,) = make_layout_scripts(plan_layout(make_system(describe_pool_with_log(), "pool.toml"))).values()
    assert f" {PATHS}5-lun-0 log mirror {PATHS}7-lun-0 {PATHS}8-lun-0 spare {PATHS}6-lun-0\n" in text
    (disks,) = [line for line in text.splitlines() if line.startswith("set -- ")]
    assert f"{PATHS}8-lun-0" in disks


@pytest.mark.parametrize(("drives", "problem"), [
    ((7, 8), ""), ((), f"it has no log device; planned is mirror of {PATHS}7-lun-0, {PATHS}8-lun-0"),
    ((7,), "alone; planned is mirror of"), ((7, 9), f"phy9-lun-0; planned is mirror of {PATHS}7-lun-0")])  # fmt: skip
def test_log_of_a_pool_is_compared_with_the_plan(drives: tuple[int, ...], problem: str) -> None:
    faults = check_pool(
        print_pool(print_raidz() + (print_log(*drives) if drives else "")), "", describe_pool_with_log()
    )
    assert len(faults.faults) == bool(problem)
    assert all(fault.kind == "not as planned" and problem in fault.problem for fault in faults.faults)
    assert "the planned log of a pool" in {item.subject for item in faults.checked_items}


def test_log_devices_without_their_mirror_are_reported() -> None:
    log = "\tlogs\n" + print_drive(1, 7) + print_drive(1, 8)
    (fault,) = check_pool(print_pool(print_raidz() + log), "", describe_pool_with_log()).faults
    assert "phy8-lun-0 without a mirror; planned is mirror of" in fault.problem
    assert "zpool remove scratch pci-0000:3b:00.0-sas-phy8-lun-0, then zpool attach scratch" in fault.remedy


@pytest.mark.parametrize(("lost", "cost"), [
    ((8,), "the data drives are not affected"), ((7, 8), "is not imported without zpool import -m")])  # fmt: skip
def test_lost_log_devices_do_not_count_as_data_drives(lost: tuple[int, ...], cost: str) -> None:
    log = print_log(7, 8).replace("mirror-1  ONLINE", "mirror-1  DEGRADED")
    for number in lost:
        log = log.replace(f"phy{number}-lun-0  ONLINE", f"phy{number}-lun-0  REMOVED")
    status = print_pool(print_raidz() + log).replace("ONLINE", "DEGRADED", 2)
    faults = [fault for fault in check_pool(status, "", describe_pool_with_log()).faults if fault.kind == "degraded"]
    assert [cost in fault.cost for fault in faults] == [True]


def test_status_of_lost_files_is_one_fault() -> None:
    status = "status: One or more devices has experienced an error resulting in data\n\tcorruption.\nconfig:"
    files = "errors: Permanent errors have been detected in the following files:\n\n        /scratch/run 7.h5\n"
    pool = print_pool(print_raidz()).replace("errors: No known data errors\n", files).replace("config:", status)
    (fault,) = check_pool(pool).faults
    assert (fault.kind, fault.problem) == ("data lost", "1 data error could not be repaired")


def test_log_that_the_plan_lacks_is_reported() -> None:
    (fault,) = check_pool(print_pool(print_raidz() + print_log(7, 8))).faults
    assert "the plan has none" in fault.problem


def test_drive_with_other_sectors_is_reported_by_name() -> None:
    row = print_drive(2, 3)
    other = row.rstrip("\n") + "  block size: 512B configured, 4096B native\n"
    status = print_pool(print_raidz().replace(row, other)).replace(
        "config:", "status: One or more devices are configured to use a non-native block size.\nconfig:")  # fmt: skip
    (fault,) = check_pool(status).faults
    assert fault.location == "scratch pci-0000:3b:00.0-sas-phy3-lun-0"
    assert "blocks of 512B, the drive has sectors of 4096B" in fault.problem


def print_small_blocks() -> str:
    """The pool with blocks of 512 B on drives with sectors of 4 KiB, as zpool status prints it at each drive."""
    row = re.compile(r"^(.*-lun-0.* 0)$", re.MULTILINE)
    return print_pool(row.sub(r"\1  block size: 512B configured, 4096B native", print_raidz())).replace(
        "config:", "status: One or more devices are configured to use a non-native block size.\nconfig:")  # fmt: skip


@pytest.mark.parametrize(("properties", "problem"), [
    ("", "raidz2-0 has blocks of 512B, all drives there have sectors of 4096B"),
    ("NAME     PROPERTY  VALUE  SOURCE\nscratch  ashift    9      local\n", "ashift is 9, sectors of 512 bytes;"),
])  # fmt: skip
def test_small_blocks_of_all_drives_are_one_fault(properties: str, problem: str) -> None:
    storage = read_saved_output(print_small_blocks(), "zpool status")
    if properties:
        storage = merge_observations(storage, read_saved_output(properties, "zpool get"))
    faults = [each for each in check_layout(join_observations(storage)).faults if each.kind == "sectors too small"]
    assert len(faults) == 1
    assert faults[0].problem.startswith(problem)
    assert "zpool replace" not in faults[0].remedy


def check_scrub(scan: str, date: str = "2026-11-28T08:00:00+0100", more: str = "") -> LayoutCheck:
    storage = read_saved_output(print_pool(print_raidz()).replace(SCAN, scan) + more, "zpool")
    return check_layout(join_observations(merge_observations(storage, read_saved_output(date, "date"))))


@pytest.mark.parametrize(("scan", "problem"), [
    (SCAN, ""), ("", "never scrubbed"), ("  scan: none requested\n", "never scrubbed"),
    (SCAN.replace("Nov  8", "May 10"), "ended 201 days ago"),
    ("  scan: scrub canceled on Sun Nov  8 10:05:24 2026\n", "was canceled"),
    ("  scan: resilvered 1.2T in 04:00:00 with 0 errors on Sun Nov  8 10:05:24 2026\n", "")])  # fmt: skip
def test_pool_without_recent_scrub_is_reported(scan: str, problem: str) -> None:
    faults = check_scrub(scan).faults
    assert [fault.kind for fault in faults] == ["no recent scrub"] * bool(problem)
    assert all(problem in fault.problem for fault in faults)


@pytest.mark.parametrize(("scan", "problem"), [
    ("scrub in progress since Sun Nov  8 00:24:01 2026", ""),
    ("scrub in progress since Sun Oct  4 00:24:01 2026", "its scrub began 55 days ago and has not ended"),
    ("scrub paused since Thu Nov 26 08:00:00 2026\n\tscrub started on Sun Oct  4 00:24:01 2026", ""),
    ("scrub paused since Sun Aug  2 14:22:51 2026\n\tscrub started on Sun Aug  2 00:24:01 2026",
     "its scrub has been paused for 117 days")])  # fmt: skip
def test_open_scrub_is_no_rebuild(scan: str, problem: str) -> None:
    verdict = check_scrub(f"  scan: {scan}\n")
    assert [fault.kind for fault in verdict.faults] == ["no recent scrub"] * bool(problem)
    assert all(problem in fault.problem for fault in verdict.faults)
    assert any("the scrub that runs" in text for text in verdict.unknown) == ("in progress" in scan)
    assert "the last scrub" in {item.subject for item in verdict.checked_items}


def test_new_pool_needs_no_scrub() -> None:
    """It was made on 20 November 2026."""
    assert check_scrub("", more="scratch  creation  1795132800  -\n").faults == ()


def test_age_of_a_scrub_is_unknown_without_date() -> None:
    storage = read_saved_output(print_pool(print_raidz()).replace("Nov  8", "May 10"), "zpool")
    verdict = check_layout(join_observations(storage))
    assert verdict.faults == ()
    assert any(text.startswith("the age of the last scrub of scratch") for text in verdict.unknown)


def test_planned_number_of_groups_is_no_fault() -> None:
    plan = plan_layout(read_system(find_system_file("cray-x1")))
    storage = read_saved_output(GROUPS, "xfs_growfs")
    assert "too many allocation groups" in {fault.kind for fault in check_layout(storage).faults}
    layout = plan.get_layout("large")
    assert layout.groups is not None
    written = list_written_attributes(plan.system, layout)
    faults = check_layout(storage, layout, (), ["/large"], written).faults
    assert "too many allocation groups" not in {fault.kind for fault in faults}


def test_pool_imported_by_names_of_the_kernel_is_reported() -> None:
    rows = print_row(1, "raidz2-0") + "".join(print_row(2, f"sd{letter}") for letter in "abcdef")
    (fault,) = check_pool(print_pool(rows)).faults
    assert (fault.kind, fault.location) == ("not as planned", "scratch")
    assert fault.problem == (
        "it was imported by names of the kernel (sda, sdb, sdc, sdd and 2 more); planned are names in /dev/disk/by-path"
    )
    assert "zpool import -d /dev/disk/by-path scratch" in fault.remedy
    document = describe_pool()
    document["drives"][0]["device"] = "/dev/nvme[0-6]n1"
    assert not any("names of the kernel" in each.problem for each in check_pool(print_pool(rows), "", document).faults)
