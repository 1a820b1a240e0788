# SPDX-License-Identifier: Apache-2.0
"""Commands that accept another tool's command line, which is passed to the engine unchanged."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NoReturn

import click

from sonde.cli.options import add_archive_option, add_launcher_options, add_mpi_module_option, add_report_option
from sonde.cli.report_writing import write_report_or_warn
from sonde.conduct.run import RunSetup
from sonde.conduct.tool_run import ToolCommand, ToolResult, conduct_tool_run, resolve_plans_of_tool
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.launch.launchers.rank_detection import detect_launcher_rank
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.plan import Plan
from sonde.store.archive import Archive
from sonde.terminal.encoding import print_plain_text
from sonde.terminal.run_display import make_display
from sonde.terminal.screen import do_messages_share_output, get_messages_console

# How IOR's JSON and CSV begin. Other lines in the same file (`> log 2>&1`) would break them.
_MACHINE_READABLE_BEGINNINGS = ("{", "access,bw(MiB/s)")

TOOL_CONTEXT_SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def make_tool_command(tool_name: str, help_text: str) -> click.Command:
    """Returns the command `sonde NAME [options] ARGUMENTS…` for the engine's dialect of that name."""

    @click.command(tool_name, help=help_text, context_settings=TOOL_CONTEXT_SETTINGS)
    @click.option("--tasks", type=click.IntRange(1, 65536), default=1, metavar="N", help="Tasks, each a process.")
    @add_launcher_options("the tasks")
    @add_mpi_module_option
    @add_archive_option
    @add_report_option
    @click.option("--quiet", is_flag=True, help="No progress, no warnings.")
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def command(
        tasks: int,
        launcher: str,
        launcher_args: str,
        mpi_module: Path | None,
        archive: Archive,
        report: bool,
        quiet: bool,
        arguments: tuple[str, ...],
    ) -> int:
        line = ToolCommand(tool_name, arguments, tasks)
        started = detect_launcher_rank()
        if started is not None and started.rank > 0 and launcher == LOCAL:
            _exec_engine_as_rank(line, mpi_module)
        display = make_display(get_messages_console(), quiet or do_messages_share_output())
        chosen = make_launcher(launcher, tasks, launcher_args)
        setup = RunSetup(find_engine(), archive, chosen, mpi_module, display.report_stop_signal)
        plans = resolve_plans_of_tool(line, setup)
        if not plans:
            return _run_engine_alone(line, setup)
        _check_launcher(plans, launcher, tasks)
        archive.recover_unfinished_runs()
        display.begin_run(plans[0].title, 1, len(plans), plans[0])
        try:
            result = conduct_tool_run(
                line,
                plans,
                setup,
                display.show_record_line,
                lambda index: display.begin_run(plans[index].title, index + 1, len(plans), plans[index]),
            )
        finally:
            display.end_display()
        _print_tool_result(result, report, quiet)
        result.raise_error()
        return EXIT_OK

    return command


def _exec_engine_as_rank(tool_command: ToolCommand, mpi_module: Path | None) -> NoReturn:
    """Replaces this process by the engine, for ranks other than 0 of a launcher. Rank 0 stores the run. Signals and the
    exit code are those of the engine."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the engine would inherit that
    module = ["--sonde-mpi-module", str(mpi_module)] if mpi_module is not None else []
    engine = find_engine().path
    os.execv(engine, [str(engine), tool_command.tool, *tool_command.arguments, *module])


def _check_launcher(plans: list[Plan], launcher: str, task_count: int) -> None:
    if (
        launcher == LOCAL
        and task_count > 1
        and any(plan.document.get("data", {}).get("backend") in ("mpiio", "hdf5", "pnetcdf") for plan in plans)
    ):
        raise UserError(
            f"I/O through MPI by {task_count} tasks needs processes that an MPI started: "
            "add --launcher mpiexec (or srun)."
        )


def _run_engine_alone(tool_command: ToolCommand, setup: RunSetup) -> int:
    """Runs the engine alone for arguments that measure nothing, such as a dry run."""
    import subprocess

    return subprocess.run([str(setup.engine.path), tool_command.tool, *tool_command.arguments], check=False).returncode


def _print_tool_result(tool_result: ToolResult, writes_report: bool, quiet: bool) -> None:
    print_plain_text(tool_result.output, line_end="")
    if do_messages_share_output() and tool_result.output.lstrip().startswith(_MACHINE_READABLE_BEGINNINGS):
        quiet = True
    console = get_messages_console()
    for remark in tool_result.engine_messages.splitlines() if not quiet else ():
        # main prints the final error message once.
        if tool_result.exit_code == EXIT_OK or tool_result.text.rstrip(".") not in remark:
            console.print(remark, soft_wrap=True)
    for run in tool_result.runs:
        page = write_report_or_warn([run.folder], run.folder / "report.html", None, quiet) if writes_report else None
        if not quiet:
            console.print(f"sonde: stored in {run.folder}" + (f", report {page}" if page else ""), soft_wrap=True)
