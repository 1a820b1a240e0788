# SPDX-License-Identifier: Apache-2.0
"""``sonde simulate``: runs a plan or an experiment on a simulated machine, in virtual time."""

from __future__ import annotations

from collections.abc import Callable

import click

from sonde.cli.experiment_runs import run_experiment_file, run_plan
from sonde.cli.options import add_archive_option, add_json_option
from sonde.cli.run import print_run_result
from sonde.cli.run_options import OutputOptions, RunRequest
from sonde.conduct.run import RunSetup, make_engine_failure
from sonde.experiments.executor import RunAttempt
from sonde.experiments.locations import RunLocations
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.experiments.simulated_executor import SimulatedExecutor
from sonde.experiments.single_run import (
    RunLabels,
    load_simulated_plan,
    prepare_simulation,
    simulate_plan_once,
)
from sonde.launch.engine import find_engine
from sonde.launch.session import LineObserver
from sonde.launch.simulator import SimulatedLauncher, find_simulator, list_known_faults
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.experiment.description import EXPERIMENT_FORMAT as EXPERIMENT
from sonde.model.plan import Plan, read_plan_document
from sonde.model.system import System, read_system
from sonde.store.archive import Archive
from sonde.terminal.encoding import print_plain_text
from sonde.terminal.run_display import make_display
from sonde.terminal.screen import get_messages_console


def _list_faults(ctx: click.Context, _option: click.Parameter, is_requested: bool) -> None:
    if is_requested and not ctx.resilient_parsing:
        print_plain_text(list_known_faults(find_simulator()), line_end="")
        ctx.exit(EXIT_OK)


@click.command("simulate")
@click.argument("plan")
@click.option(
    "--system", metavar="FILE", required=True, help="System file of the machine, or the name of a shipped one."
)
@click.option("--mount", metavar="ID", default="", help="Mount, file system or pool; default: the first with storage.")
@click.option(
    "--fault",
    "faults",
    metavar="FAULT",
    multiple=True,
    help="Fault of the machine, as 'slow-target 3 10x' or 'raid-rebuild ost017 at 30s'; may be given several times.",
)
@click.option(
    "--list-faults",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_faults,
    help="List all kinds of faults.",
)
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, help="Seed of the random numbers.")
@click.option("--nodes", type=click.IntRange(1, 10_000_000), help="Nodes to use; default: one core for each task.")
@click.option("--tasks", type=click.IntRange(1, 10_000_000), help="Tasks, each a process; default: those of the plan.")
@click.option("--traces", is_flag=True, help="Store counters and messages of the servers with the record.")
@click.option(
    "--set",
    "settings",
    metavar="PATH=VALUE",
    multiple=True,
    help="Change one member, like data.access.transfer=4KiB; may be given several times.",
)
@click.option("--profile", metavar="NAME", default="", help="Scale of an experiment: ci, laptop, published.")
@click.option("--repeat", type=click.IntRange(1, 100_000), metavar="N", help="Run every cell so many times.")
@click.option(
    "--sweep",
    "sweeps",
    metavar="PATH=VALUES",
    multiple=True,
    help="Run once for each value, like tasks.processes=1..64*2. Several make a grid.",
)
@click.option("--group", metavar="NAME", default="", help="Name of the group that the runs belong to.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Word to find the runs by later.")
@add_archive_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no tables: the run's name, and errors.")
@add_json_option
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
    sweeps: tuple[str, ...],
    group: str,
    tags: tuple[str, ...],
    archive: Archive,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a plan or an experiment on a model of a machine.

    Nothing is measured and no bytes are transferred: a model of the machine computes when each operation would have
    ended. The record is marked as simulated and is never compared with measured ones.

    \b
    Examples:
      sonde simulate quick --system edison --tasks 96
      sonde simulate quick --system edison --mount fs1 --fault "slow-target 3 10x"
      sonde simulate hpcs-07 --profile ci --system hpcs-demo
      sonde simulate training-resnet50 --system edison --sweep tasks.processes=1..64*2

    More: sonde help concepts/simulate
    """
    machine = read_system(find_system_file(system))
    source = resolve_plan_source(plan)
    with prepare_simulation(machine, mount, faults, seed, nodes, tasks) as launcher:
        document = read_plan_document(source)
        is_experiment = document.get("schema") == EXPERIMENT

        def make_executor(
            setup: RunSetup, line: LineObserver, on_begin: Callable[[RunAttempt], None]
        ) -> SimulatedExecutor:
            return SimulatedExecutor(setup, line, launcher, machine, on_begin)

        output = OutputOptions(archive, None, quiet, as_json, create_executor=make_executor)
        # Every cell is on a part of the machine; nothing is ever written here.
        storage = launcher.system.with_name("storage")
        storage.mkdir()
        locations = RunLocations(str(storage), system=system)
        request = RunRequest(profile, settings, locations, repeat, sweeps=sweeps, group=group, tags=tags)
        if is_experiment:
            if tasks or nodes:
                raise UserError("--tasks and --nodes belong to a plan; of an experiment say --set clients.nodes=4.")
            return run_experiment_file(source, request, output)
        if profile:
            raise UserError("--profile belongs to an experiment, and this is a plan.")
        checked = load_simulated_plan(plan, settings, document, machine, mount, tasks)
        if request.is_experiment:
            if traces:
                raise UserError("--traces is of one run; leave out --sweep and --repeat.")
            if tasks and any(sweep.startswith("tasks.") for sweep in sweeps):
                raise UserError("--tasks and --sweep tasks.… both set the number of tasks; leave out one of them.")
            return run_plan(checked, request, output)
        return _simulate_plan(checked, launcher, machine, archive, RunLabels(group, tags), traces, quiet, as_json)


def _simulate_plan(
    plan: Plan,
    launcher: SimulatedLauncher,
    system: System,
    archive: Archive,
    labels: RunLabels,
    stores_traces: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    display = make_display(get_messages_console(), quiet)
    setup = RunSetup(find_engine(), archive, on_stop=display.report_stop_signal, system=system)
    display.begin_run(plan.title, 1, 1, plan)
    try:
        result = simulate_plan_once(plan, setup, display.show_record_line, launcher, labels, stores_traces)
    finally:
        display.end_display()
    print_run_result(result, None, as_json, quiet)
    if result.exit_code != EXIT_OK:
        raise make_engine_failure(result.exit_code, result.text)
    return EXIT_OK
