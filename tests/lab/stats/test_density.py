# SPDX-License-Identifier: Apache-2.0
"""The density of values is a density, as wide as its rule says."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.stats.density import estimate_log_density


def test_log_density_integrates_to_1_over_the_log_axis() -> None:
    values = np.exp(np.random.default_rng(1).normal(3, 0.4, 50))
    axis = np.linspace(0, 6, 4001)
    density = estimate_log_density(values, np.exp(axis))
    assert np.sum(density) * (axis[1] - axis[0]) == pytest.approx(1, abs=1e-3)


def test_kernel_width_follows_the_rule_of_thumb() -> None:
    """Two values e apart by sd 0.5: the quartiles are 0.5 apart, 0.5 / 1.349 is the smaller spread."""
    width = 0.9 * 0.5 / 1.349 * 2**-0.2
    points = np.array([1.0, np.e])
    height = 1 / (width * np.sqrt(2 * np.pi)) / 2
    density = estimate_log_density(points, points)
    assert density == pytest.approx(height * (1 + np.exp(-0.5 / width**2)), rel=1e-9)


def test_equal_values_have_the_narrowest_kernel() -> None:
    assert estimate_log_density(np.full(9, 5.0), np.array([5.0])) == pytest.approx(1 / (0.002 * np.sqrt(2 * np.pi)))


@pytest.mark.parametrize(("values", "places"), [([], [1.0]), ([0.0], [1.0]), ([1.0], [0.0]), ([-1.0], [1.0])])
def test_density_of_values_without_logarithm_is_rejected(values: list[float], places: list[float]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        estimate_log_density(np.array(values), np.array(places))


def test_kernel_width_uses_the_deviation_when_half_are_equal() -> None:
    """Eight times 1, once e and once 1/e: the quartiles are equal, so their distance says nothing."""
    values = np.array([1.0] * 8 + [np.e, 1 / np.e])
    width = 0.9 * 0.2**0.5 * 10**-0.2
    height = (8 + 2 * np.exp(-0.5 / width**2)) / (10 * width * np.sqrt(2 * np.pi))
    assert estimate_log_density(values, np.array([1.0])) == pytest.approx(height, rel=1e-9)


def test_kernel_width_uses_the_smaller_spread() -> None:
    """Quartiles 1 apart, but two values far out: their standard deviation is the larger one."""
    logs = np.array([-9.0, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, 9.0])
    width = 0.9 / 1.349 * 8**-0.2
    height = np.mean(np.exp(-0.5 * (logs / width) ** 2)) / (width * np.sqrt(2 * np.pi))
    assert estimate_log_density(np.exp(logs), np.array([1.0])) == pytest.approx(height, rel=1e-9)
