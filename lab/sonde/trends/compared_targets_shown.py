# SPDX-License-Identifier: Apache-2.0
"""Targets, servers and units on both sides of a comparison, as tables of the terminal and of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from sonde.charts.plot import table
from sonde.charts.study import Section
from sonde.findings.target_changes import TARGET, LevelChanges, PartChange
from sonde.model.quantities import plain
from sonde.model.series import SeriesKey
from sonde.model.units import counted, format_latency
from sonde.model.visible import one_line
from sonde.terminal.screen import plain_table
from sonde.trends.compared_targets import ComparedTargets
from sonde.trends.comparison_words import STYLES, interval_words, number_name

# Of more parts those that changed most: the JSON form has all.
_ON_SCREEN, _ON_PAGE = 12, 24
_HEAD = ("mean before", "mean after", "rate [95 %]", "against the others [99.5 %]", "")


def print_targets(console: Console, compared: Sequence[ComparedTargets], keys: Sequence[SeriesKey]) -> None:
    """For each number: what is said of its targets, and a table of those that changed. Nothing where none are known."""
    for one in compared:
        console.print()
        name = one_line(number_name(one.number.key, one.number.plan, keys), 80)
        console.print(f"Targets of {name} ({one.number.key.op})", soft_wrap=True)
        for level in one.changes.levels:
            if differing := level.differing[:_ON_SCREEN]:
                shown = plain_table()
                shown.add_column(one_line(level.level, 30))
                for title in _HEAD:
                    shown.add_column(title, justify="right" if title else "left")
                for part in differing:
                    verdict = Text(part.verdict, style=STYLES.get(part.verdict, ""))
                    shown.add_row(one_line(part.name, 40), *_cells(part), verdict)
                console.print(shown)
        for words in one.words:
            console.print(plain(words), soft_wrap=True)


def target_sections(compared: Sequence[ComparedTargets]) -> list[Section]:
    """The same for the page, with those parts that changed least left out of long tables only."""
    sections = []
    for one in compared:
        title = f"Targets: {one.number.plan or one.number.key.plan_hash} · {one.number.key.phase}, {one.number.place}"
        parts = [_drawn(level) for level in one.changes.levels if level.parts]
        sections.append(Section(title.removesuffix(", "), one.words, parts))
    return sections


def target_alarms(compared: Sequence[ComparedTargets]) -> list[str]:
    """The sentence on the target that changed most, of each number where it became slower."""
    levels = [level for one in compared for level in one.changes.levels[:1]]
    return [level.words[0] for level in levels if level.differing and level.differing[0].verdict == "slower"]


def _drawn(level: LevelChanges) -> Markup:
    chosen = sorted(level.parts, key=lambda part: (not part.differs, -abs(math.log(part.own or 1.0))))[:_ON_PAGE]
    rows = [(one_line(part.name, 60), part.verdict, *_cells(part)) for part in chosen]
    name = one_line(level.level, 40)
    words = (
        f"Mean latency of the operations that lie on one {name} alone, the rate at which it answered, and that rate"
        " held against those of the others"
    )
    if level.level != TARGET:
        words += "; the last column leaves out targets that changed themselves, where these are less than half of it"
    if len(chosen) < len(level.parts):
        words += f"; of {counted(len(level.parts), name)} the {_ON_PAGE} that changed most"
    return table((name, "", *_HEAD[:-1]), rows, words, 2)


def _cells(part: PartChange) -> tuple[str, ...]:
    means = [format_latency(ns) if ns is not None else "-" for ns in (part.mean_ns_before, part.mean_ns_after)]
    rate = interval_words(part.rate, part.rate_low, part.rate_high)
    return (*means, rate, interval_words(part.own, part.low, part.high))
