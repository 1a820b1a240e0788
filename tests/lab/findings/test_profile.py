# SPDX-License-Identifier: Apache-2.0
"""The series of a phase as it is drawn: what is joined, where it ends, and what counts as nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_phase import make_phase

from sonde.findings.profile import Profile, build_profile
from sonde.model.lines import IntervalSeconds, RateSpread, SeriesLine


def profile(elapsed: float | None = None, /, **series: Any) -> Profile | None:
    phase = make_phase()
    assert phase.end is not None
    phase.end = replace(phase.end, seconds=IntervalSeconds(elapsed=elapsed))
    phase.series.append(SeriesLine(phase="p", **{"slice_s": 1.0} | series))
    return build_profile(phase)


def build_known_profile(elapsed: float | None = None, /, **series: Any) -> Profile:
    rate_profile = profile(elapsed, **series)
    assert rate_profile is not None
    return rate_profile


@pytest.mark.parametrize("only", ["bytes", "ops", "active"])
def test_a_slice_counts_if_anything_happened_in_it(only: str) -> None:
    rate_profile = build_known_profile(**{"bytes": (0,) * 4} | {only: (0, 3, 0, 0)})
    assert rate_profile.edges == (0.0, 1.0, 2.0)
    assert rate_profile.bytes_per_s == ((0.0, 3.0) if only == "bytes" else (0.0, 0.0))
    assert rate_profile.ops_per_s == ((0.0, 3.0) if only == "ops" else (0.0, 0.0))
    assert rate_profile.active == ((0, 3) if only == "active" else (0, 0))


def test_nothing_is_drawn_where_nothing_happened_or_is_told() -> None:
    assert profile(bytes=()) is None
    assert profile(bytes=(0, 0), ops=(0,), active=(0,)) is None
    assert profile(bytes=(5,), slice_s=0.0) is None
    phase = make_phase()
    phase.series.append(SeriesLine(phase="p", scope="node", slice_s=1.0, bytes=(5,)))
    assert build_profile(phase) is None


def test_counts_behind_the_last_slice_of_bytes_are_left_out() -> None:
    rate_profile = build_known_profile(bytes=(4, 4), ops=(1, 2, 9), active=(1, 1, 9))
    assert (rate_profile.ops_per_s, rate_profile.active, rate_profile.tasks) == ((1.0, 2.0), (1, 1), 1)


@pytest.mark.parametrize(("elapsed", "last"), [(1.0, 2.0), (1.25, 1.25), (2.0, 2.0), (3.0, 2.0), (None, 2.0)])
def test_a_phase_ends_inside_its_last_slice_or_with_it(elapsed: float | None, last: float) -> None:
    rate_profile = build_known_profile(elapsed, bytes=(4, 4), active=(2, 2))
    assert rate_profile.edges == (0.0, 1.0, last)
    assert rate_profile.bytes_per_s == (4.0, 4.0 / (last - 1.0))
    assert rate_profile.steady == (0.0, last)


def test_steady_interval_spans_slices_with_all_tasks_active() -> None:
    assert build_known_profile(bytes=(1,) * 6, active=(1, 2, 1, 2, 1, 1), slice_s=0.5).steady == (0.5, 2.0)
    assert build_known_profile(bytes=(1, 1), active=(1, 0)).steady == (0.0, 1.0)
    assert build_known_profile(bytes=(1, 1)).steady is None
    assert build_known_profile(bytes=(1, 1)).tasks == 0


def test_joined_slices_sum_bytes_and_average_known_spreads() -> None:
    """481 slices are drawn as 161 intervals of three, the last of them of one."""
    rates: tuple[float | None, ...] = (1.0, None, 4.0, None, None, None, 6.0)
    spread = RateSpread(min=rates, p25=(2.0,) * 600, p50=(), p75=(3.0,), max=(5.0,) * 481)
    rate_profile = build_known_profile(
        bytes=(2,) * 481, ops=(1,) * 481, active=(1, 7, 1, *(2,) * 478), slice_s=0.5, task_rate=spread
    )
    assert (rate_profile.joined, len(rate_profile.bytes_per_s), rate_profile.slice_s) == (3, 161, 0.5)
    assert rate_profile.edges[:2] == (0.0, 1.5)
    assert rate_profile.edges[-2:] == (240.0, 240.5)
    assert set(rate_profile.bytes_per_s) == {4.0}
    assert set(rate_profile.ops_per_s) == {2.0}
    assert rate_profile.active[:2] == (7, 2)
    assert rate_profile.tasks == 7
    assert rate_profile.task_rate["min"][:4] == (2.5, None, 6.0, None)
    assert set(rate_profile.task_rate["p25"]) == {2.0}
    assert set(rate_profile.task_rate["p50"]) == {None}
    assert rate_profile.task_rate["p75"][:2] == (3.0, None)
    assert set(rate_profile.task_rate["max"]) == {5.0}
    assert {len(spread) for spread in rate_profile.task_rate.values()} == {161}


def test_bytes_and_operations_move_each_on_their_own() -> None:
    """The last slices, in which nothing happened, are no part of the movement."""
    rate_profile = build_known_profile(bytes=(8,) * 40 + (0,) * 5, ops=(4,) * 20 + (2,) * 20, active=(1,) * 40)
    assert rate_profile.get_variation(operations=False).kind == "steady"
    assert rate_profile.get_variation(operations=True).parts == ((0.0, 4.0), (20.0, 2.0))
    assert rate_profile.variation.mean == 8.0
