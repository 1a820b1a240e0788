# SPDX-License-Identifier: Apache-2.0
"""``sonde iozone``: a command line of IOzone, measured by Sonde."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import click

import sonde
from sonde.cli.options import archive_option, launcher_options
from sonde.cli.tool_verb import SETTINGS
from sonde.conduct.run import Result, Setup, conduct, failure
from sonde.dialects.iozone.page import cautions, write_grid
from sonde.dialects.iozone.plans import Cell, plan_of
from sonde.dialects.iozone.tables import heading, rates_of, table_heading, table_row, throughput
from sonde.dialects.iozone.words import Settings, grid, read_words
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.model.errors import DONE, UserError
from sonde.model.run import Run, run_of
from sonde.report.facts import shared
from sonde.store.archive import Archive, new_id
from sonde.terminal.live import make_display
from sonde.terminal.screen import messages


@click.command("iozone", context_settings=SETTINGS)
@launcher_options("the children of -t")
@archive_option
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Where the report goes.")
@click.option("--quiet", is_flag=True, help="No progress, no remarks.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(
    launcher: str, launcher_args: str, archive: Archive, page: Path | None, quiet: bool, words: tuple[str, ...]
) -> int:
    """Run a command line of IOzone: its tables, each cell kept as a run, and a heat map over file × record size.

    Options of Sonde come first, words of IOzone after them. Tests 0, 1, 2, 3, 5, 8, 9 and 10 of -i, one process with
    -a, -s, -r, or throughput mode with -t or -l and -u.

    \b
    Examples:
      sonde iozone -a -i 0 -i 1 -f /scratch/iozone.tmp
      sonde iozone -i 0 -i 1 -r 1M -s 4g -+u -c -C -t 8 -F /scratch/f1 /scratch/f2 …
      sonde iozone -I -e -r 4k -r 1m -s 1g -i 0 -i 2 -f /scratch/iozone.tmp
    """
    settings = read_words(words)
    cells = (
        [Cell(size, record, count) for count in settings.children for size, record in grid(settings)]
        if settings.children
        else [Cell(size, record) for size, record in grid(settings)]
    )
    plans = [plan_of(settings, cell) for cell in cells]
    engine, display = find_engine(), make_display(messages(), quiet)
    archive.recover()
    for note in settings.notes if not quiet else ():
        messages().print(f"sonde: {note}", soft_wrap=True)
    began = datetime.now().astimezone().strftime("%a %b %e %H:%M:%S %Y")
    print(heading(settings, words, sonde.__version__, began))
    if not settings.children:
        print(table_heading(), end="", flush=True)
    rates: dict[Cell, dict[str, float]] = {}
    runs: dict[Cell, Run] = {}
    group = new_id("iozone") if len(cells) > 1 else None
    worst: Result | None = None
    kept: list[Path] = []
    for number, (cell, plan) in enumerate(zip(cells, plans, strict=True), 1):
        ranks = max(1, cell.children)
        if launcher != LOCAL:
            plan = plan.with_settings(["tasks.processes=null"])
        setup = Setup(engine, archive, make_launcher(launcher, ranks, launcher_args), None, display.stopping)
        display.begin(plan.title, number, len(cells), plan)
        try:
            result = conduct(plan, setup, display.line, cell.name, {"group": group} if group else None)
        except UserError:
            display.close()
            raise
        _show(cell, result, settings, rates)
        kept.append(result.folder)
        runs[cell] = run_of(result.record, result.folder)
        if result.exit_code != DONE:
            worst = result
            break
    display.close()
    print("\niozone test complete.")
    for words_of_caution in cautions(runs) if not quiet else ():
        messages().print(f"sonde: {words_of_caution}", soft_wrap=True)
    _page(rates, runs, words, page, archive, group, quiet)
    if not quiet:
        where = str(kept[0]) if len(kept) == 1 else f"{archive.root}, {len(kept)} runs of the group {group}"
        messages().print(f"sonde: kept in {where}", soft_wrap=True)
    if worst is not None:
        raise failure(worst.exit_code, worst.text)
    return DONE


def _show(cell: Cell, result: Result, settings: Settings, rates: dict[Cell, dict[str, float]]) -> None:
    if cell.children:
        sys.stdout.write(throughput(cell, result.record, settings))
    else:
        rates[cell] = rates_of(result.record, settings)
        sys.stdout.write(table_row(cell, rates[cell], settings))
    sys.stdout.flush()


def _page(
    rates: dict[Cell, dict[str, float]],
    runs: Mapping[Cell, Run],
    words: tuple[str, ...],
    page: Path | None,
    archive: Archive,
    group: str | None,
    quiet: bool,
) -> None:
    if group is None and page is None:
        return
    out = page or archive.root / "reports" / f"{group}.html"
    out.parent.mkdir(parents=True, exist_ok=True)
    written = write_grid(rates, runs, f"iozone {' '.join(words)}", shared(list(runs.values())), out)
    if written is not None and not quiet:
        messages().print(f"sonde: report {written}", soft_wrap=True)
