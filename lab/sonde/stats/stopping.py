# SPDX-License-Identifier: Apache-2.0
"""The median of repeats with its interval, when the repeats were stopped because that interval was narrow enough.

Whoever looks at an interval after every run, and stops when it is narrow, stops too often where it is narrow by luck:
at a nominal 95 % it then contains the truth in 91 to 92 of 100 cases. So the levels of the looks between the first and
the last are higher. Neighboring runs are alike, too (lag-1 correlation of storage is about 0.2 once slow drift is
taken off), which makes an interval of independent runs too narrow: it is stretched by what the runs themselves show,
and by a little in any case.

The interval is that of order statistics, interpolated between two pairs of them (Hettmansperger and Sheather 1986), on
logarithms. Levels and stretching were found by simulation with noise that is normal, Laplace, one-sided (exponential,
chi-square) and mixed as real runs are (one in seven much slower), independent and with a correlation of 0.18, for
limits from "first look is enough" to "never": it covered in 93 to 97 of 100 (93 to 96 with that correlation), and tests
hold it to 95 of 100 within 2 and what chance does to 1,000 trials (``tests/lab/stats/test_stopping.py``).
With a correlation of 0.4, as raw series over months have, it covers in 85 to 95 of 100.

A number from several such samples (a ratio of two sides, a slope over several cells) has its own level
(`adjust_level_for_looks`): all samples must be narrow before the last one stops, so repeated looks cost less than for
one median. Two sides without a difference would differ in up to 5.8 of 100 comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import comb
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats

# With fewer runs even their range is no interval of 95 %.
MIN_RUNS = 5
CONFIDENCE = 0.95
_NORMAL = NormalDist()
# Correlation of neighbors that is assumed where the runs show less, and how many runs' worth of doubt there is about
# what they show.
_MIN_CORRELATION, _PRIOR_RUNS, _MAX_CORRELATION = 0.075, 20, 0.6


class InterimLook(StrEnum):
    """Which look at the growing sample this is; it decides about the level."""

    ONLY = "only"  # the number of runs was fixed beforehand
    FIRST = "first"
    BETWEEN = "between"
    LAST = "last"


# What is left, at each look, of the share of misses that a fixed number of runs may have: of the interval of one
# median, and of what compares several samples. The stretching below makes up for the share above 1.
_ONE_MEDIAN_FACTORS = {InterimLook.ONLY: 1.1, InterimLook.FIRST: 1.1, InterimLook.BETWEEN: 0.46, InterimLook.LAST: 0.8}
_SEVERAL_MEDIANS_FACTORS = {
    InterimLook.ONLY: 1.0,
    InterimLook.FIRST: 1.0,
    InterimLook.BETWEEN: 0.85,
    InterimLook.LAST: 1.0,
}


def adjust_level_for_looks(looks: Iterable[InterimLook], confidence: float = CONFIDENCE) -> float:
    """The confidence to ask of a method for fixed numbers of runs, so that what it says of samples that were ended at
    these looks (one each) covers with `confidence`."""
    return 1 - (1 - confidence) * min((_SEVERAL_MEDIANS_FACTORS[look] for look in looks), default=1.0)


@dataclass(frozen=True)
class MedianInterval:
    """The median of repeats. `low` and `high` are None where there are too few of them."""

    value: float
    low: float | None
    high: float | None
    count: int

    @property
    def relative_half_width(self) -> float | None:
        """Half of the interval as a share of the median; None without an interval, 0 when all values are equal."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / self.value


@dataclass(frozen=True)
class StopRule:
    """Repeats of a cell: at least `least`, then until `share` is reached, at most `most` of them."""

    min_runs: int
    max_runs: int
    max_half_width: float | None = None  # half the interval over the median; None: `least` repeats, whatever they give

    def classify_look(self, run_count: int) -> InterimLook:
        """Returns the look that takes place after so many runs."""
        if self.max_half_width is None or self.min_runs >= self.max_runs:
            return InterimLook.ONLY
        first = max(self.min_runs, MIN_RUNS)
        return (
            InterimLook.FIRST
            if run_count <= first
            else InterimLook.LAST
            if run_count >= self.max_runs
            else InterimLook.BETWEEN
        )

    def compute_median_interval(self, values: ArrayLike) -> MedianInterval:
        """The interval to state after these runs (in the order they were run)."""
        array = np.asarray(values, dtype=float).ravel()
        return compute_median_interval(array, self.classify_look(array.size))

    def is_finished(self, values: ArrayLike) -> bool:
        """Whether no further run is needed."""
        array = np.asarray(values, dtype=float).ravel()
        if array.size < self.min_runs or self.max_half_width is None:
            return array.size >= self.min_runs
        half = self.compute_median_interval(array).relative_half_width
        return array.size >= self.max_runs or (half is not None and half <= self.max_half_width)

    def estimate_needed_runs(self, values: ArrayLike) -> int:
        """How many runs it will probably take: intervals shrink with the square root of the number of runs."""
        array = np.asarray(values, dtype=float).ravel()
        half = self.compute_median_interval(array).relative_half_width if array.size else None
        if self.max_half_width is None or half is None or self.is_finished(array):
            return max(self.min_runs, array.size)
        needed = int(np.ceil(array.size * (half / self.max_half_width) ** 2))
        return min(self.max_runs, max(self.min_runs, array.size + 1, needed))


def compute_median_interval(
    values: ArrayLike, interim_look: InterimLook = InterimLook.ONLY, confidence: float = CONFIDENCE
) -> MedianInterval:
    """The median of values in the order they were measured, and its interval. Values that are all above 0 are taken by
    their logarithms, others (a share that may be 0, a difference) as they are.

    Raises ValueError when there is no value, or one that is no finite number.
    """
    array = np.asarray(values, dtype=float).ravel()
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError("the interval of a median needs finite values")
    middle = float(np.median(array))
    if array.size < MIN_RUNS:
        return MedianInterval(middle, None, None, array.size)
    is_positive = bool(np.all(array > 0))
    ends = compute_intervals_of_samples((np.log(array) if is_positive else array)[None, :], interim_look, confidence)
    low, high = (float(np.exp(end[0]) if is_positive else end[0]) for end in ends)
    return MedianInterval(middle, min(middle, low), max(middle, high), array.size)


def compute_intervals_of_samples(
    sample_rows: Floats, interim_look: InterimLook = InterimLook.ONLY, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """Low and high end for each row of values, mostly logarithms (one sample a row, `LEAST` values and more)."""
    count = sample_rows.shape[1]
    ordered = np.sort(sample_rows, axis=1)
    middle: Floats = np.median(ordered, axis=1)
    rank, interpolation, stretch = _choose_order_statistics(
        count, 1 - (1 - confidence) * _ONE_MEDIAN_FACTORS[interim_look]
    )
    low = (1 - interpolation) * ordered[:, rank - 1] + interpolation * ordered[:, rank]
    high = (1 - interpolation) * ordered[:, count - rank] + interpolation * ordered[:, count - rank - 1]
    correlation = _estimate_rank_autocorrelation(sample_rows)
    factor = stretch * np.sqrt((1 + correlation) / (1 - correlation))
    return middle - (middle - low) * factor, middle + (high - middle) * factor


@cache
def _choose_order_statistics(value_count: int, confidence: float) -> tuple[int, float, float]:
    """Returns the rank of the outer order statistic (from 1), the fraction of the distance to the next inner pair, and
    the factor that stretches the interval.

    Where even the range covers too rarely it is stretched, as if the noise were normal.
    """

    def compute_coverage(lowest_rank: int) -> float:
        return 1 - sum(comb(value_count, i) for i in range(lowest_rank)) / 2.0 ** (value_count - 1)

    if compute_coverage(1) < confidence:
        return 1, 0.0, _NORMAL.inv_cdf((1 + confidence) / 2) / _NORMAL.inv_cdf((1 + compute_coverage(1)) / 2)
    rank = 1
    while rank + 1 <= value_count // 2 and compute_coverage(rank + 1) >= confidence:
        rank += 1
    if rank + 1 > value_count // 2:
        return rank, 0.0, 1.0
    fraction = (compute_coverage(rank) - confidence) / (compute_coverage(rank) - compute_coverage(rank + 1))
    return rank, (value_count - rank) * fraction / (rank + (value_count - 2 * rank) * fraction), 1.0


def _estimate_rank_autocorrelation(sample_rows: Floats) -> Floats:
    """Lag-1 correlation of ranks, corrected for bias (Kendall 1954) and shrunk towards 0 for few values."""
    count = sample_rows.shape[1]
    ranks = np.argsort(np.argsort(sample_rows, axis=1), axis=1) - (count - 1) / 2
    raw = np.sum(ranks[:, 1:] * ranks[:, :-1], axis=1) / np.sum(ranks * ranks, axis=1)
    corrected = (raw + (1 + 3 * np.maximum(raw, 0)) / count) * count / (count + _PRIOR_RUNS)
    correlation: Floats = np.clip(np.maximum(corrected, _MIN_CORRELATION), 0, _MAX_CORRELATION)
    return correlation
