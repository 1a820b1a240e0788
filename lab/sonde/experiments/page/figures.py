# SPDX-License-Identifier: Apache-2.0
"""Figures of an experiment, each in the form that its source document has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from sonde.charts.amount_bars import Amount, amount_bars
from sonde.charts.change_bars import ChangeRow, change_bars
from sonde.charts.curves import COLOURS, Curve, Curves, curve_chart
from sonde.charts.overlay import Line, time_chart
from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.judging.samples import MissingError, middle_of
from sonde.experiments.judging.values import number_of
from sonde.experiments.page.beside import Drawn, drawn, height
from sonde.experiments.page.calls import call_figure
from sonde.experiments.page.points import (
    PHASE,
    Point,
    apart,
    asked,
    coordinates,
    label,
    left_out,
    named,
    numbers,
    ordered,
    points_of,
    ratio_of,
    title_of,
)
from sonde.experiments.page.scaling import grown_of, scaling_table
from sonde.experiments.page.words import amount, unit_words
from sonde.model.experiment.description import Figure
from sonde.model.quantities import plural
from sonde.stats.bounds import Bounded
from sonde.stats.stopping import LEAST

# Charts of one figure; more are in the table of all results.
MOST_CHARTS = 8
# Runs of a cell whose curves over time are laid over each other.
MOST_RUNS = 12


def figure_parts(one: Figure, runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Sentences and drawings of a figure."""
    parts = {"over_time": _over_time, "calls": call_figure, "nodes": _nodes}.get(one.kind, _of_points)(one, runs)
    return parts


def _of_points(one: Figure, runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    found = points_of(one, runs)
    words = [left_out("Not drawn", reason) for reason in found.missing[:3]]
    if not found.points:
        return words or ["Nothing of it was measured."], []
    groups = apart(found.points, (one.x, one.series))
    draw = {"curve": _curve, "scaling": _scaling, "bars": _bars, "percent": _percent}[one.kind]
    parts = []
    for at, points in groups[:MOST_CHARTS]:
        drawn = draw(one, title_of(runs.experiment, at), points, runs)
        if drawn is not None:
            parts.append(drawn)
    if len(groups) > MOST_CHARTS:
        words.append(f"{len(groups) - MOST_CHARTS} more charts would follow; their numbers are in the table below.")
    return words, parts


def _series(one: Figure, points: Sequence[Point], runs: MeasuredRuns) -> list[tuple[str, list[Point]]]:
    """Name and points of each line or colour."""
    if not one.series:
        return [(one.title or one.id, list(points))]
    values = ordered(runs.experiment, one.series, [point.at.get(one.series) for point in points])
    return [
        (named(runs.experiment, one.series, value), [p for p in points if str(p.at.get(one.series)) == str(value)])
        for value in values
    ]


def _places(
    one: Figure, points: Sequence[Point], runs: MeasuredRuns
) -> tuple[list[Any], list[float], dict[float, str]]:
    """Places along the bottom, the number at which each is drawn, and the words for it."""
    values = ordered(runs.experiment, one.x, [point.at.get(one.x) for point in points])
    at = numbers(values)
    if at is None:
        at = [float(position) for position in range(len(values))]
    else:
        values = [value for _, value in sorted(zip(at, values, strict=True), key=lambda pair: pair[0])]
        at = sorted(at)
    return values, at, {place: label(runs.experiment, one.x, value) for place, value in zip(at, values, strict=True)}


def _head(title: str) -> Markup:
    return Markup("<h4>{}</h4>").format(title) if title else Markup("")


def _runs_words(points: Sequence[Point]) -> str:
    counts = sorted({point.samples.count for point in points})
    told = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines = "; lines: 95 % interval" if any(point.samples.bounds().known for point in points) else ""
    return f"Medians of {told} runs{lines}" + ("." if lines else f"; {LEAST} are the fewest that give an interval.")


def _curve(one: Figure, title: str, points: Sequence[Point], runs: MeasuredRuns) -> Markup | None:
    values, at, names = _places(one, points, runs)
    place = {str(value): number for value, number in zip(values, at, strict=True)}
    curves = []
    for name, mine in _series(one, points, runs):
        curves.append(_line(name, _pairs(place, one, mine)))
    if not curves:
        return None
    theirs, told = _published(one, points, runs, place)
    words = f"{_runs_words(points)}{told}"
    return curve_chart(
        Curves(title, words, [*curves, *theirs], unit_words(points[0].unit), one.x, lambda x: names.get(x, f"{x:g}"))
    ).render()


def _published(
    one: Figure, points: Sequence[Point], runs: MeasuredRuns, place: Mapping[str, float]
) -> tuple[list[Curve], str]:
    """Lines of the numbers that the document prints for this chart, and a sentence on them; also where we measured
    nothing, as long as the axis is one of numbers."""
    lines, factor, told = _theirs(one, points, runs)
    numeric = numbers([point.at.get(one.x) for point in points[:1]]) is not None
    curves = []
    for line in lines:
        at = {place.get(str(key), number_of(key) if numeric else None): value for key, value in line.values.items()}
        pairs = sorted((x, factor * value) for x, value in at.items() if x is not None)
        if pairs:
            name = named(runs.experiment, one.series, line.series) if one.series else one.title or one.id
            curves.append(Curve(f"{name}, published", [x for x, _ in pairs], [value for _, value in pairs]))
    return curves, told if curves else ""


def _theirs(one: Figure, points: Sequence[Point], runs: MeasuredRuns) -> tuple[list[Drawn], float, str]:
    """Published numbers of a chart, by what they are multiplied, and the sentence that says so."""
    shared = {
        name: points[0].at.get(name)
        for name in points[0].at
        if name not in (one.x, one.series) and len({str(point.at.get(name)) for point in points}) == 1
    }
    lines = drawn(one, runs, shared, [point.at.get(one.x) for point in points])
    factor = height(
        [point.samples.bounds().value for point in points], [value for line in lines for value in line.values.values()]
    )
    scaled = "" if factor == 1 else f", drawn {factor:g} times as high as they are so that both can be seen"
    return lines, factor, f" Published numbers are of another machine{scaled}: compare the shape, not the height."


def _pairs(place: Mapping[str, float], one: Figure, mine: Sequence[Point]) -> list[tuple[float, Bounded]]:
    found = [(place[str(point.at.get(one.x))], point.samples.bounds()) for point in mine]
    return sorted(found, key=lambda pair: pair[0])


def _line(name: str, pairs: Sequence[tuple[float, Bounded]]) -> Curve:
    low = [bounds.value if bounds.low is None else bounds.low for _, bounds in pairs]
    high = [bounds.value if bounds.high is None else bounds.high for _, bounds in pairs]
    return Curve(name, [x for x, _ in pairs], [bounds.value for _, bounds in pairs], low, high)


def _scaling(one: Figure, title: str, points: Sequence[Point], runs: MeasuredRuns) -> Markup | None:
    """Over the size of what is scaled: its number, or the units of its pool; the dotted line is the ideal."""
    sizes: dict[str, float] = {}
    for point in points:
        value = point.at.get(one.x)
        number = numbers([value])
        try:
            sizes[str(value)] = number[0] if number is not None else runs.units(point.cell)
        except MissingError:
            return _bars(one, title, points, runs)
    names = {size: label(runs.experiment, one.x, value) for value, size in sizes.items()}
    curves, told = [], []
    series = [
        (name, sorted(mine, key=lambda point: sizes[str(point.at.get(one.x))]))
        for name, mine in _series(one, points, runs)
    ]
    for name, mine in series:
        pairs = _pairs(sizes, one, mine)
        curves.append(_line(name, pairs))
        (first, _), (last, _), grown = pairs[0], pairs[-1], grown_of(mine[0], mine[-1])
        if last > first and grown is not None:
            told.append(f"{name}: {grown.value:.2f} times at {last / first:g} times the size")
    ideal, first_of_all = sorted(names), curves[0]
    start_at, start_of = first_of_all.places[0], first_of_all.values[0]
    curves.append(Curve(f"{first_of_all.name}, proportional", ideal, [start_of * at / start_at for at in ideal]))
    theirs, remark = _published(one, points, runs, sizes)
    curves += theirs
    words = f"{_runs_words(points)} {'; '.join(told)}.{remark}"
    figure = Curves(title, words, curves, unit_words(points[0].unit), one.x, lambda x: names.get(x, f"{x:g}"))
    return curve_chart(figure).render() + scaling_table(one, runs, series, sizes)


def _bars(one: Figure, title: str, points: Sequence[Point], runs: MeasuredRuns) -> Markup | None:
    series = _series(one, points, runs)
    keys = [(f"c{at % COLOURS}", name) for at, (name, _) in enumerate(series)]
    rows = []
    theirs, factor, remark = _theirs(one, points, runs)
    for value in _places(one, points, runs)[0]:
        amounts = []
        for (tone, _), (_, mine) in zip(keys, series, strict=True):
            for point in mine:
                if str(point.at.get(one.x)) == str(value):
                    bounds = point.samples.bounds()
                    amounts.append(
                        Amount(bounds.value, bounds.low, bounds.high, tone, amount(bounds.value, points[0].unit))
                    )
        amounts += [
            Amount(factor * height_of, None, None, "unknown", f"{amount(height_of, points[0].unit)} published"
                   + (f", {named(runs.experiment, one.series, line.series)}" if one.series else ""))
            for line in theirs for key, height_of in line.values.items() if str(key) == str(value)
        ]  # fmt: skip
        rows.append((label(runs.experiment, one.x, value), amounts))
    per = f" For each {one.per}." if one.per else ""
    per += remark if theirs else ""
    return (
        _head(title)
        + amount_bars(rows, title, keys)
        + Markup('<p class="note">{}{}</p>').format(_runs_words(points), per)
    )


def _percent(one: Figure, title: str, points: Sequence[Point], runs: MeasuredRuns) -> Markup | None:
    """Every value of the series against the one that is the baseline."""
    rows = []
    for value in _places(one, points, runs)[0]:
        here = [point for point in points if str(point.at.get(one.x)) == str(value)]
        base = next((point for point in here if str(point.at.get(one.series)) == one.baseline), None)
        for point in here:
            if base is None or point is base or (found := ratio_of(base, point)) is None:
                continue
            tone = "unknown" if found.low is None else "same"
            if found.differs:
                tone = "slower" if found.value < 1 else "faster"
            rows.append(
                ChangeRow(
                    group=label(runs.experiment, one.x, value),
                    name=f"{label(runs.experiment, one.series, point.at.get(one.series))} · {point.phase}",
                    change=found.value - 1,
                    low=None if found.low is None else found.low - 1,
                    high=None if found.high is None else found.high - 1,
                    tone=tone,
                    shown=f"{100 * (found.value - 1):+.0f} %",
                    remark=found.why,
                )
            )
    if not rows:
        return Markup('<p class="note">{}</p>').format(
            f"There is nothing beside {one.baseline} here, so no percentage against it."
        )
    return _head(title) + change_bars(rows, title)


def _over_time(one: Figure, runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Curves of all runs of each phase (or of each place of the series) laid over each other, in seconds."""
    found: list[tuple[dict[str, Any], list[tuple[tuple[float, ...], float]]]] = []
    words = dict[str, None]()
    for cell, phase in asked(one, runs.experiment):
        try:
            curves = runs.curves(one.metrics[0], phase, cell)
        except MissingError as reason:
            words[left_out("Not drawn", reason)] = None
            continue
        lines = [
            (tuple(value / curve.slice_s for value in curve.amounts), curve.slice_s) for curve in curves[:MOST_RUNS]
        ]
        found.append(({**coordinates(runs.experiment, cell), PHASE: phase}, lines))
    if not found:
        return list(words)[:3] or ["Nothing of it was measured."], []
    names = sorted({name for at, _ in found for name in at})
    outside = [n for n in names if n != one.series and len({str(at.get(n)) for at, _ in found}) > 1]
    groups: dict[tuple[str, ...], list[tuple[dict[str, Any], list[tuple[tuple[float, ...], float]]]]] = {}
    for at, lines in found:
        groups.setdefault(tuple(str(at.get(name)) for name in outside), []).append((at, lines))
    parts = []
    for members in list(groups.values())[:MOST_CHARTS]:
        title = title_of(runs.experiment, {name: members[0][0].get(name) for name in outside})
        drawn = [
            Line(named(runs.experiment, one.series or PHASE, at.get(one.series or PHASE)), lines)
            for at, lines in members
        ]
        most = max(len(lines) for _, lines in members)
        told = f"Lines: the median of {plural(most, 'run')}; areas: all of them. Time runs from the start of the phase."
        unit = "op/s" if one.metrics[0].startswith("operations") else "B/s"
        parts.append(time_chart(title, told, drawn, unit).render())
    if len(groups) > MOST_CHARTS:
        words[
            f"{len(groups) - MOST_CHARTS} more cells have curves of their own; `sonde report RUN` draws each run."
        ] = None
    return list(words)[:3], parts


def _nodes(one: Figure, runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """The rate of each node, or each task, the median over runs: a line for each phase."""
    per = "task" if one.x == "task" else "node"
    groups: dict[tuple[str, ...], tuple[dict[str, Any], list[Curve]]] = {}
    words = dict[str, None]()
    for cell, phase in asked(one, runs.experiment):
        try:
            members = runs.members(one.metrics[0], phase, cell, per)
        except MissingError as reason:
            words[left_out("Not drawn", reason)] = None
            continue
        size = min(len(run) for run in members)
        bounds = [middle_of([run[at] for run in members], runs.look(cell)) for at in range(size)]
        at = coordinates(runs.experiment, cell)
        key = tuple(str(value) for value in at.values())
        curve = _line(phase, [(float(number), bound) for number, bound in enumerate(bounds)])
        groups.setdefault(key, (at, []))[1].append(curve)
    parts = [
        curve_chart(
            Curves(title_of(runs.experiment, at), f"Medians over the runs, for each {per}.", curves, "B/s", per)
        ).render()
        for at, curves in list(groups.values())[:MOST_CHARTS]
    ]
    return list(words)[:3], parts
