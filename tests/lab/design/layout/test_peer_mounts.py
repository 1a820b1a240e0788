# SPDX-License-Identifier: Apache-2.0
"""File systems on equal stripes, their sectors, and the sizes of arrays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage

MIB = 1 << 20
TIB = 1 << 40
OPTIONS = ("rw", "noatime", "logbufs=8", "logbsize=256k")


def find_faults(**changes: object) -> list[tuple[str, str, str]]:
    """The faults of three XFS on volumes of one array, of which /scratch has the changes."""
    array = ObservedDisk("md0", "md", 64 * TIB, queue={"physical_block_size": "4096"}, settings={"name": "md0"})
    volumes = [ObservedDisk(f"dm-{number}", "lvm", 8 * TIB, members=("md0",), settings={"name": f"vg-{name}"},
                            queue={"physical_block_size": "4096"})
               for number, name in enumerate(("scratch", "home", "projects"))]  # fmt: skip
    facts = {"sector": "4096", "log_sector": "4096", "log_unit": "32768", "rmapbt": "0"}
    systems = [ObservedFileSystem(f"/{name}", "xfs", f"/dev/mapper/vg-{name}", 4096, unit=MIB, width=8 * MIB,
                                  options=OPTIONS, facts=facts)
               for name in ("scratch", "home", "projects")]  # fmt: skip
    changed = dict(changes)
    if "facts" in changed:
        changed["facts"] = facts | dict(changed["facts"])  # type: ignore[call-overload]
    systems[0] = replace(systems[0], **changed)  # type: ignore[arg-type]
    faults = check_layout(ObservedStorage(tuple(systems), {disk.name: disk for disk in (array, *volumes)})).faults
    return [(fault.kind, fault.location, fault.problem) for fault in faults]


def test_equal_file_systems_have_no_fault() -> None:
    assert find_faults() == []


@pytest.mark.parametrize(("changes", "text"), [
    ({"options": (*OPTIONS[:3], "logbsize=32k")}, "mount option logbsize is logbsize=32k; on 2 of 3 file systems"),
    ({"facts": {"log_unit": "4096"}}, "log_unit is 4096; on 2 of 3 file systems of xfs on equal stripes it is 32768"),
    ({"facts": {"rmapbt": "1"}}, "rmapbt is 1")])  # fmt: skip
def test_setting_of_one_file_system_is_reported(changes: dict[str, object], text: str) -> None:
    ((kind, location, problem),) = find_faults(**changes)
    assert (kind, location) == ("differs from its peers", "/scratch")
    assert text in problem


def test_file_systems_on_other_stripes_may_differ() -> None:
    assert find_faults(width=4 * MIB, facts={"log_unit": "4096"}) == []


def test_small_sectors_on_a_mapped_volume_are_one_fault() -> None:
    ((kind, location, _),) = find_faults(facts={"sector": "512"})
    assert (kind, location) == ("sectors too small", "/scratch")


def test_small_log_buffers_are_one_fault() -> None:
    assert [kind for kind, *_ in find_faults(options=(*OPTIONS[:3], "logbsize=16k"))] == ["mount option"]


@pytest.mark.parametrize(("size", "kinds"), [(8 * TIB, ["array smaller than its members"]), (16 * TIB, [])])
def test_array_below_the_size_of_its_members_is_reported(size: int, kinds: list[str]) -> None:
    array = ObservedDisk("md2", "md", size, level="raid6", data=8, settings={"used_bytes": str(2 * TIB)})
    system = ObservedFileSystem("/data", "xfs", "/dev/md2", 4096, 16 * TIB // 4096, options=OPTIONS)
    faults = check_layout(ObservedStorage((system,), {"md2": array})).faults
    assert [fault.kind for fault in faults if fault.kind != "no spare"] == kinds


def test_read_only_array_is_one_fault() -> None:
    array = ObservedDisk("md2", "md", TIB, level="raid1", settings={"array_state": "readonly", "read_only": "1"})
    kinds = [fault.kind for fault in check_layout(ObservedStorage((), {"md2": array})).faults]
    assert "array read-only" in kinds
    assert "write-protected" not in kinds
