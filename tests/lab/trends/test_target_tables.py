# SPDX-License-Identifier: Apache-2.0
"""Targets of both sides on the screen and on the page, from changes that are given."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from sonde.findings.target_changes import LevelChanges, PartChange, PhaseChanges
from sonde.model.history_key import HistoryKey
from sonde.model.quantities import replace_no_break_spaces
from sonde.stats.ratio import RateRatio
from sonde.trends.comparison import Comparison, NumberComparison
from sonde.trends.comparison_page import build_comparison_page
from sonde.trends.sides import ComparedSide
from sonde.trends.target_comparison import TargetComparison
from sonde.trends.target_tables import build_target_sections, list_target_alarms, print_target_tables

KEY = HistoryKey("a", "lustre:fs1", "hash", "", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")
HALVED_RATE = RateRatio(0.5, 0.45, 0.55, 0.001, 9, 9, 0.95)
NUMBER = NumberComparison(KEY, "probe", (2e9,), (1e9,), HALVED_RATE, None, "slower", None, (), "fs1", None, None)


def cells(html: str) -> list[list[str]]:
    """The rows of a table."""
    rows = re.findall(r"<tr>((?:<td[^>]*>[^<]*</td>)+)</tr>", html)
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]


def part(name: str, rate_ratio: float, **members: object) -> PartChange:
    """A part whose rate changed by that factor."""
    verdict = "slower" if rate_ratio < 0.9 else "faster" if rate_ratio > 1.1 else "no change seen"
    change = PartChange(
        name,
        cast(Any, verdict),
        "",
        rate_ratio,
        0.9 * rate_ratio,
        1.1 * rate_ratio,
        rate_ratio,
        None,
        None,
        5e6,
        5e6 / rate_ratio,
        1.0,
        1.0,
    )
    return replace(change, **members)  # type: ignore[arg-type]


def level(*parts: PartChange, name: str = "target") -> LevelChanges:
    return LevelChanges(name, "write", parts, (), ())


def compare_targets(*levels: LevelChanges, unknown: tuple[str, ...] = ()) -> TargetComparison:
    return TargetComparison(NUMBER, PhaseChanges(levels, unknown))


def test_slower_target_raises_a_page_alarm() -> None:
    run = cast(Any, SimpleNamespace(id="r", started="2026-01-01T06:00:00+00:00", plan="", document={}))
    compared = Comparison(ComparedSide("old", (run,)), ComparedSide("new", (run,)), (NUMBER,), ())
    targets = [TargetComparison(NUMBER, PhaseChanges((level(part("OST1", 0.5)),), ()))]
    page = build_comparison_page(compared, (), {}, targets)
    assert len(page.alarms) == 2
    assert page.alarms[1].startswith("Target OST1 ")
    assert "Targets: probe · p1, fs1" in [section.title for section in page.sections]


def printed(*compared: TargetComparison) -> list[str]:
    console = Console(file=io.StringIO(), width=160)
    print_target_tables(console, compared, [KEY])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().split("\n")


def test_screen_lists_the_12_targets_that_changed_most() -> None:
    parts = [part(f"OST{index:02}", 0.8 - 0.01 * index) for index in range(14)]
    lines = printed(compare_targets(level(part("OST99", 1.0), *parts), unknown=("Of the run before nothing.",)))
    assert lines[:2] == ["", "Targets of probe · p1 (read)"]
    names = [line.split()[0] for line in lines if line.strip().startswith("OST") and "%" in line]
    assert names == [f"OST{index:02}" for index in range(13, 1, -1)]
    assert lines[-2].strip() == "Of the run before nothing."
    head = next(line for line in lines if "mean before" in line).split("  ")
    assert [word.strip() for word in head if word.strip()] == [
        "target", "mean before", "mean after", "rate [95 %]", "against the others [99.5 %]"
    ]  # fmt: skip
    row = next(line for line in lines if line.strip().startswith("OST13"))
    assert re.split(r"\s{2,}", row.strip()) == [
        "OST13", "5.00 ms", "7.46 ms", "−33 %", "−33 % [−40, −26]", "slower"
    ]  # fmt: skip


def test_a_level_without_differences_has_no_table_on_the_screen() -> None:
    lines = printed(compare_targets(level(part("OST1", 1.0))))
    assert not [line for line in lines if "mean before" in line]
    assert len([line for line in lines if line]) == 2, "its name, and what is said"


def test_page_lists_twenty_four_parts_with_differing_parts_first() -> None:
    parts = [part(f"OST{index:02}", 1.0 + 0.001 * index) for index in range(25)]
    strong = part("OST77", 0.5, mean_ns_before=None, rate=None)
    (section_built,) = build_target_sections(
        [compare_targets(level(strong, *parts), level(name="OSS"), level(part("s1", 0.5), name="OSS"))]
    )
    assert section_built.title == "Targets: probe · p1, fs1"
    targets, servers = (str(cell) for cell in section_built.parts)
    rows = cells(targets)
    assert [row[0] for row in rows] == ["OST77", *(f"OST{index:02}" for index in range(24, 1, -1))]
    assert rows[0][1:] == ["slower", "-", "10.0 ms", "-", "−50 % [−55, −45]"]
    assert "; of 26 targets the 24 that changed most" in targets
    assert "leaves out targets that changed themselves" not in targets
    assert (
        "alone, the rate at which it answered, and that rate held against those of the others; the last column"
        in servers
    )
    assert "that changed most" not in servers
    assert re.findall(r"<th[^>]*>([^<]*)</th>", targets)[:6] == [
        "target", "", "mean before", "mean after", "rate [95 %]", "against the others [99.5 %]"
    ]  # fmt: skip
    nameless = replace(compare_targets(level(part("x", 0.5))), number=replace(NUMBER, location="", plan=""))
    assert build_target_sections([nameless])[0].title == "Targets: hash · p1"


def test_most_changed_target_is_an_alarm_if_slower() -> None:
    assert [
        sentence.split()[1] for sentence in list_target_alarms([compare_targets(level(part("a", 0.6), part("b", 0.5)))])
    ] == ["b"]
    for none in (level(part("a", 0.6), part("b", 2.0)), level(part("a", 1.0)), level()):
        assert list_target_alarms([compare_targets(none)]) == []
    assert list_target_alarms([compare_targets(level(part("a", 1.0)), level(part("b", 0.5), name="OSS"))]) == []
    assert list_target_alarms([compare_targets()]) == []


def test_target_sentences_are_by_level_then_unknown() -> None:
    comparison = compare_targets(level(part("a", 0.6)), level(part("s", 1.0), name="OSS"), unknown=("Nothing.",))
    first, second = (sentence for level in comparison.changes.levels for sentence in level.change_sentences)
    assert comparison.sentences == [first, second, "Nothing."]
    document = comparison.to_json()
    assert [set(level) for level in document["levels"]] == [{"level", "kind", "parts", "only_before", "only_after"}] * 2
    assert document["sentences"] == [replace_no_break_spaces(sentence) for sentence in comparison.sentences]


def test_long_target_and_level_names_are_cut() -> None:
    """Forty letters of a target and thirty of a level on the screen, sixty and forty on the page."""

    def render_names(name: str, of: str) -> tuple[str, str]:
        comparison = compare_targets(level(part(name, 0.5), name=of))
        (section,) = build_target_sections([comparison])
        return "\n".join(printed(comparison)), str(section.parts[0])

    for length, cut_on_screen, cut_on_page in (
        (40, False, False),
        (41, True, False),
        (60, True, False),
        (61, True, True),
    ):
        screen, page = render_names("x" * length, "OSS")
        table = next(line for line in screen.split("\n") if line.strip().startswith("x"))
        assert ("x" * length in table) != cut_on_screen
        assert (">" + "x" * length + "<" in page) != cut_on_page
    for length, cut_on_screen, cut_on_page in (
        (30, False, False),
        (31, True, False),
        (40, True, False),
        (41, True, True),
    ):
        screen, page = render_names("OST1", "y" * length)
        head = next(line for line in screen.split("\n") if "mean before" in line)
        assert ("y" * length in head) != cut_on_screen
        assert (">" + "y" * length + "<" in page) != cut_on_page


@pytest.mark.parametrize(("length", "is_whole"), [(75, True), (76, False)])
def test_experiment_name_of_eighty_letters_is_not_cut(length: int, is_whole: bool) -> None:
    comparison = compare_targets(level(part("OST1", 0.5)))
    name = "p" * length + " · p1"  # the experiment and its phase
    lines = printed(replace(comparison, number=replace(NUMBER, plan="p" * length)))
    assert lines[1] == (f"Targets of {name} (read)" if is_whole else f"Targets of {name[:80]}… (read)")
