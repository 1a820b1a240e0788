# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison, section by section, from comparisons whose numbers are given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from sonde.charts.amount_bars import AmountBar
from sonde.charts.change_bars import ChangeRow
from sonde.charts.heat_map import HeatMap
from sonde.charts.study import Study, StudySection
from sonde.findings.node_history import NodeRateHistory
from sonde.model.history_key import HistoryKey
from sonde.stats.imbalance import StragglerAttribution, Stragglers
from sonde.stats.profiles import BandDistance
from sonde.stats.ratio import RateRatio
from sonde.stats.shapes import RateShape
from sonde.stats.spread import CoefficientOfVariation
from sonde.store.summary import Summary
from sonde.trends import comparison_page
from sonde.trends.comparison import ChangeVerdict, Comparison, NumberComparison
from sonde.trends.comparison_page import _describe_profile_change, build_comparison_page
from sonde.trends.environment import EnvironmentDifference
from sonde.trends.profile_comparison import ProfileComparison
from sonde.trends.run_caveats import CaveatCount
from sonde.trends.sides import ComparedSide

KEY = HistoryKey("a", "lustre:fs1", "hash", "", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")


def number(change: float, location: str = "fs1", **key: str) -> NumberComparison:
    """A number that is 2 GB/s before, and what the change makes of it after."""
    size = RateRatio(change, 0.95 * change, 1.05 * change, 0.001, 9, 9, 0.95)
    verdict: ChangeVerdict = "slower" if change < 0.9 else "faster" if change > 1.1 else "no change seen"
    after = tuple(change * rate for rate in (1e9, 2e9, 3e9))
    number_key = replace(KEY, **key)
    return NumberComparison(
        number_key, "probe", (1e9, 2e9, 3e9), after, size, None, verdict, None, (), location, None, None
    )


def make_side(name: str, *days: int) -> ComparedSide:
    """A side of runs on these days of January, without record files."""
    runs = [
        SimpleNamespace(id=f"{name}{day}", started=f"2026-01-{day:02}T06:00:00+00:00", plan="probe", document={},
                        folder=Path("/nowhere"))
        for day in days
    ]  # fmt: skip
    return ComparedSide(name, cast(tuple[Summary, ...], tuple(runs)))


def build_page(
    *numbers: NumberComparison,
    differences: Sequence[EnvironmentDifference] = (),
    units: dict[str, float] | None = None,
    caveat_counts: tuple[CaveatCount, ...] = (),
) -> Study:
    compared = Comparison(make_side("old", 1, 2, 5), make_side("new", 9), numbers, (), caveat_counts)
    return build_comparison_page(compared, differences, units or {})


def section(page: Study, title: str) -> StudySection:
    (matching,) = [section_found for section_found in page.sections if section_found.title == title]
    return matching


def cells(html: object) -> list[list[str]]:
    """The rows of a table."""
    rows = re.findall(r"<tr>((?:<td[^>]*>[^<]*</td>)+)</tr>", str(html))
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]


def test_comparison_page_shows_sides_and_dates() -> None:
    page = build_page(number(1.0))
    assert page.title == "new against old"
    assert page.facts == [
        ("Before", "old: 3 runs, 2026-01-01 to 2026-01-05"),
        ("After", "new: 1 run, 2026-01-09"),
    ]
    assert page.alarms == []
    assert [section_found.title for section_found in page.sections] == ["Percentage against the baseline",
                                                    "What else was different"]  # fmt: skip


@pytest.mark.parametrize(("count", "more"), [(1, ""), (6, ""), (7, "; and 1 more"), (9, "; and 3 more")])
def test_alarm_lists_six_slower_numbers_and_a_count(count: int, more: str) -> None:
    slower = [number(0.5, f"fs{index}") for index in range(count)]
    (alarm,) = build_page(number(1.3, "fs9"), *slower).alarms
    names_shown = "; ".join(f"probe read on fs{index} (−50 %)" for index in range(min(count, 6)))
    assert alarm == f"{count} of {count + 1} numbers became slower: {names_shown}{more}."


@pytest.mark.parametrize(
    ("numbers", "is_shown"),
    [
        ([number(0.5, "fs1"), number(0.5, "fs2")], False),
        ([number(0.5, op="read"), number(0.5, op="write")], False),
        ([number(0.5, "fs1"), number(0.5, "fs2", op="write")], True),
    ],
    ids=["one test", "one file system", "two of each"],
)
def test_change_matrix_appears_with_two_rows_and_two_columns(numbers: list[NumberComparison], is_shown: bool) -> None:
    page = build_page(*numbers)
    assert ("What changed where" in [section_found.title for section_found in page.sections]) == is_shown
    if is_shown:
        (table,) = section(page, "What changed where").parts
        assert re.findall(r'scope="row">(\w+)<', table) == ["fs1", "fs2"]
        assert re.findall(r'scope="col">([^<]+)<', table) == ["p1 read", "p1 write"]
        assert table.count("down3") == 2


def test_phase_with_the_name_of_its_operation_appears_once() -> None:
    page = build_page(number(0.5, "fs1", phase="read"), number(1.0, "fs2", phase="", op="write"))
    (table,) = section(page, "What changed where").parts
    assert sorted(re.findall(r'scope="col">([^<]+)<', table)) == ["read", "write"]


def test_side_differences_appear_in_a_table() -> None:
    unlike = replace(number(0.5), differs_in=(("cache", "cold", "warm"), ("node class", "", "fat"), ("epoch", "1", "")))
    (table,) = section(build_page(unlike, number(1.0)), "Not the same on both sides").parts
    where = "probe · p1 · read, fs1"
    assert cells(table) == [
        [where, "cache", "cold", "warm"],
        [where, "node class", "-", "fat"],
        [where, "epoch", "1", "-"],
    ]
    assert 'class="n"' not in table, "all of it is words"


def test_caveats_appear_per_side_and_are_counted_in_the_lead() -> None:
    caveats = (
        CaveatCount("before", "p1", "noisy_node", "others used it.", 2, 3),
        CaveatCount("after", "x", "y", "", 1, 1),
    )
    page = build_page(number(0.5), number(0.5, phase="p2"), caveat_counts=caveats)
    assert page.lead.endswith("1 of them is doubtful; see why.")
    (table,) = section(page, "Doubtful runs").parts
    assert cells(table) == [["before", "p1", "others used it (in 2 of 3 runs)"], ["after", "x", "y"]]
    assert 'class="n"' not in table
    two = build_page(number(0.5), number(0.5, op="write"), caveat_counts=caveats)
    assert two.lead.endswith("2 of them are doubtful; see why.")


def test_rate_by_unit_divides_by_units_of_its_file_system() -> None:
    units = {"fs1": 4.0, "fs2": 10.0}
    page = build_page(number(0.5), number(1.0, "fs2", file_system="lustre:fs2"), number(1.0, "c", file_system="c"),
                 units=units)  # fmt: skip
    part = section(page, "Rate by unit")
    assert part.paragraphs == ["The level of each side divided by its units: fs1 4, fs2 10."]
    (table_html,) = part.parts
    assert re.findall(r"[\d.]+ [MG]B/s", table_html) == ["500 MB/s", "250 MB/s", "200 MB/s", "200 MB/s"]
    assert not [
        section_found
        for section_found in build_page(number(1.0), units={"fs7": 2.0}).sections
        if section_found.title == "Rate by unit"
    ]


def test_differences_are_split_into_steady_and_varying() -> None:
    differences = [
        EnvironmentDifference("kernel", "5", "6"),
        EnvironmentDifference("tasks", "", "4"),
        EnvironmentDifference("load", "1", "", steady=False),
    ]
    steady, wavering = section(build_page(number(1.0), differences=differences), "What else was different").parts
    assert "The same within each side" in steady
    assert cells(steady) == [["kernel", "5", "6"], ["tasks", "-", "4"]]
    assert "Changed within a side too: explains little" in wavering
    assert cells(wavering) == [["load", "1", "-"]]
    assert 'class="n"' not in steady + wavering
    nothing = section(build_page(number(1.0)), "What else was different")
    assert (nothing.paragraphs, nothing.parts) == (["Nothing that the records say about machines and programs."], [])


def test_changes_group_by_plan_or_by_test_on_several_locations() -> None:
    one_place = str(
        section(build_page(number(0.5), number(1.0, op="write")), "Percentage against the baseline").parts[0]
    )
    assert "p1 · read" in one_place
    assert "p1 · write" in one_place
    assert "probe · p1" not in one_place
    places = str(section(build_page(number(0.5), number(1.0, "fs2")), "Percentage against the baseline").parts[0])
    assert places.count("probe · p1 · read") == 1
    assert places.index(">fs1<") < places.index(">fs2<")


def curves(
    differs: bool | None, shape: RateShape | None = None, late: StragglerAttribution | None = None
) -> ProfileComparison:
    area, limit = {True: (0.3, 0.1), False: (0.05, 0.1), None: (0.3, None)}[differs]
    flat = (np.ones(9),) * 3
    return ProfileComparison(flat, flat, BandDistance(area, limit), shape, 20.0, late, ("n3", "n4"))


STALL = RateShape("stall", 0.5, 0.6, 0.9)


@pytest.mark.parametrize(
    ("compared", "expected_phrase"),
    [
        (curves(None), "Eight runs before are needed to know which shapes are usual; here are 3."),
        (curves(True), "The shape changed: 3.0 times as far from the runs before as those are from each other."),
        (curves(False), "The shape is that of the runs before."),
        (curves(False, STALL), "The shape is that of the runs before."),
        (
            curves(True, STALL),
            "The shape changed: 3.0 times as far from the runs before as those are from each other."
            " It shows a stall of 2 s at 10 s, by 90 %.",
        ),
        (
            curves(None, STALL),
            "Eight runs before are needed to know which shapes are usual; here are 3."
            " It shows a stall of 2 s at 10 s, by 90 %.",
        ),
        (
            curves(False, late=StragglerAttribution(True, Stragglers((3, 4), 0.25, 0.5))),
            "The shape is that of the runs before. Without nodes n3, n4 the run would have been 25 % faster.",
        ),
    ],
)
def test_profile_text_names_new_shape_pattern_and_stragglers(compared: ProfileComparison, expected_phrase: str) -> None:
    assert _describe_profile_change(compared) == expected_phrase


FLAT = ProfileComparison((np.ones(9),), (np.full(9, 2.0),), BandDistance(0.05, 0.1), None, 20.0, None, ())


def test_eight_largest_changes_have_profile_charts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comparison_page, "compare_profiles", lambda *_: FLAT)
    small = [number(1 - 0.01 * index, f"small{index}") for index in range(1, 4)]
    changed = [number(0.4 + 0.05 * index, f"large{index}") for index in range(7)]
    charts = section(build_page(*small, *changed), "Rate over the time of the phase").parts
    assert [re.findall(r"(?:small|large)\d", str(chart))[0] for chart in charts] == [
        *(f"large{index}" for index in range(7)), "small3"
    ]  # fmt: skip
    assert all("probe · p1 · read, " in str(chart) and "The shape is that of the runs before." in str(chart)
               for chart in charts)  # fmt: skip
    monkeypatch.setattr(comparison_page, "compare_profiles", lambda *_: None)
    assert "Rate over the time of the phase" not in [
        section_found.title for section_found in build_page(*changed).sections
    ]


def runs_of(plans: dict[int, tuple[str, str]]) -> tuple[Summary, ...]:
    """Runs by day, each with its plan and file system."""
    runs_found = []
    for day, (plan, storage) in plans.items():
        (run,) = make_side("run", day).runs
        runs_found.append(
            SimpleNamespace(**{**vars(run), "plan": plan, "document": {"history": {"file_system": storage}}})
        )
    return cast(tuple[Summary, ...], tuple(runs_found))


def test_curves_and_nodes_are_of_the_runs_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves are of runs with the same plan and file system; with the same plan only if file systems are compared."""
    read: list[list[int]] = []

    class Noted:
        def __init__(self, run_summaries: Sequence[Summary]) -> None:
            self.days = [int(run.started[8:10]) for run in run_summaries]

        def list_phase_records(self, phase_id: str) -> list[int]:
            assert phase_id == "p1"
            return self.days

    def record_read_days(before: Noted, after: Noted, *phases: str) -> None:
        assert phases == ("p1", "p1")
        read.extend([before.days, after.days])

    nodes: list[list[int]] = []
    monkeypatch.setattr(comparison_page, "RunRecords", Noted)
    monkeypatch.setattr(comparison_page, "compare_profiles", record_read_days)
    monkeypatch.setattr(comparison_page, "collect_node_history", nodes.append)
    here, there = "lustre:fs1", "lustre:fs2"
    old = ComparedSide("old", runs_of({1: ("probe", here), 2: ("other", here), 3: ("probe", there)}))
    new = ComparedSide("new", runs_of({4: ("probe", there), 5: ("probe", here)}))
    build_comparison_page(Comparison(old, new, (number(0.5),), ()), (), {})
    assert (read, nodes) == ([[1], [5]], [[1, 3], [4, 5]])
    read.clear()
    unlike = replace(number(0.5), differs_in=(("file system", here, there),))
    build_comparison_page(Comparison(old, new, (unlike,), ()), (), {})
    assert read == [[1, 3], [4, 5]]


def test_node_heat_maps_show_the_number_that_changed_most(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []
    rates = NodeRateHistory(("n1", "n2"), ("r1", "r2", "r3"), np.array([[1.0, 1.0, 1.0], [0.5, 0.6, 0.7]]), ((1, 3),))

    def find_rates(phases: object) -> NodeRateHistory | None:
        requests.append(phases)
        return rates if len(requests) == 1 else replace(rates, runs=("r1", "r2"), shares=rates.shares[:, :2], slow=())

    heat_maps: list[HeatMap] = []

    def record_heat_map(heat_map: HeatMap) -> str:
        heat_maps.append(heat_map)
        return "drawn"

    monkeypatch.setattr(comparison_page, "collect_node_history", find_rates)
    monkeypatch.setattr(comparison_page, "render_heat_map", record_heat_map)
    part = section(build_page(number(0.3, phase="p3"), number(0.2, phase="p2"), number(1.05, phase="p1")), "Nodes")
    assert part.parts == ["drawn", "drawn"]
    assert part.paragraphs == ["One column a run, one row a node: its rate by that of the middle node of the same run."]
    before, after = heat_maps
    assert (before.title, after.title) == ("Before: probe · p2 · read", "After: probe · p2 · read")
    assert before.summary == "Slower than the middle node again and again: n2 (40 %, in 3 of 3 runs)."
    assert after.summary == "No node was slower than the others again and again."
    assert (before.columns, after.columns) == ([(0.0, "oldest run"), (0.9, "latest")], [])
    assert (before.rows, before.marked, after.marked) == (("n1", "n2"), [1], [])


def test_bars_have_verdict_color_and_optional_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bars: dict[str, ChangeRow] = {}

    def record_bars(rows: Sequence[ChangeRow], caption: str) -> str:
        bars.update({row.name: row for row in rows})
        return caption

    monkeypatch.setattr(comparison_page, "render_change_bars", record_bars)
    unknown = RateRatio(1.0, None, None, None, 1, 1, 0.95, "too few")
    page = build_page(
        number(0.5, "fs1"),
        number(1.5, "fs2"),
        replace(number(0.95, "fs3"), verdict="small change"),
        number(1.0, "fs4"),
        replace(number(1.0, "fs5"), verdict="too few runs", ratio=unknown),
    )
    assert [row.tone for row in bars.values()] == ["slower", "faster", "same", "same", "unknown"]
    assert (bars["fs1"].low, bars["fs1"].high) == pytest.approx((-0.525, -0.475))
    assert (bars["fs5"].low, bars["fs5"].high, bars["fs5"].comment) == (None, None, "too few")
    assert bars["fs1"].change == -0.5
    assert section(page, "Percentage against the baseline").parts == [page.lead], "the words of the drawing"


def test_scatter_has_a_bar_for_each_side_that_has_any() -> None:
    both = replace(
        number(1.0),
        scatter_before=CoefficientOfVariation(0.05, 0.03, 0.09, 5),
        scatter_after=CoefficientOfVariation(0.2, None, None, 2),
    )
    chart = str(section(build_page(both, number(1.0, "fs2")), "Scatter").parts[0])
    assert "5.0 % [3.0, 9.0]" in chart
    assert "20.0 %" in chart
    assert "fs2" not in chart
    assert "before" in chart
    assert "after" in chart


def test_scatter_and_unit_bars_have_sides_values_and_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def record_call(*arguments: object) -> str:
        calls.append(arguments)
        return "drawn"

    monkeypatch.setattr(comparison_page, "render_amount_bars", record_call)
    scattered = replace(
        number(0.5),
        scatter_before=CoefficientOfVariation(0.05, 0.03, 0.09, 5),
        scatter_after=CoefficientOfVariation(0.2, None, None, 2),
    )
    build_page(scattered, number(1.0, "fs2"), units={"fs1": 4.0})
    sides = [("before", "before"), ("after", "after")]
    rates = [
        AmountBar(5e8, None, None, "before", "500 MB/s"),
        AmountBar(2.5e8, None, None, "after", "250 MB/s"),
    ]
    scatter = [
        AmountBar(0.05, 0.03, 0.09, "before", "5.0 % [3.0, 9.0]"),
        AmountBar(0.2, None, None, "after", "20.0 %"),
    ]
    assert calls == [
        ([("probe · p1 · read, fs1", scatter)], "Coefficient of variation", sides),
        ([("probe · p1 · read, fs1", rates), ("probe · p1 · read, fs2", [replace(change_row) for change_row in
          (rates[0], AmountBar(5e8, None, None, "after", "500 MB/s"))])], "", sides),
    ]  # fmt: skip


def test_lead_reports_runs_on_both_sides() -> None:
    compared = Comparison(make_side("run", 1, 2), make_side("run", 2), (number(0.5),), ())
    assert build_comparison_page(compared, (), {}).lead == (
        "1 of 1 numbers changed by more than chance. 1 run on both sides: a run does not differ from itself."
    )
