# SPDX-License-Identifier: Apache-2.0
"""Hostile text in a sites file and in the arguments of a job: it is refused with a sentence, or the batch script runs
nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from other_user import as_neighbor, needs_two_users

from sonde.jobs import job_scheduler
from sonde.jobs.batch_script import make_batch_script
from sonde.jobs.job_records import JOB_FILE, SCRIPT_FILE, Job, create_job, read_jobs, write_job_script
from sonde.launch.sites import SITE_FILE_MEMBERS, Site, read_sites
from sonde.model.errors import MachineError, UserError
from sonde.store.archive import Archive
from sonde.store.shards import JOBS_FOLDER

MARKER = "marker"
HOSTILE = (
    f"$(touch {MARKER})`touch {MARKER}`",
    f"; touch {MARKER};",
    f"' ; touch {MARKER}; '",
    f'" ; touch {MARKER}; "',
    f"\ntouch {MARKER}\n#\r\ntouch {MARKER}",
    f"a\n#SBATCH --wrap=touch {MARKER}",
    "%n\\",
)
# Members that are shell by definition: whoever writes a sites file writes a program.
SHELL_MEMBERS = ("setup", "wrapper", "sonde")
MADE = Site(name="made", scheduler="slurm", launcher="srun", origin="sites.toml", sonde="true")


def read_site(folder: Path, site_name: str, member: str, text: str) -> Site:
    """The site with one member hostile, from a file as a user writes it."""
    kind = SITE_FILE_MEMBERS[member][0]
    quoted = json.dumps(text)
    value = {"list": f"[{quoted}]", "table": f"{{ {quoted} = {quoted}, A = {quoted} }}"}.get(kind, quoted)
    members = {"scheduler": '"slurm"', "launcher": '"srun"', "sonde": '"true"'} | {member: value}
    path = folder / "sites.toml"
    lines = [f"[{json.dumps(site_name)}]", *(f"{key} = {entry}" for key, entry in members.items())]
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_sites([path])[site_name]


def run_batch_script(text: str, folder: Path) -> None:
    """Runs a script with nothing on PATH but harmless programs; `touch` makes the marker."""
    stubs = folder / "stubs"
    stubs.mkdir(exist_ok=True)
    for name in ("true", "timeout", "module", "scontrol", "wc", "seq", "sonde", "python", "qstat"):
        (stubs / name).write_text("#!/bin/sh\n")
    (stubs / "touch").write_text('#!/bin/sh\nfor name; do : >"$name"; done\n')
    (stubs / "date").write_text("#!/bin/sh\necho 0\n")
    for path in stubs.iterdir():
        path.chmod(0o755)
    script = folder / "script.sh"
    script.write_text(text, encoding="utf-8")
    environment = {"PATH": str(stubs), "HOME": str(folder), "SLURM_ARRAY_TASK_ID": "1"}
    subprocess.run(["/bin/bash", str(script)], cwd=folder, env=environment, capture_output=True, check=False)
    assert not list(folder.rglob(MARKER)), text


def check_with_shellcheck(text: str) -> None:
    """Notes below warnings ask whether a quoted dollar sign or backslash is meant as such: it is."""
    if shutil.which("shellcheck") is None:
        return
    done = subprocess.run(
        ["shellcheck", "--severity=warning", "-"], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def list_directive_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("HOME", str(tmp_path))
    created = create_job(Archive(tmp_path / "archive"), MADE, "quick", 2, 600, 3)
    created.folder.mkdir(parents=True)
    return created


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
@pytest.mark.parametrize("member", [name for name in SITE_FILE_MEMBERS if name not in SHELL_MEMBERS])
def test_hostile_site_member_is_refused_or_harmless(member: str, text: str, job: Job, tmp_path: Path) -> None:
    try:
        site = read_site(tmp_path, "made", member, text)
    except UserError as error:
        sentence = str(error)
        assert f"{tmp_path / 'sites.toml'}: made.{member}" in sentence
        return
    script, directives = make_batch_script(job, site, tmp_path), job_scheduler.make_directives(job, site)
    assert len(list_directive_lines(directives)) == len(list_directive_lines(job_scheduler.make_directives(job, MADE)))
    run_batch_script(script, tmp_path)
    run_batch_script(directives, tmp_path)
    check_with_shellcheck(script)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_site_name_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not the name of a site"):
        read_site(tmp_path, text, "title", "a title")


@pytest.mark.parametrize("member", SHELL_MEMBERS)
def test_shell_of_a_site_is_one_line(member: str, tmp_path: Path) -> None:
    assert read_site(tmp_path, "made", member, "srun $OPTIONS; true").name == "made"
    with pytest.raises(UserError, match="write one line of printable characters"):
        read_site(tmp_path, "made", member, "true\ntouch marker")


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
@pytest.mark.parametrize("members", [("arguments",), ("group",), ("site", "submitted", "scheduler")], ids=str)
def test_hostile_argument_of_a_job_is_quoted(members: tuple[str, ...], text: str, job: Job, tmp_path: Path) -> None:
    values: dict[str, Any] = {name: (text, f"--tag={text}") if name == "arguments" else text for name in members}
    script = make_batch_script(replace(job, **values), replace(MADE, name=text), tmp_path / text.strip("\n"))
    run_batch_script(script, tmp_path)
    check_with_shellcheck(script)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_archive_path_is_refused(text: str, job: Job, tmp_path: Path) -> None:
    hostile = replace(job, folder=tmp_path / text / "jobs" / job.id)
    with pytest.raises(UserError, match="cannot hold batch jobs") as raised:
        job_scheduler.make_directives(hostile, MADE)
    assert "\n" not in str(raised.value)
    run_batch_script(make_batch_script(hostile, MADE, tmp_path), tmp_path)


@needs_two_users
def test_job_file_of_another_user_is_ignored(tmp_path: Path) -> None:
    """Its scheduler and its id would become arguments of commands of the caller."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    archive = tmp_path / "archive"
    members = {"id": "job", "site": "s", "scheduler": "slurm", "arguments": ["run"], "group": "g", "nodes": 1}
    text = json.dumps(members | {"time_s": 1.0, "submitted": "2026-01-01T00:00:00+00:00", "scheduler_id": "7"})
    for name in ("mine", "planted"):
        folder = archive / JOBS_FOLDER / name
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    (archive / JOBS_FOLDER / "mine" / JOB_FILE).write_text(text)
    as_neighbor(lambda: (archive / JOBS_FOLDER / "planted" / JOB_FILE).write_text(text))
    assert [job.folder.name for job in read_jobs(Archive(archive))] == ["mine"]


@pytest.mark.parametrize(
    "wrong_members",
    [{"scheduler_id": "--user=root"}, {"scheduler_id": 7}, {"nodes": "1"}, {"arguments": "run"}, {"arguments": [1]}],
    ids=["option", "number", "text", "no-list", "no-texts"],
)
def test_job_file_with_wrong_members_is_skipped(tmp_path: Path, wrong_members: dict[str, object]) -> None:
    members = {"id": "job", "site": "s", "scheduler": "slurm", "arguments": ["run"], "group": "g", "nodes": 1}
    members |= {"time_s": 1.0, "submitted": "2026-01-01T00:00:00+00:00", "scheduler_id": "7"}
    folder = tmp_path / JOBS_FOLDER / "job"
    folder.mkdir(parents=True)
    (folder / JOB_FILE).write_text(json.dumps(members))
    assert len(read_jobs(Archive(tmp_path))) == 1
    (folder / JOB_FILE).write_text(json.dumps(members | wrong_members))
    assert read_jobs(Archive(tmp_path)) == []


def make_shared_archive(tmp_path: Path, mode: int) -> Path:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(mode)
    return root


@needs_two_users
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_job_script_is_not_written_to_an_unsafe_directory(tmp_path: Path, mode: int) -> None:
    """The scheduler runs the script later, with the caller's rights."""
    root = make_shared_archive(tmp_path, mode)
    if mode == 0o1777:  # the archive is sticky, but its folder of jobs belongs to the neighbor
        as_neighbor((root / JOBS_FOLDER).mkdir)
    with pytest.raises(MachineError, match="can exchange entries"):
        write_job_script(create_job(Archive(root), MADE, "quick", 1, 60.0), "true\n")
    assert not list(root.rglob(SCRIPT_FILE))


@needs_two_users
def test_script_in_a_sticky_archive_is_written(tmp_path: Path) -> None:
    root = make_shared_archive(tmp_path, 0o1777)
    before = os.umask(0)
    try:
        write_job_script(create_job(Archive(root), MADE, "quick", 1, 60.0), "true\n")
    finally:
        os.umask(before)
    assert (root / JOBS_FOLDER).stat().st_mode & 0o7777 == 0o1777
    assert [path.read_text() for path in root.rglob(SCRIPT_FILE)] == ["true\n"]


@needs_two_users
def test_sites_file_of_another_user_needs_an_explicit_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sudo that preserves HOME, root would read a user's sites file, which contains shell commands."""
    path = make_shared_archive(tmp_path, 0o777) / "sites.toml"
    as_neighbor(lambda: path.write_text('[evil]\nscheduler = "slurm"\nlauncher = "srun"\n'))
    with pytest.raises(UserError, match="belongs to user"):
        read_sites([path])
    monkeypatch.setenv("SONDE_SITES", str(path))
    assert list(read_sites([path])) == ["evil"]
