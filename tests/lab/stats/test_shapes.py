# SPDX-License-Identifier: Apache-2.0
"""Curves of known shape get their names; curves without one get none."""

from __future__ import annotations

from typing import Any

import curves
import numpy as np
import pytest

from sonde.stats.dips import PeriodicDips
from sonde.stats.profiles import (
    BandDistance,
    build_reference_band,
    compute_area_between_curves,
    compute_progress_curve,
    measure_band_distance,
)
from sonde.stats.shapes import (
    RateShape,
    _compute_information_criterion,
    _Fit,
    _fit_decline,
    _fit_dips,
    _fit_drop_until_end,
    _fit_hinges,
    _fit_slow_start,
    _fit_stall,
    _fit_steps,
    find_rate_shape,
)

near: Any = pytest.approx  # as a member of what is compared whole

# Curves drawn of a kind. Of each twenty one may be called otherwise.
with_trials = pytest.mark.parametrize("trials", [20, pytest.param(100, marks=pytest.mark.nightly)])


@with_trials
@pytest.mark.parametrize("case_name", list(curves.SHAPES))
def test_shapes_are_recognized_in_noise(case_name: str, trials: int) -> None:
    random = np.random.default_rng(41)
    rate_shapes = [find_rate_shape(curves.draw_curve(curves.SHAPES[case_name], random)) for _ in range(trials)]
    assert sum(shape is not None and shape.name == case_name for shape in rate_shapes) >= 0.95 * trials


@with_trials
def test_flat_noisy_curve_has_no_shape(trials: int) -> None:
    random = np.random.default_rng(42)
    named_count = 0
    for _ in range(trials):
        values = curves.draw_noise(
            random, int(random.integers(60, 400)), random.uniform(0.05, 0.3), random.uniform(0, 0.6)
        )
        named_count += find_rate_shape(values) is not None
    assert named_count <= 0.05 * trials


def test_period_of_dips_is_estimated() -> None:
    random = np.random.default_rng(43)
    right = 0
    for _ in range(40):
        period = curves.draw_period(random)
        u = (np.arange(300) + 0.5) / 300
        rate_shape = find_rate_shape(curves.make_curve_with_dips(random, u, period) * curves.draw_noise(random, 300))
        right += rate_shape is not None and rate_shape.period is not None and abs(rate_shape.period / period - 1) < 0.05
    assert right >= 38


def test_start_and_depth_of_a_shape_are_estimated() -> None:
    u = (np.arange(200) + 0.5) / 200
    random = np.random.default_rng(44)
    fall = find_rate_shape(np.where(u < 0.3, 1.0, 0.4) * curves.draw_noise(random, 200))
    assert fall is not None
    assert fall.start == pytest.approx(0.3, abs=0.02)
    assert fall.depth == pytest.approx(0.6, abs=0.1)
    hold = find_rate_shape(np.where((u > 0.5) & (u < 0.6), 0.0, 1.0) * curves.draw_noise(random, 200))
    assert hold is not None
    assert (hold.start, hold.end) == pytest.approx((0.5, 0.6), abs=0.02)


def test_shape_of_the_reference_run_is_not_reported() -> None:
    random = np.random.default_rng(45)
    u = (np.arange(200) + 0.5) / 200
    usual = np.where(u < 0.2, 0.3, 1.0)
    like = usual * curves.draw_noise(random, 200)
    assert find_rate_shape(like, usual) is None
    rate_shape = find_rate_shape(like * np.where(u < 0.7, 1.0, 0.4), usual)
    assert rate_shape is not None
    assert rate_shape.name in ("cliff", "long tail")


@pytest.mark.parametrize("values", [[], [1.0] * 15, [0.0] * 100, [5.0] * 100])
def test_too_short_empty_or_constant_series_has_no_shape(values: list[float]) -> None:
    assert find_rate_shape(values) is None


def test_area_between_curves_equals_the_closed_form() -> None:
    """All bytes in the first half against an even flow: a triangle of height one half over the whole time."""
    early = compute_progress_curve([2.0] * 50 + [0.0] * 50)
    assert compute_area_between_curves(early, compute_progress_curve([1.0] * 100)) == pytest.approx(0.25, abs=0.002)
    assert compute_area_between_curves(
        compute_progress_curve([3.0] * 7), compute_progress_curve([1.0] * 100)
    ) == pytest.approx(0.0, abs=1e-9)


def test_band_accepts_similar_curves_and_flags_declining_curves() -> None:
    random = np.random.default_rng(46)
    strangers = own_differs = 0
    for _ in range(30):
        references = [curves.draw_noise(random, 150) for _ in range(10)]
        band = build_reference_band(references)
        own_differs += bool(measure_band_distance(curves.draw_noise(random, 200) * 0.3, band).differs)
        u = (np.arange(200) + 0.5) / 200
        strangers += bool(measure_band_distance(np.exp(-1.2 * u) * curves.draw_noise(random, 200), band).differs)
    assert own_differs <= 3
    assert strangers == 30


def test_a_band_of_few_runs_has_no_limit_and_a_profile_needs_bytes() -> None:
    few = build_reference_band([[1.0, 2.0]] * 7)
    assert few.limit is None
    assert measure_band_distance([1.0], few).differs is None
    for wrong in ([], [0.0], [-1.0, 2.0], [float("nan")]):
        with pytest.raises(ValueError, match="profile"):
            compute_progress_curve(wrong)
    with pytest.raises(ValueError, match="reference"):
        build_reference_band([])


def test_shape_cost_includes_its_degrees_of_freedom() -> None:
    logs = np.log(np.linspace(1.0, 0.3, 60))
    assert [fit(logs).freedoms for fit in (_fit_decline, _fit_slow_start, _fit_drop_until_end, _fit_stall)] == [
        1,
        2,
        2,
        3,
    ]
    u = (np.arange(60) + 0.5) / 60
    for name, rates in (
        ("cliff", np.where(u < 0.5, 1.0, 0.5)),
        ("long tail", np.where(u < 0.5, 1.0, 0.1)),
        ("long tail", np.exp(-3 * np.maximum(0, u - 0.5) / 0.5)),
        ("steady decline", np.exp(-1 * np.maximum(0, u - 0.3))),
    ):
        fit = _fit_drop_until_end(np.log(rates))
        assert fit.shape is not None
        assert (fit.shape.name, fit.freedoms) == (name, 2)
    assert [fit(np.zeros(60)).shape for fit in (_fit_drop_until_end, _fit_stall)] == [None] * 2
    assert [fit(np.zeros(60)).freedoms for fit in (_fit_slow_start, _fit_drop_until_end, _fit_stall)] == [2, 2, 3]
    wave = _fit_dips(logs, PeriodicDips(12.0, 3.0, 6.0, 0.7, 5, 1.5))
    assert (wave.freedoms, wave.cost) == (4, 1.5)


def test_exact_curve_is_fitted_without_residual() -> None:
    n = 60
    u = (np.arange(n) + 0.5) / n
    line = _fit_decline(np.log(1 - 0.6 * u))
    assert line.cost == pytest.approx(0, abs=1e-9)
    assert line.shape is not None
    assert (line.shape.start, line.shape.end, line.shape.depth) == pytest.approx((0, 1, 0.6))
    step = np.where(np.arange(n) < 20, 0.0, -0.5)
    assert _fit_steps(step, is_down=True) == pytest.approx((0.0, 20, 0.5), abs=1e-9)
    assert _fit_steps(-step, is_down=False) == pytest.approx((0.0, 20, 0.5), abs=1e-9)
    for step_index in (2, 58):  # the first and the last cut there may be
        assert _fit_steps(np.where(np.arange(n) < step_index, 0.0, -1.0), is_down=True)[:2] == pytest.approx(
            (0.0, step_index), abs=1e-9
        )
    block = _fit_stall(np.where((np.arange(n) >= 2) & (np.arange(n) < 32), -1.0, 0.0))
    assert block.cost == pytest.approx(0, abs=1e-9)
    assert block.shape is not None
    assert (block.shape.start, block.shape.end) == pytest.approx((2 / n, 32 / n))
    assert block.shape.depth == pytest.approx(1 - np.exp(-1))


@pytest.mark.parametrize(("late", "bend_index"), [(True, 20), (False, 20), (True, 57), (False, 2)])
def test_hinge_fit_locates_the_bend(late: bool, bend_index: int) -> None:
    n = 60
    u = (np.arange(n) + 0.5) / n
    ramp = np.maximum(0, u - u[bend_index]) if late else np.maximum(0, u[bend_index] - u)
    cost, bend, slope = _fit_hinges(-2 * ramp, late)
    assert (cost, slope) == pytest.approx((0, -2), abs=1e-9)
    assert bend == bend_index


@pytest.mark.parametrize("trials", [40, pytest.param(100, marks=pytest.mark.nightly)])
def test_one_sided_noise_about_a_level_has_no_name(trials: int) -> None:
    """Its mean is far from its usual value, which must not count as something that a shape explains."""
    random = np.random.default_rng(47)
    rate_shapes = [find_rate_shape(np.exp(-random.gamma(0.5, 0.8, 100))) for _ in range(trials)]
    assert sum(shape is not None for shape in rate_shapes) <= 0.05 * trials


def test_gradual_fall_is_a_tail_or_a_decline() -> None:
    def fall(begin: float) -> str:
        rate_shape = find_rate_shape(np.where(u < begin, 1.0, np.exp(-3 * (u - begin) / (1 - begin))))
        assert rate_shape is not None
        assert rate_shape.start == pytest.approx(begin, abs=0.02)
        return rate_shape.name

    u = (np.arange(120) + 0.5) / 120
    assert fall(0.5) == "long tail"  # moves 24 % of the bytes
    assert fall(0.3) == "steady decline"  # 42 %


def test_shape_needs_sixteen_slices() -> None:
    sixteen = np.array([10.0] * 8 + [1.0] * 8)
    rate_shape = find_rate_shape(sixteen)
    assert rate_shape is not None
    assert rate_shape.start == 0.5
    assert find_rate_shape(sixteen[1:]) is None


def test_band_spans_minimum_and_maximum_of_its_references() -> None:
    references = [[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]
    band = build_reference_band(references)
    curves = np.array([compute_progress_curve(reference) for reference in references])
    assert band.runs == 3
    assert np.array_equal(band.low, curves.min(axis=0))
    assert np.array_equal(band.high, curves.max(axis=0))


@pytest.mark.parametrize(
    ("begin", "end", "name"),
    [(0, 12, "slow start"), (1, 12, "slow start"), (2, 12, "stall"), (50, 70, "stall"), (106, 118, "stall"),
     (107, 119, "long tail"), (108, 120, "long tail")],
)  # fmt: skip
def test_a_lower_block_is_a_stall_from_two_slices_off_either_end(begin: int, end: int, name: str) -> None:
    rates = np.exp(np.random.default_rng(1).normal(0, 0.03, 120))
    rates[begin:end] *= 0.3
    rate_shape = find_rate_shape(rates)
    assert rate_shape is not None
    assert rate_shape.name == name
    if name == "stall":
        assert (rate_shape.start, rate_shape.end) == (begin / 120, end / 120)
        assert rate_shape.depth == pytest.approx(0.7, abs=0.02)


def test_a_stall_is_at_most_half_of_the_time() -> None:
    logs = np.where((np.arange(120) >= 20) & (np.arange(120) < 95), -1.0, 0.0)
    rate_shape = _fit_stall(logs).shape
    assert rate_shape is not None
    assert rate_shape.end - rate_shape.start == 0.5


def test_one_freedom_more_costs_three_logarithms_of_the_slices() -> None:
    """The cost that a fit must save to be worth it; half of it in BIC (Schwarz 1978), dearer here against noise that
    neighbors share."""
    single, two = (_compute_information_criterion(_Fit(5.0, freedoms, None), 100) for freedoms in (1, 2))
    assert two - single == pytest.approx(3 * np.log(100))
    assert _compute_information_criterion(_Fit(5.0, 0, None), 100) == pytest.approx(100 * np.log(0.05))


def test_a_profile_has_a_value_each_half_percent_of_the_time() -> None:
    curve = compute_progress_curve([1.0, 3.0])
    assert curve.size == 201
    assert (curve[0], curve[50], curve[100], curve[150], curve[200]) == pytest.approx((0, 0.125, 0.25, 0.625, 1))
    with pytest.raises(ValueError, match="a profile needs rates from 0 up, and one above it"):
        compute_progress_curve([1.0, float("inf")])


def test_band_limit_needs_eight_references() -> None:
    """Eight runs that are equal: their distances count as a millionth, with a scatter of a tenth (as a logarithm) less
    the rule for eight; of 2000 of these two in thousand lie above the limit."""
    alike = build_reference_band([[1.0, 1.0]] * 8)
    random = np.random.default_rng(1)
    random.choice(np.zeros(8), 2000)
    noise = random.normal(0, 0.1 * 8**-0.2, 2000)
    assert alike.limit == pytest.approx(1e-6 * np.exp(np.quantile(noise, 0.998)))
    assert alike.limit is not None
    assert np.sum(1e-6 * np.exp(noise) > alike.limit) == 4
    assert alike.runs == 8
    assert build_reference_band([[1.0, 1.0]] * 7).limit is None


def test_reference_distances_are_leave_one_out() -> None:
    """Distance of each of the shares 0.5, 0.51 … 0.57 in the first half from the median of the other seven."""
    shares = np.array([0.5, 0.51, 0.52, 0.53, 0.54, 0.55, 0.56, 0.57])
    band = build_reference_band([[share, 1 - share] for share in shares])
    triangle = float(
        compute_area_between_curves(compute_progress_curve([1.0, 0.0]), compute_progress_curve([0.0, 1.0]))
    )
    logs = np.log([abs(share - np.median(np.delete(shares, index))) * triangle for index, share in enumerate(shares)])
    random = np.random.default_rng(1)
    resampled = random.choice(logs, 2000) + random.normal(0, float(np.std(logs, ddof=1)) * 8**-0.2, 2000)
    assert band.limit == pytest.approx(np.exp(np.quantile(resampled, 0.998)))
    assert band.curve[100] == pytest.approx(0.535)
    assert (band.low[100], band.high[100]) == pytest.approx((0.5, 0.57))
    distance = measure_band_distance([0.9, 0.1], band)
    assert (distance.area, distance.limit) == (near((0.9 - 0.535) * triangle), band.limit)


def test_band_distance_must_exceed_its_limit() -> None:
    assert [BandDistance(0.2, limit).differs for limit in (0.1, 0.2, 0.3, None)] == [True, False, False, None]


@pytest.mark.parametrize(
    ("fall_index", "level", "name"),
    [
        (60, 0.3, "cliff"),  # moves 23 % of the bytes
        (60, 0.2, "long tail"),  # 17 %
        (60, 0.249, "long tail"),  # 19.9 %
        (60, 0.251, "cliff"),  # 20.1 %
        (96, 0.41, "cliff"),  # few bytes, but the rate is not low enough
        (96, 0.39, "long tail"),
        (109, 0.2, "cliff"),  # less than a tenth of the time
        (108, 0.2, "long tail"),
        (36, 0.6, "cliff"),
    ],
)
def test_sudden_fall_is_a_tail_or_a_cliff(fall_index: int, level: float, name: str) -> None:
    rate_shape = find_rate_shape(np.where(np.arange(120) < fall_index, 5.0, 5 * level))
    assert rate_shape == RateShape(name, fall_index / 120, 1.0, pytest.approx(1 - level))  # type: ignore[arg-type]


def test_fall_to_zero_counts_as_a_fall_to_5_percent() -> None:
    rate_shape = find_rate_shape([7.0] * 60 + [0.0] * 60)
    assert rate_shape == RateShape("long tail", 0.5, 1.0, near(0.95))


@pytest.mark.parametrize(("level", "is_named"), [(0.74, True), (0.76, False)])
def test_shape_needs_a_drop_of_a_quarter(level: float, is_named: bool) -> None:
    assert (find_rate_shape([1.0] * 60 + [level] * 60) is not None) == is_named


@pytest.mark.parametrize(("share", "is_named"), [(0.486, False), (0.53, True)])
def test_shape_needs_a_gain_of_12_over_its_penalty(share: float, is_named: bool) -> None:
    """Hundred slices up and down by s, and a step of h after forty: it saves 100 ln(1 + 0.24 h^2 / s^2) and costs
    3 * 2 * ln(100). At h^2 / 4 s^2 = 0.486 that leaves 10.7, at 0.53 13.5."""
    step = 0.3
    wave = step / 2 / share**0.5 * np.where(np.arange(100) % 2, 1, -1)
    rate_shape = find_rate_shape(np.exp(wave - np.where(np.arange(100) < 40, 0, step)))
    assert (rate_shape is not None) == is_named


@pytest.mark.parametrize(
    ("begin", "fall", "name"),
    [(0.6, 0.95, "long tail"), (0.6, 0.9, "steady decline"), (0.36, 3.0, "long tail"), (0.32, 3.0, "steady decline")],
)
def test_tail_has_at_most_two_fifths_of_rate_and_bytes(begin: float, fall: float, name: str) -> None:
    u = (np.arange(120) + 0.5) / 120
    rate_shape = find_rate_shape(np.exp(-fall * np.maximum(0, u - begin) / (1 - begin)))
    assert rate_shape is not None
    assert (rate_shape.name, rate_shape.end) == (name, 1.0)
    assert rate_shape.start == pytest.approx(begin, abs=0.015)
    assert rate_shape.depth == pytest.approx(1 - np.exp(-fall), abs=0.015)


def test_steady_decline_is_linear_in_the_rate_or_its_logarithm() -> None:
    u = (np.arange(120) + 0.5) / 120
    for end in (0.3, 0.5):
        for rates in (1 - (1 - end) * u, end**u):
            assert find_rate_shape(8 * rates) == RateShape("steady decline", 0.0, 1.0, near(1 - end))


def test_slow_start_ends_within_seven_tenths_of_the_time() -> None:
    slices = np.arange(120)
    assert find_rate_shape(np.where(slices < 84, 0.3, 1.0)) == RateShape("slow start", 0.0, 0.7, near(0.7))
    assert find_rate_shape(np.where(slices < 85, 0.3, 1.0)) is None, "nor is it a stall of half of the time"
    ramp = find_rate_shape(np.exp(-2 * np.maximum(0, (36 - slices) / 120)))
    assert ramp == RateShape("slow start", 0.0, 0.3, near(1 - np.exp(-2 * 36 / 120)))


def test_dips_are_reported_as_fractions_of_the_duration() -> None:
    rate_shape = find_rate_shape(np.where((np.arange(120) - 7) % (120 / 5.85) < 5, 3.0, 9.0))
    assert rate_shape == RateShape("periodic dips", near(7 / 120), 1.0, near(2 / 3), near(1 / 5.85), 6)


def test_long_curves_are_looked_at_in_120_slices() -> None:
    rate_shape = find_rate_shape([1.0] * 122 + [0.6] * 118)
    assert rate_shape == RateShape("cliff", near(61 / 120), 1.0, near(0.4))


def test_the_usual_curve_may_have_another_number_of_slices() -> None:
    usual = np.where(np.arange(30) < 6, 0.3, 1.0)
    assert find_rate_shape(np.where(np.arange(120) < 60, 3.0, 1.2), [2.0] * 30) == RateShape(
        "cliff", 0.5, 1.0, near(0.6)
    )
    assert find_rate_shape(np.repeat(usual, 4) * 9, np.repeat(usual, 4)) is None
    assert find_rate_shape(np.repeat(usual, 4)) == RateShape("slow start", 0.0, 0.2, near(0.7))


def test_a_curve_that_hardly_ever_moves_has_no_shape() -> None:
    assert find_rate_shape([0.0] * 100 + [5.0] * 5) is None
