# SPDX-License-Identifier: Apache-2.0
"""Jobs: submission, state and script, with scripts that answer like a scheduler."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from job_builders import make_site, write_program

from sonde.jobs import job_scheduler
from sonde.jobs.batch_script import make_batch_script
from sonde.jobs.job_records import EXIT_CODE_FILE, Job, create_job, read_jobs, save_job, write_job_script
from sonde.model.errors import MachineError
from sonde.store.archive import Archive

# For each scheduler: the output of submission, and the listing of a waiting and of a running job.
SCHEDULERS = {
    "slurm": (
        "sbatch",
        "Submitted batch job 4711",
        "squeue",
        "JOBID ST REASON\n4711 PD Priority",
        "JOBID ST REASON\n4711 R None",
        "scancel",
    ),
    "lsf": (
        "bsub",
        "Job <4711> is submitted to queue <normal>.",
        "bjobs",
        '{"RECORDS": [{"JOBID": "4711", "STAT": "PEND", "EXIT_REASON": "", "KILL_REASON": "", "SUSPEND_REASON": ""}]}',
        '{"RECORDS": [{"JOBID": "4711", "STAT": "RUN", "EXIT_REASON": "", "KILL_REASON": "", "SUSPEND_REASON": ""}]}',
        "bkill",
    ),
    "pbs": (
        "qsub",
        "4711.pbs01",
        "qstat",
        '{"Jobs": {"4711.pbs01": {"job_state": "Q", "comment": "Not Running"}}}',
        '{"Jobs": {"4711.pbs01": {"job_state": "R", "comment": "Job run"}}}',
        "qdel",
    ),
}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_job_waits_runs_and_is_canceled(scheduler: str, programs: Path, tmp_path: Path) -> None:
    submit, number, status, waiting, running, cancel = SCHEDULERS[scheduler]
    write_program(programs, submit, number)
    site, archive = make_site(scheduler=scheduler), Archive(tmp_path / "archive")
    job = create_job(archive, site, "quick", 2, 600)
    write_job_script(job, make_batch_script(job, site, tmp_path))
    job = save_job(job, job_scheduler.submit_job(job, site))
    assert job.scheduler_id.startswith("4711")
    for answer, state in ((waiting, job_scheduler.QUEUED), (running, job_scheduler.RUNNING)):
        write_program(programs, status, answer)
        assert job_scheduler.query_job_states([job]) == {job.id: state}
    write_program(programs, cancel, "")
    job_scheduler.cancel_job(job)
    assert job.scheduler_id in (programs / f"{cancel}.called").read_text()
    assert read_jobs(archive) == [job]


def test_forgotten_job_has_the_state_of_its_exit_code(programs: Path, tmp_path: Path) -> None:
    write_program(programs, "squeue", "slurm_load_jobs error: Invalid job id specified", 1)
    archive = Archive(tmp_path / "archive")
    jobs: list[Job] = []
    for name, code in (("good", "0"), ("bad", "5"), ("killed", "")):
        job = create_job(archive, make_site(), name, 1, 600)
        write_job_script(job, "")
        if code:
            (job.folder / EXIT_CODE_FILE).write_text(code)
        jobs.append(save_job(job, f"47{len(jobs)}"))
    assert list(job_scheduler.query_job_states(jobs).values()) == [
        job_scheduler.DONE,
        job_scheduler.FAILED,
        job_scheduler.GONE,
    ]


def test_exit_code_overrides_completed_state_of_scheduler(programs: Path, tmp_path: Path) -> None:
    write_program(programs, "squeue", "JOBID ST REASON\n4711 CD None")
    job = create_job(Archive(tmp_path / "archive"), make_site(), "quick", 1, 600)
    write_job_script(job, "")
    job = save_job(job, "4711")
    assert job_scheduler.query_job_states([job]) == {job.id: job_scheduler.GONE}, (
        "PSI/J's script succeeded, but the batch script wrote no exit code"
    )
    (job.folder / EXIT_CODE_FILE).write_text("1\n")
    assert job_scheduler.query_job_states([job]) == {job.id: job_scheduler.FAILED}


def test_refusal_and_missing_scheduler_are_reported(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = create_job(Archive(tmp_path / "archive"), make_site(), "quick", 1, 600)
    write_job_script(job, "")
    with monkeypatch.context() as bare:
        bare.setenv("PATH", str(programs))
        with pytest.raises(MachineError, match="There is no sbatch on this node"):
            job_scheduler.submit_job(job, make_site())
    write_program(programs, "sbatch", "sbatch: error: invalid account", 1)
    with pytest.raises(MachineError, match=r'The scheduler of "made" refused the job: .*invalid account'):
        job_scheduler.submit_job(job, make_site())


def test_site_members_become_directives(tmp_path: Path) -> None:
    site = make_site(partition="work", account="abc", reservation="r1", options={"qos": "debug", "constraint": "cpu"},
                 tasks_per_node=64)  # fmt: skip
    job = create_job(Archive(tmp_path), site, "quick", 8, 5400)
    text = job_scheduler.make_directives(job, site)
    wanted = ('nodes=8', 'ntasks-per-node=64', 'time=1:30:0', 'partition="work"', 'account="abc"', 'reservation="r1"',
              'qos="debug"', 'constraint="cpu"')  # fmt: skip
    assert [option for option in wanted if f"#SBATCH --{option}" not in text] == []


def submit_array(tmp_path: Path, jobs: int) -> Job:
    job = create_job(Archive(tmp_path / "archive"), make_site(), "sweep", 1, 600, jobs)
    write_job_script(job, make_batch_script(job, make_site(sonde="sh -c 'exit ${CODE:-0}'"), tmp_path))
    return save_job(job, "4711")


def test_array_jobs_run_in_turn_and_write_one_exit_code_each(tmp_path: Path) -> None:
    job = submit_array(tmp_path, 3)
    assert '#SBATCH --array="1-3%1"' in job_scheduler.make_directives(job, make_site())
    for number, code in ((1, 5), (2, 5)):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(number), "CODE": str(code)}
        subprocess.run(["bash", str(job.folder / "job.sh")], check=False, env=environment)
    assert job.read_exit_codes() == {1: 5, 2: 5}
    assert job.read_exit_code() is None, "the third one may still finish it"
    assert read_jobs(Archive(tmp_path / "archive")) == [job]


@pytest.mark.parametrize(
    ("codes", "expected"), [({1: 5, 2: 0}, 0), ({1: 5, 2: 5, 3: 5}, 5), ({1: 1, 3: 1}, 1), ({2: 5}, None)]
)
def test_array_ends_with_a_successful_or_its_last_job(
    codes: dict[int, int], expected: int | None, tmp_path: Path
) -> None:
    job = submit_array(tmp_path, 3)
    for number, code in codes.items():
        (job.folder / f"ended-{number}.txt").write_text(f"{code}\n")
    assert job.read_exit_code() == expected


@pytest.mark.parametrize(
    ("listing", "state"),
    [
        ("4711_[2-4%1] PD JobArrayTaskLimit\n4711_1 R None\n4712 PD Priority", job_scheduler.RUNNING),
        ("4711_[2-4%1] PD Priority\n4711_1 CD None", job_scheduler.QUEUED),
        ("4711_1 CD None\n4711_2 CA None", job_scheduler.CANCELED),
    ],
)
def test_array_has_the_most_active_state_of_its_jobs(listing: str, state: str, programs: Path, tmp_path: Path) -> None:
    write_program(programs, "squeue", f"JOBID ST REASON\n{listing}")
    job = submit_array(tmp_path, 4)
    assert job_scheduler.query_job_states([job]) == {job.id: state}


def run_script(text: str, folder: Path, signal: str = "") -> subprocess.CompletedProcess[str]:
    path = folder / "script.sh"
    path.write_text(text)
    return subprocess.run(["bash", str(path)], capture_output=True, text=True, check=False, cwd="/", timeout=60)


@pytest.mark.parametrize(("command", "expected_exit_code"), [("true", 0), ("sh -c 'exit 4'", 4)])
def test_script_sets_up_environment_and_stores_exit_code(tmp_path: Path, command: str, expected_exit_code: int) -> None:
    site = make_site(
        sonde=command, wrapper="env A=b", environment={"B": "it's two"}, setup=['echo "B is $B in $(pwd)"'],
    )  # fmt: skip
    job = create_job(Archive(tmp_path / "an archive"), site, "quick", 1, 600)
    job.folder.mkdir(parents=True)
    directory = tmp_path / "a directory"
    directory.mkdir()
    assert run_script(make_batch_script(job, site, directory), tmp_path).returncode == expected_exit_code
    assert job.read_exit_code() == expected_exit_code
    assert "B is it's two in /" in job.read_output()


def test_script_without_directory_or_beyond_limit_has_exit_code(tmp_path: Path) -> None:
    job = create_job(Archive(tmp_path), make_site(), "quick", 1, 600)
    job.folder.mkdir(parents=True)
    assert run_script(make_batch_script(job, make_site(), tmp_path / "gone"), tmp_path).returncode == 3
    assert job.read_exit_code() == 3
    # `timeout` sends SIGTERM, and the command handles it with its own exit code
    site = make_site(sonde="bash -c 'trap \"exit 5\" TERM; sleep 30 & wait'")
    short = create_job(Archive(tmp_path), site, "short", 1, 1.0)
    short.folder.mkdir(parents=True)
    assert run_script(make_batch_script(short, site, tmp_path), tmp_path).returncode == 5


def test_killed_script_writes_no_exit_code(tmp_path: Path) -> None:
    """An EXIT trap would write 0 for canceled jobs."""
    site = make_site(sonde="sleep 0.3; kill -TERM $$; sleep 60;")
    job = create_job(Archive(tmp_path), site, "quick", 1, 600)
    job.folder.mkdir(parents=True)
    assert run_script(make_batch_script(job, site, tmp_path), tmp_path).returncode < 0
    assert job.read_exit_code() is None


def test_silent_scheduler_leaves_the_job_state_unknown(programs: Path, tmp_path: Path) -> None:
    write_program(programs, "squeue", "slurm_load_jobs error: Unable to contact slurm controller", 1)
    job = create_job(Archive(tmp_path / "archive"), make_site(), "quick", 1, 600)
    write_job_script(job, "")
    assert job_scheduler.query_job_states([save_job(job, "4711")]) == {job.id: job_scheduler.UNKNOWN_JOB_STATE}
