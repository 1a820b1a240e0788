# SPDX-License-Identifier: Apache-2.0
"""``sonde simulate``: a plan or an experiment on a described machine, in virtual time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from sonde.cli.asking import How, Wanted
from sonde.cli.experimenting import run_experiment
from sonde.cli.options import archive_option, json_option, load_plan
from sonde.cli.run import show_run
from sonde.conduct.run import Observer, Setup, failure
from sonde.experiments.executor import Attempt
from sonde.experiments.ready import plan_source
from sonde.experiments.simulated import Simulated, simulate
from sonde.experiments.where import Where
from sonde.launch.engine import find_engine
from sonde.launch.simulator import SimulatedLauncher, faults_known, find_simulator
from sonde.model.errors import DONE, UserError
from sonde.model.experiment.description import SCHEMA as EXPERIMENT
from sonde.model.plan import read_document
from sonde.model.shipped import system_source
from sonde.model.system import System, read_system
from sonde.store.archive import Archive
from sonde.store.tags import change_tags, check_tag
from sonde.terminal.live import make_display
from sonde.terminal.screen import messages


def _list_faults(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(faults_known(find_simulator()), nl=False)
        ctx.exit(DONE)


@click.command("simulate")
@click.argument("plan")
@click.option("--system", metavar="FILE", required=True, help="Described machine: a system file, or the name of one.")
@click.option("--mount", metavar="ID", default="", help="Mount, file system or pool; default: the first with storage.")
@click.option(
    "--fault",
    "faults",
    metavar="FAULT",
    multiple=True,
    help="What is wrong with it, as 'slow-target 3 10x' or 'raid-rebuild ost017 at 30s'; may be given several times.",
)
@click.option(
    "--list-faults",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_faults,
    help="Say what may be wrong.",
)
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, help="Of all that is left to chance.")
@click.option("--nodes", type=click.IntRange(1, 10_000_000), help="Nodes to use; default: one core for each task.")
@click.option("--tasks", type=click.IntRange(1, 10_000_000), help="Processes, instead of those of the plan.")
@click.option("--traces", is_flag=True, help="Keep counters and messages of the servers beside the record.")
@click.option(
    "--set",
    "settings",
    metavar="PATH=VALUE",
    multiple=True,
    help="Change one member, like data.access.transfer=4KiB; may be given several times.",
)
@click.option("--profile", metavar="NAME", default="", help="Scale of an experiment: ci, laptop, published.")
@click.option("--repeat", type=click.IntRange(1, 100_000), metavar="N", help="Run every cell so many times.")
@click.option("--group", metavar="NAME", default="", help="Name of the group that the runs belong to.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Word to find the runs by later.")
@archive_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no tables: the run's name, and errors.")
@json_option
def command(
    plan: str,
    system: str,
    mount: str,
    faults: tuple[str, ...],
    seed: int,
    nodes: int | None,
    tasks: int | None,
    traces: bool,
    settings: tuple[str, ...],
    profile: str,
    repeat: int | None,
    group: str,
    tags: tuple[str, ...],
    archive: Archive,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a plan or an experiment on a model of a described machine.

    Nothing is measured and no byte is moved: a model of the machine says when each operation would have ended. The
    record has the form of any other, says that it is simulated, and is never compared with measured ones.

    \b
    Examples:
      sonde simulate quick --system edison --tasks 96
      sonde simulate quick --system edison --mount fs1 --fault "slow-target 3 10x"
      sonde simulate hpcs-07 --profile ci --system hpcs-demo
    """
    machine = read_system(system_source(system))
    source = plan_source(plan)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-system-")))
        resolved = folder / "system.json"
        resolved.write_text(machine.to_json(), encoding="utf-8")
        launcher = SimulatedLauncher(
            simulator=find_simulator(),
            system=resolved,
            mount=mount,
            faults=faults,
            seed=seed,
            nodes=nodes,
            processes=tasks,
        )
        if read_document(source).get("schema") == EXPERIMENT:
            if tasks or nodes:
                raise UserError("--tasks and --nodes belong to a plan; of an experiment say --set clients.nodes=4.")
            storage = folder / "storage"  # every cell is on a part of the machine; nothing is ever written here
            storage.mkdir()
            wanted = Wanted(profile, settings, Where(str(storage), system=system), repeat, group=group, tags=tags)

            def make(setup: Setup, line: Observer, begin: Callable[[Attempt], None]) -> Simulated:
                return Simulated(setup, line, launcher, machine, begin)

            return run_experiment(source, wanted, How(archive, None, quiet, as_json, make=make))
        if profile or repeat:
            raise UserError(f"{'--profile' if profile else '--repeat'} belongs to an experiment, and this is a plan.")
        return _plan(plan, settings, launcher, machine, archive, group, tags, traces, quiet, as_json)


def _plan(
    plan: str,
    settings: tuple[str, ...],
    launcher: SimulatedLauncher,
    machine: System,
    archive: Archive,
    group: str,
    tags: tuple[str, ...],
    traces: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    for tag in tags:
        check_tag(tag)
    document = read_document(plan_source(plan))
    place = document.setdefault("target", {})
    if isinstance(place, dict):
        place.setdefault("path", _path_of(machine, launcher.mount))
    checked = load_plan(plan, settings, None, document)
    display = make_display(messages(), quiet)
    setup = Setup(find_engine(), archive, stopping=display.stopping, described=machine)
    display.begin(checked.title, 1, 1, checked)
    kept = Path(tempfile.mkdtemp(prefix="sonde-traces-")) if traces else None
    try:
        result = simulate(checked, setup, display.line, replace(launcher, traces=kept), facts={"group": group or None})
    finally:
        display.close()
    if kept is not None:
        kept.rename(result.folder / "traces")
    if tags:
        change_tags(result.folder, add=tags)
    show_run(result, None, as_json, quiet)
    if result.exit_code != DONE:
        raise failure(result.exit_code, result.text)
    return DONE


def _path_of(machine: System, mount: str) -> str:
    """Where the nodes of the machine see the mount: the directory that plans without one of their own are for."""
    for item in machine.items("mounts"):
        table = item.table
        if not mount or mount in (item.id, getattr(table, "file_system", "")):
            return str(getattr(table, "path", "") or "/")
    return "/"
