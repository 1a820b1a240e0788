# SPDX-License-Identifier: Apache-2.0
"""Page cache of the files that the processes of this run have open: cachestat(2), Linux 6.5 and later.

Descriptors of the processes are duplicated, because another open would break the leases under which the preload library
buffers. Files of network file systems are left out: to look at them could cost requests, and locks on Lustre. cachestat
walks the pages of a file, so a large cache is looked at more rarely. The part "" is the sum over the open files.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError, limit_reading_cost
from sonde.telemetry.sources.processes import find_descendant_processes

_PIDFD_GETFD, _CACHESTAT = 438, 451  # numbers of the calls on every architecture
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MAX_MEASURED_FILES = 64
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))  # length 0: to the end of the file


class _CacheStatistics(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


def measure_cached_and_dirty_bytes(descriptor: int) -> tuple[float, float]:
    """Bytes of an open file in the page cache, and those of them not yet written. Raises OSError."""
    interval, statistics = _Range(0, 0), _CacheStatistics()
    if _LIBC.syscall(_CACHESTAT, descriptor, ctypes.byref(interval), ctypes.byref(statistics), 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return float(statistics.cached * _PAGE_BYTES), float((statistics.dirty + statistics.writeback) * _PAGE_BYTES)


def duplicate_descriptor_of_process(process_id: int, descriptor: int) -> int:
    """A descriptor of ours for what another process has open. Raises OSError, also where ptrace(2) is not allowed."""
    handle = os.pidfd_open(process_id)
    try:
        duplicate = int(_LIBC.syscall(_PIDFD_GETFD, handle, descriptor, 0))
    finally:
        os.close(handle)
    if duplicate < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return duplicate


def _iterate_open_files(file_system_root: Path, ancestor_pid: int) -> Iterator[Path]:
    for number in find_descendant_processes(file_system_root, ancestor_pid):
        folder = file_system_root / "proc" / str(number) / "fd"
        try:
            yield from folder.iterdir()
        except OSError:
            continue  # it has ended, or belongs to another user


def _measure_cached_pages(open_file_path: Path) -> tuple[str, tuple[float, float, float]] | None:
    """Name and values of an open file; None when it is no file of a local disk."""
    properties = open_file_path.stat()
    if not stat.S_ISREG(properties.st_mode) or os.major(properties.st_dev) == 0 or not properties.st_nlink:
        return None  # major number 0: a network file system, or one without a device
    name = os.readlink(open_file_path)
    if name.startswith(("/proc/", "/sys/", "/dev/")):
        return None
    duplicate = duplicate_descriptor_of_process(int(open_file_path.parent.parent.name), int(open_file_path.name))
    try:
        return name, (*measure_cached_and_dirty_bytes(duplicate), float(properties.st_size))
    finally:
        os.close(duplicate)


def _open_page_cache_reader(file_system_root: Path) -> SourceReader:
    ancestor = os.getpid()
    try:
        with (file_system_root / "proc/self/status").open("rb") as file:
            measure_cached_and_dirty_bytes(file.fileno())
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise UnavailableSourceError("cachestat(2) is missing; the kernel must be Linux 6.5 or later.") from None
        if error.errno == errno.EPERM:
            raise UnavailableSourceError(
                "cachestat(2) is forbidden here; allow it in the container's profile."
            ) from None
        raise UnavailableSourceError(f"/proc/self/status: {error.strerror}; mount /proc.") from None

    def read_cached_pages() -> ReadingsByPart:
        readings: ReadingsByPart = {"": (0.0, 0.0, 0.0)}
        for path in _iterate_open_files(file_system_root, ancestor):
            if len(readings) > _MAX_MEASURED_FILES:
                break
            try:
                measured = _measure_cached_pages(path)
            except OSError:
                continue  # it was closed meanwhile
            if measured is not None:
                readings[measured[0]] = measured[1]
        files = [values for part, values in readings.items() if part]
        readings[""] = tuple(sum(value or 0.0 for value in column) for column in zip(*files, strict=True)) or (
            0.0,
            0.0,
            0.0,
        )
        return readings

    return limit_reading_cost(SourceReader(read_cached_pages))


SOURCE = LocalSource(
    "page-cache",
    "bytes in the page cache of the files that this run has open on local disks",
    "node",
    ("file_cached_bytes", "file_dirty_bytes", "file_size_bytes"),
    _open_page_cache_reader,
)
