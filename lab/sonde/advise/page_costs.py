# SPDX-License-Identifier: Apache-2.0
"""What transfers of pages cost on the file systems of a trace, measured with files that have no name."""

from __future__ import annotations

import errno
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sonde.advise.buffers import FileBuffer
from sonde.model.mounts import find_mount_of_path

_SMALL_TRANSFER_BYTES = 64 << 10
_RECORD = bytearray(16 << 10)
_PAGE_OFFSET = 64  # usual_offset in preload/cache/pages.cpp
_TRANSFERS, _MAX_SECONDS, _MAX_MEMORY = 8, 0.25, 64 << 20  # of each size and direction; of all buffers
_VectorCall = Callable[[int, list[memoryview], int], int]
# File systems whose files only this node changes (is_local_file_system in preload/files/lifecycle.cpp): elsewhere the
# kernel may grant a lease that other nodes do not notice, and the library does not use it.
_LOCAL_FILE_SYSTEMS = {
    *("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "ramfs", "overlay", "f2fs", "zfs", "bcachefs", "jfs", "erofs"),
}


@dataclass(frozen=True)
class TransferCost:
    """Seconds of a transfer of pages: `call_s` for each, and `byte_s` for each byte. `cached_byte_s`: seconds of each
    byte of pieces that stay in the cache of the processor. `parallel_byte_s`: seconds of each byte that the program
    copies to or from one page while a thread transfers another one."""

    call_s: float
    byte_s: float
    cached_byte_s: float
    parallel_byte_s: float


@dataclass(frozen=True)
class PageCosts:
    """Costs on one file system, in the state that follows a write: reads come from the page cache where there is one.
    `copied_byte_s`, `cached_copied_byte_s`: seconds of each byte of a copy between pages and the program, and of bytes
    that the cache of the processor has. `grants_leases`: without leases option auto buffers no file."""

    read: TransferCost
    write: TransferCost
    copied_byte_s: float
    cached_copied_byte_s: float
    grants_leases: bool


def measure_page_costs(buffers: Sequence[FileBuffer], trace_folder: Path) -> Mapping[str, PageCosts]:
    """Page costs by path of the file. Files are missing whose file system cannot be measured without a visible file in
    the program's folders: it has no O_TMPFILE, and the folder of the trace lies on another one."""
    measured: dict[tuple[int, int], PageCosts | None] = {}
    costs: dict[str, PageCosts] = {}
    for buffer in buffers:
        folder = Path(buffer.file.path).parent
        with suppress(OSError):
            key = folder.stat().st_dev, buffer.transferred_page_bytes
            if key not in measured:
                measured[key] = _measure_file_system(folder, trace_folder, buffer)
            page_costs = measured[key]
            if page_costs is not None:
                costs[buffer.file.path] = page_costs
    return costs


def _measure_file_system(folder: Path, trace_folder: Path, buffer: FileBuffer) -> PageCosts | None:
    try:
        with _open_scratch_file(folder, trace_folder) as fd:
            grants_leases = _has_leases(folder)
            small = _time_small_transfers(fd)
            pages = _time_pages(fd, buffer.transferred_page_bytes, buffer.pages)
            return PageCosts(
                _fit_transfer_cost(small.read, pages.read, buffer.transferred_page_bytes),
                _fit_transfer_cost(small.write, pages.write, buffer.transferred_page_bytes),
                max(pages.copy_s / buffer.transferred_page_bytes, small.copy_s / _SMALL_TRANSFER_BYTES),
                small.copy_s / _SMALL_TRANSFER_BYTES,
                grants_leases,
            )
    except OSError:
        return None  # for example no space


@contextmanager
def _open_scratch_file(folder: Path, trace_folder: Path) -> Iterator[int]:
    """A file without a name next to the program's file, else a temporary one in the folder of the trace."""
    try:
        fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        if folder.stat().st_dev != trace_folder.stat().st_dev:
            raise
        with tempfile.TemporaryFile(dir=trace_folder, buffering=0) as file:
            yield file.fileno()
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _has_leases(folder: Path) -> bool:
    mount = find_mount_of_path(str(folder))
    return mount is not None and mount.kind in _LOCAL_FILE_SYSTEMS


@dataclass(frozen=True)
class _DirectionTimes:
    """Seconds of one transfer alone, and of a transfer while the next page is copied."""

    alone_s: float
    parallel_s: float


@dataclass(frozen=True)
class _TransferTimes:
    read: _DirectionTimes
    write: _DirectionTimes
    copy_s: float


def _time_small_transfers(fd: int) -> _TransferTimes:
    """Transfers of one piece of memory, which stays in the cache of the processor."""
    memory = [_make_page(_SMALL_TRANSFER_BYTES)]
    write_s = _compute_lower_quartile(
        [_time_page_transfer(os.pwritev, fd, memory, number) for number in range(_TRANSFERS)]
    )
    read_s = _compute_lower_quartile(
        [_time_page_transfer(os.preadv, fd, memory, number) for number in range(_TRANSFERS)]
    )
    copy_s = _compute_lower_quartile([_copy_to_record(memory[0]) for _ in range(_TRANSFERS)])
    return _TransferTimes(_DirectionTimes(read_s, read_s), _DirectionTimes(write_s, write_s), copy_s)


def _time_pages(fd: int, page_bytes: int, page_count: int) -> _TransferTimes:
    """Transfers as the library makes them: pages take turns, another thread transfers them, and this one copies. The
    file is larger than most caches of processors."""
    memory = [_make_page(page_bytes) for _ in range(min(page_count, max(2, _MAX_MEMORY // page_bytes)))]
    pages = max(len(memory), _MAX_MEMORY // page_bytes)
    with ThreadPoolExecutor(1, initializer=_move_to_other_processor) as thread:
        write, pages, _ = _time_overlapped_copies(thread, os.pwritev, fd, memory, pages)
        read, _, copies = _time_overlapped_copies(thread, os.preadv, fd, memory, pages)
    return _TransferTimes(read, write, _compute_lower_quartile(copies))


def _make_page(page_bytes: int) -> memoryview:
    """Memory that begins where pages of the library begin: copies by the kernel depend on that."""
    memory = mmap.mmap(-1, page_bytes + _PAGE_OFFSET)
    page = memoryview(memory)[_PAGE_OFFSET:]
    page[:] = os.urandom(page_bytes)
    return page


def _time_overlapped_copies(
    thread: ThreadPoolExecutor, call: _VectorCall, fd: int, memory: Sequence[memoryview], pages: int
) -> tuple[_DirectionTimes, int, list[float]]:
    """Copies one page while the thread transfers another. Returns the times, the number of pages until the time was up,
    and the seconds of the copies."""
    alone, steps, copies = [], [], []
    began = time.perf_counter()
    thread.submit(_time_page_transfer, call, fd, memory, 0).result()
    hand_over_s = _measure_thread_handover_seconds(thread)
    for number in range(1, pages):
        before = time.perf_counter()
        pending = thread.submit(_time_page_transfer, call, fd, memory, number)
        copies.append(_copy_to_record(memory[(number - 1) % len(memory)]))
        alone.append(pending.result())
        steps.append(time.perf_counter() - before)
        if len(steps) > 1 and before - began > _MAX_SECONDS:
            break
    alone_s = _compute_lower_quartile(alone)
    parallel_s = max(alone_s, _compute_lower_quartile(steps) - hand_over_s)
    return _DirectionTimes(alone_s, parallel_s), len(steps) + 1, copies


def _measure_thread_handover_seconds(thread: ThreadPoolExecutor) -> float:
    """Seconds that Python needs to hand a task to another thread and to get its result; the library needs few."""
    seconds = []
    for _ in range(_TRANSFERS):
        began = time.perf_counter()
        thread.submit(int).result()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _move_to_other_processor() -> None:
    with suppress(OSError):
        others = os.sched_getaffinity(0) - {_get_processor()}
        os.sched_setaffinity(0, others or os.sched_getaffinity(0))


def _get_processor() -> int:
    """The processor that runs the first thread of this process: field 39 of /proc/PID/stat, proc_pid_stat(5)."""
    return int(Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[36])


def _time_page_transfer(call: _VectorCall, fd: int, memory: Sequence[memoryview], number: int) -> float:
    page = memory[number % len(memory)]
    began = time.perf_counter()
    if call(fd, [page], number * len(page)) != len(page):
        raise OSError(errno.EIO, "a short transfer")
    return time.perf_counter() - began


def _copy_to_record(page: memoryview) -> float:
    """Copies the page in pieces to the same memory, as a program that reads does."""
    record = memoryview(_RECORD)
    began = time.perf_counter()
    for begin in range(0, len(page), len(record)):
        record[:] = page[begin : begin + len(record)]
    return time.perf_counter() - began


def _compute_lower_quartile(seconds: Sequence[float]) -> float:
    """Other programs only make a call slower."""
    return statistics.quantiles(seconds, n=4)[0]


def _fit_transfer_cost(small: _DirectionTimes, page: _DirectionTimes, page_bytes: int) -> TransferCost:
    byte_s = max(0.0, (page.alone_s - small.alone_s) / (page_bytes - _SMALL_TRANSFER_BYTES))
    call_s = max(0.0, small.alone_s - _SMALL_TRANSFER_BYTES * byte_s)
    return TransferCost(
        call_s,
        max(byte_s, (page.alone_s - call_s) / page_bytes),
        small.alone_s / _SMALL_TRANSFER_BYTES,
        max(0.0, page.parallel_s - call_s) / page_bytes,
    )
