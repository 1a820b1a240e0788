# SPDX-License-Identifier: Apache-2.0
"""Many tests at once, on the example of the paper that gave the method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.multiple import adjust_p_values_for_false_discovery_rate

# Benjamini and Hochberg 1995, section 4.1: fifteen p values, of which four stand at 0.05.
PAPER = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]


def test_four_of_fifteen_published_p_values_are_significant() -> None:
    adjusted = adjust_p_values_for_false_discovery_rate(PAPER)
    assert int(np.sum(adjusted <= 0.05)) == 4
    assert adjusted[0] == pytest.approx(0.0015)
    assert adjusted[3] == pytest.approx(0.035625)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_values_are_order_independent_and_never_smaller(values: list[float]) -> None:
    adjusted = adjust_p_values_for_false_discovery_rate(values)
    turned = adjust_p_values_for_false_discovery_rate(values[::-1])[::-1]
    assert np.allclose(adjusted, turned)
    assert np.all(adjusted >= np.array(values) - 1e-12)
    assert np.all(adjusted <= 1)


def test_empty_p_values_yield_an_empty_result() -> None:
    assert adjust_p_values_for_false_discovery_rate([]).size == 0


def test_adjusted_p_follows_benjamini_hochberg() -> None:
    assert adjust_p_values_for_false_discovery_rate([0.04, 0.01, 0.9, 0.03]) == pytest.approx(
        [0.16 / 3, 0.04, 0.9, 0.16 / 3]
    )
    assert adjust_p_values_for_false_discovery_rate([0.2]) == pytest.approx([0.2])
