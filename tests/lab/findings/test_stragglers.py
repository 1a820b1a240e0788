# SPDX-License-Identifier: Apache-2.0
"""Tasks and nodes are stragglers by the same rule."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.findings.node_history import collect_node_history, describe_repeated_stragglers
from sonde.findings.stragglers import (
    MemberRate,
    collect_node_rates,
    collect_task_rates,
    compute_straggler_limit,
    find_slowest_straggler,
    map_nodes_to_hosts,
    read_task_rates,
)
from sonde.model.lines import NodeLine, PhaseBeginLine, RunLine, TableLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run


def make_member_rates(rates: list[float]) -> list[MemberRate]:
    return [MemberRate(f"task {number}", rate) for number, rate in enumerate(rates)]


def test_a_member_is_slow_from_fifteen_percent_on() -> None:
    """Among members that are all alike the least difference would be significant; it must matter too."""
    assert find_slowest_straggler(make_member_rates([100.0] * 9 + [88.0])) is None
    behind = find_slowest_straggler(make_member_rates([100.0] * 9 + [86.0]))
    assert behind is not None
    slowest, middle, count = behind
    assert (slowest.name, middle, count) == ("task 9", 100.0, 1)


@pytest.mark.parametrize("scatter", [0.05, 0.2, 0.5])
def test_noise_alone_yields_almost_no_stragglers(scatter: float) -> None:
    random = np.random.default_rng(3)
    named_count = sum(
        find_slowest_straggler(make_member_rates(list(random.lognormal(0, scatter, 64)))) is not None
        for _ in range(100)
    )
    assert named_count <= 3


def test_stragglers_are_independent_of_unit_and_standstills() -> None:
    rates = [100.0, 101.0, 99.0, 40.0, 0.0]
    assert compute_straggler_limit([1e6 * rate for rate in rates]) == pytest.approx(
        1e6 * compute_straggler_limit(rates)
    )
    behind = find_slowest_straggler(make_member_rates(rates))
    assert behind is not None
    assert (behind[0].name, behind[2]) == ("task 4", 2)


def test_two_members_have_no_straggler() -> None:
    assert find_slowest_straggler(make_member_rates([100.0, 1.0])) is None
    assert find_slowest_straggler([]) is None
    assert find_slowest_straggler(make_member_rates([0.0, 0.0, 0.0])) is None


def run_of_nodes(rates: list[float]) -> tuple[RecordReader, PhaseRecord]:
    """A run of these node rates."""
    record = RecordReader()
    record.nodes = [NodeLine(node=number, host=f"n{number}") for number in range(len(rates))]
    table = TableLine(phase="p", columns=("node", "bytes_per_s"), rows=tuple(enumerate(rates)))
    return record, PhaseRecord(PhaseBeginLine(phase="p", op="write"), nodes=[table])


def make_table_line(columns: tuple[str, ...], *rows: tuple[float | None, ...]) -> TableLine:
    return TableLine(phase="p", columns=columns, rows=rows)


def make_run_with_phase(phase: PhaseRecord) -> RecordedRun:
    """A run of two nodes, of which the first has a host name."""
    record = RecordReader()
    record.nodes = [NodeLine(node=0, host="alpha")]
    record.phases["p"] = phase
    return make_recorded_run(record)


def test_tasks_have_the_numbers_and_the_nodes_that_are_recorded() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    phase.tasks.append(make_table_line(("task", "node", "bytes_per_s"), (5, 0, 10.0), (9, 1, 20.0)))
    rates = collect_task_rates(make_run_with_phase(phase), phase, counts_operations=False)
    assert rates == [MemberRate("task 5", 10.0, "alpha"), MemberRate("task 9", 20.0, "node 1")]
    assert read_task_rates(phase, counts_operations=False) == {5: 10.0, 9: 20.0}


def test_tasks_without_numbers_are_counted_and_have_no_host() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    phase.tasks.append(make_table_line(("bytes_per_s",), (10.0,), (20.0,)))
    assert collect_task_rates(make_run_with_phase(phase), phase, counts_operations=False) == [
        MemberRate("task 0", 10.0),
        MemberRate("task 1", 20.0),
    ]
    assert read_task_rates(phase, counts_operations=False) == {}
    assert collect_task_rates(make_run_with_phase(phase), phase, counts_operations=True) == [], (
        "operations are not recorded"
    )


def test_task_rate_is_recorded_or_bytes_over_task_time() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    phase.tasks.append(
        make_table_line(("task", "bytes", "ops", "start_s", "end_s"), (0, 100, 8, 1.0, 5.0), (1, 100, 8, 2.0, 2.0))
    )
    assert read_task_rates(phase, counts_operations=False) == {0: 25.0, 1: 0.0}
    assert read_task_rates(phase, counts_operations=True) == {0: 2.0, 1: 0.0}
    phase.nodes.append(
        make_table_line(
            ("node", "bytes", "ops", "seconds", "bytes_per_s"), (0, 100, 8, 4.0, 30.0), (7, 50, 4, 0.5, 90.0)
        )
    )
    assert collect_node_rates(make_run_with_phase(phase), phase, counts_operations=False) == [
        MemberRate("alpha", 30.0),
        MemberRate("node 7", 90.0),
    ]
    assert collect_node_rates(make_run_with_phase(phase), phase, counts_operations=True) == [
        MemberRate("alpha", 2.0),
        MemberRate("node 7", 8.0),
    ]


def test_three_nodes_are_enough_to_have_a_middle_and_two_are_not() -> None:
    assert collect_node_history([run_of_nodes([100.0, 100.0])]) is None
    judged = collect_node_history([run_of_nodes([100.0, 50.0]), run_of_nodes([100.0, 50.0, 200.0])])
    assert judged is not None
    assert judged.hosts == ("n0", "n1", "n2")
    assert judged.shares.tolist() == [[1.0], [0.5], [2.0]]


def test_only_node_slow_in_three_runs_is_reported() -> None:
    rates = [100.0] * 9
    runs = [run_of_nodes([*rates, 60.0, 50.0]) for _ in range(2)] + [run_of_nodes([*rates, 70.0]), run_of_nodes(rates)]
    for index, (reader, _) in enumerate(runs):
        reader.run = RunLine(id=f"r{index}")
    judged = collect_node_history(runs)
    assert judged is not None
    assert judged.runs == ("r0", "r1", "r2", "r3")
    assert judged.hosts[judged.slow[0][0]] == "n9"
    assert [count for _, count in judged.slow] == [3]
    assert (
        replace_no_break_spaces(describe_repeated_stragglers(judged))
        == "Slower than the middle node again and again: n9 (40 %, in 3 of 3 runs)."
    )


def test_five_slow_nodes_are_reported_and_more_counted() -> None:
    judged = collect_node_history([run_of_nodes([100.0] * 60 + [50.0] * 7) for _ in range(3)])
    assert judged is not None
    text = describe_repeated_stragglers(judged)
    assert text.count("in 3 of 3 runs") == 5
    assert text.endswith(" and 2 more.")
    even = collect_node_history([run_of_nodes([100.0] * 4) for _ in range(3)])
    assert even is not None
    assert describe_repeated_stragglers(even) == ""


@pytest.mark.parametrize(("rate", "is_slow"), [(88.0, False), (86.0, True)])
def test_a_node_is_slow_over_many_runs_by_the_same_rule(rate: float, is_slow: bool) -> None:
    judged = collect_node_history([run_of_nodes([100.0] * 9 + [rate]) for _ in range(3)])
    assert judged is not None
    assert bool(judged.slow) == is_slow
    assert (find_slowest_straggler(make_member_rates([100.0] * 9 + [rate])) is not None) == is_slow


def test_task_rate_uses_the_recorded_seconds() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    phase.tasks.append(make_table_line(("task", "bytes", "seconds", "start_s", "end_s"), (0, 100, 2.0, 1.0, 6.0)))
    assert read_task_rates(phase, counts_operations=False) == {0: 50.0}
    lacking = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    lacking.tasks.append(make_table_line(("task", "seconds"), (0, 2.0)))
    assert read_task_rates(lacking, counts_operations=False) == {}
    lacking.tasks[:] = [make_table_line(("task", "bytes", "end_s"), (0, 100, 2.0))]
    assert read_task_rates(lacking, counts_operations=False) == {}


def test_nodes_without_numbers_are_counted_and_long_names_are_cut() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    phase.nodes.append(make_table_line(("bytes_per_s",), (10.0,), (20.0,)))
    run = make_run_with_phase(phase)
    assert collect_node_rates(run, phase, counts_operations=False) == [
        MemberRate("alpha", 10.0),
        MemberRate("node 1", 20.0),
    ]
    assert collect_node_rates(run, phase, counts_operations=True) == []
    run.record.nodes[:] = [NodeLine(node=0, host="x" * 80), NodeLine(node=1, host="y" * 81), NodeLine(node=2)]
    assert map_nodes_to_hosts(run) == {0: "x" * 80, 1: "y" * 80 + "…"}


def test_member_exactly_at_the_limit_is_no_straggler() -> None:
    assert compute_straggler_limit([1.15, 1.15, 1.15]) == 1.0
    assert find_slowest_straggler(make_member_rates([1.15] * 9 + [1.0])) is None
    judged = collect_node_history([run_of_nodes([1.15] * 9 + [1.0]) for _ in range(3)])
    assert judged is not None
    assert judged.slow == ()


def test_slowest_of_several_stragglers_is_reported() -> None:
    behind = find_slowest_straggler(make_member_rates([100.0] * 20 + [50.0, 10.0, 40.0]))
    assert behind is not None
    assert (behind[0], behind[1], behind[2]) == (MemberRate("task 21", 10.0), 100.0, 3)


def test_incomplete_node_rows_are_skipped_or_get_default_names() -> None:
    """A row without a node number belongs to node 0, a node without a host name is named by its number, and a run
    without a `run` line has an empty id."""
    record, phase = run_of_nodes([])
    record.nodes = [NodeLine(node=0, host="alpha"), NodeLine(node=1, host="")]
    phase.nodes[:] = [
        make_table_line(("node", "seconds"), (7, 1.0)),
        make_table_line(("node", "bytes_per_s"), (None, 2.0), (1, 4.0), (2, None), (3, 0.0), (4, 0.5)),
    ]
    judged = collect_node_history([(record, phase)])
    assert judged is not None
    assert (judged.hosts, judged.runs) == (("alpha", "node 1", "node 4"), ("",))
    assert judged.shares.tolist() == [[1.0], [2.0], [0.25]]


@pytest.mark.parametrize(("slow_nodes", "expected_ending"), [(5, "runs)."), (6, "runs) and 1 more.")])
def test_all_of_five_slow_nodes_are_reported(slow_nodes: int, expected_ending: str) -> None:
    judged = collect_node_history([run_of_nodes([100.0] * 60 + [50.0] * slow_nodes) for _ in range(3)])
    assert judged is not None
    text = describe_repeated_stragglers(judged)
    assert text.count("in 3 of 3 runs") == 5
    assert text.endswith(expected_ending)


def test_the_node_that_is_slow_most_often_comes_first() -> None:
    even = [100.0] * 20
    judged = collect_node_history([run_of_nodes([40.0 if index else 100.0, *even, 50.0]) for index in range(4)])
    assert judged is not None
    assert judged.slow == ((judged.hosts.index("n21"), 4), (judged.hosts.index("n0"), 3))
    assert describe_repeated_stragglers(judged) == (
        "Slower than the middle node again and again: n21 (50 %, in 4 of 4 runs), n0 (60 %, in 3 of 4 runs)."
    )
