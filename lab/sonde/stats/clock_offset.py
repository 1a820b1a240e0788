# SPDX-License-Identifier: Apache-2.0
"""Offset between two clocks, from the times of events that both recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MATCH_TOLERANCE_S = 2.0  # logs state whole seconds, and an event has its effect a little later
MAX_OFFSET_S = 15 * 3600.0  # of a log in another time zone
_MIN_MATCHES = 3
_MAX_TIMES = 300


@dataclass(frozen=True)
class ClockOffset:
    """`offset_s` is observed minus reference time; the true value is within `error_s` of it."""

    offset_s: float
    error_s: float
    matches: int


def estimate_clock_offset(
    reference_events: Mapping[str, Sequence[float]],
    observed_events: Mapping[str, Sequence[float]],
    match_tolerance_s: float = MATCH_TOLERANCE_S,
    max_offset_s: float = MAX_OFFSET_S,
) -> ClockOffset | None:
    """The offset at which most events of equal kind coincide within `match_tolerance_s`.

    Times are in seconds, by kind of event. Returns None with fewer than three coincidences, or when another offset has
    more than half as many: then the coincidences may be chance. Only the first 300 times of each kind count.
    """
    pairs = [
        (_sort_times(reference_events[kind]), _sort_times(observed_events[kind]))
        for kind in reference_events.keys() & observed_events.keys()
        if len(reference_events[kind]) and len(observed_events[kind])
    ]
    if not pairs:
        return None
    differences = np.concatenate([np.subtract.outer(observed_times, times).ravel() for times, observed_times in pairs])
    candidates = np.unique(differences[np.abs(differences) <= max_offset_s])
    if not candidates.size:
        return None
    counts = np.array(
        [
            sum(_match_times(times, observed_times, offset, match_tolerance_s).size for times, observed_times in pairs)
            for offset in candidates
        ]
    )
    best = candidates[int(counts.argmax())]
    matches = int(counts.max())
    rivals = counts[np.abs(candidates - best) > 2 * match_tolerance_s]
    if matches < _MIN_MATCHES or (rivals.size and 2 * int(rivals.max()) > matches):
        return None
    residuals = np.concatenate(
        [_match_times(times, observed_times, best, match_tolerance_s) for times, observed_times in pairs]
    )
    spread = float(residuals.max() - residuals.min()) / 2
    return ClockOffset(float(np.median(residuals)), max(spread, match_tolerance_s / 2), matches)


def _sort_times(times: Sequence[float]) -> NDArray[np.float64]:
    return np.sort(np.asarray(times, dtype=np.float64))[:_MAX_TIMES]


def _match_times(
    reference_times: NDArray[np.float64],
    observed_times: NDArray[np.float64],
    assumed_offset_s: float,
    match_tolerance_s: float,
) -> NDArray[np.float64]:
    """Differences of the pairs that coincide at this offset; each time is in one pair."""
    differences = []
    position = 0
    for time in reference_times:
        while position < observed_times.size and observed_times[position] < time + assumed_offset_s - match_tolerance_s:
            position += 1
        if position < observed_times.size and observed_times[position] <= time + assumed_offset_s + match_tolerance_s:
            differences.append(observed_times[position] - time)
            position += 1
    return np.array(differences)
