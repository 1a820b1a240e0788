# SPDX-License-Identifier: Apache-2.0
"""Plants real faults in a file system of its own on a loop device, and takes them out again. Needs root and the control
groups of version 1 for devices, memory and processors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from free_space import scatter_free_space
from real_trials import RealFault

_CONTROL_GROUPS_ROOT = Path("/sys/fs/cgroup")
_GROUP_NAME = "sonde-real-faults"
_IMAGE_BYTES, _WRITTEN_BYTES, _UNMOUNT_TRIES = 8 << 30, 8 << 20, 20
_FREE_PERCENT, _BLOCK_BYTES = 6, 4096
_SPIN_PROGRAM = "while True: pass"
_LOAD_PROGRAM = """
import mmap, os, sys
buffer = mmap.mmap(-1, 1 << 20)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
while True:
    for position in range(64):
        os.pwrite(file, buffer, position << 20)
"""


def find_missing_need() -> str:
    """Returns why no fault can be planted here; empty when it can be."""
    if os.geteuid() != 0:
        return "root is needed"
    for name in ("blkio/blkio.throttle.read_bps_device", "memory/memory.limit_in_bytes", "cpu/cpu.cfs_quota_us"):
        if (
            not (_CONTROL_GROUPS_ROOT / name).exists()
            and not (_CONTROL_GROUPS_ROOT / Path(name).parent / "tasks").exists()
        ):
            return f"{_CONTROL_GROUPS_ROOT / name} does not exist"
    return ""


def _run_command(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def _unmount(directory: Path) -> None:
    """Unmounts; an engine that was interrupted may need some seconds to close its files."""
    for _ in range(_UNMOUNT_TRIES):
        if subprocess.run(["umount", str(directory)], capture_output=True, timeout=120, check=False).returncode == 0:
            return
        time.sleep(0.5)
    _run_command("umount", str(directory))


@dataclass(frozen=True)
class LoopFileSystem:
    """An ext4 file system on a loop device."""

    device: str
    directory: Path

    @property
    def number(self) -> str:
        """Major and minor number, as control groups name the device."""
        status = os.stat(self.device).st_rdev
        return f"{os.major(status)}:{os.minor(status)}"


@contextmanager
def open_loop_file_system(folder: Path, image_bytes: int = _IMAGE_BYTES) -> Iterator[LoopFileSystem]:
    """Makes a file system in an image below `folder`, and removes mount, device and image afterwards.

    The image is written, not only allocated, so a block that is used for the first time is as fast as any other.
    """
    image, directory = folder / "image", folder / "mount"
    directory.mkdir()
    with image.open("wb") as file:
        for _ in range(image_bytes // _WRITTEN_BYTES):
            file.write(bytes(_WRITTEN_BYTES))
        os.fsync(file.fileno())
    device = _run_command("losetup", "--find", "--show", "--direct-io=on", str(image))
    try:
        options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        _run_command("mkfs.ext4", "-q", "-m", "0", "-E", options, device)
        _run_command("mount", device, str(directory))
        try:
            yield LoopFileSystem(device, directory)
        finally:
            _unmount(directory)
    finally:
        _run_command("losetup", "--detach", device)
        image.unlink()


@contextmanager
def limit_device(device_number: str, rate_unit: str, max_rate: int) -> Iterator[None]:
    """Limits a device (major:minor) for all programs and for what the kernel writes later: `max_rate` "bps" or "iops"
    each way."""
    limits = [
        _CONTROL_GROUPS_ROOT / "blkio" / f"blkio.throttle.{side}_{rate_unit}_device" for side in ("read", "write")
    ]
    try:
        for limit in limits:
            limit.write_text(f"{device_number} {max_rate}\n")
        yield
    finally:
        for limit in limits:
            limit.write_text(f"{device_number} 0\n")


@contextmanager
def _plant_no_read_ahead(system: LoopFileSystem) -> Iterator[None]:
    before = _run_command("blockdev", "--getra", system.device)
    _run_command("blockdev", "--setra", "0", system.device)
    try:
        yield
    finally:
        _run_command("blockdev", "--setra", before, system.device)


@contextmanager
def _join_group(controller: str, value_by_control_file: Mapping[str, int]) -> Iterator[None]:
    """Moves this process, whose children measure, to a control group with limits."""
    group = _CONTROL_GROUPS_ROOT / controller / _GROUP_NAME
    group.mkdir()
    try:
        for name, value in value_by_control_file.items():
            (group / name).write_text(str(value))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (_CONTROL_GROUPS_ROOT / controller / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()


@contextmanager
def _start_programs(*commands: list[str]) -> Iterator[None]:
    programs = [subprocess.Popen(command) for command in commands]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


@contextmanager
def _plant_load(system: LoopFileSystem, program_count: int) -> Iterator[None]:
    paths = [system.directory / f"load-{number}" for number in range(program_count)]
    try:
        with _start_programs(*([sys.executable, "-c", _LOAD_PROGRAM, str(path)] for path in paths)):
            yield
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


@contextmanager
def _plant_synchronous_mount(system: LoopFileSystem) -> Iterator[None]:
    _run_command("mount", "-o", "remount,sync", str(system.directory))
    try:
        yield
    finally:
        _run_command("mount", "-o", "remount,async", str(system.directory))


def _limit_processors(system: LoopFileSystem, processor_percent: int) -> AbstractContextManager[None]:
    period = 100_000
    return _join_group("cpu", {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": processor_percent * period // 100})


REAL_FAULTS: tuple[RealFault[LoopFileSystem], ...] = (
    RealFault(
        "bytes of the device limited",
        ("slow-device",),
        lambda system, rate: limit_device(system.number, "bps", rate * 1_000_000),
        *(30, 200, "MB/s"),
    ),
    RealFault(
        "requests of the device limited",
        ("device-latency",),
        lambda system, rate: limit_device(system.number, "iops", rate),
        *(300, 1500, "requests/s"),
    ),
    RealFault("no read-ahead", ("no-read-ahead",), lambda system, _: _plant_no_read_ahead(system)),
    RealFault(
        "page cache limited",
        ("little-page-cache",),
        lambda _, size: _join_group("memory", {"memory.limit_in_bytes": size << 20}),
        *(48, 96, "MiB"),
    ),
    RealFault(
        "busy programs",
        ("busy-processors",),
        lambda _, count: _start_programs(*([[sys.executable, "-c", _SPIN_PROGRAM]] * count)),
        *(3, 6, "programs"),
    ),
    RealFault("processors limited", ("slow-processors",), _limit_processors, *(20, 50, "% of one processor")),
    RealFault("mounted with sync", ("synchronous-mount",), lambda system, _: _plant_synchronous_mount(system)),
    RealFault("other programs write to the device", ("shared-device",), _plant_load, *(2, 5, "programs")),
    RealFault(
        "free space scattered",
        ("nearly-full",),
        lambda system, blocks: scatter_free_space(system.directory, blocks * _BLOCK_BYTES, _FREE_PERCENT),
        *(2, 16, "blocks of 4 KiB in each free piece"),
    ),
    RealFault("healthy", ("nothing",), lambda *_: nullcontext()),
)
