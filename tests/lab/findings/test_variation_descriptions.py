# SPDX-License-Identifier: Apache-2.0
"""Variation of a rate within a phase: its kind, levels and sentence, from series with known levels."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.findings.assessment import describe_variation
from sonde.findings.variation import RateVariation, analyze_rate_variation
from sonde.model.quantities import replace_no_break_spaces


@pytest.mark.parametrize(
    ("variation", "expected_text"),
    [
        (RateVariation("steady", 1e9, 1e9, 0.98e9, 1.02e9), "steady, ±2 % around 1.00 GB/s"),
        (RateVariation("steady", 1e9, 1e9, 1e9, 1e9), "steady, ±1 % around 1.00 GB/s"),
        (RateVariation("uneven", 1e9, 1e9, 5e8, 2e9),
         "uneven, between 500 MB/s and 2.00 GB/s for nine tenths of the time"),
        (RateVariation("drift", 1e9, 1e9, before=5e8, after=1e9), "rose gradually from 500 MB/s to 1.00 GB/s"),
        (RateVariation("stalls", 1e9, stalled_s=2.0, rate_without_stalls=1e9),
         "stood still for 2.00 s of 12.0 s; otherwise 1.00 GB/s"),
        (RateVariation("steps", parts=((0.0, 1e9), (4.0, 5e8))), "fell from 1.00 GB/s to 500 MB/s after 4.00 s"),
        (RateVariation("steps", parts=((0.0, 1e9), (4.0, 5e8), (6.0, 2e9))),
         "fell from 1.00 GB/s to 500 MB/s after 4.00 s, then rose to 2.00 GB/s after 6.00 s"),
        (RateVariation("short"), ""),
    ],
)  # fmt: skip
def test_variation_description_follows_kind_and_levels(variation: RateVariation, expected_text: str) -> None:
    assert replace_no_break_spaces(describe_variation(variation, False, 12.0)) == expected_text


def test_the_spread_is_half_of_nine_tenths_over_the_median() -> None:
    assert RateVariation("steady", median=10.0, low=8.0, high=14.0).relative_spread == 0.3
    assert RateVariation("short").relative_spread == 0.0
    ramp = analyze_rate_variation([float(rate) for rate in range(100, 200)] * 1, [1] * 100, 1.0)
    assert ramp.kind == "drift"
    swing = analyze_rate_variation([100.0, 200.0] * 50, [1] * 100, 0.5)
    assert swing.kind in ("steady", "uneven")
    assert analyze_rate_variation([1.0] * 7, [1] * 7, 1.0).kind == "short"
    assert analyze_rate_variation([1.0] * 8, [1] * 8, 1.0).kind == "steady"


def test_nine_tenths_lie_between_low_and_high() -> None:
    """Sixty rates from 1 to 60 in a mixed order: the 5th and 95th percentile by linear interpolation."""
    rates = np.random.default_rng(3).permutation(np.arange(1.0, 61.0))
    variation = analyze_rate_variation(rates.tolist(), [1] * 60, 1.0)
    assert (variation.low, variation.high) == pytest.approx((np.quantile(rates, 0.05), np.quantile(rates, 0.95)))
    assert (variation.median, variation.mean) == pytest.approx((30.5, 30.5))


def test_steps_begin_at_the_time_of_the_phase() -> None:
    """Two slices before all tasks are at work, then twenty at one rate and twenty at another, 0.5 s each."""
    variation = analyze_rate_variation([1.0] * 2 + [40.0] * 20 + [10.0] * 20, [1, 1] + [2] * 40, 0.5)
    assert variation.kind == "steps"
    assert [number for part in variation.parts for number in part] == pytest.approx([1.0, 80.0, 11.0, 20.0])


def test_steady_is_within_10_percent_and_drift_may_end_near_zero() -> None:
    assert analyze_rate_variation([90.0, 110.0] * 30, [1] * 60, 0.5).kind == "steady"
    assert analyze_rate_variation([88.0, 112.0] * 30, [1] * 60, 0.5).kind == "uneven"
    down = analyze_rate_variation([100.0 - 0.995 * index for index in range(100)], [1] * 100, 1.0)
    assert down.kind == "drift"
    assert 0 <= down.after < 2


def test_levels_explain_a_number_within_a_tenth() -> None:
    moved = RateVariation("steady", mean=100.0)
    assert moved.has_levels_matching_rate(91.0)
    assert moved.has_levels_matching_rate(110.0)
    assert not moved.has_levels_matching_rate(90.0)
    assert not moved.has_levels_matching_rate(112.0)
    assert not moved.has_levels_matching_rate(0.0)
