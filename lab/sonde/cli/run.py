# SPDX-License-Identifier: Apache-2.0
"""``sonde run``: one plan once, a plan several times, or an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.cli.options import add_task_options
from sonde.cli.report_writing import write_report_or_warn
from sonde.cli.run_options import (
    OutputOptions,
    RunRequest,
    add_dry_run_options,
    add_run_output_options,
    add_run_request_options,
    make_output_display,
)
from sonde.conduct.run import RunResult, RunSetup, make_engine_failure
from sonde.experiments.plan_loading import divide_tasks_into_processes, load_plan
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.experiments.single_run import run_plan_once
from sonde.launch.engine import find_engine
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.model.bundled_files import find_system_file
from sonde.model.confined_files import read_json_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.experiment.description import EXPERIMENT_FORMAT as EXPERIMENT
from sonde.model.plan import Plan, read_plan_document
from sonde.model.plan_warnings import find_plan_warnings
from sonde.model.system import read_system
from sonde.model.target_names import is_block_device, is_object_store_target
from sonde.store.summary import SUMMARY_FILE
from sonde.terminal.run_tables import print_run_tables
from sonde.terminal.screen import get_messages_console, get_results_console, print_json


@click.command("run")
@click.argument("plan")
@add_run_request_options
@add_dry_run_options
@add_task_options
@add_run_output_options
def command(
    plan: str,
    run_request: RunRequest,
    output: OutputOptions,
    tasks: int | None,
    processes: int | None,
    launcher: str,
    launcher_args: str,
) -> int:
    """Run a plan or an experiment and store the results.

    PLAN is a TOML or JSON file, the name of a shipped plan or experiment like quick (`sonde experiments` lists all), or
    - for standard input. Progress goes to standard error, results to standard output.

    \b
    Examples:
      sonde run quick --on /scratch
      sonde run quick --on /scratch --tasks 8 --set data.access.volume=4GiB
      sonde run quick --on /scratch --repeat 10 --warmup 1 --sweep data.access.transfer=64KiB,1MiB
      sonde run hpcs-07 --profile ci --on /scratch --dry-run
      sonde run hpcs-07 --profile ci --on /scratch
      sonde run hpcs-07 --profile ci --on /scratch --resume
      sonde run read-only.toml --on /dev/nvme1n1
      sonde run shared-file --on /scratch --launcher mpiexec --tasks 64 --launcher-args "-hosts n1,n2"

    Ctrl-C ends the run in an orderly way: finished phases are stored, the files are removed. A second Ctrl-C kills it
    after five seconds.

    More: sonde help tasks/experiment
    """
    source = resolve_plan_source(plan)
    document = read_plan_document(source)
    if document.get("schema") == EXPERIMENT:
        from sonde.cli.experiment_runs import run_experiment_file

        if tasks or processes:
            raise UserError("--tasks and --processes belong to a plan; of an experiment say --set clients.nodes=4.")
        target = run_request.locations.default
        if output.device_permission.device or is_block_device(target) or is_object_store_target(target):
            raise UserError(
                "An experiment makes files in directories; only a plan can be run on a block device or a bucket."
            )
        return run_experiment_file(source, run_request, output)
    _require_no_experiment_options(run_request)
    checked = load_plan(plan, run_request.settings, run_request.locations.default or None, document)
    if run_request.is_experiment or output.dry_run:
        from sonde.cli.experiment_runs import run_plan

        checked, _ = divide_tasks_into_processes(
            checked, LOCAL, tasks, processes or (tasks if launcher != LOCAL else None)
        )
        return run_plan(checked, run_request, output)
    checked, ranks = divide_tasks_into_processes(checked, launcher, tasks, processes)
    return _run_plan_once(checked, make_launcher(launcher, ranks, launcher_args), run_request, output)


def _run_plan_once(plan: Plan, launcher: Launcher, run_request: RunRequest, output: OutputOptions) -> int:
    """Runs the plan once and prints its result. Raises the error of a failed run."""
    for warning in find_plan_warnings(plan) if not output.quiet else ():
        get_messages_console().print(f"sonde: {warning}", soft_wrap=True)
    display = make_output_display(output)
    system = run_request.locations.system
    described = read_system(find_system_file(system)) if system else None
    setup = RunSetup(
        find_engine(),
        output.archive,
        launcher,
        output.mpi_module,
        display.report_stop_signal,
        system=described,
        device_permission=output.device_permission,
    )
    output.archive.recover_unfinished_runs()
    display.begin_run(plan.title, 1, 1, plan)
    try:
        result = run_plan_once(plan, setup, display.show_record_line, run_request.run_labels)
    finally:
        display.end_display()
    page = None
    if output.report:
        page = write_report_or_warn([result.folder], result.folder / "report.html", None, output.quiet)
    print_run_result(result, page, output.as_json, output.quiet)
    if result.exit_code != EXIT_OK:
        raise make_engine_failure(result.exit_code, result.text)
    return EXIT_OK


def _require_no_experiment_options(run_request: RunRequest) -> None:
    """Raises UserError for options that only experiments have."""
    locations = run_request.locations
    option = "--profile" if run_request.profile else "--pool" if locations.pools else ""
    if option:
        raise UserError(f"{option} belongs to an experiment, and this is a plan; leave it out.")
    if locations.by_name:
        name = next(iter(locations.by_name))
        raise UserError(f"--on {name}=… names a file system of an experiment, and this is a plan; write --on DIR.")


def print_run_result(run_result: RunResult, report_page: Path | None, as_json: bool, quiet: bool) -> None:
    """Prints the result of one run: as JSON, as its name, or as tables."""
    if as_json:
        document = read_json_file(run_result.folder / SUMMARY_FILE) or {}
        document |= {"folder": str(run_result.folder), "report": str(report_page) if report_page else None}
        print_json(document)
    elif quiet:
        get_results_console().print(run_result.folder.name, soft_wrap=True)
    else:
        console = get_results_console()
        console.print()
        print_run_tables(
            console, run_result.folder, run_result.record, read_json_file(run_result.folder / SUMMARY_FILE)
        )
        if report_page is not None:
            console.print(f"Report  {report_page}", soft_wrap=True)
