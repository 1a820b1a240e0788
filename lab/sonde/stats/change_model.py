# SPDX-License-Identifier: Apache-2.0
"""Thresholds of the change-point model: how strong the best split must be before it is more than chance.

After every run the model takes the largest standardized rank difference over all splits of the last `WINDOW_RUNS` runs
(Mann-Whitney within the change-point model of Hawkins and Deng 2010; Ross, Tasoulis and Adams 2011). Its distribution
under "no change" depends on nothing but the number of runs in the window, so the thresholds are simulated once, from
uniform noise: at each count the threshold is exceeded with probability 1/ARL0 by the series that have not exceeded one
before. ARL0 is the mean number of runs between two false alarms when runs are independent; real runs are not, which is
why `sonde.trends.budget` chooses ARL0 on the residuals of the site.

`tools/change-thresholds` writes `change_table.py` anew from `simulate`.
"""

from __future__ import annotations

from math import log

import numpy as np

from sonde.stats.change_table import DETECTION_THRESHOLDS
from sonde.stats.ranks import Floats, RankWindow

# Runs in the window. More runs find small changes slightly better but forget older levels later.
WINDOW_RUNS = 80
# Runs before the first result.
MIN_RUNS = 20
# Runs on the shorter side of a split.
MIN_SIDE_RUNS = 2
AVERAGE_RUN_LENGTH_RANGE = (min(DETECTION_THRESHOLDS), max(DETECTION_THRESHOLDS))


def interpolate_thresholds(arl0: float) -> Floats:
    """Returns the threshold for each number of runs in the window, 0 … `WINDOW_RUNS`; infinite below `MIN_RUNS`.

    Values between the simulated ARL0 are interpolated over log(ARL0). Raises ValueError outside
    `AVERAGE_RUN_LENGTH_RANGE`.
    """
    low, high = AVERAGE_RUN_LENGTH_RANGE
    if not low <= arl0 <= high:
        raise ValueError(f"ARL0 is {arl0:g}; thresholds are known from {low} to {high}")
    simulated_arl0 = sorted(DETECTION_THRESHOLDS)
    rows = np.array([DETECTION_THRESHOLDS[arl0_value] for arl0_value in simulated_arl0])
    log_arl0 = [log(arl0_value) for arl0_value in simulated_arl0]
    interpolated = np.array([np.interp(log(arl0), log_arl0, column) for column in rows.T])
    return np.concatenate([np.full(MIN_RUNS, np.inf), interpolated])


def simulate_thresholds(arl0: float, series_count: int, seed: int, settling_steps: int = 30) -> Floats:
    """The thresholds for `MIN_RUNS` … `WINDOW_RUNS` runs, from `series_count` series of uniform noise.

    A window that has just become full still knows what its series did not do before; the last threshold is the mean
    over `settling_steps` steps after ten such. Counts are smoothed by a parabola, which the noise of the simulation
    hides in.
    """
    random = np.random.default_rng(seed)
    window = RankWindow(series_count, WINDOW_RUNS)
    limits: list[float] = []
    for step in range(1, WINDOW_RUNS + 10 + settling_steps):
        window.append_values(random.random(window.filled.size))
        if step < MIN_RUNS:
            continue
        strength = np.abs(window.find_strongest_splits(MIN_SIDE_RUNS)[0])
        limit = float(np.quantile(strength, 1 - 1 / arl0))
        limits.append(limit)
        window.select_series(strength <= limit)
    growing_limits = np.array(limits[: WINDOW_RUNS - MIN_RUNS])
    counts = np.arange(MIN_RUNS, WINDOW_RUNS)
    smoothed = np.polyval(np.polyfit(counts, growing_limits, 2), counts)
    return np.append(smoothed, np.mean(limits[WINDOW_RUNS - MIN_RUNS + 10 :]))
