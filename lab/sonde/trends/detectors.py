# SPDX-License-Identifier: Apache-2.0
"""Two detectors that watch histories run by run: collapses within three runs, and smaller lasting changes.

The *collapse* detector compares the last three runs with the level before them: all three must be below the median by
four robust standard deviations and by 15 %. The *drift* detector is a change-point model on ranks: after every run it
finds the split of the last 80 runs that separates them best, and compares it with what chance produces.

Both use natural logarithms of rates, because noise is multiplicative, and process many histories at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sonde.stats.change_model import MIN_RUNS, MIN_SIDE_RUNS, WINDOW_RUNS, interpolate_thresholds
from sonde.stats.ranks import Floats, RankWindow
from sonde.stats.spread import MAD_TO_SD

Detector = Literal["collapse", "drift"]

# Runs from which the collapse detector knows a level.
_REFERENCE_RUNS = 10
_MIN_COLLAPSE_RUNS = 3
LARGE_DROP_DEVIATIONS = 4.0


@dataclass(frozen=True)
class DetectorSettings:
    """Thresholds of a change, as fractions of the level before it.

    `arl0` is the mean number of runs between false alarms of the drift detector for independent runs. The collapse
    detector reports a drop by `large_drop` also where noise requires larger `collapse_deviations`.
    """

    arl0: float = 2000.0
    smallest_change: float = 0.10
    collapse_deviations: float = 4.0
    collapse_change: float = 0.15
    large_drop: float = 0.70
    min_spread: float = 0.02


@dataclass(frozen=True)
class Alarm:
    """One report of a detector: history number `history` changed at run `first`, noticed at run `noticed` (from 0).

    `before` and `after` are medians of the logarithms. `strength` is in standard deviations of chance (drift detector)
    or of noise (collapse detector).
    """

    history: int
    detector: Detector
    noticed: int
    first: int
    before: float
    after: float
    strength: float

    @property
    def level_ratio(self) -> float:
        """The level after divided by the level before."""
        return float(np.exp(self.after - self.before))


@dataclass(frozen=True)
class DetectorState:
    """State of both detectors after `runs` runs of one history without gaps. Together with the runs it suffices to
    resume the detectors.

    The window holds the last `filled` runs. `reference` is the level before an alarm that the collapse detector still
    compares with, and its spread.
    """

    runs: int
    filled: int
    reference: tuple[float, float] | None

    def __post_init__(self) -> None:
        if not 0 <= self.filled <= min(self.runs, WINDOW_RUNS):
            raise ValueError("no detector has such a state")


@dataclass
class DetectorBank:
    """Both detectors for `count` histories; `push_runs` adds one run of each and returns the alarms."""

    count: int
    settings: DetectorSettings = field(default_factory=DetectorSettings)
    window: RankWindow = field(init=False)

    def __post_init__(self) -> None:
        self.window = RankWindow(self.count, WINDOW_RUNS)
        self._limits = interpolate_thresholds(self.settings.arl0)
        self._runs = np.zeros(self.count, dtype=np.int64)
        # Run numbers of the values in the window, which holds no gaps (NaN).
        self._run_numbers: NDArray[np.int64] = np.zeros((self.count, WINDOW_RUNS), dtype=np.int64)
        # After an alarm the collapse detector compares with the level before it until the new level is known.
        self._reference = np.full((self.count, 2), np.nan)

    def get_detector_state(self, history_index: int) -> DetectorState:
        """The state of the detectors for one history."""
        reference = self._reference[history_index]
        return DetectorState(
            int(self._runs[history_index]),
            int(self.window.filled[history_index]),
            None if np.isnan(reference[0]) else (float(reference[0]), float(reference[1])),
        )

    def resume_history(self, history_index: int, state: DetectorState, log_rates: Floats) -> None:
        """Resumes one history from a state; `log_rates` are its runs, at least those before the state."""
        self.window.replace_values(history_index, log_rates[state.runs - state.filled : state.runs])
        self._run_numbers[history_index, WINDOW_RUNS - state.filled :] = np.arange(
            state.runs - state.filled, state.runs
        )
        self._runs[history_index] = state.runs
        self._reference[history_index] = state.reference or np.nan

    def select_histories(self, is_selected: NDArray[np.bool_]) -> None:
        """Drops all other histories and renumbers those that remain."""
        self.window.select_series(is_selected)
        self._runs, self._run_numbers, self._reference = (
            self._runs[is_selected],
            self._run_numbers[is_selected],
            self._reference[is_selected],
        )

    def push_runs(self, newest_logarithms: Floats) -> list[Alarm]:
        """Adds one run of each history, NaN for none. Returns the alarms, at most one for each history."""
        measured = ~np.isnan(newest_logarithms)
        self.window.append_values(newest_logarithms)
        rows = slice(None) if measured.all() else measured
        self._run_numbers[rows, :-1] = self._run_numbers[rows, 1:]
        self._run_numbers[rows, -1] = self._runs[rows]
        self._runs += 1
        alarms = self._detect_collapses(measured)
        alarmed = {alarm.history for alarm in alarms}
        alarms += [alarm for alarm in self._detect_drifts(measured) if alarm.history not in alarmed]
        for alarm in alarms:
            self._restart_window(alarm)
        self._reference[self.window.filled >= MIN_RUNS] = np.nan
        return alarms

    def _detect_collapses(self, is_measured: NDArray[np.bool_]) -> list[Alarm]:
        window = self.window
        last = window.ranks[:, -_MIN_COLLAPSE_RUNS:]
        has_level = window.filled >= _REFERENCE_RUNS + _MIN_COLLAPSE_RUNS
        reference = ~np.isnan(self._reference[:, 0]) & (window.filled >= _MIN_COLLAPSE_RUNS)
        # Three runs below the median rank are a necessary condition that leaves few histories.
        low = np.max(last, axis=1) <= (window.filled + 1) / 2
        candidates = np.flatnonzero(is_measured & ((has_level & low) | reference))
        if not candidates.size:
            return []
        medians, spreads = self._compute_reference_medians_and_spreads(candidates)
        newest = window.values[candidates, -_MIN_COLLAPSE_RUNS:]
        drops = medians - np.max(newest, axis=1)
        enough = np.minimum(self.settings.collapse_deviations * spreads, self._compute_large_drop(spreads))
        least = np.maximum(enough, -log(1 - self.settings.collapse_change))
        alarms = []
        for position in np.flatnonzero(drops > least):
            index, median = int(candidates[position]), float(medians[position])
            after = float(np.median(newest[position]))
            first = int(self._run_numbers[index, -_MIN_COLLAPSE_RUNS])
            strength = (after - median) / float(spreads[position])
            alarms.append(Alarm(index, "collapse", int(self._runs[index]) - 1, first, median, after, strength))
        return alarms

    def _compute_large_drop(self, log_spreads: Floats) -> Floats:
        """The drop that is reported whatever `collapse_deviations` is: large, and beyond the noise."""
        return np.maximum(LARGE_DROP_DEVIATIONS * log_spreads, -log(1 - self.settings.large_drop))

    def _compute_reference_medians_and_spreads(self, history_indices: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Medians and robust standard deviations of the levels that the last three runs are compared with."""
        values = self.window.values[history_indices, : WINDOW_RUNS - _MIN_COLLAPSE_RUNS]
        counts = self.window.filled[history_indices] - _MIN_COLLAPSE_RUNS
        medians = _compute_row_medians(values, counts)
        spreads = MAD_TO_SD * _compute_row_medians(np.abs(values - medians[:, None]), counts)
        reference = self._reference[history_indices]
        stored = ~np.isnan(reference[:, 0])
        medians, spreads = np.where(stored, reference[:, 0], medians), np.where(stored, reference[:, 1], spreads)
        return medians, np.maximum(spreads, self.settings.min_spread)

    def _compute_median_and_spread(self, log_rates: Floats) -> tuple[float, float]:
        median = float(np.median(log_rates))
        spread = MAD_TO_SD * float(np.median(np.abs(log_rates - median)))
        return median, max(spread, self.settings.min_spread)

    def _detect_drifts(self, is_measured: NDArray[np.bool_]) -> list[Alarm]:
        window = self.window
        ready = is_measured & (window.filled >= MIN_RUNS)
        if not ready.any():
            return []
        strength, newer = window.find_strongest_splits(MIN_SIDE_RUNS)
        alarms = []
        for index in np.flatnonzero(ready & (np.abs(strength) > self._limits[window.filled])):
            count, split = int(window.filled[index]), int(newer[index])
            values = window.values[index, WINDOW_RUNS - count :]
            before, after = float(np.median(values[: count - split])), float(np.median(values[count - split :]))
            if abs(after - before) >= -log(1 - self.settings.smallest_change):
                first = int(self._run_numbers[index, WINDOW_RUNS - split])
                noticed = int(self._runs[index]) - 1
                alarms.append(Alarm(int(index), "drift", noticed, first, before, after, float(strength[index])))
        return alarms

    def _restart_window(self, alarm: Alarm) -> None:
        """Restarts the window with the first run after the change.

        The collapse detector keeps the level before and its noise as reference, so that it detects a second, larger
        change soon after the first. After a drop the reference is the new level, so that the drop is reported once.
        """
        index = alarm.history
        filled = int(self.window.filled[index])
        places = self._run_numbers[index, WINDOW_RUNS - filled :]
        older = self.window.values[index, WINDOW_RUNS - filled :][places < alarm.first]
        if older.size >= _REFERENCE_RUNS:
            median, spread = self._compute_median_and_spread(older)
            self._reference[index] = (min(median, alarm.after), spread)
        elif not np.isnan(self._reference[index, 0]):
            self._reference[index, 0] = min(self._reference[index, 0], alarm.after)
        self.window.drop_all_but_last_values(index, int(np.sum(places >= alarm.first)))


def _compute_row_medians(value_rows: Floats, value_counts: NDArray[np.int64]) -> Floats:
    """The median of each row, which has `value_counts` values; the others are NaN."""
    ordered = np.sort(value_rows, axis=1)  # NaN comes last
    rows = np.arange(value_rows.shape[0])
    value_counts = np.maximum(value_counts, 1)
    middles: Floats = (ordered[rows, (value_counts - 1) // 2] + ordered[rows, value_counts // 2]) / 2
    return middles
