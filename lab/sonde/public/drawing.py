# SPDX-License-Identifier: Apache-2.0
"""Draws public objects for notebooks: the pages of the report, each in a frame."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sonde.charts.page_renderer import render_page_template
from sonde.charts.study import Study, StudySection
from sonde.experiments.claims.requirements import find_unmet_requirements
from sonde.experiments.page.page import build_experiment_page, evaluate_results
from sonde.experiments.results import Results
from sonde.findings.phase_summary import assess_phase
from sonde.model.system import System
from sonde.public.records import read_recorded_run
from sonde.report import render_report
from sonde.report.sections.section import draw_sections_of_phase
from sonde.trends.archive_comparison import ArchiveComparison
from sonde.trends.comparison_page import build_comparison_page
from sonde.trends.survey import Survey
from sonde.trends.survey_page import build_survey_page

_STUDY_TEMPLATE = "study.html.j2"


def render_report_of_runs(run_folders: Sequence[Path], title: str | None = None) -> str:
    """Returns the report of these runs. Raises ReportError if one has no record."""
    return _make_iframe(render_report(run_folders, title))


def render_charts_of_phase(run_folder: Path, phase_id: str) -> str:
    """Returns the charts that the report has of one phase. Raises ReportError if the run has no record."""
    run = read_recorded_run(run_folder)
    assessed = assess_phase(run, run.record.phases[phase_id])
    drawings = draw_sections_of_phase(run, assessed)
    parts = [*drawings["wide"], *drawings["narrow"], *drawings["small"]]
    summary = assessed.summary
    facts = [("Rate", str(summary.rate))] if summary.rate else []
    study = Study(f"{phase_id}: {summary.access}", summary.detail_text, facts, [], [StudySection("Charts", [], parts)])
    return _make_iframe(render_page_template(study, _STUDY_TEMPLATE))


def render_experiment_page(results: Results, system: System | None) -> str:
    """Returns the page of an experiment, as `sonde run --report` writes it."""
    runs, verdicts = evaluate_results(results, system, find_unmet_requirements(results, system))
    return _make_iframe(render_page_template(build_experiment_page(results, runs, verdicts), _STUDY_TEMPLATE))


def draw_comparison(comparison: ArchiveComparison) -> str:
    """Returns the page of a comparison, as `sonde compare -o` writes it."""
    page = build_comparison_page(comparison.numbers, comparison.environment, {}, comparison.targets)
    return _make_iframe(render_page_template(page, _STUDY_TEMPLATE))


def render_survey_page(survey: Survey, measure: str, events: Sequence[Any]) -> str:
    """Returns the page of a survey, as `sonde trend -o` writes it."""
    return _make_iframe(render_page_template(build_survey_page(survey, measure, events), _STUDY_TEMPLATE))


def _make_iframe(page_html: str) -> str:
    """Returns an HTML element that shows the page. Its style does not affect the notebook, and it cannot run
    scripts."""
    style = "width: 100%; height: 40em; border: 0"
    return f'<iframe srcdoc="{html.escape(page_html)}" sandbox="" style="{style}"></iframe>'
