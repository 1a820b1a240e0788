# SPDX-License-Identifier: Apache-2.0
"""Jobs on a real Slurm of three nodes, which the tests start and end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from slurm_cluster import Slurm, missing

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]
PATIENCE_S, LONG_S = 90.0, 300

SITE = """
[made]
title = "three nodes of a test"
scheduler = "slurm"
launcher = "srun"
partition = "work"
nodes = 2
tasks_per_node = 2
time = "5 min"
environment = { SONDE_MADE = "a word" }
"""
# A first phase that is over at once, and a second one that waits for as long as a test wants.
PLAN = """
schema = "sonde-plan/2"
id = "waiting"
target.path = "."
data.backend = "null"
data.access = {{ transfer = "4KiB", segments = 50 }}
phases = [
  {{ id = "write", op = "write" }},
  {{ id = "again", op = "rewrite", before = [ {{ kind = "sleep", time = "{seconds}s" }} ] }},
]
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        reason = cluster.start()
        if reason:  # a container may forbid what the daemons need
            pytest.skip(f"Slurm does not come up here: {reason}")
        yield cluster
    finally:
        cluster.close()


Sonde = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sonde(slurm: Slurm, engine: Path, warm_program: Path, tmp_path: Path) -> Sonde:
    """Runs `sonde WORDS…` as a user of the cluster."""
    (tmp_path / "sites.toml").write_text(SITE)
    (tmp_path / "target").mkdir()
    variables = {"SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab"),
             "SONDE_SITES": str(tmp_path / "sites.toml"), "HOME": str(tmp_path), **slurm.environment}  # fmt: skip

    def run(*arguments: str, start: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [*start, str(warm_program), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
            check=False, env={**os.environ, **variables},
        )  # fmt: skip

    return run


def plan(folder: Path, seconds: float = 0.1) -> str:
    (folder / "waiting.toml").write_text(PLAN.format(seconds=seconds))
    return "waiting.toml"


def state(sonde: Sonde, job: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(sonde("jobs", job, "--json").stdout)
    return document


def wait_for_state(sonde: Sonde, job: str, *wanted: str) -> dict[str, Any]:
    end = time.monotonic() + PATIENCE_S
    while (now := state(sonde, job))["state"] not in wanted and time.monotonic() < end:
        time.sleep(0.3)
    return now


def summaries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("sonde-archive/2*/*/run.json"))]


def test_a_submitted_plan_ends_as_a_run_in_the_archive(sonde: Sonde, tmp_path: Path) -> None:
    result = sonde("submit", plan(tmp_path), "--on", "target", "--tasks", "4")
    assert result.returncode == 0, result.stderr
    job = result.stdout.strip()
    done = sonde("jobs", job, "--follow")
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = summaries(tmp_path)
    assert (run["job"], run["group"], run["launcher"]) == (job, job, "srun")
    assert (run["tasks"], run["nodes"]) == (4, 2)
    script = (tmp_path / "sonde-archive" / "jobs" / job / "job.sh").read_text()
    assert "export SONDE_MADE='a word'" in script
    assert sonde("show", job).returncode == 0
    assert job in sonde("jobs").stdout


def test_a_sweep_is_one_job_with_all_its_cells(sonde: Sonde, tmp_path: Path) -> None:
    result = sonde(
        "submit", plan(tmp_path), "--on", "target", "--repeat", "2", "--sweep", "data.access.transfer=4KiB,8KiB"
    )
    assert result.returncode == 0, result.stderr
    assert wait_for_state(sonde, result.stdout.strip(), "done", "failed", "gone")["state"] == "done"
    assert len(summaries(tmp_path)) == 4


def test_array_jobs_share_a_sweep_too_long_for_a_single_job(sonde: Sonde, tmp_path: Path) -> None:
    # The first job believes that it ends in two seconds, so that the second one has something to do.
    end = 'setup = ["[ $SLURM_ARRAY_TASK_ID != 1 ] || export SONDE_JOB_END=$(($(date +%s) + 2))"]\n'
    (tmp_path / "sites.toml").write_text(SITE + end)
    sweep = ("--sweep", "data.access.transfer=4KiB,8KiB,16KiB", "--tasks", "2")
    result = sonde("submit", plan(tmp_path, 1.0), "--on", "target", *sweep, "--array", "3")
    assert result.returncode == 0, result.stderr
    job = result.stdout.strip()
    assert wait_for_state(sonde, job, "done", "failed", "gone")["state"] == "done"
    codes = until_all(sonde, job, 3)
    assert codes == {"1": 5, "2": 0, "3": 0}, (tmp_path / "sonde-archive" / "jobs" / job / "output.txt").read_text()
    stored = summaries(tmp_path)
    assert sorted(summary["experiment"]["axis_values"]["transfer"] for summary in stored) == ["16KiB", "4KiB", "8KiB"]
    assert {summary["job"] for summary in stored} == {job}
    assert sonde("show", job).returncode == 0


@pytest.mark.nightly
def test_acceptance_set_runs_from_submission_to_report(sonde: Sonde, tmp_path: Path) -> None:
    options = ("--profile", "ci", "--on", "fs1=target", "--nodes", "1", "--time", "30 min", "--group", "acceptance")
    result = sonde("submit", "edison-acceptance", *options)
    assert result.returncode == 0, result.stderr
    end = time.monotonic() + 20 * 60
    while (now := state(sonde, "last"))["state"] in ("queued", "running") and time.monotonic() < end:
        time.sleep(2)
    assert (now["state"], now["runs"]) == ("done", 36), sonde("jobs", "last").stdout
    report = sonde("report", "acceptance")
    assert report.returncode == 0, report.stderr
    assert "posix_10k" in (tmp_path / report.stdout.strip()).read_text(encoding="utf-8")


def until_all(sonde: Sonde, job: str, count: int) -> dict[str, int]:
    """Exit codes of the jobs of an array, when all have ended."""
    end = time.monotonic() + PATIENCE_S
    while len(codes := dict(state(sonde, job)["exit_codes"])) < count and time.monotonic() < end:
        time.sleep(0.3)
    return codes


def test_job_at_its_time_limit_ends_cleanly(sonde: Sonde, slurm: Slurm, tmp_path: Path) -> None:
    result = sonde("submit", plan(tmp_path, LONG_S), "--on", "target", "--tasks", "2", "--time", "1 min")
    job = result.stdout.strip()
    assert wait_for_state(sonde, job, "running")["state"] == "running"
    _began(tmp_path)
    # Not a minute of waiting: the same signal that `timeout` in the script sends then.
    script = next(iter((tmp_path / "sonde-archive" / "jobs").glob("*/job.sh"))).read_text()
    assert "timeout --preserve-status --signal=TERM 54" in script
    subprocess.run(["pkill", "-TERM", "-f", f"^timeout.*{job}"], check=True)
    ended = wait_for_state(sonde, job, "failed", "done", "gone")
    assert (ended["state"], ended["exit_code"]) == ("failed", 5)
    (run,) = summaries(tmp_path)
    assert run["exit_code"] == 5
    assert not list((tmp_path / "target").iterdir()), "the files are removed"


def test_canceled_job_ends_and_its_run_is_archived(sonde: Sonde, tmp_path: Path) -> None:
    job = sonde("submit", plan(tmp_path, LONG_S), "--on", "target", "--tasks", "2").stdout.strip()
    wait_for_state(sonde, job, "running")
    _began(tmp_path)
    assert sonde("jobs", job, "--cancel").returncode == 0
    assert wait_for_state(sonde, job, "canceled", "gone", "failed")["state"] in ("canceled", "gone", "failed")
    end = time.monotonic() + PATIENCE_S
    while not summaries(tmp_path) and time.monotonic() < end:
        sonde("list")
        time.sleep(0.5)
    assert len(summaries(tmp_path)) == 1


def test_lost_node_ends_the_job_and_is_reported(sonde: Sonde, slurm: Slurm, tmp_path: Path) -> None:
    command = ("submit", plan(tmp_path, LONG_S), "--on", "target", "--tasks", "4", "--nodes", "2")
    job = sonde(*command).stdout.strip()
    number = wait_for_state(sonde, job, "running")["scheduler_id"]
    _began(tmp_path)
    nodes = slurm.output_of("squeue", "-h", "-j", number, "-o", "%N").strip()
    last = slurm.output_of("scontrol", "show", "hostnames", nodes).split()[-1]
    slurm.kill_node(last)
    # what slurmctld finds out by itself after its timeout
    slurm.output_of("scontrol", "update", f"nodename={last}", "state=down", "reason=lost")
    try:
        ended = wait_for_state(sonde, job, "failed", "gone", "canceled")
        assert ended["state"] in ("failed", "gone")
        assert slurm.output_of("squeue", "-h", "-j", number).strip() == "", "it is not begun anew"
    finally:
        slurm.start_node(last)
        slurm.output_of("scontrol", "update", f"nodename={last}", "state=resume")


def _began(folder: Path) -> None:
    """The engine writes its record."""
    end = time.monotonic() + PATIENCE_S
    while not list(folder.glob("sonde-archive/.incoming-*/record.ndjson")) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.5)


def test_scheduler_rejection_is_one_sentence_and_leaves_no_job(sonde: Sonde, tmp_path: Path) -> None:
    (tmp_path / "sites.toml").write_text(SITE.replace('partition = "work"', 'partition = "nowhere"'))
    result = sonde("submit", plan(tmp_path), "--on", "target")
    assert result.returncode == 3
    assert result.stderr.count("\n") == 1
    assert "refused the job" in result.stderr
    assert "invalid partition" in result.stderr.lower()
    assert not list((tmp_path / "sonde-archive").glob("jobs/*"))


def test_tasks_of_a_step_are_ranks_of_one_run(sonde: Sonde, tmp_path: Path) -> None:
    """Inside an allocation, without submission; PMI-2 is what MPICH and Slurm share."""
    salloc = (str(shutil.which("salloc")), "-Q", "-N2", "-n4")
    result = sonde("run", plan(tmp_path), "--on", "target", "--launcher", "srun", "--tasks", "4", "--no-report",
                 start=salloc)  # fmt: skip
    assert result.returncode == 0, result.stderr
    (run,) = summaries(tmp_path)
    assert (run["tasks"], run["nodes"]) == (4, 2)


def test_fleet_array_gives_the_same_table_as_a_single_machine(slurm: Slurm, tmp_path: Path) -> None:
    """Ranks all logs of the `darshan` wheel by the command that the page on advice shows."""
    darshan = pytest.importorskip("darshan")
    duckdb = pytest.importorskip("duckdb")
    logs = sorted(Path(darshan.__file__).parent.rglob("*.darshan"))
    (tmp_path / "logs").mkdir()
    for number, log in enumerate(logs):
        (tmp_path / "logs" / f"{number:02}-{log.name}").symlink_to(log)
    advise = f"{sys.executable} -m sonde advise --fleet logs"
    environment = {**os.environ, **slurm.environment, "PYTHONPATH": str(ROOT / "lab"), "HOME": str(tmp_path)}

    def run(*command: str) -> None:
        result = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert result.returncode == 0, result.stderr + "".join(file.read_text() for file in tmp_path.glob("slurm-*"))

    run("sh", "-c", f"{advise} --table alone")
    run("sbatch", "--wait", "--array=1-3", "--wrap", f"{advise} --table array --part $SLURM_ARRAY_TASK_ID/3")
    tables = [
        duckdb.sql(f"select * from read_parquet('{tmp_path / name}/*.parquet') order by log").fetchall()
        for name in ("alone", "array")
    ]
    assert len(tables[0]) == len(logs) >= 18
    assert tables[0] == tables[1]
