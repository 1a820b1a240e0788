# SPDX-License-Identifier: Apache-2.0
"""``sonde check``: measures the file system of a directory and classifies the numbers."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sonde.cli.options import add_archive_option, add_json_option, add_report_option
from sonde.cli.report_writing import write_report_or_warn
from sonde.conduct.run import RunSetup, make_engine_failure
from sonde.experiments.check.check import CheckObserver, CheckResult, FileSystemCheck, store_check_result
from sonde.experiments.check.figures import CheckFigure
from sonde.experiments.locations import require_existing_directory
from sonde.findings.caveats import format_caveat, label_finding
from sonde.findings.classification import Classification
from sonde.launch.engine import find_engine
from sonde.model.errors import EXIT_INTERRUPTED, EXIT_OK, format_as_sentence
from sonde.model.lines import Finding
from sonde.model.plan import Plan
from sonde.model.units import format_bytes, format_count_with_noun, format_latency, format_ops, format_rate, format_wait
from sonde.store.archive import Archive
from sonde.terminal.run_display import Display, make_display
from sonde.terminal.run_tables import NUMBER_CLASS_STYLES
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

# How the rate of anything else moved is in the report.
_CLASSIFICATIONS_WITH_VARIATION = (Classification.STORAGE, Classification.BURST, Classification.MEMORY)
# Terminals of at least this width show latencies in a column.
_LATENCY_COLUMN_WIDTH = 120


@click.command("check")
@click.argument("directory")
@click.option(
    "--full",
    is_flag=True,
    help="At least 60 s a phase, and more data than memory holds: numbers of the storage, not of its caches.",
)
@add_archive_option
@add_report_option
@click.option("-q", "--quiet", is_flag=True, help="No progress: only the result.")
@add_json_option
def command(directory: str, full: bool, archive: Archive, report: bool, quiet: bool, as_json: bool) -> int:
    """Measure the file system under DIRECTORY, in about a minute.

    Measures sequential writes and reads (one task, then all cores), random 4 KiB access and small files. Numbers of the
    page cache and of the storage are separate, and each number states how far it can be trusted. Files are written into
    a new directory below DIRECTORY and removed afterwards; nothing else is changed. Space and time depend on the speed
    of the storage and are printed before the start: for example 730 MiB and 40 s on a disk of 300 MB/s.

    \b
    Examples:
      sonde check /scratch
      sonde check . --full
      sonde check /scratch --json > check.json

    More: sonde help tasks/measure
    """
    target = require_existing_directory(directory)
    display = make_display(get_messages_console(), quiet)
    setup = RunSetup(find_engine(), archive, on_stop=display.report_stop_signal)
    archive.recover_unfinished_runs()
    try:
        result = FileSystemCheck(target, setup, full, _make_check_observer(display, full)).measure_all_parts()
    finally:
        display.end_display()
    page = _store_result_and_report(result, archive, report, quiet)
    if as_json:
        print_json({**result.to_json(), "report": str(page) if page else None})
    else:
        print_check_result(get_results_console(), result, page)
    if result.exit_code != EXIT_OK:
        raise make_engine_failure(result.exit_code, _describe_failed_check(result))
    return EXIT_OK


def _make_check_observer(display: Display, full: bool) -> CheckObserver:
    ends: float | None = None

    def begin_part(part_title: str, part_number: int, part_count: int, plan: Plan) -> None:
        if part_count:
            display.set_run_position(
                part_number, part_count, max(0.0, ends - time.monotonic()) if ends is not None else None
            )
        display.begin_run(part_title, part_number, part_count, plan)

    def print_expected_time_and_space(seconds: float, space_bytes: int) -> None:
        nonlocal ends
        ends = time.monotonic() + seconds
        wait = format_wait(round(seconds, -1) or seconds)
        display.print_message(
            f"This takes about {wait} and up to {format_bytes(space_bytes)} of space{' (--full)' if full else ''}."
        )

    return CheckObserver(
        on_part=begin_part, on_line=display.show_record_line, on_expected=print_expected_time_and_space
    )


def _store_result_and_report(
    check_result: CheckResult, archive: Archive, writes_report: bool, quiet: bool
) -> Path | None:
    reports = store_check_result(check_result, archive)
    if not writes_report:
        return None
    title = f"Check of {check_result.target.resolve()}"
    return write_report_or_warn(
        [run.folder for run in check_result.runs], reports / f"{check_result.group}.html", title, quiet
    )


def _describe_failed_check(check_result: CheckResult) -> str:
    if check_result.exit_code == EXIT_INTERRUPTED:
        return "The check was interrupted; finished measurements are stored."
    failed = [run for run in check_result.runs if run.exit_code != EXIT_OK]
    more_failures = f" ({len(failed) - 1} more parts failed.)" if len(failed) > 1 else ""
    return f"{failed[0].text}{more_failures}" if failed else "A part of the check failed."


def print_check_result(console: Console, check_result: CheckResult, report_page: Path | None) -> None:
    """Prints the headline, a table of all figures, their caveats, and where the runs are stored."""
    console.print()
    head = Text(f"{check_result.target}", style="bold")
    head.append(f"  {check_result.machine.file_system}, {check_result.machine.cpus} cores", style="dim")
    console.print(head)
    console.print(check_result.headline, soft_wrap=True)
    console.print()
    console.print(_make_figure_table(check_result.figures, console.width >= _LATENCY_COLUMN_WIDTH))
    console.print()
    for caveat in _list_caveat_lines(check_result.figures):
        console.print(Text(f"! {caveat}", style="yellow"), soft_wrap=True)
    for note in check_result.notes:
        console.print(Text(f"! {note}", style="yellow"), soft_wrap=True)
    if any(figure.classification is Classification.BURST for figure in check_result.figures):
        text = (
            "A burst of seconds may have ended in a cache of disks or servers; `sonde check DIR --full` takes longer."
        )
        console.print(Text(text, style="dim"), soft_wrap=True)
    console.print(
        Text(f"Stored as {check_result.group}; `sonde show {check_result.group}` prints every phase.", style="dim"),
        soft_wrap=True,
    )
    if report_page is not None:
        console.print(f"Report  {report_page}", soft_wrap=True)


def _list_caveat_lines(check_figures: list[CheckFigure]) -> list[str]:
    """Lines with the caveats of figures; a caveat of several figures is printed once, with the text of the first."""
    kinds: dict[str, list[Finding]] = {}
    for figure in check_figures:
        for caveat in figure.caveats:
            kinds.setdefault(caveat.id, []).append(caveat)
    lines = []
    for name, caveats in kinds.items():
        text = f"{format_as_sentence(format_caveat(caveats[0]))} {format_as_sentence(caveats[0].advice)}".strip()
        lines.append(f"{label_finding(name)} ({format_count_with_noun(len(caveats), 'figure')}): {text}")
    return lines


def _make_figure_table(check_figures: list[CheckFigure], is_wide: bool) -> Table:
    table = make_plain_table(shows_header=False)
    table.add_column("figure")  # titles of --export
    table.add_column("value", justify="right", no_wrap=True)
    if is_wide:
        table.add_column("latency", no_wrap=True)
        table.add_column("phase", no_wrap=True)
    table.add_column("classification")
    section = ""
    for figure in check_figures:
        if figure.section != section:
            if section:
                table.add_row()
            section = figure.section
            table.add_row(Text(section, style="bold"))
        latency, text = (
            _format_latency(figure),
            Text(figure.classification_clause, style=NUMBER_CLASS_STYLES[figure.classification]),
        )
        if figure.caveats:
            labels = dict.fromkeys(label_finding(finding.id) for finding in figure.caveats)
            text.append(f"\ndoubtful: {', '.join(labels)}", style="yellow")
        for sentence_of_variation in (
            (figure.variation, figure.stragglers) if figure.classification in _CLASSIFICATIONS_WITH_VARIATION else ()
        ):
            if sentence_of_variation and not sentence_of_variation.startswith("Steady"):
                text.append(f"\n{sentence_of_variation}", style="yellow")
        if latency and not is_wide:
            text.append(f"\n{latency}", style="dim")
        cells = [Text(f"  {figure.label}"), Text(_format_figure(figure), style="bold")]
        # the id of the phase, by which show, compare and query name the number
        details = [Text(latency, style="dim"), Text(figure.phase, style="dim")] if is_wide else []
        table.add_row(*cells, *details, text)
    return table


def _format_latency(check_figure: CheckFigure) -> str:
    if check_figure.p50_ns is None or check_figure.p99_ns is None:
        return ""
    prefix = "open " if check_figure.key.startswith(("create", "open")) else ""
    return f"{prefix}{format_latency(check_figure.p50_ns)} median, {format_latency(check_figure.p99_ns)} p99"


def _format_figure(check_figure: CheckFigure) -> str:
    if check_figure.value is None:
        return "-"
    if check_figure.unit == "bytes_per_s":
        return format_rate(check_figure.value)
    return format_ops(check_figure.value).replace("op/s", "files/s" if check_figure.unit == "files_per_s" else "op/s")
