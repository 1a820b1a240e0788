# SPDX-License-Identifier: Apache-2.0
"""Compares rates over time by shape: the distance of two curves, independent of their level and length.

A curve is turned into the share of all bytes that had moved by each share of the time. The area between two such curves
lies between 0 and 0.5 (it is the Wasserstein distance of the normalized curves). The limit follows from the reference
runs: each is compared with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats

# Shares of the time at which curves are compared.
CURVE_POINTS = 201
# Reference runs that make a band.
MIN_REFERENCE_RUNS = 8
# Chance that one more run of the same kind is called different.
_FALSE_ALARM_PROBABILITY = 0.002
_BOOTSTRAP_DRAWS = 2000


def compute_progress_curve(slice_rates: ArrayLike) -> Floats:
    """Share of the volume moved by each of `CURVE_POINTS` equal shares of the time, from rates over equal slices.

    Raises ValueError when nothing moved or a rate is negative.
    """
    amounts = np.asarray(slice_rates, dtype=float)
    if amounts.size == 0 or not np.all(np.isfinite(amounts)) or np.any(amounts < 0) or amounts.sum() <= 0:
        raise ValueError("a profile needs rates from 0 up, and one above it")
    cumulative = np.concatenate([[0.0], np.cumsum(amounts)]) / amounts.sum()
    curve: Floats = np.interp(np.linspace(0, 1, CURVE_POINTS), np.linspace(0, 1, amounts.size + 1), cumulative)
    return curve


def compute_area_between_curves(first_curve: Floats, second_curve: Floats) -> float:
    """Area between two curves of `progress`."""
    return float(np.mean(np.abs(first_curve - second_curve)))


@dataclass(frozen=True)
class ReferenceBand:
    """Reference runs as a band: their median curve, the range of all of them, and how far one of them lies from the
    others by chance. `limit` is None below `ENOUGH` runs, because it cannot be estimated then."""

    curve: Floats
    low: Floats
    high: Floats
    limit: float | None
    runs: int


def build_reference_band(reference_rates: Sequence[ArrayLike], seed: int = 1) -> ReferenceBand:
    """The band of reference runs (rates over equal slices each). Raises ValueError when there is none."""
    if not reference_rates:
        raise ValueError("a band needs a reference run")
    curves = np.array([compute_progress_curve(rates) for rates in reference_rates])
    middle = np.median(curves, axis=0)
    limit = None
    if len(reference_rates) >= MIN_REFERENCE_RUNS:
        random = np.random.default_rng(seed)
        distances = np.array(
            [
                compute_area_between_curves(curves[i], np.median(np.delete(curves, i, axis=0), axis=0))
                for i in range(len(curves))
            ]
        )
        # Eight distances have no such percentile: a smoothed bootstrap on their logarithms gives them one.
        logs = np.log(np.maximum(distances, 1e-6))
        width = max(float(np.std(logs, ddof=1)), 0.1)
        resampled = random.choice(logs, _BOOTSTRAP_DRAWS) + random.normal(
            0, width * len(logs) ** -0.2, _BOOTSTRAP_DRAWS
        )
        limit = float(np.exp(np.quantile(resampled, 1 - _FALSE_ALARM_PROBABILITY)))
    return ReferenceBand(middle, curves.min(axis=0), curves.max(axis=0), limit, len(reference_rates))


@dataclass(frozen=True)
class BandDistance:
    """How far a run lies from the band; `differs` is None when the band has no limit."""

    area: float
    limit: float | None

    @property
    def differs(self) -> bool | None:
        return None if self.limit is None else self.area > self.limit


def measure_band_distance(slice_rates: ArrayLike, reference_band: ReferenceBand) -> BandDistance:
    """Compares one run with the band."""
    return BandDistance(
        compute_area_between_curves(compute_progress_curve(slice_rates), reference_band.curve), reference_band.limit
    )
