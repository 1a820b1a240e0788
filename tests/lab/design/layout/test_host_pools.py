# SPDX-License-Identifier: Apache-2.0
"""ZFS pools of several hosts: properties that should be alike, and protection against two imports."""

from __future__ import annotations

import pytest

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage, ObservedVdev


def make_host(number: int, compressions: tuple[str, str], multihost: str = "on", wwn: str = "") -> ObservedStorage:
    """A server with two pools, each with a dataset of a target, on one drive."""
    drive = ObservedDisk("sda", settings={"wwn": wwn or f"0x5000c50000000{number}00", "name": "sda"})
    pools = [
        ObservedFileSystem(
            f"pool{2 * number + index}", "zfs", vdevs=(ObservedVdev("sda", "drive", "", "", "ONLINE"),),
            facts={f"compression@pool{2 * number + index}/ost{index}": compression, "multihost": multihost},
        )
        for index, compression in enumerate(compressions)
    ]  # fmt: skip
    return ObservedStorage(tuple(pools), {"sda": drive})


def find_faults(hosts: dict[str, ObservedStorage]) -> list[tuple[str, str, str]]:
    kinds = ("differs from its peers", "no protection against two imports")
    return [(fault.kind, fault.location, fault.problem) for fault in check_hosts(hosts).faults if fault.kind in kinds]


def test_property_of_one_dataset_of_two_hosts_is_reported_once() -> None:
    hosts = {"oss1": make_host(0, ("lz4", "lz4")), "oss2": make_host(1, ("lz4", "off"))}
    ((kind, location, problem),) = find_faults(hosts)
    assert (kind, location) == ("differs from its peers", "oss2: pool3/ost1")
    assert "compression is off" in problem
    assert "on 3 of 4 datasets" in problem


def test_equal_pools_of_two_hosts_have_no_fault() -> None:
    assert find_faults({"oss1": make_host(0, ("lz4", "lz4")), "oss2": make_host(1, ("lz4", "lz4"))}) == []


@pytest.mark.parametrize(("multihost", "wwn", "count"), [
    ("off", "0x5000c50000000000", 1), ("on", "0x5000c50000000000", 0), ("off", "0x5000c50000000777", 0)])  # fmt: skip
def test_pools_without_multihost_on_shared_drives_are_one_fault(multihost: str, wwn: str, count: int) -> None:
    first = make_host(0, ("lz4", "lz4"), multihost)
    partner = ObservedStorage((), {"sdb": ObservedDisk("sdb", settings={"wwn": wwn, "name": "sdb"})})
    faults = find_faults({"oss1": first, "oss2": partner})
    assert [(kind, location) for kind, location, _ in faults] == [
        ("no protection against two imports", "oss1: pool0, oss1: pool1")
    ] * count
