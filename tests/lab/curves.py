# SPDX-License-Identifier: Apache-2.0
"""Curves of known shape, each a little different, under noise whose neighbors are alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Random = np.random.Generator


def draw_noise(random: Random, value_count: int, sd: float = 0.15, autocorrelation: float = 0.3) -> np.ndarray:
    steps = random.normal(0, sd * np.sqrt(1 - autocorrelation**2), value_count)
    out = np.empty(value_count)
    last = random.normal(0, sd)
    for index, step in enumerate(steps):
        last = autocorrelation * last + step
        out[index] = last
    return np.exp(out)


def make_flat_curve(random: Random, progress: np.ndarray) -> np.ndarray:
    return np.ones(progress.size)


def make_declining_curve(random: Random, progress: np.ndarray) -> np.ndarray:
    end = random.uniform(0.15, 0.5)
    return 1 - (1 - end) * progress if random.random() < 0.5 else np.exp(np.log(end) * progress)


def make_curve_with_cliff(random: Random, progress: np.ndarray) -> np.ndarray:
    return np.where(progress < random.uniform(0.1, 0.5), 1.0, random.uniform(0.3, 0.6))


def make_curve_with_tail(random: Random, progress: np.ndarray) -> np.ndarray:
    begin = random.uniform(0.5, 0.8)
    low = random.uniform(0.03, 0.1)
    if random.random() < 0.5:
        return np.where(progress < begin, 1.0, low)
    return np.where(progress < begin, 1.0, np.exp(np.log(low) * np.minimum(1.0, (progress - begin) / (1 - begin))))


def make_curve_with_slow_start(random: Random, progress: np.ndarray) -> np.ndarray:
    ready = random.uniform(0.15, 0.35)
    low = random.uniform(0.1, 0.3)
    return np.where(progress < ready, low + (1 - low) * progress / ready, 1.0)


def make_curve_with_stall(random: Random, progress: np.ndarray) -> np.ndarray:
    begin, length = random.uniform(0.2, 0.7), random.uniform(0.05, 0.2)
    return np.where((progress > begin) & (progress < begin + length), random.uniform(0.0, 0.2), 1.0)


def draw_period(random: Random) -> float:
    return float(random.uniform(0.06, 0.2))


def make_curve_with_dips(random: Random, progress: np.ndarray, period: float | None = None) -> np.ndarray:
    period = draw_period(random) if period is None else period
    low = ((progress + random.uniform(0, period)) % period) < random.uniform(0.15, 0.35) * period
    return np.where(low, random.uniform(0.2, 0.5), 1.0)


SHAPES: dict[str, Callable[[Random, np.ndarray], np.ndarray]] = {
    "steady decline": make_declining_curve,
    "cliff": make_curve_with_cliff,
    "long tail": make_curve_with_tail,
    "slow start": make_curve_with_slow_start,
    "stall": make_curve_with_stall,
    "periodic dips": make_curve_with_dips,
}


def draw_curve(make_curve: Callable[[Random, np.ndarray], np.ndarray], random: Random) -> np.ndarray:
    """Rates over 100 to 400 slices, at any level."""
    count = int(random.integers(100, 400))
    u = (np.arange(count) + 0.5) / count
    return np.asarray(10 ** random.uniform(6, 10) * make_curve(random, u) * draw_noise(random, count))
