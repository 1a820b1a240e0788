# SPDX-License-Identifier: Apache-2.0
"""A comparison as a page: percentages against the baseline, what changed where, curves, scatter, environment."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from sonde.charts.amount_bars import AmountBar, render_amount_bars
from sonde.charts.change_bars import ChangeRow, render_change_bars
from sonde.charts.dates import format_date_span
from sonde.charts.heat_map import HeatMap, render_heat_map
from sonde.charts.markup import Markup
from sonde.charts.matrix import MatrixField, render_matrix
from sonde.charts.plot import render_html_table
from sonde.charts.profile_chart import ProfileOverlay, build_profile_chart
from sonde.charts.study import Study, StudySection
from sonde.findings.node_history import collect_node_history, describe_repeated_stragglers
from sonde.model.units import format_count_with_noun
from sonde.stats.imbalance import describe_stragglers
from sonde.trends.comparison import Comparison, NumberComparison
from sonde.trends.comparison_text import (
    describe_shared_runs,
    describe_simulated_runs,
    format_change_interval,
    format_change_percent,
    format_history_rate,
)
from sonde.trends.environment import EnvironmentDifference
from sonde.trends.profile_comparison import ProfileComparison, RunRecords, compare_profiles, describe_rate_shape
from sonde.trends.sides import ComparedSide
from sonde.trends.target_comparison import TargetComparison
from sonde.trends.target_tables import build_target_sections, list_target_alarms

_TONES_BY_VERDICT = {
    "slower": "slower",
    "faster": "faster",
    "small change": "same",
    "no change seen": "same",
    "too few runs": "unknown",
}
# Curves are shown of the numbers that changed most.
_MAX_CURVE_CHARTS = 8


def build_comparison_page(
    comparison: Comparison,
    differences: Sequence[EnvironmentDifference],
    unit_count_by_file_system: Mapping[str, float],
    target_comparisons: Sequence[TargetComparison] = (),
) -> Study:
    """The page. `target_comparisons` are those of the numbers whose records tell of any; `unit_count_by_file_system`
    are pieces of hardware by file system, for rates by unit."""
    sections = [
        _make_change_chart(comparison),
        *_make_differences_section(comparison),
        *_make_caveat_section(comparison),
        *_make_change_matrix_section(comparison),
        *_make_rate_curve_section(comparison),
        *_make_node_rate_section(comparison),
        *build_target_sections(target_comparisons),
        *_make_scatter_chart(comparison),
        *_make_storage_unit_table(comparison, unit_count_by_file_system),
    ]
    slower = [number for number in comparison.numbers if number.verdict == "slower"]
    text = (
        [f"{len(slower)} of {len(comparison.numbers)} numbers became slower: {_list_changed_numbers(slower)}."]
        if slower
        else []
    )
    return Study(
        title=f"{comparison.after.name} against {comparison.before.name}",
        lead=_make_lead_sentence(comparison),
        facts=[("Before", _describe_side(comparison.before)), ("After", _describe_side(comparison.after))],
        alarms=[*text, *list_target_alarms(target_comparisons)],
        sections=[*sections, _make_environment_section(differences)],
    )


def _describe_side(side: ComparedSide) -> str:
    dates = format_date_span(side.runs[0].started[:10], side.runs[-1].started[:10])
    origin = describe_simulated_runs(side)
    return f"{side.name}: {format_count_with_noun(len(side.runs), 'run')}, {dates}" + (f", {origin}" if origin else "")


def _list_changed_numbers(number_comparisons: Sequence[NumberComparison]) -> str:
    displayed = [
        f"{number.plan} {number.key.op} on {number.location} ({format_change_percent(number.ratio.value - 1)})"
        for number in number_comparisons[:6]
    ]
    return "; ".join(displayed) + (f"; and {len(number_comparisons) - 6} more" if len(number_comparisons) > 6 else "")


def _make_lead_sentence(comparison: Comparison) -> str:
    changed, few = (
        comparison.changed_numbers,
        [number for number in comparison.numbers if number.verdict == "too few runs"],
    )
    if changed:
        same = len(comparison.numbers) - len(changed) - len(few)
        text = f"{len(changed)} of {len(comparison.numbers)} numbers changed by more than chance"
        text += f"; {same} did not." if same else "."
    elif len(few) == len(comparison.numbers):
        text = "No number has enough runs on both sides for a verdict."
    else:
        text = "No number changed by more than chance."
    text += f" {describe_shared_runs(comparison)}".rstrip()
    unlike = sum(bool(number.differs_in) for number in comparison.numbers)
    if unlike:
        text += f" {unlike} of them did not measure the same on both sides; see what differed."
    others = sum(bool(number.classification_text) for number in comparison.numbers)
    if others:
        text += f" {others} of them {'is' if others == 1 else 'are'} not of storage."
    doubtful = sum(bool(comparison.list_caveats_of_number(number)) for number in comparison.numbers)
    if doubtful:
        text += f" {doubtful} of them {'is' if doubtful == 1 else 'are'} doubtful; see why."
    return text + (f" {len(few)} have too few runs." if few and len(few) < len(comparison.numbers) else "")


def _make_number_label(number_comparison: NumberComparison) -> str:
    phase = "" if number_comparison.key.phase in (number_comparison.key.op, "") else f" · {number_comparison.key.phase}"
    return f"{number_comparison.plan or number_comparison.key.plan_hash}{phase} · {number_comparison.key.op}"


def _make_change_chart(comparison: Comparison) -> StudySection:
    places = {number.location for number in comparison.numbers}
    rows = [
        ChangeRow(
            group=_make_number_label(number) if len(places) > 1 else number.plan,
            name=number.location if len(places) > 1 else f"{number.key.phase} · {number.key.op}",
            change=number.ratio.value - 1,
            low=None if number.ratio.low is None else number.ratio.low - 1,
            high=None if number.ratio.high is None else number.ratio.high - 1,
            tone=_TONES_BY_VERDICT[number.verdict],
            label=format_change_interval(number.ratio),
            comment=_make_number_comment(number),
        )
        for number in sorted(
            comparison.numbers, key=lambda number: (number.plan, number.key.phase, number.key.op, number.key)
        )
    ]
    sentences = [
        "The change of each number: the median of all ratios of a run after to a run before. A change counts when it is"
        " more than chance, the number of comparisons on this page taken into account."
    ]
    return StudySection(
        "Percentage against the baseline", sentences, [render_change_bars(rows, _make_lead_sentence(comparison))]
    )


def _make_differences_section(comparison: Comparison) -> list[StudySection]:
    """Section on differences between the sides: those in what was measured, and those that may explain a change."""
    rows = [
        (f"{_make_number_label(number)}, {number.location}", name, old or "-", new or "-")
        for number in comparison.numbers
        for name, old, new in number.differs_in
    ]
    if not rows:
        return []
    sentences = [
        "These numbers are not of the same experiment, cache state or place: the difference may be the reason."
    ]
    return [
        StudySection(
            "Not the same on both sides",
            sentences,
            [render_html_table(["", "", "Before", "After"], rows, "", text_columns=4)],
        )
    ]


def _make_caveat_section(comparison: Comparison) -> list[StudySection]:
    """Section with the caveats of the runs on both sides."""
    if not comparison.caveats:
        return []
    rows = [(caveat.side, caveat.phase, caveat.text_with_count) for caveat in comparison.caveats]
    sentences = ["These runs were not measured as they should have been: a change may come from that."]
    return [
        StudySection(
            "Doubtful runs", sentences, [render_html_table(["Side", "Phase", "Why"], rows, "", text_columns=3)]
        )
    ]


def _make_number_comment(number_comparison: NumberComparison) -> str:
    if number_comparison.classification_text:
        values = _describe_values_of_number(number_comparison)
        return f"not a storage number ({number_comparison.classification_text}); {values}"
    return _describe_values_of_number(number_comparison)


def _describe_values_of_number(number_comparison: NumberComparison) -> str:
    if number_comparison.verdict == "too few runs":
        return number_comparison.ratio.why
    before, after = (
        format_history_rate(level, number_comparison.key.unit) for level in number_comparison.levels_before_and_after
    )
    rates = f"{before} → {after}"
    if number_comparison.verdict == "no change seen" and number_comparison.visible is not None:
        return f"{rates}; smallest detectable drop: {100 * number_comparison.visible:.0f} %"
    return rates


def _make_change_matrix_section(comparison: Comparison) -> list[StudySection]:
    """Only where there is more than one file system and more than one test: else the bars say it all."""
    fields = {
        (
            number.location,
            (number.plan or number.key.plan_hash, f"{number.key.phase} {number.key.op}".strip()),
        ): MatrixField(number.ratio.value - 1, number.has_changed, format_change_percent(number.ratio.value - 1))
        for number in comparison.numbers
    }
    rows = sorted({position for position, _ in fields})
    columns = sorted({column for _, column in fields})
    if len(rows) < 2 or len(columns) < 2:
        return []
    short = {column: (column[0], " ".join(dict.fromkeys(column[1].split()))) for column in columns}
    drawing = {(position, short[column]): field for (position, column), field in fields.items()}
    sentences = [
        "One test on all file systems points to clients and libraries, all tests on one file system to its servers."
    ]
    return [
        StudySection(
            "What changed where",
            sentences,
            [render_matrix(rows, list(short.values()), drawing, "Changes by file system")],
        )
    ]


def _make_rate_curve_section(comparison: Comparison) -> list[StudySection]:
    chosen = sorted(comparison.numbers, key=lambda number: (not number.has_changed, -abs(number.ratio.value - 1)))[
        :_MAX_CURVE_CHARTS
    ]
    readers: dict[tuple[str, str, str], RunRecords] = {}
    parts: list[Markup] = []
    for number in chosen:
        both = []
        for name, side in (("before", comparison.before), ("after", comparison.after)):
            key = (name, number.plan, number.key.file_system if not number.differs_in else "")
            if key not in readers:
                readers[key] = RunRecords([run for run in side.runs if _belongs_to_number(run.plan, run.document, key)])
            both.append(readers[key])
        compared = compare_profiles(both[0], both[1], number.key.phase, number.key.phase)
        if compared is not None:
            title = f"{_make_number_label(number)}, {number.location}"
            overlay = ProfileOverlay(title, _describe_profile_change(compared), *_convert_curves_to_lists(compared))
            parts.append(build_profile_chart(overlay).render())
    return [StudySection("Rate over the time of the phase", [], parts)] if parts else []


def _make_node_rate_section(comparison: Comparison) -> list[StudySection]:
    """Nodes by runs of the number that changed most, where runs had nodes to compare."""
    number = max(comparison.numbers, key=lambda number: (number.has_changed, abs(number.ratio.value - 1)))
    parts, messages = [], []
    for name, side in (("Before", comparison.before), ("After", comparison.after)):
        runs = [run for run in side.runs if _belongs_to_number(run.plan, run.document, ("", number.plan, ""))]
        rates = collect_node_history(RunRecords(runs).list_phase_records(number.key.phase))
        if rates is None:
            continue
        text = describe_repeated_stragglers(rates) or "No node was slower than the others again and again."
        ends = [(0.0, "oldest run"), (0.9, "latest")] if len(rates.runs) > 2 else []
        marked = [row for row, _ in rates.slow]
        parts.append(
            render_heat_map(
                HeatMap(f"{name}: {_make_number_label(number)}", text, rates.hosts, rates.shares, ends, marked)
            )
        )
    if parts:
        messages = ["One column a run, one row a node: its rate by that of the middle node of the same run."]
    return [StudySection("Nodes", messages, parts)] if parts else []


def _belongs_to_number(
    plan_name: str, evidence_document: Mapping[str, object], history_key: tuple[str, str, str]
) -> bool:
    shared = evidence_document.get("history")
    storage = shared.get("file_system") if isinstance(shared, Mapping) else None
    return plan_name == history_key[1] and (not history_key[2] or storage == history_key[2])


def _convert_curves_to_lists(profile_comparison: ProfileComparison) -> tuple[list[list[float]], list[list[float]]]:
    return [item.tolist() for item in profile_comparison.before], [item.tolist() for item in profile_comparison.after]


def _describe_profile_change(profile_comparison: ProfileComparison) -> str:
    differs = profile_comparison.likeness.differs
    if differs is None:
        sentences = [
            f"Eight runs before are needed to know which shapes are usual; here are {len(profile_comparison.before)}."
        ]
    elif differs:
        times = profile_comparison.likeness.area / (profile_comparison.likeness.limit or 1.0)
        sentences = [f"The shape changed: {times:.1f} times as far from the runs before as those are from each other."]
    else:
        sentences = ["The shape is that of the runs before."]
    if profile_comparison.shape is not None and differs is not False:
        sentences.append(f"It shows {describe_rate_shape(profile_comparison.shape, profile_comparison.seconds)}.")
    if profile_comparison.late is not None:
        sentences.append(describe_stragglers(profile_comparison.late, profile_comparison.blamed))
    return " ".join(sentences)


def _make_scatter_chart(comparison: Comparison) -> list[StudySection]:
    rows = [
        (
            f"{_make_number_label(number)}, {number.location}",
            [
                AmountBar(item.value, item.low, item.high, tone, item.text)
                for tone, item in (("before", number.scatter_before), ("after", number.scatter_after))
                if item is not None
            ],
        )
        for number in comparison.numbers
        if number.scatter_before or number.scatter_after
    ]
    sentences = [
        "Coefficient of variation of the runs: their standard deviation as a share of their mean, with its interval."
    ]
    keys = [("before", "before"), ("after", "after")]
    chart = [render_amount_bars(rows, "Coefficient of variation", keys)]
    return [StudySection("Scatter", sentences, chart)] if rows else []  # a scatter needs several runs


def _make_storage_unit_table(
    comparison: Comparison, unit_count_by_file_system: Mapping[str, float]
) -> list[StudySection]:
    """Rates by piece of hardware, so that file systems of different size can be compared."""
    rows = []
    for number in comparison.numbers:
        count = next(
            (count for name, count in unit_count_by_file_system.items() if name in number.key.file_system), None
        )
        if count:
            pair = tuple(zip(("before", "after"), number.levels_before_and_after, strict=True))
            bars = [
                AmountBar(v / count, None, None, tone, format_history_rate(v / count, number.key.unit))
                for tone, v in pair
            ]
            rows.append((f"{_make_number_label(number)}, {number.location}", bars))
    if not rows:
        return []
    text = ", ".join(f"{name} {count:g}" for name, count in unit_count_by_file_system.items())
    keys = [("before", "before"), ("after", "after")]
    return [
        StudySection(
            "Rate by unit",
            [f"The level of each side divided by its units: {text}."],
            [render_amount_bars(rows, "", keys)],
        )
    ]


def _make_environment_section(differences: Sequence[EnvironmentDifference]) -> StudySection:
    if not differences:
        return StudySection(
            "What else was different", ["Nothing that the records say about machines and programs."], []
        )
    parts = []
    for steady, group in itertools.groupby(differences, key=lambda difference: difference.steady):
        text = "The same within each side" if steady else "Changed within a side too: explains little"
        rows = [(item.name, item.before or "-", item.after or "-") for item in group]
        parts.append(render_html_table(["", "Before", "After"], rows, text, text_columns=3))
    return StudySection("What else was different", [], parts)
