# SPDX-License-Identifier: Apache-2.0
"""``sonde jobs``: lists, follows and cancels submitted jobs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from sonde.cli.options import add_existing_archive_option, add_json_option
from sonde.jobs import job_scheduler
from sonde.jobs.job_records import OUTPUT_FILE, SCRIPT_FILE, Job, find_job, read_jobs
from sonde.model.errors import EXIT_FAILED, EXIT_OK, UserError
from sonde.model.units import format_count_with_noun
from sonde.store.archive import Archive
from sonde.store.names import count_runs_by_group
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

_POLL_INTERVAL_S = 2.0


@click.command("jobs")
@click.argument("job", required=False)
@click.option("--cancel", is_flag=True, help="End JOB.")
@click.option("--follow", is_flag=True, help="Wait until JOB has ended, and print its state changes.")
@add_existing_archive_option
@add_json_option
def command(job: str | None, cancel: bool, follow: bool, archive: Archive, as_json: bool) -> int:
    """Print the state of jobs that `sonde submit` handed to a scheduler.

    JOB is the name or number of a job, the beginning or end of a name, or last; without it all jobs are listed. A job
    is "gone" if the scheduler no longer has it and it did not end by itself: killed at its time limit, or with its
    node. Its finished runs are in the archive. With --follow the exit code is 1 if the job failed.

    \b
    Examples:
      sonde jobs
      sonde jobs last --follow
      sonde jobs 4711 --cancel

    More: sonde help tasks/cluster
    """
    if job is None:
        if cancel or follow:
            raise UserError(f"{'--cancel' if cancel else '--follow'} needs a job: sonde jobs JOB.")
        all_jobs = read_jobs(archive)
        _print_jobs(archive, all_jobs, job_scheduler.query_job_states(all_jobs), as_json)
        return EXIT_OK
    selected = find_job(archive, job)
    if cancel:
        job_scheduler.cancel_job(selected)
    state = _wait_until_job_ends(selected) if follow else job_scheduler.query_job_states([selected])[selected.id]
    _print_job(archive, selected, state, as_json)
    return EXIT_FAILED if follow and state != job_scheduler.DONE else EXIT_OK


def _wait_until_job_ends(job: Job) -> str:
    """Polls until the job has ended. Its runs are stored meanwhile, so interrupting the wait loses nothing."""
    last_state = ""
    while True:
        state = job_scheduler.query_job_states([job])[job.id]
        if state != last_state:
            get_messages_console().print(f"{job.scheduler_id}: {state}", highlight=False)
            last_state = state
        if state in job_scheduler.ENDED_STATES:
            return state
        time.sleep(_POLL_INTERVAL_S)


def _convert_job_to_json(job: Job, job_state: str, run_count: int) -> dict[str, Any]:
    members = {name: value for name, value in asdict(job).items() if name != "folder"}
    return {**members, "state": job_state, "exit_code": job.read_exit_code(), "exit_codes": job.read_exit_codes(),
            "folder": str(job.folder), "runs": run_count}  # fmt: skip


def _print_jobs(archive: Archive, jobs: list[Job], states: Any, as_json: bool) -> None:
    sizes = count_runs_by_group(archive.root) if jobs else Counter[str]()
    facts = [_convert_job_to_json(job, states[job.id], sizes[job.group]) for job in jobs]
    if as_json:
        print_json(facts)
        return
    table = make_plain_table()
    for title in ("job", "scheduler id", "site", "state", "runs", "submitted"):
        table.add_column(title, justify="right" if title == "runs" else "left", no_wrap=title in ("job", "state"))
    for entry in facts:
        when = entry["submitted"][:16].replace("T", " ")
        table.add_row(entry["id"], entry["scheduler_id"], entry["site"], entry["state"], str(entry["runs"]), when)
    get_results_console().print(table if facts else "No job was submitted.")


def _print_job(archive: Archive, job: Job, job_state: str, as_json: bool) -> None:
    facts = _convert_job_to_json(job, job_state, count_runs_by_group(archive.root)[job.group])
    if as_json:
        print_json(facts)
        return
    console = get_results_console()
    ended = f", exit code {facts['exit_code']}" if facts["exit_code"] is not None else ""
    console.print(f"{job.id}  {job_state}{ended}", style="bold", soft_wrap=True)
    console.print(f"sonde {' '.join(job.arguments)}", markup=False, highlight=False, soft_wrap=True)
    if job.array:
        console.print(f"{len(facts['exit_codes'])} of {job.array} jobs of its array have ended", soft_wrap=True)
    console.print(
        f"{format_count_with_noun(facts['runs'], 'run')} in the group {job.group}; script {job.folder / SCRIPT_FILE}",
        soft_wrap=True,
    )
    if job_state in (job_scheduler.FAILED, job_scheduler.GONE, job_scheduler.CANCELED):
        text = job.read_output()
        console.print(
            f"Its last output ({job.folder / OUTPUT_FILE}):" if text else "It printed nothing.", soft_wrap=True
        )
        console.print(text, markup=False, highlight=False, soft_wrap=True)
