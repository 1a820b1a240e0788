# SPDX-License-Identifier: Apache-2.0
"""Every figure of a phase at once, for every stop rule, queue depth and slice width: rates, series, latencies, tasks.

The storage is of exactly known speed. With the virtual clock every figure must be right to 0.1 % (percentiles to the
1 % that their histogram promises), with the real clock to 1 %.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from engine_under_test import DONE, Engine, Plan, Result
from paced_truth import Truth, compute_truth

EXACT_TOLERANCE = 1e-3
STEADY: Plan = {"rate": "200MB/s"}
STEPPED: Plan = {
    "schedule": [{"at": "0s", "rate": "200MB/s"}, {"at": "1s", "rate": "50MB/s"}, {"at": "4s", "rate": "400MB/s"}]
}
RAMPING: Plan = {
    "ramp": True,
    "schedule": [{"at": "0s", "rate": "20MB/s"}, {"at": "3s", "rate": "300MB/s"}, {"at": "7s", "rate": "40MB/s"}],
}


def make_paced_plan(paced: Plan, volume_mb: int = 1000, **more: Any) -> Plan:
    """Operations of 100 kB; `more` are stop, tasks, io, observe, op and target members of the plan."""
    access = {"transfer": "100kB", "block": "10MB", "segments": volume_mb // 10}
    access.update(more.get("access", {}))
    return {
        "schema": "sonde-plan/2",
        "id": "known",
        "target": {"path": "/tmp"},
        "tasks": more.get("tasks", {}),
        "data": {"backend": "paced", "access": access, "io": more.get("io", {}), "paced": paced},
        "phases": [{"id": "it", "op": more.get("op", "write"), "stop": more.get("stop", {})}],
        "observe": {"progress": 0, **more.get("observe", {})},
    }


def assert_rates(end: dict[str, Any], truth: Truth, slice_s: float, precision: float) -> None:
    """Every named rate, and none that does not apply."""
    rates = truth.rates(slice_s)
    assert set(end["rates"]) == set(rates)
    for name, bytes_per_s in rates.items():
        rate = end["rates"][name]
        assert rate["bytes_per_s"] == pytest.approx(bytes_per_s, rel=precision), name
        assert rate["bytes_per_s"] == pytest.approx(rate["bytes"] / rate["seconds"], rel=1e-12)
        assert rate["ops_per_s"] == pytest.approx(rate["ops"] / rate["seconds"], rel=1e-12)
    if truth.stonewall is not None:
        ratio = rates["total"] / rates["stonewall"]
        assert end["wearout_ratio"] == pytest.approx(ratio, rel=2 * precision)


def assert_latencies(end: dict[str, Any], truth: Truth, latency_kind: str) -> None:
    """Smallest, mean and largest exactly, percentiles within the resolution of the histogram."""
    latencies = truth.latencies()
    summary = end["latency"][latency_kind]
    assert summary["count"] == len(latencies)
    assert summary["min_ns"] == pytest.approx(latencies[0] * 1e9, rel=EXACT_TOLERANCE, abs=1)
    assert summary["max_ns"] == pytest.approx(latencies[-1] * 1e9, rel=EXACT_TOLERANCE, abs=1)
    assert summary["mean_ns"] == pytest.approx(math.fsum(latencies) / len(latencies) * 1e9, rel=EXACT_TOLERANCE, abs=1)
    for name, share in {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}.items():
        exact = latencies[math.ceil(share * len(latencies)) - 1] * 1e9
        assert summary[f"{name}_ns"] == pytest.approx(exact, rel=0.01, abs=1), name


def assert_series(line: dict[str, Any], truth: Truth) -> None:
    """The slices add up to the bytes moved, to the byte, and each holds what was moved in its time."""
    width = line["slice_s"]
    assert sum(line["bytes"]) == truth.bytes
    assert sum(line["ops"]) == len(truth.latencies())
    assert len(line["bytes"]) == math.ceil(truth.end / width - 1e-9)
    operation = truth.tasks[0].length
    for i, moved in enumerate(line["bytes"]):
        exact = truth.until((i + 1) * width) - truth.until(i * width)
        # An operation that is spread over slices is cut at whole bytes.
        assert moved == pytest.approx(exact, rel=EXACT_TOLERANCE, abs=len(truth.tasks) * (2 + operation * 1e-6))
        assert line["active"][i] == sum(task.end > i * width + 1e-12 for task in truth.tasks)


def assert_tasks(rows: list[dict[str, Any]], truth: Truth) -> None:
    """The table of tasks has each task's own bytes, operations, time and rate."""
    assert [row["task"] for row in rows] == list(range(len(truth.tasks)))
    for row, task in zip(rows, truth.tasks, strict=True):
        assert (row["bytes"], row["ops"]) == (task.bytes, len(task.spans))
        assert row["end_s"] == pytest.approx(task.end, rel=EXACT_TOLERANCE)
        assert row["transfer_s"] == pytest.approx(task.end, rel=EXACT_TOLERANCE)
        assert row["bytes_per_s"] == pytest.approx(task.bytes / task.end, rel=EXACT_TOLERANCE)


def list_task_rows(result: Result) -> list[dict[str, Any]]:
    return [dict(zip(line["columns"], row, strict=True)) for line in result.of("tasks") for row in line["rows"]]


def assert_truth(result: Result, plan: Plan) -> None:
    """Everything that the record says about the only phase of `plan`, which ran on the virtual clock."""
    assert result.code == DONE, result.err
    truth = compute_truth(plan)
    kind = "write" if plan["phases"][0]["op"] == "write" else "read"
    end, series = result.finished("it"), result.of("series")[0]
    assert end["stopped_by"] == truth.stopped_by
    assert end["bytes"]["transferred"] == truth.bytes == end["bytes"]["written" if kind == "write" else "read"]
    assert end["ops"]["done"] == len(truth.latencies())
    assert end["seconds"]["elapsed"] == pytest.approx(truth.end, rel=EXACT_TOLERANCE)
    assert end["task_seconds"]["transfer"] == pytest.approx(math.fsum(t.end for t in truth.tasks), rel=EXACT_TOLERANCE)
    assert_rates(end, truth, series["slice_s"], EXACT_TOLERANCE)
    assert_latencies(end, truth, kind)
    assert_series(series, truth)
    assert_tasks(list_task_rows(result), truth)
    counted = sum(row[2] for line in result.of("histogram") if line["kind"] == kind for row in line["buckets"])
    assert counted == len(truth.latencies())


SLOW_ONE: Plan = {**STEADY, "slow_tasks": {"1": 10}}
WALL: Plan = {"stonewall": "2.5s"}
WORN: Plan = {"stonewall": "2.5s", "wearout": True}

STORAGES: dict[str, Plan] = {
    "steady": make_paced_plan(STEADY),
    "stepped": make_paced_plan(STEPPED),
    "ramping": make_paced_plan(RAMPING),
    "read": make_paced_plan(STEADY, op="read"),
    "latency": make_paced_plan({**STEADY, "latency": "1ms"}),
    "only-latency": make_paced_plan({"schedule": [{"at": "0s", "rate": "1000GB/s"}], "latency": "250us"}),
    "stepped-latency": make_paced_plan({**STEPPED, "latency": "2ms"}, tasks={"threads": 3}),
    "one-operation": make_paced_plan(STEADY, access={"transfer": "100MB", "block": "100MB", "segments": 1}),
    "large-operations": make_paced_plan(STEPPED, access={"transfer": "30MB", "block": "30MB", "segments": 20}),
    "tiny-operations": make_paced_plan(STEADY, access={"transfer": "512B", "block": "512B", "segments": 100_000}),
}
STOPS: dict[str, Plan] = {
    "time": make_paced_plan(STEPPED, stop={"time": "6s"}, tasks={"threads": 2}),
    "time-many-passes": make_paced_plan(STEADY, volume_mb=20, stop={"time": "3s"}),
    "min-time": make_paced_plan(STEADY, volume_mb=100, stop={"min_time": "2.2s"}, tasks={"threads": 2}),
    "min-time-already": make_paced_plan(STEADY, stop={"min_time": "2.2s"}),
    "stonewall": make_paced_plan(STEPPED, stop=WALL, tasks={"threads": 4}),
    "stonewall-between-operations": make_paced_plan(STEADY, stop={"stonewall": "1s"}),
    "stonewall-inside-operation": make_paced_plan(
        STEADY, stop={"stonewall": "1.7s"}, access={"transfer": "50MB", "block": "50MB", "segments": 20}
    ),
    "stonewall-too-late": make_paced_plan(STEADY, stop={"stonewall": "60s"}, tasks={"threads": 2}),
    "wearout": make_paced_plan(SLOW_ONE, stop=WORN, tasks={"threads": 4}),
    "wearout-equal-tasks": make_paced_plan(RAMPING, stop=WORN, tasks={"threads": 4}),
    "wearout-some-finished": make_paced_plan(SLOW_ONE, volume_mb=300, stop=WORN, tasks={"threads": 3}),
    "wall-and-min-time": make_paced_plan(
        SLOW_ONE, volume_mb=50, stop={"stonewall": "3s", "min_time": "2s"}, tasks={"threads": 3}
    ),
}
QUEUES: dict[str, Plan] = {
    f"{name}-{depth}": make_paced_plan({**paced, "latency": "4ms"}, io={"queue_depth": depth}, stop=stop, tasks=tasks)
    for depth in (2, 7, 32)
    for name, paced, stop, tasks in (
        ("queue", STEADY, {}, {}),
        ("queue-stepped-wall", STEPPED, WALL, {"threads": 2}),
        ("queue-worn", SLOW_ONE, WORN, {"threads": 2}),
        ("queue-time", STEADY, {"time": "1.9s"}, {}),
    )
}
SLICES: dict[str, Plan] = {
    "doubled-often": make_paced_plan(STEPPED, observe={"slice": "10us", "max_slices": 64}, tasks={"threads": 2}),
    "few-slices": make_paced_plan(RAMPING, observe={"slice": "1ms", "max_slices": 16}),
    "never-doubled": make_paced_plan(STEADY, observe={"slice": "20ms", "max_slices": 512}),
    "odd-width": make_paced_plan(STEPPED, observe={"slice": "1234567ns", "max_slices": 500}, tasks={"threads": 3}),
    # The slow task's slices double more often than the others'.
    "doubled-differently": make_paced_plan(SLOW_ONE, observe={"slice": "1ms", "max_slices": 128}, tasks={"threads": 3}),
}
TASKS: dict[str, Plan] = {
    f"{name}-{processes}x{threads}": make_paced_plan(
        paced, volume_mb=200, tasks={"processes": processes, "threads": threads}, stop=stop
    )
    for name, paced, stop in (("ramping", RAMPING, {}), ("slow-one", SLOW_ONE, WORN))
    for processes, threads in ((1, 7), (1, 64), (16, 1), (4, 4))
}
ALL = STORAGES | STOPS | QUEUES | SLICES | TASKS


@pytest.mark.parametrize("case_name", ALL)
def test_all_figures_are_the_truth(engine: Engine, case_name: str) -> None:
    assert_truth(engine.run(ALL[case_name]), ALL[case_name])


def test_reference_model_agrees_with_hand_calculation() -> None:
    """200 MB/s, then from 1 s on 50 MB/s, then from 4 s on 400 MB/s: 200 + 150 + 650 MB take 5.625 s."""
    truth = compute_truth(make_paced_plan(STEPPED))
    assert truth.end == pytest.approx(5.625)
    assert truth.until(2) == pytest.approx(250e6)
    # 20 to 300 MB/s in 3 s is 480 MB; 300 to 40 MB/s in 4 s is 680 MB.
    ramp = compute_truth(make_paced_plan(RAMPING, volume_mb=1160))
    assert ramp.end == pytest.approx(7)
    assert ramp.until(3) == pytest.approx(480e6, rel=1e-3)
    # In a queue of two with a latency of 9 ms and 1 ms of service, two operations take 10 ms + 1 ms, then every 10 ms.
    queue = compute_truth(make_paced_plan({"rate": "100MB/s", "latency": "9ms"}, volume_mb=10, io={"queue_depth": 2}))
    assert [start for start, _ in queue.tasks[0].spans[:5]] == pytest.approx([0, 0, 0.010, 0.011, 0.020])
    assert [end for _, end in queue.tasks[0].spans[:5]] == pytest.approx([0.010, 0.011, 0.020, 0.021, 0.030])


def test_example_of_the_rates_page_has_the_documented_figures(engine: Engine) -> None:
    """The figures that docs/concepts/rates names for its plan."""
    plan = make_paced_plan(
        {"rate": "200MB/s", "slow_tasks": {"1": 2}},
        access={"transfer": "100MB", "block": "100MB", "segments": 10},
        tasks={"threads": 2},
        stop={"stonewall": "6s", "wearout": True},
    )
    rates = engine.run(plan).finished("it")["rates"]
    expected = {
        "total": 200e6,
        "transfer": 200e6,
        "stonewall": 1600e6 / 6,
        "steady": 300e6,
        "first_done": 300e6,
        "task_sum": 300e6,
    }
    assert {name: rate["bytes_per_s"] for name, rate in rates.items()} == pytest.approx(expected, rel=EXACT_TOLERANCE)


def test_mixed_operations_are_chosen_per_file(engine: Engine) -> None:
    """One operation in each of 2,000 files: each must be chosen anew, not once for all files of a task."""
    plan = make_paced_plan(STEADY, op="mixed", access={"read_ratio": 0.3, "block": "100kB", "segments": 1})
    plan["data"]["files"] = {"mapping": "many", "count": 2000}
    end = engine.run(plan).finished("it")
    assert end["ops"]["done"] == 2000
    assert abs(end["ops"]["read"] - 600) <= 4.5 * math.sqrt(2000 * 0.21)


# The real clock ------------------------------------------------------------------------------------------------------

REAL: dict[str, Plan] = {
    "steady": make_paced_plan(STEADY, volume_mb=200),
    "stepped": make_paced_plan(
        {"schedule": [{"at": "0s", "rate": "200MB/s"}, {"at": "400ms", "rate": "100MB/s"}]}, volume_mb=160
    ),
    "latency-queue": make_paced_plan({**STEADY, "latency": "20ms"}, volume_mb=200, io={"queue_depth": 4}),
    "slow-one": make_paced_plan(
        {"rate": "200MB/s", "slow_tasks": {"1": 4}}, volume_mb=200, tasks={"processes": 2}, stop={"stonewall": "700ms"}
    ),
    "wearout": make_paced_plan(
        {"rate": "200MB/s", "slow_tasks": {"1": 2}},
        volume_mb=400,
        tasks={"threads": 2},
        stop={"stonewall": "500ms", "wearout": True},
    ),
    "time": make_paced_plan(STEADY, volume_mb=20, stop={"time": "1s"}),
}


def slow_plan_to_real_time(plan: Plan) -> Plan:
    """The same with operations of 10 ms or more and on the machine's clock."""
    data = plan["data"]
    access = {**data["access"], "transfer": "2MB"}
    return {**plan, "data": {**data, "access": access, "paced": {**data["paced"], "virtual_clock": False}}}


def find_smallest_error_of_ten(engine: Engine, plan: Plan, wrong_by: Any) -> float:
    """The smallest of up to ten errors: another process may take the processor away for a moment."""
    errors: list[float] = []
    while len(errors) < 10 and (not errors or min(errors) > 0.01):
        result = engine.run(plan)
        assert result.code == DONE, result.err
        errors.append(wrong_by(result))
    return min(errors)


@pytest.mark.serial
@pytest.mark.parametrize("case_name", REAL)
def test_on_the_real_clock_rates_are_within_one_percent(engine: Engine, case_name: str) -> None:
    plan = slow_plan_to_real_time(REAL[case_name])
    truth = compute_truth(plan)

    def wrong_by(result: Result) -> float:
        end, series = result.finished("it"), result.of("series")[0]
        assert end["stopped_by"] == truth.stopped_by
        assert sum(series["bytes"]) == end["bytes"]["transferred"]
        if end["bytes"]["transferred"] != truth.bytes:  # an operation more or less at the deadline
            return 1.0
        exact = truth.rates(series["slice_s"])
        names = [n for n in exact if n != "steady"]  # the window is cut to slices that begin a little later
        return max(abs(float(end["rates"][n]["bytes_per_s"]) / exact[n] - 1) for n in names)

    assert find_smallest_error_of_ten(engine, plan, wrong_by) <= 0.01


@pytest.mark.serial
def test_first_done_stops_the_remaining_tasks(engine: Engine) -> None:
    """Task 0 needs 0.6 s for its volume; task 1 is three times slower and has then done a third of its operations."""
    plan = slow_plan_to_real_time(
        make_paced_plan({"rate": "200MB/s", "slow_tasks": {"1": 3}}, volume_mb=120, tasks={"threads": 2})
    )
    plan["phases"][0]["stop"] = {"first_done": True}
    truth = compute_truth({**plan, "phases": [{"id": "it", "op": "write"}]})

    def wrong_by(result: Result) -> float:
        end = result.finished("it")
        assert end["stopped_by"] == "first_done"
        rows = list_task_rows(result)
        assert rows[0]["ops"] == 60
        rate = float(end["rates"]["first_done"]["bytes_per_s"]) / (truth.until(truth.first_end) / truth.first_end)
        return max(abs(int(rows[1]["ops"]) - 20) / 100, abs(rate - 1))

    assert find_smallest_error_of_ten(engine, plan, wrong_by) <= 0.01
