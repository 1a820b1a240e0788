# SPDX-License-Identifier: Apache-2.0
"""Planned file systems that are not mounted: no other file system is compared in their place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from array_host import PrintedArray, describe_arrays, print_detail, print_links

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.system import make_system

ROOT = [{"target": "/", "source": "/dev/nvme0n1p3", "fstype": "xfs", "options": "rw,relatime,logbsize=32k"},
        {"target": "/home", "source": "/dev/nvme0n1p4", "fstype": "ext4", "options": "rw,noatime"}]  # fmt: skip


def describe(kind: str = "xfs") -> dict[str, Any]:
    """A host with one array of six drives and a spare, and its file system."""
    document = describe_arrays()
    document["raid_groups"] = document["raid_groups"][:1]
    document["volumes"] = []
    document["file_systems"] = [{"id": "scratch", "kind": kind, "device": "md0", "purpose": "scratch"}]
    document["mounts"] = [{"id": "m", "file_system": "scratch", "path": "/scratch", "on": "host"}]
    return document


def find_faults(outputs: Mapping[str, str], document: dict[str, Any]) -> list[LayoutFault]:
    plan, storage = plan_layout(make_system(document, "system.toml")), ObservedStorage()
    for origin, text in outputs.items():
        storage = merge_observations(storage, read_saved_output(text, origin))
    layout = plan.get_layout("scratch")
    written = list_written_attributes(plan.system, layout)
    return list(check_layout(join_observations(storage), layout, (), ["/scratch"], written).faults)


def print_unmounted_host(label: str = "scratch", chunk_kib: int = 128) -> dict[str, str]:
    """The host with its array, on which nothing is mounted, and the mounts of the operating system."""
    array = {"name": "md0", "kname": "md0", "type": "raid6", "size": 8 * 10**12, "fstype": "xfs", "label": label}
    return {
        "links": print_links(), "detail": print_detail(PrintedArray("md0", range(6), [12], chunk_kib=chunk_kib)),
        "lsblk": json.dumps({"blockdevices": [array]}), "findmnt": json.dumps({"filesystems": ROOT}),
    }  # fmt: skip


@pytest.mark.parametrize("label", ["scratch", ""])
def test_file_system_that_is_not_mounted_is_one_fault(label: str) -> None:
    (fault,) = find_faults(print_unmounted_host(label), describe())
    assert (fault.kind, fault.location) == ("not mounted", "scratch")
    assert "it is on md0" in fault.problem
    assert "planned is /scratch" in fault.problem


def test_arrays_are_compared_while_no_file_system_is_mounted() -> None:
    problems = [fault.problem for fault in find_faults(print_unmounted_host(chunk_kib=64), describe())]
    assert len(problems) == 2
    assert any("one member holds 64 KiB" in problem for problem in problems)


def test_root_file_system_is_not_compared_with_the_plan() -> None:
    outputs = print_unmounted_host()
    del outputs["lsblk"]
    assert find_faults(outputs | {"findmnt": json.dumps({"filesystems": ROOT[:1]})}, describe()) == []


def test_pool_that_is_not_imported_is_reported() -> None:
    rows = [{"name": f"sd{letter}", "kname": f"sd{letter}", "type": "disk", "size": 2 * 10**12, "rota": True,
             "children": [{"name": f"sd{letter}1", "kname": f"sd{letter}1", "type": "part", "start": 2048,
                           "size": 10**12, "fstype": "zfs_member", "label": "scratch"}]}
            for letter in "abcdef"]  # fmt: skip
    (fault,) = find_faults({"lsblk": json.dumps({"blockdevices": rows})}, describe("zfs"))
    assert (fault.kind, fault.location) == ("pool not imported", "scratch")
    assert "6 devices hold parts of it" in fault.problem


def test_array_that_is_not_assembled_explains_the_absent_mount() -> None:
    rows = [{"name": f"sd{letter}", "kname": f"sd{letter}", "type": "disk", "size": 2 * 10**12, "rota": True,
             "fstype": "linux_raid_member", "label": "host:md0", "uuid": "1-2-3-4"} for letter in "abcdef"]  # fmt: skip
    home = {"name": "sdz", "kname": "sdz", "type": "disk", "size": 10**12, "fstype": "xfs", "label": "home"}
    mount = {"target": "/home", "source": "/dev/sdz", "fstype": "xfs", "options": "rw,noatime"}
    (fault,) = find_faults({
        "links": print_links(), "lsblk": json.dumps({"blockdevices": [*rows, home]}),
        "findmnt": json.dumps({"filesystems": [mount]}),
    }, describe())  # fmt: skip
    assert (fault.kind, fault.location) == ("array not assembled", "/dev/md0")
    assert "6 of its 6 drives are there" in fault.problem
    assert fault.consequences == ("scratch: nothing is mounted at /scratch, and no device holds it",)
