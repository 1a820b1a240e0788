# SPDX-License-Identifier: Apache-2.0
"""The gate and the detectors of `sonde trend` for one new value at a time, from the state of a history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonde.trends.baseline_gate import MIN_BASELINE_RUNS, compute_median_and_limit
from sonde.trends.detectors import DetectorSettings, DetectorState
from sonde.trends.watch import HistoryWatch, watch_from_earlier_state
from sonde.watch.watch_state import HistoryState

# Accepted values that the limit follows from.
_MAX_REFERENCE_RUNS = 30


@dataclass(frozen=True)
class ProbeNumber:
    """One number of one run. `history` is the id of its history key."""

    history: str
    labels: dict[str, str]
    unit: str
    value: float


def compute_lower_limit(history: HistoryState) -> tuple[float, float] | None:
    """Usual value and limit of the gate; None while too few values are known."""
    reference = history.accepted[-_MAX_REFERENCE_RUNS:]
    return compute_median_and_limit(reference) if len(reference) >= MIN_BASELINE_RUNS else None


def is_below_limit(history: HistoryState | None, newest_value: float) -> bool:
    """Whether the value is below the limit."""
    limit = compute_lower_limit(history) if history is not None else None
    return limit is not None and newest_value < limit[1]


@dataclass(frozen=True)
class DetectedDrop:
    """A lasting drop: value after divided by value before, and the time of the first run after it."""

    ratio: float
    time: float


def detect_drop_in_newest_value(history_state: HistoryState, settings: DetectorSettings) -> DetectedDrop | None:
    """Adds the newest value of the history to its detectors. Returns the drop that they noticed, None without one.

    Costs milliseconds, whatever the length of the history.
    """
    logarithms = np.log(np.array(history_state.values, dtype=float))
    before = logarithms.size - 1
    filled = min(history_state.filled, before)
    reference = None if history_state.reference is None else (history_state.reference[0], history_state.reference[1])
    watch = HistoryWatch(DetectorState(before, filled, reference), ())
    (result,) = watch_from_earlier_state([logarithms], settings, {0: watch})
    history_state.filled = result.state.filled
    history_state.reference = None if result.state.reference is None else list(result.state.reference)
    drops = [
        DetectedDrop(alarm.level_ratio, history_state.times[alarm.first])
        for alarm in result.alarms
        if alarm.level_ratio < 1
    ]
    return drops[-1] if drops else None
