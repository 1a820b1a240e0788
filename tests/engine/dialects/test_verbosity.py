# SPDX-License-Identifier: Apache-2.0
"""What -v asks for: the lines of the real tools, each level with what the level below has. The expected lines are those
that IOR and mdtest 4.1 print for the same words, without their numbers.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

TIMES = ["open start", "open stop", "start", "stop", "close start", "close stop"]
SETTINGS = [
    "api",
    "barriers",
    "collective_creates",
    "create_only",
    "dirpath(s)",
    "dirs_only",
    "read_bytes",
    "read_only",
    "first",
    "files_only",
    "iterations",
    "items_per_dir",
    "last",
    "leaf_only",
    "items",
    "nstride",
    "pre_delay",
    "remove_only",
    "random_seed",
    "stride",
    "shared_file",
    "time_unique_dir_overhead",
    "stone_wall_timer_seconds",
    "stat_only",
    "unique_dir_per_task",
    "write_bytes",
    "sync_file",
    "call_sync",
    "depth",
    "make_node",
]


def run(engine: Path, command_line: str, folder: Path) -> str:
    command = [str(engine), *command_line.split()]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_ior(engine: Path, folder: Path, verbosity: int, more_options: str = "") -> str:
    return run(engine, f"ior -t 4k -b 8k -i 2 -G 5 -o f {more_options} {'-v ' * verbosity}", folder)


def test_ior_without_v_prints_no_details(engine_path: Path, tmp_path: Path) -> None:
    output = run_ior(engine_path, tmp_path, 0)
    for title in ("remove ", "Max Write", "Time Stamp", "Parameters", "Time=", "verbose"):
        assert title not in output


def test_ior_shows_the_signature_before_each_repetition(engine_path: Path, tmp_path: Path) -> None:
    output = run_ior(engine_path, tmp_path, 2)
    assert re.search(r"^Machine +: Linux \S+ \S+ .+ \S+$", output, re.MULTILINE)
    stamp = "Using Time Stamp 5 (0x5) for Data Signature"
    rows = [line.split()[0] for line in output.split("Results:")[1].splitlines() if line.strip() and "Max" not in line]
    assert rows[:10] == ["Using", "access", "------", "write", "read", "remove", "Using", "write", "read", "remove"]
    assert output.count(stamp) == 2
    assert "Parameters" not in output


def test_ior_with_v_prints_parameters_and_task_times(engine_path: Path, tmp_path: Path) -> None:
    output = run_ior(engine_path, tmp_path, 3, "-F -w -r -W --sonde-processes=2")
    assert re.search(r"^Parameters: $", output, re.MULTILINE)
    for name, value in (("transferSize", "4096"), ("data packet type", "g"), ("verbose", "3"), ("filePerProc", "1")):
        assert re.search(rf"^{name} *: {value}$", output, re.MULTILINE), name
    for access in ("write", "read"):
        assert output.count(f"Commencing {access} performance test: ") == 2
        for task in (0, 1):
            lines = re.findall(rf"^Test 0: Iter=1, Task={task}, Time=([\d.]+), {access} (.+)$", output, re.MULTILINE)
            assert [title for _, title in lines] == TIMES
            assert [float(time) for time, _ in lines] == sorted(float(time) for time, _ in lines)
    assert "task 1 writing f.00000001\n" in output
    assert "task 0 removing f.00000000\n" in output
    assert output.count("Verifying contents of the file(s) just written.\n") == 2


@pytest.mark.parametrize("verbose_option", ["-v", "-V=1"])
def test_mdtest_with_v_prints_parameters_and_iterations(verbose_option: str, engine_path: Path, tmp_path: Path) -> None:
    output = run(engine_path, f"mdtest -n 4 -i 2 -d m {verbose_option}", tmp_path)
    lines = re.findall(r"^V-1: Rank   0 Line +\d+ (.*)$", output, re.MULTILINE)
    assert [line.partition(":")[0].strip() for line in lines if not line.startswith("\t")][: len(SETTINGS)] == SETTINGS
    assert [line for line in lines if "iteration" in line and "*" in line] == [
        "main: * iteration 1 *",
        "main: * iteration 2 *",
    ]
    table = output.split("SUMMARY rate")[1]
    for name in ("File creation", "File removal", "Directory rename", "Tree creation"):
        rates = [float(rate) for rate in re.findall(rf"{name} *: +[\d.]+ sec, +([\d.]+) ops/sec", output)]
        assert len(rates) == 2
        row = re.search(rf"{name} +([\d.]+) +([\d.]+)", table)
        assert row is not None
        assert [max(rates), min(rates)] == [float(row[1]), float(row[2])]


def test_mdtest_without_v_prints_no_details(engine_path: Path, tmp_path: Path) -> None:
    assert "V-1" not in run(engine_path, "mdtest -n 4 -d m", tmp_path)


def test_ior_warns_about_missing_data_like_the_original(engine_path: Path, tmp_path: Path) -> None:
    """Three transfers of 4 KiB, of the sixteen of the block. With JSON nothing but the document is in the output."""
    command_line = "ior -w -k -t 4k -b 64k -O stoneWallingWearOutIterations=3 -o f"
    output = run(engine_path, command_line, tmp_path)
    warned, row = output.split("access    bw(MiB/s)")[1].split("\nwrite ", 1)
    assert re.findall(r"^WARNING: (.*?) += (\d+)$", warned, re.MULTILINE) == [
        ("Expected aggregate file size", "65536"),
        ("Stat() of aggregate file size", "12288"),
        ("Using actual aggregate bytes moved", "12288"),
    ]
    assert "WARNING" not in row
    json.loads(run(engine_path, command_line + " -O summaryFormat=JSON", tmp_path))
