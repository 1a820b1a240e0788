# SPDX-License-Identifier: Apache-2.0
"""Names the shape of a rate over time. Each shape is fitted to the curve; the best fit is named only if it explains
enough more than a flat line.

Fits are least squares on logarithms (noise of rates multiplies), with a floor so that a standstill is a deep dip and
not minus infinity. A shape with more free parameters gets a penalty (Schwarz's criterion, each freedom three times over
because neighboring slices are not independent), and a change that is too small to matter has no name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.bins import sum_into_bins
from sonde.stats.dips import PeriodicDips, find_dips
from sonde.stats.ranks import Floats

RateShapeName = Literal["steady decline", "cliff", "long tail", "stall", "slow start", "periodic dips"]

MIN_SLICES = 16
_MAX_SLICES = 120
_MIN_RELATIVE_RATE = 0.05  # of the usual rate
_PENALTY_PER_PARAMETER = 3.0
_MIN_CRITERION_GAIN = 12.0
_MIN_DIP_DEPTH = 0.25  # share of the rate that a shape takes away where it is strongest
# A tail moves little in much time.
_TAIL_BYTES, _TAIL_LEVEL, _TAIL_TIME = 0.20, 0.40, 0.10
# One that sinks little by little moves more on its way down.
_MAX_RAMP_BYTE_SHARE = 0.40


@dataclass(frozen=True)
class RateShape:
    """A named shape. `start` and `end` are its begin and end, as fractions of the time; `depth` is the largest fraction
    of the rate that is lost; `period` is the share of the time between two dips, `count` how many there are.
    """

    name: RateShapeName
    start: float
    end: float
    depth: float
    period: float | None = None
    count: int = 1


@dataclass(frozen=True)
class _Fit:
    cost: float  # sum of squares left
    freedoms: int
    shape: RateShape | None


def find_rate_shape(rates: ArrayLike, reference_rates: ArrayLike | None = None) -> RateShape | None:
    """The name of the curve `rates` (equal slices), or None when it is flat, or of no shape that is known here.

    With `usual`, the median of reference runs in any number of slices, it is what differs from them that is named.
    Fewer than `MIN_SLICES` slices have no shape.
    """
    values = np.asarray(rates, dtype=float)
    if values.size < MIN_SLICES or values.max() <= 0:
        return None
    values = np.asarray(sum_into_bins(values.tolist(), _MAX_SLICES))
    logs = _convert_to_logarithms(values)
    if reference_rates is not None:
        logs = logs - np.interp(
            _compute_slice_centers(values.size),
            _compute_slice_centers(np.size(reference_rates)),
            _convert_to_logarithms(np.asarray(reference_rates, dtype=float)),
        )
    dips = find_dips(logs)
    fits = [
        _fit_decline(logs),
        _fit_slow_start(logs),
        _fit_drop_until_end(logs),
        _fit_stall(logs),
        *([_fit_dips(logs, dips)] if dips else []),
    ]
    flat = _Fit(float(np.sum((logs - logs.mean()) ** 2)), 0, None)
    # also one without a name: what it is like best is not called by what it is like less
    best = min(fits, key=lambda fit: _compute_information_criterion(fit, logs.size))
    is_significant = (
        _compute_information_criterion(best, logs.size)
        < _compute_information_criterion(flat, logs.size) - _MIN_CRITERION_GAIN
    )
    return best.shape if is_significant and best.shape and best.shape.depth >= _MIN_DIP_DEPTH else None


def _compute_slice_centers(slice_count: int) -> Floats:
    return (np.arange(slice_count) + 0.5) / slice_count


def _convert_to_logarithms(slice_rates: Floats) -> Floats:
    usual_rate = float(np.median(slice_rates[slice_rates >= np.median(slice_rates)]))
    logs: Floats = (
        np.log(np.maximum(slice_rates / usual_rate, _MIN_RELATIVE_RATE))
        if usual_rate > 0
        else np.zeros(slice_rates.size)
    )
    return logs


def _compute_information_criterion(fit: _Fit, value_count: int) -> float:
    return value_count * float(
        np.log(max(fit.cost, 1e-9) / value_count)
    ) + _PENALTY_PER_PARAMETER * fit.freedoms * float(np.log(value_count))


def _convert_to_lost_share(log_difference: float) -> float:
    """Fraction of the rate that is lost by a decrease of its logarithm (above 0)."""
    return 1.0 - float(np.exp(-log_difference))


def _fit_decline(log_rates: Floats) -> _Fit:
    """A straight line down from start to end, of the rate or of its logarithm."""
    ends = np.linspace(0.04, 0.96, 47)[:, None]  # the rate at the end, of that at the start
    u = _compute_slice_centers(log_rates.size)
    lines = np.concatenate([np.log(1 - (1 - ends) * u), np.log(ends) * u])
    residuals = log_rates - log_rates.mean() - (lines - lines.mean(axis=1, keepdims=True))
    costs = np.sum(residuals * residuals, axis=1)
    best = int(np.argmin(costs))
    return _Fit(float(costs[best]), 1, RateShape("steady decline", 0.0, 1.0, 1 - float(ends[best % ends.size, 0])))


def _fit_hinges(log_rates: Floats, is_late: bool) -> tuple[float, int, float]:
    """The best of: level and then a straight line (`late`), or a straight line and then level. (cost, bend, slope)"""
    n = log_rates.size
    u = _compute_slice_centers(n)
    bends = np.arange(2, n - 2)
    ramp = np.maximum(0.0, u[None, :] - u[bends, None]) if is_late else np.maximum(0.0, u[bends, None] - u[None, :])
    ramp_mean = ramp.mean(axis=1, keepdims=True)
    centered = log_rates - log_rates.mean()
    squares = np.sum((ramp - ramp_mean) ** 2, axis=1)
    slopes = (ramp - ramp_mean) @ centered / squares
    costs = np.sum(centered**2) - slopes**2 * squares
    costs = np.where(slopes < 0, costs, np.inf)
    best = int(np.argmin(costs))
    return float(costs[best]), int(bends[best]), float(slopes[best])


def _fit_steps(log_rates: Floats, is_down: bool) -> tuple[float, int, float]:
    """The best of two levels, the second the lower one (`down`) or the higher one. (cost, cut, difference)"""
    n = log_rates.size
    cuts = np.arange(2, n - 1)
    sums, total = np.cumsum(log_rates)[cuts - 1], float(log_rates.sum())
    left_mean, right_mean = sums / cuts, (total - sums) / (n - cuts)
    costs = float(np.sum(log_rates**2)) - cuts * left_mean**2 - (n - cuts) * right_mean**2
    costs = np.where((right_mean < left_mean) == is_down, costs, np.inf)
    best = int(np.argmin(costs))
    return float(costs[best]), int(cuts[best]), float(abs(right_mean[best] - left_mean[best]))


def _fit_slow_start(log_rates: Floats) -> _Fit:
    """Low at first, then level: by a ramp or by a step."""
    n = log_rates.size
    cost, bend, slope = _fit_hinges(log_rates, is_late=False)
    low = -slope * bend / n
    step_cost, cut, difference = _fit_steps(log_rates, is_down=False)
    if step_cost < cost:
        cost, bend, low = step_cost, cut, difference
    shape = (
        RateShape("slow start", 0.0, bend / n, _convert_to_lost_share(low))
        if np.isfinite(cost) and bend <= 0.7 * n
        else None
    )
    return _Fit(cost, 2, shape)


def _fit_drop_until_end(log_rates: Floats) -> _Fit:
    """Level, then lower until the end: at once (a cliff), or little by little while hardly anything moves (a tail)."""
    n = log_rates.size
    step_cost, cut, difference = _fit_steps(log_rates, is_down=True)
    ramp_cost, bend, slope = _fit_hinges(log_rates, is_late=True)
    ramp = -slope * (n - bend) / n
    position, depth, cost = (cut, difference, step_cost) if step_cost <= ramp_cost else (bend, ramp, ramp_cost)
    if not np.isfinite(cost):
        return _Fit(cost, 2, None)
    amounts = np.exp(log_rates)
    share = float(amounts[position:].sum() / amounts.sum())
    level = float(np.median(amounts[position:]) / np.median(amounts[:position]))
    is_tail = share <= _TAIL_BYTES and level <= _TAIL_LEVEL and (n - position) / n >= _TAIL_TIME
    if step_cost <= ramp_cost:
        return _Fit(
            cost, 2, RateShape("long tail" if is_tail else "cliff", position / n, 1.0, _convert_to_lost_share(depth))
        )
    if _convert_to_lost_share(depth) >= 1 - _TAIL_LEVEL and share <= _MAX_RAMP_BYTE_SHARE:
        return _Fit(cost, 2, RateShape("long tail", position / n, 1.0, _convert_to_lost_share(depth)))
    return _Fit(cost, 2, RateShape("steady decline", position / n, 1.0, _convert_to_lost_share(depth)))


def _fit_stall(log_rates: Floats) -> _Fit:
    """Level but for one block that is lower, with the same level before and after it."""
    n = log_rates.size
    sums = np.concatenate([[0.0], np.cumsum(log_rates)])
    start, end = np.triu_indices(n + 1, 1)
    length = end - start
    inside = (start >= 2) & (end <= n - 2) & (length <= n // 2)
    start, end, length = start[inside], end[inside], length[inside]
    block, total = sums[end] - sums[start], float(log_rates.sum())
    level, rest_level = block / length, (total - block) / (n - length)
    costs = float(np.sum(log_rates**2)) - length * level**2 - (n - length) * rest_level**2
    costs = np.where(level < rest_level, costs, np.inf)
    best = int(np.argmin(costs))
    if not np.isfinite(costs[best]):
        return _Fit(float("inf"), 3, None)
    depth = _convert_to_lost_share(float(rest_level[best] - level[best]))
    return _Fit(float(costs[best]), 3, RateShape("stall", int(start[best]) / n, int(end[best]) / n, depth))


def _fit_dips(log_rates: Floats, dips: PeriodicDips) -> _Fit:
    n = log_rates.size
    shape = RateShape(
        "periodic dips", dips.first / n, 1.0, _convert_to_lost_share(dips.depth), dips.period / n, dips.count
    )
    return _Fit(dips.cost, 4, shape)
