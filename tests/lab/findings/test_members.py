# SPDX-License-Identifier: Apache-2.0
"""Who is slow has one rule, for tasks and for nodes."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.findings.members import Member, lagging, slow_below
from sonde.findings.nodes import node_rates
from sonde.model.lines import NodeLine, PhaseBegin, TableLine
from sonde.model.record import PhaseRecord, RecordReader


def members(rates: list[float]) -> list[Member]:
    return [Member(f"task {number}", rate) for number, rate in enumerate(rates)]


def test_a_member_is_slow_from_fifteen_percent_on() -> None:
    """Among members that are all alike the least difference would be significant; it must matter too."""
    assert lagging(members([100.0] * 9 + [88.0])) is None
    behind = lagging(members([100.0] * 9 + [86.0]))
    assert behind is not None
    slowest, middle, count = behind
    assert (slowest.name, middle, count) == ("task 9", 100.0, 1)


@pytest.mark.parametrize("scatter", [0.05, 0.2, 0.5])
def test_noise_makes_nobody_slow(scatter: float) -> None:
    random = np.random.default_rng(3)
    named = sum(lagging(members(list(random.lognormal(0, scatter, 64)))) is not None for _ in range(100))
    assert named <= 3


def test_who_is_slow_does_not_depend_on_the_unit_or_on_who_stands_still() -> None:
    rates = [100.0, 101.0, 99.0, 40.0, 0.0]
    assert slow_below([1e6 * rate for rate in rates]) == pytest.approx(1e6 * slow_below(rates))
    behind = lagging(members(rates))
    assert behind is not None
    assert (behind[0].name, behind[2]) == ("task 4", 2)


def test_of_two_nobody_is_slow() -> None:
    assert lagging(members([100.0, 1.0])) is None
    assert lagging([]) is None
    assert lagging(members([0.0, 0.0, 0.0])) is None


def run_of_nodes(rates: list[float]) -> tuple[RecordReader, PhaseRecord]:
    """A run of these node rates."""
    record = RecordReader()
    record.machines = [NodeLine(node=number, host=f"n{number}") for number in range(len(rates))]
    table = TableLine(phase="p", columns=("node", "bytes_per_s"), rows=tuple(enumerate(rates)))
    return record, PhaseRecord(PhaseBegin(phase="p", op="write"), nodes=[table])


@pytest.mark.parametrize(("rate", "slow"), [(88.0, False), (86.0, True)])
def test_a_node_is_slow_over_many_runs_by_the_same_rule(rate: float, slow: bool) -> None:
    judged = node_rates([run_of_nodes([100.0] * 9 + [rate]) for _ in range(3)])
    assert judged is not None
    assert bool(judged.slow) == slow
    assert (lagging(members([100.0] * 9 + [rate])) is not None) == slow
