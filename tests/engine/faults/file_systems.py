# SPDX-License-Identifier: Apache-2.0
"""Small file systems of our own, on loop devices, that can be filled, broken and taken away. Root only."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Sparse; XFS makes none below 300 MiB.
SIZE_MIB = {"ext4": 64, "xfs": 320}


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command; what it printed is kept."""
    return subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def skip_without_root() -> None:
    """Skips where file systems cannot be mounted."""
    if os.geteuid() != 0:
        pytest.skip("needs root (mounts)")


@contextmanager
def mounted(mount_arguments: tuple[str, ...], mount_point: Path) -> Iterator[Path]:
    """`mount WORDS POINT`, undone however the test ends."""
    skip_without_root()
    mount_point.mkdir(parents=True, exist_ok=True)
    done = run_command("mount", *mount_arguments, str(mount_point))
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield mount_point
    finally:
        while os.path.ismount(mount_point) and run_command("umount", str(mount_point)).returncode != 0:
            if run_command("umount", "-l", str(mount_point)).returncode != 0:
                break


@contextmanager
def tmpfs(folder: Path, mib: int) -> Iterator[Path]:
    """A tmpfs of that size."""
    with mounted(("-t", "tmpfs", "-o", f"size={mib}m", "tmpfs"), folder) as point:
        yield point


@contextmanager
def loop_device(device_image: Path) -> Iterator[str]:
    """A loop device on a file."""
    skip_without_root()
    done = run_command("losetup", "--find", "--show", str(device_image))
    if done.returncode != 0:
        pytest.skip(f"no loop device here: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        yield device
    finally:
        run_command("losetup", "--detach", device)


@contextmanager
def file_system(
    file_system_type: str, folder: Path, image_folder: Path | None = None, options: str = ""
) -> Iterator[Path]:
    """A file system of `file_system_type` (ext4, xfs) mounted below `folder`, on a sparse image in `image_folder`."""
    skip_without_root()
    maker = shutil.which(f"mkfs.{file_system_type}")
    if maker is None:
        pytest.skip(f"mkfs.{file_system_type} is not installed")
    image = (image_folder or folder) / f"{file_system_type}.img"
    with image.open("wb") as file:
        file.truncate(SIZE_MIB[file_system_type] << 20)
    force = {"ext4": ("-F", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1"), "xfs": ("-f", "-q")}
    completed = run_command(maker, *force[file_system_type], str(image))
    assert completed.returncode == 0, completed.stderr
    with loop_device(image) as device:
        mount_options = ("-t", file_system_type, *(("-o", options) if options else ()), device)
        with mounted(mount_options, folder / f"{file_system_type}-mounted") as point:
            yield point


def measure_free_bytes(mount_point: Path) -> int:
    """Bytes that a user without privileges can still write."""
    facts = os.statvfs(mount_point)
    return facts.f_bavail * facts.f_frsize


def fill_command(mount_point: Path, free_bytes: int) -> str:
    """A shell command that takes all space but `free_bytes` bytes."""
    return f"fallocate -l {max(4096, measure_free_bytes(mount_point) - free_bytes)} {mount_point}/ballast"
