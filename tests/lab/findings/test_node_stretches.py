# SPDX-License-Identifier: Apache-2.0
"""Nodes that were slow for a while, in phases whose answer is known: named with their time, and nobody else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sonde.findings.judgement import judgement_of
from sonde.findings.node_stretches import slow_stretches, stretch_words
from sonde.model.lines import End, Moved, NodeLine, Operations, PhaseBegin, PhaseEnd, SeriesLine, TaskRate
from sonde.model.quantities import plain
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import Run

MIB = 1 << 20
SLICE_S = 0.1


def weather(random: np.random.Generator, nodes: int, slices: int) -> NDArray[np.float64]:
    """What each node moves in a slice: about 100 operations of 1 MiB, all nodes under one weather, each with noise that
    lasts for a few slices."""
    common = np.cumsum(random.normal(0, 0.05, slices))
    own = np.zeros((nodes, slices))
    step = random.normal(0, 0.05, (nodes, slices))
    for at in range(1, slices):
        own[:, at] = 0.7 * own[:, at - 1] + step[:, at]
    rates = 100 * np.exp(0.5 * np.tanh(common) + own)
    return np.asarray(random.poisson(rates), dtype=float)


def phase_of(moved: NDArray[np.float64], active: NDArray[np.int64] | None = None) -> PhaseRecord:
    """A phase whose nodes moved so many operations of 1 MiB in each slice."""
    working = np.ones(moved.shape, dtype=int) if active is None else active
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
        for node, row in enumerate(moved)
    ]
    return replace(PhaseRecord(PhaseBegin(t=0.0, phase="write", op="write")), series=series)


def run_of(phase: PhaseRecord) -> Run:
    record = RecordReader()
    record.machines += [NodeLine(node=node, host=f"nid{node:03d}") for node in range(200)]
    record.phases[phase.id] = phase
    record.end = End(status="done")
    return Run(Path("r"), record, (), {}, {}, ())


def test_a_node_that_was_slow_for_a_while_is_named_with_the_time() -> None:
    found = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        nodes = int(random.integers(3, 60))
        moved = weather(random, nodes, 200)
        moved[1, 60:120] = np.round(moved[1, 60:120] / 3)
        stretches = slow_stretches(phase_of(moved), operations=False)
        assert {one.node for one in stretches} <= {1}
        if stretches:
            found += 1
            one = stretches[0]
            assert one.start_s == pytest.approx(6.0, abs=0.8)
            assert one.end_s == pytest.approx(12.0, abs=0.8)
            assert one.factor == pytest.approx(3.0, rel=0.25)
            assert not one.whole
    assert found >= 38


def test_nobody_is_named_where_nobody_was_slow() -> None:
    named = 0
    for seed in range(300):
        random = np.random.default_rng(1000 + seed)
        moved = weather(random, int(random.integers(3, 100)), int(random.integers(20, 120)))
        named += bool(slow_stretches(phase_of(moved), operations=bool(seed % 2)))
    assert named == 0


def test_what_hits_all_nodes_at_once_is_nobodys_fault() -> None:
    moved = weather(np.random.default_rng(3), 20, 200)
    moved[:, 50:100] = np.round(moved[:, 50:100] / 10)
    assert slow_stretches(phase_of(moved), operations=False) == []


def test_a_node_that_comes_later_or_ends_earlier_is_not_slow_then() -> None:
    moved = weather(np.random.default_rng(4), 12, 200)
    active = np.ones(moved.shape, dtype=int)
    moved[3, :55] = active[3, :55] = 0
    moved[7, 140:] = active[7, 140:] = 0
    assert slow_stretches(phase_of(moved, active), operations=False) == []


def test_a_node_slow_all_through_and_one_that_stood_still_are_said_so() -> None:
    moved = weather(np.random.default_rng(5), 12, 200)
    moved[4] = np.round(moved[4] / 4)
    moved[9, 80:130] = 0
    phase = phase_of(moved)
    words = plain(stretch_words(run_of(phase), phase, operations=False))
    first, second = words.split(". ", 1)
    told = re.fullmatch(r"Node nid004 was (\d\.\d) times slower than the middle node all through", first)
    assert told
    assert float(told[1]) == pytest.approx(4, rel=0.1)
    assert second.startswith("Node nid009 stood still from ")
    assert second.endswith(", while the middle node moved.")


def test_the_judgement_of_the_phase_says_it() -> None:
    moved = weather(np.random.default_rng(5), 12, 200)
    moved[4, 100:150] = np.round(moved[4, 100:150] / 4)
    phase = phase_of(moved)
    total = int(moved.sum())
    phase = replace(
        phase,
        end=PhaseEnd(t=1.0, phase="write", bytes=Moved(moved=total * MIB), ops=Operations(done=total)),
    )
    judged = judgement_of(run_of(phase), phase)
    assert judged.node.startswith("Node nid004 was ")
    assert judged.node in judged.remarks
    assert judged.as_json()["node"] == plain(judged.node)


def test_two_nodes_and_a_phase_of_few_operations_are_not_judged() -> None:
    two = weather(np.random.default_rng(6), 2, 200)
    two[1] /= 5
    assert slow_stretches(phase_of(np.round(two)), operations=False) == []
    few = np.zeros((10, 200))
    few[:, ::40] = 1
    few[2, 40:] = 0
    assert slow_stretches(phase_of(few), operations=False) == []


def test_of_many_nodes_the_extremes_are_held_against_the_middle_of_all() -> None:
    """The record of 1,000 nodes holds eight slow and eight fast ones: their own middle says nothing."""
    random = np.random.default_rng(7)
    moved = weather(random, 1000, 200)
    moved[12, 20:80] = np.round(moved[12, 20:80] / 3)
    order = np.argsort(moved.sum(axis=1))
    kept = sorted([*order[:8], *order[-8:]])
    whole = phase_of(moved)
    spread = TaskRate(p50=tuple(float(value) * MIB / SLICE_S for value in np.median(moved, axis=0)))
    band = SeriesLine(t=0.0, phase="write", scope="nodes", nodes=1000, slice_s=SLICE_S, node_rate=spread)
    phase = replace(whole, series=[band, *(whole.series[at] for at in kept)])
    assert [one.node for one in slow_stretches(phase, operations=False)] == [12]
    # joined in pairs, as the engine does with very long series
    pairs = phase_of(moved[:, ::2] + moved[:, 1::2])
    wide = [replace(pairs.series[at], slice_s=2 * SLICE_S) for at in kept]
    found = slow_stretches(replace(whole, series=[band, *wide]), operations=False)
    assert [one.node for one in found] == [12]
    assert found[0].factor == pytest.approx(3, rel=0.2)
