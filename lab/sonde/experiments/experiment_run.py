# SPDX-License-Identifier: Apache-2.0
"""Runs an experiment and evaluates its results; `sonde run`, `sonde suite` and `sonde.run_experiment` call this."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunSetup
from sonde.experiments.caveats import describe_run_caveats
from sonde.experiments.claims.requirements import find_unmet_requirements
from sonde.experiments.claims.verdicts import ClaimResult, convert_verdicts_to_json
from sonde.experiments.executed_runs import describe_executed_runs, describe_profile_changes, is_smoke_test
from sonde.experiments.executor import EngineExecutor, Executor, ExecutorFactory, RunAttempt
from sonde.experiments.forecast import Forecaster
from sonde.experiments.medians import CellMedian, VariantEffect, compute_effects, compute_medians
from sonde.experiments.page.page import evaluate_results
from sonde.experiments.ranking import describe_ranking
from sonde.experiments.request import ExperimentRequest
from sonde.experiments.results import Results, find_unfinished_run_directories, read_group_results
from sonde.experiments.runner import ExperimentRunner, RunnerObserver, RunnerOutcome
from sonde.experiments.schedule import ScheduledRun
from sonde.launch.engine import Engine, find_engine
from sonde.launch.session import NO_DEVICE, DevicePermission
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, UserError
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.system import System, read_system
from sonde.store.archive import Archive, read_end_time_of_own_job
from sonde.terminal.run_display import Display

_POLL_INTERVAL_S = 0.2  # poll interval while an earlier run is in progress


@dataclass(frozen=True)
class ExperimentRun:
    """An experiment that was run, completely or partly, with its results."""

    outcome: RunnerOutcome
    results: Results
    medians: list[CellMedian]
    effects: list[VariantEffect]
    verdicts: list[ClaimResult]
    system: System | None = None
    page: Path | None = None

    @property
    def exit_code(self) -> int:
        """The exit code; 1 also if a claim fails."""
        fails = any(verdict.outcome is ClaimVerdict.FAILS for verdict in self.verdicts)
        return EXIT_FAILED if self.outcome.exit_code == EXIT_OK and fails else self.outcome.exit_code


def run_experiment_request(
    request: ExperimentRequest,
    archive: Archive,
    display: Display,
    mpi_module: Path | None = None,
    create_executor: ExecutorFactory | None = None,
    device_permission: DevicePermission = NO_DEVICE,
) -> ExperimentRun:
    """Runs what is missing of an experiment, closes the display and reads the results. Without `create_executor` the
    engine runs on this machine. Raises UserError for an unknown location name."""
    locations = request.locations
    system = read_system(find_system_file(locations.system)) if locations.system else None
    setup = RunSetup(
        find_engine(),
        archive,
        mpi_module=mpi_module,
        on_stop=display.report_stop_signal,
        system=system,
        device_permission=device_permission,
    )
    heading: list[Callable[[RunAttempt], None]] = []

    def begin_attempt(attempt: RunAttempt) -> None:
        heading[-1](attempt)

    executor: Executor = (
        create_executor(setup, display.show_record_line, begin_attempt)
        if create_executor is not None
        else EngineExecutor(setup, display.show_record_line, locations.launcher, locations.launcher_args, begin_attempt)
    )
    if archive.list_unfinished_runs_of_group(request.group):
        display.print_message(
            "A run of this experiment is still in progress although its runner ended: waiting for it."
        )
    while archive.list_unfinished_runs_of_group(request.group):
        time.sleep(_POLL_INTERVAL_S)
    archive.recover_unfinished_runs()
    if request.stored:
        _remove_leftover_files(setup.engine, archive, request.group)
    observer = _make_runner_observer(display, heading)
    runner = ExperimentRunner(request, archive, executor, observer, read_end_time_of_own_job())
    prepared = runner.prepare_cells()
    forecaster = Forecaster(setup.engine, launcher=locations.launcher)
    # A simulated run needs no space or memory of this machine.
    forecasts = [] if executor.simulated else [forecaster.forecast_cell(cell) for cell in prepared]
    try:
        ended = runner.run_all_cells(prepared, forecasts)
    finally:
        display.end_display()
    if ended.failures:
        _remove_leftover_files(setup.engine, archive, request.group)
    return evaluate_stored_results(ended, read_group_results(archive, request.group), system)


def evaluate_stored_results(runner_outcome: RunnerOutcome, results: Results, system: System | None) -> ExperimentRun:
    """Computes medians, effects and verdicts of the stored runs."""
    medians = compute_medians(results)
    lacks = find_unmet_requirements(results, system)
    verdicts = evaluate_results(results, system, lacks)[1] if results.runs else []
    return ExperimentRun(runner_outcome, results, medians, compute_effects(medians), verdicts, system)


def _make_runner_observer(display: Display, print_heading: list[Callable[[RunAttempt], None]]) -> RunnerObserver:
    def display_run_begin(
        scheduled_run: ScheduledRun, run_number: int, run_count: int, remaining_s: float | None
    ) -> None:
        repeat_name = (
            f"warm-up {scheduled_run.repeat + 1}" if scheduled_run.warm_up else f"repeat {scheduled_run.repeat + 1}"
        )
        display.set_run_position(run_number, run_count, remaining_s)
        print_heading.append(
            lambda attempt: display.begin_run(
                f"{attempt.plan.title}, {repeat_name}", run_number, run_count, attempt.plan
            )
        )

    def display_seed(seed_number: int) -> None:
        display.print_message(f"Seed of the order: {seed_number}")

    return RunnerObserver(on_seed=display_seed, on_begin=display_run_begin, on_message=display.print_message)


def _remove_leftover_files(engine: Engine, archive: Archive, run_group: str) -> None:
    """Removes the files that killed runs of this experiment left on the storage."""
    for directory in find_unfinished_run_directories(archive, run_group):
        with contextlib.suppress(UserError):  # `sonde clean` reports the reason
            engine.remove_leftovers(directory, dry_run=False)


def convert_results_to_json(experiment_run: ExperimentRun) -> dict[str, Any]:
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
                **_describe_training(item),
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


def _describe_training(cell_median: CellMedian) -> dict[str, Any]:
    return (
        {"accelerators": cell_median.accelerators, "utilizations": list(cell_median.utilizations)}
        if cell_median.utilizations
        else {}
    )


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
