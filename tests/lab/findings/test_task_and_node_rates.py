# SPDX-License-Identifier: Apache-2.0
"""Rates of tasks and nodes, and the sentences on stragglers, from records with known contents."""

from __future__ import annotations

import pytest
from phase_builders import make_phase, run_with, table

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.node_history import collect_node_history, describe_repeated_stragglers
from sonde.findings.stragglers import (
    collect_node_rates,
    collect_task_rates,
    compute_straggler_limit,
    find_slowest_straggler,
)
from sonde.model.lines import (
    NodeLine,
    RunLine,
)
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader


def test_task_rate_is_recorded_or_bytes_over_task_time() -> None:
    phase = make_phase()
    phase.tasks.append(table(("task", "node", "start_s", "end_s", "bytes", "ops"), (0, 0, 1.0, 3.0, 800, 8),
                             (1, 7, 2.0, 2.0, 800, 8)))  # fmt: skip
    first, second = collect_task_rates(run_with(phase), phase, False)
    assert (first.name, first.value, first.host) == ("task 0", 400.0, "nid1")
    assert (second.name, second.value, second.host) == ("task 1", 0.0, "node 7")
    assert [member.value for member in collect_task_rates(run_with(phase), phase, True)] == [4.0, 0.0]
    recorded = make_phase()
    recorded.tasks.append(table(("bytes_per_s", "bytes", "seconds"), (5.0, 100, 2.0)))
    assert [
        (member.name, member.value, member.host) for member in collect_task_rates(run_with(recorded), recorded, False)
    ] == [("task 0", 5.0, "")]
    assert collect_task_rates(run_with(recorded), recorded, True) == []  # no operations
    lacking = make_phase()
    lacking.tasks.append(table(("task", "bytes", "start_s"), (0, 100, 2.0)))
    assert collect_task_rates(run_with(lacking), lacking, False) == []
    assert collect_task_rates(run_with(make_phase()), make_phase(), False) == []


def test_nodes_have_their_names_and_rates() -> None:
    phase = make_phase()
    phase.nodes.append(table(("node", "bytes", "ops", "seconds"), (0, 100, 10, 2.0), (3, 50, 5, 1.0)))
    assert [(member.name, member.value) for member in collect_node_rates(run_with(phase), phase, False)] == [
        ("nid1", 50.0),
        ("node 3", 50.0),
    ]
    assert collect_node_rates(run_with(make_phase()), make_phase(), False) == []


def test_straggler_limit_is_the_median_divided_by_the_factor() -> None:
    assert compute_straggler_limit([10.0, 10.0, 10.0]) == pytest.approx(10.0 / 1.15)
    assert compute_straggler_limit([10.0, 1.0]) == 0.0
    assert compute_straggler_limit([0.0, 0.0, 10.0]) == 0.0
    assert compute_straggler_limit([]) == 0.0
    assert find_slowest_straggler([]) is None


def test_slow_task_is_reported_with_the_number_of_stragglers() -> None:
    def slow(*rates: float) -> str:
        phase = make_phase(moved=10**9, operation_count=10)
        rows = [(index, 0, rate) for index, rate in enumerate(rates)]
        phase.tasks.append(table(("task", "node", "bytes_per_s"), *rows))
        return replace_no_break_spaces(assess_phase_rate(run_with(phase), phase).stragglers)

    even = [1e9] * 20
    assert slow(*even) == ""
    assert slow(*even, 5e8) == "Task 20 on nid1 reached 500 MB/s, the median task 1.00 GB/s."
    assert slow(*even, 5e8, 4e8) == (
        "Task 21 on nid1 reached 400 MB/s, the median task 1.00 GB/s; 1 other task was slow too."
    )
    assert slow(*even, 5e8, 4e8, 5e8).endswith("; 2 other tasks were slow too.")


def make_node_line(node_number: int, host: str) -> NodeLine:
    return NodeLine(node=node_number, host=host)


def make_run_of_nodes(run_id: str, rate_by_host: dict[str, float]) -> tuple[RecordReader, PhaseRecord]:
    reader = RecordReader()
    reader.run = RunLine(id=run_id)
    reader.nodes += [
        make_node_line(index, host) for index, host in enumerate(rate_by_host) if not host.startswith("node ")
    ]
    phase = make_phase()
    phase.nodes.append(table(("node", "bytes_per_s"), *enumerate(rate_by_host.values())))
    return reader, phase


def test_node_slow_in_three_runs_is_reported_by_host_or_number() -> None:
    even = {f"n{index}": 100.0 for index in range(6)}
    runs = [
        make_run_of_nodes(f"r{index}", even | {"node 6": 50.0} | ({"n0": 50.0} if index < 2 else {}))
        for index in range(3)
    ]
    history = collect_node_history([*runs, make_run_of_nodes("small", {"n0": 1.0, "n1": 2.0})])
    assert history is not None
    assert (history.hosts, history.runs) == (("n0", "n1", "n2", "n3", "n4", "n5", "node 6"), ("r0", "r1", "r2"))
    assert history.slow == ((6, 3),)
    assert (
        describe_repeated_stragglers(history)
        == "Slower than the middle node again and again: node 6 (50 %, in 3 of 3 runs)."
    )
    assert history.shares[1].tolist() == [1.0, 1.0, 1.0]
    calm = collect_node_history(runs[:2])
    assert calm is not None
    assert describe_repeated_stragglers(calm) == ""
    assert collect_node_history([make_run_of_nodes("two", {"a": 1.0, "b": 2.0, "c": 0.0})]) is None
    rates = {f"n{node:02}": 50.0 if node < 7 else 100.0 for node in range(40)}
    wide_history = collect_node_history([make_run_of_nodes(f"r{run}", rates) for run in range(3)])
    assert wide_history is not None
    assert describe_repeated_stragglers(wide_history).endswith("n04 (50 %, in 3 of 3 runs) and 2 more.")
