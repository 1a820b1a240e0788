# SPDX-License-Identifier: Apache-2.0
"""The verbs submit and jobs, with scripts that answer like a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_builders import SITE_MEMBERS, write_program

from sonde.jobs.job_records import find_job, read_jobs
from sonde.store.archive import Archive


@pytest.fixture
def cluster(programs: Path, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_program(programs, "sbatch", "Submitted batch job 4711")
    write_program(programs, "squeue", "JOBID ST REASON\n4711 PD Priority")
    (tmp_path / "sites.toml").write_text(f'[a]\n{SITE_MEMBERS}launcher_args = "--cpu-bind=none"\n')
    monkeypatch.setenv("SONDE_SITES", str(tmp_path / "sites.toml"))
    return programs


def test_submitted_job_gets_the_system_of_the_site(cluster: Path, sonde: Any, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "sites.toml").write_text(f'[a]\n{SITE_MEMBERS}system = "edison"\n')
    assert sonde("submit", "quick", "--on", "/scratch").code == 0
    assert sonde("submit", "edison-acceptance", "--profile", "ci", "--on", "fs1=/scratch").code == 0
    assert sonde("submit", "quick", "--on", "/scratch", "--system", "mine.toml").code == 0
    systems = [job.arguments[job.arguments.index("--system") + 1] for job in read_jobs(Archive(archive))]
    assert sorted(systems) == ["edison", "edison", "mine.toml"]


def test_submit_adds_site_arguments_and_jobs_lists_the_job(cluster: Path, sonde: Any, archive: Path) -> None:
    result = sonde("submit", "quick", "--on", "/scratch", "--tasks", "8")
    assert result.code == 0, result.err
    (job,) = read_jobs(Archive(archive))
    assert job.arguments[:6] == ("run", "quick", "--on", "/scratch", "--tasks", "8")
    assert job.arguments[6:] == ("--archive", str(archive), "--group", job.id, "--launcher", "srun",
                             "--launcher-args=--cpu-bind=none")  # fmt: skip
    assert sonde("jobs", "--json").json[0]["state"] == "queued"
    assert job.id in sonde("jobs").out
    assert find_job(Archive(archive), "4711") == find_job(Archive(archive), "last") == job


def test_user_arguments_override_the_site(cluster: Path, sonde: Any, archive: Path) -> None:
    assert sonde("submit", "quick", "--on", "/s", "--launcher", "mpiexec", "--group", "mine").code == 0
    (job,) = read_jobs(Archive(archive))
    assert job.group == "mine"
    assert job.arguments.count("--launcher") == job.arguments.count("--group") == 1


def test_dry_run_submits_nothing(cluster: Path, sonde: Any, archive: Path) -> None:
    result = sonde("submit", "quick", "--on", "/scratch", "--dry-run")
    assert result.code == 0
    assert "#SBATCH" in result.out
    assert "sonde" in result.out
    assert not (cluster / "sbatch.called").exists()
    assert not archive.exists()


@pytest.mark.parametrize(
    ("arguments", "expected_sentence"),
    [
        (["no-such-plan"], "no-such-plan"),
        (["quick", "--bogus"], "--bogus"),
        (["quick", "--time", "5 s"], "less than a minute"),
        (["quick", "--time", "soon"], "--time"),
        (["quick", "--nodes", "0"], "--nodes"),
        (["quick", "--site", "b"], 'no site "b"'),
        (["-"], "standard input"),
        (["quick", "--array", "4"], "this is one; give --sweep"),
        (["quick", "--array", "1", "--repeat", "2"], "--array"),
    ],
)
def test_invalid_submission_is_rejected_at_once(
    cluster: Path, sonde: Any, archive: Path, arguments: list[str], expected_sentence: str
) -> None:
    result = sonde("submit", *arguments)
    assert result.code == 2, result.out
    assert expected_sentence in result.err
    assert not archive.exists()


def test_array_needs_several_runs_and_slurm(cluster: Path, sonde: Any, archive: Path, tmp_path: Path) -> None:
    arguments = ("submit", "quick", "--on", "/s", "--repeat", "3", "--array", "4")
    assert sonde(*arguments).code == 0
    (job,) = read_jobs(Archive(archive))
    assert (job.array, "--array" in job.arguments) == (4, False)
    assert "0 of 4 jobs of its array have ended" in sonde("jobs", "last").out
    (tmp_path / "sites.toml").write_text('[a]\nscheduler = "pbs"\nlauncher = "mpiexec"\n')
    result = sonde(*arguments)
    assert (result.code, "is an option of Slurm" in result.err) == (2, True)


def test_missing_and_unknown_jobs_are_reported(cluster: Path, sonde: Any, archive: Path) -> None:
    archive.mkdir()
    assert "No job was submitted" in sonde("jobs").out
    assert sonde("jobs", "4711").code == 2
    assert sonde("jobs", "--cancel").code == 2
    sonde("submit", "quick", "--on", "/s")
    assert "is no job; `sonde jobs`" in sonde("jobs", "0815").err
