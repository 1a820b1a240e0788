# SPDX-License-Identifier: Apache-2.0
"""What is known of submitted jobs: a folder each in the archive, so that any shell on any node finds them.

::

    sonde-archive/jobs/20261121T204501Z-quick-ab12cd34/
    ├── job.json     what was asked, of which site, and the scheduler's own number
    ├── job.sh       what runs, to be read by people
    ├── output.txt   what it printed
    └── ended.txt    its exit code, once it has ended by itself; of an array ended-1.txt, ended-2.txt, …
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sonde.launch.sites import Site
from sonde.model.errors import MachineError, UserError
from sonde.store import durable
from sonde.store.archive import Archive, new_id
from sonde.store.shards import JOBS

RECORD, SCRIPT, OUTPUT, ENDED = "job.json", "job.sh", "output.txt", "ended.txt"


@dataclass(frozen=True)
class Job:
    """One submitted job. `words` are what `sonde` is called with; `number` is the scheduler's name for it, empty until
    it has one; `group` is that of its runs in the archive. `array` > 0: so many jobs one after the other, of which each
    takes up what those before it have not finished."""

    id: str
    folder: Path
    site: str
    scheduler: str
    words: tuple[str, ...]
    group: str
    nodes: int
    time_s: float
    submitted: str
    number: str = ""
    array: int = 0

    def exit_code(self) -> int | None:
        """What the command ended with; None while it runs, waits, or when it was killed. An array has done its work
        when one of its jobs found nothing left; else it has ended when the last one has, and as that one did."""
        codes = self.exit_codes()
        if 0 in codes.values():
            return 0
        return codes.get(self.array) if self.array else codes.get(0)

    def exit_codes(self) -> dict[int, int]:
        """Of the jobs of an array by their number, from 1; of a single one under 0."""
        found = {}
        for number in range(1, self.array + 1) if self.array else (0,):
            try:
                found[number] = int((self.folder / ended_file(number)).read_text(encoding="utf-8").strip())
            except (OSError, ValueError):
                continue
        return found

    def output(self, lines: int = 20) -> str:
        """The last lines that it printed."""
        try:
            text = (self.folder / OUTPUT).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def ended_file(number: int) -> str:
    """Where the job `number` of an array writes its exit code; 0 is a single one."""
    return ENDED if number == 0 else f"{Path(ENDED).stem}-{number}.txt"


def new_job(archive: Archive, site: Site, plan: str, nodes: int, time_s: float, array: int = 0) -> Job:
    """A job that is not submitted yet, without words; nothing is written."""
    job_id = new_id(Path(plan).stem)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    folder = (archive.root / JOBS / job_id).resolve()
    return Job(job_id, folder, site.name, site.scheduler, (), job_id, nodes, time_s, now, array=array)


def write_script(job: Job, script: str) -> None:
    """Makes the folder of the job, with what will run. Raises MachineError."""
    try:
        job.folder.mkdir(parents=True)
        (job.folder / SCRIPT).write_text(script, encoding="utf-8")
    except OSError as reason:
        raise MachineError(
            f"The archive {job.folder.parent.parent} cannot be written: {reason.strerror}; name another with --archive"
            " DIR."
        ) from None


def keep(job: Job, number: str) -> Job:
    """Writes down that the scheduler calls the job `number`."""
    kept = replace(job, number=number)
    known = {name: value for name, value in asdict(kept).items() if name != "folder"}
    durable.write_json(job.folder / RECORD, known)
    return kept


def read_jobs(archive: Archive) -> list[Job]:
    """All jobs that were submitted, oldest first; folders that hold none are skipped."""
    found = []
    for path in sorted((archive.root / JOBS).glob(f"*/{RECORD}")):
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            found.append(Job(folder=path.parent.resolve(), **(known | {"words": tuple(known["words"])})))
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return found


def find_job(archive: Archive, name: str) -> Job:
    """The job of that id, of that unique beginning or end, of the scheduler's number, or the last one."""
    jobs = read_jobs(archive)
    if not jobs:
        raise UserError(f"No job was submitted from the archive {archive.root}; `sonde submit` does.")
    if name == "last":
        return jobs[-1]
    fitting = [one for one in jobs if name in (one.id, one.number)] or [
        one for one in jobs if one.id.startswith(name) or one.id.endswith(name)
    ]
    if len(fitting) != 1:
        several = f"{len(fitting)} jobs" if fitting else "no job"
        raise UserError(f'"{name}" is {several}; `sonde jobs` lists them.')
    return fitting[0]
