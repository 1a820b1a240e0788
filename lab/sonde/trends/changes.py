# SPDX-License-Identifier: Apache-2.0
"""Alarms as changes, and changes of one time as a joint change: its parts, and what it spared, say where to look."""

from __future__ import annotations

import bisect
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Protocol

import numpy as np

from sonde.stats.ranks import Floats
from sonde.stats.ratio import MIN_RUNS_PER_SIDE, RateRatio, compare_rates
from sonde.stats.spread import compute_robust_sd
from sonde.trends.detectors import Alarm, Detector
from sonde.trends.history import History
from sonde.trends.scope import UNEXPLAINED, JointChangeExplanation, explain_changes, group_changes_by_size

# Changes of different histories are a joint change when they lie this many runs apart at most.
MAX_RUNS_BETWEEN_JOINT_CHANGES = 3
# Changes at most this many runs from each other are of the same round of runs, which no group splits.
_RUNS_WITHIN_ROUND = 0.5
# Runs on each side that the size of a change is estimated from.
_RUNS_AROUND_CHANGE = 30
# Standard error of a logarithm of a change that too few runs measured for an interval.
_LOG_ERROR_WITHOUT_INTERVAL = 0.15
# Real histories are never quieter than this (standard deviation of a logarithm).
_MIN_LOG_ERROR = 0.02


@dataclass(frozen=True)
class Change:
    """One history changed its level between two of its runs."""

    history: int
    detector: Detector
    last_before: float  # time of the last run at the old level
    first_after: float
    noticed: float
    runs_to_notice: int
    size: RateRatio  # by the runs up to the one that it was noticed with
    since: RateRatio  # by up to 30 runs after it

    @property
    def is_drop(self) -> bool:
        return self.size.value < 1.0

    @property
    def is_temporary(self) -> bool:
        """Whether later runs reversed at least half of the change."""
        return abs(log(self.since.value)) < abs(log(self.size.value)) / 2


class CompareRates(Protocol):
    """Computes the ratio of two sides, or takes it from a cache."""

    def __call__(self, rates_before: Floats, rates_after: Floats, *, with_p_value: bool = ...) -> RateRatio: ...


class GetExplanations(Protocol):
    """The explanations with this key: computed by `compute_explanations`, or from a cache."""

    def __call__(
        self, explanation_key: str, compute_explanations: Callable[[], list[JointChangeExplanation]]
    ) -> list[JointChangeExplanation]: ...


def measure_changes(
    histories: Sequence[History], alarms: Sequence[Alarm], compute_ratio: CompareRates = compare_rates
) -> list[Change]:
    """Each alarm with its times and the size of the change, from up to 30 runs before it.

    Runs from before an earlier change, or after a later one, do not count.
    """
    result = []
    firsts: dict[int, list[int]] = {}
    for alarm in alarms:
        firsts.setdefault(alarm.history, []).append(alarm.first)
    for alarm in alarms:
        item, same = histories[alarm.history], firsts[alarm.history]
        begin = max((first for first in same if first < alarm.first), default=0)
        end = min((first for first in same if first > alarm.first), default=len(item))
        begin, end = max(begin, alarm.first - _RUNS_AROUND_CHANGE), min(end, alarm.first + _RUNS_AROUND_CHANGE)
        result.append(
            Change(
                history=alarm.history,
                detector=alarm.detector,
                last_before=float(item.times[alarm.first - 1]),
                first_after=float(item.times[alarm.first]),
                noticed=float(item.times[alarm.noticed]),
                runs_to_notice=alarm.noticed - alarm.first + 1,
                size=compute_ratio(item.values[begin : alarm.first], item.values[alarm.first : alarm.noticed + 1]),
                since=compute_ratio(
                    item.values[begin : alarm.first], item.values[alarm.first : max(end, alarm.noticed + 1)]
                ),
            )
        )
    return result


@dataclass(frozen=True)
class JointChangePart:
    """Changes of one direction and size at one time, and what they have in common."""

    changes: tuple[Change, ...]
    explanation: JointChangeExplanation

    @property
    def smallest_change(self) -> Change:
        """The change of the least size."""
        return min(self.changes, key=lambda change: abs(log(change.size.value)))

    @property
    def largest_change(self) -> Change:
        return max(self.changes, key=lambda change: abs(log(change.size.value)))


@dataclass(frozen=True)
class JointChange:
    """Changes of several histories at one time: one part for each direction and size, the largest first."""

    parts: tuple[JointChangePart, ...]

    @functools.cached_property
    def changes(self) -> tuple[Change, ...]:
        return tuple(change for part in self.parts for change in part.changes)

    @property
    def begin_time(self) -> float:
        """The earliest first run after."""
        return min(change.first_after for change in self.changes)

    @property
    def end_time(self) -> float:
        """The latest first run after."""
        return max(change.first_after for change in self.changes)

    @property
    def notice_time(self) -> float:
        return min(change.noticed for change in self.changes)


def group_changes(
    histories: Sequence[History],
    changes: Sequence[Change],
    compute_ratio: CompareRates = compare_rates,
    get_explanations: GetExplanations = lambda key, make: make(),
) -> list[JointChange]:
    """Groups of changes, the oldest first.

    A group reaches no further than three runs (of the slower history) from its first change, so that a chain of small
    distances does not join what is weeks apart. Where it ends within a round of runs, the changes of that round are in
    the next group. A history is in a group once.
    """
    intervals = [history.usual_interval_s for history in histories]

    def is_near(change: Change, earlier_change: Change, max_runs: float) -> bool:
        interval = max(intervals[change.history], intervals[earlier_change.history])
        return change.first_after - earlier_change.first_after <= max_runs * interval

    groups: list[list[Change]] = []
    for change in sorted(changes, key=lambda change: change.first_after):
        group = groups[-1] if groups else []
        near = bool(group) and is_near(change, group[0], MAX_RUNS_BETWEEN_JOINT_CHANGES)
        if near and all(other.history != change.history for other in group):
            group.append(change)
            continue
        of_round = [] if near else [other for other in group[1:] if is_near(change, other, _RUNS_WITHIN_ROUND)]
        group[:] = [other for other in group if other not in of_round]
        groups.append([*of_round, change])
    surroundings = _HistoriesWithChanges(histories, changes)
    return [_make_joint_change(surroundings, group, compute_ratio, get_explanations) for group in groups]


class _HistoriesWithChanges:
    """All histories with the times of their changes: what a joint change is compared with."""

    def __init__(self, histories: Sequence[History], changes: Sequence[Change]) -> None:
        self.histories = histories
        self.identities = [json.dumps(dict(history.labels)).encode() for history in histories]
        self._change_times: list[list[float]] = [[] for _ in histories]
        for change in changes:
            self._change_times[change.history].append(change.first_after)
        for times in self._change_times:
            times.sort()

    def select_rates_before_and_after(self, history_index: int, change_time: float) -> tuple[Floats, Floats]:
        """Up to 30 runs of a history on either side of a time, up to its nearest change on each side."""
        history, change_times = self.histories[history_index], self._change_times[history_index]
        split = bisect.bisect_right(change_times, change_time)
        middle = int(history.times.searchsorted(change_time))
        first = int(history.times.searchsorted(change_times[split - 1])) if split else 0
        last = int(history.times.searchsorted(change_times[split])) if split < len(change_times) else len(history)
        return (
            history.values[max(first, middle - _RUNS_AROUND_CHANGE) : middle],
            history.values[middle : min(last, middle + _RUNS_AROUND_CHANGE)],
        )


def _make_joint_change(
    histories_with_changes: _HistoriesWithChanges,
    changes_together: Sequence[Change],
    compute_ratio: CompareRates,
    get_explanations: GetExplanations,
) -> JointChange:
    # Changes of opposite directions are never one part, however uncertain their sizes are.
    directions = [
        [i for i, change in enumerate(changes_together) if change.is_drop is is_drop] for is_drop in (True, False)
    ]
    sizes = [
        [positions[index] for index in indexes]
        for positions in directions
        if positions
        for indexes in group_changes_by_size(
            [_estimate_log_change_and_error(changes_together[position]) for position in positions]
        )
    ]
    sizes.sort(key=lambda indexes: -max(abs(log(changes_together[index].size.value)) for index in indexes))
    parts = [tuple(changes_together[position] for position in positions) for positions in sizes]
    # A single history has nothing in common with others, and the comparison with all others takes long.
    if all(len(members) == 1 for members in parts):
        return JointChange(tuple(JointChangePart(members, UNEXPLAINED) for members in parts))
    time = min(change.first_after for change in changes_together)
    changed = {change.history for change in changes_together}
    sides = {
        index: histories_with_changes.select_rates_before_and_after(index, time)
        for index in range(len(histories_with_changes.histories))
        if index not in changed
    }
    explanations = get_explanations(
        _make_explanation_key(histories_with_changes, parts, sides, time),
        lambda: _explain_parts(histories_with_changes.histories, parts, sides, time, compute_ratio),
    )
    return JointChange(tuple(map(JointChangePart, parts, explanations)))


def _make_explanation_key(
    histories_with_changes: _HistoriesWithChanges,
    changes_of_parts: Sequence[Sequence[Change]],
    rates_before_and_after: Mapping[int, tuple[Floats, Floats]],
    change_time: float,
) -> str:
    """A digest of everything that the explanations of a joint change follow from."""
    key = hashlib.blake2b(digest_size=16)
    for members in changes_of_parts:
        key.update(b"part")
        for change in members:
            key.update(histories_with_changes.identities[change.history] + repr(change.size.value).encode())
    for index, (before, after) in rates_before_and_after.items():
        is_measured = _is_measured_around(histories_with_changes.histories[index], change_time)
        key.update(histories_with_changes.identities[index] + b"%d %d %d " % (len(before), len(after), is_measured))
        key.update(before.tobytes() + after.tobytes())
    return key.hexdigest()


def _explain_parts(
    histories: Sequence[History],
    changes_of_parts: Sequence[Sequence[Change]],
    rates_before_and_after: Mapping[int, tuple[Floats, Floats]],
    change_time: float,
    compute_ratio: CompareRates,
) -> list[JointChangeExplanation]:
    nearby = {
        index: _measure_unnoticed_change(before, after, compute_ratio)
        for index, (before, after) in rates_before_and_after.items()
    }
    explanations = []
    for members in changes_of_parts:
        if len(members) == 1:
            explanations.append(UNEXPLAINED)
            continue
        typical = float(np.median([log(change.size.value) for change in members]))
        unchanged = [
            histories[change.history].labels
            for others in changes_of_parts
            if others is not members
            for change in others
        ]
        unjudged = 0
        for index, size in nearby.items():
            if size is None:
                unjudged += _is_measured_around(histories[index], change_time)
            elif _is_surely_unchanged(size, typical):
                unchanged.append(histories[index].labels)
            else:
                unjudged += 1
        explanations.append(
            explain_changes([histories[change.history].labels for change in members], unchanged, unjudged)
        )
    return explanations


def _is_measured_around(history: History, change_time: float) -> bool:
    """Whether it was measured before and after."""
    return len(history) > 0 and bool(history.times[0] < change_time <= history.times[-1])


def _estimate_log_change_and_error(change: Change) -> tuple[float, float]:
    """The logarithm of the change and its standard error; a broad one where no interval is known."""
    best = change.size if change.is_temporary or change.since.low is None else change.since
    return log(best.value), _compute_log_standard_error(best)


def _compute_log_standard_error(rate_ratio: RateRatio) -> float:
    if rate_ratio.low is None or rate_ratio.high is None:
        return _LOG_ERROR_WITHOUT_INTERVAL
    return log(rate_ratio.high / rate_ratio.low) / (2 * 1.96)


def _measure_unnoticed_change(
    rates_before: Floats, rates_after: Floats, compute_ratio: CompareRates = compare_rates
) -> tuple[float, float] | None:
    """How a history moved at a time at which no change of it was noticed, as a logarithm with its standard error.

    Where the runs are too few for an interval, the error is that of medians in the noise before. None when a side has
    no run, or when no noise is known.
    """
    if not rates_before.size or not rates_after.size:
        return None
    size = compute_ratio(rates_before, rates_after, with_p_value=False)
    if size.low is not None:
        return log(size.value), _compute_log_standard_error(size)
    if rates_before.size < MIN_RUNS_PER_SIDE:
        return None
    spread = max(compute_robust_sd(np.log(rates_before)), _MIN_LOG_ERROR)
    return log(size.value), spread * float(np.sqrt(pi / 2 * (1 / rates_before.size + 1 / rates_after.size)))


def _is_surely_unchanged(log_change_and_error: tuple[float, float], typical_log_change: float) -> bool:
    """Whether a history surely did not change by `typical_log_change` (a logarithm): with 95 % confidence it changed by
    less than half of it, or in the opposite direction."""
    value, error = log_change_and_error
    toward = value if typical_log_change > 0 else -value
    return toward + 1.96 * error < abs(typical_log_change) / 2
