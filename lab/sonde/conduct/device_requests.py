# SPDX-License-Identifier: Apache-2.0
"""Finds direct calls that are larger than a request of the device: the kernel cuts them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.model.operations import TRANSFER_OPS
from sonde.model.plan import Plan
from sonde.model.units import format_bytes, parse_bytes

SYSFS_ROOT = Path("/sys")


@dataclass(frozen=True)
class DeviceLimit:
    """The largest request that a block device accepts, in bytes."""

    device: str
    request_bytes: int


def read_device_limit(directory: Path, sys_path: Path = SYSFS_ROOT) -> DeviceLimit | None:
    """Returns the limit of the block device that is the target, or that is below a directory; None where there is none,
    as on network file systems."""
    try:
        status = os.stat(directory)
        number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
        link = (sys_path / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}").resolve(strict=True)
        for device in (link, link.parent):  # a partition has the queue of its disk
            limit = device / "queue" / "max_sectors_kb"
            if limit.is_file():
                return DeviceLimit(device.name, int(limit.read_text(encoding="ascii")) * 1024)
    except (OSError, ValueError):
        return None
    return None


def find_calls_above_device_limit(plan: Plan, device_limit: DeviceLimit | None) -> Iterator[Mapping[str, Any]]:
    """Yields a finding for each phase with direct calls larger than `device_limit`."""
    for phase in plan.phases if device_limit is not None else ():
        if phase["op"] not in TRANSFER_OPS or plan.is_tree_phase(phase):
            continue
        data = plan.resolve_data(phase)
        transfer = parse_bytes(data["access"]["transfer"])
        if device_limit is None or not data["io"]["direct"] or transfer <= device_limit.request_bytes:
            continue
        requests = -(-transfer // device_limit.request_bytes)
        yield {
            "id": "calls_are_cut",
            "phase": phase["id"],
            "severity": "info",
            "text": f"direct calls of {format_bytes(transfer)} reach {device_limit.device} as {requests} requests "
            "of at most"
            f" {format_bytes(device_limit.request_bytes)}",
            "advice": "calls beyond the device's largest request (queue/max_sectors_kb) save system calls, not"
            " requests",
            "evidence": {
                "transfer_bytes": transfer,
                "request_bytes": device_limit.request_bytes,
                "device": device_limit.device,
            },
        }
