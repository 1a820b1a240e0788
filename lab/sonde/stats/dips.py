# SPDX-License-Identifier: Apache-2.0
"""Finds periodic dips by box least squares (Kovács, Zucker and Mazeh 2002): the curve is folded at each period."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sonde.stats.ranks import Floats

MIN_DIPS = 3
_MAX_DIP_WIDTH_SHARE = 0.5  # of the period
_MIN_PRESENT_SHARE = 0.75  # share of the expected dips that must be there


@dataclass(frozen=True)
class PeriodicDips:
    """`period`, `width` and `first` (start of the first dip) in slices; `depth` as a difference of logarithms; `cost`
    is the sum of squares that two levels leave."""

    period: float
    width: float
    first: float
    depth: float
    count: int
    cost: float


def find_dips(log_rates: Floats) -> PeriodicDips | None:
    """Returns the periodic dips that explain most of `log_rates`, or None without at least three dips."""
    n = log_rates.size
    centered = log_rates - log_rates.mean()
    positions = np.arange(n) + 0.5
    best: tuple[float, float, float, float] | None = None  # gain, period, phase, width
    frequencies = np.arange((MIN_DIPS - 0.4) / n, 1 / 3, 0.25 / n)
    for period in 1 / frequencies:
        phases = positions % period
        order = np.argsort(phases, kind="stable")
        gain, first, end = _find_best_box(centered[order], max(1, int(_MAX_DIP_WIDTH_SHARE * n)))
        if gain > (best[0] if best else 0.0):
            sorted_phases = phases[order]
            low, high = float(sorted_phases[first]), float(sorted_phases[end % n])
            width = (high - low) % period
            best = gain, float(period), low - 0.5, width
    return _describe_dips(log_rates, *best) if best else None


@cache
def _list_box_widths(max_width: int) -> NDArray[np.int64]:
    """Widths that grow by a third: the gain hardly depends on a slice more or less."""
    return np.unique(np.round(np.geomspace(MIN_DIPS, max_width, 14)).astype(np.int64))


def _find_best_box(folded_log_rates: Floats, max_width: int) -> tuple[float, int, int]:
    """Returns the lower interval (cyclic) that reduces the sum of squares most."""
    n, widths = folded_log_rates.size, _list_box_widths(max_width)
    sums = np.zeros(2 * n + 1)
    np.cumsum(np.concatenate([folded_log_rates, folded_log_rates]), out=sums[1:])
    # a row for each width, a column for each start
    sums_inside = sliding_window_view(sums, n)[widths] - sums[:n]
    np.minimum(sums_inside, 0.0, out=sums_inside)
    gains = sums_inside**2 * n / (widths * (n - widths))[:, None]
    row, position = divmod(int(np.argmax(gains)), n)
    gain = float(gains[row, position])
    return (gain, position, position + int(widths[row])) if gain > 0 else (0.0, 0, 1)


def _describe_dips(
    log_rates: Floats, squared_error_gain: float, period_slices: float, phase_offset: float, dip_width: float
) -> PeriodicDips | None:
    n = log_rates.size
    inside = ((np.arange(n) + 0.5 - (phase_offset + 0.5)) % period_slices) < dip_width
    if not inside.any():
        return None
    depth = float(np.median(log_rates[~inside]) - np.median(log_rates[inside]))
    dip_numbers = np.floor((np.arange(n) - phase_offset) / period_slices).astype(int)
    expected = [log_rates[inside & (dip_numbers == dip_number)] for dip_number in np.unique(dip_numbers[inside])]
    present = [dip for dip in expected if np.mean(dip) < np.median(log_rates[~inside]) - depth / 2]
    if len(present) < MIN_DIPS or len(present) < _MIN_PRESENT_SHARE * len(expected) or depth <= 0:
        return None
    first = phase_offset % period_slices
    return PeriodicDips(
        period_slices,
        dip_width,
        first,
        depth,
        len(present),
        float(np.sum((log_rates - log_rates.mean()) ** 2)) - squared_error_gain,
    )
