# SPDX-License-Identifier: Apache-2.0
"""``sonde gate``: checks a run against a baseline or a limit, with an exit code for scripts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import add_archive_option, add_json_option
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_FAILED, EXIT_NOTHING_COMPARED, EXIT_OK, UserError
from sonde.model.units import format_count_with_noun
from sonde.store.archive import Archive
from sonde.store.summary import Summary
from sonde.terminal.encoding import print_plain_text
from sonde.terminal.run_display import make_display
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json
from sonde.trends.archive_gate import RETEST_ROLE, GateVerdict, gate_against_baseline, gate_against_limits, repeat_run
from sonde.trends.baseline_gate import MIN_CONSECUTIVE_RUNS, GateCheck
from sonde.trends.comparison_text import format_change_percent, format_history_rate, format_number_name
from sonde.trends.gate_ci_output import (
    ANNOTATION_FORMATTERS,
    GateCase,
    describe_baseline_checks,
    describe_limit_checks,
    format_junit_document,
)
from sonde.trends.run_caveats import CaveatCount, count_caveats, count_caveats_of_numbers, list_caveat_sentences
from sonde.trends.sides import ComparedSide
from sonde.trends.stated_limits import LimitCheck, StatedLimit, parse_limit


@dataclass(frozen=True)
class GateOutput:
    """Where and in which formats the verdicts go, beside or in place of the table."""

    as_json: bool
    junit: Path | None
    annotate: str | None

    def require_writable_junit_folder(self) -> None:
        """Raises UserError if the JUnit file cannot be created, before a run is repeated for minutes."""
        if self.junit is not None and not os.access(self.junit.parent, os.W_OK | os.X_OK):
            reason = "is not writable" if self.junit.parent.is_dir() else "does not exist"
            raise UserError(f"{self.junit} cannot be written: the directory {self.junit.parent} {reason}.")

    def write_junit_and_annotations(
        self, gate_cases: Sequence[GateCase], reference_name: str, caveat_counts: Sequence[CaveatCount]
    ) -> None:
        """Writes the JUnit file and prints the annotations. Raises UserError if the file cannot be written."""
        sentences = list_caveat_sentences(caveat_counts)
        if self.junit is not None:
            try:
                write_file(self.junit, format_junit_document(gate_cases, reference_name, sentences))
            except OSError as error:
                raise UserError(f"{self.junit} cannot be written: {error.strerror}.") from None
        if self.annotate and (text := ANNOTATION_FORMATTERS[self.annotate](gate_cases, sentences)):
            print_plain_text(text)


@click.command("gate")
@click.argument("run", default="last")
@click.option(
    "--baseline", metavar="NAME", default="", help="Baseline to compare with, or a side as in `sonde compare`."
)
@click.option(
    "--at-least",
    "limits",
    metavar="PHASE=RATE",
    multiple=True,
    help="Absolute limit instead of a baseline, like write=10GB/s-10% or stat=20kop/s. Several are possible.",
)
@click.option(
    "--retests",
    type=click.IntRange(0, 20),
    default=MIN_CONSECUTIVE_RUNS - 1,
    show_default=True,
    metavar="N",
    help="How often to repeat a slow run at once; the gate fails if all runs are too slow. 0: never.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write JUnit XML too: a test case for each number; too slow is a failure, not judged is skipped.",
)
@click.option(
    "--annotate",
    type=click.Choice(tuple(ANNOTATION_FORMATTERS)),
    help="Print annotations for a CI service: github adds workflow commands, gitlab prints Code Quality JSON only.",
)
@add_archive_option
@add_json_option
def command(
    run: str,
    baseline: str,
    limits: tuple[str, ...],
    retests: int,
    junit: Path | None,
    annotate: str | None,
    archive: Archive,
    as_json: bool,
) -> int:
    """Check RUN against a baseline or a limit. Exit code 0: good; 1: too slow, as were all repetitions; 6: no number
    of RUN is in the baseline, or none could be judged.

    The limit of each number is the median of the baseline minus four robust standard deviations, but at least 15 %. One
    slow run may be chance: the same plan is repeated at once until a run is good or all were too slow. Imported runs
    have no plan and are judged as they are. Numbers that are not of storage (cached, too short, …) are not judged.

    \b
    Examples:
      sonde run quick --on /scratch && sonde gate last --baseline acceptance
      sonde gate last --baseline acceptance --retests 0 --json
      sonde gate last --at-least write=10GB/s-10% --at-least read=8GB/s
      sonde gate last --baseline acceptance --junit gate.xml --annotate github

    More: sonde help tasks/watch
    """
    archive.recover_unfinished_runs()
    if bool(baseline) == bool(limits):
        raise UserError("Say what to compare with: --baseline NAME, or --at-least PHASE=RATE.")
    if annotate and as_json:
        raise UserError("--json and --annotate exclude each other; give one of them.")
    output = GateOutput(as_json, junit, annotate)
    output.require_writable_junit_folder()
    if limits:
        return _gate_against_limits(run, [parse_limit(item) for item in limits], retests, archive, output)
    verdict = gate_against_baseline(archive, run, baseline, retests, _make_repeat_run_function(archive, as_json))
    reference, now, judged = verdict.reference, verdict.now, verdict.checks
    assert reference is not None
    caveats = _find_gate_caveats(now, [(item.key.phase, item.runs) for item in judged], reference)
    if as_json:
        print_json(_convert_gate_to_json(verdict, reference, caveats))
    elif annotate != "gitlab":
        _print_gate_table(verdict, reference, caveats)
    output.write_junit_and_annotations(describe_baseline_checks(judged), reference.name, caveats)
    return _choose_exit_code(verdict)


def _choose_exit_code(verdict: GateVerdict[Any]) -> int:
    return {True: EXIT_OK, False: EXIT_FAILED, None: EXIT_NOTHING_COMPARED}[verdict.is_good]


def _make_repeat_run_function(archive: Archive, is_quiet: bool) -> Callable[[Summary], Summary]:
    """Returns a function that runs the plan of a run once more and shows the progress."""

    def repeat_gated_run(run_summary: Summary) -> Summary:
        display = make_display(get_messages_console(), is_quiet)
        try:
            return repeat_run(
                run_summary,
                archive,
                display.show_record_line,
                display.report_stop_signal,
                lambda plan: display.begin_run(f"{plan.title or plan.id}, again", 1, 1, plan),
            )
        finally:
            display.end_display()

    return repeat_gated_run


def _gate_against_limits(
    run_reference: str, limits: Sequence[StatedLimit], max_retests: int, archive: Archive, output: GateOutput
) -> int:
    """Checks runs against given limits: one run that reaches a limit is enough."""
    verdict = gate_against_limits(
        archive, run_reference, limits, max_retests, _make_repeat_run_function(archive, output.as_json)
    )
    now, limit_results = verdict.now, verdict.checks
    caveats = _find_gate_caveats(now, [(item.phase, item.runs) for item in limit_results])
    if output.as_json:
        members = {"limits": [asdict(item) for item in limit_results], "caveats": [item.to_json() for item in caveats]}
        print_json({**_convert_verdict_to_json(verdict), "runs": [item.id for item in now.runs], **members})
    elif output.annotate != "gitlab":
        _print_limits(verdict, caveats)
    output.write_junit_and_annotations(
        describe_limit_checks(limit_results, now.runs[-1].plan), "the given limits", caveats
    )
    return _choose_exit_code(verdict)


def _print_limits(verdict: GateVerdict[LimitCheck], caveat_counts: Sequence[CaveatCount]) -> None:
    table = make_plain_table()
    for title in ("phase", "limit", "measured", ""):
        table.add_column(title, justify="right" if title in ("limit", "measured") else "left")
    for item in verdict.checks:
        measured = ", ".join(item.format_rate(value) for value in item.measured[-MIN_CONSECUTIVE_RUNS:])
        table.add_row(item.phase, item.format_rate(item.least), measured, _format_limit_verdict(item),
                      style="bold red" if item.is_too_slow else None)  # fmt: skip
    get_results_console().print(table)
    heading = _make_verdict_heading(verdict, caveat_counts)
    get_results_console().print(f"{heading}: {_format_run_count(verdict.now)} against the given limits.", style="bold")
    _print_caveats(caveat_counts)


def _format_run_count(side: ComparedSide) -> str:
    """Returns the number of runs, with the repetitions apart: "5 runs and 2 repetitions"."""
    repetitions = sum(run.role == RETEST_ROLE for run in side.runs)
    runs_text = format_count_with_noun(len(side.runs) - repetitions, "run")
    return f"{runs_text} and {format_count_with_noun(repetitions, 'repetition')}" if repetitions else runs_text


def _format_limit_verdict(limit_check: LimitCheck) -> str:
    if limit_check.not_judged:
        return f"not judged: {limit_check.not_judged}"
    return "too slow" if limit_check.is_too_slow else "good"


def _print_gate_table(
    verdict: GateVerdict[GateCheck], baseline_side: ComparedSide, caveat_counts: Sequence[CaveatCount]
) -> None:
    console, now, judged = get_results_console(), verdict.now, verdict.checks
    keys = [item.key for item in judged]
    table = make_plain_table()
    for title in ("what", "op", "usual", "limit", "now", "change", ""):
        table.add_column(title, justify="left" if title in ("what", "op", "") else "right")
    for item in judged:
        unit = item.key.unit
        table.add_row(
            format_number_name(item.key, item.plan, keys),
            item.key.op,
            format_history_rate(item.usual, unit),
            format_history_rate(item.limit, unit),
            ", ".join(format_history_rate(value, unit) for value in item.measured[-MIN_CONSECUTIVE_RUNS:]),
            format_change_percent(item.relative_change),
            _make_verdict_cell(item),
            style="bold red" if item.is_too_slow else None,
        )
    console.print(table)
    for item in judged:
        for name, old, new in item.differs_in:
            console.print(f"{item.key.phase}: not the same {name}: {old or '-'} → {new or '-'}", soft_wrap=True)
    against = f"against {len(baseline_side.runs)} of {baseline_side.name}"
    heading = _make_verdict_heading(verdict, caveat_counts)
    console.print(
        f"{heading}: {format_count_with_noun(len(judged), 'number')} compared, {_format_run_count(now)} {against}.",
        style="bold",
    )
    _print_caveats(caveat_counts)


def _find_gate_caveats(
    measured_side: ComparedSide,
    phases_with_run_ids: Sequence[tuple[str, Sequence[str]]],
    baseline_side: ComparedSide | None = None,
) -> list[CaveatCount]:
    """Returns the caveats of `phases_with_run_ids`, each a phase and the ids of its runs, and of the phases in the
    baseline."""
    phases = [phase for phase, _ in phases_with_run_ids]
    baseline_caveats = count_caveats(baseline_side.name, baseline_side.runs, phases) if baseline_side else []
    measured = [("", phase, run_ids) for phase, run_ids in phases_with_run_ids]
    return [*count_caveats_of_numbers("now", measured_side.runs, measured), *baseline_caveats]


def _make_verdict_heading(verdict: GateVerdict[Any], caveat_counts: Sequence[CaveatCount]) -> str:
    missing = sum(bool(item.not_judged) for item in verdict.checks)
    heading = {True: "Good", False: "Too slow", None: "Not judged"}[verdict.is_good]
    if verdict.is_good is not None and missing:
        heading += f", {missing} of {format_count_with_noun(len(verdict.checks), 'number')} not judged"
    heading += ", simulated" if verdict.now.is_simulated else ""
    return f"{heading}, but doubtful" if caveat_counts else heading


def _convert_verdict_to_json(verdict: GateVerdict[Any]) -> dict[str, Any]:
    """Returns `good`, null where nothing was judged, and whether the run is simulated."""
    return {"good": verdict.is_good, "simulated": verdict.now.is_simulated}


def _print_caveats(caveat_counts: Sequence[CaveatCount]) -> None:
    for sentence in list_caveat_sentences(caveat_counts):
        get_results_console().print(f"! Doubtful {sentence}", style="yellow", soft_wrap=True)


def _make_verdict_cell(gate_check: GateCheck) -> str:
    if gate_check.not_judged:
        return f"not judged: {gate_check.not_judged}"
    if gate_check.is_too_slow:
        return f"too slow, {gate_check.low_run_count} of {format_count_with_noun(len(gate_check.measured), 'run')}"
    return (
        f"good; {gate_check.low_run_count} of {format_count_with_noun(len(gate_check.measured), 'run')} low"
        if gate_check.low_run_count
        else "good"
    )


def _convert_gate_to_json(
    verdict: GateVerdict[GateCheck], baseline_side: ComparedSide, caveat_counts: Sequence[CaveatCount]
) -> dict[str, Any]:
    return {
        **_convert_verdict_to_json(verdict),
        "baseline": {"name": baseline_side.name, "runs": [run.id for run in baseline_side.runs]},
        "runs": [run.id for run in verdict.now.runs],
        "numbers": [
            {
                "history": item.key.id,
                "key": asdict(item.key),
                "usual": item.usual,
                "limit": item.limit,
                "measured": list(item.measured),
                "change": item.relative_change,
                "good": None if item.not_judged else not item.is_too_slow,
                "not_judged": item.not_judged,
                "about": item.about,
            }
            for item in verdict.checks
        ],
        "caveats": [item.to_json() for item in caveat_counts],
    }
