# SPDX-License-Identifier: Apache-2.0
"""Targets, servers and units on both sides of a comparison, as tables of the terminal and of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import StudySection
from sonde.findings.target_changes import TARGET_LEVEL, LevelChanges, PartChange
from sonde.model.escaping import escape_line
from sonde.model.history_key import HistoryKey
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.units import format_count_with_noun, format_latency
from sonde.terminal.screen import make_plain_table
from sonde.trends.comparison_text import VERDICT_STYLES, format_number_name, format_ratio_interval
from sonde.trends.target_comparison import TargetComparison

# Of more parts those that changed most: the JSON form has all.
_ON_SCREEN, _ON_PAGE = 12, 24
_COLUMN_TITLES = ("mean before", "mean after", "rate [95 %]", "against the others [99.5 %]", "")


def print_target_tables(
    console: Console, target_comparisons: Sequence[TargetComparison], history_keys: Sequence[HistoryKey]
) -> None:
    """Prints for each number the sentences on its targets and a table of those that changed."""
    for comparison in target_comparisons:
        console.print()
        name = escape_line(format_number_name(comparison.number.key, comparison.number.plan, history_keys), 80)
        console.print(f"Targets of {name} ({comparison.number.key.op})", soft_wrap=True)
        for level in comparison.changes.levels:
            if differing := level.changed_parts[:_ON_SCREEN]:
                displayed = make_plain_table()
                displayed.add_column(escape_line(level.level, 30))
                for title in _COLUMN_TITLES:
                    displayed.add_column(title, justify="right" if title else "left")
                for part in differing:
                    verdict = Text(part.verdict, style=VERDICT_STYLES.get(part.verdict, ""))
                    displayed.add_row(escape_line(part.name, 40), *_make_part_cells(part), verdict)
                console.print(displayed)
        for text in comparison.sentences:
            console.print(replace_no_break_spaces(text), soft_wrap=True)


def build_target_sections(target_comparisons: Sequence[TargetComparison]) -> list[StudySection]:
    """Sections of the page; long tables omit the parts that changed least."""
    sections = []
    for comparison in target_comparisons:
        number = comparison.number
        title = f"Targets: {number.plan or number.key.plan_hash} · {number.key.phase}, {number.location}"
        parts = [_draw_level_changes(level) for level in comparison.changes.levels if level.parts]
        sections.append(StudySection(title.removesuffix(", "), comparison.sentences, parts))
    return sections


def list_target_alarms(target_comparisons: Sequence[TargetComparison]) -> list[str]:
    """The sentence on the target that changed most, of each number where it became slower."""
    levels = [level for comparison in target_comparisons for level in comparison.changes.levels[:1]]
    return [
        level.change_sentences[0]
        for level in levels
        if level.changed_parts and level.changed_parts[0].verdict == "slower"
    ]


def _draw_level_changes(level_changes: LevelChanges) -> Markup:
    chosen = sorted(
        level_changes.parts, key=lambda part: (not part.has_changed, -abs(math.log(part.relative_rate or 1.0)))
    )[:_ON_PAGE]
    rows = [(escape_line(part.name, 60), part.verdict, *_make_part_cells(part)) for part in chosen]
    name = escape_line(level_changes.level, 40)
    text = (
        f"Mean latency of the operations that lie on one {name} alone, the rate at which it answered, and that rate"
        " held against those of the others"
    )
    if level_changes.level != TARGET_LEVEL:
        text += "; the last column leaves out targets that changed themselves, where these are less than half of it"
    if len(chosen) < len(level_changes.parts):
        text += f"; of {format_count_with_noun(len(level_changes.parts), name)} the {_ON_PAGE} that changed most"
    return render_html_table((name, "", *_COLUMN_TITLES[:-1]), rows, text, 2)


def _make_part_cells(part_change: PartChange) -> tuple[str, ...]:
    means = [
        format_latency(ns) if ns is not None else "-" for ns in (part_change.mean_ns_before, part_change.mean_ns_after)
    ]
    rate = format_ratio_interval(part_change.rate, part_change.rate_low, part_change.rate_high)
    return (*means, rate, format_ratio_interval(part_change.relative_rate, part_change.low, part_change.high))
