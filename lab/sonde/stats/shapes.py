# SPDX-License-Identifier: Apache-2.0
"""What a rate over time looks like, by name: each shape is fitted to the curve, and the best one must earn its name.

Fits are least squares on logarithms (noise of rates multiplies), with a floor so that a standstill is a deep dip and
not minus infinity. A shape with more freedom pays for it (Schwarz's criterion, each freedom three times over because
neighboring slices are not independent), and a change that is too small to matter has no name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.bins import rebin
from sonde.stats.dips import Dips, find_dips
from sonde.stats.ranks import Floats

Name = Literal["steady decline", "cliff", "long tail", "stall", "slow start", "periodic dips"]

FEWEST = 16
_MOST = 120
_FLOOR = 0.05  # of the usual rate
_PRICE = 3.0
_MARGIN = 12.0
_SMALLEST = 0.25  # share of the rate that a shape takes away where it is strongest
# A tail moves little in much time.
_TAIL_BYTES, _TAIL_LEVEL, _TAIL_TIME = 0.20, 0.40, 0.10
# One that sinks little by little moves more on its way down.
_RAMP_BYTES = 0.40


@dataclass(frozen=True)
class Shape:
    """A named shape. `start` and `end` say where it shows, as shares of the time; `depth` is the share of the rate that
    it takes away where it is strongest; `period` is the share of the time between two dips, `count` how many there are.
    """

    name: Name
    start: float
    end: float
    depth: float
    period: float | None = None
    count: int = 1


@dataclass(frozen=True)
class _Fit:
    cost: float  # sum of squares left
    freedoms: int
    shape: Shape | None


def shape_of(rates: ArrayLike, usual: ArrayLike | None = None) -> Shape | None:
    """The name of the curve `rates` (equal slices), or None when it is flat, or of no shape that is known here.

    With `usual`, the median of reference runs in any number of slices, it is what differs from them that is named.
    Fewer than `FEWEST` slices have no shape.
    """
    values = np.asarray(rates, dtype=float)
    if values.size < FEWEST or values.max() <= 0:
        return None
    values = np.asarray(rebin(values.tolist(), _MOST))
    logs = _logarithms(values)
    if usual is not None:
        logs = logs - np.interp(
            _middle(values.size), _middle(np.size(usual)), _logarithms(np.asarray(usual, dtype=float))
        )
    dips = find_dips(logs)
    fits = [_decline(logs), _slow_start(logs), _fall(logs), _stall(logs), *([_dips(logs, dips)] if dips else [])]
    flat = _Fit(float(np.sum((logs - logs.mean()) ** 2)), 0, None)
    # also one without a name: what it is like best is not called by what it is like less
    best = min(fits, key=lambda fit: _criterion(fit, logs.size))
    enough = _criterion(best, logs.size) < _criterion(flat, logs.size) - _MARGIN
    return best.shape if enough and best.shape and best.shape.depth >= _SMALLEST else None


def _middle(count: int) -> Floats:
    return (np.arange(count) + 0.5) / count


def _logarithms(values: Floats) -> Floats:
    usual = float(np.median(values[values >= np.median(values)]))
    logs: Floats = np.log(np.maximum(values / usual, _FLOOR)) if usual > 0 else np.zeros(values.size)
    return logs


def _criterion(fit: _Fit, count: int) -> float:
    return count * float(np.log(max(fit.cost, 1e-9) / count)) + _PRICE * fit.freedoms * float(np.log(count))


def _lost(difference: float) -> float:
    """Share of the rate that a difference of logarithms, above 0, takes away."""
    return 1.0 - float(np.exp(-difference))


def _decline(logs: Floats) -> _Fit:
    """A straight line down from start to end, of the rate or of its logarithm."""
    ends = np.linspace(0.04, 0.96, 47)[:, None]  # the rate at the end, of that at the start
    u = _middle(logs.size)
    lines = np.concatenate([np.log(1 - (1 - ends) * u), np.log(ends) * u])
    left = logs - logs.mean() - (lines - lines.mean(axis=1, keepdims=True))
    costs = np.sum(left * left, axis=1)
    at = int(np.argmin(costs))
    return _Fit(float(costs[at]), 1, Shape("steady decline", 0.0, 1.0, 1 - float(ends[at % ends.size, 0])))


def _hinges(logs: Floats, late: bool) -> tuple[float, int, float]:
    """The best of: level and then a straight line (`late`), or a straight line and then level. (cost, bend, slope)"""
    n = logs.size
    u = _middle(n)
    bends = np.arange(2, n - 2)
    ramp = np.maximum(0.0, u[None, :] - u[bends, None]) if late else np.maximum(0.0, u[bends, None] - u[None, :])
    ramp_mean = ramp.mean(axis=1, keepdims=True)
    centered = logs - logs.mean()
    squares = np.sum((ramp - ramp_mean) ** 2, axis=1)
    slopes = (ramp - ramp_mean) @ centered / squares
    costs = np.sum(centered**2) - slopes**2 * squares
    costs = np.where(slopes < 0, costs, np.inf)
    at = int(np.argmin(costs))
    return float(costs[at]), int(bends[at]), float(slopes[at])


def _steps(logs: Floats, down: bool) -> tuple[float, int, float]:
    """The best of two levels, the second the lower one (`down`) or the higher one. (cost, cut, difference)"""
    n = logs.size
    cuts = np.arange(2, n - 1)
    sums, total = np.cumsum(logs)[cuts - 1], float(logs.sum())
    left, right = sums / cuts, (total - sums) / (n - cuts)
    costs = float(np.sum(logs**2)) - cuts * left**2 - (n - cuts) * right**2
    costs = np.where((right < left) == down, costs, np.inf)
    at = int(np.argmin(costs))
    return float(costs[at]), int(cuts[at]), float(abs(right[at] - left[at]))


def _slow_start(logs: Floats) -> _Fit:
    """Low at first, then level: by a ramp or by a step."""
    n = logs.size
    cost, bend, slope = _hinges(logs, late=False)
    low = -slope * bend / n
    step_cost, cut, difference = _steps(logs, down=False)
    if step_cost < cost:
        cost, bend, low = step_cost, cut, difference
    shape = Shape("slow start", 0.0, bend / n, _lost(low)) if np.isfinite(cost) and bend <= 0.7 * n else None
    return _Fit(cost, 2, shape)


def _fall(logs: Floats) -> _Fit:
    """Level, then lower until the end: at once (a cliff), or little by little while hardly anything moves (a tail)."""
    n = logs.size
    step_cost, cut, difference = _steps(logs, down=True)
    ramp_cost, bend, slope = _hinges(logs, late=True)
    ramp = -slope * (n - bend) / n
    at, depth, cost = (cut, difference, step_cost) if step_cost <= ramp_cost else (bend, ramp, ramp_cost)
    if not np.isfinite(cost):
        return _Fit(cost, 2, None)
    moved = np.exp(logs)
    share = float(moved[at:].sum() / moved.sum())
    level = float(np.median(moved[at:]) / np.median(moved[:at]))
    tail = share <= _TAIL_BYTES and level <= _TAIL_LEVEL and (n - at) / n >= _TAIL_TIME
    if step_cost <= ramp_cost:
        return _Fit(cost, 2, Shape("long tail" if tail else "cliff", at / n, 1.0, _lost(depth)))
    if _lost(depth) >= 1 - _TAIL_LEVEL and share <= _RAMP_BYTES:
        return _Fit(cost, 2, Shape("long tail", at / n, 1.0, _lost(depth)))
    return _Fit(cost, 2, Shape("steady decline", at / n, 1.0, _lost(depth)))


def _stall(logs: Floats) -> _Fit:
    """Level but for one block that is lower, with the same level before and after it."""
    n = logs.size
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    start, end = np.triu_indices(n + 1, 1)
    length = end - start
    inside = (start >= 2) & (end <= n - 2) & (length <= n // 2)
    start, end, length = start[inside], end[inside], length[inside]
    block, total = sums[end] - sums[start], float(logs.sum())
    level, rest = block / length, (total - block) / (n - length)
    costs = float(np.sum(logs**2)) - length * level**2 - (n - length) * rest**2
    costs = np.where(level < rest, costs, np.inf)
    at = int(np.argmin(costs))
    if not np.isfinite(costs[at]):
        return _Fit(float("inf"), 3, None)
    depth = _lost(float(rest[at] - level[at]))
    return _Fit(float(costs[at]), 3, Shape("stall", int(start[at]) / n, int(end[at]) / n, depth))


def _dips(logs: Floats, dips: Dips) -> _Fit:
    n = logs.size
    shape = Shape("periodic dips", dips.first / n, 1.0, _lost(dips.depth), dips.period / n, dips.count)
    return _Fit(dips.cost, 4, shape)
