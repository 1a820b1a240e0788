# SPDX-License-Identifier: Apache-2.0
"""Display of public objects in a notebook: the report in a frame, and tables."""

from __future__ import annotations

import html
import json
import re

import pytest
import run_builders
from make_record import write_run
from record_scene import Scene, Work

import sonde
from sonde.report import render_report
from sonde.store.shards import locate_run_folder

RUN = "20260101T000000Z-known-0001"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> sonde.ArchiveReader:
    """A run with a record, and twelve without, whose rate halves."""
    root = tmp_path_factory.mktemp("drawn") / "archive"
    folder = write_run(locate_run_folder(root, RUN), Scene(works=[Work("write", seconds=2.0), Work("read", op="read")]))
    phases = [run_builders.build_phase("write"), run_builders.build_phase("read")]
    (folder / "run.json").write_text(json.dumps(run_builders.build_run_document(RUN, phases)), encoding="utf-8")
    members = {"classification": "storage", "classification_text": "From storage.", "validity": "good"}
    for day in range(12):
        rate = (2e9 if day < 6 else 1e9) + day * 1e6
        phase = run_builders.build_phase("read", rate, **members)
        plan = {"id": "<b>daily</b>", "title": ""}
        run_builders.add_run(root, f"202602{day + 1:02d}T000000Z-daily-{day:08x}", [phase], plan=plan)
    run_builders.age_archive(root)
    return sonde.open(root)


def extract_framed_page(markup: str) -> str:
    """Returns the page in the frame."""
    match = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="" style="[^"]*"></iframe>', markup)
    assert match, markup[:200]
    return html.unescape(match[1])


def test_run_shows_its_report(archive: sonde.ArchiveReader) -> None:
    run = archive.run(RUN)
    assert extract_framed_page(run._repr_html_()) == render_report([run.folder])


def test_phase_html_contains_only_charts_of_the_phase(archive: sonde.ArchiveReader) -> None:
    page = extract_framed_page(archive.run(RUN).phase("write")._repr_html_())
    assert "Rate over time" in page
    assert "Latency: write" in page
    assert "Latency: read" not in page


def test_imported_run_shows_a_table(archive: sonde.ArchiveReader) -> None:
    run = archive.run()
    for markup in (run._repr_html_(), run.phases[0]._repr_html_()):
        assert markup.startswith("<table>")
        assert "<td>storage</td>" in markup


def test_run_list_shows_the_last_runs_escaped(archive: sonde.ArchiveReader) -> None:
    markup = archive.runs()._repr_html_()
    assert markup.count("<tr>") == 1 + 13
    assert "&lt;b&gt;daily&lt;/b&gt;" in markup
    assert "<b>" not in markup
    assert archive.runs(plan="nothing like it")._repr_html_().count("<tr>") == 1


def test_long_table_shows_its_length(archive: sonde.ArchiveReader) -> None:
    series = archive.run(RUN).phase("write").series()
    assert series is not None
    markup = series._repr_html_()
    assert markup.count("<tr>") == 1 + 20
    assert f"20 of {len(series)} rows" in markup


def test_comparison_shows_its_page(archive: sonde.ArchiveReader) -> None:
    result = archive.compare("2026-02-01..2026-02-06", "2026-02-07..2026-02-12")
    page = extract_framed_page(result._repr_html_())
    assert "1 of 1 numbers became slower" in page
    assert "−50 %" in page


def test_trends_show_their_page(archive: sonde.ArchiveReader) -> None:
    trends = archive.trends(plan="daily")
    page = extract_framed_page(trends._repr_html_())
    assert "<h1>Histories</h1>" in page
    assert html.escape(trends.summary) in page
    assert "<svg" in page
