# SPDX-License-Identifier: Apache-2.0
"""``sonde check``: the main job. How fast is the file system under a directory, and what do the numbers count?"""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sonde.cli.options import archive_option, existing_directory, json_option, report_option
from sonde.cli.present import make_report
from sonde.conduct.run import Setup, failure
from sonde.experiments.check.check import Check, CheckResult, Watcher
from sonde.experiments.check.figures import Figure
from sonde.findings.judgement import doubt_words
from sonde.findings.standing import Standing
from sonde.launch.engine import find_engine
from sonde.model.errors import DONE, INTERRUPTED, sentence
from sonde.model.lines import Finding
from sonde.model.plan import Plan
from sonde.model.units import counted, format_bytes, format_latency, format_ops, format_rate, format_wait
from sonde.store.archive import Archive
from sonde.store.durable import write_json
from sonde.store.shards import REPORTS
from sonde.terminal.live import Display, make_display
from sonde.terminal.run_tables import STYLES
from sonde.terminal.screen import messages, plain_table, print_json, results

# How the rate of anything else moved is in the report.
_TELLING = (Standing.STORAGE, Standing.BURST, Standing.MEMORY)
# From this width on latencies have a column of their own.
_ROOMY = 120


@click.command("check")
@click.argument("directory")
@click.option(
    "--full",
    is_flag=True,
    help="At least 60 s a phase, and more data than memory holds: numbers of the storage, not of its caches.",
)
@archive_option
@report_option
@click.option("-q", "--quiet", is_flag=True, help="No progress: only the result.")
@json_option
def command(directory: str, full: bool, archive: Archive, report: bool, quiet: bool, as_json: bool) -> int:
    """Measure the file system under DIRECTORY, in about a minute.

    Sequential writes and reads (one task, then all cores), random 4 KiB access, small files. What the page cache serves
    and what the storage serves are kept apart, and each number says in plain words how far it can be trusted. Files are
    written below DIRECTORY, in a directory of its own, and removed afterwards; nothing else is touched.

    \b
    Examples:
      sonde check /scratch
      sonde check . --full
      sonde check /scratch --json > check.json
    """
    target = existing_directory(directory)
    display = make_display(messages(), quiet)
    setup = Setup(find_engine(), archive, stopping=display.stopping)
    archive.recover()
    try:
        result = Check(target, setup, full, _watcher(display, full)).run()
    finally:
        display.close()
    page = _kept(result, archive, report, quiet)
    if as_json:
        print_json({**result.as_json(), "report": str(page) if page else None})
    else:
        print_result(results(), result, page)
    if result.exit_code != DONE:
        raise failure(result.exit_code, _why(result))
    return DONE


def _watcher(display: Display, full: bool) -> Watcher:
    ends: float | None = None

    def part(title: str, number: int, count: int, plan: Plan) -> None:
        if count:
            display.whole(number, count, max(0.0, ends - time.monotonic()) if ends is not None else None)
        display.begin(title, number, count, plan)

    def expected(seconds: float, space: int) -> None:
        nonlocal ends
        ends = time.monotonic() + seconds
        wait = format_wait(round(seconds, -1) or seconds)
        display.say(f"This takes about {wait} and up to {format_bytes(space)} of space{' (--full)' if full else ''}.")

    return Watcher(part=part, line=display.line, expected=expected)


def _kept(result: CheckResult, archive: Archive, report: bool, quiet: bool) -> Path | None:
    place = archive.root / REPORTS
    place.mkdir(exist_ok=True)
    write_json(place / f"{result.group}.json", result.as_json())
    if not report:
        return None
    title = f"Check of {result.target.resolve()}"
    return make_report([run.folder for run in result.runs], place / f"{result.group}.html", title, quiet)


def _why(result: CheckResult) -> str:
    if result.exit_code == INTERRUPTED:
        return "The check was interrupted; what was measured until then is kept."
    failed = [run for run in result.runs if run.exit_code != DONE]
    more = f" ({len(failed) - 1} more parts failed.)" if len(failed) > 1 else ""
    return f"{failed[0].text}{more}" if failed else "A part of the check failed."


def print_result(console: Console, result: CheckResult, page: Path | None) -> None:
    """The result for people: the headline, a table of all figures, what speaks against them, and where it is kept."""
    console.print()
    head = Text(f"{result.target}", style="bold")
    head.append(f"  {result.machine.file_system}, {result.machine.cpus} cores", style="dim")
    console.print(head)
    console.print(result.headline, soft_wrap=True)
    console.print()
    console.print(_table(result.figures, console.width >= _ROOMY))
    console.print()
    for doubt in _doubts(result.figures):
        console.print(Text(f"! {doubt}", style="yellow"), soft_wrap=True)
    for note in result.notes:
        console.print(Text(f"! {note}", style="yellow"), soft_wrap=True)
    if any(figure.standing is Standing.BURST for figure in result.figures):
        text = (
            "A burst of seconds may have ended in a cache of disks or servers; `sonde check DIR --full` takes longer."
        )
        console.print(Text(text, style="dim"), soft_wrap=True)
    console.print(
        Text(f"Kept as {result.group}; `sonde show {result.group}` has every phase.", style="dim"), soft_wrap=True
    )
    if page is not None:
        console.print(f"Report  {page}", soft_wrap=True)


def _doubts(figures: list[Figure]) -> list[str]:
    """What speaks against figures: what was found of several is said once, in the words of the first."""
    kinds: dict[str, list[Finding]] = {}
    for figure in figures:
        for doubt in figure.doubts:
            kinds.setdefault(doubt.id, []).append(doubt)
    said = []
    for name, doubts in kinds.items():
        words = f"{sentence(doubt_words(doubts[0]))} {sentence(doubts[0].advice)}".strip()
        said.append(f"{name} ({counted(len(doubts), 'figure')}): {words}")
    return said


def _table(figures: list[Figure], roomy: bool) -> Table:
    table = plain_table(show_header=False)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    if roomy:
        table.add_column(no_wrap=True)
    table.add_column()
    section = ""
    for figure in figures:
        if figure.section != section:
            if section:
                table.add_row()
            section = figure.section
            table.add_row(Text(section, style="bold"))
        latency, verdict = _latency(figure), Text(figure.words, style=STYLES[figure.standing])
        if figure.doubts:
            verdict.append(f"\ndoubtful: {', '.join(dict.fromkeys(one.id for one in figure.doubts))}", style="yellow")
        for remark in (figure.moved, figure.slow) if figure.standing in _TELLING else ():
            if remark and not remark.startswith("Steady"):
                verdict.append(f"\n{remark}", style="yellow")
        if latency and not roomy:
            verdict.append(f"\n{latency}", style="dim")
        cells = [Text(f"  {figure.label}"), Text(_value(figure), style="bold")]
        table.add_row(*cells, *([Text(latency, style="dim")] if roomy else []), verdict)
    return table


def _latency(figure: Figure) -> str:
    if figure.p50_ns is None or figure.p99_ns is None:
        return ""
    what = "open " if figure.key.startswith(("create", "open")) else ""
    return f"{what}{format_latency(figure.p50_ns)} median, {format_latency(figure.p99_ns)} p99"


def _value(figure: Figure) -> str:
    if figure.value is None:
        return "-"
    if figure.unit == "bytes_per_s":
        return format_rate(figure.value)
    return format_ops(figure.value).replace("op/s", "files/s" if figure.unit == "files_per_s" else "op/s")
