# SPDX-License-Identifier: Apache-2.0
"""Stores submitted jobs in the archive, one folder per job, so that any shell on any node finds them.

::

    sonde-archive/jobs/20261121T204501Z-quick-ab12cd34/
    ├── job.json     the request, the site, and the id that the scheduler gave
    ├── job.sh       the batch script
    ├── output.txt   what the script printed
    └── ended.txt    its exit code, once it has ended by itself; for an array ended-1.txt, ended-2.txt, …
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.launch.sites import Site
from sonde.model.confined_files import ConfinedDirectory, open_file
from sonde.model.errors import MachineError, UserError
from sonde.store.archive import Archive, make_run_id
from sonde.store.shards import JOBS_FOLDER

JOB_FILE, SCRIPT_FILE, OUTPUT_FILE, EXIT_CODE_FILE = "job.json", "job.sh", "output.txt", "ended.txt"
_MAX_OUTPUT_BYTES = 1 << 20  # of the end of the output, which is shown


@dataclass(frozen=True)
class Job:
    """One submitted job. `arguments` are those of `sonde`; `scheduler_id` is empty until the job was submitted; `group`
    is the group of its runs in the archive. `array` > 0: the number of jobs that follow one another, each of which
    resumes what the earlier ones have not finished."""

    id: str
    folder: Path
    site: str
    scheduler: str
    arguments: tuple[str, ...]
    group: str
    nodes: int
    time_s: float
    submitted: str
    scheduler_id: str = ""
    array: int = 0

    def read_exit_code(self) -> int | None:
        """The exit code of the command; None while it runs or waits, or when it was killed. An array has succeeded if
        one of its jobs finds no remaining work; otherwise its exit code is that of its last job."""
        codes = self.read_exit_codes()
        if 0 in codes.values():
            return 0
        return codes.get(self.array) if self.array else codes.get(0)

    def read_exit_codes(self) -> dict[int, int]:
        """Exit code by number of the array's job, from 1; a single job has number 0."""
        codes = {}
        for number in range(1, self.array + 1) if self.array else (0,):
            try:
                with open_file(self.folder / make_exit_code_file_name(number)) as file:
                    codes[number] = int(file.read(16))
            except (OSError, ValueError):
                continue
        return codes

    def read_output(self, line_count: int = 20) -> str:
        """The last lines that the job printed."""
        try:
            with open_file(self.folder / OUTPUT_FILE) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _MAX_OUTPUT_BYTES))
                text = file.read(_MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-line_count:])


def make_exit_code_file_name(array_number: int) -> str:
    """The file to which job `array_number` of an array writes its exit code; 0 is a single job."""
    return EXIT_CODE_FILE if array_number == 0 else f"{Path(EXIT_CODE_FILE).stem}-{array_number}.txt"


def create_job(
    archive: Archive, site: Site, plan_name: str, node_count: int, time_s: float, array_size: int = 0
) -> Job:
    """A job that is not submitted yet, without arguments. Writes nothing."""
    job_id = make_run_id(Path(plan_name).stem)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    folder = (archive.root / JOBS_FOLDER / job_id).resolve()
    return Job(job_id, folder, site.name, site.scheduler, (), job_id, node_count, time_s, now, array=array_size)


def write_job_script(job: Job, script_text: str) -> None:
    """Creates the folder of the job with its script. Raises MachineError, also where another user could exchange the
    script before it runs."""
    try:
        with (
            ConfinedDirectory.open(job.folder.parents[1], create_if_absent=True) as archive,
            archive.open_subdirectory(job.folder.parent.name, create_if_absent=True) as jobs,
        ):
            jobs.set_sticky_bit()
            owners = {os.geteuid(), 0, archive.stat_directory().st_uid}
            for directory in (archive, jobs):
                if directory.can_others_rename_entries() or directory.stat_directory().st_uid not in owners:
                    raise MachineError(
                        f"Other users can exchange entries of {directory.path}, and the job would run their script; use"
                        " an archive of your own (--archive DIR), or let the owner of this one make its directories"
                        " sticky: chmod +t."
                    )
            with jobs.create_directory(job.folder.name) as folder:
                folder.write_text(SCRIPT_FILE, script_text)
    except OSError as reason:
        raise MachineError(
            f"The archive {job.folder.parent.parent} cannot be written: {reason.strerror}; name another with --archive"
            " DIR."
        ) from None


def save_job(job: Job, scheduler_id: str) -> Job:
    """Stores the job under the id that the scheduler gave it."""
    submitted = replace(job, scheduler_id=scheduler_id)
    members = {name: value for name, value in asdict(submitted).items() if name != "folder"}
    with ConfinedDirectory.open_beneath(job.folder.parents[1], job.folder) as folder:
        folder.write_json_file(JOB_FILE, members)
    return submitted


def read_jobs(archive: Archive) -> list[Job]:
    """All jobs that the caller or root submitted, oldest first. Skips folders without a valid job file, and job files
    of other users: their scheduler and its id become arguments of commands."""
    jobs = []
    for path in sorted((archive.root / JOBS_FOLDER).glob(f"*/{JOB_FILE}")):
        try:
            with ConfinedDirectory.open_beneath(archive.root, path.parent) as folder:
                members = folder.read_json_file(path.name, trusted_only=True)
            if members is not None:
                jobs.append(_build_job(path.parent.resolve(), members))
        except (OSError, ValueError, TypeError):
            continue
    return jobs


def _build_job(job_folder: Path, json_members: Mapping[str, Any]) -> Job:
    """Raises ValueError or TypeError when the members are not those of a job."""
    arguments = json_members.get("arguments")
    if not isinstance(arguments, list):
        raise ValueError("the arguments are no list")
    job = Job(folder=job_folder, **{**json_members, "arguments": tuple(arguments)})
    texts = (job.id, job.site, job.scheduler, job.group, job.submitted, job.scheduler_id, *job.arguments)
    if not all(isinstance(text, str) for text in texts) or job.scheduler_id.startswith("-"):
        raise ValueError("a member that should be text is none")
    if not all(isinstance(number, int | float) for number in (job.nodes, job.time_s, job.array)):
        raise ValueError("a member that should be a number is none")
    return job


def find_job(archive: Archive, job_reference: str) -> Job:
    """The job whose id or scheduler id is `job_reference`, whose id begins or ends with it, or the last one for "last".
    Raises UserError when there is none or several."""
    jobs = read_jobs(archive)
    if not jobs:
        raise UserError(f"No job was submitted from the archive {archive.root}; `sonde submit` does.")
    if job_reference == "last":
        return jobs[-1]
    matches = [job for job in jobs if job_reference in (job.id, job.scheduler_id)] or [
        job for job in jobs if job.id.startswith(job_reference) or job.id.endswith(job_reference)
    ]
    if len(matches) != 1:
        several = f"{len(matches)} jobs" if matches else "no job"
        raise UserError(f'"{job_reference}" is {several}; `sonde jobs` lists them.')
    return matches[0]
