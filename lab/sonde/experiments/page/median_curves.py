# SPDX-License-Identifier: Apache-2.0
"""Curves of medians over runs, with the confidence interval of each median."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.charts.curves import Curve
from sonde.stats.bounds import BoundedValue


def make_curve_of_medians(series_name: str, place_and_median_pairs: Sequence[tuple[float, BoundedValue]]) -> Curve:
    low = [bounds.value if bounds.low is None else bounds.low for _, bounds in place_and_median_pairs]
    high = [bounds.value if bounds.high is None else bounds.high for _, bounds in place_and_median_pairs]
    return Curve(
        series_name,
        [x for x, _ in place_and_median_pairs],
        [bounds.value for _, bounds in place_and_median_pairs],
        low,
        high,
    )
