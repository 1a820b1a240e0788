# SPDX-License-Identifier: Apache-2.0
"""Runs experiments for `sonde run`, `sonde suite` and `sonde simulate`, and prints their results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.cli.forecast_output import forecasts_to_json, print_forecast
from sonde.cli.report_writing import write_with_status
from sonde.cli.run_options import OutputOptions, RunRequest
from sonde.conduct.run import RunSetup, make_failure
from sonde.experiments.caveats import describe_run_caveats
from sonde.experiments.cells import prepare_cells
from sonde.experiments.claims.requirements import find_unmet_requirements
from sonde.experiments.claims.verdicts import ClaimResult, convert_verdicts_to_json
from sonde.experiments.executed_runs import (
    describe_executed_runs,
    describe_profile_changes,
    describe_shared_directories,
    describe_smoke_test,
    is_smoke_test,
)
from sonde.experiments.executor import Attempt, EngineExecutor, Executor
from sonde.experiments.experiment_builder import apply_command_line, experiment_from_plan
from sonde.experiments.forecast import Forecaster, exit_code_of_refusals
from sonde.experiments.medians import BYTES, CellMedian, Effect, compute_effects, compute_medians
from sonde.experiments.page.page import evaluate_results, write_experiment_page
from sonde.experiments.page.sentences import verdict_lines
from sonde.experiments.ranking import describe_ranking
from sonde.experiments.request import Request, create_request, resume_request
from sonde.experiments.results import Results, find_leftover_directories, read_results
from sonde.experiments.runner import Runner, RunnerObserver, RunnerOutcome
from sonde.experiments.schedule import ScheduledRun
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.launch.engine import Engine, find_engine
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, UserError
from sonde.model.experiment import make_experiment, read_experiment
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.plan import Plan
from sonde.model.system import System, read_system
from sonde.model.units import counted, format_ops, format_rate
from sonde.store.archive import REPORT, Archive, find_end_of_own_job
from sonde.terminal.run_display import Display, make_display
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

_WAIT_S = 0.2  # poll interval while an earlier run is in progress


@dataclass(frozen=True)
class ExperimentRun:
    """An experiment that was run, completely or partly, with its results."""

    outcome: RunnerOutcome
    results: Results
    medians: list[CellMedian]
    effects: list[Effect]
    verdicts: list[ClaimResult]
    page: Path | None = None

    @property
    def exit_code(self) -> int:
        """The exit code; 1 also if a claim fails."""
        fails = any(verdict.outcome is ClaimVerdict.FAILS for verdict in self.verdicts)
        return EXIT_FAILED if self.outcome.exit_code == EXIT_OK and fails else self.outcome.exit_code


def run_experiment(source: str, run_request: RunRequest, output: OutputOptions) -> int:
    """Runs the experiment in a file, or only its missing runs."""
    experiment = read_experiment(source, finder=resolve_plan_source)
    if run_request.has_additions:
        experiment = make_experiment(_apply_options(experiment.document, run_request), experiment.origin)
    request = create_request(
        experiment,
        run_request.profile,
        run_request.settings,
        run_request.locations,
        run_request.group,
        run_request.tags,
        run_request.note,
    )
    return run_and_print(resume_request(output.archive, request, run_request.resume), output)


def run_plan(plan: Plan, run_request: RunRequest, output: OutputOptions) -> int:
    """Runs a plan as an experiment, with repeats and sweeps."""
    experiment = make_experiment(_apply_options(experiment_from_plan(plan), run_request), plan.origin)
    # The plan already has its settings and directory.
    locations = replace(run_request.locations, default="")
    request = create_request(experiment, "", (), locations, run_request.group, run_request.tags, run_request.note)
    return run_and_print(resume_request(output.archive, request, run_request.resume), output)


def _apply_options(document: Mapping[str, Any], run_request: RunRequest) -> dict[str, Any]:
    return apply_command_line(document, run_request.repeat, run_request.warmup, run_request.prepare, run_request.sweeps)


def run_and_print(request: Request, output: OutputOptions) -> int:
    """Runs the experiment and prints the results. Raises the error that ends the command if it failed."""
    if output.dry_run:
        return _print_forecast(request, output)
    experiment_run = run_request(request, output)
    if output.as_json:
        print_json(results_to_json(experiment_run))
    elif output.quiet:
        get_results_console().print(experiment_run.outcome.group, soft_wrap=True)
    else:
        print_experiment(get_results_console(), experiment_run)
    if experiment_run.exit_code != EXIT_OK:
        raise make_failure(experiment_run.exit_code, describe_failure(experiment_run))
    return EXIT_OK


def _print_forecast(request: Request, output: OutputOptions) -> int:
    """Prints the forecast without running anything. The exit code is 2 or 3 if no cell can be run."""
    engine, repeat = find_engine(), request.repeat
    forecaster = Forecaster(engine, output.rate, repeat.min + repeat.warmup, request.locations.launcher)
    cells = prepare_cells(request.experiment, request.locations.read_directories(), request.group)
    forecasts = [forecaster.forecast_cell(item) for item in cells]
    if output.as_json:
        print_json(forecasts_to_json(request.experiment, forecasts))
    else:
        print_forecast(get_results_console(), request.experiment, forecasts)
    return (
        exit_code_of_refusals(item.exit_code for item in forecasts)
        if all(item.refusal for item in forecasts)
        else EXIT_OK
    )


def run_request(request: Request, output: OutputOptions) -> ExperimentRun:
    """Runs an experiment and reads its results. Raises UserError for an unknown location name."""
    archive, display = output.archive, make_display(get_messages_console(), output.quiet)
    system = read_system(find_system_file(request.locations.system)) if request.locations.system else None
    setup = RunSetup(find_engine(), archive, mpi_module=output.mpi_module, on_stop=display.stopping, system=system)
    heading: list[Callable[[Attempt], None]] = []
    locations = request.locations

    def begin_attempt(attempt: Attempt) -> None:
        heading[-1](attempt)

    executor: Executor = (
        output.create_executor(setup, display.line, begin_attempt)
        if output.create_executor is not None
        else EngineExecutor(setup, display.line, locations.launcher, locations.launcher_args, begin_attempt)
    )
    watcher = _make_observer(display, heading, request.experiment.title)
    if archive.list_runs_under_way(request.group):
        display.say("A run of this experiment is still in progress although its runner ended: waiting for it.")
    while archive.list_runs_under_way(request.group):
        time.sleep(_WAIT_S)
    archive.recover()
    if request.stored:
        _remove_leftovers(setup.engine, archive, request.group)
    runner = Runner(request, archive, executor, watcher, find_end_of_own_job())
    prepared = runner.prepare_cells()
    forecaster = Forecaster(setup.engine, launcher=locations.launcher)
    # A simulated run needs no space or memory of this machine.
    forecasts = [] if executor.simulated else [forecaster.forecast_cell(cell) for cell in prepared]
    try:
        ended = runner.run(prepared, forecasts)
    finally:
        display.close()
    if ended.failures:
        _remove_leftovers(setup.engine, archive, request.group)
    finished = read_results(archive, request.group)
    cells = compute_medians(finished)
    judged = evaluate_results(finished, system, find_unmet_requirements(finished, system))[1] if finished.runs else []
    page = _write_page(finished, system, output) if output.report and finished.runs else None
    return ExperimentRun(ended, finished, cells, compute_effects(cells), judged, page)


def _remove_leftovers(engine: Engine, archive: Archive, group: str) -> None:
    """Removes the files that killed runs of this experiment left on the storage."""
    for directory in find_leftover_directories(archive, group):
        with contextlib.suppress(UserError):  # `sonde clean` reports the reason
            engine.clean(directory, dry_run=False)


def _write_page(finished: Results, system: System | None, output: OutputOptions) -> Path | None:
    """Writes the page of the experiment. Prints a warning on failure, since the runs are stored anyway."""
    page = finished.folder / REPORT

    def write() -> Path:
        write_experiment_page(finished, page, system)
        return page

    try:
        return write_with_status(write, page, output.quiet)
    except UserError as reason:
        get_messages_console().print(f"sonde: no page was written: {reason}", soft_wrap=True)
        return None


def _make_observer(display: Display, heading: list[Callable[[Attempt], None]], title: str) -> RunnerObserver:
    def begin(turn: ScheduledRun, number: int, count: int, remaining_s: float | None) -> None:
        repeat_name = f"warm-up {turn.repeat + 1}" if turn.warm_up else f"repeat {turn.repeat + 1}"
        name = f"{title}, {turn.cell.id}" if turn.cell.id != "base" else title
        display.set_position(number, count, remaining_s)
        heading.append(lambda attempt: display.begin(f"{name}, {repeat_name}", number, count, attempt.plan))

    def seed(number: int) -> None:
        display.say(f"Seed of the order: {number}")

    return RunnerObserver(on_seed=seed, on_begin=begin, on_message=display.say)


def print_experiment(console: Console, experiment_run: ExperimentRun) -> None:
    """Prints the medians of all cells, the effects of variants, the verdicts, and the cells that were not run."""
    console.print()
    console.print(Text(experiment_run.results.experiment.title, style="bold"))
    if executed := describe_executed_runs(experiment_run.results):
        console.print(Text(executed), soft_wrap=True)
    if changes := describe_profile_changes(experiment_run.results):
        console.print(Text(changes, style="dim"), soft_wrap=True)
    warnings = [describe_smoke_test(experiment_run.results), *describe_shared_directories(experiment_run.results)]
    for warning in filter(None, warnings):
        console.print(Text(f"! {warning}", style="yellow"), soft_wrap=True)
    if experiment_run.medians:
        console.print(_make_median_table(experiment_run.medians))
    for sentence in describe_ranking(experiment_run.medians):
        console.print(Text(sentence), soft_wrap=True)
    for effect in experiment_run.effects:
        console.print(Text(describe_effect(effect)), soft_wrap=True)
    for line in verdict_lines(experiment_run.verdicts):
        console.print(Text(line, style="bold red" if line.startswith(ClaimVerdict.FAILS) else ""), soft_wrap=True)
    for caveat in describe_run_caveats(experiment_run.results):
        console.print(Text(f"! {caveat}", style="yellow"), soft_wrap=True)
    for word, cells in (("not run", experiment_run.outcome.refusals), ("failed", experiment_run.outcome.failures)):
        for cell, reason in cells.items():
            console.print(Text(f"! {cell} {word}: {reason}", style="yellow"), soft_wrap=True)
    for message in experiment_run.outcome.messages:
        console.print(Text(f"! {message}", style="yellow"), soft_wrap=True)
    group = experiment_run.outcome.group
    stored_text = f"Stored as {group}; `sonde show {group}` prints every run."
    if experiment_run.outcome.exit_code == EXIT_INTERRUPTED:
        stored_text = f"Stored as {group}; the same command with --resume continues it."
    console.print(Text(stored_text, style="dim"), soft_wrap=True)
    if experiment_run.page is not None:
        console.print(f"Report  {experiment_run.page}", soft_wrap=True)


def _make_median_table(medians: list[CellMedian]) -> Any:
    axes = list(dict.fromkeys(name for median in medians for name in median.axis_values))
    plans = any(median.plan for median in medians)
    table = make_plain_table()
    for title in [*(["plan"] if plans else []), *axes, "phase"]:
        table.add_column(title, no_wrap=True)
    for title in ("median", "95 % interval", "±", "runs"):
        table.add_column(title, justify="right", no_wrap=True)
    others = any(median.about for median in medians)
    if others:
        table.add_column("not of storage", no_wrap=True)
    for median in medians:
        interval = median.interval
        has_interval = interval.low is not None and interval.high is not None
        interval_text = (
            f"{_format_unit_rate(interval.low or 0, median.unit)} …"
            f" {_format_unit_rate(interval.high or 0, median.unit)}"
            if has_interval
            else "-"
        )
        half = f"{100 * interval.relative_half_width:.1f} %" if interval.relative_half_width is not None else "-"
        table.add_row(
            *([median.plan] if plans else []),
            *(str(median.axis_values.get(name, "")) for name in axes),
            median.phase,
            Text(_format_unit_rate(interval.value, median.unit), style="bold"),
            interval_text,
            half,
            Text(str(interval.count), style="" if median.has_enough_runs else "yellow"),
            *([Text(median.about, style="yellow")] if others else []),
        )
    return table


def _format_unit_rate(value: float, unit: str) -> str:
    return format_rate(value) if unit == BYTES else format_ops(value)


def describe_effect(effect: Effect) -> str:
    """Returns one sentence that compares a variant with the first one."""
    cell = ", ".join([*(f"{name}={value}" for name, value in effect.axis_values.items()), effect.phase])
    ratio = effect.ratio
    head = f"{cell}: {effect.second} is {100 * (ratio.value - 1):+.1f} % against {effect.first}"
    if ratio.low is None or ratio.high is None:
        return f"{head}; {ratio.why}."
    interval_text = f"95 % interval {100 * (ratio.low - 1):+.1f} … {100 * (ratio.high - 1):+.1f} %"
    sensitivity = (
        f"; smallest detectable drop: {100 * effect.smallest_visible_drop:.0f} %"
        if effect.smallest_visible_drop is not None and not ratio.differs
        else ""
    )
    verdict = "" if ratio.differs else ", no significant difference"
    runs = f"{counted(ratio.before, 'run')} against {ratio.after}"
    return f"{head} ({interval_text}, {runs}){verdict}{sensitivity}."


def results_to_json(experiment_run: ExperimentRun) -> dict[str, Any]:
    """Returns the JSON document of the results (schema sonde-results/2)."""
    finished = experiment_run.results
    return {
        "schema": "sonde-results/2",
        "experiment": finished.experiment.id,
        "group": finished.group,
        "folder": str(finished.folder),
        "profile": finished.profile,
        "simulated": finished.simulated,
        "smoke_test": is_smoke_test(finished),
        "executed": describe_executed_runs(finished),
        "profile_changes": describe_profile_changes(finished),
        "exit_code": experiment_run.exit_code,
        "report": str(experiment_run.page) if experiment_run.page else None,
        "claims": convert_verdicts_to_json(experiment_run.verdicts),
        "cells": [
            {
                "cell": item.cell,
                "axis_values": dict(item.axis_values),
                "plan": item.plan,
                "phase": item.phase,
                "unit": item.unit,
                "median": item.interval.value,
                "low": item.interval.low,
                "high": item.interval.high,
                "has_enough_runs": item.has_enough_runs,
                "classifications": list(item.classifications),
                "rates": list(item.rates),
            }
            for item in experiment_run.medians
        ],
        "effects": [
            {
                "axis_values": dict(item.axis_values),
                "phase": item.phase,
                "first": item.first,
                "second": item.second,
                "ratio": item.ratio.value,
                "low": item.ratio.low,
                "high": item.ratio.high,
                "differs": item.ratio.differs,
                "smallest_visible_drop": item.smallest_visible_drop,
                "reason": item.ratio.why,
            }
            for item in experiment_run.effects
        ],
        "refusals": experiment_run.outcome.refusals,
        "failures": experiment_run.outcome.failures,
        "notes": experiment_run.outcome.messages,
        "ranking": describe_ranking(experiment_run.medians),
        "caveats": describe_run_caveats(finished),
        "runs": [{"cell": item.cell, "repeat": item.repeat, "warm_up": item.warm_up, "run": item.folder.name}
                 for item in finished.runs],
    }  # fmt: skip


def describe_failure(experiment_run: ExperimentRun) -> str:
    """Returns one sentence on the failure; empty if all runs and claims succeeded."""
    outcome = experiment_run.outcome
    if outcome.exit_code == EXIT_INTERRUPTED:
        return "The experiment was interrupted; finished runs are stored."
    if outcome.failures:
        cell, reason = next(iter(outcome.failures.items()))
        more_failures = f" ({len(outcome.failures) - 1} more cells failed.)" if len(outcome.failures) > 1 else ""
        return f"{cell}: {reason}{more_failures}"
    fails = [verdict.expectation.id for verdict in experiment_run.verdicts if verdict.outcome is ClaimVerdict.FAILS]
    if fails:
        return f"Not as expected: {', '.join(fails)}."
    if outcome.exit_code and outcome.refusals:
        cell, reason = next(iter(outcome.refusals.items()))
        more_failures = f" ({len(outcome.refusals) - 1} more cells were not run.)" if len(outcome.refusals) > 1 else ""
        return f"Nothing was run. {cell}: {reason}{more_failures}"
    return ""
