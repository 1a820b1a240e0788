# SPDX-License-Identifier: Apache-2.0
"""How often a watch may be wrong, and the settings that keep to it on the noise of this site.

The thresholds of the trend lane promise a false-alarm rate for independent runs. Real ones are not: neighbors share
weather, and the promise is broken by a factor of two to eleven. So the site's own residuals are cut into blocks of 40
runs, which keeps what neighbors share, drawn anew as years in which nothing changed, and watched with the very code
that watches the site; of the settings that stay within the budget the most sensitive one is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.change_model import START
from sonde.stats.ranks import Floats
from sonde.stats.segments import Segment, segments
from sonde.trends.lanes import Settings
from sonde.trends.watch import watch_rows

# Runs of history before the site's own noise is used. The published thresholds are used until then.
ENOUGH = 60
BLOCK = 40
_ARL0 = tuple(np.geomspace(200, 20000, 49).round().tolist())
_GATE = (4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0)
# Of the budget, for the gate lane. A larger share tells collapses of less than 70 % a run or two earlier, and pays with
# changes of 10 to 30 % that the trend lane finds later.
_GATE_SHARE = 0.4
_SIMULATED_RUNS = 60_000
# Long against the window of the trend lane, so that its first runs weigh little.
_SIMULATED_YEAR = 400
_MOST_NOISES = 300
# Runs of a fresh history that are only learned from.
FIRST_ANSWER = START - 1


@dataclass(frozen=True)
class Budget:
    """False alarms that one series may raise in a year of `runs_per_year` runs."""

    alarms_per_year: float = 1.0
    runs_per_year: float = 365.0

    def __post_init__(self) -> None:
        if not (self.alarms_per_year > 0 and self.runs_per_year > 0):
            raise ValueError("a budget needs more than no alarms and more than no runs a year")

    @property
    def per_run(self) -> float:
        return self.alarms_per_year / self.runs_per_year


@dataclass(frozen=True)
class Calibration:
    """`settings`, and the false alarms per 100 runs they cause on years drawn from `runs` residuals.

    `own` is False where there was too little history and the published settings stand. `kept` is False where even the
    dullest settings break the budget: noise like that has to be mended at its source, by repeats.
    """

    settings: Settings
    per_100_runs: float | None
    runs: int
    own: bool
    kept: bool = True

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Calibration:
        """What `dataclasses.asdict` made of one."""
        return cls(**{**document, "settings": Settings(**document["settings"])})


def residuals(rates: ArrayLike, parts: Sequence[Segment] | None = None) -> Floats:
    """The logarithms less the medians of their stretches of constant level (`parts`, where they are known already).

    A running median would take more away, slow weather too, and a watch that learned from what is left would raise
    twice the false alarms that it promises.
    """
    values: Floats = np.log(np.asarray(rates, dtype=float))
    for part in segments(rates) if parts is None else parts:
        values[part.first : part.end] -= log(part.level)
    return values


def resample(noise: Floats, rows: int, runs: int, random: np.random.Generator, block: int = BLOCK) -> Floats:
    """`rows` histories of `runs` runs without change, drawn from `noise` in blocks of neighbors."""
    block = min(block, noise.size)
    starts = random.integers(0, noise.size - block + 1, (rows, -(-runs // block)))
    drawn: Floats = noise[(starts[:, :, None] + np.arange(block)).reshape(rows, -1)[:, :runs]]
    return drawn


def false_alarms(noises: Sequence[Floats], settings: Settings, runs: int, rows: int, seed: int) -> tuple[int, int, int]:
    """Alarms, those of the gate among them, and runs watched, on `rows` histories of `runs` runs from each noise.

    The runs before the first possible answer are not counted as watched.
    """
    random = np.random.default_rng(seed)
    drawn = np.concatenate([resample(noise, rows, runs, random) for noise in noises])
    alarms = watch_rows(drawn, settings)
    return len(alarms), sum(one.lane == "gate" for one in alarms), drawn.shape[0] * max(1, runs - FIRST_ANSWER)


def calibrate(
    noises: Sequence[Floats],
    budget: Budget,
    settings: Settings | None = None,
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> Calibration:
    """The most sensitive settings that keep to `budget` on these residuals (one array a series). `step` is called
    before each of the settings that are tried.

    Short arrays are left out; when none has `ENOUGH` runs the given settings (else the published ones) are returned.
    """
    settings = settings or Settings()
    long = [noise for noise in noises if noise.size >= ENOUGH]
    known = sum(noise.size for noise in long)
    if not long:
        return Calibration(settings, None, known, own=False)
    long = long[:: -(-len(long) // _MOST_NOISES)]
    runs = _SIMULATED_YEAR
    rows = max(1, _SIMULATED_RUNS // (runs * len(long)))
    # a rate that is learned from few runs is not known well
    allowed = budget.per_run * float(np.clip(1 - 15 / np.sqrt(known), 0.5, 0.95))

    @functools.cache
    def counted(tried: Settings) -> tuple[int, int, int]:
        step()
        return false_alarms(long, tried, runs, rows, seed)

    def rate(tried: Settings, gate_only: bool = False) -> float:
        alarms, gate, watched = counted(tried)
        return (gate if gate_only else alarms) / watched

    found = float("inf")
    for deviations in _GATE:
        settings = replace(settings, gate_deviations=deviations, arl0=_ARL0[-1])
        if rate(settings, gate_only=True) > allowed * _GATE_SHARE:
            continue
        found = rate(settings)
        if found > allowed:  # the dullest trend lane breaks the budget, so all do
            continue
        low, high = 0, len(_ARL0) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if rate(replace(settings, arl0=_ARL0[middle])) <= allowed else (middle + 1, high)
        settings = replace(settings, arl0=_ARL0[high])
        found = rate(settings)
        break
    if found == float("inf"):
        found = rate(settings)
    return Calibration(settings, 100 * found, known, own=True, kept=found <= budget.per_run)
