# SPDX-License-Identifier: Apache-2.0
"""Several settings that the same devices lack are one fault: what sets them at a start did not."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from drawn_servers import draw_server
from planted_layout_faults import check_outputs, make_server_outputs, set_queue

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
    assert "; for now: echo 8192 > md/stripe_cache_size; echo 896 > queue/read_ahead_kb; echo mq-" in fault.remedy
