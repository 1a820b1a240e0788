# SPDX-License-Identifier: Apache-2.0
"""Kernel density estimate on logarithms, because rates vary by factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Below this spread (a factor of e^0.002 = 0.2 %) values count as equal: narrower kernels would be drawn as a line.
_MIN_KERNEL_WIDTH = 0.002


def estimate_log_density(
    observations: NDArray[np.float64], evaluated_values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Density of log(`observations`) at log(`places`); both above zero. A Gaussian kernel, its width by Silverman's
    rule (0.9 min(sd, IQR / 1.349) n^-1/5; Density Estimation, 1986, eq. 3.31). Raises ValueError without values."""
    if observations.size == 0 or (observations <= 0).any() or (evaluated_values <= 0).any():
        raise ValueError("a density on logarithms needs values above zero")
    logs = np.log(observations)
    lower, upper = np.quantile(logs, [0.25, 0.75])
    spreads = [spread for spread in (float(logs.std()), float(upper - lower) / 1.349) if spread > 0]
    width = max(0.9 * min(spreads, default=0.0) * observations.size**-0.2, _MIN_KERNEL_WIDTH)
    steps = (np.log(evaluated_values)[:, None] - logs[None, :]) / width
    density: NDArray[np.float64] = np.exp(-0.5 * steps**2).sum(axis=1) / (
        observations.size * width * np.sqrt(2 * np.pi)
    )
    return density
