# SPDX-License-Identifier: Apache-2.0
"""Curves of known shape get their names; curves without one get none."""

from __future__ import annotations

import curves
import numpy as np
import pytest

from sonde.stats.profiles import area, band, likeness, progress
from sonde.stats.shapes import shape_of

TRIALS = 100


@pytest.mark.parametrize("name", list(curves.SHAPES))
def test_a_shape_is_called_by_its_name(name: str) -> None:
    random = np.random.default_rng(41)
    found = [shape_of(curves.curve(curves.SHAPES[name], random)) for _ in range(TRIALS)]
    assert sum(one is not None and one.name == name for one in found) >= 95


def test_a_flat_curve_has_no_name_however_noisy() -> None:
    random = np.random.default_rng(42)
    named = 0
    for _ in range(TRIALS):
        values = curves.noise(random, int(random.integers(60, 400)), random.uniform(0.05, 0.3), random.uniform(0, 0.6))
        named += shape_of(values) is not None
    assert named <= 5


def test_the_period_of_dips_is_told() -> None:
    random = np.random.default_rng(43)
    right = 0
    for _ in range(40):
        period = curves.period_of(random)
        u = (np.arange(300) + 0.5) / 300
        found = shape_of(curves.dips(random, u, period) * curves.noise(random, 300))
        right += found is not None and found.period is not None and abs(found.period / period - 1) < 0.05
    assert right >= 38


def test_where_a_shape_shows_is_told() -> None:
    u = (np.arange(200) + 0.5) / 200
    random = np.random.default_rng(44)
    fall = shape_of(np.where(u < 0.3, 1.0, 0.4) * curves.noise(random, 200))
    assert fall is not None
    assert fall.start == pytest.approx(0.3, abs=0.02)
    assert fall.depth == pytest.approx(0.6, abs=0.1)
    hold = shape_of(np.where((u > 0.5) & (u < 0.6), 0.0, 1.0) * curves.noise(random, 200))
    assert hold is not None
    assert (hold.start, hold.end) == pytest.approx((0.5, 0.6), abs=0.02)


def test_what_the_usual_run_does_too_is_not_named() -> None:
    random = np.random.default_rng(45)
    u = (np.arange(200) + 0.5) / 200
    usual = np.where(u < 0.2, 0.3, 1.0)
    like = usual * curves.noise(random, 200)
    assert shape_of(like, usual) is None
    named = shape_of(like * np.where(u < 0.7, 1.0, 0.4), usual)
    assert named is not None
    assert named.name in ("cliff", "long tail")


@pytest.mark.parametrize("values", [[], [1.0] * 15, [0.0] * 100, [5.0] * 100])
def test_what_is_too_short_empty_or_constant_has_no_shape(values: list[float]) -> None:
    assert shape_of(values) is None


def test_the_area_between_curves_is_the_known_one() -> None:
    """All bytes in the first half against an even flow: a triangle of height one half over the whole time."""
    early = progress([2.0] * 50 + [0.0] * 50)
    assert area(early, progress([1.0] * 100)) == pytest.approx(0.25, abs=0.002)
    assert area(progress([3.0] * 7), progress([1.0] * 100)) == pytest.approx(0.0, abs=1e-9)


def test_a_band_knows_its_own_kind_and_no_other() -> None:
    random = np.random.default_rng(46)
    strangers = own = 0
    for _ in range(30):
        references = [curves.noise(random, 150) for _ in range(10)]
        known = band(references)
        own += bool(likeness(curves.noise(random, 200) * 0.3, known).differs)
        u = (np.arange(200) + 0.5) / 200
        strangers += bool(likeness(np.exp(-1.2 * u) * curves.noise(random, 200), known).differs)
    assert own <= 3
    assert strangers == 30


def test_a_band_of_few_runs_has_no_limit_and_a_profile_needs_bytes() -> None:
    few = band([[1.0, 2.0]] * 7)
    assert few.limit is None
    assert likeness([1.0], few).differs is None
    for wrong in ([], [0.0], [-1.0, 2.0], [float("nan")]):
        with pytest.raises(ValueError, match="profile"):
            progress(wrong)
    with pytest.raises(ValueError, match="reference"):
        band([])
