# SPDX-License-Identifier: Apache-2.0
"""``sonde run``: one plan once, a plan several times, or an experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sonde.cli.asking import How, Wanted
from sonde.cli.options import (
    archive_option,
    json_option,
    load_plan,
    mpi_module_option,
    report_option,
    spread,
    task_options,
    where,
)
from sonde.cli.present import make_report
from sonde.conduct.run import Result, Setup, conduct, failure
from sonde.experiments.ready import plan_source
from sonde.experiments.where import Where
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.model.errors import DONE, UnitError, UserError
from sonde.model.experiment.description import SCHEMA as EXPERIMENT
from sonde.model.plan import read_document
from sonde.model.plan_remarks import remarks_on
from sonde.model.shipped import system_source
from sonde.model.system import read_system
from sonde.model.units import parse_rate
from sonde.store.archive import Archive
from sonde.store.durable import read_json
from sonde.store.groups import check_group
from sonde.store.summary import NAME as SUMMARY
from sonde.store.tags import change_tags, check_tag
from sonde.terminal.live import make_display
from sonde.terminal.run_tables import print_run
from sonde.terminal.screen import messages, print_json, results


@click.command("run")
@click.argument("plan")
@click.option(
    "--set",
    "settings",
    metavar="PATH=VALUE",
    multiple=True,
    help="Change one member, like data.access.transfer=4KiB, phases.read.stop.time=10s or repeat.max=20. May be given"
    " several times; null removes a member.",
)
@click.option(
    "--on",
    metavar="[NAME=]DIR",
    multiple=True,
    help="Directory on the storage to measure; of an experiment also for each file system or mount that it names.",
)
@click.option(
    "--pool",
    "pools",
    metavar="NAME=DIR[,DIR]…",
    multiple=True,
    help="Directory of a pool that an experiment names; of several, each is one target of the pool.",
)
@click.option(
    "--system",
    metavar="FILE",
    help="System file of this machine: pools, units and mounts are taken from it, and of a plan which server and unit"
    " serves which target.",
)
@click.option("--profile", metavar="NAME", default="", help="Scale of an experiment: ci, laptop, published.")
@click.option("--repeat", type=click.IntRange(1, 100_000), metavar="N", help="Run every cell so many times.")
@click.option(
    "--warmup", type=click.IntRange(0, 1000), metavar="N", help="Runs of each cell before that count nothing."
)
@click.option("--prepare", metavar="CMD", help="Command to execute before each run, not timed.")
@click.option(
    "--sweep",
    "sweeps",
    metavar="PATH=VALUES",
    multiple=True,
    help="Run once for each value: data.access.transfer=4KiB,64KiB,1MiB or tasks.threads=1..32*2. Several make a grid.",
)
@click.option("--resume", is_flag=True, help="Take up an experiment that was broken off; finished runs stay.")
@click.option("--group", metavar="NAME", default="", help="Name of the group that the runs belong to.")
@click.option(
    "--tag", "tags", metavar="TAG", multiple=True, help="Word to find the runs by later; several are possible."
)
@click.option("--note", metavar="TEXT", default="", help="Remark to keep with the runs.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what every cell would take, and which cannot be run.")
@click.option("--rate", metavar="RATE", help="With --dry-run: rate to reckon times with, like 2GB/s.")
@task_options
@mpi_module_option
@archive_option
@report_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no tables: the run's name, and errors.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    plan: str,
    settings: tuple[str, ...],
    on: tuple[str, ...],
    pools: tuple[str, ...],
    system: str | None,
    profile: str,
    repeat: int | None,
    warmup: int | None,
    prepare: str | None,
    sweeps: tuple[str, ...],
    resume: bool,
    group: str,
    tags: tuple[str, ...],
    note: str,
    dry_run: bool,
    rate: str | None,
    tasks: int | None,
    processes: int | None,
    launcher: str,
    launcher_args: str,
    mpi_module: Path | None,
    archive: Archive,
    report: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a plan or an experiment and keep what it gave.

    PLAN is a TOML or JSON file, the name of a ready-made experiment (quick, shared-file, small-files, metadata,
    sustained, known-answer), or - for standard input. Progress goes to standard error, results to standard output.

    \b
    Examples:
      sonde run quick --on /scratch
      sonde run quick --on /scratch --tasks 8 --set data.access.volume=4GiB
      sonde run quick --on /scratch --repeat 10 --warmup 1 --sweep data.access.transfer=64KiB,1MiB
      sonde run hpcs-07 --profile ci --on /scratch --dry-run
      sonde run hpcs-07 --profile ci --on /scratch
      sonde run hpcs-07 --profile ci --on /scratch --resume
      sonde run shared-file --on /scratch --launcher mpiexec --tasks 64 --launcher-args "-hosts n1,n2"

    Ctrl-C ends the run in good order: finished phases are kept, the files are removed. A second Ctrl-C kills it after
    five seconds.
    """
    for tag in tags:
        check_tag(tag)
    if group:
        check_group(group)
    said = ctx.get_parameter_source("launcher") is not ParameterSource.DEFAULT
    places = where(on, pools, system, launcher if said else "", launcher_args)
    source = plan_source(plan)
    written = read_document(source)
    wanted = Wanted(profile, settings, places, repeat, warmup, prepare, sweeps, group, tags, note, resume)
    how = How(archive, mpi_module, quiet, as_json, report, dry_run, _rate(rate))
    if written.get("schema") == EXPERIMENT:
        from sonde.cli.experimenting import run_experiment

        if tasks or processes:
            raise UserError("--tasks and --processes belong to a plan; of an experiment say --set clients.nodes=4.")
        return run_experiment(source, wanted, how)
    _only_for_experiments(profile, pools, places)
    checked = load_plan(plan, settings, places.default or None, written)
    if wanted.more_than_once or dry_run:
        from sonde.cli.experimenting import run_plan

        checked, _ = spread(checked, LOCAL, tasks, processes or (tasks if launcher != LOCAL else None))
        return run_plan(checked, wanted, how)
    checked, ranks = spread(checked, launcher, tasks, processes)
    for remark in remarks_on(checked) if not quiet else ():
        messages().print(f"sonde: {remark}", soft_wrap=True)
    display = make_display(messages(), quiet)
    described = read_system(system_source(system)) if system else None
    setup = Setup(
        find_engine(),
        archive,
        make_launcher(launcher, ranks, launcher_args),
        mpi_module,
        display.stopping,
        described=described,
    )
    archive.recover()
    display.begin(checked.title, 1, 1, checked)
    facts = {"group": group or None, **({"note": note} if note else {})}
    try:
        result = conduct(checked, setup, display.line, facts=facts)
    finally:
        display.close()
    if tags:
        change_tags(result.folder, add=tags)
    page = make_report([result.folder], result.folder / "report.html", None, quiet) if report else None
    show_run(result, page, as_json, quiet)
    if result.exit_code != DONE:
        raise failure(result.exit_code, result.text)
    return DONE


def _only_for_experiments(profile: str, pools: tuple[str, ...], places: Where) -> None:
    """Raises UserError for what a plan has no use for."""
    option = "--profile" if profile else "--pool" if pools else ""
    if option:
        raise UserError(f"{option} belongs to an experiment, and this is a plan; leave it out.")
    if places.named:
        name = next(iter(places.named))
        raise UserError(f"--on {name}=… names a file system of an experiment, and this is a plan; write --on DIR.")


def _rate(text: str | None) -> float | None:
    try:
        return None if text is None else parse_rate(text)
    except UnitError as reason:
        raise UserError(f"--rate: {reason}") from None


def show_run(result: Result, page: Path | None, as_json: bool, quiet: bool) -> None:
    """What came of one run: as JSON, its name, or tables."""
    if as_json:
        found: dict[str, Any] = json.loads((result.folder / SUMMARY).read_text(encoding="utf-8"))
        found |= {"folder": str(result.folder), "report": str(page) if page else None}
        print_json(found)
    elif quiet:
        results().print(result.folder.name, soft_wrap=True)
    else:
        console = results()
        console.print()
        print_run(console, result.folder, result.record, read_json(result.folder / SUMMARY))
        if page is not None:
            console.print(f"Report  {page}", soft_wrap=True)
