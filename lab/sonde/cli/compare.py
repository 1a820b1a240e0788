# SPDX-License-Identifier: Apache-2.0
"""``sonde compare``: compares two sides number by number, and their environments."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import OutputFile, add_existing_archive_option, add_json_option
from sonde.cli.run_selection import open_progress_bar
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_FAILED, UserError
from sonde.model.system import read_system
from sonde.model.units import format_count_with_noun
from sonde.stats.spread import CoefficientOfVariation
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json
from sonde.trends.archive_comparison import compare_archive_sides
from sonde.trends.comparison import MIN_CHANGE, Comparison, NumberComparison
from sonde.trends.comparison_text import (
    describe_shared_runs,
    describe_simulated_runs,
    format_change_interval,
    format_change_percent,
    format_change_verdict,
    format_history_rate,
    format_number_name,
    list_common_members,
    list_missing_interval_sentences,
)
from sonde.trends.environment import EnvironmentDifference
from sonde.trends.run_caveats import list_caveat_sentences
from sonde.trends.sides import ComparedSide
from sonde.trends.target_comparison import TargetComparison
from sonde.trends.target_tables import print_target_tables


@click.command("compare")
@click.argument("before")
@click.argument("after")
@click.option(
    "--smallest-change",
    type=click.FloatRange(0.0, 0.99),
    default=MIN_CHANGE,
    show_default=True,
    metavar="FRACTION",
    help="Changes smaller than this fraction count as no change.",
)
@click.option("--with-simulated", is_flag=True, help="Compare a simulated side with a measured one.")
@click.option("--check", is_flag=True, help="Exit code 1 if a number became slower.")
@click.option("-o", "--output", type=OutputFile(), metavar="FILE", help="Write a report.")
@click.option(
    "--unit",
    "units",
    multiple=True,
    metavar="NAME=COUNT",
    help="For the report: number of hardware units of the file systems with NAME in their name, for rates per unit.",
)
@click.option("--system", metavar="SYSTEM", help="System file of the machine, with the server and unit of each target.")
@add_existing_archive_option
@add_json_option
def command(
    before: str,
    after: str,
    smallest_change: float,
    with_simulated: bool,
    check: bool,
    output: Path | None,
    units: tuple[str, ...],
    system: str | None,
    archive: Archive,
    as_json: bool,
) -> int:
    """Compare BEFORE with AFTER: each common number as a ratio with its interval, and differences of the environment.

    Each side is a run, a group of runs, "last", tag:WORD, baseline:NAME, plan:TEXT, or a time like
    2026-08-01..2026-08-31. Five runs a side are needed for an interval. Simulated and measured runs are compared only
    with --with-simulated.

    \b
    Examples:
      sonde compare baseline:acceptance last
      sonde compare 2026-08-01..2026-08-31 2026-12-01..2026-12-31 -o autumn.html
      sonde compare tag:old-client tag:new-client --check

    More: sonde help tasks/compare
    """
    pieces = _parse_units(units)
    machine = read_system(find_system_file(system)) if system else None
    archive.recover_unfinished_runs()
    hint = "--with-simulated compares them all the same."
    with open_progress_bar("reading runs") as step:
        result = compare_archive_sides(archive, before, after, hint, smallest_change, with_simulated, machine, step)
    comparison, environment, targets = result.numbers, list(result.environment), list(result.targets)
    # Written before anything is printed, so that a closed pipe does not prevent it.
    page = (
        _write_comparison_page(comparison, environment, targets, pieces, output, as_json)
        if output is not None
        else None
    )
    if as_json:
        print_json(_convert_comparison_to_json(comparison, environment, targets))
    else:
        _print_comparison(comparison, environment, targets)
    if page is not None:
        (get_messages_console() if as_json else get_results_console()).print(f"Report  {page}", soft_wrap=True)
    return EXIT_FAILED if check and any(number.verdict == "slower" for number in comparison.numbers) else 0


def _parse_units(unit_texts: tuple[str, ...]) -> dict[str, float]:
    """Parses NAME=COUNT into the number of units by file system."""
    counts = {}
    for text in unit_texts:
        name, equals, count = text.rpartition("=")
        try:
            counts[name] = float(count)
        except ValueError:
            counts[name] = 0.0
        if not equals or not name or not 0 < counts[name] < float("inf"):
            raise UserError(f'--unit "{text}" is not NAME=COUNT; write it like --unit fs1=12.')
    return counts


def _write_comparison_page(
    comparison: Comparison,
    environment_differences: list[EnvironmentDifference],
    target_comparisons: list[TargetComparison],
    unit_count_by_file_system: dict[str, float],
    page_file: Path,
    quiet: bool,
) -> Path:
    from sonde.charts.study import write_study_page
    from sonde.cli.report_writing import write_page_with_status
    from sonde.trends.comparison_page import build_comparison_page

    return write_page_with_status(
        lambda: write_study_page(
            build_comparison_page(comparison, environment_differences, unit_count_by_file_system, target_comparisons),
            page_file,
        ),
        page_file,
        quiet,
    )


def _print_comparison(
    comparison: Comparison,
    environment_differences: list[EnvironmentDifference],
    target_comparisons: list[TargetComparison],
) -> None:
    console = get_results_console()
    keys = [number.key for number in comparison.numbers]
    console.print(f"Before  {_describe_side(comparison.before)}", soft_wrap=True)
    console.print(f"After   {_describe_side(comparison.after)}", soft_wrap=True)
    for name, value in list_common_members(keys):
        console.print(f"{name.capitalize():7} {value}", style="dim", soft_wrap=True)
    console.print()
    table = make_plain_table()
    has_scatter = any(number.scatter_before or number.scatter_after for number in comparison.numbers)
    scatter_title = ("COV",) if has_scatter else ()
    for title in ("what", "op", "before", "runs", "after", "runs", "change [95 %]", *scatter_title, ""):
        table.add_column(title, justify="left" if title in ("what", "op", "") else "right")
    for number in comparison.numbers:
        table.add_row(
            format_number_name(number.key, number.plan, keys),
            number.key.op,
            format_history_rate(number.levels_before_and_after[0], number.key.unit),
            str(len(number.before)),
            format_history_rate(number.levels_before_and_after[1], number.key.unit),
            str(len(number.after)),
            format_change_interval(number.ratio),
            *([_format_scatter(number)] if has_scatter else []),
            format_change_verdict(number, bool(comparison.list_caveats_of_number(number))),
        )
    console.print(table)
    for sentence in list_missing_interval_sentences(comparison.numbers):
        console.print(sentence, style="yellow", soft_wrap=True)
    if has_scatter:
        console.print("COV: standard deviation divided by mean, before → after.", style="dim", soft_wrap=True)
    if on_both := describe_shared_runs(comparison):
        console.print(f"! {on_both}", style="yellow", soft_wrap=True)
    phases_by_difference: dict[tuple[str, str, str], list[str]] = {}
    for number in comparison.numbers:
        for difference in number.differs_in:
            phases_by_difference.setdefault(difference, []).append(number.key.phase)
    for (name, old, new), phases in phases_by_difference.items():
        phase_list = ", ".join(dict.fromkeys(phases))
        console.print(f"{phase_list}: not the same {name}: {old or '-'} → {new or '-'}", soft_wrap=True)
    for sentence in list_caveat_sentences(comparison.caveats):
        console.print(f"! Doubtful {sentence}", style="yellow", soft_wrap=True)
    for side, unmatched in comparison.unpaired:
        console.print(f"Only {side} has {unmatched.key.phase} ({unmatched.key.op}).", style="dim", soft_wrap=True)
    print_target_tables(console, target_comparisons, keys)
    _print_environment(environment_differences)


def _print_environment(environment_differences: list[EnvironmentDifference]) -> None:
    console = get_results_console()
    console.print()
    if not environment_differences:
        console.print("The recorded environments do not differ.")
        return
    console.print("Differences of the environment")
    table = make_plain_table()
    for title in ("", "before", "after", ""):
        table.add_column(title, overflow="fold")
    for difference in environment_differences:
        table.add_row(
            difference.name,
            difference.before or "-",
            difference.after or "-",
            "" if difference.steady else "also within a side",
        )
    console.print(table)


def _format_scatter(number_comparison: NumberComparison) -> str:
    percents = [
        f"{100 * variation.value:.0f}" if variation else "-"
        for variation in (number_comparison.scatter_before, number_comparison.scatter_after)
    ]
    return f"{percents[0]} → {percents[1]} %"


def _describe_side(side: ComparedSide) -> str:
    runs, origin = side.runs, describe_simulated_runs(side)
    first_day, last_day = runs[0].started[:10], runs[-1].started[:10]
    period = first_day if first_day == last_day else f"{first_day} to {last_day}"
    return f"{side.name}: {format_count_with_noun(len(runs), 'run')}, {period}" + (f", {origin}" if origin else "")


def _convert_side_to_json(compared_side: ComparedSide) -> dict[str, Any]:
    return {
        "name": compared_side.name,
        "runs": [run.id for run in compared_side.runs],
        "simulated": compared_side.is_simulated,
        "simulated_left_out": compared_side.left_out,
    }


def _convert_variation_to_json(variation: CoefficientOfVariation | None) -> dict[str, Any] | None:
    """Returns the JSON members; an unknown upper end is null, since JSON has no infinity."""
    if variation is None:
        return None
    return {**asdict(variation), "high": None if variation.high == float("inf") else variation.high}


def _convert_comparison_to_json(
    comparison: Comparison,
    environment_differences: list[EnvironmentDifference],
    target_comparisons: list[TargetComparison],
) -> dict[str, Any]:
    by_number = {id(item.number): item.to_json() for item in target_comparisons}
    return {
        "before": _convert_side_to_json(comparison.before),
        "after": _convert_side_to_json(comparison.after),
        "numbers": [
            {
                "history": number.key.id,
                "key": asdict(number.key),
                "plan": number.plan,
                "before": list(number.before),
                "after": list(number.after),
                "levels": dict(zip(("before", "after"), number.levels_before_and_after, strict=True)),
                "ratio": asdict(number.ratio),
                "change": format_change_percent(number.ratio.value - 1),
                "p_adjusted": number.p,
                "smallest_visible_drop": number.visible,
                "verdict": number.verdict,
                "about": number.classification_text,
                "caveats": [item.to_json() for item in comparison.list_caveats_of_number(number)],
                "differs_in": [dict(zip(("name", "before", "after"), item, strict=True)) for item in number.differs_in],
                "cov_before": _convert_variation_to_json(number.scatter_before),
                "cov_after": _convert_variation_to_json(number.scatter_after),
                **({"targets": by_number[id(number)]} if id(number) in by_number else {}),
            }
            for number in comparison.numbers
        ],
        "only_in": [{"side": side, "key": asdict(item.key)} for side, item in comparison.unpaired],
        "environment": [asdict(item) for item in environment_differences],
    }
