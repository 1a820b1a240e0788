# SPDX-License-Identifier: Apache-2.0
"""Predicts what the preload library will gain for a traced program.

A buffered call costs a copy between program and page. Storage gets transfers of pages, and of parts of pages where the
program closes, synchronizes or asks for the status of the file. Calls before the library buffers a file cost what they
cost in the trace. Threads of the library transfer pages next to the program where there is a second processor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.advise.buffers import (
    MEMORY_BYTES_PER_S,
    MIN_BYPASS_BYTES,
    SLOW_CALL_S,
    FileBuffer,
    choose_file_buffers,
    count_new_bytes,
    find_constant_stride,
)
from sonde.advise.page_costs import PageCosts, TransferCost, measure_page_costs
from sonde.model.trace import Trace, TracedFile, TransferCounters

# The rules of the library: preload/intercept and preload/files/candidates (calls before a file is watched),
# preload/model/choice.hpp (watched calls), preload/cache/profitability.cpp (memory), preload/cache/readahead.cpp.
_CALLS_BEFORE_WATCH, _SLOW_CALLS_BEFORE_WATCH = 256, 24
_WATCHED_CALLS = 200
_MIN_RATED_BYTES = 4 << 10
_BUFFERED_CALL_S = 60e-9  # checks and bookkeeping of a buffered call; the copy is measured


@dataclass(frozen=True)
class BufferGain:
    """Calls and seconds in reads and writes of all processes, as traced and as predicted with the library."""

    calls: float = 0.0
    storage_calls: float = 0.0
    traced_s: float = 0.0
    predicted_s: float = 0.0

    @property
    def saved_s(self) -> float:
        """Seconds that the library saves."""
        return self.traced_s - self.predicted_s

    def __add__(self, other: BufferGain) -> BufferGain:
        """The sum over files or directions."""
        return BufferGain(
            self.calls + other.calls,
            self.storage_calls + other.storage_calls,
            self.traced_s + other.traced_s,
            self.predicted_s + other.predicted_s,
        )


@dataclass(frozen=True)
class BufferForecast:
    """Files that buffering would help, the run time of all processes, and the gains where they can be predicted."""

    files: int
    calls: int
    seconds: float
    run_seconds: float
    automatic: BufferGain | None
    chosen: BufferGain | None

    def build_document(self) -> dict[str, Any]:
        """The same for programs."""
        gains = {"auto": self.automatic, "from_trace": self.chosen}
        return {
            "files": self.files,
            "calls": self.calls,
            "seconds": self.seconds,
            **{
                name: gain and {"calls": round(gain.storage_calls), "saved_s": gain.saved_s}
                for name, gain in gains.items()
            },
        }


def predict_buffering(trace: Trace, folder: Path) -> BufferForecast:
    """What `sonde iobuf` will gain without settings, and with those of `--from FOLDER`."""
    buffers = choose_file_buffers(trace)
    costs = measure_page_costs(buffers, folder)
    return BufferForecast(
        len(buffers),
        sum(buffer.file.read.calls + buffer.file.write.calls for buffer in buffers),
        sum(buffer.file.read.s + buffer.file.write.s for buffer in buffers),
        sum(process["seconds"] for process in trace.processes),
        predict_buffer_gain(buffers, costs, automatic=True),
        predict_buffer_gain(buffers, costs, automatic=False),
    )


def predict_buffer_gain(
    buffers: Sequence[FileBuffer], costs: Mapping[str, PageCosts], automatic: bool, processors: int | None = None
) -> BufferGain | None:
    """The gain with option auto or with the entries of `buffers`. None where a file system was not measured."""
    available = len(os.sched_getaffinity(0)) if processors is None else processors
    gain = BufferGain()
    for buffer in buffers:
        if buffer.file.path not in costs:
            return None
        gain += _predict_file_gain(buffer, costs[buffer.file.path], automatic, available > 1)
    return gain


def _predict_file_gain(buffer: FileBuffer, costs: PageCosts, automatic: bool, overlaps: bool) -> BufferGain:
    share = _compute_buffered_share(buffer.file, costs) if automatic else 1.0
    gain = BufferGain()
    for moves, cost in ((buffer.file.read, costs.read), (buffer.file.write, costs.write)):
        if moves.calls:
            stays_in_cache = automatic and _is_storage_fast_as_memory(buffer.file, moves, cost)
            is_bypassed = stays_in_cache and moves.bytes >= moves.calls * MIN_BYPASS_BYTES
            direction_share = 0.0 if is_bypassed else share
            gain += _predict_direction_gain(buffer, moves, costs, direction_share, overlaps, stays_in_cache)
    # The library stops buffering with auto where it does not gain.
    return BufferGain(gain.calls, gain.calls, gain.traced_s, gain.traced_s) if automatic and gain.saved_s < 0 else gain


def _compute_buffered_share(file: TracedFile, costs: PageCosts) -> float:
    """The fraction of the calls that option auto buffers. Several processes at once get no lease."""
    if not costs.grants_leases or file.processes > 1:
        return 0.0
    calls, seconds = file.read.calls + file.write.calls, file.read.s + file.write.s
    opens = max(1, file.calls["open"])
    before = _SLOW_CALLS_BEFORE_WATCH if seconds > calls * SLOW_CALL_S else _CALLS_BEFORE_WATCH
    if calls <= opens * before:
        return 0.0
    return max(0.0, 1 - (opens * before + _WATCHED_CALLS) / calls)  # a file that is opened again is not watched again


def _is_storage_fast_as_memory(file: TracedFile, moves: TransferCounters, cost: TransferCost) -> bool:
    """Whether the library takes the storage for memory: by the rate of calls, or by half of the rate of pages."""
    calls_are_fast = count_new_bytes(file, moves) > moves.s * MEMORY_BYTES_PER_S
    if moves.bytes >= moves.calls * MIN_BYPASS_BYTES:  # they bypass pages of such storage: only calls are measured
        return calls_are_fast
    pages_are_fast = cost.byte_s * MEMORY_BYTES_PER_S < 0.5
    return pages_are_fast or (calls_are_fast and moves.bytes >= moves.calls * _MIN_RATED_BYTES)


def _predict_direction_gain(
    buffer: FileBuffer, moves: TransferCounters, costs: PageCosts, share: float, overlaps: bool, stays_in_cache: bool
) -> BufferGain:
    """`stays_in_cache`: what is read is read when the program needs it, in pieces that fit the processor's cache."""
    file, is_read = buffer.file, moves is buffer.file.read
    calls = share * moves.calls
    if not calls:
        return BufferGain(moves.calls, moves.calls, moves.s, moves.s)
    transfers, amount = _estimate_page_transfers_and_bytes(buffer, moves, share)
    cost, is_cached = costs.read if is_read else costs.write, is_read and stays_in_cache
    first_copied = 0.0 if is_cached else min(amount, share * moves.bytes)  # bytes that no copy before brought near
    copied_s = (share * moves.bytes - first_copied) * costs.cached_copied_byte_s
    reads_ahead = buffer.prefetch > 0 and not stays_in_cache
    is_parallel = overlaps and (reads_ahead if is_read else file.calls["sync"] * 2 < moves.calls)
    if is_parallel:
        calls_s = calls * _BUFFERED_CALL_S + copied_s
        buffered_s = max(calls_s, transfers * cost.call_s + amount * cost.parallel_byte_s)
    else:
        byte_s = cost.cached_byte_s if is_cached else cost.byte_s
        copied_s += first_copied * costs.copied_byte_s
        buffered_s = calls * _BUFFERED_CALL_S + copied_s + transfers * cost.call_s + amount * byte_s
    return BufferGain(moves.calls, moves.calls - calls + transfers, moves.s, (1 - share) * moves.s + buffered_s)


def _estimate_page_transfers_and_bytes(
    buffer: FileBuffer, moves: TransferCounters, share: float
) -> tuple[float, float]:
    """Number and bytes of the transfers of pages in one direction."""
    file, page = buffer.file, buffer.transferred_page_bytes
    mean = max(1.0, moves.bytes / moves.calls)
    takes_turns = file.switches * 4 > file.read.calls + file.write.calls
    stride = 0 if takes_turns else find_constant_stride(file, moves)
    # Pages have each byte once, also those that calls access again, and those between records that are read.
    amount = share * (moves.calls * min(stride, page) if stride else moves.bytes)
    if takes_turns:  # reads and writes share pages
        amount = share * min(moves.bytes, moves.highest + 1)
    transfers = amount / page
    if moves is file.write:
        amount = min(amount, share * moves.bytes)
        gaps = moves.calls - moves.consecutive if stride > mean else 0
        transfers = max(amount / page, share * gaps)  # each gap between records ends a transfer
    hand_overs = file.calls["open"] + sum(file.calls[kind] for kind in ("sync", "stat", "truncate", "map"))
    return transfers + min(hand_overs, share * moves.calls), amount
