# SPDX-License-Identifier: Apache-2.0
"""The series of a phase as it is drawn: what is joined, where it ends, and what counts as nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phase_builders import make_phase

from sonde.findings.phase_timeline import PhaseTimeline, build_timeline
from sonde.model.line_members import IntervalSeconds, RateSpread
from sonde.model.lines import SeriesLine


def make_timeline(elapsed: float | None = None, /, **series: Any) -> PhaseTimeline | None:
    phase = make_phase()
    assert phase.end is not None
    phase.end = replace(phase.end, seconds=IntervalSeconds(elapsed=elapsed))
    phase.series.append(SeriesLine(phase="p", **{"slice_s": 1.0} | series))
    return build_timeline(phase)


def build_known_timeline(elapsed: float | None = None, /, **series: Any) -> PhaseTimeline:
    timeline = make_timeline(elapsed, **series)
    assert timeline is not None
    return timeline


@pytest.mark.parametrize("only", ["bytes", "ops", "active"])
def test_slice_with_any_activity_counts(only: str) -> None:
    timeline = build_known_timeline(**{"bytes": (0,) * 4} | {only: (0, 3, 0, 0)})
    assert timeline.edges == (0.0, 1.0, 2.0)
    assert timeline.bytes_per_s == ((0.0, 3.0) if only == "bytes" else (0.0, 0.0))
    assert timeline.ops_per_s == ((0.0, 3.0) if only == "ops" else (0.0, 0.0))
    assert timeline.active == ((0, 3) if only == "active" else (0, 0))


def test_timeline_without_activity_is_omitted() -> None:
    assert make_timeline(bytes=()) is None
    assert make_timeline(bytes=(0, 0), ops=(0,), active=(0,)) is None
    assert make_timeline(bytes=(5,), slice_s=0.0) is None
    phase = make_phase()
    phase.series.append(SeriesLine(phase="p", scope="node", slice_s=1.0, bytes=(5,)))
    assert build_timeline(phase) is None


def test_counts_after_the_last_slice_of_bytes_are_dropped() -> None:
    timeline = build_known_timeline(bytes=(4, 4), ops=(1, 2, 9), active=(1, 1, 9))
    assert (timeline.ops_per_s, timeline.active, timeline.tasks) == ((1.0, 2.0), (1, 1), 1)


@pytest.mark.parametrize(("elapsed", "last"), [(1.0, 2.0), (1.25, 1.25), (2.0, 2.0), (3.0, 2.0), (None, 2.0)])
def test_a_phase_ends_inside_its_last_slice_or_with_it(elapsed: float | None, last: float) -> None:
    timeline = build_known_timeline(elapsed, bytes=(4, 4), active=(2, 2))
    assert timeline.edges == (0.0, 1.0, last)
    assert timeline.bytes_per_s == (4.0, 4.0 / (last - 1.0))
    assert timeline.steady == (0.0, last)


def test_steady_interval_spans_slices_with_all_tasks_active() -> None:
    assert build_known_timeline(bytes=(1,) * 6, active=(1, 2, 1, 2, 1, 1), slice_s=0.5).steady == (0.5, 2.0)
    assert build_known_timeline(bytes=(1, 1), active=(1, 0)).steady == (0.0, 1.0)
    assert build_known_timeline(bytes=(1, 1)).steady is None
    assert build_known_timeline(bytes=(1, 1)).tasks == 0


def test_joined_slices_sum_bytes_and_average_spreads() -> None:
    """481 slices are drawn as 161 intervals of three, the last of them of one."""
    rates: tuple[float | None, ...] = (1.0, None, 4.0, None, None, None, 6.0)
    spread = RateSpread(min=rates, p25=(2.0,) * 600, p50=(), p75=(3.0,), max=(5.0,) * 481)
    timeline = build_known_timeline(
        bytes=(2,) * 481, ops=(1,) * 481, active=(1, 7, 1, *(2,) * 478), slice_s=0.5, task_rate=spread
    )
    assert (timeline.joined, len(timeline.bytes_per_s), timeline.slice_s) == (3, 161, 0.5)
    assert timeline.edges[:2] == (0.0, 1.5)
    assert timeline.edges[-2:] == (240.0, 240.5)
    assert set(timeline.bytes_per_s) == {4.0}
    assert set(timeline.ops_per_s) == {2.0}
    assert timeline.active[:2] == (7, 2)
    assert timeline.tasks == 7
    assert timeline.task_rate["min"][:4] == (2.5, None, 6.0, None)
    assert set(timeline.task_rate["p25"]) == {2.0}
    assert set(timeline.task_rate["p50"]) == {None}
    assert timeline.task_rate["p75"][:2] == (3.0, None)
    assert set(timeline.task_rate["max"]) == {5.0}
    assert {len(spread) for spread in timeline.task_rate.values()} == {161}


def test_bytes_and_operations_have_separate_variations() -> None:
    """The last slices, in which nothing happened, are no part of the movement."""
    timeline = build_known_timeline(bytes=(8,) * 40 + (0,) * 5, ops=(4,) * 20 + (2,) * 20, active=(1,) * 40)
    assert timeline.get_variation(counts_operations=False).kind == "steady"
    assert timeline.get_variation(counts_operations=True).parts == ((0.0, 4.0), (20.0, 2.0))
    assert timeline.variation.mean == 8.0


def test_timeline_of_a_phase_with_seven_slices() -> None:
    phase = make_phase()
    assert phase.end is not None
    phase.end = replace(phase.end, seconds=IntervalSeconds(elapsed=2.25))
    phase.series.append(
        SeriesLine(phase="p", slice_s=0.5, bytes=(0, 10, 10, 10, 5, 0, 0), ops=(0, 1), active=(1, 2, 2, 2, 1))
    )
    result_profile = build_timeline(phase)
    assert result_profile is not None
    assert result_profile.edges == (0.0, 0.5, 1.0, 1.5, 2.0, 2.25)
    assert result_profile.bytes_per_s == (0.0, 20.0, 20.0, 20.0, 20.0)
    assert result_profile.ops_per_s == (0.0, 2.0, 0.0, 0.0, 0.0)
    assert result_profile.active == (1, 2, 2, 2, 1)
    assert result_profile.steady == (0.5, 2.0)
    assert (result_profile.tasks, result_profile.joined, result_profile.slice_s) == (2, 1, 0.5)
    for elapsed, last in ((2.0, 2.5), (2.5, 2.5), (None, 2.5), (9.0, 2.5)):
        phase.end = replace(phase.end, seconds=IntervalSeconds(elapsed=elapsed))
        timeline = build_timeline(phase)
        assert timeline is not None
        assert timeline.edges[-1] == last
    for none in (
        (),
        (SeriesLine(phase="p", slice_s=0.0, bytes=(1,)),),
        (SeriesLine(phase="p", slice_s=1.0, bytes=(0,)),),
    ):
        phase.series[:] = none
        assert build_timeline(phase) is None


@pytest.mark.parametrize(("slices", "joined", "slices_drawn"), [(240, 1, 240), (241, 2, 121), (480, 2, 240)])
def test_many_slices_are_joined_in_equal_groups(slices: int, joined: int, slices_drawn: int) -> None:
    phase = make_phase()
    phase.series.append(
        SeriesLine(phase="p", slice_s=1.0, bytes=(4,) * slices, ops=(1,) * slices, active=(1,) * slices)
    )
    timeline = build_timeline(phase)
    assert timeline is not None
    assert (timeline.joined, len(timeline.bytes_per_s)) == (joined, slices_drawn)
    assert set(timeline.bytes_per_s) == {4.0}
    assert timeline.edges[-1] == slices
