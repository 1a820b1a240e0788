# SPDX-License-Identifier: Apache-2.0
"""Write-back caches on one drive over RAID, and datasets that differ from their peers, are reported."""

from __future__ import annotations

import pytest

from sonde.design.layout.check_cache_redundancy import find_cache_faults
from sonde.design.layout.check_dataset_peers import find_dataset_differences
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output

CACHE = "vg-work: 0 8192 cache 253:1 253:0 253:2 2048 2 metadata2 {} smq 0\n"
WRITECACHE = "vg-work: 0 8192 writecache s 253:2 253:0 4096 0\n"


def find_cached(table: str, cache_level: str, origin_level: str = "raid6") -> list[LayoutFault]:
    devices = {
        "nvme1n1": ObservedDisk("nvme1n1"), "md1": ObservedDisk("md1", "md", level=cache_level),
        "md0": ObservedDisk("md0", "md", level=origin_level),
        "vg-work": ObservedDisk("vg-work", "lvm"),
        "vg-cdata": ObservedDisk("vg-cdata", "lvm", members=("md1" if cache_level else "nvme1n1",),
                                 settings={"number": "253:0"}),
        "vg-corig": ObservedDisk("vg-corig", "lvm", members=("md0",), settings={"number": "253:2"}),
    }  # fmt: skip
    storage = merge_observations(ObservedStorage(disks=devices), read_saved_output(table, "dmsetup table"))
    return [each for each in find_cache_faults(join_observations(storage)) if isinstance(each, LayoutFault)]


@pytest.mark.parametrize("table", [CACHE.format("writeback"), WRITECACHE])
def test_write_cache_on_one_drive_is_reported(table: str) -> None:
    (fault,) = find_cached(table, "")
    assert (fault.kind, fault.location) == ("write cache without redundancy", "vg-work")
    assert fault.problem.startswith("its write-back cache lies on nvme1n1 alone, its data on md0")


@pytest.mark.parametrize(("table", "cache_level", "origin_level"), [
    (CACHE.format("writethrough"), "", "raid6"), (CACHE.format("writeback"), "raid1", "raid6"),
    (CACHE.format("writeback"), "", "raid0")])  # fmt: skip
def test_cache_that_adds_no_risk_is_sound(table: str, cache_level: str, origin_level: str) -> None:
    assert find_cached(table, cache_level, origin_level) == []


def find_differences(*values: str) -> list[LayoutFault]:
    pools = [ObservedFileSystem(f"pool{number}", "zfs", facts={f"recordsize@pool{number}/ost{number}": value})
             for number, value in enumerate(values)]  # fmt: skip
    return [each for each in find_dataset_differences(pools) if isinstance(each, LayoutFault)]


@pytest.mark.parametrize(("values", "text"), [
    (("1M", "128K"), "recordsize is 1M on pool0/ost0, 128K on pool1/ost1"),
    (("1M", "1M", "128K"), "recordsize is 128K on pool2/ost2; on 2 of 3 datasets pool*/ost* it is 1M"),
])  # fmt: skip
def test_dataset_with_another_record_size_is_reported(values: tuple[str, ...], text: str) -> None:
    (fault,) = find_differences(*values)
    assert fault.problem == text


def test_equal_or_mixed_datasets_are_sound() -> None:
    assert find_differences("1M", "1M") == find_differences("1M", "16K", "128K", "16K") == []
