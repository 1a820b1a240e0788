# SPDX-License-Identifier: Apache-2.0
"""Dips of known place, width, depth and number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sonde.stats.dips import _find_best_box, find_dips

near: Any = pytest.approx  # as a member of what is compared whole


def box(period: int, width: int, first: int, count: int, n: int) -> np.ndarray:
    logs = np.zeros(n)
    for number in range(count):
        logs[first + number * period : first + number * period + width] = -1.0
    return logs


def test_dips_have_their_true_period_width_and_depth() -> None:
    dips = find_dips(box(20, 5, 7, 6, 120))
    assert dips is not None
    assert dips.count == 6
    assert dips.period == pytest.approx(20, rel=0.02)
    assert dips.width == pytest.approx(5, abs=1)
    assert dips.first == pytest.approx(7, abs=1)
    assert dips.depth == pytest.approx(1.0)
    assert dips.cost < 5.0


def test_periodic_dips_need_three_dips() -> None:
    assert find_dips(box(40, 8, 10, 2, 120)) is None
    three = find_dips(box(40, 8, 10, 3, 120))
    assert three is not None
    assert three.count == 3


def test_constant_or_too_short_series_has_no_dips() -> None:
    assert find_dips(np.zeros(100)) is None
    assert find_dips(np.array([0.0, -1.0, 0.0, -1.0, 0.0, -1.0])) is None


def test_gain_of_the_best_box_is_its_sum_of_squares() -> None:
    """Of ten values the first three are low: the gain is 3 · 0.7² + 7 · 0.3², all of the sum of squares."""
    folded = np.array([-0.7] * 3 + [0.3] * 7)
    gain, first, end = _find_best_box(folded, 5)
    assert (first, end) == (0, 3)
    assert gain == pytest.approx(float(np.sum(folded**2)))
    turned = np.roll(folded, -1)  # around the end
    gain, first, end = _find_best_box(turned, 5)
    assert (first, end) == (9, 12)
    assert gain == pytest.approx(float(np.sum(folded**2)))
    assert _find_best_box(-folded, 5)[0] < gain


def comb(n: int, number: float, first: int, width: int) -> np.ndarray:
    """Dips of depth 1, `number` of them in `n` slices (not a whole number: the last period is not complete)."""
    return np.where((np.arange(n) - first) % (n / number) < width, -1.0, 0.0)


@pytest.mark.parametrize(
    ("n", "number", "first", "width", "expected_count"),
    [(120, 3.1, 10, 8, 3), (120, 5.85, 7, 5, 6), (120, 6.1, 7, 5, 6), (60, 18.1, 1, 1, 18)],
)
def test_dips_at_a_tried_period_are_estimated_exactly(
    n: int, number: float, first: int, width: int, expected_count: int
) -> None:
    """Periods are tried from 2.6 in the whole on, each quarter of one more; the shortest has more than three slices."""
    dips = find_dips(comb(n, number, first, width))
    assert dips is not None
    numbers = (dips.period, dips.first, dips.width, dips.depth)
    assert numbers == pytest.approx((n / number, first, width, 1.0))
    assert dips.count == expected_count
    assert dips.cost == pytest.approx(0, abs=1e-9)
    longest = find_dips(comb(120, 2.6, 20, 8))
    assert longest is not None
    assert (longest.period, longest.count) == pytest.approx((120 / 2.6, 3))


def test_cost_of_dips_is_the_residual_sum_of_squares() -> None:
    random = np.random.default_rng(3)
    for number in (5.85, 7.3, 10.35):
        logs = comb(120, number, 4, 4) + random.normal(0, 0.1, 120)
        dips = find_dips(logs)
        assert dips is not None
        inside = (np.arange(120) - dips.first) % dips.period < dips.width
        squares = sum(float(np.sum((part - part.mean()) ** 2)) for part in (logs[inside], logs[~inside]))
        assert dips.cost == pytest.approx(squares)
        assert dips.depth == pytest.approx(np.median(logs[~inside]) - np.median(logs[inside]))


@pytest.mark.parametrize(("missing", "expected_count"), [([], 8), ([3], 7), ([3, 6], 6), ([2, 3, 5], None)])
def test_periodic_dips_need_three_of_four_expected_dips(missing: list[int], expected_count: int | None) -> None:
    logs = comb(120, 8.1, 5, 5)
    for number in missing:
        begin = round(5 + number * 120 / 8.1)
        logs[begin - 1 : begin + 6] = 0.0
    dips = find_dips(logs)
    assert (dips and dips.count) == expected_count


@pytest.mark.parametrize(("height", "count"), [(-0.49, 5), (-0.51, 6)])
def test_dip_of_half_the_depth_counts(height: float, count: int) -> None:
    logs = comb(120, 5.85, 7, 5)
    logs[27:34] = np.where(logs[27:34] < 0, height, 0.0)
    dips = find_dips(logs)
    assert dips is not None
    assert (dips.count, dips.depth) == (count, near(1.0))


def test_shallow_and_deep_dips_get_the_same_estimates() -> None:
    deep, shallow = find_dips(comb(120, 5.85, 7, 5)), find_dips(0.01 * comb(120, 5.85, 7, 5))
    assert deep is not None
    assert shallow is not None
    assert (shallow.period, shallow.first, shallow.width, shallow.count) == (
        deep.period, deep.first, deep.width, deep.count
    )  # fmt: skip
    assert shallow.depth == pytest.approx(0.01)
