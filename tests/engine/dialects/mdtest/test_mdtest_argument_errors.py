# SPDX-License-Identifier: Apache-2.0
"""Words that `sonde-engine mdtest` cannot run are refused in one sentence, with exit code 2 and nothing on disk."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, INTERRUPTED, MISMATCH, parse_record
from mdtest_cases import run

# The words, and what the sentence must say.
REJECTED_ARGUMENTS = {
    "-n": "needs a value",
    "-n abc": "whole number",
    "-n -3": "must be from 0",
    "-n 99999999999999999999": "8 EiB",
    "-n 1.5k": "whole number",
    "-C=x -n 3": "is a flag",
    "--verify-write=yes -n 3": "is a flag",
    "-a DUMMY --posix.odirect -n 3": "-a POSIX only",
    "-w 100 --posix.odirect -n 3": "uses direct I/O",
    "-q": "no option of mdtest",
    "--nonsense=3 -n 1": "no option of mdtest",
    "here -n 1": "where an option was expected",
    "-a HDF5 -n 3": "use -a POSIX",
    "-a FOO -n 3": "must be POSIX or DUMMY",
    "-B 1 -n 3": "no barriers",
    "-W 3 -b 3 -z 1 -n 40": "branching factor of 1",
    "-b 1000 -z 9 -I 1": "more than 1000000000 directories",
    "--posix.lustre.stripecount=2 -n 3": "is refused",
    "-g -n 3": "lfs setdirstripe",
    "--gpuDirect -n 3": "GPU",
    "-d a@b -u -n 3": "several directories",
    "-n 10 -I 3": "multiple of -I",
    "-n 10 -I 5 -u": "exclude each other",
    "-S -c -n 3": "-c does not go with -S",
    "-S -u -n 3": "-u does not go with -S",
    "-k -w 10 -n 3": "-k does not go with -w",
    "-X -n 3": "needs -e",
    "-n 3 -w 4 -e 8": "-e must not be more than -w",
    "-n 3 -f 3 -l 2": "-f is more than -l",
    "-n 3 -l 2": "more than the 1 tasks",
    "-n 3 -d /": "below the root",
    "-n 3 -d deep/er": "No such file or directory",
    "-n 3 --dataPacketType=z": "must be one of timestamp",
    "-n 3 -E --warningAsErrors": "open/close",
    "-n 3 --sonde-bogus 1": "there is no option --sonde-bogus",
}


@pytest.mark.parametrize("command_line", REJECTED_ARGUMENTS)
def test_unsupported_arguments_are_rejected_in_one_sentence(
    command_line: str, engine_path: Path, tmp_path: Path
) -> None:
    result = run([str(engine_path), "mdtest", *command_line.split()], tmp_path)
    assert result.returncode == BAD_PLAN
    assert result.stderr.count("\n") == 1
    assert REJECTED_ARGUMENTS[command_line] in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_option(engine_path: Path, tmp_path: Path) -> None:
    result = run([str(engine_path), "mdtest", "-h"], tmp_path)
    assert result.returncode == DONE
    for letter in "abBcCdDeEfFGiIklLnNpPrRsStTuUvVwWxXyYzZ":
        assert f"  -{letter} " in result.stdout or f"  -{letter}, " in result.stdout, letter


def test_missing_items_are_an_error_and_have_no_rate(engine_path: Path, tmp_path: Path) -> None:
    """mdtest counts them as done and ends with 0."""
    (tmp_path / "d" / "test-dir.0-0" / "mdtest_tree.0").mkdir(parents=True)
    result = run([str(engine_path), *["mdtest", "-n", "10", "-F", "-T", "-d", "d"]], tmp_path)
    assert result.returncode == FAILED
    assert "file.mdtest.0.0 failed: No such file or directory (ENOENT)" in result.stderr
    assert "File stat                   0.000" in " ".join(result.stdout.split()).replace(
        "File stat 0.000", "File stat                   0.000"
    )


def test_changed_byte_is_detected_and_located(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-n 8 -F -w 100 -e 100 -G 5 -d d"
    assert run([str(engine_path), "mdtest", *command_line.split(), "-C"], tmp_path).returncode == DONE
    wrong = tmp_path / "d" / "test-dir.0-0" / "mdtest_tree.0" / "file.mdtest.0.3"
    content = bytearray(wrong.read_bytes())
    content[57] ^= 1
    wrong.write_bytes(content)
    result = run([str(engine_path), "mdtest", *command_line.split(), "-E", "-X", "--sonde-record=r"], tmp_path)
    assert result.returncode == MISMATCH
    errors = [line for line in parse_record((tmp_path / "r").read_text()) if line["type"] == "error"]
    assert [(Path(line["path"]).name, line["offset"]) for line in errors] == [("file.mdtest.0.3", 57)]
    assert "(1 errors)" in result.stdout


def test_plan_is_printed_and_runs_on_request(engine_path: Path, tmp_path: Path) -> None:
    command_line = "mdtest -n 6 -z 1 -b 2 -C -F -w 10 -d d --sonde-plan"
    completed = run([str(engine_path), *command_line.split()], tmp_path)
    assert completed.returncode == DONE
    plan = json.loads(completed.stdout)
    assert plan["meta"]["tree"]["items_per_dir"] == 2
    (tmp_path / "plan.json").write_text(completed.stdout)
    assert run([str(engine_path), "run", "plan.json"], tmp_path).returncode == DONE
    assert sum(path.is_file() for path in (tmp_path / "d").rglob("*")) == 6


def test_details_of_ranks_have_mdtests_columns(engine_path: Path, tmp_path: Path) -> None:
    command_line = "mdtest -n 6 -i 2 -d d --saveRankPerformanceDetails=details.csv --sonde-processes=2"
    assert run([str(engine_path), *command_line.split()], tmp_path).returncode == DONE
    head, *rows = [line.split(",") for line in (tmp_path / "details.csv").read_text().splitlines()]
    assert head[:4] == ["rank", "items", "rate-Directory creation", "time-Directory creation"]
    assert len(head) == 2 + 2 * 11
    assert [row[0] for row in rows] == ["all", "0", "1", "0", "1"]
    create = head.index("rate-File creation")
    assert float(rows[0][create]) == pytest.approx(12 / float(rows[0][create + 1]))


def test_tasks_create_equally_many_items_after_a_stonewall(engine_path: Path, tmp_path: Path) -> None:
    command_line = "mdtest -n 100000000 -F -C -T -r -W 1 -x status -d d --sonde-processes=2 --sonde-record=r"
    result = run([str(engine_path), *command_line.split()], tmp_path)
    assert result.returncode == DONE, result.stderr
    created_items = int((tmp_path / "status").read_text())
    ends = {line["phase"]: line for line in parse_record((tmp_path / "r").read_text()) if line["type"] == "phase_end"}
    assert 0 < created_items < 100000000
    assert ends["0-file-create"]["stopped_by"] == "stonewall"
    line = next(line for line in result.stdout.splitlines() if line.startswith("Continue stonewall hit"))
    least, most, mean = (float(word) for word in re.findall(r"[0-9.]+", line))
    assert 0 < least <= mean <= most == created_items
    assert line == f"Continue stonewall hit min: {least:.0f} max: {created_items} avg: {mean:.1f} "
    assert 2 * mean == ends["0-file-create"]["rates"]["stonewall"]["ops"]
    assert [ends[f"0-file-{test}"]["ops"]["done"] for test in ("create", "stat", "remove")] == [2 * created_items] * 3
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("there", [False, True])
def test_interrupted_creation_can_be_cleaned(there: bool, engine_path: Path, tmp_path: Path) -> None:
    if there:
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "theirs").write_text("stays")
    command = [str(engine_path), "mdtest", *"-n 100000000 -F -C -W 60 -d d".split()]  # noqa: SIM905
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("d/test-dir.0-0/mdtest_tree.0/*.99")):
            assert time.monotonic() < until
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        assert run.communicate()[1].startswith("sonde-engine: interrupted in phase 0-file-create")
        assert run.returncode == INTERRUPTED
    assert len(list(tmp_path.glob("d/test-dir.0-0/mdtest_tree.0/*"))) >= 100
    cleaned = subprocess.run([engine_path, "clean", tmp_path], capture_output=True, text=True, check=False)
    assert cleaned.returncode == DONE, cleaned.stdout
    assert [path.name for path in tmp_path.rglob("*")] == (["d", "theirs"] if there else [])


def test_per_operation_csv_has_a_line_for_each_operation(engine_path: Path, tmp_path: Path) -> None:
    command_line = "mdtest -n 30 -w 64 -e 64 -d d --savePerOpDataCSV=ops --sonde-processes=2"
    result = run([str(engine_path), *command_line.split()], tmp_path)
    assert result.returncode == DONE, result.stderr
    names = ("creation", "stat", "read", "removal")
    assert sorted(path.name for path in tmp_path.glob("ops*")) == sorted(
        f"ops-File {name}-{task:05d}.csv" for name in names for task in (0, 1)
    )
    for path in tmp_path.glob("ops*"):
        head, *rows = path.read_text().splitlines()
        assert head == "time,runtime,tp"
        assert len(rows) == 30
        bytes_each = 64 if "creation" in path.name or "read" in path.name else 1
        for row in rows:
            _, runtime, rate = (float(cell) for cell in row.split(","))
            assert rate == pytest.approx(bytes_each / runtime, rel=1e-4)


def test_branching_factor_0_equals_branching_factor_1(engine_path: Path, tmp_path: Path) -> None:
    result = run([str(engine_path), "mdtest", "-n", "4", "-b", "0", "-d", "d"], tmp_path)
    assert result.returncode == DONE, result.stderr
    assert "File creation" in result.stdout
