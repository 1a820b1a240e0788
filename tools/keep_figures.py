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

from sonde.cli.experiment_runs import describe_effect
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.requirements import find_unmet_requirements
from sonde.experiments.claims.samples import MissingError
from sonde.experiments.claims.verdicts import ClaimResult
from sonde.experiments.medians import compute_effects, compute_medians
from sonde.experiments.page.page import evaluate_results
from sonde.experiments.page.points import (
    METRIC,
    PHASE,
    Point,
    axis_label,
    cell_coordinates,
    chart_title,
    collect_points,
    order_places,
    place_label,
    selected_phases,
    split_into_charts,
)
from sonde.experiments.page.published_comparison import (
    PublishedComparison,
    compare_published,
    format_published,
    published_lines,
)
from sonde.experiments.page.sentences import verdict_sentence
from sonde.experiments.results import Results, read_results
from sonde.model.experiment.description import FigureDescription, TableDescription
from sonde.model.record import read_record
from sonde.store.archive import Archive

KEPT = Path(__file__).resolve().parent.parent / "docs" / "published" / "ours"
DIGITS = 4
SLICES = 60  # of a rate over time
# Points of one chart, and the places that they share.
Group = tuple[dict[str, Any], list[Point]]


def rounded(value: float | None) -> float | None:
    """None for an end of an interval that there is not."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def values(point: Point) -> list[float | None]:
    """Median, and both ends of its interval."""
    bounds = point.samples.bounds()
    return [rounded(one) for one in (bounds.value, bounds.low, bounds.high)]


def charts(one: FigureDescription, runs: MeasuredRuns, found: Sequence[Group]) -> list[dict[str, Any]]:
    """Each chart of a figure of medians: its unit, its places, and the values of each series at them."""
    made = []
    for at, points in found:
        made_of = runs.experiment
        places = order_places(made_of, one.x, [point.coordinates.get(one.x) for point in points])
        series = (
            order_places(made_of, one.series, [point.coordinates.get(one.series) for point in points])
            if one.series
            else [None]
        )
        lines = []
        for name in series:
            mine = [point for point in points if not one.series or str(point.coordinates.get(one.series)) == str(name)]
            at_place = {str(point.coordinates.get(one.x)): values(point) for point in mine}
            told = axis_label(made_of, one.series, name) if one.series else one.title or one.id
            lines.append({"name": told, "values": [at_place.get(str(place)) for place in places]})
        made.append(
            {"title": chart_title(made_of, at),
             "unit": points[0].unit, "x": one.x, "places": [place_label(made_of, one.x, place) for place in places],
             "series": lines}
        )  # fmt: skip
    return made


def published(one: FigureDescription, runs: MeasuredRuns, found: Sequence[Group]) -> list[dict[str, Any]]:
    """Charts of the numbers that the document prints for a figure, one for each of ours that has any."""
    made = []
    for at, points in found:
        lines = published_lines(
            one, runs, {**at, METRIC: points[0].metric}, [point.coordinates.get(one.x) for point in points]
        )
        places = list(dict.fromkeys(place for line in lines for place in line.values))
        numbered = all(isinstance(place, int | float) for place in places)
        places = sorted(places) if numbered else order_places(runs.experiment, one.x, places)
        if lines:
            shown = [
                {"name": axis_label(runs.experiment, one.series, line.series) if one.series else one.title or one.id,
                 "values": [[rounded(line.values[place]), None, None] if place in line.values else None
                            for place in places]}
                for line in lines
            ]  # fmt: skip
            made.append({"title": chart_title(runs.experiment, at), "unit": points[0].unit, "x": one.x, "series": shown,
                         "places": [place_label(runs.experiment, one.x, place) for place in places]})  # fmt: skip
    return made


def printed(one: PublishedComparison) -> dict[str, Any]:
    """A published number with ours and their ratio."""
    of = ", ".join([one.published.of, *(f"{name} {value}" for name, value in one.context.items())])
    ours = (
        None
        if one.measured is None
        else [*map(rounded, (one.measured.value, one.measured.low, one.measured.high)), one.unit]
    )
    return {"of": of, "source": one.published.source, "quote": one.published.quote, "published": format_published(one),
            "ours": ours, "ratio": None if one.ratio is None else rounded(one.ratio.value)}  # fmt: skip


def over_time(one: FigureDescription, runs: MeasuredRuns) -> list[dict[str, Any]]:
    """The rate of the first run of each phase over time, in at most `SLICES` steps."""
    lines = []
    for cell, phase in selected_phases(one, runs.experiment):
        try:
            curve = runs.curves(one.metrics[0], phase, cell)[0]
        except MissingError:
            continue
        width = max(1, -(-len(curve.amounts) // SLICES))
        parts = [curve.amounts[at : at + width] for at in range(0, len(curve.amounts) - width + 1, width)]
        at = {**cell_coordinates(runs.experiment, cell), PHASE: phase}
        lines.append(
            {"name": axis_label(runs.experiment, one.series or PHASE, at.get(one.series or PHASE)),
             "step_s": rounded(width * curve.slice_s),
             "values": [rounded(sum(part) / width / curve.slice_s) for part in parts]}
        )  # fmt: skip
    unit = "op/s" if one.metrics[0].startswith("operations") else "B/s"
    return [{"title": "one run", "unit": unit, "x": "time", "series": lines}] if lines else []


def table(one: TableDescription, runs: MeasuredRuns) -> dict[str, Any]:
    """Rows of a table: what they are of, and each metric."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for point in collect_points(one, runs).points:
        key = tuple(place_label(runs.experiment, name, point.coordinates.get(name, "")) for name in one.rows)
        rows.setdefault(key, {})[str(point.coordinates[METRIC])] = [*values(point), point.unit]
    return {"id": one.id, "source": one.source, "rows": list(one.rows), "metrics": list(one.metrics),
            "lines": [[list(key), found] for key, found in rows.items()]}  # fmt: skip


def claims(judged: list[ClaimResult]) -> list[dict[str, str]]:
    return [
        {"id": one.expectation.id, "claim": " ".join(one.expectation.claim.split()), "verdict": str(one.outcome),
         "found": verdict_sentence(one)}
        for one in judged
    ]  # fmt: skip


def day(found: Results) -> str:
    """YYYYMMDD of the last run: runs are named by when they began, groups by anybody."""
    return found.runs[-1].folder.name[:8]


def machine(found: Results) -> str:
    """On what it was measured, in a sentence."""
    record = read_record(found.runs[-1].folder / "record.ndjson")
    one = record.nodes[0]
    memory = f"{(one.memory_bytes or 0) / 2**30:.0f} GiB"
    return f"{one.cpus} CPUs ({one.cpu_model}), {memory} of memory, {one.file_system.type}, {one.kernel}"


def figures_of(runs: MeasuredRuns) -> list[dict[str, Any]]:
    """Every figure of an experiment whose numbers are medians or rates over time, with the published ones."""
    found = []
    for one in runs.experiment.file.figures:
        if one.kind in ("calls", "nodes"):
            continue
        theirs: list[dict[str, Any]] = []
        if one.kind == "over_time":
            ours = over_time(one, runs)
        else:
            points = collect_points(one, runs).points
            if one.kind == "percent" and len({str(point.coordinates.get(one.series)) for point in points}) < 2:
                continue  # a percentage needs something beside the baseline
            groups = split_into_charts(points, (one.x, one.series))
            ours = charts(one, runs, groups)
            if one.kind in ("curve", "bars", "scaling"):
                theirs = published(one, runs, groups)
        if ours:
            found.append({"id": one.id, "title": one.title, "source": one.source, "kind": one.kind, "charts": ours,
                          "published": theirs})  # fmt: skip
    return found


def kept_of(found: Results, runs: MeasuredRuns, judged: list[ClaimResult], conditions: str, on: str) -> dict[str, Any]:
    """What is stored of an experiment. `conditions` describes the circumstances of the runs, `on` the machine."""
    return {
        "experiment": found.experiment.id, "profile": found.profile, "date": day(found), "runs": runs.run_count(),
        "machine": on, "conditions": conditions, "figures": figures_of(runs),
        "tables": [table(one, runs) for one in found.experiment.file.tables],
        "effects": [describe_effect(one) for one in compute_effects(compute_medians(found))],
        "published": [printed(one) for one in compare_published(runs)],
        "claims": claims(judged),
    }  # fmt: skip


def main() -> int:
    if len(sys.argv) not in (3, 4):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    found = read_results(Archive(Path(sys.argv[1])), sys.argv[2])
    runs, judged = evaluate_results(found, None, find_unmet_requirements(found, None))
    kept = kept_of(found, runs, judged, sys.argv[3] if len(sys.argv) == 4 else "", machine(found))
    KEPT.mkdir(exist_ok=True)
    place = KEPT / f"{found.experiment.id}.json"
    place.write_text(json.dumps(kept, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    print(f"{place}: {place.stat().st_size} B")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
