# SPDX-License-Identifier: Apache-2.0
"""Logs of XFS on devices that are larger than XFS allows a log to be."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.design.layout.geometry import MIB
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.model.errors import UserError
from sonde.model.system import make_system


def describe_host(**more: str) -> dict[str, Any]:
    """A host with a RAID 6 and a mirror of flash for the log."""
    return {
        "schema": "sonde-system/2", "id": "logs", "nodes": [{"id": "host"}],
        "drives": [
            {"id": "d[0-9]", "kind": "hdd", "server": "host", "capacity": "2 TB", "device": "/dev/disk/by-path/d[0-9]"},
            {"id": "f[0-1]", "kind": "ssd", "server": "host", "capacity": "960 GB",
             "device": "/dev/disk/by-path/f[0-1]"}],
        "raid_groups": [
            {"id": "data", "level": "6", "data": 8, "parity": 2, "segment": "128 KiB", "drives": "d[0-9]"},
            {"id": "journal", "level": "1", "data": 1, "parity": 1, "drives": "f[0-1]"}],
        "file_systems": [{"id": "scratch", "kind": "xfs", "device": "data", "log": "journal", **more}],
    }  # fmt: skip


def test_log_on_a_larger_device_has_the_largest_size() -> None:
    plan = plan_layout(make_system(describe_host(), "logs.toml"))
    layout = plan.get_layout("scratch")
    assert layout.log_size == 2038 * MIB
    (text,) = [each for each in make_layout_scripts(plan).values() if "mkfs.xfs" in each]
    assert "size=521728b" in text


def test_log_size_beyond_the_limit_of_xfs_is_rejected() -> None:
    with pytest.raises(UserError, match="log_size of 4 GiB, and XFS allows 2038 MiB"):
        plan_layout(make_system(describe_host(log_size="4 GiB"), "logs.toml"))
