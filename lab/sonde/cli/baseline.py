# SPDX-License-Identifier: Apache-2.0
"""``sonde baseline``: which runs others are compared with."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.cli.options import VerbGroup, json_option, kept_archive_option
from sonde.model.errors import UserError
from sonde.model.units import counted
from sonde.stats.spread import variation
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog
from sonde.store.selection import Selection
from sonde.store.tags import change_tags
from sonde.terminal.screen import plain_table, print_json, results
from sonde.trends.comparison import median
from sonde.trends.comparison_words import number_name, value_text
from sonde.trends.sides import BASELINE, find_side, numbers_of
from sonde.trends.threshold import LEAST, limit_of


@click.group("baseline", cls=VerbGroup)
def command() -> None:
    """Name the runs that others are compared with. A baseline is a tag baseline:NAME on them.

    \b
    Examples:
      sonde baseline set acceptance 2026-08-20..2026-08-23
      sonde baseline show acceptance
      sonde baseline rm acceptance
    """


@command.command("set")
@click.argument("name")
@click.argument("runs", nargs=-1, required=True)
@click.option("--add", is_flag=True, help="Keep the runs it has.")
@kept_archive_option
def set_command(name: str, runs: tuple[str, ...], add: bool, archive: Archive) -> int:
    """Make RUNS the baseline NAME; runs it had before leave it, unless --add is given.

    Each of RUNS is a run, a group of runs, "last", tag:WORD, plan:TEXT or a time like 2026-08-01..2026-08-31.

    \b
    Examples:
      sonde baseline set acceptance 2026-08-20..2026-08-23
      sonde baseline set acceptance last --add
    """
    archive.recover()
    tag = _tag(name)
    chosen = {run.folder: run for text in runs for run in find_side(archive, text).runs}
    if not numbers_of(list(chosen.values())):
        raise UserError(
            f"None of {', '.join(runs)} holds a number that can be compared (lost, failed or without storage);"
            " a baseline needs runs that were done."
        )
    for folder in _members(archive, tag):
        if folder not in chosen and not add:
            change_tags(folder, remove=[tag])
    for folder in chosen:
        change_tags(folder, add=[tag])
    _show(archive, tag, as_json=False)
    return 0


@command.command("show")
@click.argument("name", required=False)
@kept_archive_option
@json_option
def show_command(name: str | None, archive: Archive, as_json: bool) -> int:
    """Show the numbers of the baseline NAME with the limits that `sonde gate` derives from them; without NAME all
    baselines."""
    archive.recover()
    if name is not None:
        if not _members(archive, _tag(name)):
            raise UserError(_unknown(name))
        _show(archive, _tag(name), as_json)
        return 0
    counts: dict[str, int] = {}
    for row in Catalog(archive.root).runs(["tags"]).to_pylist():
        for tag in row["tags"] or ():
            if tag.startswith(BASELINE):
                counts[tag.removeprefix(BASELINE)] = counts.get(tag.removeprefix(BASELINE), 0) + 1
    if as_json:
        print_json([{"name": one, "runs": count} for one, count in sorted(counts.items())])
    elif counts:
        table = plain_table()
        table.add_column("baseline")
        table.add_column("runs", justify="right")
        for one, count in sorted(counts.items()):
            table.add_row(one, str(count))
        results().print(table)
    else:
        results().print("There is no baseline; `sonde baseline set NAME RUN...` makes one.")
    return 0


@command.command("rm")
@click.argument("name")
@kept_archive_option
def remove_command(name: str, archive: Archive) -> int:
    """Forget the baseline NAME. The runs stay."""
    archive.recover()
    tag = _tag(name)
    folders = _members(archive, tag)
    if not folders:
        raise UserError(_unknown(name))
    for folder in folders:
        change_tags(folder, remove=[tag])
    results().print(f"The baseline {name} is forgotten; {counted(len(folders), 'run')} of it stay in the archive.")
    return 0


def _unknown(name: str) -> str:
    return f'There is no baseline "{name}"; `sonde baseline show` lists those there are.'


def _tag(name: str) -> str:
    return name if name.startswith(BASELINE) else f"{BASELINE}{name}"


def _members(archive: Archive, tag: str) -> list[Path]:
    found = Catalog(archive.root).runs(["folder"], Selection(tags=(tag,))).to_pylist()
    return [archive.root / row["folder"] for row in found]


def _show(archive: Archive, tag: str, as_json: bool) -> None:
    side = find_side(archive, tag)
    own = sorted(numbers_of(side.runs), key=lambda number: number.key)
    keys = [number.key for number in own]
    if as_json:
        print_json(
            {
                "name": tag.removeprefix(BASELINE),
                "runs": [run.id for run in side.runs],
                "numbers": [
                    {
                        "series": number.key.id,
                        "phase": number.key.phase,
                        "op": number.key.op,
                        "unit": number.key.unit,
                        "values": list(number.values),
                        "median": limit_of(number.values)[0],
                        "limit": limit_of(number.values)[1] if len(number.values) >= LEAST else None,
                    }
                    for number in own
                ],
            }
        )
        return
    console = results()
    console.print(f"{tag.removeprefix(BASELINE)}: {counted(len(side.runs), 'run')}", soft_wrap=True)
    table = plain_table()
    for title in ("what", "op", "runs", "median", "COV", "limit of the gate"):
        table.add_column(title, justify="left" if title in ("what", "op") else "right")
    for number in own:
        scatter = f"{100 * variation(number.values).value:.1f} %" if len(number.values) > 1 else "-"
        enough = len(number.values) >= LEAST
        limit = value_text(limit_of(number.values)[1], number.key.unit) if enough else f"needs {LEAST} runs"
        middle = value_text(median(number.values), number.key.unit)
        table.add_row(
            number_name(number.key, number.plan, keys), number.key.op, str(len(number.values)), middle, scatter, limit
        )
    console.print(table)
