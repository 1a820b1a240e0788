# SPDX-License-Identifier: Apache-2.0
"""Listings that were published of the Cray X1: they are parsed, and have no faults."""

from __future__ import annotations

from pathlib import Path

from layout_fault_kinds import find_kinds

from sonde.design.layout.check import check_layout
from sonde.design.layout.geometry import KIB, MIB
from sonde.design.layout.live.cray_x1_output import read_xfs_info
from sonde.design.layout.live.observations import (
    ObservedStorage,
)
from sonde.design.layout.live.saved_output import read_files, read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.system import read_system

DATA = Path(__file__).resolve().parents[3] / "data" / "layout"


def test_published_listings_are_parsed_without_faults() -> None:
    storage = read_files([DATA / "csmreport.txt"])
    assert [(disk.geometry, disk.unit, disk.size) for disk in storage.disks.values() if disk.kind == "lun"] == [
        ("4+1", 128 * KIB, 80 * 10**9), ("4+1", 128 * KIB, 211 * 10**9), ("4x2", 128 * KIB, 80 * 10**9),
        ("4x2", 128 * KIB, 211 * 10**9), ("4+1", 256 * KIB, 291 * 10**9), ("8+1", 256 * KIB, 583 * 10**9),
    ]  # fmt: skip
    assert find_kinds(storage) == set()
    assert (
        find_kinds(read_files([DATA / "pm.txt", DATA / "pm-ustat.txt", DATA / "xlv0.txt", DATA / "root.cf"])) == set()
    )


def test_garbled_lines_are_reported_not_guessed() -> None:
    storage = read_files([DATA / "csmreport-as-scanned.txt"])
    assert [disk.name for disk in storage.disks.values() if disk.kind == "lun"] == ["01d02_A0_L02"]
    assert len(storage.unread) == 5
    assert any("43&" in line for line in storage.unread)
    large = read_files([DATA / "xfs_growfs-large-as-scanned.txt"])
    (file_system,) = large.file_systems
    assert (file_system.group_count, file_system.group_blocks, file_system.blocks) == (3258, 262_144, 853_951_488)
    assert file_system.unit is None
    assert file_system.log is None
    assert "the stripe unit of /large" in check_layout(large).unknown


def test_published_paths_are_balanced() -> None:
    """The two active ones differ by half a percent."""
    (device,) = read_files([DATA / "pm.txt"]).disks.values()
    reads = [path.blocks_read or 0 for path in device.paths if path.active]
    assert max(reads) - min(reads) < 0.006 * max(reads)
    (detail,) = read_files([DATA / "pm-ustat.txt"]).disks.values()
    assert (detail.size, detail.queue_depth) == (583 * 10**9, 8)


def test_published_file_system_is_parsed() -> None:
    (file_system,) = read_files([DATA / "mkfs-4plus1.txt"]).file_systems
    assert (file_system.unit, file_system.width, file_system.group_count, file_system.group_blocks) == (
        MIB,
        MIB,
        272,
        261_632,
    )
    assert file_system.log == 16 * MIB
    assert file_system.size_bytes == 291_481_059_328
    plan = plan_layout(read_system(find_system_file("cray-x1"))).get_layout("single")
    assert find_kinds(ObservedStorage((file_system,)), plan) == {"log too small"}  # "not sufficient for > 300 MB/s"
    unset = read_xfs_info((DATA / "mkfs-4plus1.txt").read_text(encoding="utf-8").replace("=256", "=0"), "listing")
    assert "no stripe unit" in find_kinds(unset)  # mkfs with no options: "works, but not optimal"


def test_published_volume_equals_the_plan() -> None:
    storage = read_files([DATA / "xlv0.txt"])
    volume = storage.disks["xlv0.data.0.0"]
    assert volume.size == 6_831_611_904 * 512 == sum(volume.member_sizes)
    assert volume.unit == 2 * MIB
    plan = plan_layout(read_system(find_system_file("cray-x1"))).get_layout("large")
    assert find_kinds(storage, plan) == set()


def test_alignment_of_1_mib_is_a_fault_for_13_and_1(tmp_path: Path) -> None:
    text = (DATA / "option-RG11D.cf").read_text(encoding="utf-8")
    assert find_kinds(read_saved_output(text, "option-RG11D.cf")) == set()
    (fault,) = check_layout(read_saved_output(text.replace("modulo 13M\n", ""), "option-RG11D.cf")).faults
    assert fault.kind == "slice is not aligned"
    assert "modulo 13M" in fault.remedy
