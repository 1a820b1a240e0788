# SPDX-License-Identifier: Apache-2.0
"""The sentence on how the rate moved explains the number beside it, or is not said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.variation import MAX_MEAN_DIFFERENCE, RateVariation, analyze_rate_variation
from sonde.model.line_members import ByteCounts, LatencySummary, OperationCounts, PhaseRates, Rate
from sonde.model.lines import PhaseBeginLine, PhaseEndLine, SeriesLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import make_recorded_run

SLICE_S = 0.1


def describe_rates_variation(rates: list[float], total_rate: float | None = None, interval: str = "total") -> str:
    """Description of a direct read with these rates, 0.1 s each. `total_rate`: its number; None: their mean."""
    slices = tuple(int(rate * SLICE_S) for rate in rates)
    seconds, total = SLICE_S * len(rates), sum(slices)
    mean = total_rate if total_rate is not None else total / seconds
    rate = Rate(total, total >> 20, seconds, mean, mean / 2**20)
    end = PhaseEndLine(
        phase="p",
        bytes=ByteCounts(total, total, total, 0),
        ops=OperationCounts(1, 1 + (total >> 20)),
        latency={"read": LatencySummary(count=1)},
        rates=PhaseRates(total=rate),
    )
    line = SeriesLine(phase="p", slice_s=SLICE_S, bytes=slices, ops=slices, active=(1,) * len(slices))
    record = RecordReader()
    record.phases["p"] = PhaseRecord(PhaseBeginLine(phase="p", op="read", direct=True), end, series=[line])
    return replace_no_break_spaces(assess_phase_rate(make_recorded_run(record), record.phases["p"], interval).variation)


def test_falling_rate_is_reported_with_the_time() -> None:
    assert describe_rates_variation([2e9] * 20 + [5e8] * 40) == "Fell from 2.00 GB/s to 500 MB/s after 2.00 s."


def test_a_rate_that_fell_and_rose() -> None:
    text = "Fell from 2.00 GB/s to 500 MB/s after 2.00 s, then rose to 2.00 GB/s after 4.00 s."
    assert describe_rates_variation([2e9] * 20 + [5e8] * 20 + [2e9] * 20) == text


def test_steady_rate_is_reported_as_steady() -> None:
    assert describe_rates_variation([2e9] * 60) == "Steady, ±1 % around 2.00 GB/s."


def test_levels_that_do_not_explain_the_rate_are_omitted() -> None:
    """105 MB/s is not explained by a fall from 7.91 to 5.23 MB/s: most of it was moved at another time."""
    rates = [7.9e6] * 20 + [5.2e6] * 20
    assert describe_rates_variation(rates) == "Fell from 7.90 MB/s to 5.20 MB/s after 2.00 s."
    assert describe_rates_variation(rates, 105e6) == ""
    assert describe_rates_variation([2e9] * 20 + [5e8] * 40, 2e8) == "", (
        "the time of an fsync, in which nothing moves, is in the number"
    )


def test_levels_of_spikes_are_means_and_not_medians() -> None:
    """Nine slices of ten at 5 MB/s and one at 1 GB/s: the number is 104 MB/s, which no median of slices comes near."""
    rates = ([5e6] * 9 + [1e9]) * 12
    text = describe_rates_variation(rates)
    assert "7." not in text
    assert "5.00 MB/s to" not in text


def test_missing_interval_falls_back_to_the_entire_phase() -> None:
    assert describe_rates_variation([2e9] * 60, interval="transfer") == "Steady, ±1 % around 2.00 GB/s."
    assert describe_rates_variation([2e9] * 60, 1e9, interval="transfer") == "", "and that is not explained"


rates = st.lists(st.sampled_from([0.0, 1e6, 5e7, 1e8, 1e9, 3e9]), min_size=8, max_size=40)


@given(rates, st.integers(1, 6), st.integers(0, 99))
def test_the_weighted_mean_of_the_levels_is_the_mean_rate(steps: list[float], repeat: int, seed: int) -> None:
    noise = np.random.default_rng(seed).lognormal(0, 0.05, len(steps) * repeat)
    series = [value * factor for value, factor in zip(np.repeat(steps, repeat), noise, strict=True)]
    amounts = [value * SLICE_S for value in series]
    variation = analyze_rate_variation(amounts, [1] * len(amounts), SLICE_S)
    assert variation.mean == pytest.approx(sum(series) / len(series), rel=1e-6)
    seconds = SLICE_S * len(series)
    if variation.kind == "steps":
        starts = [start for start, _ in variation.parts] + [seconds]
        weighted = sum(rate * (stop - start) for (start, rate), stop in zip(variation.parts, starts[1:], strict=True))
        assert weighted / seconds == pytest.approx(variation.mean, rel=1e-6)
    elif variation.kind == "drift":
        assert (variation.before + variation.after) / 2 == pytest.approx(variation.mean, rel=1e-6)
    elif variation.kind == "stalls":
        assert variation.rate_without_stalls * (seconds - variation.stalled_s) / seconds <= variation.mean * (1 + 1e-6)
    assert variation.has_levels_matching_rate(variation.mean) or variation.mean == 0
    assert not variation.has_levels_matching_rate(variation.mean * (1 + 2 * MAX_MEAN_DIFFERENCE))


def classify_variation(amounts: list[float], slice_s: float = 1.0) -> str:
    return analyze_rate_variation(amounts, [1] * len(amounts), slice_s).kind


def test_short_variation_has_zero_members() -> None:
    silent = RateVariation("short")
    assert (silent.median, silent.mean, silent.low, silent.high) == (0.0, 0.0, 0.0, 0.0)
    assert (silent.parts, silent.before, silent.after, silent.stalled_s, silent.rate_without_stalls) == (
        (),
        0.0,
        0.0,
        0.0,
        0.0,
    )
    assert analyze_rate_variation([1.0] * 7, [1] * 7, 1.0) == silent
    assert not silent.has_levels_matching_rate(0.0), "no rate is explained by nothing"


def test_levels_explain_a_number_up_to_exactly_a_tenth_of_it() -> None:
    assert RateVariation("steady", mean=220.0).has_levels_matching_rate(200.0)
    assert RateVariation("steady", mean=180.0).has_levels_matching_rate(200.0)
    assert not RateVariation("steady", mean=220.1).has_levels_matching_rate(200.0)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e6])
def test_a_line_is_a_drift_from_a_quarter_on_in_whatever_unit(unit: float) -> None:
    """Nine values, too few for levels: from 100 to 125, and from 100 to 124."""
    variation = analyze_rate_variation([unit * (100 + 3.125 * index) for index in range(9)], [1] * 9, 1.0)
    assert variation.kind == "drift"
    assert (variation.before, variation.after) == pytest.approx((100 * unit, 125 * unit))
    assert classify_variation([unit * (100 + 3 * index) for index in range(9)]) != "drift"


def test_a_line_may_begin_at_nothing_and_not_below() -> None:
    variation = analyze_rate_variation([float(index) for index in range(9)], [1] * 9, 1.0)
    assert (variation.kind, variation.before, variation.after) == ("drift", 0.0, 8.0)
    assert classify_variation([float(index * index) for index in range(9)]) != "drift", (
        "its line would begin below nothing"
    )
    assert classify_variation([float(index * index) for index in reversed(range(9))]) != "drift"


def test_drift_must_explain_80_percent_of_the_variance() -> None:
    """Around 20 with a slope of 2: 240 of 300 squares, then 240 of 308."""
    values = [16.0, 11.0, 14.0, 19.0, 20.0, 23.0, 22.0, 23.0, 32.0]
    assert classify_variation(values) == "drift"
    assert classify_variation([*values[:3], 21.0, 16.0, 25.0, *values[6:]]) == "uneven"


def test_up_to_three_levels_are_steps_and_four_are_not() -> None:
    levels = [100.0, 300.0, 100.0, 300.0]
    assert classify_variation([level for level in levels[:3] for _ in range(40)]) == "steps"
    assert classify_variation([level for level in levels for _ in range(40)]) == "uneven"


def test_steps_begin_at_a_hundred_and_twentieth_of_the_time() -> None:
    """Two slices make an interval; the rate falls where the fifteenth ends."""
    variation = analyze_rate_variation([8.0] * 30 + [2.0] * 210, [1] * 240, 0.5)
    assert variation.kind == "steps"
    assert variation.parts == ((0.0, 16.0), (15.0, 4.0))


def test_swing_is_measured_over_sixtieths_of_the_duration() -> None:
    """A rate that changes from slice to slice is the same in every pair of slices."""
    variation = analyze_rate_variation([80.0, 120.0] * 60, [1] * 120, 2.0)
    assert (variation.kind, variation.low, variation.high, variation.median, variation.mean) == (
        "steady",
        50.0,
        50.0,
        50.0,
        50.0,
    )


def make_rates_with_dips(dip_count: int, dip_rate: float, slices: int = 60) -> list[float]:
    """A steady 100 with single slices at another rate, far from each other."""
    return [dip_rate if index % 9 == 4 and index // 9 < dip_count else 100.0 for index in range(slices)]


@pytest.mark.parametrize(
    ("dip_count", "dip_rate", "expected"),
    [
        (1, 0.0, "steady"),
        (2, 0.0, "stalls"),
        (3, 0.0, "stalls"),
        (6, 9.9, "stalls"),
        (6, 10.0, "uneven"),
        (6, 15.0, "uneven"),
    ],
)
def test_stall_is_below_10_percent_of_median_for_3_percent_of_time(
    dip_count: int, dip_rate: float, expected: str
) -> None:
    assert classify_variation(make_rates_with_dips(dip_count, dip_rate)) == expected


def test_stall_is_reported_with_duration_and_rate_outside() -> None:
    variation = analyze_rate_variation([*make_rates_with_dips(6, 5.0)[:-1], 160.0], [1] * 60, 0.5)
    assert variation.kind == "stalls"
    assert (variation.stalled_s, variation.rate_without_stalls) == pytest.approx((3.0, (53 * 200 + 320) / 54))
    assert variation.mean == pytest.approx((53 * 200 + 320 + 6 * 10) / 60)


def test_alternating_rates_are_steady_within_a_tenth_of_the_middle() -> None:
    variation = analyze_rate_variation([90.0, 110.0] * 20, [1] * 40, 1.0)
    assert (variation.kind, variation.low, variation.high, variation.median, variation.relative_spread) == (
        "steady",
        90.0,
        110.0,
        100.0,
        0.1,
    )
    assert classify_variation([89.9, 110.1] * 20) == "uneven"
