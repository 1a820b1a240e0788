# SPDX-License-Identifier: Apache-2.0
"""The timeline of a phase: its series as arrays to draw, of rates over at most a few hundred intervals of time.

A record may hold thousands of slices. They are joined for drawing, always by whole slices, so bytes are kept exactly.
Joining averages the per-task quantiles over time: the averaged minimum and maximum still enclose every task's averaged
rate (the mean of minima is never above the minimum of means), so the band never hides a task.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from sonde.findings.variation import RateVariation, analyze_rate_variation
from sonde.model.lines import SeriesLine
from sonde.model.record import PhaseRecord

MAX_DRAWN_SLICES = 240
GroupItem = TypeVar("GroupItem")
QUANTILES = ("min", "p25", "p50", "p75", "max")


@dataclass(frozen=True)
class PhaseTimeline:
    """Intervals between `edges` (seconds since the phase's common start); one value an interval in all other arrays.

    `steady` is the first and last edge between which all tasks were in their transfer; None when that never happened.
    """

    edges: tuple[float, ...]
    bytes_per_s: tuple[float, ...]
    ops_per_s: tuple[float, ...]
    active: tuple[int, ...]
    task_rate: dict[str, tuple[float | None, ...]]
    slice_s: float
    joined: int
    steady: tuple[float, float] | None
    tasks: int

    variation: RateVariation
    operations_variation: RateVariation

    def get_variation(self, counts_operations: bool) -> RateVariation:
        """How the total rate moved while all tasks were at work."""
        return self.operations_variation if counts_operations else self.variation


def build_timeline(phase: PhaseRecord) -> PhaseTimeline | None:
    """The timeline over all tasks; None when the record holds no usable series."""
    line = phase.total_series
    if line is None or line.slice_s <= 0:
        return None
    length = len(line.bytes)
    ops, active = _pad_with_zero(line.ops, length), _pad_with_zero(line.active, length)
    # Slices after the last activity are removed: the phase may have ended before them, so a zero there is no rate.
    used = max((i + 1 for i in range(length) if line.bytes[i] or ops[i] or active[i]), default=0)
    return _make_phase_timeline(line, ops[:used], active[:used], used, phase) if used else None


def _make_phase_timeline(
    series_line: SeriesLine,
    operations_per_slice: Sequence[int],
    active_tasks: Sequence[int],
    used_slices: int,
    phase: PhaseRecord,
) -> PhaseTimeline:
    width = series_line.slice_s
    joined = max(1, -(-used_slices // MAX_DRAWN_SLICES))
    edges = [width * i for i in range(0, used_slices, joined)] + [width * used_slices]
    edges[-1] = _compute_end_of_last_slice(edges[-1], width, phase)
    times = [end - start for start, end in itertools.pairwise(edges)]
    tasks = max(active_tasks)
    return PhaseTimeline(
        edges=tuple(edges),
        bytes_per_s=tuple(
            sum(p) / t for p, t in zip(_split_into_groups(series_line.bytes[:used_slices], joined), times, strict=True)
        ),
        ops_per_s=tuple(
            sum(p) / t for p, t in zip(_split_into_groups(operations_per_slice, joined), times, strict=True)
        ),
        active=tuple(max(part) for part in _split_into_groups(active_tasks, joined)),
        task_rate={
            name: tuple(
                _compute_known_mean(part)
                for part in _split_into_groups(
                    _pad_with_none(getattr(series_line.task_rate, name), used_slices), joined
                )
            )
            for name in QUANTILES
        },
        slice_s=width,
        joined=joined,
        steady=_find_steady_interval(active_tasks, width, tasks, edges[-1]),
        tasks=tasks,
        variation=analyze_rate_variation(series_line.bytes[:used_slices], active_tasks, width),
        operations_variation=analyze_rate_variation(operations_per_slice, active_tasks, width),
    )


def _compute_end_of_last_slice(full_edge_s: float, slice_s: float, phase: PhaseRecord) -> float:
    """The phase often ends inside its last slice: rates must not be diluted by the time after it."""
    ended = phase.end.seconds.elapsed if phase.end else None
    return full_edge_s if ended is None or ended <= full_edge_s - slice_s else min(ended, full_edge_s)


def _find_steady_interval(
    active_tasks: Sequence[int], slice_s: float, task_count: int, end_s: float
) -> tuple[float, float] | None:
    if task_count < 1:
        return None
    full = [i for i, count in enumerate(active_tasks) if count == task_count]
    return slice_s * full[0], min(end_s, slice_s * (full[-1] + 1))


def _pad_with_zero(slice_counts: Sequence[int], slice_count: int) -> list[int]:
    return [*slice_counts[:slice_count], *([0] * (slice_count - len(slice_counts)))]


def _pad_with_none(slice_values: Sequence[float | None], slice_count: int) -> list[float | None]:
    return [*slice_values[:slice_count], *([None] * (slice_count - len(slice_values)))]


def _split_into_groups(values: Sequence[GroupItem], group_size: int) -> list[Sequence[GroupItem]]:
    return [values[i : i + group_size] for i in range(0, len(values), group_size)]


def _compute_known_mean(values: Sequence[float | None]) -> float | None:
    known_values = [value for value in values if value is not None]
    return sum(known_values) / len(known_values) if known_values else None
