# SPDX-License-Identifier: Apache-2.0
"""The shell script that a job runs: modules, environment, one command, and what came of it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from sonde.jobs.book import ENDED, OUTPUT, Job
from sonde.launch.sites import Site
from sonde.model.units import counted, format_seconds
from sonde.store.archive import JOB, JOB_END

# Of the time limit of a job: what is left to end in good order, seconds. At most a tenth of it.
_GRACE_S = 60.0


def script_of(job: Job, site: Site, directory: Path) -> str:
    """The script. It ends the measurement in good order before the scheduler would kill it, keeps what it printed, and
    writes down its exit code."""
    grace = min(_GRACE_S, job.time_s / 10)
    ended = "ended-$SLURM_ARRAY_TASK_ID.txt" if job.array else ENDED
    lines = [
        "#!/bin/bash",
        f"# {counted(job.nodes, 'node')} of {site.name} ({site.scheduler}) for {format_seconds(job.time_s)},"
        f" submitted {job.submitted}.",
        *(
            [f"# The same {job.array} times, one after the other: each takes up what is not finished."]
            if job.array
            else []
        ),
        f"# Its runs are the group {job.group}: sonde show {job.group}",
        f"folder={shlex.quote(str(job.folder))}",
        f'exec >>"$folder/{OUTPUT}" 2>&1',
        # Not a trap: that would call a job that was killed a good one.
        f'ended() {{ echo "$1" >"$folder/{ended}"; exit "$1"; }}',
        *(f"module load {shlex.quote(one)}" for one in site.modules),
        *(f"export {name}={shlex.quote(value)}" for name, value in site.environment.items()),
        f"export {JOB}={shlex.quote(job.id)}",
        # No cell is begun that would not be over by then.
        f"export {JOB_END}=$(($(date +%s) + {job.time_s - grace:.0f}))",
        *site.setup,
        f"cd {shlex.quote(str(directory))} || ended 3",
        "# Ended in good order before the time limit: what was measured is kept, --resume goes on.",
        f"timeout --preserve-status --signal=TERM {job.time_s - grace:.0f} \\",
        f"    {' '.join(filter(None, [site.wrapper, _command(site), *map(shlex.quote, job.words)]))}",
        "ended $?",
    ]
    return "\n".join(lines) + "\n"


def _command(site: Site) -> str:
    """How `sonde` is called on the nodes: in the site's words of shell, else as it was called here."""
    if site.sonde:
        return site.sonde
    called = Path(sys.argv[0])
    if called.name == "sonde" and os.access(called, os.X_OK):
        return shlex.quote(str(called.resolve()))
    return f"{shlex.quote(sys.executable)} -m sonde"
