# SPDX-License-Identifier: Apache-2.0
"""Where files are made: folders, XFS in an image, a file system whose calls are dear, less memory than there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from buffering.programs import MissingProgramError, Workshop, make_low_noise_prefix


def find_file_system_type(folder: Path) -> str:
    """Name of the file system, as stat prints it."""
    name = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout.strip()
    return "ext4" if name == "ext2/ext3" else name


@contextmanager
def mount_xfs_in_file(below: Path, gigabytes: int) -> Iterator[Path]:
    """An XFS of its own on a loop device; needs root. Its cache is the kernel's, the image's is given back by it."""
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        raise MissingProgramError("an XFS in a file needs root and mkfs.xfs")
    image, mounted = below / "xfs.image", below / "xfs"
    mounted.mkdir()
    subprocess.run(["truncate", "-s", f"{gigabytes}G", image], check=True)
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    # Direct I/O of the loop device: else the image would be cached a second time.
    device = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", image], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not device:
        raise MissingProgramError("there is no loop device here")
    try:
        if subprocess.run(["mount", device, mounted], capture_output=True, check=False).returncode != 0:
            raise MissingProgramError("mounting XFS is not possible here")
        try:
            yield mounted
        finally:
            subprocess.run(["umount", mounted], check=False)
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)
        image.unlink()


@contextmanager
def mount_slow_file_system(workshop: Workshop, below: Path, pause_us: int) -> Iterator[Path]:
    """A file system that passes all on to a folder, after a pause of so many microseconds for each call."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False)
    if flags.returncode != 0 or os.geteuid() != 0 or shutil.which("fusermount3") is None:
        raise MissingProgramError("the file system with dear calls needs root, fusermount3 and the headers of FUSE 3")
    program = workshop.c("slow_fs", *flags.stdout.split())
    behind, mounted = below / "behind", below / "dear"
    behind.mkdir()
    mounted.mkdir()
    server = subprocess.Popen([*make_low_noise_prefix(), str(program), str(behind), str(pause_us), str(mounted)])
    try:
        limit = time.monotonic() + 10
        while not mounted.is_mount() and time.monotonic() < limit:
            time.sleep(0.05)
        if not mounted.is_mount():
            raise MissingProgramError("FUSE does not mount here")
        yield mounted
    finally:
        subprocess.run(["fusermount3", "-u", str(mounted)], check=False)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:  # its mount is gone, but a real-time thread of it may not be scheduled
            server.kill()
            server.wait()


@contextmanager
def limit_memory(mebibytes: int) -> Iterator[Path]:
    """A group of processes that may use so much memory, the cache of their files included: the file into which a
    process writes its number to join. Both kinds of control groups.
    """
    new, old = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
    root, limit = (old, "memory.limit_in_bytes") if old.is_dir() else (new, "memory.max")
    group = root / f"sonde-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(mebibytes << 20), encoding="ascii")
    except OSError as failure:
        if group.is_dir():
            group.rmdir()
        raise MissingProgramError(f"memory cannot be limited here: {failure.strerror or failure}") from failure
    try:
        yield group / "cgroup.procs"
    finally:
        for _ in range(100):  # what it held is given back a moment after its last process
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


def evict_from_page_cache(file: Path) -> None:
    """What is on disk of the file is no longer in memory."""
    fd = os.open(file, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
