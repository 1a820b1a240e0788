# SPDX-License-Identifier: Apache-2.0
"""How many draws a test of a frequency makes: few in each test run, many at night.

Seeds are fixed, so that neither can fail by chance. A limit of few draws must be one that sound code passes and that a
defect exceeds. `compute_chance` gives both probabilities, and tests/lab/test_draws.py states them for each limit.
"""

from __future__ import annotations

from math import comb

import pytest


def draw_by_day_and_night(day: int, night: int) -> pytest.MarkDecorator:
    """Parametrizes a test with the number of its draws."""
    return pytest.mark.parametrize("draws", [day, pytest.param(night, marks=pytest.mark.nightly)])


def compute_chance(max_successes: int, draws: int, share: float) -> float:
    """The probability that more than `max_successes` of `draws` independent draws have what a `share` of all have."""
    return 1 - sum(
        comb(draws, count) * share**count * (1 - share) ** (draws - count) for count in range(max_successes + 1)
    )
