# SPDX-License-Identifier: Apache-2.0
"""Generates the shell script of a job: modules, environment, one command, and its exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sonde.jobs.job_records import EXIT_CODE_FILE, OUTPUT_FILE, Job
from sonde.launch.sites import Site
from sonde.model.shell import (
    Argument,
    ShellScript,
    concatenate_into_word,
    make_unquoted_user_word,
    make_variable_reference,
)
from sonde.model.units import format_count_with_noun, format_seconds
from sonde.store.archive import JOB_END_VARIABLE, JOB_VARIABLE

# Time before the time limit of a job at which the measurement ends in good order; at most a tenth of the limit.
_STOP_GRACE_S = 60.0


def make_batch_script(job: Job, site: Site, directory: Path) -> str:
    """The text of the script. It ends the measurement in good order before the scheduler would kill it, and stores
    output and exit code in the folder of the job. `directory` is the working directory."""
    grace = min(_STOP_GRACE_S, job.time_s / 10)
    limit_s = f"{job.time_s - grace:.0f}"
    script = ShellScript("/bin/bash")
    script.add_comment(
        f"{format_count_with_noun(job.nodes, 'node')} of {site.name} ({site.scheduler}) for "
        f"{format_seconds(job.time_s)},"
        f" submitted {job.submitted}."
    )
    if job.array:
        script.add_comment(f"The same {job.array} times, one after the other: each resumes what is not finished.")
    script.add_comment(f"Its runs are the group {job.group}: sonde show {job.group}")
    script.assign_variable("output", str(job.folder / OUTPUT_FILE))
    script.assign_variable("exit_file", _make_exit_file_argument(job))
    script.add_literal_lines('exec >>"$output" 2>&1')
    # Not a trap: a trap would report success for a job that was killed.
    script.add_literal_lines('ended() { echo "$1" >"$exit_file"; exit "$1"; }')
    for module in site.modules:
        script.add_command("module", "load", module)
    for name, value in site.environment.items():
        script.export_variable(name, value)
    script.export_variable(JOB_VARIABLE, job.id)
    # The engine begins no cell that would still run at this time, seconds since 1970.
    script.add_literal_lines("now=$(date +%s)")
    script.assign_variable("limit_s", limit_s)
    script.add_literal_lines("end=$((now + limit_s))")
    script.export_variable(JOB_END_VARIABLE, make_variable_reference("end"))
    for line in site.setup:
        script.add_command(make_unquoted_user_word(line))
    script.add_command("cd", str(directory), failure_command="ended 3")
    script.add_comment("Ends in good order before the time limit: finished runs are stored, --resume continues.")
    wrapper = [make_unquoted_user_word(site.wrapper)] if site.wrapper else []
    script.add_command(
        "timeout", "--preserve-status", "--signal=TERM", limit_s, *wrapper, *_make_sonde_command(site), *job.arguments
    )  # fmt: skip
    script.add_literal_lines("ended $?")
    return str(script)


def _make_exit_file_argument(job: Job) -> Argument:
    if not job.array:
        return str(job.folder / EXIT_CODE_FILE)
    return concatenate_into_word(f"{job.folder}/ended-", make_variable_reference("SLURM_ARRAY_TASK_ID"), ".txt")


def _make_sonde_command(site: Site) -> list[Argument]:
    """How `sonde` is called on the nodes: as the sites file states, else like this process."""
    if site.sonde:
        return [make_unquoted_user_word(site.sonde)]
    called = Path(sys.argv[0])
    if called.name == "sonde" and os.access(called, os.X_OK):
        return [str(called.resolve())]
    return [sys.executable, "-P", "-m", "sonde"]
