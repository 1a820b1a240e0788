# SPDX-License-Identifier: Apache-2.0
"""Memory does not grow with time, operations or errors: all that is measured fits into what was taken at the start."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from engine_under_test import DONE, MISMATCH, Engine, Plan, parse_record, write_plan

#: Memory that the kernel and the allocator give or take by chance. One more slice of a series for each 10 µs or
#: millisecond of the longer runs would be 300 KiB a task and more; one latency for each operation, dozens of MiB.
CHANCE_KIB = 256

MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(json.dumps([done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""


def measure_peak_kib(engine: Engine, plan: Plan, record: Path) -> tuple[int, int]:
    """Exit code, and the largest resident memory of any process of a run."""
    command = [str(engine.path), "run", str(engine.plan_file(plan)), "--record", str(record)]
    answer = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True)
    code, peak = answer.stdout.strip("[]\n").split(",")
    return int(code), int(peak)


def make_null_plan(target: Path, operation_count: int) -> Plan:
    access = {"transfer": "4KiB", "block": "4KiB", "segments": operation_count}
    return write_plan(
        target,
        {"id": "write", "op": "write"},
        data={"backend": "null", "access": access},
        tasks={"threads": 2},
        observe={"slice": "10us", "progress": "1s"},
    )


def test_memory_does_not_grow_with_the_length_of_a_run(engine: Engine, target: Path, tmp_path: Path) -> None:
    """Ten times the operations. Both last longer than all slices together before they double."""
    peaks: dict[int, int] = {}
    few, long_count = 400_000, 4_000_000
    for operations in (few, long_count):
        measured = []
        for attempt in range(3):  # the peak varies with what threads touch by chance: the least counts
            record = tmp_path / f"{operations}-{attempt}.ndjson"
            code, peak = measure_peak_kib(engine, make_null_plan(target, operations), record)
            assert code == DONE
            measured.append(peak)
        peaks[operations] = min(measured)
        lines = parse_record(record.read_text(encoding="utf-8"))
        [end] = [line for line in lines if line["type"] == "phase_end"]
        assert end["ops"]["done"] == 2 * operations
        [series] = [line for line in lines if line["type"] == "series"]
        assert series["slice_s"] > 10e-6
    assert peaks[long_count] <= peaks[few] + CHANCE_KIB


def test_each_of_many_tasks_uses_at_most_128_kib(engine: Engine, target: Path, tmp_path: Path) -> None:
    """Memory of 704 additional tasks, each with buffers for writes, reads and verification, all meters and its stack.

    Both numbers of tasks are so large that tasks share the content they write; a few have it for themselves.
    """
    few, long_count = 320, 1024
    peaks: dict[int, int] = {}
    for tasks in (few, long_count):
        access = {"transfer": "4KiB", "block": "32KiB", "segments": 2}
        plan = write_plan(
            target,
            {"id": "write", "op": "write"},
            {"id": "read", "op": "read"},
            data={"backend": "posix", "access": access, "verify": "on_read"},
            tasks={"threads": tasks},
            observe={"progress": "1s"},
        )
        record = tmp_path / f"{tasks}.ndjson"
        code, peaks[tasks] = measure_peak_kib(engine, plan, record)
        assert code == DONE
        ends = [line for line in parse_record(record.read_text(encoding="utf-8")) if line["type"] == "phase_end"]
        assert [end["bytes"]["transferred"] for end in ends] == [tasks * 64 * 1024] * 2
    assert (peaks[long_count] - peaks[few]) / (long_count - few) <= 128


def test_memory_use_does_not_depend_on_the_duration(engine: Engine, target: Path, tmp_path: Path) -> None:
    """The virtual clock makes long runs fast: slices of 1 ms double until they are minutes wide."""
    peaks: list[int] = []
    for seconds in (1, 24 * 3600):
        plan = write_plan(
            target,
            {"id": "write", "op": "write"},
            data={
                "backend": "paced",
                "paced": {"rate": "32KiB/s", "virtual_clock": True},
                "access": {"transfer": "4KiB", "volume": f"{32 * seconds}KiB", "block": "4KiB"},
            },
            observe={"slice": "1ms"},
        )
        record = tmp_path / f"{seconds}.ndjson"
        code, peak = measure_peak_kib(engine, plan, record)
        assert code == DONE
        [end] = [line for line in parse_record(record.read_text(encoding="utf-8")) if line["type"] == "phase_end"]
        assert end["seconds"]["elapsed"] == pytest.approx(seconds, rel=0.01)
        again = [measure_peak_kib(engine, plan, tmp_path / f"{seconds}-{time}.ndjson")[1] for time in range(3)]
        peaks.append(min(peak, *again))  # chance only adds
        assert record.stat().st_size < 200_000
    assert peaks[1] <= peaks[0] + CHANCE_KIB


def test_the_record_does_not_grow_with_errors(engine: Engine, target: Path, tmp_path: Path) -> None:
    """Every granule of a file is overwritten with zeros before it is read: thousands of mismatches, few lines."""
    spoil = "import sys; f = open(sys.argv[1], 'r+b'); n = f.seek(0, 2); f.seek(0); f.write(bytes(n))"
    file = target / "kept" / "data"
    plan = write_plan(
        target,
        {"id": "write", "op": "write"},
        {
            "id": "read",
            "op": "read",
            "verify": "on_read",
            "before": [{"kind": "command", "command": shlex.join([sys.executable, "-c", spoil, str(file)])}],
        },
        data={
            "files": {"mapping": "shared"},
            "access": {"transfer": "4KiB", "block": "4KiB", "segments": 4096},
        },
        target={"directory": "kept"},
    )
    result = engine.run(plan)
    assert result.code == MISMATCH, result.err
    assert result.finished("read")["verify"]["mismatches"] == 4096
    assert 0 < len(result.of("error")) < 200
