# SPDX-License-Identifier: Apache-2.0
"""Lists of all runs, 500 on a page, and the index of these lists by month."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import StudySection
from sonde.model.units import format_count_with_noun
from sonde.site.site_page import SitePage, get_run_page_path, make_page_link, make_site_page
from sonde.trends.comparison_text import format_history_rate

RUN_LIST_COLUMNS = (
    "run", "folder", "started_s", "plan", "title", "target", "host", "nodes", "tasks", "status", "seconds", "source",
    "validity", "caveats", "tags", "write_bytes_per_s", "read_bytes_per_s", "write_ops_per_s", "read_ops_per_s",
)  # fmt: skip
_RUNS_PER_PAGE = 500
_COLUMN_TITLES = (
    "Started (UTC)", "Run", "Target", "Status", "Validity", "Tags", "Tasks", "Seconds", "Write", "Read",
)  # fmt: skip


@dataclass(frozen=True)
class RunListPage:
    """A page of up to 500 runs of one month, in order of their start. `digest` identifies their rows."""

    name: str
    month: str
    rows: Any  # a table with COLUMNS
    digest: str

    @property
    def run_ids(self) -> list[str]:
        """The ids of the runs on this page, in the order of the rows."""
        ids: list[str] = self.rows["run"].to_pylist()
        return ids


def split_runs(run_table: Any) -> Iterator[RunListPage]:
    """The pages of a table of all runs, sorted by start. Only the last page of a month changes when a run is added."""
    starts = run_table["started_s"].to_pylist()
    months = [_format_month(start) for start in starts]
    begin = 0
    while begin < len(months):
        month = months[begin]
        end = begin
        while end < len(months) and months[end] == month:
            end += 1
        for number, first in enumerate(range(begin, end, _RUNS_PER_PAGE), 1):
            rows = run_table.slice(first, min(_RUNS_PER_PAGE, end - first)).combine_chunks()
            yield RunListPage(f"runs/{month}-{number}.html", month, rows, _hash_rows(rows))
        begin = end


def _format_month(start_time: float | None) -> str:
    return f"{datetime.fromtimestamp(start_time or 0.0, UTC):%Y-%m}"


def _hash_rows(run_rows: Any) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, run_rows.schema) as writer:
        writer.write_table(run_rows)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def build_list_page(page: RunListPage, runs_with_report: Collection[str]) -> SitePage:
    """The page of up to 500 runs."""
    rows = [_make_table_row(row, runs_with_report) for row in reversed(page.rows.to_pylist())]
    caption = f"{format_count_with_noun(len(rows), 'run')}, the latest first; rates are those of the fastest phase"
    section = StudySection("List", [f"{caption}."], [render_html_table(_COLUMN_TITLES, rows, text_columns=6)])
    first, last = rows[-1][0], rows[0][0]
    return make_site_page(
        page.name, f"Runs of {page.month}", labels_with_values=[("From", first), ("To", last)], sections=[section]
    )


def _make_table_row(run_row: Mapping[str, Any], runs_with_report: Collection[str]) -> tuple[Any, ...]:
    run = str(run_row["run"])
    link = make_page_link(get_run_page_path(run), run, "../") if run in runs_with_report else Markup.escape(run)
    started = datetime.fromtimestamp(run_row["started_s"] or 0.0, UTC)
    validity = ", ".join(filter(None, [run_row["validity"] or "", *(run_row["caveats"] or [])]))
    return (
        f"{started:%Y-%m-%d %H:%M}",
        Markup('<a id="{}"></a>{}').format(run, link),
        run_row["target"] or run_row["host"] or "",
        run_row["status"] or "",
        validity,
        ", ".join(run_row["tags"] or []),
        f"{run_row['tasks']:,}" if run_row["tasks"] else "",
        f"{run_row['seconds']:,.0f}" if run_row["seconds"] is not None else "",
        _format_rate(run_row, "write"),
        _format_rate(run_row, "read"),
    )


def _format_rate(run_row: Mapping[str, Any], direction_name: str) -> str:
    for unit, column in (("bytes/s", "bytes_per_s"), ("op/s", "ops_per_s")):
        value = run_row[f"{direction_name}_{column}"]
        if value:
            return format_history_rate(value, unit)
    return ""


def build_run_index(pages: Sequence[RunListPage], complaints: Sequence[str]) -> SitePage:
    """The page with all months and the links to their lists."""
    months: dict[str, list[RunListPage]] = {}
    for page in pages:
        months.setdefault(page.month, []).append(page)
    rows = [
        (
            month,
            f"{sum(len(page.rows) for page in lists):,}",
            Markup(" ").join(make_page_link(page.name, str(number)) for number, page in enumerate(lists, 1)),
        )
        for month, lists in sorted(months.items(), reverse=True)
    ]
    total = sum(len(page.rows) for page in pages)
    sentences = [*complaints[:5], *([f"{len(complaints) - 5} more folders like that."] * (len(complaints) > 5))]
    section = StudySection(
        "Lists", sentences, [render_html_table(["Month", "Runs", "Lists"], rows, "Runs by month", text_columns=3)]
    )
    return make_site_page(
        "runs.html", "Runs", f"{format_count_with_noun(total, 'run')} in the archive.", sections=[section]
    )
