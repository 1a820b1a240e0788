# SPDX-License-Identifier: Apache-2.0
"""The figures of the engine equal the truth: a storage that ends operations on a known schedule, and the same
arithmetic done here on its own. 0.1 % where time is virtual, 1 % where it is real.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import DONE, Engine, Line, Plan, Result
from schedule import Steps, Task, schedule_task

KIB, MIB = 1024, 1024 * 1024
EXACT_TOLERANCE = 1e-3

STEADY: Steps = [(0.0, 100e6)]
STEPPED: Steps = [(0.0, 200e6), (0.5, 50e6), (1.5, 400e6)]
RAMPING: Steps = [(0.0, 50e6), (2.0, 300e6)]


def plan_of(target: Path, steps: Steps, *phases: Plan, threads: int = 1, processes: int = 1, **data: Any) -> Plan:
    """A plan on the backend `paced`: 256 operations of 1 MiB a task unless told otherwise."""
    paced: Plan = {"schedule": [{"at": start, "rate": rate} for start, rate in steps], **data.pop("paced", {})}
    return {
        "schema": "sonde-plan/2",
        "id": "known",
        "target": {"path": str(target)},
        "tasks": {"threads": threads, "processes": processes},
        "data": {
            "backend": "paced",
            "access": {"transfer": MIB, "block": 256 * MIB, **data.pop("access", {})},
            "paced": paced,
            **data,
        },
        "phases": list(phases) or [{"id": "p", "op": "write"}],
        "observe": {"progress": 0},
    }


def get_byte_rate(line: Line, rate_name: str) -> float:
    return float(line["rates"][rate_name]["bytes_per_s"])


def find_series_line(result: Result, phase: str = "p") -> Line:
    return next(line for line in result.of("series") if line["phase"] == phase)


def list_task_rows(result: Result, phase: str = "p") -> list[dict[str, float]]:
    rows_found = []
    for line in result.of("tasks"):
        if line["phase"] == phase:
            rows_found += [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]
    return rows_found


def check_phase_end(result: Result, tasks: list[Task], phase: str = "p", tolerance: float = EXACT_TOLERANCE) -> Line:
    """Everything that is true of a phase that ran to its end, whatever its schedule."""
    assert result.code == 0, result.err
    line = result.finished(phase)
    volume = sum(len(t.ends) * t.transfer for t in tasks)
    elapsed = max(t.ends[-1] for t in tasks)
    assert line["bytes"]["transferred"] == volume
    assert line["seconds"]["elapsed"] == pytest.approx(elapsed, rel=tolerance)
    assert get_byte_rate(line, "total") == pytest.approx(volume / elapsed, rel=tolerance)
    assert get_byte_rate(line, "transfer") == pytest.approx(volume / elapsed, rel=tolerance)
    assert get_byte_rate(line, "task_sum") == pytest.approx(
        sum(len(t.ends) * t.transfer / t.ends[-1] for t in tasks), rel=tolerance
    )
    first = min(t.ends[-1] for t in tasks)
    series_line = find_series_line(result, phase)
    slice_s = series_line["slice_s"]
    if first > 50 * slice_s:  # interpolated inside a slice
        truth = sum(t.bytes_until(first) for t in tasks) / first
        assert get_byte_rate(line, "first_done") == pytest.approx(truth, rel=max(tolerance, 5e-3))
    assert sum(series_line["bytes"]) == volume, "the slices are the bytes"
    assert sum(series_line["ops"]) == sum(len(t.ends) for t in tasks)
    for index, moved in enumerate(series_line["bytes"]):
        truth = sum(t.bytes_until((index + 1) * slice_s) - t.bytes_until(index * slice_s) for t in tasks)
        assert moved == pytest.approx(
            truth, rel=tolerance, abs=len(tasks) * 4 + tolerance * volume / len(series_line["bytes"])
        )
    by_task = {int(row["task"]): row for row in list_task_rows(result, phase)}
    for number, truth_task in enumerate(tasks):
        assert by_task[number]["end_s"] == pytest.approx(truth_task.ends[-1], rel=tolerance)
        assert by_task[number]["bytes"] == len(truth_task.ends) * truth_task.transfer
    return line


def check_latency(line: Line, tasks: list[Task], kind: str = "write") -> None:
    """Percentiles within the 1 % that a bucket of the histogram is wide; extremes and mean exactly."""
    sorted_ns = sorted(1e9 * latency for t in tasks for latency in t.latencies)
    latency = line["latency"][kind]
    assert latency["count"] == len(sorted_ns)
    assert latency["mean_ns"] == pytest.approx(sum(sorted_ns) / len(sorted_ns), rel=EXACT_TOLERANCE)
    assert latency["min_ns"] == pytest.approx(sorted_ns[0], rel=EXACT_TOLERANCE, abs=1.5)
    assert latency["max_ns"] == pytest.approx(sorted_ns[-1], rel=EXACT_TOLERANCE, abs=1.5)
    for name, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p95_ns", 0.95), ("p99_ns", 0.99), ("p999_ns", 0.999)):
        exact = sorted_ns[math.ceil(share * len(sorted_ns)) - 1]
        assert latency[name] == pytest.approx(exact, rel=0.01, abs=1.5), name


@pytest.mark.parametrize(("steps", "ramp"), [(STEADY, False), (STEPPED, False), (RAMPING, True)])
@pytest.mark.parametrize(("threads", "processes"), [(1, 1), (2, 1), (1, 2), (7, 1), (4, 4), (64, 1), (1, 64)])
def test_rates_series_and_percentiles_are_the_truth(
    engine: Engine, target: Path, steps: Steps, ramp: bool, threads: int, processes: int
) -> None:
    plan = plan_of(target, steps, threads=threads, processes=processes, paced={"ramp": ramp, "latency": "1ms"})
    truth = [schedule_task(256, MIB, steps, ramp, latency_s=1e-3)] * (threads * processes)
    line = check_phase_end(engine.run(plan), truth)
    check_latency(line, truth)


def test_repeatedly_doubled_slices_remain_exact(engine: Engine, target: Path) -> None:
    plan = plan_of(target, STEPPED, threads=3)
    plan["observe"].update({"slice": "1ms", "max_slices": 16})
    result = engine.run(plan)
    check_phase_end(result, [schedule_task(256, MIB, STEPPED)] * 3)
    assert find_series_line(result)["slice_s"] >= 64e-3
    assert len(find_series_line(result)["bytes"]) <= 16


@pytest.mark.parametrize("tasks", [2, 16, 64])
def test_ten_times_slower_task_is_reported_and_counted(engine: Engine, target: Path, tasks: int) -> None:
    plan = plan_of(target, STEADY, threads=tasks, paced={"slow_tasks": {"1": 10}})
    truth = [schedule_task(256, MIB, STEADY, slowdown=10 if number == 1 else 1) for number in range(tasks)]
    result = engine.run(plan)
    line = check_phase_end(result, truth)
    assert line["imbalance"]["slowest"][0]["task"] == 1
    assert line["imbalance"]["slowest"][0]["bytes_per_s"] == pytest.approx(10e6, rel=EXACT_TOLERANCE)
    assert any(finding["id"] == "imbalance" and "task 1 " in finding["text"] for finding in result.of("finding"))
    steady = line["rates"]["steady"]
    assert steady["bytes_per_s"] == pytest.approx((tasks - 1) * 100e6 + 10e6, rel=0.01)


@pytest.mark.parametrize("tasks", [1, 2, 16])
def test_stonewall_counts_bytes_until_the_deadline(engine: Engine, target: Path, tasks: int) -> None:
    phase = {"id": "p", "op": "write", "stop": {"stonewall": "700ms"}}
    plan = plan_of(target, STEPPED, phase, threads=tasks, paced={"slow_tasks": {"0": 3}})
    result = engine.run(plan)
    line = result.finished("p")
    truth = [schedule_task(256, MIB, STEPPED, slowdown=3 if number == 0 else 1) for number in range(tasks)]
    assert line["stopped_by"] == "stonewall"
    moved = sum(t.bytes_until(0.7) for t in truth)
    assert line["rates"]["stonewall"]["seconds"] == pytest.approx(0.7, rel=EXACT_TOLERANCE)
    assert line["rates"]["stonewall"]["bytes"] == pytest.approx(moved, rel=EXACT_TOLERANCE)
    total = sum(t.done_until(0.7) + 1 for t in truth) * MIB  # each finishes the operation that it is in
    assert line["bytes"]["transferred"] == total


@pytest.mark.parametrize(("threads", "processes"), [(4, 1), (1, 4), (2, 8)])
def test_wearout_brings_all_tasks_to_the_count_of_the_fastest(
    engine: Engine, target: Path, threads: int, processes: int
) -> None:
    phase = {"id": "p", "op": "write", "stop": {"stonewall": "1s", "wearout": True}}
    slow = {str(number): 1 + number for number in range(threads * processes)}
    plan = plan_of(target, STEADY, phase, threads=threads, processes=processes, paced={"slow_tasks": slow})
    line = engine.run(plan).finished("p")
    truth = [schedule_task(256, MIB, STEADY, slowdown=1 + number) for number in range(threads * processes)]
    most = max(t.done_until(1.0) for t in truth) + 1
    assert line["ops"]["done"] == most * len(truth)
    stonewall = sum(t.bytes_until(1.0) for t in truth)
    assert line["rates"]["stonewall"]["bytes"] == pytest.approx(stonewall, rel=EXACT_TOLERANCE)
    elapsed = max(t.ends[most - 1] for t in truth)
    assert line["seconds"]["elapsed"] == pytest.approx(elapsed, rel=EXACT_TOLERANCE)
    ratio = (most * len(truth) * MIB / elapsed) / (stonewall / 1.0)
    assert line["wearout_ratio"] == pytest.approx(ratio, rel=EXACT_TOLERANCE)


@pytest.mark.parametrize(("threads", "processes"), [(4, 1), (1, 4), (2, 8)])
def test_early_finishers_wait_for_deadline_before_closing_files(
    engine: Engine, target: Path, threads: int, processes: int
) -> None:
    tasks = threads * processes
    phase = {"id": "p", "op": "write", "barrier": "intra", "stop": {"stonewall": "1s", "wearout": True}}
    slow = {str(number): 3 for number in range(1, tasks, 2)}  # 100 MB/s: done after 0.67 s, or 2 s
    access = {"block": 64 * MIB}
    plan = plan_of(
        target, STEADY, phase, threads=threads, processes=processes, access=access, paced={"slow_tasks": slow}
    )
    result = engine.run(plan)
    assert result.code == DONE, result.err
    line = result.finished("p")
    assert line["ops"]["done"] == 64 * tasks
    truth = [schedule_task(64, MIB, STEADY, slowdown=3 if number % 2 else 1) for number in range(tasks)]
    assert line["rates"]["stonewall"]["bytes"] == pytest.approx(
        sum(t.bytes_until(1.0) for t in truth), rel=EXACT_TOLERANCE
    )
    assert line["seconds"]["elapsed"] == pytest.approx(truth[1].ends[-1], rel=EXACT_TOLERANCE)


def test_time_limit_repeats_the_pattern_until_the_limit(engine: Engine, target: Path) -> None:
    phase = {"id": "p", "op": "write", "stop": {"time": "10s"}}
    line = engine.run(plan_of(target, STEADY, phase, access={"block": 16 * MIB}, threads=2)).finished("p")
    assert line["stopped_by"] == "time"
    assert "planned" not in line["bytes"]
    assert line["seconds"]["elapsed"] == pytest.approx(10.0, abs=MIB / 100e6)
    assert get_byte_rate(line, "total") == pytest.approx(200e6, rel=EXACT_TOLERANCE)


def test_minimum_time_ends_after_complete_passes(engine: Engine, target: Path) -> None:
    phase = {"id": "p", "op": "write", "stop": {"min_time": "1s"}}
    line = engine.run(plan_of(target, STEADY, phase, access={"block": 16 * MIB})).finished("p")
    passes = math.ceil(1.0 / (16 * MIB / 100e6))
    assert line["ops"]["done"] == 16 * passes


@pytest.mark.serial
def test_the_first_task_to_finish_may_stop_all(engine: Engine, target: Path) -> None:
    """On a virtual clock tasks do not wait for each other, so only the mark of the rule and its limit are checked."""
    phase = {"id": "p", "op": "write", "stop": {"first_done": True}}
    plan = plan_of(target, [(0.0, 20e6)], phase, threads=2, access={"block": 32 * MIB})
    plan["data"]["paced"].update({"virtual_clock": False, "slow_tasks": {"1": 4}})
    wrong_by: list[int] = []
    while len(wrong_by) < 10 and (not wrong_by or min(wrong_by) > 2):
        line = engine.run(plan, record=engine.folder / f"try-{len(wrong_by)}.ndjson").finished("p")
        assert line["stopped_by"] == "first_done"
        wrong_by.append(abs(line["ops"]["done"] - (32 + 8)))
    assert min(wrong_by) <= 2, wrong_by


@pytest.mark.parametrize("depth", [2, 8, 32])
def test_queue_depth_hides_latency_and_latency_covers_the_wait(engine: Engine, target: Path, depth: int) -> None:
    """One server of 100 MB/s with 1 s of latency behind it: depth operations overlap, each waits for those before."""
    service = MIB / 100e6
    plan = plan_of(target, STEADY, io={"queue_depth": depth}, paced={"latency": "1s"}, access={"block": 256 * MIB})
    line = engine.run(plan).finished("p")
    ends: list[float] = []
    free = 0.0
    starts: list[float] = []
    for number in range(256):
        start = 0.0 if number < depth else ends[number - depth]
        free = max(free, start) + service
        starts.append(start)
        ends.append(free + 1.0)
    assert line["seconds"]["elapsed"] == pytest.approx(ends[-1], rel=EXACT_TOLERANCE)
    latencies = [end - start for start, end in zip(starts, ends, strict=True)]
    assert line["latency"]["write"]["mean_ns"] == pytest.approx(1e9 * sum(latencies) / 256, rel=EXACT_TOLERANCE)
    assert line["latency"]["write"]["max_ns"] == pytest.approx(1e9 * max(latencies), rel=EXACT_TOLERANCE)


def test_mixed_phase_has_the_requested_share_of_reads(engine: Engine, target: Path) -> None:
    phase = {"id": "p", "op": "mixed", "access": {"read_ratio": 0.7, "transfer": 4 * KIB, "block": 64 * MIB}}
    line = engine.run(plan_of(target, STEADY, {"id": "w", "op": "write"}, phase)).finished("p")
    assert line["ops"]["read"] / line["ops"]["done"] == pytest.approx(0.7, abs=0.01)
    assert line["bytes"]["read"] == line["ops"]["read"] * 4 * KIB


@pytest.mark.parametrize("threads", [1, 4])
def test_metadata_operations_take_the_paced_latency(engine: Engine, target: Path, threads: int) -> None:
    files = {"mapping": "many", "count": 1000}
    plan = plan_of(
        target,
        STEADY,
        {"id": "create", "op": "write"},
        {"id": "p", "op": "stat"},
        threads=threads,
        files=files,
        access={"block": MIB},
        paced={"latency": "2ms"},
    )
    line = engine.run(plan).finished("p")
    assert line["ops"]["done"] == 1000 * threads
    assert line["rates"]["total"]["ops_per_s"] == pytest.approx(threads / 2e-3, rel=EXACT_TOLERANCE)
    assert line["latency"]["stat"]["p50_ns"] == pytest.approx(2e6, rel=0.01)


@pytest.mark.serial
@pytest.mark.parametrize("tasks", [1, 4])
def test_a_real_clock_shows_the_truth_within_a_hundredth(engine: Engine, target: Path, tasks: int) -> None:
    """Operations of 10 ms, so that waking up late hardly matters; the best of ten tries."""
    plan = plan_of(target, [(0.0, 100e6)], threads=tasks, access={"block": 64 * MIB})
    plan["data"]["paced"]["virtual_clock"] = False
    errors: list[float] = []
    for _ in range(10):
        line = engine.run(plan, record=engine.folder / f"try-{len(errors)}.ndjson").finished("p")
        errors.append(abs(get_byte_rate(line, "total") / (tasks * 100e6) - 1))
        if errors[-1] < 0.01:
            break
    assert min(errors) < 0.01, errors


def test_duplex_streams_are_rated_over_their_overlap(engine: Engine, target: Path) -> None:
    """Two independent directions of 100 MB/s: together twice as fast as one, efficiency 1."""
    streams = [{"id": "out", "op": "write", "file": 0}, {"id": "in", "op": "read", "file": 1}]
    plan = plan_of(
        target,
        STEADY,
        {"id": "w", "op": "write", "files": [1]},
        {"id": "half_write", "op": "write", "files": [0]},
        {"id": "half_read", "op": "read", "files": [1]},
        {"id": "p", "op": "duplex", "streams": streams},
        files={"mapping": "many", "count": 2},
    )
    line = engine.run(plan).finished("p")
    for stream in line["streams"]:
        assert stream["bytes_per_s"] == pytest.approx(100e6, rel=EXACT_TOLERANCE)
    assert line["duplex"]["efficiency"] == pytest.approx(1.0, rel=EXACT_TOLERANCE)
    assert line["duplex"]["fairness"] == pytest.approx(1.0, rel=EXACT_TOLERANCE)


LIMIT_CASES = [
    ({"iops_limit": 50}, 20e-3, "rate_limited"),
    ({"rate_limit": "20MB/s"}, MIB / 20e6, "rate_limited"),
    ({"iops_limit": 1000, "rate_limit": "20MB/s"}, MIB / 20e6, "rate_limited"),
    ({"iops_limit": 200}, 5e-3, "limit_not_reached"),
]


@pytest.mark.parametrize(("limits", "interval_s", "finding"), LIMIT_CASES)
@pytest.mark.parametrize("op", ["write", "mixed"])
def test_limited_latency_counts_from_when_operations_are_due(
    engine: Engine, target: Path, limits: Plan, interval_s: float, finding: str, op: str
) -> None:
    plan = plan_of(target, STEADY, {"id": "p", "op": op}, threads=2, io=limits)
    if op == "mixed":
        plan["data"]["access"]["read_ratio"] = 0.0
    result = engine.run(plan)
    assert result.code == 0, result.err
    served = MIB / 100e6
    ends: list[float] = []
    latencies: list[float] = []
    for number in range(256):
        due = number * interval_s
        begin = max(due, ends[-1] if ends else 0.0)
        ends.append(begin + served)
        latencies.append(ends[-1] - due)
    line = result.finished("p")
    assert line["seconds"]["elapsed"] == pytest.approx(ends[-1], rel=EXACT_TOLERANCE)
    latency = line["latency"]["write"]
    assert latency["count"] == 2 * 256
    assert latency["min_ns"] == pytest.approx(1e9 * latencies[0], rel=EXACT_TOLERANCE)
    assert latency["max_ns"] == pytest.approx(1e9 * latencies[-1], rel=EXACT_TOLERANCE)
    assert latency["mean_ns"] == pytest.approx(1e9 * sum(latencies) / 256, rel=EXACT_TOLERANCE)
    assert [item["id"] for item in result.of("finding") if "limit" in item["id"]] == [finding]


def test_limited_phase_ends_at_its_time_while_it_waits(engine: Engine, target: Path) -> None:
    phase = {"id": "p", "op": "write", "stop": {"time": "2500ms"}}
    result = engine.run(plan_of(target, STEADY, phase, io={"iops_limit": 1}))
    line = result.finished("p")
    assert line["ops"]["done"] == 3  # due at 0, 1 and 2 s
    assert line["bytes"]["transferred"] == 3 * MIB
    assert line["seconds"]["elapsed"] == pytest.approx(2.5, rel=EXACT_TOLERANCE)


def test_limited_task_keeps_its_schedule_over_files_and_passes(engine: Engine, target: Path) -> None:
    plan = plan_of(
        target,
        STEADY,
        {"id": "p", "op": "write", "stop": {"operations": 4, "min_time": "900ms"}},
        files={"mapping": "many", "count": 3},
        io={"iops_limit": 20},
    )
    line = engine.run(plan).finished("p")
    assert line["ops"]["done"] == 24  # the second pass ends after 900 ms
    assert line["seconds"]["elapsed"] == pytest.approx(23 * 50e-3 + MIB / 100e6, rel=EXACT_TOLERANCE)
