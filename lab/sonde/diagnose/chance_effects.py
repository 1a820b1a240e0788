# SPDX-License-Identifier: Apache-2.0
"""Effects of faults that hit only some runs and parts: a lossy link loses no message of a short phase, or one, or two.

Values of such a fault are those of a healthy machine with some probability, and spread around others otherwise. One
normal distribution over both would miss what is typical of the fault: parts that are exactly as fast as their peers
beside parts that are much slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sonde.stats.ranks import Floats

# Logarithm of a factor below which a simulated value, which has no noise, is that of a healthy machine.
MAX_UNAFFECTED_LOG_RATIO = 0.1
# Error of affected values where one was simulated, as a share of it.
_SINGLE_VALUE_SD_SHARE = 0.5
# The prior of the share of unaffected values (Jeffreys).
_PRIOR_COUNT = 0.5


@dataclass(frozen=True)
class ValueAlternative:
    """For each strength: a probability, and the mean and error of a value in this case."""

    share: Floats
    mean: Floats
    sd: Floats


@dataclass(frozen=True)
class ChanceEffect:
    """For each strength: the probability that a value is that of a healthy machine, whose log ratio is 0, the error of
    such a value, and the mean and error of other values."""

    unaffected_share: Floats
    unaffected_sd: Floats
    mean: Floats
    sd: Floats

    @property
    def alternatives(self) -> tuple[ValueAlternative, ...]:
        """Unaffected and affected values."""
        return (
            ValueAlternative(self.unaffected_share, np.zeros_like(self.mean), self.unaffected_sd),
            ValueAlternative(1 - self.unaffected_share, self.mean, self.sd),
        )

    def add_spread(self, spread_sd: float) -> ChanceEffect:
        """Returns the effect with a spread added to both errors."""
        return replace(self, unaffected_sd=np.hypot(self.unaffected_sd, spread_sd), sd=np.hypot(self.sd, spread_sd))

    def add_relative_error(self, share: float) -> ChanceEffect:
        """Returns the effect with an error of affected values in proportion to them added."""
        return replace(self, sd=np.hypot(self.sd, share * self.mean))


def find_chance_effect(
    samples_by_strength: Sequence[Sequence[float]],
    interpolate: Callable[[Sequence[float]], Floats],
    min_error: float,
    relative_error: float,
) -> ChanceEffect | None:
    """Returns the effect from simulated values of each strength, weakest first; None where all of them are those of a
    healthy machine, or all are others. `interpolate` gives values at all strengths of those at simulated ones."""
    samples = [np.array(values) for values in samples_by_strength]
    affected = [values[np.abs(values) > MAX_UNAFFECTED_LOG_RATIO] for values in samples]
    if min(len(values) for values in samples) < 2:
        return None
    if _count_values(affected) in (0, _count_values(samples)):
        return None
    shares = [
        (len(values) - len(changed) + _PRIOR_COUNT) / (len(values) + 2 * _PRIOR_COUNT)
        for values, changed in zip(samples, affected, strict=True)
    ]
    means, errors = zip(*(_compute_mean_and_error(affected, index) for index in range(len(affected))), strict=True)
    mean = interpolate(means)
    sd = np.sqrt(interpolate(errors) ** 2 + min_error**2 + (relative_error * mean) ** 2)
    return ChanceEffect(interpolate(shares), np.full(len(mean), min_error), mean, np.asarray(sd))


def _count_values(groups: Sequence[Floats]) -> int:
    return sum(len(values) for values in groups)


def _compute_mean_and_error(affected_values: Sequence[Floats], strength_index: int) -> tuple[float, float]:
    """Mean and error of the affected values at a strength; those of the nearest strength that has some."""
    positions = [index for index, values in enumerate(affected_values) if len(values)]
    values = affected_values[min(positions, key=lambda index: abs(index - strength_index))]
    count = len(values)
    mean = float(np.mean(values))
    if count == 1:
        return mean, _SINGLE_VALUE_SD_SHARE * abs(mean)
    # The mean of few values has an error too, and their spread is known badly.
    return mean, float(np.sqrt((count + 1) / (count - 1)) * np.std(values))
