# SPDX-License-Identifier: Apache-2.0
"""How a rate grows with what is scaled (pools, units, tasks): S(k) and E(k) with their intervals, the rate of each
unit, and the share of the stated peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from sonde.charts.plot import table
from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.judging.samples import MissingError
from sonde.experiments.page.points import Point, label, ratio_of
from sonde.experiments.page.words import amount, interval
from sonde.model.experiment.description import Figure
from sonde.stats.bounds import Bounded

WORDS = (
    "S(k): the rate over that of the smallest size. E(k): S(k) over how many times as large it is; 1 is proportional."
    " Both with their 95 % intervals."
)


def grown_of(first: Point, here: Point) -> Bounded | None:
    """S(k): ours over the rate at the smallest size; None where one of them is not above 0."""
    if here is first:
        return Bounded.exact(1.0)
    found = ratio_of(first, here)
    return None if found is None else Bounded(found.value, found.low, found.high)


def scaling_table(
    one: Figure, runs: MeasuredRuns, lines: Sequence[tuple[str, Sequence[Point]]], sizes: Mapping[str, float]
) -> Markup:
    """A row for each point of each line, the smallest size first; `sizes` has how large each place along the bottom
    is."""
    rows = []
    for name, mine in lines:
        smallest = sizes[str(mine[0].at.get(one.x))]
        for point in mine:
            size = sizes[str(point.at.get(one.x))]
            grown = grown_of(mine[0], point)
            rate = point.samples.bounds()
            share = "–" if grown is None else interval(grown / Bounded.exact(size / smallest))
            rows.append(
                [name, label(runs.experiment, one.x, point.at.get(one.x)), f"{size:g}", amount(rate.value, point.unit),
                 "–" if grown is None else interval(grown), share, amount(rate.value / size, point.unit),
                 _of_peak(runs, point)]
            )  # fmt: skip
    columns = ["", one.x, "size", "rate", "S(k)", "E(k)", "for each unit of size", "of the stated peak"]
    return Markup('<p class="note">{}</p>').format(WORDS) + table(columns, rows, "Scaling", text_columns=2)


def _of_peak(runs: MeasuredRuns, point: Point) -> str:
    """Share of the stated peak of the storage of a cell; a dash where none is stated, or no bytes are counted."""
    if point.unit != "B/s":
        return "–"
    phases = runs.experiment.plans[point.cell.plan]["phases"]
    op = next(str(phase["op"]) for phase in phases if phase["id"] == point.phase)
    try:
        peak = runs.peak(point.cell, "read" if "read" in op else "write")
    except MissingError:
        return "–"
    return f"{100 * point.samples.bounds().value / peak:.3g} %"
