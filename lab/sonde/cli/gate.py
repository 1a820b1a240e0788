# SPDX-License-Identifier: Apache-2.0
"""``sonde gate``: is what was just measured as good as the baseline? The exit code says it to scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from sonde.cli.options import archive_option, json_option, load_plan
from sonde.conduct.run import Setup, conduct, failure
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.model.errors import DONE, FAILED, UserError
from sonde.model.units import counted
from sonde.store.archive import PLAN, Archive
from sonde.store.summary import Summary, read_summary
from sonde.terminal.live import make_display
from sonde.terminal.screen import messages, plain_table, print_json, results
from sonde.trends.comparison_words import number_name, percent, value_text
from sonde.trends.doubted import Doubted, doubt_sentences, doubted
from sonde.trends.limits import Limit, hold, read_limit
from sonde.trends.sides import BASELINE, Side, find_side
from sonde.trends.threshold import IN_A_ROW, Judged, judge


@click.command("gate")
@click.argument("run", default="last")
@click.option("--baseline", metavar="NAME", default="", help="Baseline to hold it against, or any words of compare.")
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
    default=IN_A_ROW - 1,
    show_default=True,
    metavar="N",
    help="How often a run that is too slow is repeated at once; it fails when all of them are too slow. 0: never.",
)
@archive_option
@json_option
def command(run: str, baseline: str, limits: tuple[str, ...], retests: int, archive: Archive, as_json: bool) -> int:
    """Hold RUN against a baseline or a limit. Exit code 0: good; 1: too slow, and so was every repetition.

    The limit of each number is the median of the baseline less four robust standard deviations, and 15 % at least.
    One slow run is weather: the same plan is run again, at once, until one is good or all of them were slow.

    \b
    Examples:
      sonde run quick --on /scratch && sonde gate last --baseline acceptance
      sonde gate last --baseline acceptance --retests 0 --json
      sonde gate last --at-least write=10GB/s-10% --at-least read=8GB/s
    """
    archive.recover()
    if bool(baseline) == bool(limits):
        raise UserError("Say what to hold it against: --baseline NAME, or --at-least PHASE=RATE.")
    if limits:
        return _absolute(run, [read_limit(one) for one in limits], retests, archive, as_json)
    reference = find_side(archive, _baseline(archive, baseline))
    now = find_side(archive, run)
    reference = Side(reference.name, tuple(one for one in reference.runs if one.id not in {own.id for own in now.runs}))
    if not reference.runs:
        raise UserError(f"{reference.name} holds no other run than the one to be judged.")
    judged = judge(reference, now)
    while any(one.bad for one in judged) and retests > 0:
        retests -= 1
        again = _repeat(now.runs[-1], archive, as_json)
        now = Side(now.name, (*now.runs, again))
        judged = judge(reference, now)
    failed = any(one.bad for one in judged)
    if as_json:
        print_json(_document(reference, now, judged, failed))
    else:
        _print(reference, now, judged, failed)
    return FAILED if failed else DONE


def _absolute(run: str, limits: Sequence[Limit], retests: int, archive: Archive, as_json: bool) -> int:
    """The same with limits that somebody wrote: one run that reaches a limit is enough for it."""
    now = find_side(archive, run)
    held = [hold(one, now.runs) for one in limits]
    while any(one.bad for one in held) and retests > 0:
        retests -= 1
        now = Side(now.name, (*now.runs, _repeat(now.runs[-1], archive, as_json)))
        held = [hold(one, now.runs) for one in limits]
    failed = any(one.bad for one in held)
    doubts = _doubts(now, [one.phase for one in held])
    if as_json:
        told = {"limits": [asdict(one) for one in held], "doubts": [one.as_json() for one in doubts]}
        print_json({"good": not failed, "runs": [one.id for one in now.runs], **told})
        return FAILED if failed else DONE
    table = plain_table()
    for title in ("phase", "limit", "measured", ""):
        table.add_column(title, justify="right" if title in ("limit", "measured") else "left")
    for one in held:
        measured = ", ".join(one.words(value) for value in one.measured[-IN_A_ROW:])
        table.add_row(one.phase, one.words(one.least), measured, "too slow" if one.bad else "good",
                      style="bold red" if one.bad else None)  # fmt: skip
    results().print(table)
    tried = f"{len(now.runs)} run{'s' if len(now.runs) != 1 else ''}"
    verdict = _headed("Too slow" if failed else "Good", doubts)
    results().print(f"{verdict}: {tried} against what was asked for.", style="bold")
    _print_doubts(doubts)
    return FAILED if failed else DONE


def _baseline(archive: Archive, text: str) -> str:
    """A bare word is the name of a baseline, unless there is no such baseline."""
    if ":" in text or ".." in text or "/" in text:
        return text
    try:
        find_side(archive, f"{BASELINE}{text}")
    except UserError:
        raise UserError(
            f'There is no baseline "{text}"; `sonde baseline set {text} RUN...` makes it, `sonde baseline show` lists'
            " those there are."
        ) from None
    return f"{BASELINE}{text}"


def _repeat(run: Summary, archive: Archive, quiet: bool) -> Summary:
    """The same plan once more, started as the run was."""
    plan_file = run.folder / PLAN
    if not plan_file.is_file():
        raise UserError(f"{run.id} has no plan to repeat; judge it as it is with --retests 0.")
    plan = load_plan(str(plan_file), (), None)
    name = str(run.document.get("launcher") or LOCAL)
    ranks = run.document.get("processes")
    launcher = make_launcher(name, ranks if isinstance(ranks, int) and name != LOCAL else 1, _launcher_words(run))
    display = make_display(messages(), quiet)
    setup = Setup(find_engine(), archive, launcher, None, display.stopping)
    display.begin(f"{plan.title or plan.id}, again", 1, 1, plan)
    try:
        result = conduct(plan, setup, display.line, facts={"role": "retest", "group": run.group or run.id})
    finally:
        display.close()
    if result.exit_code != DONE:
        raise failure(result.exit_code, result.text)
    return read_summary(result.folder)


def _launcher_words(run: Summary) -> str:
    """What was given with --launcher-args."""
    said = run.document.get("command")
    words = [str(word) for word in said] if isinstance(said, list) else []
    for at, word in enumerate(words):
        if word == "--launcher-args" and at + 1 < len(words):
            return words[at + 1]
        if word.startswith("--launcher-args="):
            return word.partition("=")[2]
    return ""


def _print(reference: Side, now: Side, judged: Sequence[Judged], failed: bool) -> None:
    console = results()
    keys = [one.key for one in judged]
    table = plain_table()
    for title in ("what", "op", "usual", "limit", "now", "change", ""):
        table.add_column(title, justify="left" if title in ("what", "op", "") else "right")
    for one in judged:
        unit = one.key.unit
        table.add_row(
            number_name(one.key, one.plan, keys),
            one.key.op,
            value_text(one.usual, unit),
            value_text(one.limit, unit),
            ", ".join(value_text(value, unit) for value in one.measured[-IN_A_ROW:]),
            percent(one.change),
            _words(one),
            style="bold red" if one.bad else None,
        )
    console.print(table)
    for one in judged:
        for name, old, new in one.differs_in:
            console.print(f"{one.key.phase}: not the same {name}: {old or '-'} → {new or '-'}", soft_wrap=True)
    tried = f"{len(now.runs)} run{'s' if len(now.runs) != 1 else ''}"
    verdict = "Too slow" if failed else "Good"
    doubts = _doubts(now, [one.key.phase for one in judged], reference)
    against = f"against {len(reference.runs)} of {reference.name}"
    console.print(f"{_headed(verdict, doubts)}: {tried} {against}.", style="bold")
    _print_doubts(doubts)


def _doubts(now: Side, phases: Sequence[str], reference: Side | None = None) -> list[Doubted]:
    """What speaks against what was measured, and against the baseline."""
    known = doubted(reference.name, reference.runs, phases) if reference else []
    return [*doubted("now", now.runs, phases), *known]


def _headed(verdict: str, doubts: Sequence[Doubted]) -> str:
    return f"{verdict}, but doubtful" if doubts else verdict


def _print_doubts(doubts: Sequence[Doubted]) -> None:
    for words in doubt_sentences(doubts):
        results().print(f"! Doubtful {words}", style="yellow", soft_wrap=True)


def _words(one: Judged) -> str:
    if one.bad:
        return f"too slow, {one.low} of {counted(len(one.measured), 'run')}"
    return f"good; {one.low} of {counted(len(one.measured), 'run')} low" if one.low else "good"


def _document(reference: Side, now: Side, judged: Sequence[Judged], failed: bool) -> dict[str, Any]:
    return {
        "good": not failed,
        "baseline": {"name": reference.name, "runs": [run.id for run in reference.runs]},
        "runs": [run.id for run in now.runs],
        "numbers": [
            {
                "series": one.key.id,
                "key": asdict(one.key),
                "usual": one.usual,
                "limit": one.limit,
                "measured": list(one.measured),
                "change": one.change,
                "good": not one.bad,
            }
            for one in judged
        ],
        "doubts": [one.as_json() for one in _doubts(now, [one.key.phase for one in judged], reference)],
    }
