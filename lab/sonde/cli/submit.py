# SPDX-License-Identifier: Apache-2.0
"""``sonde submit``: a plan or an experiment, measured later, by a batch job."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sonde.experiments.ready import plan_source
from sonde.jobs.book import SCRIPT, Job, keep, new_job, write_script
from sonde.jobs.script import script_of
from sonde.launch.sites import Site, site_of
from sonde.model.errors import UnitError, UserError
from sonde.model.experiment.description import SCHEMA as EXPERIMENT
from sonde.model.plan import read_document
from sonde.model.units import parse_duration
from sonde.store.archive import Archive
from sonde.terminal.screen import messages, results

_SHORTEST_S = 60.0


@click.command("submit", context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="PLAN [OPTION]…", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--site", "site_name", metavar="NAME", help="Site of the sites file; the only one, if there is only one.")
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Nodes of the job (default: as the site says).")
@click.option("--time", "limit", metavar="TIME", help='Time limit, like "30 min" (default: as the site says).')
@click.option(
    "--array", type=click.IntRange(2, 1000), metavar="N", help="Hand over N such jobs, for what is too long for one."
)
@click.option("--archive", "folder", metavar="DIR", help="Folder of runs (default: the site's, else as always).")
@click.option("-n", "--dry-run", is_flag=True, help="Print what would be submitted, and submit nothing.")
def command(
    words: tuple[str, ...],
    site_name: str | None,
    nodes: int | None,
    limit: str | None,
    array: int | None,
    folder: str | None,
    dry_run: bool,
) -> int:
    """Submit `sonde run PLAN [OPTION]…` as a batch job of a site.

    PLAN and everything that is not listed below is what `sonde run` takes; launcher and system file come from the site
    unless they are given. The job writes into the archive, which must lie where all nodes see it; this shell may be
    closed. `sonde jobs` says how it stands.

    A job begins no run that it would not end in its time. With --array, for sweeps, repeats and experiments on Slurm,
    up to N jobs follow one another: each takes up what is missing, in the same drawn order, and one that finds nothing
    to do ends at once. They never run side by side, because they measure the same storage.

    \b
    Examples:
      sonde submit quick --on /scratch --tasks 64 --site mysite
      sonde submit edison-acceptance --on fs1=/scratch1 --on fs2=/scratch2 --nodes 32 --time 2h
      sonde submit quick --on /scratch --repeat 10 --sweep data.access.transfer=64KiB..16MiB*2 --time 1h --array 8
      sonde submit quick --on /scratch --dry-run
    """
    from sonde.jobs.batch import directives, submit

    site = site_of(site_name)
    asked, document = _checked(words)
    experiment = document.get("schema") == EXPERIMENT
    if array:
        _check_array(site, asked, experiment)
    archive = Archive.at(folder or site.archive or None)
    job = new_job(archive, site, asked.params["plan"], nodes or site.nodes, _seconds(limit, site), array or 0)
    job = _with_words(job, archive, site, asked, words)
    script = script_of(job, site, Path.cwd())
    if dry_run:
        console = results()
        for title, text in ((f"What {site.scheduler} gets", directives(job, site)), (SCRIPT, script)):
            console.print(f"--- {title}", style="bold", soft_wrap=True)
            console.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return 0
    write_script(job, script)
    try:
        number = submit(job, site)
    except UserError:
        shutil.rmtree(job.folder)
        raise
    keep(job, number)
    results().print(job.id, soft_wrap=True)
    messages().print(f"Job {number} of {site.name}; `sonde jobs {number}` says how it stands.", soft_wrap=True)
    return 0


def _checked(words: tuple[str, ...]) -> tuple[click.Context, Mapping[str, Any]]:
    """What `sonde run` understands of its words, and what the plan says.

    What it would refuse is refused now, not on the nodes.
    """
    from sonde.cli.run import command as run

    asked = run.make_context("sonde run", list(words))
    source = plan_source(asked.params["plan"])
    if str(source) == "-":
        raise UserError("A job cannot read its plan from standard input; write it into a file.")
    return asked, read_document(source)


def _check_array(site: Site, asked: click.Context, experiment: bool) -> None:
    """Raises UserError where several jobs cannot share the work."""
    if site.scheduler != "slurm":
        raise UserError(
            f'--array is a word of Slurm, and the site "{site.name}" has {site.scheduler}; submit the same command'
            " again with --group NAME: it takes up what is missing."
        )
    if not experiment and not any(asked.params[name] for name in ("repeat", "sweeps", "warmup", "prepare", "resume")):
        raise UserError("--array is for several runs, and this is one; give --sweep, --repeat or an experiment.")


def _with_words(job: Job, archive: Archive, site: Site, asked: click.Context, words: tuple[str, ...]) -> Job:
    """The job with what `sonde` is called with: launcher, archive, group and system file are added where they were not
    given."""

    def given(name: str) -> bool:
        return asked.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)

    group = str(asked.params.get("group") or job.id)
    added = ["--archive", str(archive.root.resolve()), *([] if given("group") else ["--group", group])]
    if not given("launcher"):
        added += ["--launcher", site.launcher]
        added += [f"--launcher-args={site.launcher_args}"] if site.launcher_args and not given("launcher_args") else []
    if site.system and not given("system"):
        added += ["--system", site.system]
    return replace(job, words=("run", *words, *added), group=group)


def _seconds(limit: str | None, site: Site) -> float:
    try:
        seconds = site.time_s if limit is None else parse_duration(limit)
    except UnitError as reason:
        raise UserError(f"--time: {reason}") from None
    if seconds < _SHORTEST_S:
        raise UserError(f"--time {limit} is less than a minute; schedulers count minutes.")
    return seconds
