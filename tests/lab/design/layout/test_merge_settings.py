# SPDX-License-Identifier: Apache-2.0
"""Several settings that the same devices lack are one fault: what sets them at a start did not."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from drawn_servers import draw_server
from planted_layout_faults import check_outputs, make_server_outputs, set_queue

from sonde.cli.layout_output import _name_maps
from sonde.design.layout.check import check_layout
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedPath, ObservedStorage

VALUES = {"scheduler": "[none] mq-deadline", "nr_requests": "64", "max_sectors_kb": "1280"}


@pytest.mark.parametrize("drives", [["sda"], ["sdb", "sdc", "sde"]])
def test_settings_of_drives_are_one_fault(drives: Sequence[str]) -> None:
    outputs = make_server_outputs()
    for drive in drives:
        for name, value in VALUES.items():
            set_queue(drive, name, value)(outputs)
    (fault,) = check_outputs(outputs).faults
    assert (fault.kind, fault.location) == ("settings lost", ", ".join(drives))
    assert fault.problem.startswith("3 settings (scheduler, nr_requests, max_sectors_kb) are not those")
    assert "nr_requests is 64; on " in fault.problem
    assert "udev rule" in fault.remedy


def test_one_setting_remains_as_it_is() -> None:
    outputs = make_server_outputs()
    set_queue("sda", "nr_requests", "64")(outputs)
    set_queue("sdb", "scheduler", "[none] mq-deadline")(outputs)
    assert [fault.kind for fault in check_outputs(outputs).faults] == ["differs from its peers"] * 2


def test_planned_settings_of_all_devices_are_one_fault() -> None:
    server = draw_server(Random(4))
    for name, value in VALUES.items():
        for drive in server.drives:
            server.set_queue(drive, f"queue/{name}", value)
    server.set_queue("md0", "queue/read_ahead_kb", "128")
    server.set_queue("md0", "md/stripe_cache_size", "256")
    (fault,) = server.check().faults
    assert fault.kind == "settings lost"
    assert "md0: stripe_cache_size is 256 pages; planned is 8192; read_ahead_kb is 128" in fault.problem
    assert "; for now: echo 8192 > md/stripe_cache_size; echo 4096 > queue/read_ahead_kb; echo mq-" in fault.remedy


def test_differences_of_one_target_are_one_fault() -> None:
    facts = {f"fs-OST000{number}": {"read_cache_enable": value, "writethrough_cache_enable": value}
             for number, value in enumerate("1101")}  # fmt: skip
    targets = tuple(ObservedFileSystem(name, "lustre", facts=values) for name, values in facts.items())
    faults = check_layout(ObservedStorage(targets)).faults
    (fault,) = (each for each in faults if each.kind == "differs from its peers")
    assert fault.location == "fs-OST0002"
    assert fault.attributes == ("read_cache_enable", "writethrough_cache_enable")
    assert "read_cache_enable is 0" in fault.problem
    assert "writethrough_cache_enable is 0" in fault.problem


@pytest.mark.parametrize(("failover", "count"), [("", 1), ("10.1.0.11@o2ib", 1), ("10.1.0.11@o2ib:10.1.0.12@o2ib", 0)])
def test_requests_of_failover_pairs_may_fail_at_once(failover: str, count: int) -> None:
    paths = tuple(
        ObservedPath(name, preferred=True, active=True, adapter=adapter)
        for name, adapter in (("sda", "1"), ("sdb", "2"))
    )
    disk = ObservedDisk("dm-0", "multipath", settings={"features": "0"}, paths=paths)
    target = ObservedFileSystem("fs-OST0000", "lustre", facts={"failover": failover, "flags": "OST no_primnode"})
    kinds = [fault.kind for fault in check_layout(ObservedStorage((target,), {"dm-0": disk})).faults]
    assert kinds.count("no queue without paths") == count


def test_maps_have_the_names_of_their_host() -> None:
    hosts = {host: ObservedStorage((), {"dm-0": ObservedDisk("dm-0", "multipath", settings={"name": name})})
             for host, name in (("mds1", "mdt00"), ("oss1", "ost00"))}  # fmt: skip
    assert _name_maps(hosts, "mds1: dm-0; oss1: dm-0, dm-1") == "mds1: dm-0 (mdt00); oss1: dm-0 (ost00), dm-1"
