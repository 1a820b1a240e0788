# SPDX-License-Identifier: Apache-2.0
"""``sonde submit``: runs a plan or an experiment in a batch job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.jobs.batch_script import make_batch_script
from sonde.jobs.job_records import SCRIPT_FILE, Job, create_job, save_job, write_job_script
from sonde.launch.sites import Site, find_site
from sonde.model.confined_files import remove_tree
from sonde.model.errors import UnitError, UserError
from sonde.model.experiment.description import EXPERIMENT_FORMAT as EXPERIMENT
from sonde.model.plan import read_plan_document
from sonde.model.units import parse_duration
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console

_MIN_JOB_TIME_S = 60.0


@click.command("submit", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", metavar="PLAN [OPTION]…", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--site", "site_name", metavar="NAME", help="Site of the sites file; the only one, if there is only one.")
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Nodes of the job (default: as the site says).")
@click.option("--time", "time_limit", metavar="TIME", help='Time limit, like "30 min" (default: as the site says).')
@click.option(
    "--array", type=click.IntRange(2, 1000), metavar="N", help="Submit N such jobs, for work that is too long for one."
)
@click.option("--archive", "folder", metavar="DIR", help="Folder of runs (default: the site's, else as always).")
@click.option("-n", "--dry-run", is_flag=True, help="Print what would be submitted, and submit nothing.")
def command(
    arguments: tuple[str, ...],
    site_name: str | None,
    nodes: int | None,
    time_limit: str | None,
    array: int | None,
    folder: str | None,
    dry_run: bool,
) -> int:
    """Submit `sonde run PLAN [OPTION]…` as a batch job of a site.

    PLAN and all options that are not listed below are those of `sonde run`; launcher and system file come from the site
    unless given. The job writes into the archive, which must be visible on all nodes; this shell may be closed.
    `sonde jobs` prints its state.

    A job begins no run that would exceed its time limit. With --array, for sweeps, repeats and experiments on Slurm, up
    to N jobs follow one another: each runs what is missing, in the same random order, and a job without work ends at
    once. They never run at the same time, because they measure the same storage.

    \b
    Examples:
      sonde submit quick --on /scratch --tasks 64 --site mysite
      sonde submit edison-acceptance --on fs1=/scratch1 --on fs2=/scratch2 --nodes 32 --time 2h
      sonde submit quick --on /scratch --repeat 10 --sweep data.access.transfer=64KiB..16MiB*2 --time 1h --array 8
      sonde submit quick --on /scratch --dry-run

    More: sonde help tasks/cluster
    """
    from sonde.jobs.job_scheduler import make_directives, submit_job

    site = find_site(site_name)
    run_context, document = _parse_run_arguments(arguments)
    experiment = document.get("schema") == EXPERIMENT
    if array:
        _require_divisible_work(site, run_context, experiment)
    archive = Archive.from_option(folder or site.archive or None)
    job = create_job(
        archive, site, run_context.params["plan"], nodes or site.nodes, _parse_job_seconds(time_limit, site), array or 0
    )
    job = _add_run_arguments(job, archive, site, run_context, arguments)
    script = make_batch_script(job, site, Path.cwd())
    if dry_run:
        console = get_results_console()
        for title, text in ((f"What {site.scheduler} gets", make_directives(job, site)), (SCRIPT_FILE, script)):
            console.print(f"--- {title}", style="bold", soft_wrap=True)
            console.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return 0
    write_job_script(job, script)
    try:
        number = submit_job(job, site)
    except UserError:
        remove_tree(job.folder)
        raise
    save_job(job, number)
    get_results_console().print(job.id, soft_wrap=True)
    get_messages_console().print(
        f"Job {number} of {site.name}; `sonde jobs {number}` prints its state.", soft_wrap=True
    )
    return 0


def _parse_run_arguments(run_arguments: tuple[str, ...]) -> tuple[click.Context, Mapping[str, Any]]:
    """Parses the arguments of `sonde run` and reads the plan, so that errors occur now and not on the nodes."""
    from sonde.cli.run import command as run

    run_context = run.make_context("sonde run", list(run_arguments))
    source = resolve_plan_source(run_context.params["plan"])
    if str(source) == "-":
        raise UserError("A job cannot read its plan from standard input; write it into a file.")
    return run_context, read_plan_document(source)


def _require_divisible_work(site: Site, run_context: click.Context, is_experiment: bool) -> None:
    """Raises UserError if the work cannot be divided over several jobs."""
    if site.scheduler != "slurm":
        raise UserError(
            f'--array is an option of Slurm, and the site "{site.name}" has {site.scheduler}; submit the same'
            f" command again with --group NAME: it runs what is missing."
        )
    if not is_experiment and not any(
        run_context.params[name] for name in ("repeat", "sweeps", "warmup", "prepare", "resume")
    ):
        raise UserError("--array is for several runs, and this is one; give --sweep, --repeat or an experiment.")


def _add_run_arguments(
    job: Job, archive: Archive, site: Site, run_context: click.Context, run_arguments: tuple[str, ...]
) -> Job:
    """Returns the job with the arguments of `sonde`: the user's, plus launcher, archive, group and system file unless
    given."""

    def is_given(parameter_name: str) -> bool:
        return run_context.get_parameter_source(parameter_name) not in (None, ParameterSource.DEFAULT)

    group = str(run_context.params.get("group") or job.id)
    added = ["--archive", str(archive.root.resolve()), *([] if is_given("group") else ["--group", group])]
    if not is_given("launcher"):
        added += ["--launcher", site.launcher]
        added += (
            [f"--launcher-args={site.launcher_args}"] if site.launcher_args and not is_given("launcher_args") else []
        )
    if site.system and not is_given("system"):
        added += ["--system", site.system]
    return replace(job, arguments=("run", *run_arguments, *added), group=group)


def _parse_job_seconds(time_limit: str | None, site: Site) -> float:
    try:
        seconds = site.time_s if time_limit is None else parse_duration(time_limit)
    except UnitError as reason:
        raise UserError(f"--time: {reason}") from None
    if seconds < _MIN_JOB_TIME_S:
        raise UserError(f"--time {time_limit} is less than a minute; schedulers count minutes.")
    return seconds
