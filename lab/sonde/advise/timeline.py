# SPDX-License-Identifier: Apache-2.0
"""Sums bytes by rank and time, from heat maps with bins of any width or from single calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.advise.job_io import MAX_TIMELINE_ROWS, TIMELINE_BINS, IoTimeline

_CALLS_PER_CHUNK = 8192  # calls that are spread at once, which bounds memory


class TimelineBuilder:
    """Collects the bytes of one job. Several ranks share a row when the job has more than MAX_TIMELINE_ROWS."""

    def __init__(self, process_count: int, job_seconds: float, source_name: str) -> None:
        self._ranks_per_row = -(-process_count // MAX_TIMELINE_ROWS)
        rows = -(-process_count // self._ranks_per_row)
        self._bin_s = max(job_seconds, 1e-3) / TIMELINE_BINS
        self._edges = np.linspace(0.0, TIMELINE_BINS * self._bin_s, TIMELINE_BINS + 1)
        self._read = np.zeros((rows, TIMELINE_BINS))
        self._write = np.zeros((rows, TIMELINE_BINS))
        self._source = source_name

    def add_calls(self, rank: int, rank_calls: NDArray[Any], is_write: bool) -> None:
        """Adds calls with `length`, `start` and `end`; the bytes of a call are spread evenly over its time."""
        if rank_calls.size:
            self._add_calls(rank, rank_calls["start"], rank_calls["end"], rank_calls["length"], is_write)

    def add_bins(self, rank: int, bin_s: float, bin_bytes: NDArray[np.int64], is_write: bool) -> None:
        """Adds bytes in equal intervals that begin with the job."""
        begins = np.arange(bin_bytes.size) * bin_s
        self._add_calls(rank, begins, begins + bin_s, bin_bytes, is_write)

    def _add_calls(self, rank: int, start_times: Any, end_times: Any, call_bytes: Any, is_write: bool) -> None:
        rows = self._write if is_write else self._read
        row = max(rank, 0) // self._ranks_per_row
        if row >= len(rows):
            return
        used = np.flatnonzero((np.asarray(call_bytes) > 0) & np.isfinite(start_times) & np.isfinite(end_times))
        last = self._edges[-1]
        for chunk in (used[begin : begin + _CALLS_PER_CHUNK] for begin in range(0, used.size, _CALLS_PER_CHUNK)):
            # What lies outside of the job's time is counted at its ends.
            begin = np.clip(start_times[chunk], 0.0, last * (1 - 1e-9))
            end = np.maximum(np.clip(end_times[chunk], 0.0, last), begin + 1e-12)
            progress = np.clip((self._edges[None, :] - begin[:, None]) / (end - begin)[:, None], 0.0, 1.0)
            cumulated = (progress * np.asarray(call_bytes)[chunk, None]).sum(axis=0)
            rows[row] += np.diff(cumulated)

    def build_timeline(self) -> IoTimeline:
        """Returns the timeline of all added calls and bytes."""
        return IoTimeline(self._bin_s, self._ranks_per_row, self._read, self._write, self._source)
