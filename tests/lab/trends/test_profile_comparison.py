# SPDX-License-Identifier: Apache-2.0
"""Rates over time of the runs on two sides, from records whose curves are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from sonde.model.lines import NodeLine, PhaseBeginLine, PhaseEndLine, SeriesLine, TableLine
from sonde.model.record import PhaseRecord, RecordReader
from sonde.stats.imbalance import StragglerAttribution, Stragglers
from sonde.store.summary import read_summary
from sonde.trends.profile_comparison import (
    ProfileComparison,
    RunRecords,
    _compute_median_curve,
    _list_names_of_late_members,
    compare_profiles,
    compute_rate_curve,
    find_late_members,
)

AddRun = Callable[..., Path]
FLAT, CLIFF = [1e9] * 240, [1e9] * 120 + [6e8] * 120
RATES = {("write", "write"): 1e9}


def read(add_run: AddRun, first: int, curves: Sequence[Sequence[float]], hosts: Sequence[float] = ()) -> RunRecords:
    """Runs of one side, a day apart; each has its curve, the last one its hosts."""
    summaries = []
    for number, curve in enumerate(curves):
        last = number + 1 == len(curves)
        rates = {f"n{index}": rate for index, rate in enumerate(hosts)} if last else {}
        summaries.append(read_summary(add_run(first + number, RATES, slices={"write": curve}, hosts=rates)))
    return RunRecords(summaries)


def compare_write_profiles(before: RunRecords, after: RunRecords) -> ProfileComparison:
    comparison = compare_profiles(before, after, "write", "write")
    assert comparison is not None
    return comparison


def test_a_curve_is_bytes_a_second_and_as_long_as_its_slices(add_run: AddRun) -> None:
    [(_, phase)] = read(add_run, 0, [[1e9, 3e9, 2e9]]).list_phase_records("write")
    curve = compute_rate_curve(phase)
    assert curve is not None
    assert curve[0].tolist() == pytest.approx([1e9, 3e9, 2e9])
    assert curve[1] == pytest.approx(0.3)


def test_profile_has_latest_duration_and_median_shape(add_run: AddRun) -> None:
    before = read(add_run, 0, [FLAT, FLAT])
    after = read(add_run, 10, [CLIFF[::2], CLIFF[::4], CLIFF])
    comparison = compare_write_profiles(before, after)
    assert comparison.seconds == pytest.approx(24.0)
    assert comparison.shape is not None
    assert comparison.shape.name == "cliff"
    assert comparison.shape.start == pytest.approx(0.5, abs=0.02)
    assert comparison.shape.depth == pytest.approx(0.4, abs=0.05)
    assert [curve.size for curve in comparison.after] == [120, 60, 240]
    assert comparison.likeness.differs is None, "two runs do not say which shapes are usual"


def test_new_shape_differs_and_usual_shape_does_not(add_run: AddRun) -> None:
    chance = np.random.default_rng(4)
    usual = [(1e9 * np.exp(chance.normal(0, 0.05, 240))).tolist() for _ in range(13)]
    before = read(add_run, 0, usual[:12])
    assert compare_write_profiles(before, read(add_run, 20, usual[12:])).likeness.differs is False
    assert compare_write_profiles(before, read(add_run, 30, [CLIFF])).likeness.differs is True


def test_straggling_node_is_blamed(add_run: AddRun) -> None:
    before = read(add_run, 0, [FLAT])
    slow = compare_write_profiles(before, read(add_run, 10, [FLAT, FLAT], [1e9, 1e9, 1e9, 1e9, 4e8, 1e9]))
    assert slow.blamed == ("n4",)
    even = compare_write_profiles(before, read(add_run, 20, [FLAT, FLAT], [1e9] * 6))
    assert (even.late, even.blamed) == (None, ())


def test_missing_phase_is_not_compared(add_run: AddRun) -> None:
    before, after = read(add_run, 0, [FLAT]), read(add_run, 10, [FLAT])
    assert compare_profiles(before, after, "write", "read") is None
    assert compare_profiles(before, after, "read", "write") is None
    assert compare_profiles(before, read(add_run, 20, [[0.0, 0.0]]), "write", "write") is not None, "operations instead"


def test_median_profile_is_of_shapes_over_relative_time() -> None:
    """A curve of 240 slices is made of pairs; one of two slices is drawn as a line between their middles."""
    fine = np.concatenate([np.tile([1.0, 3.0], 60), np.tile([5.0, 7.0], 60)])
    assert _compute_median_curve([fine]) == pytest.approx([0.5] * 60 + [1.5] * 60)
    line = _compute_median_curve([np.array([1.0, 3.0])])
    assert line.size == 120
    assert (line[:30].max(), line[90:].min()) == pytest.approx((0.5, 1.5))
    assert line[60] - line[59] == pytest.approx(2 / 120)
    flat, other = np.full(120, 9.0), np.full(30, 0.1)
    assert _compute_median_curve([fine, flat, other]) == pytest.approx([1.0] * 120)
    assert _compute_median_curve([fine, fine, flat]) == pytest.approx([0.5] * 60 + [1.5] * 60)


def phase(stopped_by: str = "volume", seconds: Sequence[float] = (), **series: object) -> PhaseRecord:
    record = PhaseRecord(PhaseBeginLine(phase="p"))
    record.end = PhaseEndLine(phase="p", stopped_by=stopped_by)
    rows = tuple((index, index // 2, 0.0, task_seconds) for index, task_seconds in enumerate(seconds))
    record.tasks.append(TableLine(columns=("task", "node", "start_s", "end_s"), rows=rows))
    if series:
        record.series.append(SeriesLine(scope="all", **series))  # type: ignore[arg-type]
    return record


def test_profile_uses_operations_without_bytes_or_is_none() -> None:
    curve = compute_rate_curve(phase(slice_s=0.5, bytes=[0, 0], ops=[3, 4]))
    assert curve is not None
    assert (curve[0].tolist(), curve[1]) == ([6.0, 8.0], 1.0)
    moved = compute_rate_curve(phase(slice_s=0.5, bytes=[0, 2], ops=[3, 4]))
    assert moved is not None
    assert moved[0].tolist() == [0.0, 4.0]
    for nothing in (phase(), phase(slice_s=0.0, bytes=[1], ops=[1]), phase(slice_s=1.0, bytes=[], ops=[]),
                    phase(slice_s=1.0, bytes=[0, 0], ops=[0, 0])):  # fmt: skip
        assert compute_rate_curve(nothing) is None


def test_late_members_are_reported_only_for_equal_work() -> None:
    late = [10.0] * 9 + [20.0]
    for stopped_by, is_known in (("volume", True), ("stonewall", True), ("time", False), ("", False)):
        assert (find_late_members(phase(stopped_by, late)) is not None) == is_known
    assert find_late_members(PhaseRecord(PhaseBeginLine(phase="p"))) is None
    assert find_late_members(phase(seconds=[10.0, 20.0])) is None
    assert find_late_members(phase(seconds=[10.0, 10.0, 20.0])) == StragglerAttribution(
        False, Stragglers((2,), 1.0, 2.0)
    )


def test_nodes_are_called_by_their_hosts_and_tasks_by_their_numbers() -> None:
    reader = RecordReader()
    reader.nodes.append(NodeLine(node=4, host="nid4"))
    assert _list_names_of_late_members(reader, StragglerAttribution(True, Stragglers((4, 7), 1.0, 2.0))) == (
        "nid4",
        "node 7",
    )
    assert _list_names_of_late_members(reader, StragglerAttribution(False, Stragglers((4, 7), 1.0, 2.0))) == ("4", "7")
    assert _list_names_of_late_members(reader, None) == ()
