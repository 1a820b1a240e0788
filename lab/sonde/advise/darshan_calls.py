# SPDX-License-Identifier: Apache-2.0
"""Single calls from a Darshan log: those of DXT, or calls made up from counters where there is no DXT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sonde.advise.call_log import CallKind, CallLog, CallLogBuilder, Calls, make_blank_calls
from sonde.advise.darshan_library import (
    DAMAGED_LOG_ERRORS,
    CounterRecord,
    DarshanLog,
    make_damaged_log_error,
    open_darshan_log,
)
from sonde.advise.darshan_segments import CallRecord
from sonde.model.errors import UserError

MAX_SYNTHESIZED_CALLS = 50_000_000
_LONGEST_JOB_S = 1e9
_SYNTHESIS_ASSUMPTIONS = (
    "Calls were made up from the counters of each file:",
    "all reads of a file by a rank have one size, and so have all writes; bytes and number of calls are exact",
    "calls follow one another in the file where the log counts most as consecutive, else they have a random order",
    "a file with one record for all ranks is divided evenly, each rank with one part",
    "calls are spread evenly between the first and the last time of the log",
)


def read_darshan_calls(log_path: Path, top_folder: str = "") -> CallLog:
    """Reads the calls on files below a folder. Raises UserError when the log cannot be read or holds too many calls."""
    try:
        with open_darshan_log(log_path) as log:
            builder = CallLogBuilder(top_folder)
            has_calls = _add_dxt_calls(log, builder, log_path)
            if not has_calls:
                _add_calls_from_counters(log, builder, log_path)
            program, reason = log.command_line, _explain_missing_calls(log)
    except DAMAGED_LOG_ERRORS as reason:
        raise make_damaged_log_error(log_path, reason) from None
    files, tasks = builder.build_file_and_call_lists()
    notes = list(() if has_calls else (reason, *_SYNTHESIS_ASSUMPTIONS))
    notes.append("The log has no opens and closes in order: each rank opens a file before its first call and closes it"
                 " after its last one.")  # fmt: skip
    return CallLog(str(log_path), "Darshan DXT" if has_calls else "Darshan counters", program, files, tasks, has_calls,
                   tuple(notes))  # fmt: skip


def _explain_missing_calls(log: DarshanLog) -> str:
    """Why a log gives no single calls."""
    if reason := log.describe_unread_calls("DXT_POSIX"):
        return reason
    if "DXT_POSIX" in log.modules:
        return "The module for single calls (DXT_POSIX) is empty."
    return "The log has no single calls (DXT)."


def _add_dxt_calls(log: DarshanLog, builder: CallLogBuilder, log_path: Path) -> bool:
    """Adds the single calls; returns whether the log has any, on whatever file."""
    names, has_calls = log.paths_by_file_id(), False
    for record in log.iterate_call_records("DXT_POSIX"):
        has_calls = True
        file = builder.find_file_number(names.get(record.file, f"unnamed file {record.file}"))
        if file is None or record.rank < 0:
            continue
        for calls in _convert_dxt_record_to_calls(record, file):
            builder.add_task_calls(record.rank, calls)
        _require_calls_below_limit(builder, log_path)
    return has_calls


def _convert_dxt_record_to_calls(record: CallRecord, file_number: int) -> Iterator[Calls]:
    for items, kind in ((record.read, CallKind.READ), (record.write, CallKind.WRITE)):
        items = items[(items["offset"] >= 0) & (items["length"] >= 0)]
        calls = make_blank_calls(items.size, kind, file_number)
        calls["offset"], calls["length"] = items["offset"], items["length"]
        calls["begin"] = np.nan_to_num(items["start"], posinf=0.0, neginf=0.0)
        calls["seconds"] = np.clip(np.nan_to_num(items["end"] - items["start"]), 0.0, _LONGEST_JOB_S)
        yield calls


def _add_calls_from_counters(log: DarshanLog, builder: CallLogBuilder, log_path: Path) -> None:
    names, ranks = log.paths_by_file_id(), max(1, int(log.job.get("nprocs", 1)))
    for record in log.iterate_counter_records("POSIX"):
        file = builder.find_file_number(names.get(record.file, f"unnamed file {record.file}"))
        if file is None:
            continue
        for kind in (CallKind.READ, CallKind.WRITE):
            owners = range(ranks) if record.rank < 0 else (record.rank,)
            for part, rank in enumerate(owners):
                builder.add_task_calls(rank, _synthesize_calls_from_counters(record, kind, file, part, len(owners)))
                _require_calls_below_limit(builder, log_path)


def _synthesize_calls_from_counters(
    record: CounterRecord, kind: CallKind, file_number: int, rank_share: int, share_count: int
) -> Calls:
    """The calls of one rank: the counters of a record for all ranks are divided evenly."""
    values, name = record.values, kind.name
    past, end = ("READ", "BYTE_READ") if kind is CallKind.READ else ("WRITTEN", "BYTE_WRITTEN")

    def get_rank_share(counter_name: str) -> int:
        return max(0, int(values.get(f"POSIX_{counter_name}", 0)))

    total, amount = get_rank_share(f"{name}S"), get_rank_share(f"BYTES_{past}")
    if total > MAX_SYNTHESIZED_CALLS:
        raise UserError(
            f"the log counts {total:,} calls on one file, more than the {MAX_SYNTHESIZED_CALLS:,} that are replayed"
        )
    first, last = total * rank_share // share_count, total * (rank_share + 1) // share_count
    calls = make_blank_calls(last - first, kind, file_number)
    if not calls.size:
        return calls
    length, remainder = divmod(amount, total)
    numbers = np.arange(first, last + 1, dtype=np.int64)
    ends = length * numbers + remainder * numbers // total  # amount * number / total, which may exceed 64 bits
    lengths = np.diff(ends)
    offsets = ends[:-1] % max(1, get_rank_share(f"MAX_{end}") + 1 - int(lengths.max(initial=0)) + 1)
    if get_rank_share(f"CONSEC_{name}S") < total / 2:
        offsets = np.random.default_rng(record.file % 2**32 + rank_share).permutation(offsets)
    calls["offset"], calls["length"] = offsets, lengths
    begin_s = max(0.0, values.get(f"POSIX_F_{name}_START_TIMESTAMP", 0.0))
    end_s = max(begin_s, values.get(f"POSIX_F_{name}_END_TIMESTAMP", 0.0))
    calls["seconds"] = max(0.0, values.get(f"POSIX_F_{name}_TIME", 0.0)) / total
    calls["begin"] = begin_s + (end_s - begin_s) * np.arange(calls.size) / calls.size
    return calls


def _require_calls_below_limit(builder: CallLogBuilder, log_path: Path) -> None:
    if builder.calls > MAX_SYNTHESIZED_CALLS:
        raise UserError(
            f"{log_path} has more than {MAX_SYNTHESIZED_CALLS:,} calls; name the folder of some files with --below."
        )
