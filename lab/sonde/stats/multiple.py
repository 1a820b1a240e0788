# SPDX-License-Identifier: Apache-2.0
"""Many tests at once: which of them stand when some must come out by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats


def false_discovery(p: ArrayLike) -> Floats:
    """Adjusted p of each test (Benjamini, Hochberg 1995): of those below x, a share of x at most is chance."""
    values = np.asarray(p, dtype=float)
    if values.size == 0:
        return values
    order = np.argsort(values)[::-1]
    ranks = np.arange(values.size, 0, -1)
    adjusted = np.empty(values.size)
    adjusted[order] = np.minimum.accumulate(values[order] * values.size / ranks)
    return adjusted
