# SPDX-License-Identifier: Apache-2.0
"""Arrays of several hosts that should be alike, and faults of targets of which a target has several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage

KIB = 1024


def make_host(first: int, units: tuple[int, int], **targets: dict[str, str]) -> ObservedStorage:
    """A server with the arrays md1 and md2 of 8+2 drives, each of which holds an object target."""
    disks, file_systems = [], []
    for number, unit in enumerate(units, start=1):
        drives = [f"sd{chr(ord('a') + 10 * (number - 1) + each)}" for each in range(10)]
        disks += [ObservedDisk(name, size=2 << 40, flash=False) for name in drives]
        label = f"scratch-OST{first + number - 1:04x}"
        settings = {"fs_label": label, "fs_kind": "ext4", "array_uuid": label}
        queue = {"read_ahead_kb": str(16 * unit // KIB), "minimum_io_size": str(unit)}
        disks.append(ObservedDisk(f"md{number}", "md", 16 << 40, members=tuple(drives), level="raid6", data=8,
                                  unit=unit, settings=settings, queue=queue))  # fmt: skip
        file_systems.append(ObservedFileSystem(
            label, "ldiskfs", block=4096, unit=unit, width=8 * unit, facts=targets.get(label.replace("-", "_"), {})
        ))  # fmt: skip
    return ObservedStorage(tuple(file_systems), {disk.name: disk for disk in disks})


def select_differences(faults: tuple[LayoutFault, ...]) -> list[tuple[str, str]]:
    return [(fault.location, fault.problem) for fault in faults if fault.kind == "differs from its peers"]


def test_other_chunk_of_an_array_is_reported_once() -> None:
    hosts = {"oss1": make_host(0, (128 * KIB, 64 * KIB)), "oss2": make_host(2, (128 * KIB, 128 * KIB))}
    faults = check_hosts(hosts).faults
    assert select_differences(faults) == [
        ("oss1: md2", "chunk is 65536; on 3 of 4 arrays of raid6 it is 131072")
    ]  # fmt: skip
    (fault,) = (each for each in faults if each.kind == "differs from its peers")
    assert any("scratch-OST0001" in text for text in fault.consequences)


def test_two_arrays_of_one_file_system_with_other_chunks_differ() -> None:
    ((location, problem),) = select_differences(check_layout(make_host(0, (128 * KIB, 64 * KIB))).faults)
    assert location == "md1"
    assert problem == "chunk is not the same on all arrays of raid6: 131072 on md1, 65536 on md2"


def test_equal_arrays_on_two_hosts_have_no_fault() -> None:
    hosts = {"oss1": make_host(0, (128 * KIB,) * 2), "oss2": make_host(2, (128 * KIB,) * 2)}
    assert select_differences(check_hosts(hosts).faults) == []


@pytest.mark.parametrize("label", ["home", ""])
def test_two_arrays_of_other_roles_may_differ(label: str) -> None:
    storage = make_host(0, (128 * KIB, 64 * KIB))
    array = storage.disks["md2"]
    changed = ObservedDisk(**{**vars(array), "settings": {**array.settings, "fs_label": label}})
    storage = ObservedStorage((), {**storage.disks, "md2": changed})
    assert select_differences(check_layout(storage).faults) == []


def test_target_that_differs_in_two_attributes_names_both() -> None:
    odd = {"scratch_OST0001": {"inode_bytes": "256", "flex_groups": "16"}}
    usual = {f"scratch_OST{number:04x}": {"inode_bytes": "512", "flex_groups": "256"} for number in (0, 2, 3)}
    hosts = {"oss1": make_host(0, (128 * KIB,) * 2, **odd, **usual), "oss2": make_host(2, (128 * KIB,) * 2, **usual)}
    ((_, problem),) = select_differences(check_hosts(hosts).faults)
    assert problem.startswith("inode_bytes is 256")
    assert "flex_groups is 16" in problem


@pytest.mark.parametrize(("inodes", "count"), [("3815200", 1), ("15260800", 0), ("13000000", 0)])
def test_target_with_fewer_inodes_in_dumpe2fs_is_reported(inodes: str, count: int) -> None:
    systems = [
        ObservedFileSystem(
            f"fs-OST{number:04x}", "ldiskfs", block=4096, blocks=4 << 30,
            facts={"inodes": inodes if number == 1 else "15260800"},
        )
        for number in range(4)
    ]  # fmt: skip
    hosts = {"oss1": ObservedStorage(tuple(systems[:2])), "oss2": ObservedStorage(tuple(systems[2:]))}
    problems = [problem for _, problem in select_differences(check_hosts(hosts).faults)]
    assert problems == ["inodes is one for 4 MiB; on 3 of 4 targets fs-OST* it is one for 1 MiB"] * count


def test_array_without_bitmap_is_reported_once() -> None:
    hosts = {"oss1": make_host(0, (128 * KIB,) * 2), "oss2": make_host(2, (128 * KIB,) * 2)}
    for host, storage in hosts.items():
        disks = {name: disk if disk.kind != "md" else replace(disk, settings={
            **disk.settings, "bitmap": "none" if (host, name) == ("oss1", "md2") else "internal",
            "bitmap/chunksize": "0" if (host, name) == ("oss1", "md2") else "67108864",
        }) for name, disk in storage.disks.items()}  # fmt: skip
        hosts[host] = replace(storage, disks=disks)
    kinds = [fault.kind for fault in check_hosts(hosts).faults if fault.kind != "no spare"]
    assert kinds == ["no bitmap"]
