# SPDX-License-Identifier: Apache-2.0
"""Jobs from the sites file to the scheduler's commands, which are scripts here that answer like the real commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sonde.jobs import job_scheduler
from sonde.jobs.batch_script import make_batch_script
from sonde.jobs.job_records import EXIT_CODE_FILE, Job, create_job, find_job, read_jobs, save_job, write_job_script
from sonde.launch.sites import MEMBERS, Site, find_site, read_sites
from sonde.model.errors import MachineError, UserError
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


def make_site(**members: Any) -> Site:
    return Site(**{"name": "made", "scheduler": "slurm", "launcher": "srun", "origin": "here"} | members)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of PATH for a scheduler's commands, which log their arguments."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def write_program(folder: Path, name: str, answer: str, code: int = 0) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\necho \"$@\" >>{folder}/{name}.called\ncat <<'X'\n{answer}\nX\nexit {code}\n")
    file.chmod(0o755)


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


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("sh -c 'exit 4'", 4)])
def test_script_sets_up_environment_and_stores_exit_code(tmp_path: Path, command: str, code: int) -> None:
    site = make_site(
        sonde=command, wrapper="env A=b", environment={"B": "it's two"}, setup=['echo "B is $B in $(pwd)"'],
    )  # fmt: skip
    job = create_job(Archive(tmp_path / "an archive"), site, "quick", 1, 600)
    job.folder.mkdir(parents=True)
    directory = tmp_path / "a directory"
    directory.mkdir()
    assert run_script(make_batch_script(job, site, directory), tmp_path).returncode == code
    assert job.read_exit_code() == code
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
    assert job_scheduler.query_job_states([save_job(job, "4711")]) == {job.id: job_scheduler.UNKNOWN}


# --- sites


def read_sites_text(tmp_path: Path, text: str) -> dict[str, Site]:
    file = tmp_path / "sites.toml"
    file.write_text(text)
    return read_sites([file])


GOOD = 'scheduler = "slurm"\nlauncher = "srun"\n'


def test_site_members_are_read(tmp_path: Path) -> None:
    text = f"""[big]
{GOOD}title = "Big"
partition = "work"
modules = ["cray-mpich", "sonde"]
options = {{ qos = "debug", exclusive = true }}
environment = {{ MPICH_X = 1 }}
time = "2 h"
nodes = 4
tasks_per_node = 32
"""
    big = read_sites_text(tmp_path, text)["big"]
    assert (big.time_s, big.nodes, big.tasks_per_node, big.modules) == (7200, 4, 32, ("cray-mpich", "sonde"))
    assert big.options == {"qos": "debug", "exclusive": "true"}
    assert big.environment == {"MPICH_X": "1"}


def test_later_file_replaces_a_site_of_the_same_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text(f'[x]\n{GOOD}account = "a"\n[y]\n{GOOD}')
    second.write_text(f'[x]\n{GOOD}account = "b"\n')
    sites = read_sites([first, second, tmp_path / "absent.toml"])
    assert (sites["x"].account, sorted(sites)) == ("b", ["x", "y"])


WRONG = {
    "x = 1": "a site is a table",
    "[x]\nlauncher = 'srun'": "lacks scheduler",
    "[x]\nscheduler = 'slurm'": "lacks launcher",
    "[x]\nscheduler = 'slrm'\nlauncher = 'srun'": "allowed are slurm",
    "[x]\nscheduler = 'slurm'\nlauncher = 'sruns'": 'is "sruns"; allowed are',
    f"[x]\n{GOOD}partion = 'w'": 'no member "partion". Did you mean',
    f"[x]\n{GOOD}nodes = 0": "whole number from 1",
    f"[x]\n{GOOD}nodes = true": "whole number from 1",
    f"[x]\n{GOOD}nodes = '4'": "whole number from 1",
    f"[x]\n{GOOD}modules = 'a'": "list of texts",
    f"[x]\n{GOOD}setup = [1]": "list of texts",
    f"[x]\n{GOOD}environment = ['A=b']": "table of texts",
    f"[x]\n{GOOD}options = {{ a = [1] }}": "table of texts",
    f"[x]\n{GOOD}account = 7": "text in quotation marks",
    f"[x]\n{GOOD}time = '30'": "time limit of a minute or more",
    f"[x]\n{GOOD}time = 30": "time limit of a minute or more",
    f"[x]\n{GOOD}time = '5 s'": "time limit of a minute or more",
    "[x": "cannot be read",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_sites_file_is_one_sentence_with_its_member(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read_sites_text(tmp_path, text)
    sentence = str(raised.value)
    assert WRONG[text] in sentence
    assert str(tmp_path / "sites.toml") in sentence
    assert "\n" not in sentence


def test_site_is_selected_by_name_or_as_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SONDE_SITES", str(tmp_path / "sites.toml"))
    with pytest.raises(UserError, match="which does not exist"):
        find_site(None)
    (tmp_path / "sites.toml").write_text(f"[a]\n{GOOD}")
    assert find_site(None).name == "a"
    (tmp_path / "sites.toml").write_text(f"[alpha]\n{GOOD}[beta]\n{GOOD}")
    with pytest.raises(UserError, match="name one with --site: alpha, beta"):
        find_site(None)
    with pytest.raises(UserError, match=r'no site "alpa".*Did you mean'):
        find_site("alpa")


def test_site_members_are_documented() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "tasks" / "cluster.md").read_text(encoding="utf-8")
    assert [name for name in MEMBERS if f"`{name}`" not in page] == []


# --- verbs


@pytest.fixture
def cluster(programs: Path, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_program(programs, "sbatch", "Submitted batch job 4711")
    write_program(programs, "squeue", "JOBID ST REASON\n4711 PD Priority")
    (tmp_path / "sites.toml").write_text(f'[a]\n{GOOD}launcher_args = "--cpu-bind=none"\n')
    monkeypatch.setenv("SONDE_SITES", str(tmp_path / "sites.toml"))
    return programs


def test_submitted_job_gets_the_system_of_the_site(cluster: Path, sonde: Any, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "sites.toml").write_text(f'[a]\n{GOOD}system = "edison"\n')
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
    ("arguments", "sentence"),
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
    cluster: Path, sonde: Any, archive: Path, arguments: list[str], sentence: str
) -> None:
    result = sonde("submit", *arguments)
    assert result.code == 2, result.out
    assert sentence in result.err
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
