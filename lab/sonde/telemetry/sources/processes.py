# SPDX-License-Identifier: Apache-2.0
"""I/O of the processes of this run: /proc/PID/io (proc(5)) of this process's descendants on this node.

A process that ended keeps its last values, so that the sums never fall. I/O of a process between the last sample and
its end is not counted. The part is the name of the program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError, limit_reading_cost

_IO_MEMBERS = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes")
_MAX_STAT_BYTES = 4096  # a line of some 50 numbers and a name


def parse_process_io(io_text: str) -> tuple[float, ...]:
    """The values of a process in the order of the columns of `SOURCE`. Raises KeyError without the members."""
    members = dict(line.split(": ", 1) for line in io_text.splitlines() if ": " in line)
    return tuple(float(members[name]) for name in _IO_MEMBERS)


def find_descendant_processes(file_system_root: Path, ancestor_pid: int) -> dict[int, str]:
    """The descendants of a process: number -> name of the program."""
    parents: dict[int, tuple[int, str]] = {}
    for number, text in _iterate_process_stats(file_system_root):
        # 1234 (name) S 1 …: the name may hold blanks and parentheses
        name = text[text.index("(") + 1 : text.rindex(")")]
        parents[number] = int(text[text.rindex(")") + 2 :].split()[1]), name
    descendants: dict[int, str] = {}
    for number, (_, name) in parents.items():
        ancestors = number
        while ancestors in parents and ancestors != ancestor_pid:
            ancestors = parents[ancestors][0]
        if ancestors == ancestor_pid and number != ancestor_pid:
            descendants[number] = name
    return descendants


def _iterate_process_stats(file_system_root: Path) -> Iterator[tuple[int, str]]:
    # Without Path and buffers: with Path.read_text() a sample takes twice as long on a node with many processes.
    proc = os.path.join(file_system_root, "proc")
    for entry in os.listdir(proc):
        if entry.isdigit():
            try:
                with open(f"{proc}/{entry}/stat", "rb", buffering=0) as file:
                    text = file.read(_MAX_STAT_BYTES).decode(errors="replace")
            except OSError:
                continue  # it has ended
            yield int(entry), text


def _open_process_io_reader(file_system_root: Path) -> SourceReader:
    ancestor = os.getpid()
    if not (file_system_root / "proc/self/io").is_file():
        raise UnavailableSourceError("/proc/self/io is missing; the kernel needs CONFIG_TASK_IO_ACCOUNTING.")
    last_values: dict[tuple[int, str], tuple[float, ...]] = {}

    def read_process_io() -> ReadingsByPart:
        for number, name in find_descendant_processes(file_system_root, ancestor).items():
            try:
                text = (file_system_root / "proc" / str(number) / "io").read_text(encoding="ascii", errors="replace")
                last_values[number, name] = parse_process_io(text)
            except (OSError, KeyError):
                continue  # it has ended, or belongs to another user
        sums: ReadingsByPart = {"": (0.0,) * len(_IO_MEMBERS)}
        for (_, name), values in last_values.items():
            for part in ("", name):
                earlier = sums.get(part, (0.0,) * len(_IO_MEMBERS))
                sums[part] = tuple((old or 0.0) + new for old, new in zip(earlier, values, strict=True))
        return sums

    return limit_reading_cost(SourceReader(read_process_io))


SOURCE = LocalSource(
    "processes",
    "calls and bytes of the processes of this run",
    "node",
    (
        "process_read_bytes", "process_written_bytes", "process_reads", "process_writes", "process_storage_read_bytes",
        "process_storage_written_bytes",
    ),
    _open_process_io_reader,
)  # fmt: skip
