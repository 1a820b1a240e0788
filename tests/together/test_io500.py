# SPDX-License-Identifier: Apache-2.0
"""`sonde io500`: all phases of a short run, its files, its rules, what it leaves and how it is stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORDER = [
    *("ior-easy-write", "mdtest-easy-write", "timestamp", "ior-hard-write", "mdtest-hard-write", "find"),
    *("ior-easy-read", "mdtest-easy-stat", "ior-hard-read", "mdtest-hard-stat", "mdtest-easy-delete"),
    *("mdtest-hard-read", "mdtest-hard-delete", "ior-rnd4K-easy-read"),
]

Sonde = Callable[..., "subprocess.CompletedProcess[str]"]
Runs = Callable[[], list[dict[str, Any]]]


def lines_of(text: str) -> dict[str, tuple[float, bool]]:
    """Phase -> result and whether it is valid, from the summary; in its order."""
    rows = re.findall(r"^\[[RESULT ]{6}\] +(\S+) +([\d.]+) (?:GiB/s|kIOPS) : time [\d.]+ seconds(.*)$", text, re.M)
    return {name: (float(value), mark == "") for name, value, mark in rows}


@pytest.fixture
def ini(short_io500: str, tmp_path: Path) -> Callable[[str], str]:
    """Writes the short settings, with more behind them."""

    def write(more: str = "") -> str:
        (tmp_path / "my.ini").write_text(short_io500 + more)
        return "my.ini"

    return write


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_debug_run_does_every_phase_and_is_invalid(sonde: Sonde, runs: Runs, tmp_path: Path, tasks: int) -> None:
    (tmp_path / "scratch").mkdir()
    result = sonde("io500", "--debug-short", "scratch", "--tasks", str(tasks), "--timestamp", "T", "-v", "-v")
    assert result.returncode == 0, result.stderr
    phase_scores = lines_of(result.stdout)
    assert list(phase_scores) == ORDER
    assert all(value > 0 for name, (value, _) in phase_scores.items() if name != "timestamp")
    assert {name for name, (_, valid) in phase_scores.items() if not valid} >= {"mdtest-easy-write"}
    assert re.search(
        r"^\[SCORE \] Bandwidth [\d.]+ GiB/s : IOPS [\d.]+ kiops : TOTAL [\d.]+ \[INVALID\]$", result.stdout, re.M
    )
    assert re.search(r"^  find: .*, [\d,]+ found$", result.stderr, re.M)
    folder = tmp_path / "results" / "T"
    text = (folder / "result.txt").read_text()
    assert f"procs           = {tasks}" in text
    assert re.search(r"^found +=\s[1-9]\d*$", text, re.M)
    assert {f"{name}.txt" for name in ORDER if name not in ("timestamp", "find")} <= {
        path.name for path in folder.iterdir()
    }
    assert (folder / "timestampfile").exists()
    assert not list(folder.glob("*.stonewall"))
    assert list((tmp_path / "scratch").iterdir()) == []
    stored = [run for run in runs() if run["group"]]
    assert len(stored) == 13
    assert len({run["group"] for run in stored}) == 1
    (io500_run,) = [run for run in runs() if not run["group"]]
    assert io500_run["source"]["tool"].startswith("IO500 sonde-")
    assert {phase["phase"]: phase["done"] for phase in io500_run["phases"]} == {
        name: valid for name, (_, valid) in phase_scores.items() if name != "timestamp"
    }
    (page,) = tmp_path.glob("sonde-archive/reports/*io500*.html")
    assert "IO500 mdtest-hard-delete" in page.read_text(encoding="utf-8")
    assert sonde("io500", f"{folder}/config.ini", "--verify", f"{folder}/result.txt").stdout.endswith(
        "an invalid run!\n"
    )


@pytest.mark.parametrize("tasks", [1, 2])
def test_search_visits_and_matches_the_created_files(
    sonde: Sonde, ini: Callable[[str], str], tmp_path: Path, tasks: int
) -> None:
    """200 and 150 files a task, and those of IOR; of the 150 those with 01 in their number: 101."""
    result = sonde("io500", ini("[debug]\nstonewall-time = 60\n"), "--tasks", str(tasks), "--no-report", "--quiet")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "results" / "result.txt").read_text()
    assert f"found           = {tasks}\ntotal-files     = {350 * tasks + tasks + 1}\n" in text


def test_results_can_be_imported(sonde: Sonde, ini: Callable[[str], str]) -> None:
    assert sonde("io500", ini(""), "--no-report").returncode == 0
    for name in ("result.txt", "result_summary.txt"):
        answer = sonde("import", f"results/{name}", "--archive", f"other-{name}", "--json")
        assert answer.returncode == 0, answer.stderr
    result = sonde("show", "last", "--archive", "other-result.txt")
    assert "ior-hard-write" in result.stdout
    assert "IO500 marks this run as invalid" in result.stdout


def test_omitted_phases_score_0_and_invalidate_the_run(sonde: Sonde, ini: Callable[[str], str]) -> None:
    result = sonde("io500", ini("[find]\nrun = FALSE\n"), "--no-report", "--quiet")
    assert result.returncode == 0, result.stderr
    assert lines_of(result.stdout)["find"] == (0.0, False)
    assert lines_of(result.stdout)["ior-rnd4K-easy-read"] == (0.0, False)
    assert "ERROR INVALID Resulting score shouldn't be 0.0" in result.stdout


def test_extended_mode_adds_its_searches_and_md_workbench(
    sonde: Sonde, ini: Callable[[str], str], tmp_path: Path
) -> None:
    few = "[mdworkbench]\nprecreatePerSet = 30\nfilesPerProc = 20\n"
    result = sonde("io500", ini(few), "--mode=extended", "--no-report", "--timestamp", "T")
    assert result.returncode == 0, result.stderr
    phase_scores = lines_of(result.stdout)
    for phase in ("find-easy", "find-hard", "mdworkbench-create", "mdworkbench-bench", "mdworkbench-delete"):
        assert phase_scores[phase][0] > 0, phase
    assert "\n[SCOREX] Bandwidth" in result.stdout
    text = (tmp_path / "results" / "mdworkbench-bench.txt").read_text()
    assert text.count("benchmark process max:") == 4  # two iterations, and the line of the task for each
    assert "objects:200 " in text  # 20 of one task in each of 10 sets
    assert not (tmp_path / "data").exists() or not (tmp_path / "data" / "mdworkbench").exists()


def test_md_workbench_size_follows_the_mdtest_rates(sonde: Sonde, ini: Callable[[str], str], tmp_path: Path) -> None:
    result = sonde("io500", ini("[mdworkbench-bench]\nrun = FALSE\n"), "--mode=extended", "--no-report")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "results" / "result.txt").read_text()
    objects = int(re.findall(r"^precreatePerSet = (\d+)$", text, re.MULTILINE)[0])
    rate = min(lines_of(result.stdout)[name][0] for name in ("mdtest-easy-write",))
    assert 0 < objects <= rate * 1000 * 1.01 / 10
    assert lines_of(result.stdout)["mdworkbench-bench"] == (0.0, False)


def test_a_dry_run_shows_the_command_lines_and_does_nothing(
    sonde: Sonde, runs: Runs, ini: Callable[[str], str], tmp_path: Path
) -> None:
    result = sonde("io500", ini(""), "--dry-run", "--timestamp", "T")
    assert result.returncode == 0, result.stderr
    assert "ERROR INVALID DRY RUN MODE ACTIVATED" in result.stdout
    assert "ior-hard-write: ./ior --dataPacketType=timestamp -C -Q 1 -g -G=" in result.stdout
    assert result.stdout.rstrip().splitlines()[-3].endswith("[INVALID]")
    assert not (tmp_path / "data").exists()
    assert runs() == []


def test_external_find_script_is_called_and_parsed(sonde: Sonde, ini: Callable[[str], str], tmp_path: Path) -> None:
    script = tmp_path / "search.sh"
    script.write_text(
        '#!/bin/sh\necho "$@" > arguments\nfind $1 -type f -newer $3 -size $5 -name "*01*"\necho MATCHED 3/7\n'
    )
    script.chmod(0o755)
    result = sonde("io500", ini("[find]\nexternal-script = ./search.sh\n"), "--no-report", "--timestamp", "T")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "results" / "result.txt").read_text()
    assert 'last-output     = "MATCHED 3/7"' in text
    assert "found           = 3\ntotal-files     = 7\n" in text
    assert (tmp_path / "arguments").read_text() == "./data/T -newer ./results/timestampfile -size 3901c -name *01*\n"


def test_cache_drops_precede_each_phase_and_failures_are_reported(
    sonde: Sonde, ini: Callable[[str], str], tmp_path: Path
) -> None:
    more = "[global]\ndrop-caches = TRUE\ndrop-caches-cmd = echo x >> dropped; exit 3\n"
    refused = sonde("io500", ini(more))
    assert "neither [section] nor key" in refused.stderr  # ; begins a comment, as in IO500
    result = sonde("io500", ini(more.replace("; exit 3", " && false")), "--no-report", "--quiet")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "dropped").read_text() == "x\n" * 13
    assert 'WARNING Calling "echo x >> dropped && false" returned 1' in result.stdout


def test_phase_waits_while_its_pause_file_exists(engine: Path, ini: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "pause").mkdir()
    (tmp_path / "pause" / "find").touch()
    child = subprocess.Popen(
        [sys.executable, "-m", "sonde", "io500", ini("[debug]\npause-dir = pause\n"), "--no-report"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab")},
    )
    assert child.stdout is not None
    output = ""
    while "Waiting until pause/find is removed" not in output:
        line = child.stdout.readline()
        assert line, output
        output += line
    assert list(lines_of(output)) == ORDER[:5]
    (tmp_path / "pause" / "find").unlink()
    remainder, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert list(lines_of(output + remainder)) == ORDER
    assert "ERROR INVALID PAUSING BETWEEN RUNS ACTIVATED" in output


def test_failed_phase_is_reported_and_later_phases_run(sonde: Sonde, ini: Callable[[str], str], tmp_path: Path) -> None:
    script = tmp_path / "search.sh"
    script.write_text(
        "#!/bin/sh\nrm data/T/ior-easy/*\nprintf 'wrong' | dd of=data/T/ior-hard/file conv=notrunc 2>&1\n"
    )
    script.chmod(0o755)
    result = sonde("io500", ini("[find]\nexternal-script = ./search.sh\n"), "--no-report", "--timestamp", "T")
    assert result.returncode == 1
    assert "ior-easy-read" in result.stderr
    phase_scores = lines_of(result.stdout)
    assert list(phase_scores) == ORDER
    assert phase_scores["ior-easy-read"] == (0.0, False)
    assert phase_scores["ior-hard-read"][1] is False
    assert "occured during phase in IOR" in result.stdout
    assert phase_scores["mdtest-hard-delete"][1] is True


def test_existing_data_is_rejected_before_any_file_is_created(
    sonde: Sonde, ini: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "data" / "T" / "mdtest-easy").mkdir(parents=True)
    (tmp_path / "data" / "T" / "mdtest-easy" / "mine").touch()
    result = sonde("io500", ini(""), "--timestamp", "T")
    assert result.returncode == 2
    assert "mdtest-easy is not empty" in result.stderr
    assert not (tmp_path / "results").exists()


def test_unwritable_results_are_refused_before_the_first_phase(
    sonde: Sonde, ini: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "results").touch()
    result = sonde("io500", ini(""), "--timestamp", "T")
    assert result.returncode == 3
    assert result.stderr.startswith("sonde: The result directory results cannot be written")
    assert not (tmp_path / "data" / "T").exists()


def test_launcher_ranks_get_the_plan_from_rank_0(ini: Callable[[str], str], tmp_path: Path) -> None:
    name, messages = ini(""), []
    for rank in range(2):
        mark = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "PYTHONPATH": str(ROOT / "lab")}
        command = [sys.executable, "-m", "sonde", "io500", name]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **mark}, check=False
        )
        assert done.returncode == 2
        messages.append(done.stderr)
    assert "write `sonde io500 my.ini --launcher mpiexec --tasks 2` without mpiexec before it" in messages[0]
    assert messages[1] == ""
    assert not (tmp_path / "results").exists()


def test_missing_launcher_gets_a_single_error(sonde: Sonde, ini: Callable[[str], str]) -> None:
    result = sonde("io500", ini(""), "--launcher-args", "-x")
    assert (result.returncode, result.stderr) == (
        2,
        "sonde: --launcher-args needs another --launcher than local.\n",
    )


def test_interrupt_preserves_finished_phases_and_removes_data(
    engine: Path, ini: Callable[[str], str], runs: Runs, tmp_path: Path
) -> None:
    name = ini("[mdtest-hard-write]\nrun = TRUE\n[debug]\nstonewall-time = 60\n[mdtest-hard]\nn = 100000000\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "sonde", "io500", name, "--timestamp", "T", "--no-report"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab")},
    )
    folder_of_phase = tmp_path / "data" / "T" / "mdtest-hard"
    until = time.monotonic() + 60
    while not (folder_of_phase.is_dir() and any(folder_of_phase.iterdir())) and time.monotonic() < until:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 5, err
    phase_scores = lines_of(out)
    assert list(phase_scores) == ORDER[:5]
    assert phase_scores["mdtest-hard-write"] == (0.0, False)
    assert phase_scores["ior-hard-write"][0] > 0
    assert re.search(r"^\[SCORE \] Bandwidth .* \[INVALID\]$", out, re.M)
    assert not (tmp_path / "data" / "T").exists()
    assert len([run for run in runs() if run["group"]]) == 4


def test_cleanup_removes_only_files_of_a_killed_run(sonde: Sonde, ini: Callable[[str], str], tmp_path: Path) -> None:
    folder = tmp_path / "data" / "T"
    for name in ("ior-easy/ior_file_easy.00000000", "mdtest-easy/test-dir.0-0/mdtest_tree.0.0/file.mdtest.0.0", "mine"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "ior-easy" / "notes").touch()
    result = sonde("io500", ini(""), "--cleanup", "--timestamp", "T")
    assert result.returncode == 0, result.stderr
    leftovers = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert leftovers == ["ior-easy", "ior-easy/notes", "mine"]
    assert "left in ./data/T" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        ([], "Name an ini file"),
        (["gone.ini"], "There is no ini file gone.ini"),
        (["--debug-short", "gone"], "There is no directory gone"),
        (["my.ini", "--timestamp", "a/b"], "must be the name of a folder"),
        (["my.ini", "--mode", "fast"], "extended"),
        (["my.ini", "--verify", "gone.txt"], "There is no result file gone.txt"),
        (["my.ini", "--tasks", "0"], "--tasks"),
    ],
)
def test_invalid_arguments_get_one_sentence(
    sonde: Sonde, ini: Callable[[str], str], arguments: list[str], expected_text: str, tmp_path: Path
) -> None:
    ini("")
    result = sonde("io500", *arguments)
    assert result.returncode == 2
    assert expected_text in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("more", "expected_text"),
    [
        ("[global]\nio-buffers-on-gpu = TRUE\n", "IO500 ior-easy-write: "),
        ("[global]\napi = HDF5\n", "IO500 mdtest-easy-write: -a HDF5 is refused"),
        ("[ior-easy]\nblockSize = 100k\n", "IO500 ior-easy-write: "),
        ("[global]\ndataPacketType = paper\n", "IO500 ior-easy-write: "),
        ("[find]\nexternal-script = ./gone\n", "there is no such file"),
        ("[find]\nnproc = 2\n", "[find] nproc is 2, but there are 1 tasks"),
    ],
)
def test_invalid_settings_are_refused_before_the_first_phase(
    sonde: Sonde, ini: Callable[[str], str], more: str, expected_text: str, tmp_path: Path
) -> None:
    result = sonde("io500", ini(more))
    assert result.returncode == 2, result.stderr
    assert expected_text in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "data").exists()
