# SPDX-License-Identifier: Apache-2.0
"""``sonde gate``: checks a run against a baseline or a limit, with an exit code for scripts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import archive_option, json_option
from sonde.conduct.run import RunSetup, conduct_run, make_failure
from sonde.experiments.plan_loading import load_plan
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_FAILED, EXIT_NOTHING_COMPARED, EXIT_OK, UserError
from sonde.model.simulation import is_simulated_document
from sonde.model.units import counted
from sonde.store.archive import Archive
from sonde.store.summary import PLAN, Summary, read_summary
from sonde.terminal.encoding import echo
from sonde.terminal.run_display import make_display
from sonde.terminal.screen import messages, plain_table, print_json, results
from sonde.trends.baseline_gate import RUNS_IN_A_ROW, GateCheck, check_against_baseline
from sonde.trends.comparison_text import format_change_percent, format_number_name, format_value
from sonde.trends.gate_ci_output import (
    ANNOTATIONS,
    GateCase,
    describe_baseline_checks,
    describe_limit_checks,
    format_junit,
)
from sonde.trends.run_caveats import CaveatCount, caveat_sentences, count_caveats
from sonde.trends.sides import BASELINE, Side, find_side, separate_simulated
from sonde.trends.stated_limits import Limit, LimitCheck, check_limit, parse_limit

_SIMULATED_HINT = "Set a baseline of runs of the same origin with `sonde baseline set`."


@dataclass(frozen=True)
class GateOutput:
    """Where and in which formats the verdicts go, beside or in place of the table."""

    as_json: bool
    junit: Path | None
    annotate: str | None

    def check_directory(self) -> None:
        """Raises UserError if the JUnit file cannot be created, before a run is repeated for minutes."""
        if self.junit is not None and not os.access(self.junit.parent, os.W_OK | os.X_OK):
            reason = "is not writable" if self.junit.parent.is_dir() else "does not exist"
            raise UserError(f"{self.junit} cannot be written: the directory {self.junit.parent} {reason}.")

    def write(self, cases: Sequence[GateCase], reference: str, caveats: Sequence[CaveatCount]) -> None:
        """Writes the JUnit file and prints the annotations. Raises UserError if the file cannot be written."""
        sentences = caveat_sentences(caveats)
        if self.junit is not None:
            try:
                write_file(self.junit, format_junit(cases, reference, sentences))
            except OSError as error:
                raise UserError(f"{self.junit} cannot be written: {error.strerror}.") from None
        if self.annotate and (text := ANNOTATIONS[self.annotate](cases, sentences)):
            echo(text)


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
    default=RUNS_IN_A_ROW - 1,
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
    type=click.Choice(tuple(ANNOTATIONS)),
    help="Print annotations for a CI service: github adds workflow commands, gitlab prints Code Quality JSON only.",
)
@archive_option
@json_option
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
    archive.recover()
    if bool(baseline) == bool(limits):
        raise UserError("Say what to compare with: --baseline NAME, or --at-least PHASE=RATE.")
    if annotate and as_json:
        raise UserError("--json and --annotate exclude each other; give one of them.")
    output = GateOutput(as_json, junit, annotate)
    output.check_directory()
    if limits:
        return _check_limits(run, [parse_limit(item) for item in limits], retests, archive, output)
    reference = find_side(archive, _baseline_name(archive, baseline))
    now = find_side(archive, run)
    reference = Side(
        reference.name, tuple(item for item in reference.runs if item.id not in {current.id for current in now.runs})
    )
    if not reference.runs:
        raise UserError(f"{reference.name} holds no other run than the one to be judged.")
    reference, now = separate_simulated(reference, now, _SIMULATED_HINT)
    judged = check_against_baseline(reference, now)
    while any(item.bad for item in judged) and retests > 0 and _is_repeatable(now.runs[-1]):
        retests -= 1
        again = _repeat(now.runs[-1], archive, as_json)
        now = Side(now.name, (*now.runs, again))
        judged = check_against_baseline(reference, now)
    caveats = _find_caveats(now, [item.key.phase for item in judged], reference)
    if as_json:
        print_json(_gate_document(reference, now, judged, caveats))
    elif annotate != "gitlab":
        _print_gate(reference, now, judged, caveats)
    output.write(describe_baseline_checks(judged), reference.name, caveats)
    return _exit_code(judged)


def _exit_code(checks: Sequence[GateCheck] | Sequence[LimitCheck]) -> int:
    if any(item.bad for item in checks):
        return EXIT_FAILED
    return EXIT_NOTHING_COMPARED if _is_nothing_judged(checks) else EXIT_OK


def _is_nothing_judged(checks: Sequence[GateCheck] | Sequence[LimitCheck]) -> bool:
    """Returns whether the verdict is missing: no number of a baseline, or not every stated limit, could be judged."""
    missing = [bool(item.not_judged) for item in checks]
    return any(missing) if isinstance(checks[0], LimitCheck) else all(missing)


def _check_limits(run: str, limits: Sequence[Limit], retests: int, archive: Archive, output: GateOutput) -> int:
    """Checks runs against given limits: one run that reaches a limit is enough."""
    now = find_side(archive, run)
    limit_results = [check_limit(item, now.runs) for item in limits]
    while any(item.bad for item in limit_results) and retests > 0 and _is_repeatable(now.runs[-1]):
        retests -= 1
        now = Side(now.name, (*now.runs, _repeat(now.runs[-1], archive, output.as_json)))
        limit_results = [check_limit(item, now.runs) for item in limits]
    caveats = _find_caveats(now, [item.phase for item in limit_results])
    if output.as_json:
        members = {"limits": [asdict(item) for item in limit_results], "caveats": [item.as_json() for item in caveats]}
        print_json({**_verdict_members(now, limit_results), "runs": [item.id for item in now.runs], **members})
    elif output.annotate != "gitlab":
        _print_limits(now, limit_results, caveats)
    output.write(describe_limit_checks(limit_results, now.runs[-1].plan), "the given limits", caveats)
    return _exit_code(limit_results)


def _print_limits(now: Side, limit_results: Sequence[LimitCheck], caveats: Sequence[CaveatCount]) -> None:
    table = plain_table()
    for title in ("phase", "limit", "measured", ""):
        table.add_column(title, justify="right" if title in ("limit", "measured") else "left")
    for item in limit_results:
        measured = ", ".join(item.format_value(value) for value in item.measured[-RUNS_IN_A_ROW:])
        table.add_row(item.phase, item.format_value(item.least), measured, _limit_verdict(item),
                      style="bold red" if item.bad else None)  # fmt: skip
    results().print(table)
    tried = f"{len(now.runs)} run{'s' if len(now.runs) != 1 else ''}"
    verdict = _verdict_heading(now, limit_results, caveats)
    results().print(f"{verdict}: {tried} against the given limits.", style="bold")
    _print_caveats(caveats)


def _limit_verdict(check: LimitCheck) -> str:
    if check.not_judged:
        return f"not judged: {check.not_judged}"
    return "too slow" if check.bad else "good"


def _is_repeatable(run: Summary) -> bool:
    """Returns whether the run has a plan that can be repeated on this machine: imported and simulated runs do not."""
    return (run.folder / PLAN).is_file() and not is_simulated_document(run.document)


def _baseline_name(archive: Archive, text: str) -> str:
    """Returns the side for the text: a plain word is the name of a baseline. Raises UserError if there is none."""
    if ":" in text or ".." in text or "/" in text:
        return text
    try:
        find_side(archive, f"{BASELINE}{text}")
    except UserError:
        raise UserError(
            f'There is no baseline "{text}"; `sonde baseline set {text} RUN...` makes it, `sonde baseline show`'
            f" lists those there are."
        ) from None
    return f"{BASELINE}{text}"


def _repeat(run: Summary, archive: Archive, quiet: bool) -> Summary:
    """Runs the same plan once more, with the launcher of the run."""
    plan_file = run.folder / PLAN
    plan = load_plan(str(plan_file), (), None)
    name = str(run.document.get("launcher") or LOCAL)
    ranks = run.document.get("processes")
    launcher = make_launcher(name, ranks if isinstance(ranks, int) and name != LOCAL else 1, _launcher_args(run))
    display = make_display(messages(), quiet)
    setup = RunSetup(find_engine(), archive, launcher, None, display.stopping)
    display.begin(f"{plan.title or plan.id}, again", 1, 1, plan)
    try:
        result = conduct_run(plan, setup, display.line, facts={"role": "retest", "group": run.group or run.id})
    finally:
        display.close()
    if result.exit_code != EXIT_OK:
        raise make_failure(result.exit_code, result.text)
    return read_summary(result.folder)


def _launcher_args(run: Summary) -> str:
    """Returns the value of --launcher-args in the run's command line."""
    command = run.document.get("command")
    arguments = [str(argument) for argument in command] if isinstance(command, list) else []
    for index, argument in enumerate(arguments):
        if argument == "--launcher-args" and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith("--launcher-args="):
            return argument.partition("=")[2]
    return ""


def _print_gate(reference: Side, now: Side, judged: Sequence[GateCheck], caveats: Sequence[CaveatCount]) -> None:
    console = results()
    keys = [item.key for item in judged]
    table = plain_table()
    for title in ("what", "op", "usual", "limit", "now", "change", ""):
        table.add_column(title, justify="left" if title in ("what", "op", "") else "right")
    for item in judged:
        unit = item.key.unit
        table.add_row(
            format_number_name(item.key, item.plan, keys),
            item.key.op,
            format_value(item.usual, unit),
            format_value(item.limit, unit),
            ", ".join(format_value(value, unit) for value in item.measured[-RUNS_IN_A_ROW:]),
            format_change_percent(item.change),
            _verdict_cell(item),
            style="bold red" if item.bad else None,
        )
    console.print(table)
    for item in judged:
        for name, old, new in item.differs_in:
            console.print(f"{item.key.phase}: not the same {name}: {old or '-'} → {new or '-'}", soft_wrap=True)
    tried = f"{len(now.runs)} run{'s' if len(now.runs) != 1 else ''}"
    against = f"against {len(reference.runs)} of {reference.name}"
    heading = _verdict_heading(now, judged, caveats)
    console.print(f"{heading}: {counted(len(judged), 'number')} compared, {tried} {against}.", style="bold")
    _print_caveats(caveats)


def _find_caveats(now: Side, phases: Sequence[str], reference: Side | None = None) -> list[CaveatCount]:
    """Returns the caveats of the measured runs and of the baseline."""
    baseline_caveats = count_caveats(reference.name, reference.runs, phases) if reference else []
    return [*count_caveats("now", now.runs, phases), *baseline_caveats]


def _verdict_heading(
    now: Side, checks: Sequence[GateCheck] | Sequence[LimitCheck], caveats: Sequence[CaveatCount]
) -> str:
    missing = sum(bool(item.not_judged) for item in checks)
    verdict = "Too slow" if any(item.bad for item in checks) else "Good"
    if _exit_code(checks) == EXIT_NOTHING_COMPARED:
        verdict = "Not judged"
    elif missing:
        verdict += f", {missing} of {counted(len(checks), 'number')} not judged"
    verdict += ", simulated" if now.is_simulated else ""
    return f"{verdict}, but doubtful" if caveats else verdict


def _verdict_members(now: Side, checks: Sequence[GateCheck] | Sequence[LimitCheck]) -> dict[str, Any]:
    """Returns `good`, null where nothing was judged, and whether the run is simulated."""
    code = _exit_code(checks)
    return {"good": None if code == EXIT_NOTHING_COMPARED else code == EXIT_OK, "simulated": now.is_simulated}


def _print_caveats(caveats: Sequence[CaveatCount]) -> None:
    for sentence in caveat_sentences(caveats):
        results().print(f"! Doubtful {sentence}", style="yellow", soft_wrap=True)


def _verdict_cell(result: GateCheck) -> str:
    if result.not_judged:
        return f"not judged: {result.not_judged}"
    if result.bad:
        return f"too slow, {result.low} of {counted(len(result.measured), 'run')}"
    return f"good; {result.low} of {counted(len(result.measured), 'run')} low" if result.low else "good"


def _gate_document(
    reference: Side, now: Side, judged: Sequence[GateCheck], caveats: Sequence[CaveatCount]
) -> dict[str, Any]:
    return {
        **_verdict_members(now, judged),
        "baseline": {"name": reference.name, "runs": [run.id for run in reference.runs]},
        "runs": [run.id for run in now.runs],
        "numbers": [
            {
                "history": item.key.id,
                "key": asdict(item.key),
                "usual": item.usual,
                "limit": item.limit,
                "measured": list(item.measured),
                "change": item.change,
                "good": None if item.not_judged else not item.bad,
                "not_judged": item.not_judged,
                "about": item.about,
            }
            for item in judged
        ],
        "caveats": [item.as_json() for item in caveats],
    }
