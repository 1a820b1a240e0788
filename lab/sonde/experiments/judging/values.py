# SPDX-License-Identifier: Apache-2.0
"""Values of the parts of a claim in one context: metrics, functions of them, arithmetic; each with its interval.

Two metrics that are divided by each other are compared run by run when they stand in the same cell (one run made both),
and as two groups of runs otherwise; everything else is arithmetic on intervals.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sonde.experiments.judging.grid import Context, Grid
from sonde.experiments.judging.samples import Curve, MissingError, Samples, Source, middle_of
from sonde.findings.movement import VISIBLE, Movement, movement
from sonde.model.errors import UnitError
from sonde.model.experiment.claims import SHAPES, Arithmetic, Comparison, Function, Metric, Number, Value
from sonde.model.experiment.experiment import Cell
from sonde.model.units import parse_bytes
from sonde.stats.bins import trim
from sonde.stats.bounds import LEAST, Bounded, along, share_bounds
from sonde.stats.ranks import Floats, midranks
from sonde.stats.ratio import LEAST as LEAST_OF_SIDE
from sonde.stats.ratio import ratio
from sonde.stats.shapes import FEWEST, shape_of
from sonde.stats.spread import variation
from sonde.stats.stopping import LEAST as LEAST_OF_MEDIAN
from sonde.stats.stopping import Look, level_of_several

# Of a curve, this share of the time is left out before it is given a form: caches and queues fill there.
BEGINNING = 0.1
_FORMS = {
    "steady decline": "declining",
    "cliff": "declining",
    "long tail": "declining",
    "slow start": "rising",
    "stall": "dips",
    "periodic dips": "dips",
}


@dataclass(frozen=True)
class Valued:
    """A value, and how many runs the least known part of it rests on; `needs` is with how many there is an interval."""

    bounds: Bounded
    runs: int
    needs: int = LEAST


class Values:
    """Values of the parts of one claim."""

    def __init__(self, grid: Grid, source: Source, confidence: float) -> None:
        self._grid, self._source, self._confidence = grid, source, confidence

    def of(self, value: Value, context: Context) -> Valued:
        """The value in a context. Raises MissingError."""
        match value:
            case Number():
                return Valued(Bounded.exact(value.value), _MANY)
            case Metric():
                found = self._samples(value, context)
                return Valued(found.bounds(self._confidence), _weight(found), LEAST_OF_MEDIAN)
            case Function():
                return self._function(value, context)
            case Arithmetic():
                return self._arithmetic(value, context)
        raise MissingError("a form stands alone")

    def difference(self, one: Comparison, context: Context) -> tuple[Valued, float, float]:
        """What is compared, with which number, and the size of what was subtracted to get it (0 where nothing was); of
        two metrics it is their ratio. Raises MissingError."""
        left, right = _scaled(one.left), _scaled(one.right)
        if left is not None and right is not None and right[0] > 0 and left[0] > 0:
            return self._ratio(left[1], right[1], context), right[0] / left[0], 0.0
        if isinstance(one.right, Number):
            return self.of(one.left, context), one.right.value, 0.0
        first, second = self.of(one.left, context), self.of(one.right, context)
        found = Valued(first.bounds - second.bounds, min(first.runs, second.runs))
        return found, 0.0, max(abs(first.bounds.value), abs(second.bounds.value))

    def forms(self, function: Function, context: Context) -> Counter[str]:
        """How many runs have which form. Raises MissingError."""
        cell = self._grid.cell(function.of, context)
        curves = self._source.curves(function.of.name, self._grid.phase_of(function.of, cell), cell)
        return Counter(form_of(curve) for curve in curves)

    def form_share(self, function: Function, form: str, context: Context) -> tuple[Bounded, Counter[str]]:
        """Share of the runs that have this form, with its interval, and how many have which. Raises MissingError."""
        found = self.forms(function, context)
        if self._source.settled:
            return Bounded.exact(found[form] / found.total()), found
        return share_bounds(found[form], found.total(), self._confidence), found

    def _samples(self, metric: Metric, context: Context) -> Samples:
        cell = self._grid.cell(metric, context)
        return self._source.samples(metric.name, self._grid.phase_of(metric, cell), cell)

    def _arithmetic(self, value: Arithmetic, context: Context) -> Valued:
        if value.operator == "/":
            left, right = _scaled(value.left), _scaled(value.right)
            if left is not None and right is not None:
                found = self._ratio(left[1], right[1], context)
                scale = Bounded.exact(left[0] / right[0])
                return Valued(found.bounds * scale, found.runs, found.needs)
        first, second = self.of(value.left, context), self.of(value.right, context)
        calculate: Mapping[str, Callable[[Bounded, Bounded], Bounded]] = {
            "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
        }  # fmt: skip
        try:
            bounds = calculate[value.operator](first.bounds, second.bounds)
        except ZeroDivisionError:
            raise MissingError("a divisor that is not 0") from None
        return Valued(bounds, min(first.runs, second.runs))

    def _ratio(self, above: Metric, below: Metric, context: Context) -> Valued:
        one, other = self._grid.cell(above, context), self._grid.cell(below, context)
        return self._ratio_of(self._samples(above, context), self._samples(below, context), one.id == other.id)

    def _ratio_of(self, above: Samples, below: Samples, paired: bool) -> Valued:
        runs = min(_weight(above), _weight(below))
        if min(below.values) <= 0 or min(above.values) <= 0:
            middle = below.bounds(self._confidence)
            if middle.value == 0:
                raise MissingError("a divisor that is not 0")
            return Valued(above.bounds(self._confidence) / middle, runs)
        if above.exact and below.exact:
            return Valued(Bounded.exact(above.bounds().value / below.bounds().value), _MANY)
        if paired:
            known = dict(zip(below.runs, below.values, strict=True))
            pairs = [a / known[run] for run, a in zip(above.runs, above.values, strict=True) if run in known]
            if pairs:
                return Valued(middle_of(pairs, above.look, self._confidence), len(pairs), LEAST_OF_MEDIAN)
        found = ratio(below.values, above.values, level_of_several([above.look, below.look], self._confidence))
        return Valued(Bounded(found.value, found.low, found.high), runs, LEAST_OF_SIDE)

    def _function(self, function: Function, context: Context) -> Valued:
        simple: Mapping[str, Callable[[Function, Context], Valued]] = {
            "variation": self._variation, "imbalance": self._imbalance, "tail": self._tail,
            "scaling": self._scaling, "efficiency": self._efficiency,
        }  # fmt: skip
        if function.name in simple:
            return simple[function.name](function, context)
        return self._along(function, context)

    def _variation(self, function: Function, context: Context) -> Valued:
        found = self._samples(function.of, context)
        if found.count < 2:
            raise MissingError("more than one run of the cell")
        scatter = variation(found.values, level_of_several([found.look], self._confidence))
        bounds = Bounded(scatter.value, scatter.low, scatter.high)
        return Valued(Bounded.exact(scatter.value) if found.exact else bounds, _weight(found), LEAST_OF_SIDE)

    def _imbalance(self, function: Function, context: Context) -> Valued:
        cell = self._grid.cell(function.of, context)
        phase = self._grid.phase_of(function.of, cell)
        runs = self._source.members(function.of.name, phase, cell, str(function.options["per"]))
        of_runs = [float(np.max(one) / np.mean(one)) for one in runs if np.mean(one) > 0]
        return self._of_runs(of_runs, self._source.look(cell))

    def _tail(self, function: Function, context: Context) -> Valued:
        cell = self._grid.cell(function.of, context)
        runs = self._source.finishes(self._grid.phase_of(function.of, cell), cell)
        return self._of_runs([tail_of(one) for one in runs], self._source.look(cell))

    def _of_runs(self, values: list[float], look: Look) -> Valued:
        if not values:
            raise MissingError("a run with a rate above 0")
        if self._source.settled:
            return Valued(Bounded.exact(float(np.median(values))), _MANY)
        return Valued(middle_of(values, look, self._confidence), len(values), LEAST_OF_MEDIAN)

    def of_cell(self, metric: Metric, context: Context) -> tuple[str, Samples]:
        """Name of the cell that a metric means in a context, and its samples. Raises MissingError."""
        return self._grid.cell(metric, context).id, self._samples(metric, context)

    def places(self, function: Function, context: Context) -> list[tuple[object, Cell, Samples]]:
        """Place, cell and samples along the axis that a function walks. Raises MissingError."""
        over = str(function.options["over"])
        found = []
        for value, cell in self._grid.along(function.of, over, context):
            phase = self._grid.phase_of(function.of, cell)
            found.append((value, cell, self._source.samples(function.of.name, phase, cell)))
        return found

    def _scaling(self, function: Function, context: Context) -> Valued:
        first, last = self._ends(function, context)
        return self._ratio_of(last[2], first[2], paired=False)

    def _efficiency(self, function: Function, context: Context) -> Valued:
        first, last = self._ends(function, context)
        growth = self._size(last[0], last[1]) / self._size(first[0], first[1])
        found = self._ratio_of(last[2], first[2], paired=False)
        return Valued(found.bounds / Bounded.exact(growth), found.runs, found.needs)

    def _ends(
        self, function: Function, context: Context
    ) -> tuple[tuple[object, Cell, Samples], tuple[object, Cell, Samples]]:
        """The first place along an axis, and the one that `at` names."""
        places = self.places(function, context)
        over, at = str(function.options["over"]), function.options["at"]
        axis = self._grid.axes.get(over)
        place = axis.place(at) if axis is not None else None
        wanted = place.value if place is not None else at
        last = next((one for one in places if one[0] == wanted), None)
        if last is None:
            raise MissingError(f"no run at {over}={at}")
        return places[0], last

    def _size(self, value: object, cell: Cell) -> float:
        """How large a place of an axis is: its number, or the units of its pool or file system."""
        number = number_of(value)
        size = self._source.units(cell) if number is None else number
        if size <= 0:
            raise MissingError("a place of the axis that is above 0")
        return size

    def _along(self, function: Function, context: Context) -> Valued:
        places = self.places(function, context)
        groups = [samples.values for _, _, samples in places]
        runs = min(_weight(samples) for _, _, samples in places)
        exact = all(samples.exact for _, _, samples in places)
        statistic = self._statistic(function.name, [(value, cell) for value, cell, _ in places])
        if function.name == "slope" and any(min(group) <= 0 for group in groups):
            raise MissingError("values above 0, which have a logarithm")
        if exact:
            return Valued(Bounded.exact(statistic(np.array([float(np.median(one)) for one in groups]))), _MANY)
        asked = level_of_several([samples.look for _, _, samples in places], self._confidence)
        return Valued(along(groups, statistic, asked), runs)

    def _statistic(self, name: str, places: list[tuple[object, Cell]]) -> Callable[[Floats], float]:
        if name in _OF_VALUES:
            return _OF_VALUES[name]
        sizes = np.array([self._size(value, cell) for value, cell in places])
        return {"slope": lambda y: _slope(sizes, y), "rank_correlation": lambda y: _spearman(sizes, y)}[name]


_MANY = 1_000_000_000
_OF_VALUES: Mapping[str, Callable[[Floats], float]] = {
    "largest": lambda y: float(y.max()),
    "smallest": lambda y: float(y.min()),
    "rise": lambda y: float(y.max() / y[0]),
    "fall": lambda y: float(y[-1] / y.max()),
    "spread": lambda y: float((y.max() - y.min()) / np.median(y)),
}


def _weight(samples: Samples) -> int:
    return _MANY if samples.exact else samples.count


def _scaled(value: Value) -> tuple[float, Metric] | None:
    """Factor and metric of a part that is a metric times a number; None of any other."""
    if isinstance(value, Metric):
        return 1.0, value
    if isinstance(value, Arithmetic) and value.operator in "*/":
        if isinstance(value.right, Number) and (inner := _scaled(value.left)) is not None and value.right.value > 0:
            factor = value.right.value if value.operator == "*" else 1 / value.right.value
            return inner[0] * factor, inner[1]
        if value.operator == "*" and isinstance(value.left, Number) and (inner := _scaled(value.right)) is not None:
            return (inner[0] * value.left.value, inner[1]) if value.left.value > 0 else None
    return None


def _slope(x: Floats, y: Floats) -> float:
    """Least squares of the logarithms: 1 means twice as much for twice as much."""
    a, b = np.log(x), np.log(y)
    a = a - a.mean()
    return float(np.sum(a * b) / np.sum(a * a))


def _spearman(x: Floats, y: Floats) -> float:
    """Pearson's correlation of the ranks; 0 where all values are equal."""
    a, b = midranks(x), midranks(y)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / norm if norm else 0.0


def number_of(value: object) -> float | None:
    """The number that a place of an axis stands for: itself, or a size in bytes; None when it is a name."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(parse_bytes(str(value)))
    except UnitError:
        return None


def tail_of(ends: list[float] | tuple[float, ...] | object) -> float:
    """Time from half of the tasks done to all done, over the whole; `ends` are seconds from the first start."""
    done = np.sort(np.asarray(ends, dtype=float))
    half = done[max(0, int(np.ceil(done.size / 2)) - 1)]
    return float((done[-1] - half) / done[-1]) if done[-1] > 0 else 0.0


def form_of(curve: Curve) -> str:
    """The form of a rate over time: flat, declining, rising or dips, from the time when all tasks were at work, without
    its first tenth. Raises MissingError where there are too few slices for a form."""
    first, end = trim(curve.amounts, curve.active)
    first += int(BEGINNING * (end - first))
    amounts = curve.amounts[first:end]
    if len(amounts) < FEWEST:
        raise MissingError(f"a phase with at least {FEWEST} slices in which all tasks work; here are {len(amounts)}")
    moved = movement(amounts, [1] * len(amounts), curve.slice_s)
    if _rises(moved):
        return "rising"
    shape = shape_of(amounts)
    if shape is not None:
        return _FORMS[shape.name]
    if moved.kind in ("drift", "steps"):
        return "declining"
    return "dips" if moved.kind == "stalls" else SHAPES[0]


def _rises(moved: Movement) -> bool:
    """The shapes that have names fall or come back; only levels and lines say that a rate rose."""
    if moved.kind == "drift":
        return moved.after > moved.before
    return moved.kind == "steps" and moved.parts[-1][1] > VISIBLE * moved.parts[0][1]
