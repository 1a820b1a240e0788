# SPDX-License-Identifier: Apache-2.0
"""A run says that its direct calls are larger than the requests of the device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sonde.conduct.device_requests import DeviceLimit, find_calls_above_device_limit, read_device_limit
from sonde.model.plan import Plan

DISK = DeviceLimit("sda", 1280 << 10)


def plan_of(transfer: str, **io: Any) -> Plan:
    data = {"access": {"transfer": transfer}, "io": io}
    phases = [{"id": "w", "op": "write"}, {"id": "s", "op": "stat"}]
    return Plan.from_document({"id": "p", "target": {"path": "/x"}, "data": data, "phases": phases}, "test")


def test_large_direct_calls_are_reported_with_their_requests() -> None:
    (finding,) = find_calls_above_device_limit(plan_of("16MiB", direct=True), DISK)
    assert finding["phase"] == "w"
    assert finding["text"] == "direct calls of 16 MiB reach sda as 13 requests of at most 1.25 MiB"


@pytest.mark.parametrize(
    ("plan", "limit"),
    [(plan_of("16MiB"), DISK), (plan_of("1MiB", direct=True), DISK), (plan_of("16MiB", direct=True), None)],
    ids=["buffered", "small", "no device"],
)
def test_other_calls_have_no_finding(plan: Plan, limit: DeviceLimit | None) -> None:
    assert list(find_calls_above_device_limit(plan, limit)) == []


def test_partition_has_the_limit_of_its_disk(tmp_path: Path) -> None:
    number = os.stat(tmp_path).st_dev
    disk = tmp_path / "devices" / "sdb"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue" / "max_sectors_kb").write_text("512\n")
    (disk / "sdb1").mkdir()
    links = tmp_path / "dev" / "block"
    links.mkdir(parents=True)
    (links / f"{os.major(number)}:{os.minor(number)}").symlink_to(disk / "sdb1")
    assert read_device_limit(tmp_path, tmp_path) == DeviceLimit("sdb", 512 << 10)
    assert read_device_limit(tmp_path, tmp_path / "nothing") is None
