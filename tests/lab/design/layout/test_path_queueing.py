# SPDX-License-Identifier: Apache-2.0
"""How long maps queue requests without a path, on servers with and without a failover partner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedFileSystem, merge_observations
from sonde.design.layout.live.saved_output import read_collector_output, read_saved_output

HEAD = "name failback queueing paths dm-st  write_prot\n"
PAIR = "10.1.0.11@o2ib:10.1.0.12@o2ib"


def print_maps(count: int) -> str:
    return "".join(
        f"lun{number} (3600a098000b0f4c20000{number}5f8e2a1c00) dm-{number} ACME,LUN\n"
        "size=10T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
        "`-+- policy='service-time 0' prio=50 status=active\n"
        f"  |- 1:0:0:{number} sd{'abcd'[number]} 8:{number} active ready running\n"
        f"  `- 2:0:0:{number} sd{'efgh'[number]} 8:{number}2 active ready running\n"
        for number in range(count)
    )


def check(queueing: str, failover: str = PAIR, mounts: Mapping[str, str] | None = None) -> LayoutCheck:
    """A server with two maps that queue that long and have those mount points, and the label of a target with its
    failover nodes."""
    storage = read_saved_output(print_maps(2), "multipath")
    if queueing:
        rows = "".join(f"lun{number} immediate {queueing} 2 active rw\n" for number in range(2))
        storage = merge_observations(storage, read_saved_output(HEAD + rows, "multipathd"))
    disks = {name: replace(disk, settings={**disk.settings, "mountpoint": (mounts or {}).get(name, "")})
             for name, disk in storage.disks.items()}  # fmt: skip
    target = ObservedFileSystem("fs-OST0000", "lustre", facts={"failover": failover, "flags": "OST no_primnode"})
    return check_layout(join_observations(replace(storage, disks=disks, file_systems=(target,))))


@pytest.mark.parametrize("queueing", ["on", "-"])
def test_endless_queue_of_a_failover_pair_is_one_fault(queueing: str) -> None:
    (fault,) = check(queueing).faults
    assert (fault.kind, fault.location) == ("queue without end", "dm-0, dm-1")


@pytest.mark.parametrize("queueing", ["12 chk", "55 sec", "off"])
def test_limited_queue_of_a_failover_pair_is_sound(queueing: str) -> None:
    assert not check(queueing).faults
    assert not check(queueing).unknown


def test_map_that_counts_down_does_not_differ_from_its_peers() -> None:
    rows = "".join(f"lun{number} immediate {text} 2 active rw\n"
                   for number, text in enumerate(("25 sec", "12 chk", "12 chk", "12 chk")))  # fmt: skip
    storage = merge_observations(read_saved_output(print_maps(4), "multipath"),
                                 read_saved_output(HEAD + rows, "multipathd"))  # fmt: skip
    assert not check_layout(join_observations(storage)).faults


def test_endless_queue_without_a_partner_is_sound() -> None:
    assert not check("on", failover="").faults


@pytest.mark.parametrize("queueing", ["on", ""])
def test_endless_queue_of_a_system_drive_is_sound(queueing: str) -> None:
    result = check(queueing, mounts={"dm-0": "/", "dm-1": ""})
    assert [fault.location for fault in result.faults] == ["dm-1"] * bool(queueing)
    assert ["how long lun1 queue" in text for text in result.unknown] == [True] * (not queueing)


def test_queue_of_unknown_length_is_not_examined() -> None:
    result = check("")
    assert not result.faults
    assert result.unknown == ("how long lun0, lun1 queue without a path: multipathd show maps status prints it",)
    assert not check("", failover="").unknown


def test_host_without_maps_has_an_empty_table() -> None:
    text = f"=== sonde layout collect: multipathd show maps status ===\n{HEAD}"
    assert not read_collector_output(text, "host").unknown
