# SPDX-License-Identifier: Apache-2.0
"""Running experiments from the command line: what `sonde run` and `sonde suite` share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.cli.asking import How, Wanted
from sonde.cli.forecasting import forecast_document, print_forecast
from sonde.cli.present import write_with
from sonde.conduct.run import Setup, failure
from sonde.experiments.cells import prepare
from sonde.experiments.doubts import run_doubts
from sonde.experiments.executor import Attempt, Executor, Measured
from sonde.experiments.forecast import Forecaster, code_of
from sonde.experiments.from_plan import document_of, with_options
from sonde.experiments.judging.judge import Judgement, as_document
from sonde.experiments.judging.needs import lacking
from sonde.experiments.medians import BYTES, CellMedian, Effect, effects, medians
from sonde.experiments.order import Turn
from sonde.experiments.page.page import judged_results, write_experiment
from sonde.experiments.page.words import outcome_lines
from sonde.experiments.ready import plan_source
from sonde.experiments.request import Request, new_request, taken_up
from sonde.experiments.results import Results, read_results, remains
from sonde.experiments.runner import Ended, Runner, Watcher
from sonde.launch.engine import Engine, find_engine
from sonde.model.errors import DONE, FAILED, INTERRUPTED, UserError
from sonde.model.experiment import experiment_from_document, read_experiment
from sonde.model.experiment.outcomes import Outcome
from sonde.model.plan import Plan
from sonde.model.shipped import system_source
from sonde.model.system import System, read_system
from sonde.model.units import counted, format_ops, format_rate
from sonde.store.archive import REPORT, Archive, job_end
from sonde.terminal.live import Display, make_display
from sonde.terminal.screen import messages, plain_table, print_json, results

_WAIT_S = 0.2  # between two looks at a run that is still going on


@dataclass(frozen=True)
class Done:
    """An experiment that was run, as far as it went."""

    ended: Ended
    results: Results
    medians: list[CellMedian]
    effects: list[Effect]
    judged: list[Judgement]
    page: Path | None = None

    @property
    def exit_code(self) -> int:
        """How it ended; 1 also when something is not as expected."""
        fails = any(one.outcome is Outcome.FAILS for one in self.judged)
        return FAILED if self.ended.exit_code == DONE and fails else self.ended.exit_code


def run_experiment(source: str, wanted: Wanted, how: How) -> int:
    """Runs the experiment in a file, or what is missing of it."""
    experiment = read_experiment(source, finder=plan_source)
    if wanted.adds:
        experiment = experiment_from_document(_with(experiment.document, wanted), experiment.origin)
    request = new_request(
        experiment, wanted.profile, wanted.settings, wanted.places, wanted.group, wanted.tags, wanted.note
    )
    return carry_out(taken_up(how.archive, request, wanted.resume), how)


def run_plan(plan: Plan, wanted: Wanted, how: How) -> int:
    """Runs a plan several times, with several values."""
    experiment = experiment_from_document(_with(document_of(plan), wanted), plan.origin)
    # the plan has its settings and its directory already
    places = replace(wanted.places, default="")
    request = new_request(experiment, "", (), places, wanted.group, wanted.tags, wanted.note)
    return carry_out(taken_up(how.archive, request, wanted.resume), how)


def _with(document: Mapping[str, Any], wanted: Wanted) -> dict[str, Any]:
    return with_options(document, wanted.repeat, wanted.warmup, wanted.prepare, wanted.sweeps)


def carry_out(request: Request, how: How) -> int:
    """Runs it and shows what came of it. Raises the error that ends the command when it did not end well."""
    if how.dry_run:
        return _dry_run(request, how)
    done = perform(request, how)
    if how.as_json:
        print_json(document(done))
    elif how.quiet:
        results().print(done.ended.group, soft_wrap=True)
    else:
        print_done(results(), done)
    if done.exit_code != DONE:
        raise failure(done.exit_code, complaint(done))
    return DONE


def _dry_run(request: Request, how: How) -> int:
    """Says what it would take; nothing is run. Exit code 2 or 3 when no cell can be run."""
    engine, repeat = find_engine(), request.repeat
    forecaster = Forecaster(engine, how.rate, repeat.min + repeat.warmup, request.where.launcher)
    cells = prepare(request.experiment, request.where.directories(), request.group)
    found = [forecaster.of(one) for one in cells]
    if how.as_json:
        print_json(forecast_document(request.experiment, found))
    else:
        print_forecast(results(), request.experiment, found)
    return code_of(one.code for one in found) if all(one.refused for one in found) else DONE


def perform(request: Request, how: How) -> Done:
    """Runs an experiment and reads what came of it. Raises UserError when a name that the user gave means nothing."""
    archive, display = how.archive, make_display(messages(), how.quiet)
    system = read_system(system_source(request.where.system)) if request.where.system else None
    setup = Setup(find_engine(), archive, mpi_module=how.mpi_module, stopping=display.stopping, described=system)
    heading: list[Callable[[Attempt], None]] = []
    where = request.where

    def begin(attempt: Attempt) -> None:
        heading[-1](attempt)

    executor: Executor = (
        how.make(setup, display.line, begin)
        if how.make is not None
        else Measured(setup, display.line, where.launcher, where.launcher_args, begin)
    )
    watcher = _watcher(display, heading, request.experiment.title)
    if archive.under_way(request.group):
        display.say("A run of this experiment is still going on, although its runner is gone: waiting for it to end.")
    while archive.under_way(request.group):
        time.sleep(_WAIT_S)
    archive.recover()
    if request.kept:
        _tidy(setup.engine, archive, request.group)
    runner = Runner(request, archive, executor, watcher, job_end())
    prepared = runner.prepared()
    forecaster = Forecaster(setup.engine, launcher=where.launcher)
    # What a model would need of this machine is nothing: no space, no memory.
    forecasts = [] if executor.simulated else [forecaster.of(one) for one in prepared]
    try:
        ended = runner.run(prepared, forecasts)
    finally:
        display.close()
    if ended.failed:
        _tidy(setup.engine, archive, request.group)
    found = read_results(archive, request.group)
    cells = medians(found)
    judged = judged_results(found, system, lacking(found, system))[1] if found.runs else []
    page = _page(found, system, how) if how.report and found.runs else None
    return Done(ended, found, cells, effects(cells), judged, page)


def _tidy(engine: Engine, archive: Archive, group: str) -> None:
    """Removes the files that killed runs of this experiment left on the storage."""
    for directory in remains(archive, group):
        with contextlib.suppress(UserError):  # `sonde clean` says what stands in its way
            engine.clean(directory, dry_run=False)


def _page(found: Results, system: System | None, how: How) -> Path | None:
    """The page of the experiment. What stands in its way is said, not raised: the runs are safe."""
    place = found.folder / REPORT

    def write() -> Path:
        write_experiment(found, place, system)
        return place

    try:
        return write_with(write, place, how.quiet)
    except UserError as reason:
        messages().print(f"sonde: no page was written: {reason}", soft_wrap=True)
        return None


def _watcher(display: Display, heading: list[Callable[[Attempt], None]], title: str) -> Watcher:
    def begin(turn: Turn, number: int, count: int, left: float | None) -> None:
        what = f"warm-up {turn.repeat + 1}" if turn.warm_up else f"repeat {turn.repeat + 1}"
        name = f"{title}, {turn.cell.id}" if turn.cell.id != "base" else title
        display.whole(number, count, left)
        heading.append(lambda attempt: display.begin(f"{name}, {what}", number, count, attempt.plan))

    def seed(number: int) -> None:
        display.say(f"Seed of the order: {number}")

    return Watcher(seed=seed, begin=begin, say=display.say)


def print_done(console: Console, done: Done) -> None:
    """The medians of all cells, what variants change, and what was not run."""
    console.print()
    console.print(Text(done.results.experiment.title, style="bold"))
    if done.medians:
        console.print(_table(done.medians))
    for one in done.effects:
        console.print(Text(effect_words(one)), soft_wrap=True)
    for line in outcome_lines(done.judged):
        console.print(Text(line, style="bold red" if line.startswith(Outcome.FAILS) else ""), soft_wrap=True)
    for words in run_doubts(done.results):
        console.print(Text(f"! {words}", style="yellow"), soft_wrap=True)
    for word, cells in (("not run", done.ended.refused), ("failed", done.ended.failed)):
        for cell, why in cells.items():
            console.print(Text(f"! {cell} {word}: {why}", style="yellow"), soft_wrap=True)
    for note in done.ended.notes:
        console.print(Text(f"! {note}", style="yellow"), soft_wrap=True)
    group = done.ended.group
    kept = f"Kept as {group}; `sonde show {group}` has every run."
    if done.ended.exit_code == INTERRUPTED:
        kept = f"Kept as {group}; the same command with --resume goes on with it."
    console.print(Text(kept, style="dim"), soft_wrap=True)
    if done.page is not None:
        console.print(f"Report  {done.page}", soft_wrap=True)


def _table(found: list[CellMedian]) -> Any:
    axes = list(dict.fromkeys(name for one in found for name in one.at))
    plans = any(one.plan for one in found)
    table = plain_table()
    for title in [*(["plan"] if plans else []), *axes, "phase"]:
        table.add_column(title, no_wrap=True)
    for title in ("median", "95 % interval", "±", "runs"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found:
        interval = one.interval
        known = interval.low is not None and interval.high is not None
        between = f"{_rate(interval.low or 0, one.unit)} … {_rate(interval.high or 0, one.unit)}" if known else "-"
        half = f"{100 * interval.half:.1f} %" if interval.half is not None else "-"
        table.add_row(
            *([one.plan] if plans else []),
            *(str(one.at.get(name, "")) for name in axes),
            one.phase,
            Text(_rate(interval.value, one.unit), style="bold"),
            between,
            half,
            Text(str(interval.count), style="" if one.enough else "yellow"),
        )
    return table


def _rate(value: float, unit: str) -> str:
    return format_rate(value) if unit == BYTES else format_ops(value)


def effect_words(one: Effect) -> str:
    """One sentence about a variant against the first."""
    where_ = ", ".join([*(f"{name}={value}" for name, value in one.at.items()), one.phase])
    found = one.ratio
    head = f"{where_}: {one.second} is {100 * (found.value - 1):+.1f} % against {one.first}"
    if found.low is None or found.high is None:
        return f"{head}; {found.why}."
    between = f"95 % interval {100 * (found.low - 1):+.1f} … {100 * (found.high - 1):+.1f} %"
    seen = f"; a drop of {100 * one.visible:.1f} % would have been seen" if one.visible is not None else ""
    verdict = "" if found.differs else ", no difference was seen"
    runs = f"{counted(found.before, 'run')} against {found.after}"
    return f"{head} ({between}, {runs}){verdict}{seen}."


def document(done: Done) -> dict[str, Any]:
    """The machine form."""
    found = done.results
    return {
        "schema": "sonde-results/1",
        "experiment": found.experiment.id,
        "group": found.group,
        "folder": str(found.folder),
        "profile": found.profile,
        "simulated": found.simulated,
        "exit_code": done.exit_code,
        "report": str(done.page) if done.page else None,
        "expectations": as_document(done.judged),
        "cells": [
            {
                "cell": one.cell,
                "at": dict(one.at),
                "plan": one.plan,
                "phase": one.phase,
                "unit": one.unit,
                "median": one.interval.value,
                "low": one.interval.low,
                "high": one.interval.high,
                "enough": one.enough,
                "rates": list(one.rates),
            }
            for one in done.medians
        ],
        "effects": [
            {
                "at": dict(one.at),
                "phase": one.phase,
                "first": one.first,
                "second": one.second,
                "ratio": one.ratio.value,
                "low": one.ratio.low,
                "high": one.ratio.high,
                "differs": one.ratio.differs,
                "visible": one.visible,
                "why": one.ratio.why,
            }
            for one in done.effects
        ],
        "refused": done.ended.refused,
        "failed": done.ended.failed,
        "notes": done.ended.notes,
        "doubts": run_doubts(found),
        "runs": [{"cell": one.cell, "repeat": one.repeat, "warm_up": one.warm_up, "run": one.folder.name}
                 for one in found.runs],
    }  # fmt: skip


def complaint(done: Done) -> str:
    """One sentence about how it ended, empty when all went well."""
    ended = done.ended
    if ended.exit_code == INTERRUPTED:
        return "The experiment was interrupted; what is finished is kept."
    if ended.failed:
        cell, why = next(iter(ended.failed.items()))
        more = f" ({len(ended.failed) - 1} more cells failed.)" if len(ended.failed) > 1 else ""
        return f"{cell}: {why}{more}"
    fails = [one.expectation.id for one in done.judged if one.outcome is Outcome.FAILS]
    if fails:
        return f"Not as expected: {', '.join(fails)}."
    if ended.exit_code and ended.refused:
        cell, why = next(iter(ended.refused.items()))
        more = f" ({len(ended.refused) - 1} more cells were not run.)" if len(ended.refused) > 1 else ""
        return f"Nothing was run. {cell}: {why}{more}"
    return ""
