# SPDX-License-Identifier: Apache-2.0
"""A comparison as a page: percentages against the baseline, what changed where, curves, scatter, surroundings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from sonde.charts.amount_bars import Amount, amount_bars
from sonde.charts.change_bars import ChangeRow, change_bars
from sonde.charts.dates import span
from sonde.charts.heat import HeatMap, heat_map
from sonde.charts.matrix import Field, matrix
from sonde.charts.plot import table
from sonde.charts.profile_chart import Overlay, profile_chart
from sonde.charts.study import Section, Study
from sonde.findings.nodes import node_rates, slow_words
from sonde.model.units import counted
from sonde.stats.imbalance import blame_words
from sonde.trends.compared_targets import ComparedTargets
from sonde.trends.compared_targets_shown import target_alarms, target_sections
from sonde.trends.comparison import Compared, Comparison, median
from sonde.trends.comparison_words import change_words, on_both_sides, percent, value_text
from sonde.trends.curves import Profiles, Records, profiles, shape_words
from sonde.trends.environment import Difference
from sonde.trends.sides import Side

_TONES = {
    "slower": "slower",
    "faster": "faster",
    "small change": "same",
    "no change seen": "same",
    "too few runs": "unknown",
}
# Curves are shown of the numbers that changed most.
_MOST_CURVES = 8


def comparison_study(
    comparison: Comparison,
    around: Sequence[Difference],
    units: Mapping[str, float],
    targets: Sequence[ComparedTargets] = (),
) -> Study:
    """The page. `targets` are those of the numbers whose records tell of any; `units` are pieces of hardware by file
    system, for rates by unit."""
    sections = [
        _changes(comparison),
        *_not_the_same(comparison),
        *_doubtful(comparison),
        *_matrix(comparison),
        *_curves(comparison),
        *_nodes(comparison),
        *target_sections(targets),
        _scatter(comparison),
        *_by_unit(comparison, units),
    ]
    slower = [number for number in comparison.numbers if number.verdict == "slower"]
    told = [f"{len(slower)} of {len(comparison.numbers)} numbers became slower: {_names(slower)}."] if slower else []
    return Study(
        title=f"{comparison.after.name} against {comparison.before.name}",
        lead=_lead(comparison),
        facts=[("Before", _side(comparison.before)), ("After", _side(comparison.after))],
        alarms=[*told, *target_alarms(targets)],
        sections=[*sections, _surroundings(around)],
    )


def _side(side: Side) -> str:
    dates = span(side.runs[0].started[:10], side.runs[-1].started[:10])
    return f"{side.name}: {counted(len(side.runs), 'run')}, {dates}"


def _names(numbers: Sequence[Compared]) -> str:
    shown = [
        f"{number.plan} {number.key.op} on {number.place} ({percent(number.ratio.value - 1)})" for number in numbers[:6]
    ]
    return "; ".join(shown) + (f"; and {len(numbers) - 6} more" if len(numbers) > 6 else "")


def _lead(comparison: Comparison) -> str:
    changed, few = comparison.changed, [number for number in comparison.numbers if number.verdict == "too few runs"]
    if changed:
        same = len(comparison.numbers) - len(changed) - len(few)
        words = f"{len(changed)} of {len(comparison.numbers)} numbers changed by more than chance"
        words += f"; {same} did not." if same else "."
    elif len(few) == len(comparison.numbers):
        words = "No number has enough runs on both sides for a verdict."
    else:
        words = "No number changed by more than chance."
    words += f" {on_both_sides(comparison)}".rstrip()
    unlike = sum(bool(number.differs_in) for number in comparison.numbers)
    if unlike:
        words += f" {unlike} of them did not measure the same on both sides; see what differed."
    doubtful = sum(bool(comparison.doubts_of(number)) for number in comparison.numbers)
    if doubtful:
        words += f" {doubtful} of them {'is' if doubtful == 1 else 'are'} doubtful; see why."
    return words + (f" {len(few)} have too few runs." if few and len(few) < len(comparison.numbers) else "")


def _label(number: Compared) -> str:
    phase = "" if number.key.phase in (number.key.op, "") else f" · {number.key.phase}"
    return f"{number.plan or number.key.plan_hash}{phase} · {number.key.op}"


def _changes(comparison: Comparison) -> Section:
    places = {number.place for number in comparison.numbers}
    rows = [
        ChangeRow(
            group=_label(number) if len(places) > 1 else number.plan,
            name=number.place if len(places) > 1 else f"{number.key.phase} · {number.key.op}",
            change=number.ratio.value - 1,
            low=None if number.ratio.low is None else number.ratio.low - 1,
            high=None if number.ratio.high is None else number.ratio.high - 1,
            tone=_TONES[number.verdict],
            shown=change_words(number.ratio),
            remark=_remark(number),
        )
        for number in sorted(comparison.numbers, key=lambda one: (one.plan, one.key.phase, one.key.op, one.key))
    ]
    words = [
        "The change of each number: the median of all ratios of a run after to a run before. A change counts when it is"
        " more than chance, the number of comparisons on this page taken into account."
    ]
    return Section("Percentage against the baseline", words, [change_bars(rows, _lead(comparison))])


def _not_the_same(comparison: Comparison) -> list[Section]:
    """Where before and after did not measure the same: what was asked to be compared, or what explains a change."""
    rows = [
        (f"{_label(number)}, {number.place}", name, old or "-", new or "-")
        for number in comparison.numbers
        for name, old, new in number.differs_in
    ]
    if not rows:
        return []
    words = ["These numbers are not of the same experiment, cache state or place: the difference may be the reason."]
    return [
        Section("Not the same on both sides", words, [table(["", "", "Before", "After"], rows, "", text_columns=4)])
    ]


def _doubtful(comparison: Comparison) -> list[Section]:
    """What speaks against the runs themselves."""
    if not comparison.doubts:
        return []
    rows = [(one.side, one.phase, one.words) for one in comparison.doubts]
    words = ["These runs were not measured as they should have been: a change may come from that."]
    return [Section("Doubtful runs", words, [table(["", "", "Why"], rows, "", text_columns=3)])]


def _remark(number: Compared) -> str:
    if number.verdict == "too few runs":
        return number.ratio.why
    rates = (
        f"{value_text(median(number.before), number.key.unit)} → {value_text(median(number.after), number.key.unit)}"
    )
    if number.verdict == "no change seen" and number.visible is not None:
        return f"{rates}; drops show from {100 * number.visible:.0f} %"
    return rates


def _matrix(comparison: Comparison) -> list[Section]:
    """Only where there is more than one file system and more than one test: else the bars say it all."""
    fields = {
        (number.place, (number.plan or number.key.plan_hash, f"{number.key.phase} {number.key.op}".strip())): Field(
            number.ratio.value - 1, number.changed, percent(number.ratio.value - 1)
        )
        for number in comparison.numbers
    }
    rows = sorted({place for place, _ in fields})
    columns = sorted({column for _, column in fields})
    if len(rows) < 2 or len(columns) < 2:
        return []
    short = {column: (column[0], " ".join(dict.fromkeys(column[1].split()))) for column in columns}
    drawn = {(place, short[column]): field for (place, column), field in fields.items()}
    words = [
        "One test on all file systems points to clients and libraries, all tests on one file system to its servers."
    ]
    return [Section("What changed where", words, [matrix(rows, list(short.values()), drawn, "Changes by file system")])]


def _curves(comparison: Comparison) -> list[Section]:
    chosen = sorted(comparison.numbers, key=lambda number: (not number.changed, -abs(number.ratio.value - 1)))[
        :_MOST_CURVES
    ]
    readers: dict[tuple[str, str, str], Records] = {}
    parts: list[Markup] = []
    for number in chosen:
        both = []
        for name, side in (("before", comparison.before), ("after", comparison.after)):
            key = (name, number.plan, number.key.file_system if not number.differs_in else "")
            if key not in readers:
                readers[key] = Records([run for run in side.runs if _of_number(run.plan, run.document, key)])
            both.append(readers[key])
        compared = profiles(both[0], both[1], number.key.phase, number.key.phase)
        if compared is not None:
            title = f"{_label(number)}, {number.place}"
            overlay = Overlay(title, _profile_words(compared), *_lists(compared))
            parts.append(profile_chart(overlay).render())
    return [Section("Rate over the time of the phase", [], parts)] if parts else []


def _nodes(comparison: Comparison) -> list[Section]:
    """Nodes by runs of the number that changed most, where runs had nodes to compare."""
    number = max(comparison.numbers, key=lambda one: (one.changed, abs(one.ratio.value - 1)))
    parts, words = [], []
    for name, side in (("Before", comparison.before), ("After", comparison.after)):
        own = [run for run in side.runs if _of_number(run.plan, run.document, ("", number.plan, ""))]
        rates = node_rates(Records(own).phases(number.key.phase))
        if rates is None:
            continue
        said = slow_words(rates) or "No node was slower than the others again and again."
        ends = [(0.0, "oldest run"), (0.9, "latest")] if len(rates.runs) > 2 else []
        marked = [row for row, _ in rates.slow]
        parts.append(heat_map(HeatMap(f"{name}: {_label(number)}", said, rates.hosts, rates.shares, ends, marked)))
    if parts:
        words = ["One column a run, one row a node: its rate by that of the middle node of the same run."]
    return [Section("Nodes", words, parts)] if parts else []


def _of_number(plan: str, document: Mapping[str, object], key: tuple[str, str, str]) -> bool:
    shared = document.get("series")
    storage = shared.get("file_system") if isinstance(shared, Mapping) else None
    return plan == key[1] and (not key[2] or storage == key[2])


def _lists(compared: Profiles) -> tuple[list[list[float]], list[list[float]]]:
    return [one.tolist() for one in compared.before], [one.tolist() for one in compared.after]


def _profile_words(compared: Profiles) -> str:
    differs = compared.likeness.differs
    if differs is None:
        words = [f"Eight runs before are needed to know which shapes are usual; here are {len(compared.before)}."]
    elif differs:
        times = compared.likeness.area / (compared.likeness.limit or 1.0)
        words = [f"The shape changed: {times:.1f} times as far from the runs before as those are from each other."]
    else:
        words = ["The shape is that of the runs before."]
    if compared.shape is not None and differs is not False:
        words.append(f"It shows {shape_words(compared.shape, compared.seconds)}.")
    if compared.late is not None:
        words.append(blame_words(compared.late, compared.blamed))
    return " ".join(words)


def _scatter(comparison: Comparison) -> Section:
    rows = [
        (
            f"{_label(number)}, {number.place}",
            [
                Amount(one.value, one.low, one.high, tone, one.words)
                for tone, one in (("before", number.scatter_before), ("after", number.scatter_after))
                if one is not None
            ],
        )
        for number in comparison.numbers
        if number.scatter_before or number.scatter_after
    ]
    words = [
        "Coefficient of variation of the runs: their standard deviation as a share of their mean, with its interval."
    ]
    keys = [("before", "before"), ("after", "after")]
    return Section("Scatter", words, [amount_bars(rows, "Coefficient of variation", keys)] if rows else [])


def _by_unit(comparison: Comparison, units: Mapping[str, float]) -> list[Section]:
    """Rates by piece of hardware, so that file systems of different size can be compared."""
    rows = []
    for number in comparison.numbers:
        count = next((count for name, count in units.items() if name in number.key.file_system), None)
        if count:
            pair = (("before", median(number.before)), ("after", median(number.after)))
            bars = [Amount(v / count, None, None, tone, value_text(v / count, number.key.unit)) for tone, v in pair]
            rows.append((f"{_label(number)}, {number.place}", bars))
    if not rows:
        return []
    told = ", ".join(f"{name} {count:g}" for name, count in units.items())
    keys = [("before", "before"), ("after", "after")]
    return [Section("Rate by unit", [f"Medians divided by the units of each: {told}."], [amount_bars(rows, "", keys)])]


def _surroundings(around: Sequence[Difference]) -> Section:
    if not around:
        return Section("What else was different", ["Nothing that the records say about machines and programs."], [])
    parts = []
    for steady, group in itertools.groupby(around, key=lambda one: one.steady):
        words = "The same within each side" if steady else "Changed within a side too: explains little"
        rows = [(one.name, one.before or "-", one.after or "-") for one in group]
        parts.append(table(["", "Before", "After"], rows, words, text_columns=3))
    return Section("What else was different", [], parts)
