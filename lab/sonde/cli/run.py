# SPDX-License-Identifier: Apache-2.0
"""``sonde run``: one plan, one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import (
    archive_option,
    json_option,
    load_plan,
    mpi_module_option,
    plan_options,
    report_option,
    spread,
    task_options,
)
from sonde.cli.present import make_report
from sonde.conduct.run import Result, Setup, conduct, failure
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import make_launcher
from sonde.model.errors import DONE
from sonde.store.archive import Archive
from sonde.store.summary import NAME as SUMMARY
from sonde.terminal.live import make_display
from sonde.terminal.run_tables import print_run
from sonde.terminal.screen import messages, print_json, results


@click.command("run")
@plan_options
@task_options
@mpi_module_option
@archive_option
@report_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no tables: the run's name, and errors.")
@json_option
def command(
    plan: str,
    settings: tuple[str, ...],
    target: str | None,
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
    """Run a plan and keep what it gave.

    PLAN is a TOML or JSON file, the name of a ready-made experiment (quick, shared-file, small-files, metadata,
    sustained, known-answer), or - for standard input. Progress goes to standard error, results to standard output.

    \b
    Examples:
      sonde run quick --on /scratch
      sonde run quick --on /scratch --tasks 8 --set data.access.volume=4GiB
      sonde run plan.toml --set phases.read.stop.time=30s --json > result.json
      sonde run shared-file --on /scratch --launcher mpiexec --tasks 64 --launcher-args "-hosts n1,n2"
      sonde run shared-file --on /scratch --launcher srun --tasks 64 --launcher-args "--nodes=4"

    Ctrl-C ends the run in good order: finished phases are kept, the files are removed. A second Ctrl-C kills it after
    five seconds.
    """
    checked = load_plan(plan, settings, target)
    checked, ranks = spread(checked, launcher, tasks, processes)
    display = make_display(messages(), quiet)
    setup = Setup(find_engine(), archive, make_launcher(launcher, ranks, launcher_args), mpi_module, display.stopping)
    archive.recover()
    display.begin(checked.title, 1, 1, checked)
    try:
        result = conduct(checked, setup, display.line)
    finally:
        display.close()
    page = make_report([result.folder], result.folder / "report.html", None, quiet) if report else None
    _show(result, page, as_json, quiet)
    if result.exit_code != DONE:
        raise failure(result.exit_code, result.text)
    return DONE


def _show(result: Result, page: Path | None, as_json: bool, quiet: bool) -> None:
    if as_json:
        document: dict[str, Any] = json.loads((result.folder / SUMMARY).read_text(encoding="utf-8"))
        document |= {"folder": str(result.folder), "report": str(page) if page else None}
        print_json(document)
    elif quiet:
        results().print(result.folder.name, soft_wrap=True)
    else:
        console = results()
        console.print()
        print_run(console, result.folder, result.record)
        if page is not None:
            console.print(f"Report  {page}", soft_wrap=True)
