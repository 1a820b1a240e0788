# SPDX-License-Identifier: Apache-2.0
"""Keeps the numbers of an experiment's figures, tables and claims for the pages on published tests.

Usage: .venv/bin/python tools/keep_figures.py ARCHIVE GROUP [WORDS]. It writes docs/published/ours/EXPERIMENT.json (a
few kilobytes: medians with their intervals, nothing of single operations), from which the documentation draws its
pictures. GROUP is what `sonde run` printed at its end; WORDS say what the reader has to know of that day, like
"on a busy machine".
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))

from sonde.cli.experiment_runs import describe_variant_effect
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.requirements import find_unmet_requirements
from sonde.experiments.claims.samples import MissingError
from sonde.experiments.claims.verdicts import ClaimResult
from sonde.experiments.medians import compute_effects, compute_medians
from sonde.experiments.page.page import evaluate_results
from sonde.experiments.page.points import (
    METRIC_COORDINATE,
    PHASE_COORDINATE,
    FigurePoint,
    collect_points,
    format_axis_name_and_value,
    format_axis_value,
    get_cell_coordinates,
    iterate_selected_phases,
    make_chart_title,
    order_axis_values,
    split_points_into_charts,
)
from sonde.experiments.page.published_comparison import (
    PublishedComparison,
    compare_published,
    format_published,
    make_published_curves,
)
from sonde.experiments.page.sentences import describe_verdict
from sonde.experiments.results import Results, read_group_results
from sonde.model.experiment.description import FigureDescription, TableDescription
from sonde.model.record import read_record
from sonde.store.archive import Archive

FIGURES_FOLDER = Path(__file__).resolve().parent.parent / "docs" / "published" / "ours"
SIGNIFICANT_DIGITS = 4
MAX_TIME_STEPS = 60  # of a rate over time
# Points of one chart, and the places that they share.
Group = tuple[dict[str, Any], list[FigurePoint]]


def round_to_significant_digits(value: float | None) -> float | None:
    """None for an end of an interval that there is not."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def get_median_and_bounds(point: FigurePoint) -> list[float | None]:
    """Median, and both ends of its interval."""
    bounds = point.samples.compute_median_bounds()
    return [round_to_significant_digits(value) for value in (bounds.value, bounds.low, bounds.high)]


def list_charts(figure: FigureDescription, runs: MeasuredRuns, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Each chart of a figure of medians: its unit, its places, and the values of each series at them."""
    chart_list = []
    for coordinates, points in groups:
        made_of = runs.experiment
        places = order_axis_values(made_of, figure.x, [point.coordinates.get(figure.x) for point in points])
        series = (
            order_axis_values(made_of, figure.series, [point.coordinates.get(figure.series) for point in points])
            if figure.series
            else [None]
        )
        lines = []
        for name in series:
            series_points = [
                point for point in points if not figure.series or str(point.coordinates.get(figure.series)) == str(name)
            ]
            at_place = {str(point.coordinates.get(figure.x)): get_median_and_bounds(point) for point in series_points}
            label = (
                format_axis_name_and_value(made_of, figure.series, name) if figure.series else figure.title or figure.id
            )
            lines.append({"name": label, "values": [at_place.get(str(place_value)) for place_value in places]})
        chart_list.append(
            {
                "title": make_chart_title(made_of, coordinates),
                "unit": points[0].unit,
                "x": figure.x,
                "places": [format_axis_value(made_of, figure.x, place_value) for place_value in places],
                "series": lines,
            }
        )
    return chart_list


def list_published_charts(
    figure: FigureDescription, runs: MeasuredRuns, groups: Sequence[Group]
) -> list[dict[str, Any]]:
    """Charts of the numbers that the document prints for a figure, one for each of ours that has any."""
    chart_list = []
    for coordinates, points in groups:
        lines = make_published_curves(
            figure,
            runs,
            {**coordinates, METRIC_COORDINATE: points[0].metric},
            [point.coordinates.get(figure.x) for point in points],
        )
        places = list(dict.fromkeys(place_value for line in lines for place_value in line.values))
        numbered = all(isinstance(place_value, int | float) for place_value in places)
        places = sorted(places) if numbered else order_axis_values(runs.experiment, figure.x, places)
        if lines:
            lines_drawn = [
                {
                    "name": format_axis_name_and_value(runs.experiment, figure.series, line.series)
                    if figure.series
                    else figure.title or figure.id,
                    "values": [
                        [round_to_significant_digits(line.values[place_value]), None, None]
                        if place_value in line.values
                        else None
                        for place_value in places
                    ],
                }
                for line in lines
            ]
            chart_list.append(
                {
                    "title": make_chart_title(runs.experiment, coordinates),
                    "unit": points[0].unit,
                    "x": figure.x,
                    "series": lines_drawn,
                    "places": [format_axis_value(runs.experiment, figure.x, place_value) for place_value in places],
                }
            )
    return chart_list


def convert_published_comparison_to_json(comparison: PublishedComparison) -> dict[str, Any]:
    """A published number with ours and their ratio."""
    of = ", ".join([comparison.published.of, *(f"{name} {value}" for name, value in comparison.context.items())])
    ours = (
        None
        if comparison.measured is None
        else [
            *map(
                round_to_significant_digits,
                (comparison.measured.value, comparison.measured.low, comparison.measured.high),
            ),
            comparison.unit,
        ]
    )
    return {
        "of": of,
        "source": comparison.published.source,
        "quote": comparison.published.quote,
        "published": format_published(comparison),
        "ours": ours,
        "ratio": None if comparison.ratio is None else round_to_significant_digits(comparison.ratio.value),
    }


def list_rates_over_time(figure: FigureDescription, runs: MeasuredRuns) -> list[dict[str, Any]]:
    """The rate of the first run of each phase over time, in at most `SLICES` steps."""
    lines = []
    for cell, phase in iterate_selected_phases(figure, runs.experiment):
        try:
            curve = runs.collect_rate_curves(figure.metrics[0], phase, cell)[0]
        except MissingError:
            continue
        width = max(1, -(-len(curve.amounts) // MAX_TIME_STEPS))
        parts = [curve.amounts[index : index + width] for index in range(0, len(curve.amounts) - width + 1, width)]
        coordinates = {**get_cell_coordinates(runs.experiment, cell), PHASE_COORDINATE: phase}
        lines.append(
            {
                "name": format_axis_name_and_value(
                    runs.experiment,
                    figure.series or PHASE_COORDINATE,
                    coordinates.get(figure.series or PHASE_COORDINATE),
                ),
                "step_s": round_to_significant_digits(width * curve.slice_s),
                "values": [round_to_significant_digits(sum(part) / width / curve.slice_s) for part in parts],
            }
        )
    unit = "op/s" if figure.metrics[0].startswith("operations") else "B/s"
    return [{"title": "one run", "unit": unit, "x": "time", "series": lines}] if lines else []


def convert_table_to_json(table: TableDescription, runs: MeasuredRuns) -> dict[str, Any]:
    """Rows of a table: what they are of, and each metric."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for point in collect_points(table, runs).points:
        key = tuple(format_axis_value(runs.experiment, name, point.coordinates.get(name, "")) for name in table.rows)
        rows.setdefault(key, {})[str(point.coordinates[METRIC_COORDINATE])] = [
            *get_median_and_bounds(point),
            point.unit,
        ]
    return {
        "id": table.id,
        "source": table.source,
        "rows": list(table.rows),
        "metrics": list(table.metrics),
        "lines": [[list(key), cells] for key, cells in rows.items()],
    }


def convert_claims_to_json(claim_results: list[ClaimResult]) -> list[dict[str, str]]:
    return [
        {
            "id": result.expectation.id,
            "claim": " ".join(result.expectation.claim.split()),
            "verdict": str(result.outcome),
            "found": describe_verdict(result),
        }
        for result in claim_results
    ]


def get_measurement_day(results: Results) -> str:
    """YYYYMMDD of the last run: runs are named by when they began, groups by anybody."""
    return results.runs[-1].folder.name[:8]


def describe_measured_machine(results: Results) -> str:
    """On what it was measured, in a sentence."""
    record = read_record(results.runs[-1].folder / "record.ndjson")
    node = record.nodes[0]
    memory = f"{(node.memory_bytes or 0) / 2**30:.0f} GiB"
    return f"{node.cpus} CPUs ({node.cpu_model}), {memory} of memory, {node.file_system.type}, {node.kernel}"


def list_figures(runs: MeasuredRuns) -> list[dict[str, Any]]:
    """Every figure of an experiment whose numbers are medians or rates over time, with the published ones."""
    figures = []
    for figure in runs.experiment.file.figures:
        if figure.kind in ("calls", "nodes"):
            continue
        published_charts: list[dict[str, Any]] = []
        if figure.kind == "over_time":
            ours = list_rates_over_time(figure, runs)
        else:
            points = collect_points(figure, runs).points
            if figure.kind == "percent" and len({str(point.coordinates.get(figure.series)) for point in points}) < 2:
                continue  # a percentage needs something beside the baseline
            groups = split_points_into_charts(points, (figure.x, figure.series))
            ours = list_charts(figure, runs, groups)
            if figure.kind in ("curve", "bars", "scaling"):
                published_charts = list_published_charts(figure, runs, groups)
        if ours:
            figures.append(
                {
                    "id": figure.id,
                    "title": figure.title,
                    "source": figure.source,
                    "kind": figure.kind,
                    "charts": ours,
                    "published": published_charts,
                }
            )
    return figures


def build_figures_document(
    results: Results, runs: MeasuredRuns, claim_results: list[ClaimResult], conditions: str, machine_name: str
) -> dict[str, Any]:
    """The document of an experiment's figures that is stored in the repository. `conditions` describes the
    circumstances of the runs, `machine_name` the machine."""
    return {
        "experiment": results.experiment.id, "profile": results.profile, "date": get_measurement_day(results),
        "runs": runs.run_count(),
        "machine": machine_name, "conditions": conditions, "figures": list_figures(runs),
        "tables": [convert_table_to_json(table, runs) for table in results.experiment.file.tables],
        "effects": [describe_variant_effect(effect) for effect in compute_effects(compute_medians(results))],
        "published": [convert_published_comparison_to_json(comparison) for comparison in compare_published(runs)],
        "claims": convert_claims_to_json(claim_results),
    }  # fmt: skip


def main() -> int:
    if len(sys.argv) not in (3, 4):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    results = read_group_results(Archive(Path(sys.argv[1])), sys.argv[2])
    runs, judged = evaluate_results(results, None, find_unmet_requirements(results, None))
    document = build_figures_document(
        results, runs, judged, sys.argv[3] if len(sys.argv) == 4 else "", describe_measured_machine(results)
    )
    FIGURES_FOLDER.mkdir(exist_ok=True)
    path = FIGURES_FOLDER / f"{results.experiment.id}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size} B")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
