# SPDX-License-Identifier: Apache-2.0
"""How often the detectors may be wrong, and the settings that meet this budget on the noise of this site.

The thresholds of the drift detector promise a false-alarm rate for independent runs. Real runs are correlated, which
multiplies the rate by two to eleven. So the site's residuals are cut into blocks of 40 runs, which preserves the
correlation, and resampled as years without change. The detectors watch these years; of the settings within the budget
the most sensitive are used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.change_model import MIN_RUNS
from sonde.stats.ranks import Floats
from sonde.stats.segments import Segment, find_segments
from sonde.trends.detectors import DetectorSettings
from sonde.trends.watch import find_alarms_in_rows

# Runs of history before the site's own noise is used; until then the published thresholds apply.
MIN_NOISE_RUNS = 60
RESAMPLING_BLOCK_RUNS = 40
_TRIED_ARL0 = tuple(np.geomspace(200, 20000, 49).round().tolist())
_COLLAPSE_DEVIATIONS = (4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0)
# Fraction of the budget for the collapse detector. A larger one reports collapses of less than 70 % a run or two
# earlier, but changes of 10 to 30 %, which the drift detector finds, later.
_COLLAPSE_BUDGET_FRACTION = 0.4
_SIMULATED_RUNS = 60_000
# Long compared with the window of the drift detector, so that its first runs weigh little.
_SIMULATED_RUNS_PER_HISTORY = 400
_MAX_RESIDUAL_ARRAYS = 300
# Runs of a new history before the first possible alarm.
RUNS_BEFORE_FIRST_ANSWER = MIN_RUNS - 1


@dataclass(frozen=True)
class AlarmBudget:
    """False alarms that one history may raise in a year of `runs_per_year` runs."""

    alarms_per_year: float = 1.0
    runs_per_year: float = 365.0

    def __post_init__(self) -> None:
        if not (self.alarms_per_year > 0 and self.runs_per_year > 0):
            raise ValueError("a budget needs more than no alarms and more than no runs a year")

    @property
    def alarms_per_run(self) -> float:
        return self.alarms_per_year / self.runs_per_year


@dataclass(frozen=True)
class DetectorCalibration:
    """`settings`, and the false alarms per 100 runs they cause on years drawn from `runs` residuals.

    `from_site_noise` is False when there was too little history and the published settings apply. `meets_budget` is
    False when even the least sensitive settings exceed the budget: such noise must be reduced by repeats.
    """

    settings: DetectorSettings
    per_100_runs: float | None
    runs: int
    from_site_noise: bool
    meets_budget: bool = True

    @classmethod
    def from_json(cls, calibration_document: Mapping[str, Any]) -> DetectorCalibration:
        """Builds a calibration from the document that `dataclasses.asdict` made."""
        return cls(**{**calibration_document, "settings": DetectorSettings(**calibration_document["settings"])})


def compute_log_residuals(rates: ArrayLike, segments: Sequence[Segment] | None = None) -> Floats:
    """The logarithms minus the medians of their segments of constant level (`segments`, if computed already).

    A running median would also remove slow noise, and detectors calibrated on the rest would raise twice the promised
    false alarms.
    """
    values: Floats = np.log(np.asarray(rates, dtype=float))
    for part in find_segments(rates) if segments is None else segments:
        values[part.first : part.end] -= log(part.level)
    return values


def resample_noise(
    log_residuals: Floats,
    history_count: int,
    run_count: int,
    generator: np.random.Generator,
    block_length: int = RESAMPLING_BLOCK_RUNS,
) -> Floats:
    """`history_count` histories of `run_count` runs without change, drawn from `log_residuals` in blocks of consecutive
    runs."""
    block_length = min(block_length, log_residuals.size)
    starts = generator.integers(
        0, log_residuals.size - block_length + 1, (history_count, -(-run_count // block_length))
    )
    drawing: Floats = log_residuals[
        (starts[:, :, None] + np.arange(block_length)).reshape(history_count, -1)[:, :run_count]
    ]
    return drawing


def count_false_alarms(
    residuals_of_histories: Sequence[Floats], settings: DetectorSettings, run_count: int, history_count: int, seed: int
) -> tuple[int, int, int]:
    """Alarms, alarms of the collapse detector, and watched runs of `history_count` histories of `run_count` runs from
    each noise.

    Runs before the first possible alarm do not count as watched.
    """
    random = np.random.default_rng(seed)
    drawing = np.concatenate(
        [resample_noise(noise, history_count, run_count, random) for noise in residuals_of_histories]
    )
    alarms = find_alarms_in_rows(drawing, settings)
    return (
        len(alarms),
        sum(alarm.detector == "collapse" for alarm in alarms),
        drawing.shape[0] * max(1, run_count - RUNS_BEFORE_FIRST_ANSWER),
    )


def calibrate_detector(
    residuals_of_histories: Sequence[Floats],
    budget: AlarmBudget,
    settings: DetectorSettings | None = None,
    seed: int = 1,
    on_step: Callable[[], None] = lambda: None,
) -> DetectorCalibration:
    """The most sensitive settings within `budget` on these residuals (one array per history). Calls `on_step` before
    each trial.

    Short arrays are left out; when none has `ENOUGH` runs the given settings (else the published ones) are returned.
    """
    settings = settings or DetectorSettings()
    long = [noise for noise in residuals_of_histories if noise.size >= MIN_NOISE_RUNS]
    run_count = sum(noise.size for noise in long)
    if not long:
        return DetectorCalibration(settings, None, run_count, from_site_noise=False)
    long = long[:: -(-len(long) // _MAX_RESIDUAL_ARRAYS)]
    runs = _SIMULATED_RUNS_PER_HISTORY
    rows = max(1, _SIMULATED_RUNS // (runs * len(long)))
    # A rate estimated from few runs is uncertain.
    allowed = budget.alarms_per_run * float(np.clip(1 - 15 / np.sqrt(run_count), 0.5, 0.95))

    @functools.cache
    def count_alarms(tried_settings: DetectorSettings) -> tuple[int, int, int]:
        on_step()
        return count_false_alarms(long, tried_settings, runs, rows, seed)

    def compute_alarm_rate(tried_settings: DetectorSettings, counts_collapses_only: bool = False) -> float:
        alarms, gate, watched = count_alarms(tried_settings)
        return (gate if counts_collapses_only else alarms) / watched

    result = float("inf")
    for deviations in _COLLAPSE_DEVIATIONS:
        settings = replace(settings, collapse_deviations=deviations, arl0=_TRIED_ARL0[-1])
        if compute_alarm_rate(settings, counts_collapses_only=True) > allowed * _COLLAPSE_BUDGET_FRACTION:
            continue
        result = compute_alarm_rate(settings)
        if result > allowed:  # the least sensitive drift detector exceeds the budget, so all do
            continue
        low, high = 0, len(_TRIED_ARL0) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (low, middle)
                if compute_alarm_rate(replace(settings, arl0=_TRIED_ARL0[middle])) <= allowed
                else (middle + 1, high)
            )
        settings = replace(settings, arl0=_TRIED_ARL0[high])
        result = compute_alarm_rate(settings)
        break
    if result == float("inf"):
        result = compute_alarm_rate(settings)
    return DetectorCalibration(
        settings, 100 * result, run_count, from_site_noise=True, meets_budget=result <= budget.alarms_per_run
    )
