# SPDX-License-Identifier: Apache-2.0
"""What the verbs that speak another tool's language have in common: its words go to the engine as they are."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from sonde.cli.options import archive_option, launcher_options, mpi_module_option, report_option
from sonde.cli.present import make_report
from sonde.conduct.run import Setup
from sonde.conduct.tool_line import ToolLine, ToolResult, conduct_line, plans_of
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.launch.started import started_by
from sonde.model.errors import DONE, UserError
from sonde.model.plan import Plan
from sonde.store.archive import Archive
from sonde.terminal.live import make_display
from sonde.terminal.screen import messages

SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def tool_verb(name: str, help_text: str) -> click.Command:
    """The command `sonde NAME [options] WORDS…` for the engine's dialect of that name."""

    @click.command(name, help=help_text, context_settings=SETTINGS)
    @click.option("--tasks", type=click.IntRange(1, 65536), default=1, metavar="N", help="Tasks, each a process.")
    @launcher_options("the tasks")
    @mpi_module_option
    @archive_option
    @report_option
    @click.option("--quiet", is_flag=True, help="No progress, no remarks.")
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def command(
        tasks: int,
        launcher: str,
        launcher_args: str,
        mpi_module: Path | None,
        archive: Archive,
        report: bool,
        quiet: bool,
        words: tuple[str, ...],
    ) -> int:
        line = ToolLine(name, words, tasks)
        started = started_by()
        if started is not None and started.rank > 0 and launcher == LOCAL:
            _join(line, mpi_module)
        display = make_display(messages(), quiet)
        chosen = make_launcher(launcher, tasks, launcher_args)
        setup = Setup(find_engine(), archive, chosen, mpi_module, display.stopping)
        plans = plans_of(line, setup)
        if not plans:
            return _pass_through(line, setup)
        _check_launcher(plans, launcher, tasks)
        archive.recover()
        display.begin(plans[0].title, 1, len(plans), plans[0])
        try:
            result = conduct_line(
                line,
                plans,
                setup,
                display.line,
                lambda index: display.begin(plans[index].title, index + 1, len(plans), plans[index]),
            )
        finally:
            display.close()
        _show(result, report, quiet)
        result.raise_failure()
        return DONE

    return command


def _join(line: ToolLine, mpi_module: Path | None) -> NoReturn:
    """One of several that a launcher started, and not the first: its engine takes part, and the first one keeps what
    comes of it. The engine takes this process's place, so that signals and the exit code are its own."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs inherit that
    module = ["--sonde-mpi-module", str(mpi_module)] if mpi_module is not None else []
    engine = find_engine().path
    os.execv(engine, [str(engine), line.tool, *line.words, *module])


def _check_launcher(plans: list[Plan], launcher: str, tasks: int) -> None:
    if (
        launcher == LOCAL
        and tasks > 1
        and any(plan.document.get("data", {}).get("backend") == "mpiio" for plan in plans)
    ):
        raise UserError(
            f"MPI-IO by {tasks} tasks needs processes that an MPI started: add --launcher mpiexec (or srun)."
        )


def _pass_through(line: ToolLine, setup: Setup) -> int:
    """Words that measure nothing (a dry run): the engine answers alone."""
    import subprocess

    return subprocess.run([str(setup.engine.path), line.tool, *line.words], check=False).returncode


def _show(result: ToolResult, report: bool, quiet: bool) -> None:
    sys.stdout.write(result.output)
    sys.stdout.flush()
    said = messages()
    for remark in result.remarks.splitlines() if not quiet else ():
        # The sentence that ends the command is said once, by main.
        if result.exit_code == DONE or result.text.rstrip(".") not in remark:
            said.print(remark, soft_wrap=True)
    for run in result.runs:
        page = make_report([run.folder], run.folder / "report.html", None, quiet) if report else None
        if not quiet:
            said.print(f"sonde: kept in {run.folder}" + (f", report {page}" if page else ""), soft_wrap=True)
