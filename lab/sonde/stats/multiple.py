# SPDX-License-Identifier: Apache-2.0
"""Correction for multiple tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats


def adjust_p_values_for_false_discovery_rate(p_values: ArrayLike) -> Floats:
    """Returns adjusted p-values (Benjamini, Hochberg 1995): below x, at most the fraction x are false discoveries."""
    values = np.asarray(p_values, dtype=float)
    if values.size == 0:
        return values
    order = np.argsort(values)[::-1]
    ranks = np.arange(values.size, 0, -1)
    adjusted = np.empty(values.size)
    adjusted[order] = np.minimum.accumulate(values[order] * values.size / ranks)
    return adjusted
