# SPDX-License-Identifier: Apache-2.0
"""``sonde compare``: two sides, number by number, and what was different around them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import json_option, kept_archive_option
from sonde.cli.selecting import steps
from sonde.model.errors import FAILED, UserError
from sonde.model.shipped import system_source
from sonde.model.system import read_system
from sonde.stats.spread import Variation
from sonde.store.archive import Archive
from sonde.terminal.screen import messages, plain_table, print_json, results
from sonde.trends.compared_targets import ComparedTargets, compared_targets
from sonde.trends.compared_targets_shown import print_targets
from sonde.trends.comparison import SMALLEST_CHANGE, Compared, Comparison, compare, median
from sonde.trends.comparison_words import (
    change_words,
    common_members,
    number_name,
    on_both_sides,
    percent,
    value_text,
    verdict_text,
)
from sonde.trends.doubted import doubt_sentences
from sonde.trends.environment import Difference, differences
from sonde.trends.sides import find_side


@click.command("compare")
@click.argument("before")
@click.argument("after")
@click.option(
    "--smallest",
    type=click.FloatRange(0.0, 0.99),
    default=SMALLEST_CHANGE,
    show_default=True,
    metavar="SHARE",
    help="Changes below this share of the rate are told as none.",
)
@click.option("--check", is_flag=True, help="Exit code 1 when something became slower.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a report.")
@click.option(
    "--unit",
    "units",
    multiple=True,
    metavar="NAME=COUNT",
    help="For the report: pieces of hardware of the file systems with NAME in their name, for rates by piece.",
)
@click.option("--system", metavar="SYSTEM", help="System file of the machine: which server and unit has which target.")
@kept_archive_option
@json_option
def command(
    before: str,
    after: str,
    smallest: float,
    check: bool,
    output: Path | None,
    units: tuple[str, ...],
    system: str | None,
    archive: Archive,
    as_json: bool,
) -> int:
    """Compare BEFORE with AFTER: each number they share as a ratio with its interval, and what differs around them.

    Each side is a run, a group of runs, "last", tag:WORD, baseline:NAME, plan:TEXT, or a time like
    2026-08-01..2026-08-31. Five runs a side are needed for an interval.

    \b
    Examples:
      sonde compare baseline:acceptance last
      sonde compare 2026-08-01..2026-08-31 2026-12-01..2026-12-31 -o autumn.html
      sonde compare tag:old-client tag:new-client --check
    """
    pieces = _pieces(units)
    machine = read_system(system_source(system)) if system else None
    archive.recover()
    with steps("reading runs") as step:
        old, new = find_side(archive, before, step), find_side(archive, after, step)
    found = compare(old, new, smallest)
    around = differences(found.before.runs, found.after.runs)
    targets = compared_targets(found, machine)
    # written before anything is printed: who reads only the first lines still gets it
    page = _report(found, around, targets, pieces, output, as_json) if output is not None else None
    if as_json:
        print_json(_document(found, around, targets))
    else:
        _print(found, around, targets)
    if page is not None:
        (messages() if as_json else results()).print(f"Report  {page}", soft_wrap=True)
    return FAILED if check and any(number.verdict == "slower" for number in found.numbers) else 0


def _pieces(units: tuple[str, ...]) -> dict[str, float]:
    """File system -> number of its pieces, from NAME=COUNT."""
    found = {}
    for text in units:
        name, equals, count = text.rpartition("=")
        try:
            found[name] = float(count)
        except ValueError:
            found[name] = 0.0
        if not equals or not name or not 0 < found[name] < float("inf"):
            raise UserError(f'--unit "{text}" is not NAME=COUNT; write it like --unit fs1=12.')
    return found


def _report(
    comparison: Comparison,
    around: list[Difference],
    targets: list[ComparedTargets],
    units: dict[str, float],
    output: Path,
    quiet: bool,
) -> Path:
    from sonde.charts.study import write_study
    from sonde.cli.present import write_with
    from sonde.trends.comparison_page import comparison_study

    return write_with(lambda: write_study(comparison_study(comparison, around, units, targets), output), output, quiet)


def _print(comparison: Comparison, around: list[Difference], targets: list[ComparedTargets]) -> None:
    console = results()
    keys = [number.key for number in comparison.numbers]
    console.print(f"Before  {_side(comparison.before.name, comparison.before.runs)}", soft_wrap=True)
    console.print(f"After   {_side(comparison.after.name, comparison.after.runs)}", soft_wrap=True)
    for name, value in common_members(keys):
        console.print(f"{name.capitalize():7} {value}", style="dim", soft_wrap=True)
    console.print()
    table = plain_table()
    for title in ("what", "op", "before", "runs", "after", "runs", "change [95 %]", "COV", ""):
        table.add_column(title, justify="left" if title in ("what", "op", "") else "right")
    for number in comparison.numbers:
        table.add_row(
            number_name(number.key, number.plan, keys),
            number.key.op,
            value_text(median(number.before), number.key.unit),
            str(len(number.before)),
            value_text(median(number.after), number.key.unit),
            str(len(number.after)),
            change_words(number.ratio),
            _scatter(number),
            verdict_text(number, bool(comparison.doubts_of(number))),
        )
    console.print(table)
    if on_both := on_both_sides(comparison):
        console.print(f"! {on_both}", style="yellow", soft_wrap=True)
    told: dict[tuple[str, str, str], list[str]] = {}
    for number in comparison.numbers:
        for difference in number.differs_in:
            told.setdefault(difference, []).append(number.key.phase)
    for (name, old, new), phases in told.items():
        where = ", ".join(dict.fromkeys(phases))
        console.print(f"{where}: not the same {name}: {old or '-'} → {new or '-'}", soft_wrap=True)
    for words in doubt_sentences(comparison.doubts):
        console.print(f"! Doubtful {words}", style="yellow", soft_wrap=True)
    for side, one in comparison.alone:
        console.print(f"Only {side} has {one.key.phase} ({one.key.op}).", style="dim", soft_wrap=True)
    print_targets(console, targets, keys)
    _print_around(around)


def _print_around(around: list[Difference]) -> None:
    console = results()
    console.print()
    if not around:
        console.print("Nothing that the records say about machines and programs differs.")
        return
    console.print("What else was different")
    table = plain_table()
    for title in ("", "before", "after", ""):
        table.add_column(title, overflow="fold")
    for one in around:
        table.add_row(one.name, one.before or "-", one.after or "-", "" if one.steady else "also within a side")
    console.print(table)


def _scatter(number: Compared) -> str:
    both = [f"{100 * one.value:.0f}" if one else "-" for one in (number.scatter_before, number.scatter_after)]
    return f"{both[0]} → {both[1]} %"


def _side(name: str, runs: Any) -> str:
    first, last = runs[0].started[:10], runs[-1].started[:10]
    when = first if first == last else f"{first} to {last}"
    return f"{name}: {len(runs)} run{'s' if len(runs) != 1 else ''}, {when}"


def _cov(found: Variation | None) -> dict[str, Any] | None:
    """JSON has no infinity: an upper end that is not known is null."""
    if found is None:
        return None
    return {**asdict(found), "high": None if found.high == float("inf") else found.high}


def _document(comparison: Comparison, around: list[Difference], targets: list[ComparedTargets]) -> dict[str, Any]:
    by_number = {id(one.number): one.as_json() for one in targets}
    return {
        "before": {"name": comparison.before.name, "runs": [run.id for run in comparison.before.runs]},
        "after": {"name": comparison.after.name, "runs": [run.id for run in comparison.after.runs]},
        "numbers": [
            {
                "series": number.key.id,
                "key": asdict(number.key),
                "plan": number.plan,
                "before": list(number.before),
                "after": list(number.after),
                "ratio": asdict(number.ratio),
                "change": percent(number.ratio.value - 1),
                "p_adjusted": number.p,
                "smallest_visible_drop": number.visible,
                "verdict": number.verdict,
                "doubts": [one.as_json() for one in comparison.doubts_of(number)],
                "differs_in": [dict(zip(("name", "before", "after"), one, strict=True)) for one in number.differs_in],
                "cov_before": _cov(number.scatter_before),
                "cov_after": _cov(number.scatter_after),
                **({"targets": by_number[id(number)]} if id(number) in by_number else {}),
            }
            for number in comparison.numbers
        ],
        "only_in": [{"side": side, "key": asdict(one.key)} for side, one in comparison.alone],
        "environment": [asdict(one) for one in around],
    }
