# SPDX-License-Identifier: Apache-2.0
"""Published numbers stand beside ours: with their ratio, their shape, and in the figures."""

from __future__ import annotations

import re
from typing import Any

import pytest
from in_memory_runs import Phase, build_experiment, make_runs, record

from sonde.experiments.page.figures import make_figure_section
from sonde.experiments.page.published_comparison import (
    PUBLISHED_NUMBERS_EXPLANATION,
    compare_published,
    compute_published_scale,
    make_published_section,
)
from sonde.experiments.shipped_experiments import list_shipped_experiments, resolve_plan_source
from sonde.model.experiment import Experiment, read_experiment
from sonde.model.experiment.claim_parser import find_unit_of_value, parse_claim_value, parse_published_number

SCATTER = (0.98, 1.03, 1.0, 0.99, 1.02, 1.01)
PLAN = {
    "data": {"access": {"transfer": "1MiB", "volume": "4MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}
THREADS = {"name": "threads", "paths": "tasks.threads", "values": [1, 2, 4]}


def make_published_number(metric: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"of": metric, "value": value, "source": "D11", **more}


def build_published(*published: dict[str, Any], **members: Any) -> Experiment:
    return build_experiment(plan=PLAN, sweep=[THREADS], published=list(published), **members)


def make_runs_of_levels(experiment: Experiment, levels: tuple[float, ...] = (100, 200, 300)) -> Any:
    """Writing gives the levels in MB/s, one for each cell; reading twice as much."""
    records = {
        cell.id: [
            record([Phase(rate=level * each * 1e6), Phase("read", "read", rate=level * each * 2e6)]) for each in SCATTER
        ]
        for cell, level in zip(experiment.cells, levels, strict=False)
    }
    return make_runs(experiment, records)


def test_comparison_has_value_interval_and_ratio() -> None:
    comparison = compare_published(
        make_runs_of_levels(build_published(make_published_number("bandwidth(write, threads=2)", "1 GB/s")))
    )[0]
    assert comparison.value == 1e9
    assert comparison.measured is not None
    assert comparison.ratio is not None
    assert comparison.measured.value == pytest.approx(201e6)
    assert comparison.ratio.value == pytest.approx(0.201)
    assert comparison.ratio.low is not None
    assert comparison.ratio.low < 0.201


def test_shape_is_ratio_to_first_number_of_phase() -> None:
    experiment = build_published(make_published_number("bandwidth(write, threads=1)", "900 MB/s"),
        make_published_number("bandwidth(write, threads=4)", "1.8 GB/s"),
        make_published_number("bandwidth(read, threads=4)", "3 GB/s"))  # fmt: skip
    messages, parts = make_published_section(make_runs_of_levels(experiment))
    assert messages[0] == PUBLISHED_NUMBERS_EXPLANATION
    rows = re.findall(r"<tr>.*?</tr>", str(parts[0]))[1:]
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]
    assert [row[-2:] for row in cells] == [["–", "–"], ["2", "3"], ["–", "–"]]


def test_published_ratio_is_compared_with_measured_ratio() -> None:
    comparison = compare_published(
        make_runs_of_levels(
            build_published(make_published_number("bandwidth(write, threads=4) / bandwidth(write, threads=1)", 2.5))
        )
    )[0]
    assert comparison.measured is not None
    assert (comparison.unit, comparison.value) == ("1", 2.5)
    assert comparison.measured.value == pytest.approx(3.0)


def test_unmeasured_number_has_reason() -> None:
    experiment = build_published(make_published_number("bandwidth(write, threads=4)", "1 GB/s"))
    messages, parts = make_published_section(make_runs_of_levels(experiment, (100,)))
    assert "Not measured here: cell threads=4 has no run." in messages
    assert "1.00 GB/s" in str(parts[0])


def test_simulated_numbers_are_not_called_measured() -> None:
    experiment = build_published(make_published_number("bandwidth(write)", "2.5 GB/s", limit="about"))
    _, (table,) = make_published_section(make_runs_of_levels(experiment), is_simulated=True)
    assert "measured" not in str(table)
    assert "simulated ÷ published" in str(table)


def test_number_without_coordinates_applies_to_all_axis_values() -> None:
    comparisons = compare_published(
        make_runs_of_levels(
            build_published(make_published_number("bandwidth(write)", "2.5 GB/s", limit="about", quote="on average"))
        )
    )
    assert [comparison.context for comparison in comparisons] == [{"threads": 1}, {"threads": 2}, {"threads": 4}]
    assert "about 2.50 GB/s" in str(
        make_published_section(
            make_runs_of_levels(build_published(make_published_number("bandwidth(write)", "2.5 GB/s", limit="about")))
        )[1]
    )


def test_range_has_no_ratio_and_no_line() -> None:
    curve = {"id": "f", "kind": "curve", "metrics": "bandwidth", "x": "threads", "series": "phase"}
    experiment = build_published(make_published_number("bandwidth(write)", "3.2 GB/s", to="4 GB/s"), figures=[curve])
    runs = make_runs_of_levels(experiment)
    assert compare_published(runs)[0].ratio is None
    assert "3.20 GB/s … 4.00 GB/s" in str(make_published_section(runs)[1])
    assert "published" not in str(make_figure_section(experiment.file.figures[0], runs)[1])


def test_document_without_numbers_has_no_section() -> None:
    assert make_published_section(make_runs_of_levels(build_published())) == ([], [])


@pytest.mark.parametrize("figure_kind", ["curve", "scaling", "bars"])
def test_published_numbers_appear_in_the_figure_of_their_phase(figure_kind: str) -> None:
    figure = {
        "id": "f",
        "kind": figure_kind,
        "metrics": "bandwidth",
        "x": "threads",
        "series": "phase",
        "phases": ["write"],
    }
    experiment = build_published(
        make_published_number("bandwidth(write, threads=1)", "90 MB/s"),
        make_published_number("bandwidth(read, threads=1)", "77 MB/s"),
        figures=[figure],
    )
    html = str(make_figure_section(experiment.file.figures[0], make_runs_of_levels(experiment))[1])
    assert "90.0 MB/s" in html
    assert "77.0 MB/s" not in html
    assert "compare the shape, not the height" in html


def test_unmeasured_axis_value_appears_on_a_numeric_axis() -> None:
    curve = {"id": "f", "kind": "curve", "metrics": "bandwidth", "x": "threads", "series": "phase"}
    experiment = build_published(make_published_number("bandwidth(write, threads=4)", "512 MB/s"), figures=[curve])
    html = str(make_figure_section(experiment.file.figures[0], make_runs_of_levels(experiment, (100, 200)))[1])
    assert "write, published" in html
    assert "512 MB/s" in html


def test_very_different_values_are_scaled_with_note() -> None:
    assert compute_published_scale([200e6], [300e6]) == 1
    assert compute_published_scale([2e6, 1e6], [2e9]) == pytest.approx(0.001)
    assert compute_published_scale([], [1.0]) == 1
    curve = {"id": "f", "kind": "curve", "metrics": "bandwidth", "x": "threads", "series": "phase", "phases": ["write"]}
    experiment = build_published(make_published_number("bandwidth(write, threads=1)", "30 GB/s"), figures=[curve])
    html = str(make_figure_section(experiment.file.figures[0], make_runs_of_levels(experiment))[1])
    assert "drawn 0.01 times as high as they are" in html


PRINTED = sorted(
    name for name, path in list_shipped_experiments().items() if "[[published]]" in path.read_text("utf-8")
)


@pytest.mark.parametrize("experiment_name", PRINTED)
def test_published_numbers_name_a_source_of_experiment(experiment_name: str) -> None:
    experiment = read_experiment(
        list_shipped_experiments()[experiment_name], "published", find_plan=resolve_plan_source
    )
    for number in experiment.file.published:
        assert number.source in experiment.file.source
        assert parse_published_number(number.value, find_unit_of_value(parse_claim_value(number.of))) >= 0


def test_every_document_with_results_has_numbers() -> None:
    assert {name.split("-")[0] for name in PRINTED} >= {"cray", "edison", "cumulus", "sonexion", "hpcs"}
