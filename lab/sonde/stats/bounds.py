# SPDX-License-Identifier: Apache-2.0
"""Numbers with their bounds: a share of runs, a statistic of several medians, and arithmetic on intervals. The interval
of one median is `sonde.stats.stopping`'s.

Nothing here asks noise to be normal. Arithmetic on intervals is conservative: the interval of a result covers at least
as often as those that it is made of cover together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats

CONFIDENCE = 0.95
# With fewer values even the range of all of them covers the median in less than 95 of 100 cases.
LEAST = 6
_DRAWS = 1000


@dataclass(frozen=True)
class Bounded:
    """A number and the interval that contains the true one; None for both bounds where there are too few values."""

    value: float
    low: float | None
    high: float | None

    @staticmethod
    def exact(value: float) -> Bounded:
        """A number that is known."""
        return Bounded(value, value, value)

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None and self.high is not None

    @property
    def ends(self) -> tuple[float, float]:
        """Both bounds; everything where there is no interval."""
        return (-math.inf if self.low is None else self.low, math.inf if self.high is None else self.high)

    @property
    def half(self) -> float | None:
        """Half of the interval as a share of the value; None without an interval, or when the value is 0."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    def __add__(self, other: Bounded) -> Bounded:
        return _joined(self, other, lambda a, b: a + b)

    def __sub__(self, other: Bounded) -> Bounded:
        return _joined(self, other, lambda a, b: a - b)

    def __mul__(self, other: Bounded) -> Bounded:
        return _joined(self, other, lambda a, b: a * b)

    def __truediv__(self, other: Bounded) -> Bounded:
        """Raises ZeroDivisionError when the divisor is 0; one whose interval contains 0 leaves no interval."""
        value = self.value / other.value
        low, high = other.ends
        if low <= 0 <= high:
            return Bounded(value, None, None)
        return _joined(self, other, lambda a, b: a / b)


def _joined(left: Bounded, right: Bounded, operator: Callable[[float, float], float]) -> Bounded:
    value = operator(left.value, right.value)
    if not (left.known and right.known):
        return Bounded(value, None, None)
    corners = [operator(a, b) for a in left.ends for b in right.ends]
    return Bounded(value, min(corners), max(corners))


def share_bounds(count: int, of: int, confidence: float = CONFIDENCE) -> Bounded:
    """A share of runs with its exact interval (Clopper and Pearson 1934). Raises ValueError for an impossible count."""
    if not 0 <= count <= of or of < 1:
        raise ValueError(f"{count} of {of} is no share")
    tail = (1 - confidence) / 2

    def at_least(p: float) -> float:
        return sum(math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(count, of + 1))

    def at_most(p: float) -> float:
        return sum(math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(count + 1))

    low = 0.0 if count == 0 else _root(lambda p: at_least(p) - tail)
    high = 1.0 if count == of else _root(lambda p: tail - at_most(p))
    return Bounded(count / of, low, high)


def _root(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def along(
    groups: Sequence[ArrayLike], of: Callable[[Floats], float], confidence: float = CONFIDENCE, seed: int = 1
) -> Bounded:
    """A statistic of the medians of several groups of runs, with its interval by drawing each group again (percentile
    bootstrap). No interval where a group has fewer than `LEAST` values. The draws are the same for the same data."""
    arrays = [np.asarray(group, dtype=float).ravel() for group in groups]
    value = of(np.array([np.median(one) for one in arrays]))
    if any(one.size < LEAST for one in arrays):
        return Bounded(value, None, None)
    random = np.random.default_rng(seed)
    medians = np.stack([np.median(random.choice(one, (_DRAWS, one.size)), axis=1) for one in arrays], axis=1)
    drawn = np.array([of(row) for row in medians])
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Bounded(value, min(float(low), value), max(float(high), value))


def more_runs(now: int, found: Bounded, threshold: float) -> int | None:
    """How many more runs would probably decide whether the value lies above `threshold`: intervals shrink with the
    square root of their number. None where the value lies so near to the threshold, for its interval, that no number
    worth doing would."""
    if not found.known:
        return max(1, LEAST - now)
    low, high = found.ends
    distance = abs(found.value - threshold)
    reach = found.value - low if found.value >= threshold else high - found.value
    if distance == 0 or reach / distance > 30:
        return None
    return max(1, math.ceil(now * (reach / distance) ** 2) - now)
