# SPDX-License-Identifier: Apache-2.0
"""Runs experiments for `sonde run`, `sonde suite` and `sonde simulate`, and prints their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.cli.forecast_output import convert_forecasts_to_json, print_forecast
from sonde.cli.report_writing import write_page_with_status
from sonde.cli.run_options import OutputOptions, RunRequest, make_output_display
from sonde.conduct.run import make_engine_failure
from sonde.experiments.caveats import describe_run_caveats
from sonde.experiments.cells import prepare_cells
from sonde.experiments.executed_runs import (
    describe_executed_runs,
    describe_profile_changes,
    describe_shared_directories,
    describe_smoke_test,
)
from sonde.experiments.experiment_builder import apply_command_line, build_experiment_from_plan
from sonde.experiments.experiment_run import (
    ExperimentRun,
    convert_results_to_json,
    describe_failure,
    run_experiment_request,
)
from sonde.experiments.forecast import Forecaster, choose_exit_code_of_refusals
from sonde.experiments.medians import BYTE_RATE_UNIT, CellMedian, VariantEffect
from sonde.experiments.page.page import write_experiment_page
from sonde.experiments.page.sentences import list_verdict_lines
from sonde.experiments.ranking import describe_ranking
from sonde.experiments.request import ExperimentRequest, create_request, resume_request
from sonde.experiments.results import Results
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.launch.engine import find_engine
from sonde.model.errors import EXIT_INTERRUPTED, EXIT_OK, UserError
from sonde.model.experiment import make_experiment, read_experiment
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.plan import Plan
from sonde.model.system import System
from sonde.model.units import format_count_with_noun, format_ops, format_rate
from sonde.store.archive import REPORT_FILE
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json


def run_experiment_file(experiment_source: str, run_request: RunRequest, output: OutputOptions) -> int:
    """Runs the experiment in a file, or only its missing runs."""
    experiment = read_experiment(experiment_source, find_plan=resolve_plan_source)
    if run_request.has_additions:
        experiment = make_experiment(_apply_request_options(experiment.document, run_request), experiment.origin)
    request = create_request(
        experiment,
        run_request.profile,
        run_request.settings,
        run_request.locations,
        run_request.group,
        run_request.tags,
        run_request.note,
    )
    return run_experiment_and_print(resume_request(output.archive, request, run_request.resume), output)


def run_plan(plan: Plan, run_request: RunRequest, output: OutputOptions) -> int:
    """Runs a plan as an experiment, with repeats and sweeps."""
    experiment = make_experiment(_apply_request_options(build_experiment_from_plan(plan), run_request), plan.origin)
    # The plan already has its settings and directory.
    locations = replace(run_request.locations, default="")
    request = create_request(experiment, "", (), locations, run_request.group, run_request.tags, run_request.note)
    return run_experiment_and_print(resume_request(output.archive, request, run_request.resume), output)


def _apply_request_options(experiment_document: Mapping[str, Any], run_request: RunRequest) -> dict[str, Any]:
    return apply_command_line(
        experiment_document, run_request.repeat, run_request.warmup, run_request.prepare, run_request.sweeps
    )


def run_experiment_and_print(request: ExperimentRequest, output: OutputOptions) -> int:
    """Runs the experiment and prints the results. Raises the error that ends the command if it failed."""
    if output.dry_run:
        return _print_forecasts(request, output)
    experiment_run = run_experiment_and_write_page(request, output)
    if output.as_json:
        print_json(convert_results_to_json(experiment_run))
    elif output.quiet:
        get_results_console().print(experiment_run.outcome.group, soft_wrap=True)
    else:
        print_experiment_results(get_results_console(), experiment_run)
    if experiment_run.exit_code != EXIT_OK:
        raise make_engine_failure(experiment_run.exit_code, describe_failure(experiment_run))
    return EXIT_OK


def _print_forecasts(request: ExperimentRequest, output: OutputOptions) -> int:
    """Prints the forecast without running anything. The exit code is 2 or 3 if no cell can be run."""
    engine, repeat = find_engine(), request.repeat_rules
    forecaster = Forecaster(engine, output.rate, repeat.min + repeat.warmup, request.locations.launcher)
    cells = prepare_cells(request.experiment, request.locations.load_directories_with_system(), request.group)
    forecasts = [forecaster.forecast_cell(item) for item in cells]
    if output.as_json:
        print_json(convert_forecasts_to_json(request.experiment, forecasts))
    else:
        print_forecast(get_results_console(), request.experiment, forecasts)
    return (
        choose_exit_code_of_refusals(item.exit_code for item in forecasts)
        if all(item.refusal for item in forecasts)
        else EXIT_OK
    )


def run_experiment_and_write_page(request: ExperimentRequest, output: OutputOptions) -> ExperimentRun:
    """Runs an experiment, reads its results and writes its page. Raises UserError for an unknown location name."""
    display = make_output_display(output)
    experiment_run = run_experiment_request(
        request, output.archive, display, output.mpi_module, output.create_executor, output.device_permission
    )
    if not output.report or not experiment_run.results.runs:
        return experiment_run
    return replace(experiment_run, page=_write_page_or_warn(experiment_run.results, experiment_run.system, output))


def _write_page_or_warn(results: Results, system: System | None, output: OutputOptions) -> Path | None:
    """Writes the page of the experiment. Prints a warning on failure, since the runs are stored anyway."""
    page = results.folder / REPORT_FILE

    def write_page() -> Path:
        write_experiment_page(results, page, system)
        return page

    try:
        return write_page_with_status(write_page, page, output.quiet)
    except UserError as reason:
        get_messages_console().print(f"sonde: no page was written: {reason}", soft_wrap=True)
        return None


def print_experiment_results(console: Console, experiment_run: ExperimentRun) -> None:
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
        console.print(Text(describe_variant_effect(effect)), soft_wrap=True)
    for line in list_verdict_lines(experiment_run.verdicts):
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


def _format_unit_rate(unit_rate: float, rate_unit: str) -> str:
    return format_rate(unit_rate) if rate_unit == BYTE_RATE_UNIT else format_ops(unit_rate)


def describe_variant_effect(effect: VariantEffect) -> str:
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
    runs = f"{format_count_with_noun(ratio.before, 'run')} against {ratio.after}"
    return f"{head} ({interval_text}, {runs}){verdict}{sensitivity}."
