# SPDX-License-Identifier: Apache-2.0
"""Written attributes are compared with those devices only that outputs connect to the planned file system."""

from __future__ import annotations

import pytest

from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage, ObservedVdev
from sonde.design.layout.observe_written import (
    PlanView,
    list_disks_below,
    observe_array_spares,
    observe_partitions,
)
from sonde.design.layout.written_attributes import WrittenAttribute

_MIB = 2**20


@pytest.mark.parametrize(("spares", "agrees"), [("1", True), ("0", False)])
def test_spares_of_one_server_are_compared(spares: str, agrees: bool) -> None:
    written = tuple(
        WrittenAttribute("mdadm", option, value, number)
        for number, name in enumerate(("g0", "g1"))
        for option, value in (("--create", f"/dev/md/{name}"), ("--level", "6"), ("--spare-devices", "1"))
    )
    array = ObservedDisk("md127", "md", level="raid6", settings={"array_name": "g1", "spares": spares})
    view = PlanView(ObservedStorage(disks={"md127": array}), (), written)
    (observation,) = observe_array_spares(view, ("mdadm", "--spare-devices"))
    assert (observation.location, observation.observed, observation.planned) == ("md127", spares, "1")
    assert observation.agrees is agrees


def test_drives_of_a_pool_are_recognized_by_links() -> None:
    name = "pci-0000:3b:00.0-sas-phy0-lun-0"
    disks = {"sda": ObservedDisk("sda", settings={"links": f"/dev/disk/by-path/{name}"}), "sdb": ObservedDisk("sdb")}
    pool = ObservedFileSystem("scratch", "zfs", vdevs=(ObservedVdev(name, "drive", "", "raidz2-0", "ONLINE"),))
    assert [disk.name for disk in list_disks_below(ObservedStorage((pool,), disks), (pool,))] == ["sda"]


def test_partition_of_a_map_has_the_number_of_its_name() -> None:
    written = (WrittenAttribute("sgdisk", "--new", "1:2048k:+64M", 0),)
    disk = ObservedDisk("dm-4", "part", 64 * _MIB, 2 * _MIB, "dm-0", settings={"name": "lun0-part1"})
    view = PlanView(ObservedStorage(disks={"dm-4": disk}), (), written)
    (observation,) = observe_partitions(view, ("sgdisk", "--new"))
    assert observation.agrees
