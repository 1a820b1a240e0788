# SPDX-License-Identifier: Apache-2.0
"""Numbers that the source document prints, beside ours: as a table with their ratio, and as lines of the figures.

They are of another machine, so nothing is concluded from their height. What can be compared is the shape: each number
against the first one of the same phase, theirs and ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sonde.charts.plot import table
from sonde.experiments.judging.grid import Context, Grid
from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.judging.samples import MissingError
from sonde.experiments.judging.values import Values
from sonde.experiments.page.points import METRIC, PHASE, PLAN, label, settled
from sonde.experiments.page.words import amount, number
from sonde.model.experiment.claims import Metric, Value, claim_of, parse_value, printed, unit_of
from sonde.model.experiment.description import Figure, PublishedNumber
from sonde.stats.bounds import Bounded
from sonde.stats.stopping import CONFIDENCE

TITLE = "Published numbers beside ours"
WORDS = "Theirs are of another machine, often of another size: compare the shape, not the height."
# Places of the axes that a published number leaves open; more are in the table of all cells.
MOST_PLACES = 8
_LIMITS = {"": "", "about": "about ", "at_least": "at least ", "at_most": "at most "}


@dataclass(frozen=True)
class Beside:
    """One published number and ours for the same, where it was measured. Values are in base units."""

    told: PublishedNumber
    of: Value
    unit: str
    value: float
    to: float | None
    at: Context  # places on the axes that the number leaves open
    ours: Bounded | None
    missing: str = ""  # why there is none of ours
    cell: str = ""  # id of the cell and phase that a metric is of; empty of what is calculated
    phase: str = ""

    @property
    def ratio(self) -> Bounded | None:
        """Ours over theirs; None without ours, where a range is printed, and over zero."""
        if self.ours is None or self.to is not None or self.value == 0:
            return None
        return self.ours / Bounded.exact(self.value)


def beside(runs: MeasuredRuns, most: int | None = MOST_PLACES) -> list[Beside]:
    """Every published number of the experiment, with ours; at `most` places of the axes that it leaves open."""
    grid = Grid(runs.experiment)
    values = Values(grid, runs, CONFIDENCE)
    return [one for told in runs.experiment.file.published for one in _beside(told, grid, values, most)]


def _beside(told: PublishedNumber, grid: Grid, values: Values, most: int | None) -> list[Beside]:
    of = parse_value(told.of)
    unit = unit_of(of)
    value, to = printed(told.value, unit), None if told.to is None else printed(told.to, unit)
    try:
        contexts = grid.contexts(claim_of(told.of, of))
    except MissingError as reason:
        return [Beside(told, of, unit, value, to, {}, None, str(reason))]
    found = []
    for at in contexts[:most]:
        cell, phase = _place(of, at, grid)
        try:
            found.append(Beside(told, of, unit, value, to, at, values.of(of, at).bounds, "", cell, phase))
        except MissingError as reason:
            found.append(Beside(told, of, unit, value, to, at, None, str(reason), cell, phase))
    return found


def _place(of: Value, at: Context, grid: Grid) -> tuple[str, str]:
    """Id of the cell and phase that a metric is of; empty of what is calculated from several."""
    if not isinstance(of, Metric):
        return "", ""
    cell = grid.cell(of, at)
    try:
        return cell.id, grid.phase_of(of, cell)
    except MissingError:  # several phases, and none is named
        return cell.id, ""


def beside_parts(runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Sentences and the table; nothing where the document prints no number."""
    found = beside(runs)
    if not found:
        return [], []
    columns = ["of", "source", "published", "ours", "ours ÷ theirs", "shape: theirs", "ours"]
    body = [_row(runs, one, found) for one in found]
    reasons = list(dict.fromkeys(one.missing for one in found if one.ours is None))
    words = [WORDS, "Shape: over the first number of the same phase in this table."]
    if reasons:
        words.append(f"Not measured here: {'; '.join(reasons[:3])}{' …' if len(reasons) > 3 else ''}.")
    return words, [table(columns, body, TITLE, text_columns=2)]


def _row(runs: MeasuredRuns, one: Beside, found: Sequence[Beside]) -> list[str]:
    place = ", ".join(f"{name} {label(runs.experiment, name, value)}" for name, value in one.at.items())
    named = f"{one.told.of} ({place})" if place else one.told.of
    what = f"{named}: {one.told.words}" if one.told.words else named
    first = next(other for other in found if _group(other) == _group(one))
    return [what, one.told.source, published_words(one), _bounds(one.ours, one.unit), _ratio(one.ratio),
            *_shape(one, first)]  # fmt: skip


def published_words(one: Beside) -> str:
    """About 1.60 GB/s; 3.20 … 4.00 GB/s."""
    between = "" if one.to is None else f" … {amount(one.to, one.unit)}"
    return f"{_LIMITS[one.told.limit]}{amount(one.value, one.unit)}{between}"


def _bounds(found: Bounded | None, unit: str) -> str:
    if found is None:
        return "–"
    if found.low is None or found.high is None:
        return amount(found.value, unit)
    return f"{amount(found.value, unit)} [{amount(found.low, unit)}, {amount(found.high, unit)}]"


def _ratio(found: Bounded | None) -> str:
    return "–" if found is None else number(found.value)


def _group(one: Beside) -> object:
    """What numbers must share to have a shape together: metric, phase, plan."""
    if not isinstance(one.of, Metric):
        return id(one)
    return one.of.name, one.of.phase, str({**one.of.at, **one.at}.get(PLAN))


def _shape(one: Beside, first: Beside) -> list[str]:
    """This number over the first of its group: theirs, and ours."""
    if one.told is first.told or one.to is not None or first.to is not None or first.value == 0:
        return ["–", "–"]
    ours = one.ours.value / first.ours.value if one.ours and first.ours and first.ours.value else None
    return [number(one.value / first.value), "–" if ours is None else number(ours)]


@dataclass(frozen=True)
class Drawn:
    """Published numbers of one line of a figure: place along the bottom -> value, in base units."""

    series: Any
    values: Mapping[Any, float]


def drawn(one: Figure, runs: MeasuredRuns, at: Mapping[str, Any], places: Sequence[Any]) -> list[Drawn]:
    """The lines of published numbers in one chart of a figure; `at` is what all points of the chart share, `places` the
    places along the bottom that ours has: a number that names no place there stands at each of them."""
    lines: dict[str, tuple[Any, dict[Any, float]]] = {}
    fixed = {**settled(runs.experiment, one.where or {}), **at}
    for told in runs.experiment.file.published:
        of = parse_value(told.of)
        if not isinstance(of, Metric) or of.name not in one.metrics or one.per or told.to is not None:
            continue
        if told.limit in ("at_least", "at_most") or (one.plans and of.at.get(PLAN) not in (None, *one.plans)):
            continue
        here = {**settled(runs.experiment, of.at), PHASE: of.phase, METRIC: of.name}
        elsewhere = any(str(here.get(name, value)) != str(value) for name, value in fixed.items())
        if elsewhere or (one.phases and of.phase not in one.phases):
            continue
        series = here.get(one.series) if one.series else None
        line = lines.setdefault(json.dumps(series, default=str), (series, {}))[1]
        value = printed(told.value, unit_of(of))
        line.update({here[one.x]: value} if one.x in here else dict.fromkeys(places, value))
    return [Drawn(series, values) for series, values in lines.values()]


def height(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """By what published numbers are multiplied in a figure so that both shapes can be seen: 1 as long as neither is
    more than four times the other."""
    most, other = max(ours, default=0.0), max(theirs, default=0.0)
    if most <= 0 or other <= 0 or 0.25 <= most / other <= 4:
        return 1.0
    return float(f"{most / other:.1g}")
