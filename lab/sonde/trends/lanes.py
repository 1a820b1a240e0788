# SPDX-License-Identifier: Apache-2.0
"""Two lanes that watch a series run by run: one notices a collapse within three runs, one a smaller lasting change.

The *gate* lane compares the last three runs with the level before them: all three below the median by four robust
standard deviations and by 15 %. The *trend* lane is a change-point model on ranks: after every run it asks which split
of the last 80 runs separates them best, and whether that is more than chance would do in the stated number of runs.

Both work on natural logarithms of rates, because noise multiplies, and on many series at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sonde.stats.change_model import SHORTEST, START, WINDOW, thresholds
from sonde.stats.ranks import Floats, RankWindow
from sonde.stats.spread import MAD_TO_SD

Lane = Literal["gate", "trend"]

# Runs that the gate needs to know a level.
_REFERENCE = 10
_IN_A_ROW = 3
COLLAPSE_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Settings:
    """What counts as a change. Shares are of the level before; `arl0` is the mean number of runs between false alarms
    of the trend lane when runs are independent. A drop by `collapse` is told also where noise has moved the limit of
    the gate further out."""

    arl0: float = 2000.0
    smallest_change: float = 0.10
    gate_deviations: float = 4.0
    gate_change: float = 0.15
    collapse: float = 0.70
    least_spread: float = 0.02


@dataclass(frozen=True)
class Alarm:
    """Series `series` changed at run `first`, which was noticed at run `noticed` (both counted from 0).

    `before` and `after` are medians of the logarithms, `strength` is in standard deviations of chance for the trend
    lane and of noise for the gate.
    """

    series: int
    lane: Lane
    noticed: int
    first: int
    before: float
    after: float
    strength: float

    @property
    def ratio(self) -> float:
        """After by before."""
        return float(np.exp(self.after - self.before))


@dataclass(frozen=True)
class Place:
    """Where the watch of one history without gaps stands after `runs` runs: all that it needs to go on, beside the runs
    themselves. The window holds the last `filled` of them; `held` is the level before an alarm that the gate still
    compares with, and its spread."""

    runs: int
    filled: int
    held: tuple[float, float] | None

    def __post_init__(self) -> None:
        if not 0 <= self.filled <= min(self.runs, WINDOW):
            raise ValueError("a watch never stands there")


@dataclass
class Lanes:
    """Watches `series` series; `push` takes one more run of each and returns what was noticed."""

    series: int
    settings: Settings = field(default_factory=Settings)
    window: RankWindow = field(init=False)

    def __post_init__(self) -> None:
        self.window = RankWindow(self.series, WINDOW)
        self._limits = thresholds(self.settings.arl0)
        self._runs = np.zeros(self.series, dtype=np.int64)
        # Positions of the values in the window: gaps (NaN) take no place there.
        self._places: NDArray[np.int64] = np.zeros((self.series, WINDOW), dtype=np.int64)
        # After an alarm the level before it stays the gate's reference until the new one is known.
        self._held = np.full((self.series, 2), np.nan)

    def place(self, series: int) -> Place:
        """Where the watch of that series stands."""
        held = self._held[series]
        return Place(
            int(self._runs[series]),
            int(self.window.filled[series]),
            None if np.isnan(held[0]) else (float(held[0]), float(held[1])),
        )

    def resume(self, series: int, place: Place, values: Floats) -> None:
        """Goes on with that series where a watch stood; `values` are its runs, those until then at least."""
        self.window.fill(series, values[place.runs - place.filled : place.runs])
        self._places[series, WINDOW - place.filled :] = np.arange(place.runs - place.filled, place.runs)
        self._runs[series] = place.runs
        self._held[series] = place.held or np.nan

    def keep(self, keep: NDArray[np.bool_]) -> None:
        """Goes on with these series only; they are counted anew."""
        self.window.keep_series(keep)
        self._runs, self._places, self._held = self._runs[keep], self._places[keep], self._held[keep]

    def push(self, values: Floats) -> list[Alarm]:
        """One run of each series, NaN where there was none. Alarms of this step, at most one a series."""
        here = ~np.isnan(values)
        self.window.push(values)
        rows = slice(None) if here.all() else here
        self._places[rows, :-1] = self._places[rows, 1:]
        self._places[rows, -1] = self._runs[rows]
        self._runs += 1
        alarms = self._gate(here)
        alarmed = {one.series for one in alarms}
        alarms += [one for one in self._trend(here) if one.series not in alarmed]
        for alarm in alarms:
            self._restart(alarm)
        self._held[self.window.filled >= START] = np.nan
        return alarms

    def _gate(self, here: NDArray[np.bool_]) -> list[Alarm]:
        window = self.window
        last = window.ranks[:, -_IN_A_ROW:]
        known = window.filled >= _REFERENCE + _IN_A_ROW
        held = ~np.isnan(self._held[:, 0]) & (window.filled >= _IN_A_ROW)
        # three runs below half of all is necessary, and leaves few series to look at
        low = np.max(last, axis=1) <= (window.filled + 1) / 2
        looked = np.flatnonzero(here & ((known & low) | held))
        if not looked.size:
            return []
        medians, spreads = self._references(looked)
        newest = window.values[looked, -_IN_A_ROW:]
        drops = medians - np.max(newest, axis=1)
        enough = np.minimum(self.settings.gate_deviations * spreads, self._collapse(spreads))
        least = np.maximum(enough, -log(1 - self.settings.gate_change))
        alarms = []
        for at in np.flatnonzero(drops > least):
            series, median = int(looked[at]), float(medians[at])
            after = float(np.median(newest[at]))
            first = int(self._places[series, -_IN_A_ROW])
            strength = (after - median) / float(spreads[at])
            alarms.append(Alarm(series, "gate", int(self._runs[series]) - 1, first, median, after, strength))
        return alarms

    def _collapse(self, spreads: Floats) -> Floats:
        """The drop that is told however dull the gate had to become: a large one, outside of the noise."""
        return np.maximum(COLLAPSE_DEVIATIONS * spreads, -log(1 - self.settings.collapse))

    def _references(self, series: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Medians and robust standard deviations of the levels that the last three runs are compared with."""
        values = self.window.values[series, : WINDOW - _IN_A_ROW]
        counts = self.window.filled[series] - _IN_A_ROW
        medians = _middles(values, counts)
        spreads = MAD_TO_SD * _middles(np.abs(values - medians[:, None]), counts)
        held = self._held[series]
        kept = ~np.isnan(held[:, 0])
        medians, spreads = np.where(kept, held[:, 0], medians), np.where(kept, held[:, 1], spreads)
        return medians, np.maximum(spreads, self.settings.least_spread)

    def _level(self, values: Floats) -> tuple[float, float]:
        median = float(np.median(values))
        spread = MAD_TO_SD * float(np.median(np.abs(values - median)))
        return median, max(spread, self.settings.least_spread)

    def _trend(self, here: NDArray[np.bool_]) -> list[Alarm]:
        window = self.window
        ready = here & (window.filled >= START)
        if not ready.any():
            return []
        strength, newer = window.strongest_split(SHORTEST)
        alarms = []
        for series in np.flatnonzero(ready & (np.abs(strength) > self._limits[window.filled])):
            count, split = int(window.filled[series]), int(newer[series])
            values = window.values[series, WINDOW - count :]
            before, after = float(np.median(values[: count - split])), float(np.median(values[count - split :]))
            if abs(after - before) >= -log(1 - self.settings.smallest_change):
                first = int(self._places[series, WINDOW - split])
                noticed = int(self._runs[series]) - 1
                alarms.append(Alarm(int(series), "trend", noticed, first, before, after, float(strength[series])))
        return alarms

    def _restart(self, alarm: Alarm) -> None:
        """The new level begins with the first run after the change.

        The gate keeps the level before, and its noise, as what to compare with: without it a second, larger change
        soon after a first one would meet a detector without history. After a drop the level itself is the new one, so
        that the same drop is not told again with every run.
        """
        series = alarm.series
        filled = int(self.window.filled[series])
        places = self._places[series, WINDOW - filled :]
        older = self.window.values[series, WINDOW - filled :][places < alarm.first]
        if older.size >= _REFERENCE:
            median, spread = self._level(older)
            self._held[series] = (min(median, alarm.after), spread)
        elif not np.isnan(self._held[series, 0]):
            self._held[series, 0] = min(self._held[series, 0], alarm.after)
        self.window.keep_last(series, int(np.sum(places >= alarm.first)))


def _middles(values: Floats, counts: NDArray[np.int64]) -> Floats:
    """The median of each row, of which `counts` values are known and the others NaN."""
    ordered = np.sort(values, axis=1)  # NaN comes last
    rows = np.arange(values.shape[0])
    counts = np.maximum(counts, 1)
    middles: Floats = (ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2
    return middles
