# SPDX-License-Identifier: Apache-2.0
"""``sonde baseline``: the runs that others are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sonde.cli.options import VerbGroup, add_existing_archive_option, add_json_option
from sonde.model.errors import UserError
from sonde.model.simulation import is_simulated_document
from sonde.model.units import format_count_with_noun
from sonde.stats.spread import estimate_coefficient_of_variation
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog
from sonde.store.selection import Selection
from sonde.store.summary import Summary, read_summary
from sonde.store.tags import change_tags
from sonde.terminal.screen import get_results_console, make_plain_table, print_json
from sonde.trends.baseline_gate import MIN_BASELINE_RUNS, compute_median_and_limit
from sonde.trends.comparison_text import format_history_rate, format_number_name
from sonde.trends.sides import BASELINE_PREFIX, SideValues, collect_values_by_number, find_compared_side


@click.group("baseline", cls=VerbGroup)
def command() -> None:
    """Manage the runs that others are compared with. A baseline is the tag baseline:NAME on its runs.

    \b
    Examples:
      sonde baseline set acceptance 2026-08-20..2026-08-23
      sonde baseline show acceptance
      sonde baseline rm acceptance

    More: sonde help tasks/watch
    """


@command.command("set")
@click.argument("name")
@click.argument("runs", nargs=-1, required=True)
@click.option("--add", is_flag=True, help="Keep its present runs.")
@add_existing_archive_option
def set_command(name: str, runs: tuple[str, ...], add: bool, archive: Archive) -> int:
    """Make RUNS the baseline NAME; its earlier runs are removed from it, unless --add is given.

    Each of RUNS is a run, a group of runs, "last", tag:WORD, plan:TEXT or a time like 2026-08-01..2026-08-31.

    \b
    Examples:
      sonde baseline set acceptance 2026-08-20..2026-08-23
      sonde baseline set acceptance last --add
    """
    archive.recover_unfinished_runs()
    tag = _make_baseline_tag(name)
    chosen = {run.folder: run for text in runs for run in find_compared_side(archive, text).runs}
    if not collect_values_by_number(list(chosen.values())):
        raise UserError(
            f"None of {', '.join(runs)} holds a number that can be compared (lost, failed or without storage); a"
            f" baseline needs runs that were done."
        )
    remaining = [folder for folder in _find_baseline_runs(archive, tag) if folder not in chosen] if add else []
    _require_one_origin([*chosen.values(), *(read_summary(folder) for folder in remaining)])
    for folder in _find_baseline_runs(archive, tag):
        if folder not in chosen and not add:
            change_tags(folder, removed_tags=[tag])
    for folder in chosen:
        change_tags(folder, added_tags=[tag])
    _print_baseline(archive, tag, as_json=False)
    return 0


@command.command("show")
@click.argument("name", required=False)
@add_existing_archive_option
@add_json_option
def show_command(name: str | None, archive: Archive, as_json: bool) -> int:
    """Show the numbers of the baseline NAME with the limits that `sonde gate` derives from them; without NAME all
    baselines.

    \b
    Examples:
      sonde baseline show
      sonde baseline show acceptance --export csv
    """
    archive.recover_unfinished_runs()
    if name is not None:
        if not _find_baseline_runs(archive, _make_baseline_tag(name)):
            raise UserError(_describe_unknown_baseline(name))
        _print_baseline(archive, _make_baseline_tag(name), as_json)
        return 0
    counts: dict[str, int] = {}
    for row in Catalog(archive.root).read_run_table(["tags"]).to_pylist():
        for tag in row["tags"] or ():
            if tag.startswith(BASELINE_PREFIX):
                counts[tag.removeprefix(BASELINE_PREFIX)] = counts.get(tag.removeprefix(BASELINE_PREFIX), 0) + 1
    if as_json:
        print_json([{"name": baseline, "runs": count} for baseline, count in sorted(counts.items())])
    elif counts:
        table = make_plain_table()
        table.add_column("baseline")
        table.add_column("runs", justify="right")
        for baseline, count in sorted(counts.items()):
            table.add_row(baseline, str(count))
        get_results_console().print(table)
    else:
        get_results_console().print("There is no baseline; `sonde baseline set NAME RUN...` makes one.")
    return 0


@command.command("rm")
@click.argument("name")
@add_existing_archive_option
def remove_command(name: str, archive: Archive) -> int:
    """Delete the baseline NAME. Its runs stay in the archive.

    \b
    Examples:
      sonde baseline rm acceptance
      sonde baseline rm acceptance --archive /project/archive
    """
    archive.recover_unfinished_runs()
    tag = _make_baseline_tag(name)
    folders = _find_baseline_runs(archive, tag)
    if not folders:
        raise UserError(_describe_unknown_baseline(name))
    for folder in folders:
        change_tags(folder, removed_tags=[tag])
    get_results_console().print(
        f"The baseline {name} is deleted; its {format_count_with_noun(len(folders), 'run')} stay in the archive."
    )
    return 0


def _require_one_origin(run_summaries: Sequence[Summary]) -> None:
    """Raises UserError unless all runs are measured or all are simulated."""
    simulated = sum(is_simulated_document(run.document) for run in run_summaries)
    if 0 < simulated < len(run_summaries):
        raise UserError(
            f"{simulated} of {format_count_with_noun(len(run_summaries), 'run')} are simulated: a baseline is of "
            "measured runs or of simulated runs, never of both. `sonde list` shows which are simulated."
        )


def _describe_unknown_baseline(baseline_name: str) -> str:
    return f'There is no baseline "{baseline_name}"; `sonde baseline show` lists those there are.'


def _make_baseline_tag(baseline_name: str) -> str:
    return baseline_name if baseline_name.startswith(BASELINE_PREFIX) else f"{BASELINE_PREFIX}{baseline_name}"


def _find_baseline_runs(archive: Archive, baseline_tag: str) -> list[Path]:
    rows = Catalog(archive.root).read_run_table(["folder"], Selection(tags=(baseline_tag,))).to_pylist()
    return [archive.root / row["folder"] for row in rows]


def _compute_gate_limit(side_values: SideValues) -> float | None:
    """Returns the limit of the gate; None if too few runs have a number that may be judged."""
    values = side_values.select_judged_values().values
    return compute_median_and_limit(values)[1] if len(values) >= MIN_BASELINE_RUNS else None


def _explain_missing_limit(side_values: SideValues) -> str:
    few = len(side_values.select_judged_values().values) == len(side_values.values)
    return f"needs {MIN_BASELINE_RUNS} runs" if few else f"none: {side_values.classification_text}"


def _print_baseline(archive: Archive, baseline_tag: str, as_json: bool) -> None:
    side = find_compared_side(archive, baseline_tag)
    numbers = sorted(collect_values_by_number(side.runs), key=lambda number: number.key)
    keys = [number.key for number in numbers]
    if as_json:
        print_json(
            {
                "name": baseline_tag.removeprefix(BASELINE_PREFIX),
                "runs": [run.id for run in side.runs],
                "simulated": side.is_simulated,
                "numbers": [
                    {
                        "history": number.key.id,
                        "phase": number.key.phase,
                        "op": number.key.op,
                        "unit": number.key.unit,
                        "values": list(number.values),
                        "median": compute_median_and_limit(number.values)[0],
                        "limit": _compute_gate_limit(number),
                        "about": number.classification_text,
                    }
                    for number in numbers
                ],
            }
        )
        return
    console = get_results_console()
    origin = ", simulated" if side.is_simulated else ""
    console.print(
        f"{baseline_tag.removeprefix(BASELINE_PREFIX)}: {format_count_with_noun(len(side.runs), 'run')}{origin}",
        soft_wrap=True,
    )
    table = make_plain_table()
    for title in ("what", "op", "runs", "median", "COV", "limit of the gate"):
        table.add_column(title, justify="left" if title in ("what", "op") else "right")
    for number in numbers:
        scatter = (
            f"{100 * estimate_coefficient_of_variation(number.values).value:.1f} %" if len(number.values) > 1 else "-"
        )
        value = _compute_gate_limit(number)
        limit = format_history_rate(value, number.key.unit) if value is not None else _explain_missing_limit(number)
        middle = format_history_rate(compute_median_and_limit(number.values)[0], number.key.unit)
        table.add_row(
            format_number_name(number.key, number.plan, keys),
            number.key.op,
            str(len(number.values)),
            middle,
            scatter,
            limit,
        )
    console.print(table)
