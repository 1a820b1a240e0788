# SPDX-License-Identifier: Apache-2.0
"""Mistakes that storage benchmarks are known to make, each tried here: this engine must not make them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import DONE, FAILED, MISMATCH, Engine, Plan, list_tree, write_plan
from schedule import schedule_task
from test_known_answers import MIB, STEADY, plan_of

KIB = 1024


def make_corrupting_treatment(block_count: int) -> Plan:
    """A treatment that overwrites one byte in each of the first `block_count` blocks of 4 KiB of the only file."""
    script = (
        "import pathlib;p=next(pathlib.Path('{dir}').glob('data*'));b=bytearray(p.read_bytes());\n"
        f"for i in range({block_count}): b[i*4096+100]^=255\n"
        "p.write_bytes(b)"
    )
    return {"kind": "command", "need": "required", "script": script}


def make_verified_plan(target: Path, *before: Plan, **access: Any) -> Plan:
    """Write 4 KiB blocks, do something to the file, read and compare."""
    for treatment in before:
        text = treatment.pop("script").replace("{dir}", str(target / "data-here"))
        script = target.parent / "damage.py"
        script.write_text(text, encoding="utf-8")
        treatment["command"] = f"{sys.executable} {script}"
    read = {"id": "read", "op": "read", "before": list(before)}
    data = {"access": {"transfer": 4 * KIB, "block": 2 * MIB, **access}, "verify": "on_read"}
    return write_plan(target, {"id": "write", "op": "write"}, read, data=data, target={"directory": "data-here"})


@pytest.mark.parametrize("corrupt_blocks", [1, 64, 128, 256, 300])
def test_corrupt_data_is_an_exit_code_that_does_not_wrap(engine: Engine, target: Path, corrupt_blocks: int) -> None:
    """W0: IOR exits with twice the number of errors modulo 256, which is 0 for 128 bad blocks."""
    result = engine.run(make_verified_plan(target, make_corrupting_treatment(corrupt_blocks)))
    assert result.code == MISMATCH
    assert result.finished("read")["verify"]["mismatches"] == corrupt_blocks


def test_slow_task_appears_in_latency_and_by_name(engine: Engine, target: Path) -> None:
    """W1: a latency that is the smallest mean of all ranks does not show the rank that is slow."""
    plan = plan_of(target, STEADY, threads=4, paced={"slow_tasks": {"2": 50}}, access={"block": 64 * MIB})
    result = engine.run(plan)
    line = result.finished("p")
    slow = 50 * MIB / 100e6 * 1e9
    assert line["latency"]["write"]["max_ns"] == pytest.approx(slow, rel=0.01)
    assert line["latency"]["write"]["p90_ns"] == pytest.approx(slow, rel=0.01), "a quarter of all operations is slow"
    assert line["latency"]["write"]["p50_ns"] == pytest.approx(slow / 50, rel=0.01)
    slowest = line["imbalance"]["slowest"][0]
    assert (slowest["task"], slowest["host"]) == (2, result.of("node")[0]["host"])
    assert [finding["evidence"]["task"] for finding in result.of("finding") if finding["id"] == "imbalance"] == [2]


@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed")
@pytest.mark.parametrize("clock", ["", "monotonic"])
@pytest.mark.parametrize("clock_error", ["+2s", "-1d", "+0 x10"])
def test_wall_clock_errors_do_not_change_rates(engine: Engine, target: Path, clock_error: str, clock: str) -> None:
    """W2: timers on the wall clock turn a skew of 2 s into a twentieth of the rate. (faketime breaks the sleeping of
    the paced storage, so half a second of the null one is timed from outside.)"""
    plan = plan_of(target, STEADY, {"id": "p", "op": "write", "stop": {"time": "500ms"}}, processes=2)
    plan["data"]["backend"] = "null"
    env = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1", "SONDE_CLOCK": clock}
    began = time.monotonic()
    result = engine.run(plan, launch_prefix=["faketime", "-f", clock_error], env=env)
    wall = time.monotonic() - began
    assert result.code == DONE, result.err
    elapsed = result.finished("p")["seconds"]["elapsed"]
    assert 0.25 <= elapsed < wall, "less than half of what was asked for only by a clock that is wrong"
    assert not any(finding["id"] == "clock" for finding in result.of("finding"))


@pytest.mark.serial
def test_random_offsets_cost_the_same_for_any_number_of_tasks(engine: Engine, target: Path) -> None:
    """W3: offsets made by walking all ranks' transfers cost 55 ns an operation and rank."""
    spent = {}
    for processes in (1, 16):
        plan = plan_of(target, STEADY, processes=processes, files={"mapping": "shared"})
        plan["data"]["backend"] = "null"
        order = {"order": "random_permute", "scope": "file"}
        plan["data"]["access"] = {"transfer": 4 * KIB, "block": 4 * KIB, "segments": 1_600_000 // processes, **order}
        cpu = []
        for number in range(3):
            line = engine.run(plan, record=engine.folder / f"{processes}-{number}.ndjson").finished("p")
            cpu.append((line["cpu"]["user_s"] + line["cpu"]["system_s"]) / line["ops"]["done"])
        spent[processes] = min(cpu)
    assert spent[16] < 3 * spent[1], spent


def test_swapped_blocks_are_detected(engine: Engine, target: Path) -> None:
    """W4: when all blocks of a rank hold the same bytes, swapped blocks pass."""
    swap = {
        "kind": "command",
        "need": "required",
        "script": "import pathlib;p=next(pathlib.Path('{dir}').glob('data*'));b=bytearray(p.read_bytes());\n"
        "b[8192:12288],b[4096:8192]=b[4096:8192],b[8192:12288]\n"
        "p.write_bytes(b)",
    }
    result = engine.run(make_verified_plan(target, swap))
    assert result.code == MISMATCH
    assert result.finished("read")["verify"]["mismatches"] == 2
    assert all("another place of the same file" in error["text"] for error in result.of("error"))


@pytest.mark.serial
def test_verification_time_is_excluded_from_the_rate(engine: Engine, target: Path) -> None:
    """W4: a comparison inside the timed loop lowers the rate by a third."""
    ratios: list[float] = []
    while len(ratios) < 10 and (not ratios or min(ratios) > 1.2):  # the processor may be taken away between two reads
        record = engine.folder / f"try-{len(ratios)}.ndjson"
        line = engine.run(make_verified_plan(target, block=64 * MIB), record=record).finished("read")
        assert line["verify"] == {"checked_bytes": 64 * MIB, "mismatches": 0}
        assert line["seconds"]["verify"] > 0
        busy = line["latency"]["read"]["mean_ns"] * line["latency"]["read"]["count"] / 1e9
        ratios.append(line["seconds"]["transfer"] / busy)
    assert 0.99 <= min(ratios) <= 1.2, "reads only, back to back"


@pytest.mark.parametrize(
    "directory_name", ['quo"te', "new\nline", "tab\tand \\ backslash", "caf\u00e9", "back\\xslash"]
)
def test_record_is_valid_json_for_any_directory_name(engine: Engine, tmp_path: Path, directory_name: str) -> None:
    """W5: JSON that is printed by hand breaks on names and on warnings in between."""
    odd = tmp_path / directory_name
    odd.mkdir()
    result = engine.run(write_plan(odd))
    assert (result.code, result.out, result.err) == (DONE, "", "")
    assert result.of("run")[0]["plan"]["target"]["path"] == str(odd)


def test_short_times_keep_their_digits(engine: Engine, target: Path) -> None:
    """W5, W17, W24: four decimals of a second, or whole microseconds, make 0 of a fast operation."""
    plan = plan_of(target, STEADY, access={"block": MIB}, paced={"schedule": [], "latency": "300ns"})
    del plan["data"]["paced"]["schedule"]
    line = engine.run(plan).finished("p")
    assert line["latency"]["write"]["p50_ns"] == pytest.approx(300, rel=0.01)
    assert line["seconds"]["elapsed"] == pytest.approx(300e-9, rel=0.01)
    assert all(isinstance(value, (int, float)) for value in line["latency"]["write"].values())


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_one_system_call_an_operation_and_one_fsync_a_write(engine: Engine, target: Path) -> None:
    """W6: lseek and write where pwrite does; two fsyncs for each write."""
    calls = "pwrite64,pread64,lseek,fsync,fdatasync"
    counts = engine.folder / "calls.txt"
    plan = write_plan(target, {"id": "w", "op": "write"}, {"id": "r", "op": "read"}, data={"io": {"fsync": "per_op"}})
    plan["data"]["access"] = {"transfer": 4 * KIB, "block": 400 * KIB}
    result = engine.run(plan, launch_prefix=["strace", "-f", "-y", "-e", f"trace={calls}", "-o", str(counts)])
    if result.code != DONE and "ptrace" in result.err.lower():
        pytest.skip("ptrace is not permitted here")
    lines = [line for line in counts.read_text(encoding="utf-8").splitlines() if "/data.t00000000>" in line]
    call_names = [line.split("(")[0].split()[-1] for line in lines]
    assert {name: call_names.count(name) for name in set(call_names)} == {"pwrite64": 100, "pread64": 100, "fsync": 100}


@pytest.mark.parametrize(("error_number", "error_name"), [(28, "ENOSPC"), (5, "EIO"), (122, "EDQUOT")])
def test_storage_error_is_one_sentence_and_not_counted(
    engine: Engine, target: Path, error_number: int, error_name: str
) -> None:
    """W7, W11: an assertion that aborts; failed operations that are counted as done."""
    plan = plan_of(target, STEADY, threads=2, paced={"fail_after": 10, "fail_errno": error_number})
    result = engine.run(plan)
    assert result.code == FAILED
    assert error_name in result.only_sentence
    line = result.finished("p")
    assert line["ops"]["done"] <= 20
    assert line["ops"]["failed"] >= 1
    assert line["bytes"]["transferred"] == line["ops"]["done"] * MIB
    assert line["rates"]["total"]["bytes"] == line["bytes"]["transferred"]


def test_every_phase_has_its_rate_over_time(engine: Engine, target: Path) -> None:
    """W8, W10: one average, and no way to see when the rate fell."""
    plan = plan_of(target, [(0.0, 200e6), (0.5, 20e6)])
    series_line = engine.run(plan).of("series")[0]
    rates = [moved / series_line["slice_s"] for moved in series_line["bytes"]]
    at_half = int(0.5 / series_line["slice_s"])
    assert rates[at_half - 2] == pytest.approx(200e6, rel=0.01)
    assert rates[at_half + 2] == pytest.approx(20e6, rel=0.01)


def test_stat_of_missing_files_is_a_failure(engine: Engine, target: Path) -> None:
    """W11: stat of missing files reported as 151,418 operations a second, exit code 0."""
    remove = {"kind": "command", "need": "required", "command": f"rm {target}/data-here/data.t00000000.00000003"}
    plan = write_plan(
        target,
        {"id": "create", "op": "write"},
        {"id": "stat", "op": "stat", "before": [remove]},
        data={"files": {"mapping": "many", "count": 10}, "access": {"transfer": 4 * KIB, "block": 4 * KIB}},
        target={"directory": "data-here"},
    )
    result = engine.run(plan)
    assert result.code == FAILED
    assert "ENOENT" in result.only_sentence
    assert result.finished("stat")["ops"]["done"] == 3


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="/dev/shm is not writable")
def test_memory_file_systems_below_dev_are_accepted_and_reported(engine: Engine) -> None:
    """W15: every path below /dev refused."""
    result = engine.run(write_plan(Path("/dev/shm")))
    assert result.code == DONE, result.err
    assert result.of("node")[0]["file_system"]["type"] == "tmpfs", "W26: not taken for the file system of /"
    assert any(finding["id"] == "memory_backed" for finding in result.of("finding"))


def test_run_writes_nothing_but_its_record_and_cleans_up(engine: Engine, target: Path, tmp_path: Path) -> None:
    """W20: result files in /var/tmp that nobody asked for."""
    home = tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home)}
    result = engine.run(write_plan(target), cwd=home, env=env)
    assert result.code == DONE, result.err
    assert list_tree(home) == []
    assert list_tree(target) == []


def test_second_write_creates_a_new_inode_and_a_rewrite_does_not(engine: Engine, target: Path) -> None:
    """W21: repetitions that write into an inode whose name is already gone measure something else."""
    keep = f"stat -c %i {target}/data-here/data.t00000000 >> {engine.folder}/inodes"
    note = {"kind": "command", "need": "required", "command": keep}
    plan = write_plan(
        target,
        {"id": "first", "op": "write"},
        {"id": "again", "op": "rewrite", "before": [note]},
        {"id": "fresh", "op": "write", "before": [note]},
        {"id": "read", "op": "read", "before": [note]},
        data={"verify": "on_read"},
        target={"directory": "data-here"},
    )
    result = engine.run(plan)
    assert result.code == DONE, result.err
    assert result.finished("read")["verify"]["mismatches"] == 0
    first, rewritten, _ = (engine.folder / "inodes").read_text(encoding="utf-8").split()
    assert first == rewritten


def test_queued_latency_covers_submission_to_completion(engine: Engine, target: Path) -> None:
    """W23: completion latency alone shows 71 ns where an operation takes 967 ns."""
    plan = plan_of(target, STEADY, io={"queue_depth": 4}, access={"block": 64 * MIB})
    line = engine.run(plan).finished("p")
    alone = schedule_task(1, MIB, STEADY).ends[0]
    assert line["latency"]["write"]["p50_ns"] == pytest.approx(4 * alone * 1e9, rel=0.01), (
        "three before it, then itself"
    )


def test_reread_from_page_cache_is_reported(engine: Engine, target: Path) -> None:
    """W8: 256 MiB read again from the page cache reported as 8.4 GB/s without remark."""
    if b"tmpfs" in json.dumps(engine.run(write_plan(target)).of("node")[0]["file_system"]["type"]).encode():
        pytest.skip("the temporary directory is a memory file system, where there is no other number")
    plan = write_plan(target, {"id": "w", "op": "write"}, {"id": "r", "op": "read"})
    result = engine.run(plan, record=engine.folder / "again.ndjson")
    phases = [finding["phase"] for finding in result.of("finding") if finding["id"] == "cache_suspect"]
    assert phases == ["w", "r"]
    again = write_plan(target, {"id": "w", "op": "write"}, {"id": "r", "op": "read", "stop": {"time": "200ms"}})
    again["phases"][1]["before"] = [{"kind": "sync"}, {"kind": "fadvise"}]
    result = engine.run(again, record=engine.folder / "repeated.ndjson")
    assert any("repeated" in finding["text"] for finding in result.of("finding") if finding["phase"] == "r")
