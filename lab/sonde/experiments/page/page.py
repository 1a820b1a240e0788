# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment: verdicts, figures and tables, then all cells, missing cells and assumptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import Study, StudySection, write_study_page
from sonde.experiments.caveats import describe_run_caveats
from sonde.experiments.claims.measured_runs import MeasuredRun, MeasuredRuns
from sonde.experiments.claims.requirements import find_unmet_requirements
from sonde.experiments.claims.verdicts import ClaimResult, convert_verdicts_to_json, evaluate_claims
from sonde.experiments.executed_runs import (
    describe_executed_runs,
    describe_profile_changes,
    describe_shared_directories,
    describe_smoke_test,
)
from sonde.experiments.medians import compute_medians, describe_non_storage_numbers
from sonde.experiments.page.export import build_result_table
from sonde.experiments.page.figures import make_figure_section
from sonde.experiments.page.published_comparison import SECTION_TITLES, make_published_section
from sonde.experiments.page.sentences import count_verdicts, describe_verdict
from sonde.experiments.page.tables import make_all_cells_section, make_table_section
from sonde.experiments.ranking import describe_ranking, list_figures_or_default
from sonde.experiments.results import Results
from sonde.experiments.source_documents import describe_sources
from sonde.model.bundled_files import find_system_file
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.experiment.description import FigureDescription, TableDescription
from sonde.model.quantities import display_count_with_noun, replace_no_break_spaces
from sonde.model.system import read_system
from sonde.model.system.system import System
from sonde.model.units import format_count_with_noun
from sonde.store.tableformat import write_table

_CSS_CLASSES_BY_VERDICT = {
    ClaimVerdict.HOLDS: "holds",
    ClaimVerdict.FAILS: "fails",
    ClaimVerdict.UNDECIDED: "open",
    ClaimVerdict.NOT_JUDGED: "absent",
}
_SYMBOLS_BY_VERDICT = {
    ClaimVerdict.HOLDS: "✓ ",
    ClaimVerdict.FAILS: "✕ ",
    ClaimVerdict.UNDECIDED: "? ",
    ClaimVerdict.NOT_JUDGED: "– ",
}


def evaluate_results(
    results: Results,
    system: System | None = None,
    unmet_requirements: Mapping[str, str] | None = None,
    is_deterministic: bool = False,
) -> tuple[MeasuredRuns, list[ClaimResult]]:
    """Returns the runs of an experiment as a source of samples, and the verdicts of its claims. `is_deterministic`:
    every run gives the same values, as with a model without noise."""
    measured = [MeasuredRun(run.cell, f"{run.folder.name}", run.folder) for run in results.runs if not run.warm_up]
    runs = MeasuredRuns(
        results.experiment,
        measured,
        {**results.failures, **results.refusals},
        system,
        is_deterministic=is_deterministic,
    )
    levels = ("simulated", "measured") if results.simulated else ("measured",)
    return runs, evaluate_claims(results.experiment, runs, levels, unmet_requirements, results.profile)


def write_experiment_page(
    results: Results, page_file: Path, system: System | None = None, data_formats: Sequence[str] = ()
) -> tuple[list[Path], list[dict[str, Any]]]:
    """Writes the page, and all numbers in each of `data_formats` (csv, json, parquet) in the same folder.

    Returns these files and the verdicts as JSON members. Without `system`, units and peaks come from the experiment's
    own system file, but only for simulated results: it does not describe other storage. Raises UserError.
    """
    storage = results.experiment.file.storage
    if system is None and results.simulated and storage is not None and storage.system:
        system = read_system(find_system_file(storage.system))
    runs, verdicts = evaluate_results(results, system, find_unmet_requirements(results, system))
    write_study_page(build_experiment_page(results, runs, verdicts), page_file)
    tables = [page_file.with_suffix(f".{extension}") for extension in data_formats]
    if tables:
        result_rows = build_result_table(runs)
        for path in tables:
            write_table(result_rows, path)
    return tables, convert_verdicts_to_json(verdicts)


def build_experiment_page(results: Results, measured_runs: MeasuredRuns, claim_results: Sequence[ClaimResult]) -> Study:
    """Builds the page."""
    file = results.experiment.file
    sections = [_make_verdict_section(claim_results)] if claim_results else []
    medians = compute_medians(results)
    figures = list_figures_or_default(results.experiment, medians)
    if ranking := describe_ranking(medians):
        sections.append(StudySection("Ranking", ranking, []))
    sections += [_make_figure_or_table_section(item, "Figure", make_figure_section, measured_runs) for item in figures]
    sections += [
        _make_figure_or_table_section(item, "Table", make_table_section, measured_runs) for item in file.tables
    ]
    messages, comparison_parts = make_published_section(measured_runs, results.simulated)
    if messages:
        sections.append(StudySection(SECTION_TITLES[results.simulated], messages, comparison_parts))
    others = describe_non_storage_numbers(medians)
    cell_messages, parts = make_all_cells_section(measured_runs)
    cell_messages = [*others, *cell_messages]
    sections.append(StudySection("All cells", cell_messages, parts))
    sections += _make_missing_cells_section(results)
    if file.notes:
        notes = Markup("").join(Markup("<li>{}</li>").format(item) for item in file.notes)
        sections.append(StudySection("What was assumed", [], [Markup('<ul class="remarks">{}</ul>').format(notes)]))
    return Study(
        title=results.experiment.title,
        lead=_make_lead_text(results, measured_runs, claim_results),
        facts=_make_fact_rows(results, measured_runs),
        alarms=[*_make_alarm_texts(results, claim_results), *describe_run_caveats(results)],
        sections=sections,
    )


def _make_lead_text(results: Results, measured_runs: MeasuredRuns, claim_results: Sequence[ClaimResult]) -> str:
    if not claim_results:
        return "This experiment has no claims; these are its results."
    unfinished = measured_runs.count_unfinished_runs()
    text = (
        f"Of {replace_no_break_spaces(display_count_with_noun(len(claim_results), 'expectation'))} "
        f"{count_verdicts(claim_results)}."
    )
    return text + (
        f" {replace_no_break_spaces(display_count_with_noun(unfinished, 'run'))} did not finish and are left out."
        if unfinished
        else ""
    )


def _make_fact_rows(results: Results, measured_runs: MeasuredRuns) -> list[tuple[str, str]]:
    cells = len(results.experiment.cells)
    facts = [
        ("Group", results.group),
        ("Size", results.profile or "as the file says"),
        ("Not as titled", describe_profile_changes(results).partition("; ")[2].removesuffix(".")),
        ("What ran", describe_executed_runs(results).partition(": ")[2].removesuffix(".")),
        (
            "Runs",
            replace_no_break_spaces(
                f"{display_count_with_noun(measured_runs.run_count(), 'run')} of "
                f"{display_count_with_noun(cells, 'cell')}"
            ),
        ),
        ("On", "" if results.simulated else ", ".join(dict.fromkeys(results.directories.values())) or "not known"),
        ("Source", describe_sources(results.experiment)),
    ]
    if results.simulated:
        facts.append(("Machine", "simulated: no storage was measured"))
    return [(name, text) for name, text in facts if text.strip()]


def _make_alarm_texts(results: Results, claim_results: Sequence[ClaimResult]) -> list[str]:
    failed = [verdict.expectation.id for verdict in claim_results if verdict.outcome is ClaimVerdict.FAILS]
    alarms = [f"Not as expected: {', '.join(failed)}."] if failed else []
    if results.failures:
        reason = next(iter(results.failures.values()))
        alarms.append(f"Runs of {format_count_with_noun(len(results.failures), 'cell')} failed: {reason}")
    alarms += [*filter(None, [describe_smoke_test(results)]), *describe_shared_directories(results)]
    if results.simulated:
        alarms.append("These numbers come from a model, not from storage.")
    return alarms


def _make_verdict_section(claim_results: Sequence[ClaimResult]) -> StudySection:
    rows = Markup("").join(
        Markup('<tr><td class="{}">{}{}</td><td>{}</td><td>{}<code>{}</code>{}{}</td></tr>').format(
            _CSS_CLASSES_BY_VERDICT[verdict.outcome],
            _SYMBOLS_BY_VERDICT[verdict.outcome],
            str(verdict.outcome),
            verdict.expectation.id,
            describe_verdict(verdict),
            verdict.expectation.claim,
            _make_reason_markup("Published: ", verdict.expectation.published),
            _make_reason_markup("Because ", verdict.expectation.why),
        )
        for verdict in claim_results
    )
    body = Markup(
        '<table class="claims"><colgroup><col class="o"><col class="i"><col></colgroup>'
        "<thead><tr><th>Outcome</th><th>Claim</th><th>Result</th></tr></thead><tbody>{}</tbody></table>"
    ).format(rows)
    messages = ["Claims compare the confidence interval of the median: value [low, high] with 95 % confidence."]
    return StudySection("Claims", messages, [body])


def _make_reason_markup(label_text: str, reason_text: str) -> Markup:
    return (
        Markup('<span class="why">{}{}.</span>').format(label_text, reason_text.rstrip("."))
        if reason_text
        else Markup("")
    )


def _make_figure_or_table_section(
    figure_or_table: FigureDescription | TableDescription,
    section_noun: str,
    make_texts_and_charts: Callable[..., tuple[list[str], list[Markup]]],
    measured_runs: MeasuredRuns,
) -> StudySection:
    messages, parts = make_texts_and_charts(figure_or_table, measured_runs)
    source = [f"In the form of: {figure_or_table.source}."] if figure_or_table.source else []
    return StudySection(figure_or_table.title or f"{section_noun} {figure_or_table.id}", [*source, *messages], parts)


def _make_missing_cells_section(results: Results) -> list[StudySection]:
    rows = [(cell, reason) for cell, reason in {**results.failures, **results.refusals}.items()]
    if not rows:
        return []
    return [StudySection("Cells without a result", [], [render_html_table(["Cell", "Why"], rows, "", text_columns=2)])]
