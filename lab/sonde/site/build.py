# SPDX-License-Identifier: Apache-2.0
"""Builds the site of an archive. Pages whose input did not change are neither rendered nor written again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sonde.charts.markup import Markup
from sonde.charts.study import StudySection
from sonde.model.errors import RecordError, ReportError
from sonde.model.event import Event
from sonde.report import render_report
from sonde.site.baselines import compute_baseline_ratio
from sonde.site.event_pages import build_event_pages
from sonde.site.history_pages import HistoryContent, build_history_page, collect_history_content
from sonde.site.overview_pages import HistoryEntry, build_history_list, build_overview
from sonde.site.run_pages import RUN_LIST_COLUMNS, RunListPage, build_list_page, build_run_index, split_runs
from sonde.site.site_folder import SiteFolder, hash_page_inputs
from sonde.site.site_page import SitePage, get_run_page_path, make_page_link, make_site_page
from sonde.store.catalog import Catalog
from sonde.store.events import read_archive_events
from sonde.trends.archive_survey import OpenProgressBar, SurveyRequest, read_survey_and_histories
from sonde.trends.sides import BASELINE_PREFIX
from sonde.watch.watch_state import StateStore

_WATCH_FOLDER = "watch"


@dataclass(frozen=True)
class SiteReport:
    """Number of pages that a build wrote, left unchanged and removed."""

    written: int
    unchanged: int
    removed: int


def build_site(
    catalog: Catalog,
    site_root: Path,
    report_count: int,
    survey_progress: OpenProgressBar,
    page_progress: OpenProgressBar,
) -> SiteReport:
    """Builds or rebuilds the site in `site_root`: the latest `report_count` runs, and those around changes, have a
    whole page.

    Raises UserError where `site_root` holds other files. An interrupted build is continued by the next.
    """
    folder = SiteFolder.open_site(site_root)
    try:
        with page_progress() as step:
            _write_pages(_SiteContent(catalog, report_count, survey_progress), folder, step)
    except BaseException:
        folder.save_progress()
        raise
    folder.remove_stale_pages()
    return SiteReport(len(folder.written), folder.unchanged, len(folder.removed))


class _SiteContent:
    """Data that all pages are rendered from: runs, histories, survey and events."""

    def __init__(self, catalog: Catalog, report_count: int, progress: OpenProgressBar) -> None:
        request = SurveyRequest()
        self.root = catalog.root
        self.survey, self.histories = read_survey_and_histories(catalog, request, progress)
        self.events: list[Event] = [
            *read_archive_events(catalog.root),
            *self.survey.environment_events,
        ]
        self.incidents = StateStore(catalog.root / _WATCH_FOLDER).load_state(trusted_only=False).incidents
        self.complaints = catalog.describe_foreign_folders()
        self.runs = catalog.read_run_table(RUN_LIST_COLUMNS)
        self.lists: list[RunListPage] = list(split_runs(self.runs))
        self.run_links = {run: f"{page.name}#{run}" for page in self.lists for run in page.run_ids}
        self.tagged = _find_runs_tagged_as_baseline(self.runs)
        self.reports = self._choose_runs_with_report(report_count)
        analyses = {analysis.history.labels["history"]: analysis for analysis in self.survey.analyses}
        self.entries = [
            HistoryEntry(
                history,
                analysis := analyses.get(history.labels["history"]),
                compute_baseline_ratio(history, analysis, self.tagged),
            )
            for history in self.histories
        ]

    def _choose_runs_with_report(self, report_count: int) -> dict[str, str]:
        """Run -> folder below the archive: of the latest runs, and of the last before and first after each change."""
        runs = self.runs["run"].to_pylist()
        chosen = set(runs[len(runs) - report_count :]) if report_count else set()
        if report_count:
            for analysis in self.survey.analyses:
                for change in analysis.changes[-1:]:
                    first = int(np.searchsorted(analysis.history.times, change.first_after))
                    chosen |= set(analysis.history.runs[max(0, first - 1) : first + 1])
        folders = self.runs["folder"].to_pylist()
        return {run: folder for run, folder in zip(runs, folders, strict=True) if run in chosen}


def _find_runs_tagged_as_baseline(run_table: Any) -> set[str]:
    """Runs with a tag baseline:NAME."""
    return {
        run
        for run, tags in zip(run_table["run"].to_pylist(), run_table["tags"].to_pylist(), strict=True)
        if tags and any(tag.startswith(BASELINE_PREFIX) for tag in tags)
    }


def _write_pages(content: _SiteContent, site_folder: SiteFolder, on_progress: Callable[[int, int], None]) -> None:
    total = len(content.entries) + len(content.lists) + len(content.reports) + 4
    for done, (name, key, render) in enumerate(_iterate_pages(content), 1):
        site_folder.write_page(name, key, render)
        on_progress(min(done, total), total)


def _iterate_pages(content: _SiteContent) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Name, key and text of each page."""
    written_reports = set(content.reports)
    for run, run_folder in content.reports.items():
        path = content.root / run_folder
        try:
            version = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in sorted(path.iterdir())]
        except OSError:
            continue  # removed meanwhile
        yield (
            get_run_page_path(run),
            hash_page_inputs(run, version),
            partial(_render_run_page, path, content.run_links.get(run, "")),
        )
    for entry in content.entries:
        history_content = collect_history_content(
            entry.page_path,
            entry.history,
            entry.analysis,
            content.survey,
            content.events,
            content.run_links,
            written_reports,
        )
        yield (
            entry.page_path,
            hash_page_inputs(*history_content.list_parts()),
            partial(_render_history_page, history_content),
        )
    for page in content.lists:
        linked_runs = sorted(written_reports.intersection(page.run_ids))
        yield (
            page.name,
            hash_page_inputs(page.name, page.digest, linked_runs),
            partial(_render_run_list, page, written_reports),
        )
    for site_page in _build_small_pages(content):
        text = site_page.render()
        yield site_page.name, hash_page_inputs(text), partial(str, text)


def _render_history_page(content: HistoryContent) -> str:
    return build_history_page(content).render()


def _render_run_list(page: RunListPage, runs_with_report: set[str]) -> str:
    return build_list_page(page, runs_with_report).render()


def _render_run_page(run_folder: Path, links_line: str) -> str:
    """The report of a run, with links back to the site; a page that says why where there is none."""
    name = get_run_page_path(run_folder.name)
    links = Markup('<p class="note">{} · {}</p>').format(
        make_page_link("index.html", "Overview", "../"),
        make_page_link(links_line or "runs.html", "All runs of that time", "../"),
    )
    try:
        return render_report([run_folder], leading_sections=[StudySection("In the archive", [], [links])])
    except (ReportError, RecordError) as error:
        return make_site_page(name, run_folder.name, alarm_texts=[str(error)]).render()


def _build_small_pages(content: _SiteContent) -> Iterator[SitePage]:
    yield build_overview(content.entries, content.survey, content.events, content.incidents, len(content.runs))
    yield build_history_list(content.entries, content.survey)
    yield build_run_index(content.lists, content.complaints)
    yield from build_event_pages(content.events, content.survey)
