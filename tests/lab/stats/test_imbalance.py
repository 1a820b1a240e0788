# SPDX-License-Identifier: Apache-2.0
"""Who made the others wait, on times whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.imbalance import attribute, stragglers, unevenness


def test_one_slow_node_is_named_with_what_it_cost() -> None:
    """Node 5 takes 13.8 s where the others take 10: without it the run is 38 % faster."""
    times = np.full(16 * 8, 10.0)
    nodes = np.repeat(np.arange(16), 8)
    times[nodes == 5] = 13.8
    found = attribute(times, nodes.tolist())
    assert found is not None
    assert found.of_nodes
    assert found.blame.members == (5,)
    assert found.blame.faster == pytest.approx(0.38)


def test_one_slow_task_on_a_good_node_is_a_task() -> None:
    times = np.random.default_rng(1).normal(10, 0.1, 64)
    times[17] = 25.0
    found = attribute(times, np.repeat(np.arange(8), 8).tolist())
    assert found is not None
    assert not found.of_nodes
    assert found.blame.members == (17,)
    assert found.blame.faster == pytest.approx(1.5, abs=0.1)


def test_two_equally_slow_members_are_named_together() -> None:
    times = np.full(40, 10.0)
    times[[3, 9]] = 20.0
    found = stragglers(times)
    assert found is not None
    assert sorted(found.members) == [3, 9]
    assert found.faster == pytest.approx(1.0)


@pytest.mark.parametrize("sd", [0.001, 0.05, 0.1])
def test_nobody_is_blamed_for_noise(sd: float) -> None:
    random = np.random.default_rng(2)
    blamed = sum(stragglers(10 * np.exp(random.normal(0, sd, 64))) is not None for _ in range(200))
    assert blamed <= 6


def test_many_slow_members_are_no_stragglers() -> None:
    assert stragglers([10.0] * 30 + [20.0] * 10) is None


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=40), st.floats(0.1, 100))
def test_unevenness_has_no_unit_and_stays_in_its_range(times: list[float], unit: float) -> None:
    one, other = unevenness(times), unevenness(np.array(times) * unit)
    assert other.wasted == pytest.approx(one.wasted, rel=1e-6, abs=1e-9)
    assert one.wasted >= -1e-12
    assert 0 <= one.gini <= 1
    assert 0 <= one.tail <= 1


def test_unevenness_of_known_times() -> None:
    even, uneven = unevenness([5.0] * 10), unevenness([1.0] * 9 + [11.0])
    assert (even.wasted, even.gini, even.tail) == pytest.approx((0, 0, 0))
    assert uneven.wasted == pytest.approx(4.5)
    assert uneven.gini == pytest.approx(0.45)
    with pytest.raises(ValueError, match="above 0"):
        unevenness([1.0, 0.0])
