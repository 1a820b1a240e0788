# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment: outcomes, figures and tables show what was put in, and say what is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from in_memory_runs import Phase, build_experiment, make_claim, make_runs, record

from sonde.experiments.claims.verdicts import ComparisonResult, evaluate_claims
from sonde.experiments.page.call_chart import MAX_DRAWN_CALLS, select_calls_to_draw
from sonde.experiments.page.export import build_result_table
from sonde.experiments.page.figures import make_figure_section
from sonde.experiments.page.page import build_experiment_page, write_experiment_page
from sonde.experiments.page.sentences import describe_verdict, list_verdict_lines
from sonde.experiments.page.tables import make_all_cells_section, make_table_section
from sonde.experiments.results import CellRun, Results
from sonde.experiments.shipped_experiments import list_shipped_experiments
from sonde.experiments.source_documents import DOCUMENT_TITLES, describe_sources
from sonde.model.experiment import read_experiment
from sonde.model.experiment.experiment import Experiment
from sonde.stats.bounds import BoundedValue

ROOT = Path(__file__).resolve().parents[3]
SCATTER = (0.98, 1.03, 1.0, 0.99, 1.02, 1.01)
PLAN = {
    "data": {"access": {"transfer": "1MiB", "volume": "4MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}
TRANSFERS = {"name": "transfer", "paths": "data.access.transfer", "values": ["1MiB", "2MiB", "4MiB"]}


def make_figure(
    figure_kind: str, x_axis: str = "transfer", series_axis: str = "phase", **members: Any
) -> dict[str, Any]:
    return {"id": "f", "kind": figure_kind, "metrics": "bandwidth", "x": x_axis, "series": series_axis, **members}


def build_swept_experiment(**members: Any) -> Experiment:
    return build_experiment(plan=PLAN, sweep=[TRANSFERS], **members)


def make_runs_of_levels(experiment: Experiment, levels: Sequence[float]) -> Any:
    """Writing gives the levels in MB/s, one for each cell; reading twice as much."""
    slices = [2e6] * 40
    records = {
        cell.id: [
            record([Phase(rate=level * factor * 1e6, slices=slices, nodes=[1e6, 2e6]),
                    Phase("read", "read", rate=level * factor * 2e6, slices=slices)])
            for factor in SCATTER
        ]
        for cell, level in zip(experiment.cells, levels, strict=False)
    }  # fmt: skip
    return make_runs(experiment, records)


def draw_figure(experiment: Experiment, levels: Sequence[float] = (100, 200, 300)) -> tuple[list[str], str]:
    messages, parts = make_figure_section(experiment.file.figures[0], make_runs_of_levels(experiment, levels))
    return messages, " ".join(parts)


def test_curve_has_line_per_phase_and_median_table() -> None:
    messages, html = draw_figure(build_swept_experiment(figures=[make_figure("curve", logarithmic=True)]))
    assert messages == []
    for value in ("201 MB/s", "302 MB/s", "603 MB/s"):
        assert value in html
    assert html.count('class="curve c') == 2
    assert "Medians of 6 runs; lines: 95 % interval." in html


def test_bar_chart_has_a_bar_per_phase_and_axis_value() -> None:
    _, html = draw_figure(build_swept_experiment(figures=[make_figure("bars")]))
    assert html.count('class="arow"') == 6
    assert "302 MB/s" in html


def test_other_axes_split_into_separate_charts() -> None:
    direct = {"name": "direct", "paths": "data.io.direct", "values": [False, True], "labels": ["buffered", "direct"]}
    experiment = build_experiment(plan=PLAN, sweep=[TRANSFERS, direct], figures=[make_figure("curve")])
    _, html = draw_figure(experiment, (1, 2, 3, 4, 5, 6))
    assert html.count("<figure") == 2
    assert "<h4>buffered</h4>" in html
    assert "<h4>direct</h4>" in html


def test_a_figure_shows_only_the_cells_that_it_names() -> None:
    _, html = draw_figure(
        build_swept_experiment(figures=[make_figure("bars", where={"transfer": "2MiB"}, phases=["write"])])
    )
    assert html.count('class="arow"') == 1
    assert "201 MB/s" in html


def test_percentages_are_against_the_baseline_of_the_series() -> None:
    _, html = draw_figure(
        build_swept_experiment(
            figures=[make_figure("percent", x_axis="phase", series_axis="transfer", baseline="1MiB")]
        )
    )
    assert "+100 %" in html
    assert "+200 %" in html


def test_scaling_chart_has_proportional_line_and_text() -> None:
    _, html = draw_figure(build_swept_experiment(figures=[make_figure("scaling", phases=["write"])]), (100, 150, 200))
    assert "write: 2.00 times at 4 times the size" in html
    assert "write, proportional" in html
    assert "402 MB/s" in html


def test_scaling_table_has_intervals_and_peak_fraction() -> None:
    units = {"name": "pool", "paths": ["storage.pool", "storage.units"], "values": [["FS1", 1], ["FS2", 2], ["FS3", 4]]}
    experiment = build_experiment(plan=PLAN, sweep=[units], storage={"pool": "FS1", "peak": "1 GB/s"},
                      figures=[make_figure("scaling", x_axis="pool", phases=["write"])])  # fmt: skip
    _, html = draw_figure(experiment, (100, 150, 200))
    row = html[html.index("FS3", html.index("E(k)")) :].split("</tr>")[0]
    assert "201 MB/s" in row  # the median of the scatter is 1.005
    assert re.search(r"2 \[1\.\d+, 2\.\d+\]", row)
    assert re.search(r"0\.5 \[0\.4\d*, 0\.5\d*\]", row)
    assert "50.2 MB/s" in row
    assert "20.1 %" in row


def test_rates_over_time_of_two_phases_are_overlaid() -> None:
    _, html = draw_figure(
        build_swept_experiment(figures=[make_figure("over_time", x_axis="time", where={"transfer": "1MiB"})])
    )
    assert html.count('class="overlaid c') == 2
    assert "20.0 MB/s" in html  # 2 MB in each slice of 0.1 s


def test_rates_of_nodes_are_medians_over_runs() -> None:
    _, html = draw_figure(
        build_swept_experiment(
            figures=[make_figure("nodes", x_axis="node", phases=["write"], where={"transfer": "1MiB"})]
        )
    )
    assert "1.00 MB/s" in html
    assert "2.00 MB/s" in html


def test_figure_reports_missing_points() -> None:
    experiment = build_swept_experiment(figures=[make_figure("bars", per="unit")])
    messages, html = draw_figure(experiment)
    assert html == ""
    assert messages == [
        "Not drawn: how many units the storage has: say storage.units, or name the system with --system."
    ]
    messages, _ = draw_figure(build_swept_experiment(figures=[make_figure("curve")]), (100,))
    assert "Not drawn: cell transfer=2MiB has no run." in messages


def test_call_chart_uses_the_operation_log(tmp_path: Path) -> None:
    plan = {**PLAN, "phases": [{"id": "read", "op": "write", "operations_file": "calls"}]}
    experiment = build_experiment(plan=plan, figures=[make_figure("calls", x_axis="call")])
    source = make_runs(experiment, {"base": [record([Phase("read")])]})
    assert make_figure_section(experiment.file.figures[0], source)[0] == [
        "Not drawn: no run of cell base has a log of the operations of read."
    ]
    (tmp_path / "calls-00000.csv").write_text("time,runtime,tp\n0,0.001,1\n1,0.5,1\n", encoding="utf-8")
    source._runs["base"] = [replace(source._runs["base"][0], folder=tmp_path)]
    _, parts = make_figure_section(experiment.file.figures[0], source)
    assert "500 ms" in parts[0]


def test_longest_calls_are_always_plotted() -> None:
    times = [0.001] * 100_000
    times[77_777] = 2.0
    positions, seconds = select_calls_to_draw(times)
    assert len(positions) <= MAX_DRAWN_CALLS
    assert (77_777.0, 2.0) in zip(positions, seconds, strict=True)


def test_table_has_medians_intervals_and_scatter() -> None:
    experiment = build_swept_experiment(tables=[{"id": "t", "rows": ["transfer", "phase"], "metrics": ["bandwidth"]}])
    messages, parts = make_table_section(experiment.file.tables[0], make_runs_of_levels(experiment, (100, 200, 300)))
    assert messages == []
    assert parts[0].count("<tr>") == 7
    assert "98.3 MB/s … 103 MB/s" in parts[0]  # the interval that the table of the terminal has, too
    assert "1.9 % [" in parts[0]


def test_export_has_each_metric_of_each_run() -> None:
    table = build_result_table(make_runs_of_levels(build_swept_experiment(), (100, 200, 300)))
    rows = [
        row
        for row in table.to_pylist()
        if (row["metric"], row["phase"], row["cell"]) == ("bandwidth", "write", "transfer=2MiB")
    ]
    assert sorted(row["value"] for row in rows) == pytest.approx(sorted(200e6 * factor for factor in SCATTER))
    assert {row["transfer"] for row in rows} == {"2MiB"}
    assert not [row for row in table.to_pylist() if row["metric"] == "residency"]


def test_export_has_published_and_measured_numbers() -> None:
    source = {"source": "D11"}
    experiment = build_swept_experiment(published=[
        {"of": 'bandwidth(write, transfer="2048KiB")', "value": "1 GB/s", "limit": "about", **source},
        {"of": 'bandwidth(write, transfer="2MiB")', "value": "2 GB/s", **source},
        {"of": 'bandwidth(read, transfer="1MiB") / bandwidth(write, transfer="1MiB")', "value": 4, **source},
        {"of": 'bandwidth(write, transfer="4MiB")', "value": "1 GB/s", "to": "3 GB/s", **source},
    ])  # fmt: skip
    rows = build_result_table(make_runs_of_levels(experiment, (100, 200))).to_pylist()
    compared_rows = [row for row in rows if row["run"] and row["published"] is not None]
    assert {(row["metric"], row["phase"], row["transfer"]) for row in compared_rows} == {("bandwidth", "write", "2MiB")}
    assert len(compared_rows) == len(SCATTER)
    for row in compared_rows:
        assert (row["published"], row["published_unit"], row["published_limit"]) == (1e9, "B/s", "about")
        assert row["published_source"] == "D11"
        assert row["ratio"] == pytest.approx(row["value"] / 1e9)
    second, of_two, not_measured = (row for row in rows if not row["run"])
    assert (second["published"], second["transfer"], second["phase"]) == (2e9, "2MiB", "write")
    assert second["ratio"] == pytest.approx(201e6 / 2e9)
    assert (of_two["unit"], of_two["ratio"]) == ("1", pytest.approx(0.5))
    assert of_two["metric"].startswith("bandwidth(read")
    assert (not_measured["published_to"], not_measured["value"], not_measured["ratio"]) == (3e9, None, None)
    assert not_measured["cell"] == "transfer=4MiB"


def test_a_ratio_has_no_unit_in_any_form() -> None:
    kinds = [{**make_figure(kind, phases=["write"]), "metrics": "calls"} for kind in ("curve", "bars", "scaling")]
    experiment = build_swept_experiment(figures=[{**kind, "id": kind["kind"]} for kind in kinds],
                 tables=[{"id": "t", "rows": ["transfer", "phase"], "metrics": ["calls"]}])  # fmt: skip
    source = make_runs_of_levels(experiment, (100, 200, 300))
    parts = [str(part) for figure in experiment.file.figures for part in make_figure_section(figure, source)[1]]
    parts += [str(part) for part in make_table_section(experiment.file.tables[0], source)[1]]
    assert len(parts) == 4
    for part in parts:
        assert re.search(r"\b1,000\b", part)
        assert "1,000 1" not in part


def test_verdicts_are_formatted_as_sentences() -> None:
    claims = [
        ("C1", 'bandwidth(write, transfer="2MiB") / bandwidth(write, transfer="1MiB") >= 1.5'),
        ("C2", "bandwidth(write) / bandwidth(read) >= 1"),
        ("C3", "bandwidth_per_unit(write) >= 1"),
    ]
    experiment = build_swept_experiment(expect=[{**make_claim(text), "id": name} for name, text in claims])
    judged = evaluate_claims(experiment, make_runs_of_levels(experiment, (100, 200, 300)))
    lines = list_verdict_lines(judged)
    assert lines[0].startswith("holds      C1  2 [1.9")
    assert lines[0].endswith("] >= 1.5.")
    assert lines[1] == ("fails      C2  transfer=1MiB: 0.5 >= 1; transfer=2MiB: 0.5 >= 1; transfer=4MiB: 0.5 >= 1.")
    assert lines[2].startswith("not judged C3  Not judged, because how many units")
    few = evaluate_claims(experiment, make_runs_of_levels(experiment, (100,)))
    assert describe_verdict(few[0]) == "Not judged, because cell transfer=2MiB has no run."


def test_page_begins_with_verdicts_and_escapes_text(tmp_path: Path) -> None:
    figures = [make_figure("curve", title="A figure")]
    expect = [make_claim("bandwidth(read) >= 1")]
    experiment = build_swept_experiment(title="<b>Made</b>", expect=expect, figures=figures, notes=["One <i>note</i>."])
    folders = []
    for index, cell in enumerate(experiment.cells):
        folder = tmp_path / f"run{index}"
        folder.mkdir()
        lines = [{"type": "run", "schema": "sonde-record/2", "nodes": 1}]
        for phase in (Phase(), Phase("read", "read")):
            lines += phase.lines()
        lines.append({"type": "end", "status": "done"})
        (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        folders += [CellRun(cell.id, dict(cell.coordinates), "", "", repeat, False, folder) for repeat in range(6)]
    results = Results(
        experiment, "group", tuple(folders), {}, directories={cell.id: "/scratch" for cell in experiment.cells}
    )
    tables, judged = write_experiment_page(results, tmp_path / "page.html", data_formats=["csv", "json", "parquet"])
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Of 1 expectation 1 holds." in html
    assert html.index("Claims") < html.index("A figure") < html.index("All cells") < html.index("was assumed")
    assert "<b>Made" not in html
    assert "<i>note" not in html
    assert all(path.stat().st_size > 100 for path in tables)
    assert [(verdict["id"], verdict["verdict"]) for verdict in judged] == [("C1", "holds")]


def test_page_names_the_document_of_published_items() -> None:
    shipped = read_experiment(list_shipped_experiments()["edison-slow-target"], "ci")
    assert describe_sources(shipped) == "B36 (inferred): items of I/O Performance on Cray XC30 (CUG 2014)"
    assert describe_sources(build_experiment(source=["B36"], status="proposed")) == "B36 (proposed)"
    page = (ROOT / "docs" / "concepts" / "reproduction.md").read_text(encoding="utf-8")
    assert all(f"## {title}\n" in page for title in DOCUMENT_TITLES.values())


def test_short_times_in_the_table_of_all_cells_have_a_unit() -> None:
    experiment = build_experiment()
    work = Phase(seconds=53.1e-6)
    _, parts = make_all_cells_section(make_runs(experiment, {"base": [record([work])] * 6}))
    assert "53.1 µs" in " ".join(parts)


def test_simulated_experiment_is_marked_first() -> None:
    experiment = build_swept_experiment(expect=[make_claim("bandwidth(read) >= 1")])
    results = Results(experiment, "group", (), {}, simulated=True)
    source = make_runs_of_levels(experiment, (1, 2, 3))
    study = build_experiment_page(results, source, evaluate_claims(experiment, source))
    assert "These numbers come from a model, not from storage." in study.alarms
    assert make_all_cells_section(source)[1]


def test_verdict_on_equal_looking_numbers_states_the_difference() -> None:
    experiment = build_experiment(expect=[make_claim("bandwidth(write) > 1")])
    verdict = evaluate_claims(experiment, make_runs(experiment, {"base": [record([Phase(rate=2.0)])] * 6}))[0]
    close = ComparisonResult(verdict.outcome, ">", BoundedValue.from_exact_value(1.00000004), 1.0)
    same = replace(verdict, contexts=(replace(verdict.contexts[0], comparisons=(close,)),))
    assert describe_verdict(same) == "1 > 1, by 4e-08."


def test_interval_of_a_metric_does_not_go_below_zero() -> None:
    experiment = build_experiment(tables=[{"id": "t", "metrics": "system_time"}])
    records = {"base": [record([Phase(system_s=seconds)]) for seconds in (0, 0.1, 9, 0, 0.2, 1, 0)]}
    _, parts = make_table_section(experiment.file.tables[0], make_runs(experiment, records))
    assert "-" not in re.sub(r"<[^>]*>", "", " ".join(parts)).replace("–", "")
