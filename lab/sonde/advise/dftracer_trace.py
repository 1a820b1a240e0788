# SPDX-License-Identifier: Apache-2.0
"""A trace of DFTracer as `JobIo`: events in lines of JSON, one file a process (``*.pfw``, ``*.pfw.gz``).

Events have numbers or letters as kinds (1 or X: a call with its time; 4 or M: metadata such as the name behind the hash
of a file). Calls through descriptors do not say their offset: it follows from opens, seeks and earlier calls.
"""

from __future__ import annotations

import bisect
import gzip
import itertools
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from sonde.advise.job_io import DirectionIo, FileFolder, FileIo, JobIo
from sonde.model.confined_files import open_file
from sonde.model.documents import parse_json, read_lines
from sonde.model.errors import UserError
from sonde.model.shell import quote_command

SUFFIXES = (".pfw", ".pfw.gz")
_CALL_KINDS, _METADATA_KINDS = (1, "X"), (4, "M")
_READS = ("read", "pread", "pread64")
_WRITES = ("write", "pwrite", "pwrite64")
_STREAM_READS, _STREAM_WRITES = ("fread",), ("fwrite",)
_SEEKS = ("lseek", "lseek64")
_OPENS = ("open", "open64", "openat", "creat", "creat64", "fopen", "fopen64")
_SYNCS, _CLOSES = ("fsync", "fdatasync"), ("close",)
_CLASS_ENDS = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
_SECONDS_OF_TICK = {"US": 1e-6, "NS": 1e-9, "MS": 1e-3}
_CALLS_IN_SAMPLE = 10_000
# A process that reads and writes many files: the oldest positions are forgotten beyond this.
_MOST_POSITIONS = 100_000


@dataclass(frozen=True)
class LoggedCall:
    """One call of a process on a file. `kind` is READ, WRITE, OPEN, FSYNC or CLOSE."""

    process: str
    path: str
    kind: str
    begin_s: float
    seconds: float
    offset: int = 0
    length: int = 0


@dataclass
class _Position:
    """Where a process is in a file, and where its last read and write ended."""

    offset: int = 0
    ends: dict[bool, int] = field(default_factory=dict)


@dataclass
class _Reading:
    """What was read so far."""

    names: dict[str, str] = field(default_factory=dict)  # hash -> path, program or host
    files: dict[str, FileIo] = field(default_factory=dict)
    streams: dict[str, FileIo] = field(default_factory=dict)
    users: dict[str, set[str]] = field(default_factory=dict)  # path -> processes
    seconds: dict[str, float] = field(default_factory=dict)  # process -> seconds in calls
    positions: dict[tuple[str, str], _Position] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    first_s: float = float("inf")
    last_s: float = 0.0
    tick_s: float = 1e-6
    program: str = ""
    damaged_lines: int = 0
    unnamed_calls: int = 0
    read_calls: list[tuple[int, float]] = field(default_factory=list)
    write_calls: list[tuple[int, float]] = field(default_factory=list)
    begin_s: float = 0.0  # of the call that is added
    calls: list[LoggedCall] | None = None  # where single calls are wanted

    def log_call(self, process: str, path: str, kind: str, seconds: float, offset: int = 0, length: int = 0) -> None:
        """Adds a single call where these are wanted."""
        if self.calls is not None:
            self.calls.append(LoggedCall(process, path, kind, self.begin_s, seconds, offset, length))


def is_dftracer_trace(path: Path) -> bool:
    """Whether it is a file of DFTracer, or a folder that holds some."""
    return bool(_list_files(path))


def read_dftracer_job(path: Path) -> JobIo:
    """Reads the files of one job. Raises UserError when they hold no event."""
    reading = _Reading()
    damaged_files = []
    for file in _list_files(path):
        try:
            for event in _read_events(file, reading):
                _add_event(event, reading)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            damaged_files.append(file.name)
        except OSError as reason:
            raise UserError(f"{file} cannot be read: {reason.strerror}.") from None
    if not reading.seconds:
        raise UserError(f"{path} holds no call of DFTracer: it is empty, or damaged from its beginning.")
    return _make_job(path, reading, damaged_files)


def list_dftracer_calls(path: Path) -> Iterator[LoggedCall]:
    """Single calls through descriptors that succeeded, in the order of the files. Damaged files end early."""
    reading = _Reading(calls=[])
    for file in _list_files(path):
        try:
            for event in _read_events(file, reading):
                _add_event(event, reading)
                yield from reading.calls or ()
                reading.calls = []
        except (EOFError, zlib.error, gzip.BadGzipFile):
            continue
        except OSError as reason:
            raise UserError(f"{file} cannot be read: {reason.strerror}.") from None


def _list_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES) and file.is_file())
    return [path] if path.name.endswith(SUFFIXES) and path.is_file() else []


def _read_events(path: Path, reading: _Reading) -> Iterator[Mapping[str, Any]]:
    """The events of a file, line by line. The first and last line are the brackets of a JSON array."""
    with open_file(path) as raw:
        unpacked = gzip.GzipFile(fileobj=raw) if path.name.endswith(".gz") else raw
        for line in read_lines(cast(BinaryIO, unpacked)):
            text = line.strip().rstrip(b",")
            if text in (b"", b"[", b"]"):
                continue
            try:
                event = parse_json(text.removesuffix(b"]").decode("utf-8", errors="replace"))
            except ValueError:
                event = None
            if isinstance(event, dict):
                yield event
            else:
                reading.damaged_lines += 1


def _add_event(event: Mapping[str, Any], reading: _Reading) -> None:
    members = event.get("args")
    arguments: Mapping[str, Any] = members if isinstance(members, dict) else {}
    kind, name = event.get("ph"), str(event.get("name", ""))
    if kind in _METADATA_KINDS:
        _add_metadata(name, arguments, reading)
        return
    if kind not in _CALL_KINDS:
        return
    begin, duration = _to_number(event.get("ts")) * reading.tick_s, _to_number(event.get("dur")) * reading.tick_s
    reading.first_s = min(reading.first_s, begin)
    reading.last_s = max(reading.last_s, begin + duration)
    process = f"{arguments.get('hhash', '')}:{event.get('pid', '')}"
    reading.begin_s = begin
    if event.get("cat") in ("POSIX", "STDIO"):
        _add_call(name, event.get("cat") == "STDIO", process, arguments, duration, reading)
    elif event.get("cat") == "dftracer" and name == "start":
        reading.program = reading.program or reading.names.get(str(arguments.get("cmd_hash", "")), "")


def _add_metadata(name: str, arguments: Mapping[str, Any], reading: _Reading) -> None:
    text, value = str(arguments.get("name", "")), str(arguments.get("value", ""))
    if name in ("FH", "SH"):
        reading.names[value] = text
    elif name == "HH":
        reading.hosts.add(text)
    elif name == "CM" and text == "time_metric":
        reading.tick_s = _SECONDS_OF_TICK.get(value, 1e-6)


def _add_call(
    name: str, is_stream: bool, process: str, arguments: Mapping[str, Any], seconds: float, reading: _Reading
) -> None:
    key = str(arguments.get("fhash", "") or arguments.get("fname", ""))
    if not key:
        reading.unnamed_calls += name in (*_READS, *_WRITES)
        return
    path = reading.names.get(key, key)
    files = reading.streams if is_stream else reading.files
    file = files.setdefault(path, FileIo(path))
    reading.users.setdefault(path, set()).add(process)
    reading.seconds[process] = reading.seconds.get(process, 0.0) + seconds
    position = _find_position(process, path, reading)
    result = round(_to_number(arguments.get("ret")))
    if name in (*_READS, *_WRITES, *_STREAM_READS, *_STREAM_WRITES):
        is_write = name in (*_WRITES, *_STREAM_WRITES)
        amount = result * round(_to_number(arguments.get("size", 1)) or 1) if is_stream else result
        is_positioned = name.startswith(("pread", "pwrite"))
        begin = round(_to_number(arguments.get("offset"))) if is_positioned else position.offset
        _add_transfer(file.write if is_write else file.read, max(0, amount), begin, position, is_write, seconds)
        if not is_positioned:
            position.offset = begin + max(0, amount)
        if not is_stream and amount >= 0:
            reading.log_call(process, path, "WRITE" if is_write else "READ", seconds, begin, amount)
        sample = reading.write_calls if is_write else reading.read_calls
        if not is_stream and len(sample) < _CALLS_IN_SAMPLE:
            sample.append((max(0, amount), seconds))
        return
    file.meta_s += seconds
    if name in _OPENS:
        file.opens += 1
        position.offset = 0
        if not is_stream and result >= 0:
            reading.log_call(process, path, "OPEN", seconds)
    elif name in _SEEKS and result >= 0:
        position.offset = result
    elif name in (*_SYNCS, *_CLOSES) and not is_stream:
        reading.log_call(process, path, "FSYNC" if name in _SYNCS else "CLOSE", seconds)


def _add_transfer(
    direction: DirectionIo, amount: int, begin: int, position: _Position, is_write: bool, seconds: float
) -> None:
    """Counts one call as Darshan does: the first call of a process on a file is neither consecutive nor sequential."""
    end = position.ends.get(is_write)
    direction.calls += 1
    direction.bytes += amount
    direction.seconds += seconds
    direction.sizes[bisect.bisect_left(_CLASS_ENDS, amount)] += 1
    if end is not None:
        direction.consecutive += begin == end
        direction.sequential += begin >= end
    direction.end_offset = max(direction.end_offset, begin + amount)
    position.ends[is_write] = begin + amount


def _find_position(process: str, path: str, reading: _Reading) -> _Position:
    key = (process, path)
    if key not in reading.positions and len(reading.positions) >= _MOST_POSITIONS:
        for oldest in list(itertools.islice(reading.positions, _MOST_POSITIONS // 10)):
            del reading.positions[oldest]
    return reading.positions.setdefault(key, _Position())


def _to_number(value: Any) -> float:
    """The number that a member is, also as text; 0 for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if abs(number) < 1 << 62 else 0.0


def _make_job(path: Path, reading: _Reading, damaged_files: list[str]) -> JobIo:
    folders = FileFolder(), FileFolder()
    for entries in (reading.files, reading.streams):
        for file in entries.values():
            file.is_shared = len(reading.users[file.path]) > 1
    files, streams = (
        folder.sort(dict(enumerate(entries.values())))
        for folder, entries in zip(folders, (reading.files, reading.streams), strict=True)
    )
    job = JobIo(
        source=str(path),
        format="DFTracer",
        program=quote_command(reading.program.split(";")) if reading.program else "",
        job_id="",
        user="",
        started_unix_s=reading.first_s,
        seconds=max(0.0, reading.last_s - reading.first_s),
        processes=len(reading.seconds),
        modules=("POSIX", "STDIO") if streams else ("POSIX",),
        files=files,
        folded_files=folders[0].count,
        streams=streams,
        hosts=tuple(sorted(reading.hosts)),
        rank_seconds=np.array(list(reading.seconds.values())),
    )
    for file in files:
        job.read.add(file.read)
        job.write.add(file.write)
    job.calls.read, job.calls.write = reading.read_calls, reading.write_calls
    job.missing = [f"{name} is damaged: calls after the damage are missing." for name in damaged_files]
    if reading.damaged_lines:
        job.missing.append(f"{reading.damaged_lines} lines are damaged.")
    if reading.unnamed_calls:
        job.missing.append(f"{reading.unnamed_calls} calls do not name their file (set DFTRACER_INC_METADATA=1).")
    job.missing.append(
        "Offsets follow from opens and seeks; two descriptors of one process on a file are not told apart."
    )
    job.missing.append("DFTracer does not log MPI-IO: whether calls were collective is not known.")
    return job
