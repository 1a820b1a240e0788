# SPDX-License-Identifier: Apache-2.0
"""``sonde jobs``: how submitted jobs stand, and what came of them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from sonde.cli.options import json_option, kept_archive_option
from sonde.jobs import batch
from sonde.jobs.book import OUTPUT, SCRIPT, Job, find_job, read_jobs
from sonde.model.errors import DONE, FAILED, UserError
from sonde.model.units import counted
from sonde.store.archive import Archive
from sonde.store.names import sizes_of_groups
from sonde.terminal.screen import messages, plain_table, print_json, results

_PACE_S = 2.0


@click.command("jobs")
@click.argument("job", required=False)
@click.option("--cancel", is_flag=True, help="End JOB.")
@click.option("--follow", is_flag=True, help="Wait until JOB has ended, and say when its state changes.")
@kept_archive_option
@json_option
def command(job: str | None, cancel: bool, follow: bool, archive: Archive, as_json: bool) -> int:
    """Say how jobs stand that `sonde submit` has handed to a scheduler.

    JOB is the name or number of one, the beginning or end of a name, or last; without it all are listed. A job that the
    scheduler does not know any more and that did not end by itself is "gone": killed at its time limit, or with its
    node. Its finished runs are in the archive. With --follow the exit code is 1 when it did not end well.

    \b
    Examples:
      sonde jobs
      sonde jobs last --follow
      sonde jobs 4711 --cancel
    """
    if job is None:
        if cancel or follow:
            raise UserError(f"{'--cancel' if cancel else '--follow'} needs a job: sonde jobs JOB.")
        known = read_jobs(archive)
        _list(archive, known, batch.states(known), as_json)
        return DONE
    one = find_job(archive, job)
    if cancel:
        batch.cancel(one)
    state = _followed(one) if follow else batch.states([one])[one.id]
    _show(archive, one, state, as_json)
    return FAILED if follow and state != batch.DONE else DONE


def _followed(job: Job) -> str:
    """Asks until it has ended. What is measured comes into the archive at once: who stops waiting loses nothing."""
    said = ""
    while True:
        state = batch.states([job])[job.id]
        if state != said:
            messages().print(f"{job.number}: {state}", highlight=False)
            said = state
        if state in batch.ENDED:
            return state
        time.sleep(_PACE_S)


def _facts(job: Job, state: str, runs: int) -> dict[str, Any]:
    known = {name: value for name, value in asdict(job).items() if name != "folder"}
    return {**known, "state": state, "exit_code": job.exit_code(), "exit_codes": job.exit_codes(),
            "folder": str(job.folder), "runs": runs}  # fmt: skip


def _list(archive: Archive, jobs: list[Job], states: Any, as_json: bool) -> None:
    sizes = sizes_of_groups(archive.root) if jobs else Counter[str]()
    facts = [_facts(job, states[job.id], sizes[job.group]) for job in jobs]
    if as_json:
        print_json(facts)
        return
    table = plain_table()
    for title in ("job", "number", "site", "state", "runs", "submitted"):
        table.add_column(title, justify="right" if title == "runs" else "left", no_wrap=title in ("job", "state"))
    for one in facts:
        when = one["submitted"][:16].replace("T", " ")
        table.add_row(one["id"], one["number"], one["site"], one["state"], str(one["runs"]), when)
    results().print(table if facts else "No job was submitted.")


def _show(archive: Archive, job: Job, state: str, as_json: bool) -> None:
    facts = _facts(job, state, sizes_of_groups(archive.root)[job.group])
    if as_json:
        print_json(facts)
        return
    console = results()
    ended = f", exit code {facts['exit_code']}" if facts["exit_code"] is not None else ""
    console.print(f"{job.id}  {state}{ended}", style="bold", soft_wrap=True)
    console.print(f"sonde {' '.join(job.words)}", markup=False, highlight=False, soft_wrap=True)
    if job.array:
        console.print(f"{len(facts['exit_codes'])} of {job.array} jobs of its array have ended", soft_wrap=True)
    console.print(
        f"{counted(facts['runs'], 'run')} in the group {job.group}; script {job.folder / SCRIPT}", soft_wrap=True
    )
    if state in (batch.FAILED, batch.GONE, batch.CANCELLED):
        text = job.output()
        console.print(
            f"The last it printed ({job.folder / OUTPUT}):" if text else "It printed nothing.", soft_wrap=True
        )
        console.print(text, markup=False, highlight=False, soft_wrap=True)
