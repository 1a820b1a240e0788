# SPDX-License-Identifier: Apache-2.0
"""A trace of DFTracer as `JobIo`: events in lines of JSON, one file a process (``*.pfw``, ``*.pfw.gz``).

Events have numbers or letters as kinds (1 or X: a call with its time; 4 or M: metadata such as the name behind the hash
of a file). Calls through descriptors have no offset in the trace; it follows from opens, seeks and earlier calls.
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

from sonde.advise.job_io import DirectionIo, FileIo, FileListLimiter, JobIo
from sonde.model.confined_files import open_file
from sonde.model.documents import parse_json, read_bounded_lines
from sonde.model.errors import UserError
from sonde.model.shell import quote_command

TRACE_SUFFIXES = (".pfw", ".pfw.gz")
_CALL_KINDS, _METADATA_KINDS = (1, "X"), (4, "M")
_READ_CALLS = ("read", "pread", "pread64")
_WRITE_CALLS = ("write", "pwrite", "pwrite64")
_STREAM_READS, _STREAM_WRITES = ("fread",), ("fwrite",)
_SEEK_CALLS = ("lseek", "lseek64")
_OPEN_CALLS = ("open", "open64", "openat", "creat", "creat64", "fopen", "fopen64")
_SYNC_CALLS, _CLOSE_CALLS = ("fsync", "fdatasync"), ("close",)
_SIZE_CLASS_LIMITS = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
_TICK_SECONDS_BY_UNIT = {"US": 1e-6, "NS": 1e-9, "MS": 1e-3}
_MAX_SAMPLED_CALLS = 10_000
# A process that reads and writes many files: the oldest positions are forgotten beyond this.
_MAX_FILE_POSITIONS = 100_000


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
class _FilePosition:
    """Where a process is in a file, and where its last read and write ended."""

    offset: int = 0
    ends: dict[bool, int] = field(default_factory=dict)


@dataclass
class _TraceReadState:
    """Files, positions and times from the events read so far."""

    names: dict[str, str] = field(default_factory=dict)  # hash -> path, program or host
    files: dict[str, FileIo] = field(default_factory=dict)
    streams: dict[str, FileIo] = field(default_factory=dict)
    users: dict[str, set[str]] = field(default_factory=dict)  # path -> processes
    seconds: dict[str, float] = field(default_factory=dict)  # process -> seconds in calls
    positions: dict[tuple[str, str], _FilePosition] = field(default_factory=dict)
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

    def append_logged_call(
        self,
        process_id: str,
        file_path: str,
        call_kind: str,
        seconds: float,
        file_offset: int = 0,
        transfer_bytes: int = 0,
    ) -> None:
        """Adds a single call where these are wanted."""
        if self.calls is not None:
            self.calls.append(
                LoggedCall(process_id, file_path, call_kind, self.begin_s, seconds, file_offset, transfer_bytes)
            )


def is_dftracer_trace(file_or_folder: Path) -> bool:
    """Whether it is a file of DFTracer, or a folder that holds some."""
    return bool(_list_trace_files(file_or_folder))


def read_dftracer_job(file_or_folder: Path) -> JobIo:
    """Reads the files of one job. Raises UserError when they hold no event."""
    reading = _TraceReadState()
    damaged_files = []
    for file in _list_trace_files(file_or_folder):
        try:
            for event in _iterate_trace_events(file, reading):
                _add_event(event, reading)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            damaged_files.append(file.name)
        except OSError as reason:
            raise UserError(f"{file} cannot be read: {reason.strerror}.") from None
    if not reading.seconds:
        raise UserError(f"{file_or_folder} holds no call of DFTracer: it is empty, or damaged from its beginning.")
    return _build_job_io(file_or_folder, reading, damaged_files)


def list_dftracer_calls(file_or_folder: Path) -> Iterator[LoggedCall]:
    """Single calls through descriptors that succeeded, in the order of the files. Damaged files end early."""
    reading = _TraceReadState(calls=[])
    for file in _list_trace_files(file_or_folder):
        try:
            for event in _iterate_trace_events(file, reading):
                _add_event(event, reading)
                yield from reading.calls or ()
                reading.calls = []
        except (EOFError, zlib.error, gzip.BadGzipFile):
            continue
        except OSError as reason:
            raise UserError(f"{file} cannot be read: {reason.strerror}.") from None


def _list_trace_files(file_or_folder: Path) -> list[Path]:
    if file_or_folder.is_dir():
        return sorted(
            file for file in file_or_folder.iterdir() if file.name.endswith(TRACE_SUFFIXES) and file.is_file()
        )
    return [file_or_folder] if file_or_folder.name.endswith(TRACE_SUFFIXES) and file_or_folder.is_file() else []


def _iterate_trace_events(trace_file: Path, read_state: _TraceReadState) -> Iterator[Mapping[str, Any]]:
    """The events of a file, line by line. The first and last line are the brackets of a JSON array."""
    with open_file(trace_file) as raw:
        unpacked = gzip.GzipFile(fileobj=raw) if trace_file.name.endswith(".gz") else raw
        for line in read_bounded_lines(cast(BinaryIO, unpacked)):
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
                read_state.damaged_lines += 1


def _add_event(event: Mapping[str, Any], read_state: _TraceReadState) -> None:
    members = event.get("args")
    arguments: Mapping[str, Any] = members if isinstance(members, dict) else {}
    kind, name = event.get("ph"), str(event.get("name", ""))
    if kind in _METADATA_KINDS:
        _add_metadata_event(name, arguments, read_state)
        return
    if kind not in _CALL_KINDS:
        return
    begin, duration = (
        _convert_to_number(event.get("ts")) * read_state.tick_s,
        _convert_to_number(event.get("dur")) * read_state.tick_s,
    )
    read_state.first_s = min(read_state.first_s, begin)
    read_state.last_s = max(read_state.last_s, begin + duration)
    process = f"{arguments.get('hhash', '')}:{event.get('pid', '')}"
    read_state.begin_s = begin
    if event.get("cat") in ("POSIX", "STDIO"):
        _add_call_event(name, event.get("cat") == "STDIO", process, arguments, duration, read_state)
    elif event.get("cat") == "dftracer" and name == "start":
        read_state.program = read_state.program or read_state.names.get(str(arguments.get("cmd_hash", "")), "")


def _add_metadata_event(event_name: str, event_arguments: Mapping[str, Any], read_state: _TraceReadState) -> None:
    text, value = str(event_arguments.get("name", "")), str(event_arguments.get("value", ""))
    if event_name in ("FH", "SH"):
        read_state.names[value] = text
    elif event_name == "HH":
        read_state.hosts.add(text)
    elif event_name == "CM" and text == "time_metric":
        read_state.tick_s = _TICK_SECONDS_BY_UNIT.get(value, 1e-6)


def _add_call_event(
    call_name: str,
    is_stream: bool,
    process_id: str,
    event_arguments: Mapping[str, Any],
    seconds: float,
    read_state: _TraceReadState,
) -> None:
    key = str(event_arguments.get("fhash", "") or event_arguments.get("fname", ""))
    if not key:
        read_state.unnamed_calls += call_name in (*_READ_CALLS, *_WRITE_CALLS)
        return
    path = read_state.names.get(key, key)
    files = read_state.streams if is_stream else read_state.files
    file = files.setdefault(path, FileIo(path))
    read_state.users.setdefault(path, set()).add(process_id)
    read_state.seconds[process_id] = read_state.seconds.get(process_id, 0.0) + seconds
    position = _get_file_position(process_id, path, read_state)
    result = round(_convert_to_number(event_arguments.get("ret")))
    if call_name in (*_READ_CALLS, *_WRITE_CALLS, *_STREAM_READS, *_STREAM_WRITES):
        is_write = call_name in (*_WRITE_CALLS, *_STREAM_WRITES)
        amount = result * round(_convert_to_number(event_arguments.get("size", 1)) or 1) if is_stream else result
        is_positioned = call_name.startswith(("pread", "pwrite"))
        begin = round(_convert_to_number(event_arguments.get("offset"))) if is_positioned else position.offset
        _add_transfer(file.write if is_write else file.read, max(0, amount), begin, position, is_write, seconds)
        if not is_positioned:
            position.offset = begin + max(0, amount)
        if not is_stream and amount >= 0:
            read_state.append_logged_call(process_id, path, "WRITE" if is_write else "READ", seconds, begin, amount)
        sample = read_state.write_calls if is_write else read_state.read_calls
        if not is_stream and len(sample) < _MAX_SAMPLED_CALLS:
            sample.append((max(0, amount), seconds))
        return
    file.meta_s += seconds
    if call_name in _OPEN_CALLS:
        file.opens += 1
        position.offset = 0
        if not is_stream and result >= 0:
            read_state.append_logged_call(process_id, path, "OPEN", seconds)
    elif call_name in _SEEK_CALLS and result >= 0:
        position.offset = result
    elif call_name in (*_SYNC_CALLS, *_CLOSE_CALLS) and not is_stream:
        read_state.append_logged_call(process_id, path, "FSYNC" if call_name in _SYNC_CALLS else "CLOSE", seconds)


def _add_transfer(
    direction_io: DirectionIo,
    byte_count: int,
    file_offset: int,
    file_position: _FilePosition,
    is_write: bool,
    seconds: float,
) -> None:
    """Counts one call as Darshan does: the first call of a process on a file is neither consecutive nor sequential."""
    end = file_position.ends.get(is_write)
    direction_io.calls += 1
    direction_io.bytes += byte_count
    direction_io.seconds += seconds
    direction_io.sizes[bisect.bisect_left(_SIZE_CLASS_LIMITS, byte_count)] += 1
    if end is not None:
        direction_io.consecutive += file_offset == end
        direction_io.sequential += file_offset >= end
    direction_io.end_offset = max(direction_io.end_offset, file_offset + byte_count)
    file_position.ends[is_write] = file_offset + byte_count


def _get_file_position(process_id: str, file_path: str, read_state: _TraceReadState) -> _FilePosition:
    key = (process_id, file_path)
    if key not in read_state.positions and len(read_state.positions) >= _MAX_FILE_POSITIONS:
        for oldest in list(itertools.islice(read_state.positions, _MAX_FILE_POSITIONS // 10)):
            del read_state.positions[oldest]
    return read_state.positions.setdefault(key, _FilePosition())


def _convert_to_number(json_value: Any) -> float:
    """Converts a number, or text with a number, to float; returns 0 for any other value."""
    try:
        number = float(json_value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if abs(number) < 1 << 62 else 0.0


def _build_job_io(file_or_folder: Path, read_state: _TraceReadState, damaged_files: list[str]) -> JobIo:
    folders = FileListLimiter(), FileListLimiter()
    for entries in (read_state.files, read_state.streams):
        for file in entries.values():
            file.is_shared = len(read_state.users[file.path]) > 1
    files, streams = (
        folder.sort_files_by_time(dict(enumerate(entries.values())))
        for folder, entries in zip(folders, (read_state.files, read_state.streams), strict=True)
    )
    job = JobIo(
        source=str(file_or_folder),
        format="DFTracer",
        program=quote_command(read_state.program.split(";")) if read_state.program else "",
        job_id="",
        user="",
        started_unix_s=read_state.first_s,
        seconds=max(0.0, read_state.last_s - read_state.first_s),
        processes=len(read_state.seconds),
        modules=("POSIX", "STDIO") if streams else ("POSIX",),
        files=files,
        folded_files=folders[0].count,
        streams=streams,
        hosts=tuple(sorted(read_state.hosts)),
        rank_seconds=np.array(list(read_state.seconds.values())),
    )
    for file in files:
        job.read.add(file.read)
        job.write.add(file.write)
    job.calls.read, job.calls.write = read_state.read_calls, read_state.write_calls
    job.missing = [f"{name} is damaged: calls after the damage are missing." for name in damaged_files]
    if read_state.damaged_lines:
        job.missing.append(f"{read_state.damaged_lines} lines are damaged.")
    if read_state.unnamed_calls:
        job.missing.append(f"{read_state.unnamed_calls} calls do not name their file (set DFTRACER_INC_METADATA=1).")
    job.missing.append(
        "Offsets follow from opens and seeks; two descriptors of one process on a file are not told apart."
    )
    job.missing.append("DFTracer does not log MPI-IO: whether calls were collective is not known.")
    return job
