# SPDX-License-Identifier: Apache-2.0
"""A sound machine has no faults, and each fault planted into it is detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from layout_fault_kinds import find_kinds

from sonde.design.layout.check import check_layout
from sonde.design.layout.geometry import KIB, MIB
from sonde.design.layout.live.observations import (
    FileExtents,
    ObservedDisk,
    ObservedFileSystem,
    ObservedPath,
    ObservedSlices,
    ObservedStorage,
)

QUEUE = {"scheduler": "[none] mq-deadline", "read_ahead_kb": "8192", "max_sectors_kb": "2048",
         "max_hw_sectors_kb": "16384", "physical_block_size": "4096"}  # fmt: skip


def sound() -> tuple[ObservedFileSystem, dict[str, ObservedDisk]]:
    """XFS on a volume of two 8+1 arrays in partitions, its log on a mirror; a LUN with four paths."""
    disks = {
        name: ObservedDisk(
            name, "md", 8 * 10**12, level="raid5", geometry="8+1", data=8, unit=256 * KIB, state="optimal",
            queue=QUEUE, settings={"stripe_cache_size": "8192", "sync_action": "idle"},
        )
        for name in ("md1", "md2")
    }  # fmt: skip
    disks |= {
        f"md{number}p1": ObservedDisk(f"md{number}p1", "part", 7 * 10**12, 2 * MIB, f"md{number}", queue=QUEUE)
        for number in (1, 2)
    }
    disks["dm-0"] = ObservedDisk("dm-0", "lvm", 14 * 10**12, members=("md1p1", "md2p1"),
                             member_sizes=(7 * 10**12, 7 * 10**12), level="raid0", data=2, unit=2 * MIB,
                             queue=QUEUE)  # fmt: skip
    disks["sdx"] = ObservedDisk("sdx", "multipath", 10**12, queue=QUEUE, paths=(
        ObservedPath("fc0", True, True, 866_071, 812_707, 0), ObservedPath("fc1", True, True, 865_884, 817_213, 0),
        ObservedPath("fc2", False, False, 0, 0, 0), ObservedPath("fc3", False, False, 0, 0, 0)))  # fmt: skip
    disks["sda"] = ObservedDisk("sda", "disk", 10**12, queue=QUEUE, flash=False, state="running")
    disks["nvme0n1"] = ObservedDisk("nvme0n1", "disk", 10**12, queue=QUEUE, flash=True, state="live")
    group = 268_434_944
    file_system = ObservedFileSystem(
        "/scratch", "xfs", "/dev/dm-0", 4096, 14 * 10**12 // 4096, 2 * MIB, 4 * MIB, 13, group, 2038 * MIB,
        "/dev/sdl1", ("rw", "noatime"),
    )  # fmt: skip
    return file_system, disks


def test_sound_machine_has_no_faults() -> None:
    file_system, disks = sound()
    assert check_layout(ObservedStorage((file_system,), disks)).faults == ()


Change = Callable[[ObservedFileSystem, dict[str, ObservedDisk]], ObservedFileSystem]


def _fs(**more: Any) -> Change:
    return lambda file_system, disks: replace(file_system, **more)


def _disk(name: str, **more: Any) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        disks[name] = replace(disks[name], **more)
        return file_system

    return change


def _queue(name: str, **more: str) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        disks[name] = replace(disks[name], queue={**disks[name].queue, **more})
        return file_system

    return change


def _path(index: int, **more: Any) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        paths = list(disks["sdx"].paths)
        paths[index] = replace(paths[index], **more)
        disks["sdx"] = replace(disks["sdx"], paths=tuple(paths))
        return file_system

    return change


def _all_paths(active: bool | None) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        paths = (replace(path, active=active if path.preferred else active is None) for path in disks["sdx"].paths)
        disks["sdx"] = replace(disks["sdx"], paths=tuple(paths))
        return file_system

    return change


FAULTS: list[tuple[str, Change, str]] = [
    ("sunit 0", _fs(unit=0, width=0), "no stripe unit"),
    ("swidth no multiple", _fs(width=5 * MIB), "width is no multiple of unit"),
    ("a unit of another array", _fs(unit=1664 * KIB, width=1664 * KIB, group_blocks=416 * 645_000),
     "unit does not fit the stripe"),
    ("a width of half a stripe", _fs(unit=512 * KIB, width=512 * KIB), "width does not fit the stripe"),
    ("a width of three", _fs(width=6 * MIB, group_blocks=268_434_432), "width does not fit the stripe"),
    ("a small log", _fs(log=16 * MIB), "log too small"),
    ("the log among the data", _fs(log_device="/dev/md1"), "log on the same disks"),
    ("two groups", _fs(group_count=2), "too few allocation groups"),
    ("thousands of groups", _fs(group_count=13_000, group_blocks=262_144), "too many allocation groups"),
    ("grown from small", _fs(group_count=900, group_blocks=32_768, blocks=900 * 32_768), "too many allocation groups"),
    ("groups between stripes", _fs(group_blocks=268_434_944 - 1), "groups are not aligned"),
    ("groups on one drive", _fs(group_blocks=268_434_944 - 512), "groups begin on one drive"),
    ("blocks as segments", _fs(block=2 * MIB, group_blocks=524_288, blocks=6_000_000), "blocks as large as segments"),
    ("mounted sync", _fs(options=("rw", "sync")), "mount option"),
    ("mounted noalign", _fs(options=("noalign",)), "mount option"),
    ("a slice at 1 MiB", _disk("md1p1", start=MIB), "slice is not aligned"),
    ("a slice within a sector", _disk("md1p1", start=2 * MIB + 512), "slice is not aligned"),
    ("unequal slices", _disk("dm-0", member_sizes=(7 * 10**12, 6 * 10**12)), "unequal members of a stripe"),
    ("unequal geometries", _disk("md2", geometry="4+1", data=4), "unequal members of a stripe"),
    ("one disk twice", _disk("md2p1", on="md1"), "one disk twice in a stripe"),
    ("a volume unit of half a stripe", _disk("dm-0", unit=MIB), "unit does not fit the stripe"),
    ("degraded", _disk("md1", state="degraded", settings={"degraded": "1"}), "degraded"),
    ("rebuilding", _disk("md1", settings={"sync_action": "recover", "stripe_cache_size": "8192"}), "rebuilding"),
    ("a small stripe cache", _disk("md1", settings={"stripe_cache_size": "256"}), "stripe cache too small"),
    ("a LUN that is not optimal", _disk("sda", state="Failed"), "not optimal"),
    ("short requests", _queue("sdx", max_sectors_kb="512", optimal_io_size="2097152"), "requests are cut"),
    ("bfq on a disk", _queue("sda", scheduler="none [bfq]"), "scheduler"),
    ("bfq on flash", _queue("nvme0n1", scheduler="none [bfq]"), "scheduler"),
    ("short read-ahead", _queue("md1", read_ahead_kb="128"), "read-ahead too short"),
    ("unbalanced reads", _path(0, blocks_read=300_000), "unbalanced paths"),
    ("unbalanced writes", _path(1, blocks_written=1_000_000), "unbalanced paths"),
    ("a standby path was used", _path(2, blocks_read=50_000), "standby path was used"),
    ("errors on a path", _path(0, errors=3), "path errors"),
    ("a failed path", _path(1, active=False, state="failed"), "path failed"),
    ("one path for all", _path(1, active=False, blocks_read=0, blocks_written=0), "one path for all"),
    ("no path", _all_paths(False), "no active path"),
    ("on the alternate paths", _all_paths(None), "on alternate paths"),
    ("a short queue", _disk("sdx", queue_depth=1), "queue too short"),
    ("an unusual segment", _disk("sda", kind="lun", geometry="8+1", unit=64 * KIB, data=8), "unusual segment"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "fault_kind"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_each_fault_is_detected(change: Change, fault_kind: str) -> None:
    file_system, disks = sound()
    file_system = change(file_system, disks)
    faults = check_layout(ObservedStorage((file_system,), disks)).faults
    assert fault_kind in {fault.kind for fault in faults}
    for fault in faults:
        assert fault.location
        assert fault.cost
        assert fault.remedy


def test_faults_of_files_slices_and_volumes_are_detected() -> None:
    pieces = tuple((index * MIB, index * 7 * MIB, MIB) for index in range(100))
    assert "fragmented" in find_kinds(ObservedStorage(files=(FileExtents("/f", pieces),)))
    together = tuple((index * MIB, index * MIB, MIB) for index in range(100))
    assert find_kinds(ObservedStorage(files=(FileExtents("/f", together),))) == set()
    table = ObservedSlices("d", ((0, 0.6, None, ""), (0, 0.6, None, "")), None, origin="x.cf")
    assert find_kinds(ObservedStorage(slices=(table,))) == {"more than the whole", "slice named twice"}
    names = tuple(f"/hw/disk/pm1d1L{number}s11" for number in (1, 7, 10))
    volume = ObservedDisk(
        "v", "xlv", 10**12, members=names, member_sizes=(10**11,) * 3, level="raid0", data=3, unit=2 * MIB
    )
    assert find_kinds(ObservedStorage(disks={"v": volume})) == {
        "one controller for all members",
        "larger than its members",
    }
