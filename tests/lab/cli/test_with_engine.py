# SPDX-License-Identifier: Apache-2.0
"""The lab together with the real engine: small runs, the whole chain. Skipped with a reason where it is not built."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sonde.launch.engine import Engine
from sonde.launch.launchers.mpiexec import find_mpiexec
from sonde.model.errors import UserError
from sonde.model.record import read_record

pytestmark = pytest.mark.engine

SMALL_RUN_ARGUMENTS = ["--set", "data.access.volume=8MiB", "--no-report"]


@pytest.fixture(autouse=True)
def real_engine(engine: Engine) -> Engine:
    return engine


@pytest.fixture
def mpi(engine: Engine) -> None:
    """Skips where MPI ranks cannot be started."""
    if not list(engine.path.parent.glob("sonde-mpi-*.so")):
        pytest.skip("no MPI module was built beside the engine")
    try:
        find_mpiexec()
    except UserError as reason:
        pytest.skip(str(reason))


def list_remaining_files(target: Path) -> list[str]:
    return [str(path) for path in target.rglob("*")]


def test_known_answer_experiment_reports_exact_rates(sonde: Any, target: Path) -> None:
    """1 GB/s a task for one second, then half: 2 GB a task take 3 s, which 4 tasks do at 2.667 GB/s."""
    result = sonde("run", "known-answer", "--on", target, "--json", "--no-report")
    assert result.code == 0, result.err
    for phase in result.json["phases"]:
        assert phase["bytes_per_s"] == pytest.approx(4 * 2e9 / 3, rel=1e-3)
    assert result.json["tasks"] == 4


def test_run_leaves_record_and_no_target_files(sonde: Any, target: Path, archive: Path) -> None:
    result = sonde("run", "quick", "--on", target, "--json", *SMALL_RUN_ARGUMENTS)
    assert result.code == 0, result.err
    assert [phase["phase"] for phase in result.json["phases"]] == ["write", "read", "random-read"]
    assert all(phase["bytes"] > 0 for phase in result.json["phases"])
    assert list_remaining_files(target) == []
    record = read_record(Path(result.json["folder"]) / "record.ndjson")
    assert record.problems == []
    assert record.phases["read"].end is not None
    assert record.phases["read"].end.verify is not None
    assert record.phases["read"].end.verify.checked_bytes == 16 << 20
    for phase in record.phases.values():
        assert phase.end is not None
        assert phase.total_series is not None
        assert sum(phase.total_series.bytes) == phase.end.bytes.transferred


def test_every_shipped_plan_runs(sonde: Any, target: Path) -> None:
    settings = {
        "quick": SMALL_RUN_ARGUMENTS,
        "shared-file": ["--set", "data.access.segments=1", "--set", "data.access.block=1MiB", "--no-report"],
        "small-files": ["--set", "data.files.count=20", "--no-report"],
        "sustained": ["--set", "data.access.volume=8MiB", "--no-report"],
        "known-answer": ["--no-report"],
        "metadata": ["--set", "meta.tree.items_per_dir=20", "--no-report"],
        "checkpoint": ["--set", "data.access.volume=16MiB", "--no-report"],
        "kv-cache": ["--set", "data.access.volume=1MiB", "--set", "phases.serve.stop.time=100ms", "--no-report"],
        "vector-search": ["--set", "data.access.volume=1MiB", "--set", "phases.search.stop.time=100ms", "--no-report"],
    }
    for name, arguments in settings.items():
        result = sonde("run", name, "--on", target, "--json", *arguments)
        assert result.code == 0, f"{name}: {result.err}"
        assert result.json["status"] == "done"
    assert list_remaining_files(target) == []


def test_engine_rejection_names_plan(sonde: Any, target: Path, archive: Path) -> None:
    for setting in (
        "phases.write.op=mixed",
        "data.io.collective=true",
        "phases.read.data_of=nobody",
        "data.backend=tape",
    ):
        for verb in ("run", "plan"):
            result = sonde(verb, "quick", "--on", target, "--set", setting)
            assert result.code == 2, result.err
            assert len(result.sentences) == 1
            assert result.sentences[0].startswith("sonde: quick: ")
    assert not archive.exists() or list(archive.iterdir()) == []


def test_stages_run_in_separate_processes(sonde: Any, target: Path) -> None:
    result = sonde(
        "run", "quick", "--on", target, "--json", *SMALL_RUN_ARGUMENTS, "--set", "phases.read.process=separate"
    )
    assert result.code == 0, result.err
    lines = [json.loads(line) for line in (Path(result.json["folder"]) / "record.ndjson").read_text().splitlines()]
    kinds = [line["type"] for line in lines]
    assert kinds.count("run") == kinds.count("end") == kinds.count("node") == 1
    assert [line["phase"] for line in lines if line["type"] == "phase_end"] == ["write", "read", "random-read"]
    assert [line["t"] for line in lines if line["type"] == "phase_end"] == sorted(
        line["t"] for line in lines if line["type"] == "phase_end"
    )
    assert list_remaining_files(target) == []


def start(arguments: list[str], archive: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sonde", *arguments],
        env={**os.environ, "SONDE_ARCHIVE": str(archive)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def running(target: Path, archive: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that would take a minute, in the middle of its second phase."""
    with start(
        [
            "run",
            "quick",
            "--on",
            str(target),
            *SMALL_RUN_ARGUMENTS,
            "--set",
            "phases.read.stop.time=60s",
            "--set",
            "data.verify=none",
        ],
        archive,
    ) as process:
        for _ in range(200):
            records = list(archive.glob(".incoming-*/record.ndjson"))
            if records and '"phase":"read"' in records[0].read_text() and "progress" in records[0].read_text():
                break
            time.sleep(0.05)
        yield process
        process.kill()


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_keeps_finished_phases_and_removes_files(
    running: subprocess.Popen[str], target: Path, archive: Path, signal_number: int
) -> None:
    running.send_signal(signal_number)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 5
    assert "Traceback" not in err
    (folder,) = archive.glob("*/2*Z-*")
    summary = json.loads((folder / "run.json").read_text())
    assert summary["status"] == "interrupted"
    assert summary["phases"][0]["done"]
    assert list_remaining_files(target) == []


def test_next_command_recovers_killed_lab(
    running: subprocess.Popen[str], sonde: Any, target: Path, archive: Path
) -> None:
    (incoming,) = archive.glob(".incoming-*")
    engine = json.loads((incoming / "owner.json").read_text())["processes"][-1]["pid"]
    running.kill()
    running.wait()
    assert sonde("list", "--json").json == [], "its engine is still at work"
    os.kill(engine, signal.SIGKILL)
    for _ in range(100):
        runs = sonde("list", "--json").json
        if runs:
            break
        time.sleep(0.1)
    assert [run["status"] for run in runs] == ["lost"]
    assert runs[0]["phases"][0]["done"]
    assert list_remaining_files(target) != []
    for _ in range(100):
        result = sonde("clean", target, "--dry-run")
        if "still going on" not in result.out:
            break
        time.sleep(0.1)  # killed, but not yet buried by its new parent
    assert "would remove" in result.out
    assert list_remaining_files(target) != []
    assert sonde("clean", target).code == 0
    assert list_remaining_files(target) == []


def test_clean_removes_only_files_of_killed_runs(sonde: Any, target: Path) -> None:
    (target / "mine").mkdir()
    (target / "mine" / "thesis.tex").write_text("years of work")
    result = sonde("clean", target)
    assert result.code == 0
    assert "Nothing to remove" in result.out
    assert (target / "mine" / "thesis.tex").exists()


@pytest.mark.mpi
@pytest.mark.parametrize("arguments", [["--tasks", "4"], ["--tasks", "4", "--processes", "2"]])
def test_ranks_run_under_launcher(sonde: Any, mpi: None, target: Path, arguments: list[str]) -> None:
    result = sonde("run", "quick", "--on", target, "--launcher", "mpiexec", *arguments, "--json", *SMALL_RUN_ARGUMENTS)
    assert result.code == 0, result.err
    assert result.json["tasks"] == 4
    assert result.json["processes"] == (2 if "--processes" in arguments else 4)
    assert result.json["phases"][0]["bytes"] == 4 * 8 << 20
    assert list_remaining_files(target) == []


@pytest.mark.mpi
def test_stages_run_under_launcher(sonde: Any, mpi: None, target: Path) -> None:
    result = sonde(
        *("run", "quick", "--on", target, "--launcher", "mpiexec", "--tasks", "2", "--json", *SMALL_RUN_ARGUMENTS),
        *("--set", "phases.read.process=separate"),
    )
    assert result.code == 0, result.err
    assert [phase["done"] for phase in result.json["phases"]] == [True, True, True]
    assert list_remaining_files(target) == []


def test_doctor_reports_this_machine(sonde: Any, target: Path) -> None:
    result = sonde("doctor", target, "--json")
    assert result.code == 0
    states = {fact["topic"]: fact["state"] for fact in result.json["facts"]}
    assert states["engine"] == "yes"
    assert states["backend posix"] == "yes"
    assert states["target"] in ("yes", "partly")


@pytest.mark.slow
def test_check_of_real_storage_completes(sonde: Any, target: Path, archive: Path) -> None:
    result = sonde("check", target, "--json")
    assert result.code == 0, result.err
    keys = {figure["key"]: figure for figure in result.json["figures"]}
    for key in ("write-cached-1", "write-storage-1", "read-cached-1", "random-read-1", "create", "open-read-cached"):
        assert keys[key]["value"] > 0, key
    assert keys["read-cached-1"]["classification"] in ("cache", "memory")
    assert Path(result.json["report"]).is_file()
    assert list_remaining_files(target) == []
