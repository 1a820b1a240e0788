# SPDX-License-Identifier: Apache-2.0
"""A drive of another class among equal ones is one finding: rotation rate, transport, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedPath, ObservedStorage

SMART = """smartctl 7.4 2023-08-01 r5530 [x86_64-linux-5.14.0] (local build)
Rotation Rate:        {rate}
SMART Health Status: OK
Current Drive Temperature:     31 C
Elements in grown defect list: 0
"""
LINK = "/sys/block/{name}/device/../../../phy-1:0:1/sas_phy/phy-1:0:1/negotiated_linkrate:{rate} Gbit\n"


def find_faults(odd_rate: str, transport: str = "sas", link: str = "12.0") -> list[LayoutFault]:
    """The faults of a server whose drive sdd has another rotation rate, transport and rate of its link."""
    outputs = make_server_outputs()
    drives = json.loads(outputs["lsblk"])["blockdevices"]
    lines = ""
    for drive in drives:
        name = drive["name"]
        is_odd = name == "sdd"
        drive["tran"] = transport if is_odd else "sas"
        outputs[f"smartctl -a /dev/{name}"] = SMART.format(rate=odd_rate if is_odd else "7200 rpm")
        lines += LINK.format(name=name, rate=link if is_odd else "12.0")
    outputs["lsblk"] = json.dumps({"blockdevices": drives})
    outputs["links"] = lines
    return list(check_outputs(outputs).faults)


@pytest.mark.parametrize(("transport", "link", "count"), [("sas", "12.0", 0), ("sata", "6.0", 2)])
def test_slower_drive_of_an_array_is_one_finding(transport: str, link: str, count: int) -> None:
    (fault,) = find_faults("5400 rpm", transport, link)
    assert (fault.kind, fault.location) == ("differs from its peers", "sdd")
    assert fault.problem == "rotation rate is 5400 rpm; on 9 of 10 members of md5 it is 7200 rpm"
    assert fault.remedy == "replace it by a drive of the class of the others"
    assert len(fault.consequences) == count


def test_sata_drive_explains_its_slower_link() -> None:
    (fault,) = find_faults("7200 rpm", "sata", "6.0")
    assert fault.problem.startswith("transport is sata")
    assert len(fault.consequences) == 1


def test_timeout_does_not_follow_from_the_class() -> None:
    outputs = make_server_outputs()
    for name in [drive["name"] for drive in json.loads(outputs["lsblk"])["blockdevices"]]:
        outputs[f"smartctl -a /dev/{name}"] = SMART.format(rate="5400 rpm" if name == "sdd" else "7200 rpm")
        outputs[f"{name} timeout"] = f"/sys/block/{name}/device/timeout:{60 if name == 'sdd' else 30}\n"
    assert {fault.attributes for fault in check_outputs(outputs).faults} == {("rotation_rate",), ("timeout",)}


@pytest.mark.parametrize("rate", ["7200 rpm", "10000 rpm"])
def test_equal_or_faster_drive_is_sound(rate: str) -> None:
    assert not find_faults(rate)


def make_array(name: str, rates: Sequence[str], *, with_maps: bool = False) -> dict[str, ObservedDisk]:
    """An array of drives of equal size with these rotation rates, each below a map of two paths if `with_maps`."""
    drives = {f"{name}-{number}": rate for number, rate in enumerate(rates)}
    disks: dict[str, ObservedDisk] = {}
    for drive, rate in drives.items():
        names = (f"{drive}-a", f"{drive}-b") if with_maps else (drive,)
        disks |= {
            each: ObservedDisk(each, size=10**13, flash=False, settings={"rotation_rate": rate}) for each in names
        }
        if with_maps:
            paths = tuple(ObservedPath(each, None, True, adapter=each[-1]) for each in names)
            disks[drive] = ObservedDisk(drive, "multipath", 10**13, paths=paths, flash=False)
    return disks | {name: ObservedDisk(name, "md", members=tuple(drives), level="raid6", data=len(rates) - 2)}


def list_slow_drives(disks: dict[str, ObservedDisk]) -> list[str]:
    faults = check_layout(ObservedStorage(disks=disks)).faults
    return [fault.location for fault in faults if "rotation_rate" in fault.attributes]


@pytest.mark.parametrize("with_maps", [False, True])
def test_slower_drive_is_reported_also_below_a_map(*, with_maps: bool) -> None:
    rates = ["7200 rpm"] * 5 + ["5400 rpm"]
    assert list_slow_drives(make_array("md0", rates, with_maps=with_maps)) == ["md0-5"]


def test_another_array_of_slower_drives_is_sound() -> None:
    assert not list_slow_drives(make_array("md0", ["7200 rpm"] * 12) | make_array("md1", ["5400 rpm"] * 4))
