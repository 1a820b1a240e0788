# SPDX-License-Identifier: Apache-2.0
"""Local file systems of data: their lines of fstab, commits, inodes, and names of drives."""

from __future__ import annotations

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.live.observations import (
    FstabEntry,
    ObservedDisk,
    ObservedFileSystem,
    ObservedStorage,
)

TIB = 1 << 40


def find_faults(lines: dict[str, str], *mount_points: str, source: str = "LABEL=x") -> list[tuple[str, str]]:
    """The faults of mounted XFS with lines of fstab, by mount point with their options."""
    systems = [ObservedFileSystem(each, "xfs", f"/dev/mapper/vg{each.replace('/', '-')}", options=("rw",))
               for each in mount_points]  # fmt: skip
    entries = [FstabEntry(source, each, "xfs", tuple(options.split(","))) for each, options in lines.items()]
    drives = {f"nvme{number}n1": ObservedDisk(f"nvme{number}n1") for number in range(2 if "nvme1" in source else 1)}
    faults = check_layout(ObservedStorage(tuple(systems), drives, fstab=tuple(entries))).faults
    return [(fault.kind, fault.location) for fault in faults if fault.kind != "fstab names no device"]


@pytest.mark.parametrize("lines", [
    {"/scratch": "defaults", "/home": "defaults"},
    {"/scratch": "defaults", "/home": "defaults", "/projects": "noauto"}])  # fmt: skip
def test_mount_of_data_that_no_start_mounts_is_reported(lines: dict[str, str]) -> None:
    assert find_faults(lines, "/", "/scratch", "/home", "/projects") == [("not mounted at a start", "/projects")]


@pytest.mark.parametrize("lines", [
    {"/scratch": "defaults", "/home": "defaults", "/projects": "noauto,x-systemd.automount"},
    {"/scratch": "noauto", "/home": "noauto", "/projects": "noauto"}])  # fmt: skip
def test_mounts_by_automount_or_cluster_have_no_fault(lines: dict[str, str]) -> None:
    assert find_faults(lines, "/", "/scratch", "/home", "/projects") == []


def test_mount_of_the_system_needs_no_line() -> None:
    lines = {"/scratch": "defaults", "/home": "defaults", "/data": "defaults"}
    assert find_faults(lines, "/", "/scratch", "/home", "/data", "/run/media/stick", "/var/lib/containers") == []


@pytest.mark.parametrize(("source", "kinds"), [
    ("/dev/nvme1n1p2", ["fstab names an unstable device"]), ("/dev/nvme0n1", [])])  # fmt: skip
def test_unstable_name_of_an_nvme_drive_is_reported(source: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in find_faults({"/scratch": "defaults"}, source=source)] == kinds


@pytest.mark.parametrize(("commit", "count"), [("1", 1), ("5", 0), ("0", 0), ("300", 1)])
def test_short_or_long_commit_is_reported(commit: str, count: int) -> None:
    system = ObservedFileSystem("/data", "ext4", "/dev/md0", options=("rw", f"commit={commit}"))
    faults = check_layout(ObservedStorage((system,))).faults
    assert len([fault for fault in faults if fault.kind == "mount option"]) == count


@pytest.mark.parametrize(("used", "count"), [("990", 1), ("500", 0)])
def test_used_inodes_of_a_target_backend_are_reported(used: str, count: int) -> None:
    backend = ObservedFileSystem("fs-MDT0000", "ldiskfs", facts={"inodes": "1000", "inodes_used": used})
    client = ObservedFileSystem("fs-MDT0000", "lustre", facts={"used_inodes_percent": str(int(used) // 10)})
    faults = check_layout(ObservedStorage((backend, client))).faults
    assert len([fault for fault in faults if fault.kind == "too full"]) == count
