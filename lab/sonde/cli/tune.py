# SPDX-License-Identifier: Apache-2.0
"""``sonde tune``: finds better values of settings by interleaved runs, and restores the machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from sonde.cli.options import add_archive_option, add_json_option
from sonde.cli.tune_runs import (
    EngineTuneRunner,
    SimulatedTuneRunner,
    find_model_changes,
    require_phase,
    require_possible_value,
)
from sonde.conduct.run import RunSetup
from sonde.experiments.locations import require_existing_directory
from sonde.experiments.plan_loading import load_plan
from sonde.experiments.single_run import prepare_simulation
from sonde.launch.engine import find_engine
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_ENVIRONMENT, EXIT_OK, UserError
from sonde.model.system import read_system
from sonde.store.archive import Archive, make_run_id
from sonde.terminal.run_display import make_display
from sonde.terminal.screen import get_messages_console, get_results_console, print_json
from sonde.tune.description import TuneRequest, parse_request, read_tunables
from sonde.tune.journal import open_journal
from sonde.tune.search import SearchRule
from sonde.tune.tuning import TuningSession, require_clean_journal
from sonde.tune.tuning_text import build_list_document, build_tune_document, print_outcome, print_tunables


@dataclass(frozen=True)
class _TuneArguments:
    """Arguments and options of ``sonde tune``."""

    plan: str
    directory: str | None
    system: str | None
    mount: str
    settings: tuple[str, ...]
    phase: str
    seed: int
    device: str
    quiet: bool
    rule: SearchRule


@click.command("tune")
@click.argument("plan", required=False)
@click.option("--on", "directory", metavar="DIR", help="Directory on the storage to tune.")
@click.option(
    "--try",
    "requests",
    metavar="NAME[=VALUES]",
    multiple=True,
    help="Setting to tune, with values to try like read-ahead=128,4096; may be given several times.",
)
@click.option("--phase", metavar="NAME", default="", help="Phase to make faster; default: the mean of all.")
@click.option(
    "--worth",
    type=click.FloatRange(0.005, 1),
    default=0.05,
    show_default=True,
    metavar="FRACTION",
    help="Smallest gain that is worth a change.",
)
@click.option(
    "--blocks",
    type=click.IntRange(7, 1000),
    default=20,
    show_default=True,
    metavar="N",
    help="Runs of each side of a comparison, at most.",
)
@click.option("--apply", is_flag=True, help="Leave better values of the machine in place.")
@click.option("--restore", is_flag=True, help="Restore what a killed tuning or --apply changed.")
@click.option("--list", "list_settings", is_flag=True, help="List the settings that can be tuned.")
@click.option(
    "--tunables",
    "files",
    type=click.Path(path_type=Path),
    metavar="FILE",
    multiple=True,
    help="Further settings, in a TOML file.",
)
@click.option("--device", metavar="NAME", default="", help="Block device of the storage, like sda; default: found.")
@click.option("--system", metavar="FILE", help="Tune a simulated machine: its system file, or a shipped name.")
@click.option("--mount", metavar="ID", default="", help="With --system: mount or file system.")
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help="Change one member of the plan.")
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, show_default=True, help="Seed of the order of runs.")
@add_archive_option
@add_json_option
def command(
    plan: str | None,
    directory: str | None,
    requests: tuple[str, ...],
    phase: str,
    worth: float,
    blocks: int,
    apply: bool,
    restore: bool,
    list_settings: bool,
    files: tuple[Path, ...],
    device: str,
    system: str | None,
    mount: str,
    settings: tuple[str, ...],
    seed: int,
    archive: Archive,
    as_json: bool,
) -> int:
    """Find better values of settings for a PLAN by interleaved runs.

    The values of each setting are compared in blocks of runs, the worse half is left out after each round, and the last
    one is compared with the present value in fresh runs. Every change is written to a journal before it is made; the
    machine is restored at the end, after Ctrl-C, and with --restore after a kill. --apply leaves better values in
    place.

    \b
    Examples:
      sonde tune --list
      sonde tune quick --on /scratch --try transfer --try read-ahead
      sonde tune quick --on /scratch --try nr-requests=32,128,512 --phase read --apply
      sonde tune quick --system edison --try lustre-rpcs-in-flight
      sonde tune --restore

    More: sonde help tasks/tune
    """
    tunables = read_tunables(files)
    if list_settings:
        print_json(build_list_document(tunables)) if as_json else print_tunables(get_results_console(), tunables)
        return EXIT_OK
    if restore:
        if plan or requests:
            raise UserError("--restore takes no plan and no --try: it restores all that was changed.")
        return _restore_settings(as_json)
    if plan is None:
        raise UserError("Name a plan and a setting: sonde tune quick --on DIR --try read-ahead")
    if not requests:
        raise UserError("Say which setting to tune: --try NAME; `sonde tune --list` lists them.")
    parsed = [parse_request(text, tunables) for text in requests]
    names = [request.tunable.id for request in parsed]
    if repeated := next((name for name in names if names.count(name) > 1), ""):
        raise UserError(f"--try {repeated} is given twice; write all its values in one, separated by commas.")
    if system is not None and (apply or directory or device):
        raise UserError("--system tunes a model: leave out --on, --device and --apply.")
    if mount and system is None:
        raise UserError("--mount belongs to --system; name the simulated machine.")
    if device and ("/" in device or not Path(f"/sys/block/{device}").exists()):
        raise UserError(f"--device: there is no block device {device}; /sys/block lists them, like sda.")
    request = _TuneArguments(
        plan, directory, system, mount, settings, phase, seed, device, as_json, SearchRule(worth, max_blocks=blocks)
    )
    with ExitStack() as stack:
        outcome = _make_tuning(stack, request, parsed, archive).tune_all_settings(parsed, apply)
    print_json(build_tune_document(outcome)) if as_json else print_outcome(get_results_console(), outcome)
    return EXIT_ENVIRONMENT if outcome.problems else EXIT_OK


def _make_tuning(
    stack: ExitStack, tune_arguments: _TuneArguments, requests: Sequence[TuneRequest], archive: Archive
) -> TuningSession:
    """The tuning on this machine or on a model, with its journal open until the stack is closed."""
    display = make_display(get_messages_console(), tune_arguments.quiet)
    stack.callback(display.end_display)
    group = make_run_id("tune")
    setup = RunSetup(find_engine(), archive, on_stop=display.report_stop_signal)
    runner: EngineTuneRunner
    if tune_arguments.system is None:
        if tune_arguments.directory is None:
            raise UserError("Say what to tune: --on DIR, or --system FILE for a model.")
        plan = load_plan(tune_arguments.plan, tune_arguments.settings, tune_arguments.directory)
        directory = require_existing_directory(tune_arguments.directory)
        runner = EngineTuneRunner(setup, display, tune_arguments.phase, group)
    else:
        machine = read_system(find_system_file(tune_arguments.system))
        launcher = stack.enter_context(
            prepare_simulation(machine, tune_arguments.mount, (), tune_arguments.seed * 1000, None, None)
        )
        find_model_changes(machine, tune_arguments.mount, {})
        plan, directory = (
            load_plan(tune_arguments.plan, ("target.path=/simulated", *tune_arguments.settings), None),
            launcher.system.parent,
        )
        runner = SimulatedTuneRunner(setup, display, tune_arguments.phase, group, launcher=launcher, system=machine)
    require_phase(plan, tune_arguments.phase)
    for request in requests:
        require_possible_value(setup.engine, plan, request)
    archive.recover_unfinished_runs()
    journal = stack.enter_context(open_journal())
    require_clean_journal(journal)
    return TuningSession(
        plan,
        directory,
        runner,
        journal,
        tune_arguments.rule,
        tune_arguments.seed,
        tune_arguments.device,
        display.print_message,
    )


def _restore_settings(as_json: bool) -> int:
    """Restores all settings in the journal."""
    with open_journal() as journal:
        names = list(dict.fromkeys(entry.tunable for entry in (*journal.pending, *journal.applied)))
        failures = journal.restore_all()
    if as_json:
        print_json({"restored": names, "failures": failures})
    elif not names:
        get_results_console().print("No setting is changed; there is nothing to restore.")
    elif not failures:
        get_results_console().print(f"Restored: {', '.join(names)}.", soft_wrap=True)
    for failure in failures:
        get_messages_console().print(f"sonde: {failure}", soft_wrap=True)
    return EXIT_ENVIRONMENT if failures else EXIT_OK
