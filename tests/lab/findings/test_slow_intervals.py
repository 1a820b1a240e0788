# SPDX-License-Identifier: Apache-2.0
"""Nodes that were slow for a while, in phases whose answer is known: named with their time, and nobody else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw_counts import draw_by_day_and_night
from numpy.typing import NDArray

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.slow_intervals import describe_slow_intervals, find_slow_intervals, select_node_series
from sonde.model.line_members import ByteCounts, OperationCounts, RateSpread
from sonde.model.lines import EndLine, NodeLine, PhaseBeginLine, PhaseEndLine, SeriesLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun

MIB = 1 << 20
SLICE_S = 0.1


def draw_amounts(random: np.random.Generator, nodes: int, slices: int) -> NDArray[np.float64]:
    """What each node moves in a slice: about 100 operations of 1 MiB, all nodes under one weather, each with noise that
    lasts for a few slices."""
    common = np.cumsum(random.normal(0, 0.05, slices))
    noise = np.zeros((nodes, slices))
    step = random.normal(0, 0.05, (nodes, slices))
    for index in range(1, slices):
        noise[:, index] = 0.7 * noise[:, index - 1] + step[:, index]
    rates = 100 * np.exp(0.5 * np.tanh(common) + noise)
    return np.asarray(random.poisson(rates), dtype=float)


def make_phase_of_amounts(
    operations_moved: NDArray[np.float64], active: NDArray[np.int64] | None = None
) -> PhaseRecord:
    """A phase whose nodes moved so many operations of 1 MiB in each slice."""
    working = np.ones(operations_moved.shape, dtype=int) if active is None else active
    series = [
        SeriesLine(
            t=0.0,
            phase="write",
            scope="node",
            node=node,
            slice_s=SLICE_S,
            bytes=tuple(int(value) * MIB for value in row),
            ops=tuple(int(value) for value in row),
            active=tuple(int(value) for value in working[node]),
        )
        for node, row in enumerate(operations_moved)
    ]
    return replace(PhaseRecord(PhaseBeginLine(t=0.0, phase="write", op="write")), series=series)


def run_of(phase: PhaseRecord) -> RecordedRun:
    record = RecordReader()
    record.nodes += [NodeLine(node=node, host=f"nid{node:03d}") for node in range(200)]
    record.phases[phase.id] = phase
    record.end = EndLine(status="done")
    return RecordedRun(Path("r"), record, (), {}, {}, ())


def test_temporarily_slow_node_is_reported_with_the_interval() -> None:
    found_count = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        nodes = int(random.integers(3, 60))
        moved = draw_amounts(random, nodes, 200)
        moved[1, 60:120] = np.round(moved[1, 60:120] / 3)
        stretches = find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
        assert {interval.node for interval in stretches} <= {1}
        if stretches:
            found_count += 1
            slow_interval = stretches[0]
            assert slow_interval.start_s == pytest.approx(6.0, abs=0.8)
            assert slow_interval.end_s == pytest.approx(12.0, abs=0.8)
            assert slow_interval.factor == pytest.approx(3.0, rel=0.25)
            assert not slow_interval.covers_all_time
    assert found_count >= 38


@draw_by_day_and_night(100, 300)
def test_no_slow_interval_is_reported_for_noise(draws: int) -> None:
    named_count = 0
    for seed in range(draws):
        random = np.random.default_rng(1000 + seed)
        moved = draw_amounts(random, int(random.integers(3, 100)), int(random.integers(20, 120)))
        named_count += bool(find_slow_intervals(make_phase_of_amounts(moved), counts_operations=bool(seed % 2)))
    assert named_count == 0


def test_slowdown_of_all_nodes_is_no_slow_interval() -> None:
    moved = draw_amounts(np.random.default_rng(3), 20, 200)
    moved[:, 50:100] = np.round(moved[:, 50:100] / 10)
    assert find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False) == []


def test_a_node_that_comes_later_or_ends_earlier_is_not_slow_then() -> None:
    moved = draw_amounts(np.random.default_rng(4), 12, 200)
    active = np.ones(moved.shape, dtype=int)
    moved[3, :55] = active[3, :55] = 0
    moved[7, 140:] = active[7, 140:] = 0
    assert find_slow_intervals(make_phase_of_amounts(moved, active), counts_operations=False) == []


def test_permanently_slow_and_stalled_nodes_are_described() -> None:
    moved = draw_amounts(np.random.default_rng(5), 12, 200)
    moved[4] = np.round(moved[4] / 4)
    moved[9, 80:130] = 0
    phase = make_phase_of_amounts(moved)
    text = replace_no_break_spaces(describe_slow_intervals(run_of(phase), phase, counts_operations=False))
    first, second = text.split(". ", 1)
    match = re.fullmatch(r"Node nid004 was (\d\.\d) times slower than the middle node all through", first)
    assert match
    assert float(match[1]) == pytest.approx(4, rel=0.1)
    assert second.startswith("Node nid009 stood still from ")
    assert second.endswith(", while the middle node moved.")


def test_phase_assessment_names_slow_interval() -> None:
    moved = draw_amounts(np.random.default_rng(5), 12, 200)
    moved[4, 100:150] = np.round(moved[4, 100:150] / 4)
    phase = make_phase_of_amounts(moved)
    total = int(moved.sum())
    phase = replace(
        phase,
        end=PhaseEndLine(
            t=1.0, phase="write", bytes=ByteCounts(transferred=total * MIB), ops=OperationCounts(done=total)
        ),
    )
    judged = assess_phase_rate(run_of(phase), phase)
    assert judged.slow_nodes.startswith("Node nid004 was ")
    assert judged.slow_nodes in judged.detail_sentences
    assert judged.to_json()["slow_nodes"] == replace_no_break_spaces(judged.slow_nodes)


def test_two_nodes_and_a_phase_of_few_operations_are_not_judged() -> None:
    two = draw_amounts(np.random.default_rng(6), 2, 200)
    two[1] /= 5
    assert find_slow_intervals(make_phase_of_amounts(np.round(two)), counts_operations=False) == []
    few = np.zeros((10, 200))
    few[:, ::40] = 1
    few[2, 40:] = 0
    assert find_slow_intervals(make_phase_of_amounts(few), counts_operations=False) == []


def test_extreme_nodes_are_compared_with_the_median_of_all() -> None:
    """The record of 1,000 nodes holds eight slow and eight fast ones: their own middle says nothing."""
    random = np.random.default_rng(7)
    moved = draw_amounts(random, 1000, 200)
    moved[12, 20:80] = np.round(moved[12, 20:80] / 3)
    order = np.argsort(moved.sum(axis=1))
    extremes = sorted([*order[:8], *order[-8:]])
    all_nodes = make_phase_of_amounts(moved)
    spread = RateSpread(p50=tuple(float(value) * MIB / SLICE_S for value in np.median(moved, axis=0)))
    band = SeriesLine(t=0.0, phase="write", scope="nodes", nodes=1000, slice_s=SLICE_S, node_rate=spread)
    phase = replace(all_nodes, series=[band, *(all_nodes.series[node] for node in extremes)])
    assert [interval.node for interval in find_slow_intervals(phase, counts_operations=False)] == [12]
    # joined in pairs, as the engine does with very long series
    pairs = make_phase_of_amounts(moved[:, ::2] + moved[:, 1::2])
    wide = [replace(pairs.series[node], slice_s=2 * SLICE_S) for node in extremes]
    intervals = find_slow_intervals(replace(all_nodes, series=[band, *wide]), counts_operations=False)
    assert [interval.node for interval in intervals] == [12]
    assert intervals[0].factor == pytest.approx(3, rel=0.2)


def make_even_amounts(nodes: int, slices: int, operations: int = 100) -> NDArray[np.float64]:
    """All nodes alike, so that what one of them is slower is its factor."""
    return np.full((nodes, slices), float(operations))


def test_interval_with_the_higher_cost_is_reported() -> None:
    """Three cells at a fifth cost 2.4 cells, five at 0.7 only 1.5."""
    moved = make_even_amounts(5, 64)
    moved[2, 10:13] = 20
    moved[2, 30:35] = 70
    (interval,) = find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
    assert (interval.node, interval.covers_all_time) == (2, False)
    assert (interval.start_s, interval.end_s, interval.factor) == pytest.approx((1.0, 1.3, 5.0))


def test_two_cells_in_a_row_are_chance_and_three_are_not() -> None:
    moved = make_even_amounts(5, 64)
    moved[2, 10:12] = 20
    assert find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False) == []
    moved[2, 12] = 20
    assert [
        interval.node for interval in find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
    ] == [2]


def test_the_first_and_the_last_slice_are_full_in_part_only() -> None:
    """Each cell is two of the 128 slices; the first cell contains the first slice, so it is not compared."""
    moved = make_even_amounts(5, 128)
    moved[2, :6] = 20
    assert find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False) == []
    moved[2, 6:8] = 20
    (interval,) = find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
    assert (interval.start_s, interval.end_s) == pytest.approx((0.2, 0.8))
    moved = make_even_amounts(5, 128)
    moved[2, -6:] = 20
    assert find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False) == []
    moved[2, -8:-6] = 20
    (interval,) = find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
    assert (interval.start_s, interval.end_s) == pytest.approx((12.0, 12.6))


@pytest.mark.parametrize(("remaining_percent", "is_named"), [(78, False), (76, True)])
def test_slowdown_below_30_percent_is_no_finding(remaining_percent: int, is_named: bool) -> None:
    moved = make_even_amounts(5, 64)
    moved[2, 10:20] = remaining_percent
    assert bool(find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)) == is_named


def test_slowdown_beyond_1000_times_is_a_standstill() -> None:
    moved = make_even_amounts(5, 64, 1200)
    moved[2, 10:20] = 2
    phase = make_phase_of_amounts(moved)
    text = replace_no_break_spaces(describe_slow_intervals(run_of(phase), phase, counts_operations=False))
    assert text == "Node nid002 was 600.0 times slower than the middle node from 1.00 s to 2.00 s."
    moved[2, 10:20] = 1
    phase = make_phase_of_amounts(moved)
    text = replace_no_break_spaces(describe_slow_intervals(run_of(phase), phase, counts_operations=False))
    assert text == "Node nid002 stood still from 1.00 s to 2.00 s, while the middle node moved."


def test_three_slow_nodes_are_described_and_more_counted() -> None:
    moved = make_even_amounts(15, 64)
    for node in range(5):
        moved[node, 10 : 20 + node] = 20
    phase = make_phase_of_amounts(moved)
    text = replace_no_break_spaces(describe_slow_intervals(run_of(phase), phase, counts_operations=False))
    assert [text.index(f"nid00{node}") for node in (4, 3, 2)] == sorted(
        text.index(f"nid00{node}") for node in (4, 3, 2)
    )
    assert "nid001" not in text
    assert text.endswith("So were 2 other nodes, for some time.")


@pytest.mark.parametrize(("operations", "judged"), [(100, True), (1, True), (0.7, False)])
def test_intervals_need_eight_cells_of_eight_operations(operations: float, judged: bool) -> None:
    """64 operations in 64 slices are eight cells of eight; 45 would be five."""
    moved = np.floor(np.cumsum(make_even_amounts(5, 65), axis=1) / 100 * operations)
    moved = np.diff(moved, axis=1)
    moved[2, 16:56] = 0
    assert bool(find_slow_intervals(make_phase_of_amounts(moved), counts_operations=True)) == judged


def test_empty_series_and_series_of_targets_are_not_nodes() -> None:
    """Three nodes have a middle; if one of them has no slices there are two."""
    moved = make_even_amounts(3, 64)
    moved[0, 10:20] = 20
    phase = make_phase_of_amounts(moved)
    (interval,) = find_slow_intervals(phase, counts_operations=False)
    assert (interval.node, interval.factor) == (0, 5.0)
    empty = replace(phase, series=[*phase.series[:2], replace(phase.series[2], slice_s=0.0)])
    assert find_slow_intervals(empty, counts_operations=False) == []
    others = replace(phase, series=[*phase.series, replace(phase.series[2], scope="target", node=7)])
    assert len(select_node_series(others)) == 3


@pytest.mark.parametrize(("slices", "judged"), [(9, False), (10, True)])
def test_three_nodes_are_compared_from_eight_cells_of_each_on(slices: int, judged: bool) -> None:
    """The first and the last cell are full in part only."""
    moved = make_even_amounts(3, slices)
    moved[1, 2:6] = 20
    assert bool(find_slow_intervals(make_phase_of_amounts(moved), counts_operations=True)) == judged


def test_seven_cells_are_too_few_however_many_nodes_there_are() -> None:
    moved = make_even_amounts(40, 7)
    moved[1, 2:6] = 20
    assert find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False) == []


def test_the_stretch_that_cost_most_comes_first() -> None:
    """A tenth of the rate for 1.2 s costs 1.08 s, half of it for 2 s one second, and a tenth for 1 s nine tenths."""
    moved = make_even_amounts(9, 64)
    moved[1, 10:30] = 50
    moved[2, 10:22] = 10
    moved[3, 40:50] = 10
    assert [
        interval.node for interval in find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
    ] == [2, 1, 3]


def test_longer_slow_interval_after_a_gap_is_reported() -> None:
    moved = make_even_amounts(5, 64)
    moved[2, 10:12] = 70
    moved[2, 13:16] = 70
    (interval,) = find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
    assert (interval.start_s, interval.end_s, interval.factor) == pytest.approx((1.3, 1.6, 100 / 70))


def test_standstill_without_any_operation_counts_as_factor_2000() -> None:
    moved = make_even_amounts(5, 64, 1000)
    moved[2, 10:20] = 1
    phase = make_phase_of_amounts(moved)
    text = replace_no_break_spaces(describe_slow_intervals(run_of(phase), phase, counts_operations=False))
    assert text == "Node nid002 stood still from 1.00 s to 2.00 s, while the middle node moved."
    moved[2, 10:20] = 0
    (interval,) = find_slow_intervals(make_phase_of_amounts(moved), counts_operations=False)
    assert interval.factor == 2000.0


def test_unnamed_node_has_its_number_and_a_fourth_is_counted() -> None:
    moved = make_even_amounts(15, 64)
    for node in range(4):
        moved[node, 10 : 20 + node] = 20
    phase = make_phase_of_amounts(moved)
    nobody = RecordReader()
    text = replace_no_break_spaces(
        describe_slow_intervals(RecordedRun(Path("r"), nobody, (), {}, {}, ()), phase, counts_operations=False)
    )
    assert text == (
        "Node 3 was 5.0 times slower than the middle node from 1.00 s to 2.30 s."
        " Node 2 was 5.0 times slower than the middle node from 1.00 s to 2.20 s."
        " Node 1 was 5.0 times slower than the middle node from 1.00 s to 2.10 s."
        " So were 1 other node, for some time."
    )


@pytest.mark.parametrize("operations", [False, True])
@pytest.mark.parametrize("joined", [1, 2])
def test_median_of_many_nodes_uses_slices_of_single_nodes(operations: bool, joined: int) -> None:
    """Three nodes at 100, 20 and 100 operations a slice, while the middle of all of them is at 40, and is unknown
    where nobody was at work."""
    moved = make_even_amounts(3, 64) * joined
    moved[1, 10:20] = 20 * joined
    phase = make_phase_of_amounts(moved)
    single = [replace(line, slice_s=joined * SLICE_S) for line in phase.series]
    rates = (*((40 / SLICE_S,) * (62 * joined)), *((None,) * (2 * joined)))
    spread: dict[str, Any] = {
        "node_ops_rate": RateSpread(p50=rates),
        "node_rate": RateSpread(p50=tuple(None if rate is None else rate * MIB for rate in rates)),
    }
    if operations:
        spread["node_rate"] = RateSpread(p50=(1.0,) * len(rates))
    else:
        spread["node_ops_rate"] = RateSpread(p50=(1e9,) * len(rates))
    band = SeriesLine(phase="write", scope="nodes", nodes=999, slice_s=SLICE_S, **spread)
    (interval,) = find_slow_intervals(replace(phase, series=[band, *single]), operations)
    assert (interval.node, interval.factor) == pytest.approx((1, 2.0))
    assert (interval.start_s, interval.end_s) == pytest.approx((1.0 * joined, 2.0 * joined))
