# SPDX-License-Identifier: Apache-2.0
"""The offset of two clocks is found from common events between others, and is unknown when chance explains it."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.stats.clock_offset import estimate_clock_offset


@pytest.mark.parametrize("offset", [-36_000.0, -7.3, 0.0, 3607.0, 50_000.0])
@pytest.mark.parametrize("seed", range(10))
def test_clock_offset_is_estimated_despite_unrelated_events(offset: float, seed: int) -> None:
    """Six common events, whole seconds in the log, up to a second late; half as many others on both sides."""
    generator = np.random.default_rng(seed)
    common = np.sort(generator.uniform(0, 3000, 6))
    reference = {"trouble": [*common, *generator.uniform(0, 3000, 3)]}
    logged = np.floor(common + generator.uniform(0, 1, 6) + offset)
    observed = {"trouble": [*logged, *generator.uniform(offset, 3000 + offset, 3)]}
    estimate = estimate_clock_offset(reference, observed)
    assert estimate is not None
    assert abs(estimate.offset_s - offset) <= estimate.error_s + 0.5
    assert estimate.error_s <= 2
    assert estimate.matches >= 6


def test_events_without_relation_give_no_offset() -> None:
    estimates = []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        times = {"trouble": list(generator.uniform(0, 3000, 8))}
        estimates.append(estimate_clock_offset(times, {"trouble": list(generator.uniform(0, 3000, 8))}))
    assert sum(estimate is not None for estimate in estimates) <= 4


@pytest.mark.parametrize(
    ("reference", "observed"),
    [
        ({}, {}),
        ({"a": [1.0, 20.0, 50.0]}, {"b": [1.0, 20.0, 50.0]}),  # no kind in common
        ({"a": [1.0, 20.0]}, {"a": [1.0, 20.0]}),  # too few
        ({"a": [0.0, 60.0, 120.0, 180.0]}, {"a": [0.0, 60.0, 120.0, 180.0]}),  # one a minute: several offsets fit
        ({"a": [1.0, 20.0, 50.0]}, {"a": [100_001.0, 100_020.0, 100_050.0]}),  # further than any time zone
    ],
)
def test_ambiguous_events_give_no_offset(reference: dict[str, list[float]], observed: dict[str, list[float]]) -> None:
    assert estimate_clock_offset(reference, observed) is None
