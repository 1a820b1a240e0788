# SPDX-License-Identifier: Apache-2.0
"""Loop devices that stand for LUNs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_TOOLS = ("losetup", "sgdisk", "partx", "wipefs", "lsblk", "mkfs.xfs", "mke2fs", "dumpe2fs", "xfs_info")


def can_loop() -> str:
    """Why loop devices with partitions cannot be made here, or empty."""
    if os.geteuid() != 0:
        return "loop devices need root"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [tool for tool in _TOOLS if shutil.which(tool, path=path) is None]
    if lacking:
        return f"{', '.join(lacking)} is not installed"
    if not Path("/dev/loop-control").exists():
        return "the kernel has no loop devices"
    if " /dev devtmpfs " not in Path("/proc/mounts").read_text(encoding="utf-8"):
        return "/dev is no devtmpfs (a container), so that partitions get no names"
    return ""


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Makes loop devices of so many bytes each; all are gone afterwards, with what was mounted on them."""
    reason = can_loop()
    if reason:
        pytest.skip(reason)
    loop_devices: list[str] = []

    def make(size: int) -> str:
        path = tmp_path / f"disk{len(loop_devices)}"
        with path.open("wb") as file:
            file.truncate(size)
        result = subprocess.run(
            ["losetup", "--find", "--show", "--partscan", str(path)], capture_output=True, text=True, check=False
        )
        if result.returncode:
            pytest.skip(f"no loop device can be made: {result.stderr.strip()}")
        loop_devices.append(result.stdout.strip())
        return loop_devices[-1]

    try:
        yield make
    finally:
        mounted = [line.split()[:2] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        for device, mount_point in reversed(mounted):
            if any(device == loop_device or device.startswith(f"{loop_device}p") for loop_device in loop_devices):
                subprocess.run(["umount", mount_point], check=False)
        for loop_device in loop_devices:
            subprocess.run(["losetup", "--detach", loop_device], check=False)
