# SPDX-License-Identifier: Apache-2.0
"""Hostile text in a sites file and in the arguments of a job: it is refused with a sentence, or the batch script runs
nothing of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sonde.jobs import job_scheduler
from sonde.jobs.batch_script import make_batch_script
from sonde.jobs.job_records import Job, create_job
from sonde.launch.sites import MEMBERS, Site, read_sites
from sonde.model.errors import UserError
from sonde.store.archive import Archive

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


def read_site(folder: Path, name: str, member: str, text: str) -> Site:
    """The site with one member hostile, from a file as a user writes it."""
    kind = MEMBERS[member][0]
    quoted = json.dumps(text)
    value = {"list": f"[{quoted}]", "table": f"{{ {quoted} = {quoted}, A = {quoted} }}"}.get(kind, quoted)
    members = {"scheduler": '"slurm"', "launcher": '"srun"', "sonde": '"true"'} | {member: value}
    path = folder / "sites.toml"
    lines = [f"[{json.dumps(name)}]", *(f"{key} = {entry}" for key, entry in members.items())]
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_sites([path])[name]


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


def directive_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("HOME", str(tmp_path))
    created = create_job(Archive(tmp_path / "archive"), MADE, "quick", 2, 600, 3)
    created.folder.mkdir(parents=True)
    return created


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
@pytest.mark.parametrize("member", [name for name in MEMBERS if name not in SHELL_MEMBERS])
def test_hostile_site_member_is_refused_or_harmless(member: str, text: str, job: Job, tmp_path: Path) -> None:
    try:
        site = read_site(tmp_path, "made", member, text)
    except UserError as error:
        sentence = str(error)
        assert f"{tmp_path / 'sites.toml'}: made.{member}" in sentence
        return
    script, directives = make_batch_script(job, site, tmp_path), job_scheduler.make_directives(job, site)
    assert len(directive_lines(directives)) == len(directive_lines(job_scheduler.make_directives(job, MADE)))
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
