# SPDX-License-Identifier: Apache-2.0
"""The drop that a rank test detects in noise of known size: the reference for `sonde.stats.ratio`."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

# The rank test needs slightly more runs than a t test on normal noise: its efficiency is 3/pi, square root 0.98.
_EFFICIENCY = 0.98
_POWER, _LEVEL = 0.80, 0.01


def compute_detectable_drop(log_sd: float, runs_before: int, runs_after: int) -> float:
    """Returns the smallest detectable drop as a fraction; `log_sd` is the standard deviation of the logarithms."""
    normal = NormalDist()
    units = normal.inv_cdf(1 - _LEVEL) + normal.inv_cdf(_POWER)
    return float(1 - np.exp(-units * log_sd * np.sqrt(1 / runs_before + 1 / runs_after) / _EFFICIENCY))
