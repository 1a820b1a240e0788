# SPDX-License-Identifier: Apache-2.0
"""Findings of many drives that one host adapter has in common are one fault that names the adapter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output

DRIVES = 8


def find_faults(outputs: Mapping[str, str], *kinds: str) -> list[LayoutFault]:
    storage = ObservedStorage()
    for origin, text in outputs.items():
        storage = merge_observations(storage, read_saved_output(text, origin))
    return [fault for fault in check_layout(join_observations(storage)).faults if fault.kind in kinds]


def name_path(host: int, number: int) -> str:
    return f"sd{chr(ord('a') + number)}" if host == 1 else f"sda{chr(ord('a') + number)}"


def print_maps(states: Mapping[tuple[int, int], str]) -> dict[str, str]:
    """Maps of paths by host and number of the drive, with the state of each path, and links of the paths."""
    text, links = "", ""
    for number in range(DRIVES):
        text += f"slot{number} (35000c500a000{number:04}) dm-{number} ACME,DISK\nsize=10T features='1 queue_if_no_path'"
        text += " hwhandler='0' wp=rw\n`-+- policy='service-time 0' prio=50 status=active\n"
        for host in (1, 2):
            if state := states.get((host, number), ""):
                text += f"  |- {host}:0:{number}:0 {name_path(host, number)} 65:{number} {state}\n"
                links += f"/dev/disk/by-path/pci-0000:{host}b:00.0-sas-{number} ../../{name_path(host, number)}\n"
    return {"multipath -ll": text, "links": links}


def make_states(second: str, count: int = DRIVES) -> dict[tuple[int, int], str]:
    """States of sound paths of the first host, and of `count` paths of the second host in one state."""
    sound = "active ready running"
    states = {(host, number): sound for host in (1, 2) for number in range(DRIVES)}
    return states | {(2, number): second for number in range(count)}


def test_maps_without_paths_of_a_lost_adapter_are_one_fault() -> None:
    (fault,) = find_faults(print_maps(make_states("")), "single path", "multipath policy")
    assert fault.kind == "single path"
    assert fault.problem == (
        "all 8 maps of host1 (PCI 0000:1b:00.0) have no other path (slot0, slot1, slot2, slot3 and 4 more)"
    )
    assert "look at the other adapter" in fault.remedy
    assert len(fault.parts) == DRIVES
    assert any("requests wait without end" in text for text in fault.consequences)


def test_some_maps_with_one_path_are_not_of_an_adapter() -> None:
    faults = find_faults(print_maps(make_states("", 4)), "single path")
    assert [fault.location for fault in faults] == ["dm-0", "dm-1", "dm-2", "dm-3"]


def make_silent(*paths: str) -> dict[str, str]:
    return {f"smartctl -H /dev/{path}": f"Smartctl open device: /dev/{path} failed: No such device or address\n"
            for path in paths}  # fmt: skip


def test_silent_paths_of_a_failed_adapter_are_its_consequences() -> None:
    silent = make_silent(*(name_path(2, number) for number in range(DRIVES)))
    states = make_states("failed faulty running")
    kinds = ("path failed", "drive does not answer", "path does not answer", "one adapter for all disks")
    (fault,) = find_faults({**print_maps(states), **silent}, *kinds)
    assert (fault.kind, fault.location) == ("path failed", "host2 (PCI 0000:2b:00.0)")
    assert any(text.startswith("sdaa, sdab, sdac") and "smartctl -H has no answer" in text
               for text in fault.consequences)  # fmt: skip


def test_silent_path_is_not_replaced_like_a_drive() -> None:
    (fault,) = find_faults({**print_maps(make_states("active ready running")), **make_silent("sdaa")},
                           "drive does not answer", "path does not answer")  # fmt: skip
    assert (fault.kind, fault.location) == ("path does not answer", "sdaa")
    assert "--replace" not in fault.remedy


def test_drive_that_is_silent_on_all_paths_stays_a_drive_fault() -> None:
    outputs = {**print_maps(make_states("active ready running")), **make_silent("sdaa", "sda")}
    (fault,) = find_faults(outputs, "drive does not answer", "path does not answer")
    assert (fault.kind, fault.location) == ("drive does not answer", "sda, sdaa")


@pytest.mark.parametrize(("count", "location"), [(DRIVES, "host2 (PCI 0000:2b:00.0)"), (3, "dm-0 sdaa, dm-1")])
def test_failed_paths_of_all_drives_name_their_adapter(count: int, location: str) -> None:
    (fault,) = find_faults(print_maps(make_states("failed faulty running", count)), "path failed")
    assert fault.location.startswith(location)
    assert ("all 8 paths" in fault.problem) == (count == DRIVES)


def print_pool(errors: Sequence[int]) -> dict[str, str]:
    """A pool of drives that lie at two hosts in turn, with counts of checksum errors."""
    rows = "".join(f"\t    sd{chr(ord('a') + number)}  ONLINE  0 0 {count}\n" for number, count in enumerate(errors))
    status = ("  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n\ttank  ONLINE  0 0 0\n"
              f"\t  raidz2-0  ONLINE  0 0 0\n{rows}\nerrors: No known data errors\n")  # fmt: skip
    drives = [
        {"name": name_path(1, number), "type": "disk", "size": 10**13, "hctl": f"{number % 2}:0:{number}:0"}
        for number in range(len(errors))
    ]
    return {"zpool status": status, "lsblk": json.dumps({"blockdevices": drives})}


def test_errors_of_all_drives_of_an_adapter_are_one_fault() -> None:
    (fault,) = find_faults(print_pool([0, 59, 0, 28, 0, 20, 0, 6]), "errors of a drive", "errors of an adapter")
    assert (fault.kind, fault.location) == ("errors of an adapter", "tank host1")
    assert fault.problem == (
        "4 of the 4 drives at host1 have counted 113 CKSUM errors (sdb, sdd, sdf, sdh); no drive of another adapter"
        " has any"
    )
    assert "replace no drive before" in fault.remedy


@pytest.mark.parametrize("errors", [[0, 59, 0, 28, 0, 0, 0, 0], [7, 59, 0, 28, 0, 20, 0, 6]])
def test_errors_of_several_adapters_stay_separate(errors: list[int]) -> None:
    faults = find_faults(print_pool(errors), "errors of a drive", "errors of an adapter")
    assert [fault.kind for fault in faults] == ["errors of a drive"] * sum(count > 0 for count in errors)


@pytest.mark.parametrize(("values", "locations"), [
    (("8", "64"), ["host1"]), (("64", "8"), ["host2"]), (("8", "8"), [])])  # fmt: skip
def test_setting_of_all_paths_of_an_adapter_names_it(values: tuple[str, str], locations: list[str]) -> None:
    lines = "".join(f"/sys/block/{name_path(host, number)}/device/queue_depth:{values[host - 1]}\n"
                    for host in (1, 2) for number in range(DRIVES))  # fmt: skip
    faults = find_faults(print_maps(make_states("active ready running")) | {"grep": lines}, "differs from its peers")
    assert [fault.location for fault in faults] == locations
    for fault in faults:
        assert "queue_depth is 8 on all 8 paths of host" in fault.problem
        assert len(fault.parts) == DRIVES


def test_short_requests_of_an_adapter_are_one_fault() -> None:
    lines = "".join(f"/sys/block/{name_path(host, number)}/queue/max_sectors_kb:{256 if host == 2 else 1024}\n"
                    for host in (1, 2) for number in range(DRIVES))  # fmt: skip
    outputs = print_maps(make_states("active ready running")) | {"grep": lines}
    (fault,) = find_faults(outputs, "unequal paths", "differs from its peers")
    assert (fault.kind, fault.location) == ("unequal paths", "host2")


def test_firmware_of_a_controller_is_one_fault_of_its_ports() -> None:
    text, rows = "", []
    for number in range(3):
        text += f"lun{number} (3600a098000a000{number}000000000000abcd) dm-{number} ACME,LUN\nsize=10T"
        text += " features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
        for target, priority in ((0, 50), (1, 10)):
            text += f"|-+- policy='service-time 0' prio={priority} status={'enabled' if target else 'active'}\n"
            for host in (1, 2):
                name = f"sd{'ab'[host - 1]}{'cd'[target]}{'xyz'[number]}"
                text += f"| |- {host}:0:{target}:{number} {name} 65:{number} active ready running\n"
                rows.append({"kname": name, "name": name, "type": "disk", "size": 10**13, "rev": f"8.7{2 - target}"})
    outputs = {"multipath": text, "lsblk": json.dumps({"blockdevices": rows})}
    (fault,) = find_faults(outputs, "differs from its peers")
    assert fault.location == "1:0:1, 2:0:1"
    assert fault.problem.startswith("rev is 8.71 on all 6 paths by 1:0:1, 2:0:1, 8.72 on those by other ports")


@pytest.mark.parametrize(("errors", "text"), [
    ([7, 59, 3, 28, 5, 20, 1, 6], "all 8 drives of raidz2-0 have counted 129 CKSUM errors (sda, sdb, sdc, sdd and 4"),
    ([7, 59, 3, 28, 5, 20, 1, 0], "7 of the 8 drives of raidz2-0 have counted 123 CKSUM errors (sda, sdb, sdc, sdd"),
])  # fmt: skip
def test_errors_of_all_drives_of_a_vdev_are_one_fault(errors: list[int], text: str) -> None:
    (fault,) = find_faults(print_pool(errors), "errors of a drive", "errors of a vdev")
    assert (fault.kind, fault.location) == ("errors of a vdev", "tank raidz2-0")
    assert fault.problem.startswith(text)
    assert "backplane" in fault.remedy
    assert "memory" in fault.remedy


def test_errors_of_all_vdevs_are_one_fault() -> None:
    outputs = print_pool([7, 9, 3, 28])
    outputs["zpool status"] = outputs["zpool status"].replace("\t    sdc", "\t  raidz2-1  ONLINE  0 0 0\n\t    sdc")
    (fault,) = find_faults(outputs, "errors of a drive", "errors of a vdev")
    assert "all 4 drives of raidz2-0 and raidz2-1" in fault.problem
