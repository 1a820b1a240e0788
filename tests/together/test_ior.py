# SPDX-License-Identifier: Apache-2.0
"""`sonde ior`: the words reach the engine, its output reaches the user, and each test of a script becomes a run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


Sonde = Callable[..., "subprocess.CompletedProcess[str]"]
Runs = Callable[[], list[dict[str, Any]]]


def test_ior_output_is_printed_and_the_run_is_archived(sonde: Sonde, runs: Runs, tmp_path: Path) -> None:
    command_line = "ior --tasks 2 -w -r -F -t 4k -b 64k -i 2 -O summaryFormat=JSON -o f"
    result = sonde(*command_line.split())
    assert result.returncode == 0, result.stderr
    results = json.loads(result.stdout)["tests"][0]["Results"]
    assert [result_row["access"] for result_row in results] == ["write", "read"] * 2
    (run,) = runs()
    assert run["status"] == "done"
    assert run["plan"]["title"] == "ior -w -r -F -t 4k -b 64k -i 2 -O summaryFormat=JSON -o f"
    (folder,) = tmp_path.glob("sonde-archive/*/*/")
    assert {"record.ndjson", "plan.json", "report.html"} <= {path.name for path in folder.iterdir()}
    # The kept plan is what was run, with as many tasks: it can be run again.
    plan = json.loads((folder / "plan.json").read_text())
    assert [phase["id"] for phase in plan["phases"]][:3] == ["write-0", "read-0", "remove-0"]


@pytest.mark.parametrize(("form", "beginning"), [("JSON", "{"), ("CSV", "access,")])
def test_results_stay_readable_in_a_log_that_takes_messages(
    engine: Path, tmp_path: Path, form: str, beginning: str
) -> None:
    """With `> log 2>&1` progress and remarks would be between the lines of JSON and CSV."""
    arguments = ["ior", "-w", "-t", "4k", "-b", "64k", "-O", f"summaryFormat={form}", "-o", "f"]
    environment = {**os.environ, "SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab")}
    command = [sys.executable, "-m", "sonde", *arguments]
    with (tmp_path / "log").open("wb") as log:
        subprocess.run(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT, check=True)
    text = (tmp_path / "log").read_text()
    assert text.startswith(beginning)
    assert "sonde:" not in text
    if form == "JSON":
        assert json.loads(text)["tests"]


def test_each_test_of_a_script_is_a_run(sonde: Sonde, runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("IOR START\ntestFile=f\nblockSize=64k\ntransferSize=4k\nRUN\nRUN\nIOR STOP\n")
    result = sonde("ior", "--no-report", "-f", "script")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Options:") == 2
    assert sorted(run["plan"]["id"] for run in runs()) == ["ior-0", "ior-1"]
    # The progress is that of each test in turn.
    progress = re.findall(r"\((\d) of 2\)|^  (write|read)-0: ", result.stderr, re.MULTILINE)
    assert [number or phase for number, phase in progress] == ["1", "write", "read", "2", "write", "read"]
    assert len({run["group"] for run in runs()} - {None}) == 1
    assert all(run["status"] == "done" for run in runs())


def test_invalid_arguments_get_one_sentence_and_no_run(sonde: Sonde, runs: Runs) -> None:
    result = sonde("ior", "-t", "3", "-o", "f")
    assert result.returncode == 2
    assert result.stderr == "sonde: -t is 3, but a transfer must be a multiple of 8 bytes and more than 0.\n"
    assert runs() == []


def test_mpi_io_by_forked_tasks_is_rejected_with_a_remedy(sonde: Sonde, runs: Runs) -> None:
    result = sonde("ior", "--tasks", "2", "-a", "MPIIO", "-o", "f")
    assert result.returncode == 2
    assert result.stderr == (
        "sonde: I/O through MPI by 2 tasks needs processes that an MPI started: add --launcher mpiexec (or srun).\n"
    )
    assert runs() == []


def test_wrong_data_sets_exit_code_4_and_is_archived(sonde: Sonde, runs: Runs, tmp_path: Path) -> None:
    options = ["-k", "-G", "5", "-t", "4k", "-b", "64k", "-o", "f"]
    assert sonde("ior", "--no-report", "-w", *options).returncode == 0
    with (tmp_path / "f").open("r+b") as file:
        file.write(b"?")
    result = sonde("ior", "--no-report", "-r", "-R", *options)
    assert result.returncode == 4
    assert "Incorrect data on read (1 errors found)." in result.stdout
    assert sorted(run["status"] for run in runs()) == ["done", "mismatch"]


def test_every_option_is_in_the_documentation() -> None:
    table = (ROOT / "engine" / "dialects" / "ior" / "options.cpp").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "reference" / "ior.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    entries = re.findall(r"\{('.'|0),\s*\"([^\"]*)\",\s*\"([^\"]*)\",\s*Takes::", table)
    assert len(entries) > 80
    for letter, word, directive in entries:
        for spelling in (f"`-{letter[1]}`" if letter != "0" else "", f"`--{word}`" * bool(word), directive):
            assert not spelling or (spelling if spelling != directive else f"`{directive}`") in rows, spelling


def test_iozone_keeps_a_run_for_each_cell_and_draws_the_grid(sonde: Sonde, runs: Runs, tmp_path: Path) -> None:
    command_line = "iozone --quiet -a -n 64 -g 128 -y 16 -q 32 -i 0 -i 1 -i 2 -e -f z"
    result = sonde(*command_line.split())
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines() if re.fullmatch(r"[\d\s]+", line) and line.strip()]
    assert [row[:2] for row in rows] == [["64", "16"], ["64", "32"], ["128", "16"], ["128", "32"]]
    assert all(len(row) == 8 and all(int(value) > 0 for value in row) for row in rows)
    stored = runs()
    assert len(stored) == 4
    assert len({run["group"] for run in stored}) == 1
    (page,) = (tmp_path / "sonde-archive" / "reports").glob("*.html")
    assert page.read_text().count('data-chart="surface"') == 6
    assert [path.name for path in tmp_path.iterdir()] == ["sonde-archive"]


def test_iozone_report_states_that_numbers_are_not_of_storage(sonde: Sonde, tmp_path: Path) -> None:
    done = sonde(*["iozone", "-i", "0", "-i", "1", "-r", "4k", "-s", "64k", "-f", "one"])
    assert done.returncode == 0, done.stderr
    assert re.search(r"^sonde: None of these numbers is of storage: ", done.stderr, re.MULTILINE), done.stderr
    assert "of storage" not in done.stdout  # where parsers of the real one read


def test_iozone_by_several_children_in_several_folders(sonde: Sonde, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    command_line = "iozone -i 0 -i 1 -r 64k -s 1m -+u -c -C -x -t 2 -F a/f b/f"
    result = sonde(*command_line.split())
    assert result.returncode == 0, result.stderr
    assert re.findall(r"throughput for  2 ([\w-]+(?: \w+)?) \t", result.stdout)[::2] == [
        "initial writers",
        "rewriters",
        "readers",
        "re-readers",
    ]
    assert result.stdout.count("Child[1] xfer count =    1024.00 kB") == 4
    assert [list((tmp_path / name).iterdir()) for name in ("a", "b")] == [[], []]
    (summary_file,) = tmp_path.glob("sonde-archive/*/*/run.json")
    assert result.stderr.endswith(f"sonde: stored in {summary_file.parent.relative_to(tmp_path)}\n")


@pytest.mark.parametrize(("target", "kind"), [("/proc", "proc"), ("/sys", "sysfs")])
def test_check_of_a_pseudo_file_system_is_rejected(target: str, kind: str, sonde: Sonde, runs: Runs) -> None:
    result = sonde("check", target)
    assert result.returncode == 3
    assert f"sonde: {target} is on {kind}, which is no file system for data" in result.stderr
    assert "free" not in result.stderr
    assert runs() == []


def test_a_survey_of_directories_is_a_line_for_each_combination(sonde: Sonde, runs: Runs, tmp_path: Path) -> None:
    for name in ("o1", "o2"):
        (tmp_path / name).mkdir()
    command_line = "obdfilter-survey --quiet targets=o1,o2 size=4 nobjhi=2 thrhi=4 verify=1 rslt=out"
    result = sonde(*command_line.split())
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith("ost ")]
    assert [re.findall(r"(?:obj|thr) +(\d+)", line) for line in lines] == [
        ["2", "2"],
        ["2", "4"],
        ["2", "8"],
        ["4", "4"],
        ["4", "8"],
    ]
    assert all(re.search(r"write +\d+\.\d\d +SHORT +rewrite .* read ", line) for line in lines)
    assert (tmp_path / "out.summary").read_text().splitlines() == [
        line for line in result.stdout.splitlines() if line != "done!"
    ]
    stored = runs()
    assert len(stored) == 5
    read = [phase for run in stored for phase in run["phases"] if phase["phase"] == "read"]
    assert len(read) == 5
    assert [list((tmp_path / name).iterdir()) for name in ("o1", "o2")] == [[], []]
