# SPDX-License-Identifier: Apache-2.0
"""Dips of known place, width, depth and number."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.stats.dips import _best_box, find_dips


def box(period: int, width: int, first: int, count: int, n: int) -> np.ndarray:
    logs = np.zeros(n)
    for number in range(count):
        logs[first + number * period : first + number * period + width] = -1.0
    return logs


def test_dips_are_told_as_they_are() -> None:
    found = find_dips(box(20, 5, 7, 6, 120))
    assert found is not None
    assert found.count == 6
    assert found.period == pytest.approx(20, rel=0.02)
    assert found.width == pytest.approx(5, abs=1)
    assert found.first == pytest.approx(7, abs=1)
    assert found.depth == pytest.approx(1.0)
    assert found.cost < 5.0


def test_two_dips_are_none_and_three_are_some() -> None:
    assert find_dips(box(40, 8, 10, 2, 120)) is None
    three = find_dips(box(40, 8, 10, 3, 120))
    assert three is not None
    assert three.count == 3


def test_what_rises_for_a_while_is_no_dip() -> None:
    assert find_dips(np.zeros(100)) is None


def test_the_best_box_lowers_the_sum_of_squares_by_what_it_says() -> None:
    """Of ten values the first three are low: the gain is 3 · 0.7² + 7 · 0.3², all of the sum of squares."""
    folded = np.array([-0.7] * 3 + [0.3] * 7)
    gain, first, end = _best_box(folded, 5)
    assert (first, end) == (0, 3)
    assert gain == pytest.approx(float(np.sum(folded**2)))
    turned = np.roll(folded, -1)  # around the end
    gain, first, end = _best_box(turned, 5)
    assert (first, end) == (9, 12)
    assert gain == pytest.approx(float(np.sum(folded**2)))
    assert _best_box(-folded, 5)[0] < gain
