# SPDX-License-Identifier: Apache-2.0
"""The limits of tests with few draws: sound code passes them, and a defect exceeds them."""

from __future__ import annotations

import pytest
from draw_counts import compute_chance


def test_chance_to_exceed_a_limit_is_binomial() -> None:
    assert compute_chance(0, 2, 0.5) == pytest.approx(0.75)
    assert compute_chance(1, 2, 0.5) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("limit", "draws", "sound", "defect"),
    [
        (0, 120, 0.00004, 0.04),  # a target is named by its operations where none is slow
        (2, 120, 0.002, 0.08),  # by its files
        (2, 80, 0.002, 0.12),  # a unit
        (1, 60, 0.0005, 0.12),  # a target whose level changed
        (0, 100, 0.00001, 0.07),  # an interval of a node
        (1, 60, 0.001, 0.12),  # of targets of a phase that lasts seconds
        (3, 60, 0.01, 0.15),  # an interval of 95 % does not cover the factor; intervals of targets are wider
        (36, 400, 0.05, 0.15),  # an interval of adaptive repeats does not cover the level
        (63, 1000, 0.045, 0.15),  # two equal sides differ
    ],
)
def test_limit_separates_sound_code_from_a_defect(limit: int, draws: int, sound: float, defect: float) -> None:
    assert compute_chance(limit, draws, sound) < 0.005
    assert compute_chance(limit, draws, defect) > 0.98
