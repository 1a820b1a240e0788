# SPDX-License-Identifier: Apache-2.0
"""``sonde iozone``: a command line of IOzone, measured by Sonde."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import click

import sonde
from sonde.cli.options import OutputFile, add_archive_option, add_launcher_options
from sonde.cli.tool_commands import TOOL_CONTEXT_SETTINGS
from sonde.conduct.run import RunResult, RunSetup, conduct_run, make_engine_failure
from sonde.dialects.iozone.arguments import IozoneSettings, list_grid_cells, parse_arguments
from sonde.dialects.iozone.grid_page import list_caveat_sentences_of_runs, write_grid_page
from sonde.dialects.iozone.plans import IozoneCell, build_cell_plan
from sonde.dialects.iozone.tables import (
    compute_rates_of_tests,
    format_throughput_blocks,
    make_heading,
    make_table_heading,
    make_table_row,
    make_version_lines,
)
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.run import RecordedRun, make_recorded_run
from sonde.report.facts import list_shared_facts
from sonde.store.archive import Archive, make_run_id
from sonde.terminal.encoding import print_plain_text
from sonde.terminal.run_display import make_display
from sonde.terminal.screen import get_messages_console


@click.command("iozone", context_settings=TOOL_CONTEXT_SETTINGS)
@add_launcher_options("the children of -t")
@add_archive_option
@click.option("--page", type=OutputFile(), metavar="FILE", help="Where the report goes.")
@click.option("--quiet", is_flag=True, help="No progress, no warnings.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    launcher: str, launcher_args: str, archive: Archive, page: Path | None, quiet: bool, arguments: tuple[str, ...]
) -> int:
    """Run a command line of IOzone: prints its tables, stores each cell as a run, and writes a heat map.

    Options of Sonde come first, arguments of IOzone after them. Supported are tests 0 to 5, 8, 9 and 10 of -i, in one
    process with -a, -s, -r, or in throughput mode with -t or -l and -u.

    \b
    Examples:
      sonde iozone -a -i 0 -i 1 -f /scratch/iozone.tmp
      sonde iozone -i 0 -i 1 -r 1M -s 4g -+u -c -C -t 8 -F /scratch/f1 /scratch/f2 …
      sonde iozone -I -e -r 4k -r 1m -s 1g -i 0 -i 2 -f /scratch/iozone.tmp

    More: sonde help reference/iozone
    """
    settings = parse_arguments(arguments)
    if settings.version:
        print_plain_text(make_version_lines(sonde.__version__))
        return EXIT_OK
    cells = (
        [IozoneCell(size, record, count) for count in settings.children for size, record in list_grid_cells(settings)]
        if settings.children
        else [IozoneCell(size, record) for size, record in list_grid_cells(settings)]
    )
    plans = [build_cell_plan(settings, cell) for cell in cells]
    engine, display = find_engine(), make_display(get_messages_console(), quiet)
    archive.recover_unfinished_runs()
    for note in settings.notes if not quiet else ():
        get_messages_console().print(f"sonde: {note}", soft_wrap=True)
    began = datetime.now().astimezone().strftime("%a %b %e %H:%M:%S %Y")
    print_plain_text(make_heading(settings, arguments, sonde.__version__, began))
    if not settings.children:
        print_plain_text(make_table_heading(), line_end="")
    rates: dict[IozoneCell, dict[str, float]] = {}
    runs: dict[IozoneCell, RecordedRun] = {}
    group = make_run_id("iozone") if len(cells) > 1 else None
    worst: RunResult | None = None
    folders: list[Path] = []
    for number, (cell, plan) in enumerate(zip(cells, plans, strict=True), 1):
        ranks = max(1, cell.children)
        if launcher != LOCAL:
            plan = plan.with_settings(["tasks.processes=null"])
        setup = RunSetup(
            engine, archive, make_launcher(launcher, ranks, launcher_args), None, display.report_stop_signal
        )
        display.begin_run(plan.title, number, len(cells), plan)
        try:
            result = conduct_run(
                plan, setup, display.show_record_line, cell.cell_name, {"group": group} if group else None
            )
        except UserError:
            display.end_display()
            raise
        _print_cell_row(cell, result, settings, rates)
        folders.append(result.folder)
        runs[cell] = make_recorded_run(result.record, result.folder)
        if result.exit_code != EXIT_OK:
            worst = result
            break
    display.end_display()
    print_plain_text("\niozone test complete.")
    for words_of_caution in list_caveat_sentences_of_runs(runs) if not quiet else ():
        get_messages_console().print(f"sonde: {words_of_caution}", soft_wrap=True)
    _write_heat_map_page(rates, runs, arguments, page, archive, group, quiet)
    if not quiet:
        location = str(folders[0]) if len(folders) == 1 else f"{archive.root}, {len(folders)} runs of the group {group}"
        get_messages_console().print(f"sonde: stored in {location}", soft_wrap=True)
    if worst is not None:
        raise make_engine_failure(worst.exit_code, worst.text)
    return EXIT_OK


def _print_cell_row(
    cell: IozoneCell, run_result: RunResult, settings: IozoneSettings, rates_by_cell: dict[IozoneCell, dict[str, float]]
) -> None:
    if cell.children:
        print_plain_text(format_throughput_blocks(cell, run_result.record, settings), line_end="")
    else:
        rates_by_cell[cell] = compute_rates_of_tests(run_result.record, settings)
        print_plain_text(make_table_row(cell, rates_by_cell[cell], settings), line_end="")


def _write_heat_map_page(
    rates_by_cell: dict[IozoneCell, dict[str, float]],
    runs_by_cell: Mapping[IozoneCell, RecordedRun],
    iozone_arguments: tuple[str, ...],
    page_file: Path | None,
    archive: Archive,
    group_name: str | None,
    quiet: bool,
) -> None:
    if group_name is None and page_file is None:
        return
    output = page_file or archive.root / "reports" / f"{group_name}.html"
    if page_file is None:
        output.parent.mkdir(parents=True, exist_ok=True)
    written = write_grid_page(
        rates_by_cell,
        runs_by_cell,
        f"iozone {' '.join(iozone_arguments)}",
        list_shared_facts(list(runs_by_cell.values())),
        output,
    )
    if written is not None and not quiet:
        get_messages_console().print(f"sonde: report {written}", soft_wrap=True)
