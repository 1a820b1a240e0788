# SPDX-License-Identifier: Apache-2.0
"""Jobs from the sites file to the scheduler's commands, which are scripts here that answer as the real ones do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sonde.jobs import batch
from sonde.jobs.book import ENDED, Job, find_job, keep, new_job, read_jobs, write_script
from sonde.jobs.script import script_of
from sonde.launch.sites import MEMBERS, Site, read_sites, site_of
from sonde.model.errors import MachineError, UserError
from sonde.store.archive import Archive

# Answers of each scheduler: what submission prints, and how one job looks that waits and one that runs.
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


def site(**members: Any) -> Site:
    return Site(**{"name": "made", "scheduler": "slurm", "launcher": "srun", "origin": "here"} | members)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of PATH for a scheduler's commands; what they were called with is written down."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def program(folder: Path, name: str, answer: str, code: int = 0) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\necho \"$@\" >>{folder}/{name}.called\ncat <<'X'\n{answer}\nX\nexit {code}\n")
    file.chmod(0o755)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_job_waits_runs_and_is_cancelled(scheduler: str, programs: Path, tmp_path: Path) -> None:
    submit, number, status, waiting, running, cancel = SCHEDULERS[scheduler]
    program(programs, submit, number)
    place, archive = site(scheduler=scheduler), Archive(tmp_path / "archive")
    job = new_job(archive, place, "quick", 2, 600)
    write_script(job, script_of(job, place, tmp_path))
    job = keep(job, batch.submit(job, place))
    assert job.number.startswith("4711")
    for answer, state in ((waiting, batch.QUEUED), (running, batch.RUNNING)):
        program(programs, status, answer)
        assert batch.states([job]) == {job.id: state}
    program(programs, cancel, "")
    batch.cancel(job)
    assert job.number in (programs / f"{cancel}.called").read_text()
    assert read_jobs(archive) == [job]


def test_a_job_that_the_scheduler_has_forgotten_ended_as_it_says_itself(programs: Path, tmp_path: Path) -> None:
    program(programs, "squeue", "slurm_load_jobs error: Invalid job id specified", 1)
    archive = Archive(tmp_path / "archive")
    jobs: list[Job] = []
    for name, code in (("good", "0"), ("bad", "5"), ("killed", "")):
        job = new_job(archive, site(), name, 1, 600)
        write_script(job, "")
        if code:
            (job.folder / ENDED).write_text(code)
        jobs.append(keep(job, f"47{len(jobs)}"))
    assert list(batch.states(jobs).values()) == [batch.DONE, batch.FAILED, batch.GONE]


def test_the_scheduler_that_says_completed_does_not_know_better_than_the_script(programs: Path, tmp_path: Path) -> None:
    program(programs, "squeue", "JOBID ST REASON\n4711 CD None")
    job = new_job(Archive(tmp_path / "archive"), site(), "quick", 1, 600)
    write_script(job, "")
    job = keep(job, "4711")
    assert batch.states([job]) == {job.id: batch.GONE}, "the wrapper ended well, the script wrote no exit code"
    (job.folder / ENDED).write_text("1\n")
    assert batch.states([job]) == {job.id: batch.FAILED}


def test_what_is_refused_is_said_and_no_scheduler_is_said(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(Archive(tmp_path / "archive"), site(), "quick", 1, 600)
    write_script(job, "")
    with monkeypatch.context() as bare:
        bare.setenv("PATH", str(programs))
        with pytest.raises(MachineError, match="There is no sbatch here"):
            batch.submit(job, site())
    program(programs, "sbatch", "sbatch: error: invalid account", 1)
    with pytest.raises(MachineError, match=r'The scheduler of "made" refused the job: .*invalid account'):
        batch.submit(job, site())


def test_a_site_is_written_into_the_directives(tmp_path: Path) -> None:
    place = site(partition="work", account="abc", reservation="r1", options={"qos": "debug", "constraint": "cpu"},
                 tasks_per_node=64)  # fmt: skip
    job = new_job(Archive(tmp_path), place, "quick", 8, 5400)
    text = batch.directives(job, place)
    wanted = ('nodes=8', 'ntasks-per-node=64', 'time=1:30:0', 'partition="work"', 'account="abc"', 'reservation="r1"',
              'qos="debug"', 'constraint="cpu"')  # fmt: skip
    assert [one for one in wanted if f"#SBATCH --{one}" not in text] == []


def array_of(tmp_path: Path, jobs: int) -> Job:
    job = new_job(Archive(tmp_path / "archive"), site(), "sweep", 1, 600, jobs)
    write_script(job, script_of(job, site(sonde="sh -c 'exit ${CODE:-0}'"), tmp_path))
    return keep(job, "4711")


def test_jobs_of_an_array_follow_one_another_and_write_a_code_each(tmp_path: Path) -> None:
    job = array_of(tmp_path, 3)
    assert '#SBATCH --array="1-3%1"' in batch.directives(job, site())
    for number, code in ((1, 5), (2, 5)):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(number), "CODE": str(code)}
        subprocess.run(["bash", str(job.folder / "job.sh")], check=False, env=environment)
    assert job.exit_codes() == {1: 5, 2: 5}
    assert job.exit_code() is None, "the third one may still finish it"
    assert read_jobs(Archive(tmp_path / "archive")) == [job]


@pytest.mark.parametrize(
    ("codes", "whole"), [({1: 5, 2: 0}, 0), ({1: 5, 2: 5, 3: 5}, 5), ({1: 1, 3: 1}, 1), ({2: 5}, None)]
)
def test_an_array_has_ended_when_a_job_found_nothing_left_or_the_last_one_ended(
    codes: dict[int, int], whole: int | None, tmp_path: Path
) -> None:
    job = array_of(tmp_path, 3)
    for number, code in codes.items():
        (job.folder / f"ended-{number}.txt").write_text(f"{code}\n")
    assert job.exit_code() == whole


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("4711_[2-4%1] PD JobArrayTaskLimit\n4711_1 R None\n4712 PD Priority", batch.RUNNING),
        ("4711_[2-4%1] PD Priority\n4711_1 CD None", batch.QUEUED),
        ("4711_1 CD None\n4711_2 CA None", batch.CANCELLED),
    ],
)
def test_an_array_stands_as_the_liveliest_of_its_jobs(said: str, state: str, programs: Path, tmp_path: Path) -> None:
    program(programs, "squeue", f"JOBID ST REASON\n{said}")
    job = array_of(tmp_path, 4)
    assert batch.states([job]) == {job.id: state}


def run_script(text: str, folder: Path, signal: str = "") -> subprocess.CompletedProcess[str]:
    path = folder / "script.sh"
    path.write_text(text)
    return subprocess.run(["bash", str(path)], capture_output=True, text=True, check=False, cwd="/", timeout=60)


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("sh -c 'exit 4'", 4)])
def test_the_script_sets_all_up_and_keeps_output_and_exit_code(tmp_path: Path, command: str, code: int) -> None:
    place = site(
        sonde=command, wrapper="env A=b", environment={"B": "it's two"}, setup=['echo "B is $B in $(pwd)"'],
    )  # fmt: skip
    job = new_job(Archive(tmp_path / "an archive"), place, "quick", 1, 600)
    job.folder.mkdir(parents=True)
    directory = tmp_path / "a place"
    directory.mkdir()
    assert run_script(script_of(job, place, directory), tmp_path).returncode == code
    assert job.exit_code() == code
    assert "B is it's two in /" in job.output()


def test_a_script_without_its_directory_or_with_a_limit_ends_with_a_code(tmp_path: Path) -> None:
    job = new_job(Archive(tmp_path), site(), "quick", 1, 600)
    job.folder.mkdir(parents=True)
    assert run_script(script_of(job, site(), tmp_path / "gone"), tmp_path).returncode == 3
    assert job.exit_code() == 3
    # `timeout` sends SIGTERM, and what is run answers it with a code of its own
    place = site(sonde="bash -c 'trap \"exit 5\" TERM; sleep 30 & wait'")
    short = new_job(Archive(tmp_path), place, "short", 1, 1.0)
    short.folder.mkdir(parents=True)
    assert run_script(script_of(short, place, tmp_path), tmp_path).returncode == 5


def test_a_killed_script_writes_no_exit_code(tmp_path: Path) -> None:
    """A trap at the exit once wrote 0 for jobs that had been cancelled."""
    place = site(sonde="sleep 0.3; kill -TERM $$; sleep 60;")
    job = new_job(Archive(tmp_path), place, "quick", 1, 600)
    job.folder.mkdir(parents=True)
    assert run_script(script_of(job, place, tmp_path), tmp_path).returncode < 0
    assert job.exit_code() is None


def test_a_scheduler_that_gives_no_answer_ends_no_job(programs: Path, tmp_path: Path) -> None:
    program(programs, "squeue", "slurm_load_jobs error: Unable to contact slurm controller", 1)
    job = new_job(Archive(tmp_path / "archive"), site(), "quick", 1, 600)
    write_script(job, "")
    assert batch.states([keep(job, "4711")]) == {job.id: batch.UNKNOWN}


# --- sites


def sites(tmp_path: Path, text: str) -> dict[str, Site]:
    file = tmp_path / "sites.toml"
    file.write_text(text)
    return read_sites([file])


GOOD = 'scheduler = "slurm"\nlauncher = "srun"\n'


def test_a_site_says_what_it_asks_of_jobs(tmp_path: Path) -> None:
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
    big = sites(tmp_path, text)["big"]
    assert (big.time_s, big.nodes, big.tasks_per_node, big.modules) == (7200, 4, 32, ("cray-mpich", "sonde"))
    assert big.options == {"qos": "debug", "exclusive": "true"}
    assert big.environment == {"MPICH_X": "1"}


def test_a_later_file_replaces_a_site_of_its_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text(f'[x]\n{GOOD}account = "a"\n[y]\n{GOOD}')
    second.write_text(f'[x]\n{GOOD}account = "b"\n')
    found = read_sites([first, second, tmp_path / "absent.toml"])
    assert (found["x"].account, sorted(found)) == ("b", ["x", "y"])


WRONG = {
    "x = 1": "a site is a table",
    "[x]\nlauncher = 'srun'": "lacks scheduler",
    "[x]\nscheduler = 'slurm'": "lacks launcher",
    "[x]\nscheduler = 'slrm'\nlauncher = 'srun'": "known are slurm",
    "[x]\nscheduler = 'slurm'\nlauncher = 'sruns'": 'is "sruns"; known are',
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
def test_a_wrong_sites_file_is_one_sentence_with_file_and_member(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        sites(tmp_path, text)
    said = str(raised.value)
    assert WRONG[text] in said
    assert str(tmp_path / "sites.toml") in said
    assert "\n" not in said


def test_which_site_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SONDE_SITES", str(tmp_path / "sites.toml"))
    with pytest.raises(UserError, match="which is not there"):
        site_of(None)
    (tmp_path / "sites.toml").write_text(f"[a]\n{GOOD}")
    assert site_of(None).name == "a"
    (tmp_path / "sites.toml").write_text(f"[alpha]\n{GOOD}[beta]\n{GOOD}")
    with pytest.raises(UserError, match="name one with --site: alpha, beta"):
        site_of(None)
    with pytest.raises(UserError, match=r'no site "alpa".*Did you mean'):
        site_of("alpa")


def test_every_member_of_a_site_is_documented() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "tasks" / "cluster.md").read_text(encoding="utf-8")
    assert [name for name in MEMBERS if f"`{name}`" not in page] == []


# --- verbs


@pytest.fixture
def cluster(programs: Path, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program(programs, "sbatch", "Submitted batch job 4711")
    program(programs, "squeue", "JOBID ST REASON\n4711 PD Priority")
    (tmp_path / "sites.toml").write_text(f'[a]\n{GOOD}launcher_args = "--cpu-bind=none"\n')
    monkeypatch.setenv("SONDE_SITES", str(tmp_path / "sites.toml"))
    return programs


def test_plans_and_experiments_are_told_the_system_of_the_site(
    cluster: Path, sonde: Any, archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "sites.toml").write_text(f'[a]\n{GOOD}system = "edison"\n')
    assert sonde("submit", "quick", "--on", "/scratch").code == 0
    assert sonde("submit", "edison-acceptance", "--profile", "ci", "--on", "fs1=/scratch").code == 0
    assert sonde("submit", "quick", "--on", "/scratch", "--system", "mine.toml").code == 0
    told = [job.words[job.words.index("--system") + 1] for job in read_jobs(Archive(archive))]
    assert sorted(told) == ["edison", "edison", "mine.toml"]


def test_submit_adds_what_the_site_says_and_jobs_lists_it(cluster: Path, sonde: Any, archive: Path) -> None:
    said = sonde("submit", "quick", "--on", "/scratch", "--tasks", "8")
    assert said.code == 0, said.err
    (job,) = read_jobs(Archive(archive))
    assert job.words[:6] == ("run", "quick", "--on", "/scratch", "--tasks", "8")
    assert job.words[6:] == ("--archive", str(archive), "--group", job.id, "--launcher", "srun",
                             "--launcher-args=--cpu-bind=none")  # fmt: skip
    assert sonde("jobs", "--json").json[0]["state"] == "queued"
    assert job.id in sonde("jobs").out
    assert find_job(Archive(archive), "4711") == find_job(Archive(archive), "last") == job


def test_what_the_user_says_is_not_overridden(cluster: Path, sonde: Any, archive: Path) -> None:
    assert sonde("submit", "quick", "--on", "/s", "--launcher", "mpiexec", "--group", "mine").code == 0
    (job,) = read_jobs(Archive(archive))
    assert job.group == "mine"
    assert job.words.count("--launcher") == job.words.count("--group") == 1


def test_a_dry_run_submits_nothing(cluster: Path, sonde: Any, archive: Path) -> None:
    said = sonde("submit", "quick", "--on", "/scratch", "--dry-run")
    assert said.code == 0
    assert "#SBATCH" in said.out
    assert "sonde" in said.out
    assert not (cluster / "sbatch.called").exists()
    assert not archive.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
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
def test_what_cannot_be_submitted_is_refused_now(
    cluster: Path, sonde: Any, archive: Path, words: list[str], sentence: str
) -> None:
    said = sonde("submit", *words)
    assert said.code == 2, said.out
    assert sentence in said.err
    assert not archive.exists()


def test_an_array_is_for_a_sweep_and_for_slurm(cluster: Path, sonde: Any, archive: Path, tmp_path: Path) -> None:
    words = ("submit", "quick", "--on", "/s", "--repeat", "3", "--array", "4")
    assert sonde(*words).code == 0
    (job,) = read_jobs(Archive(archive))
    assert (job.array, "--array" in job.words) == (4, False)
    assert "0 of 4 jobs of its array have ended" in sonde("jobs", "last").out
    (tmp_path / "sites.toml").write_text('[a]\nscheduler = "pbs"\nlauncher = "mpiexec"\n')
    refused = sonde(*words)
    assert (refused.code, "is a word of Slurm" in refused.err) == (2, True)


def test_jobs_without_any_and_with_a_wrong_name(cluster: Path, sonde: Any, archive: Path) -> None:
    archive.mkdir()
    assert "No job was submitted" in sonde("jobs").out
    assert sonde("jobs", "4711").code == 2
    assert sonde("jobs", "--cancel").code == 2
    sonde("submit", "quick", "--on", "/s")
    assert "is no job; `sonde jobs`" in sonde("jobs", "0815").err
