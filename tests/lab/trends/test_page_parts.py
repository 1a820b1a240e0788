# SPDX-License-Identifier: Apache-2.0
"""Sentences and counts of the pages of histories and comparisons, from surveys and comparisons that are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sonde.charts.history_chart import ChangeMark, LevelSegment
from sonde.model.history_key import HistoryKey
from sonde.stats.ratio import RateRatio
from sonde.stats.segments import Segment
from sonde.stats.spread import CoefficientOfVariation
from sonde.trends.budget import AlarmBudget, DetectorCalibration
from sonde.trends.changes import Change, JointChange, JointChangePart
from sonde.trends.comparison import ChangeVerdict, Comparison, NumberComparison
from sonde.trends.comparison_page import (
    _make_change_chart,
    _make_lead_sentence,
    _make_number_comment,
    _make_number_label,
    _make_scatter_chart,
)
from sonde.trends.detectors import DetectorSettings
from sonde.trends.event_marks import EventMarks
from sonde.trends.history import History
from sonde.trends.run_caveats import CaveatCount
from sonde.trends.scope import UNEXPLAINED, Certainty, JointChangeExplanation
from sonde.trends.sides import ComparedSide
from sonde.trends.survey import HistoryAnalysis, Survey
from sonde.trends.survey_page import _list_joint_members, build_history_curve, build_survey_page, describe_analysis
from sonde.trends.survey_text import _describe_certainty, summarize_survey

NO_EVENTS = EventMarks((), 0)

DAY = 86400.0
START = 1767225600.0  # 2026-01-01


def analysis(number: int, *, first_day: int = 0, fell: bool = False) -> HistoryAnalysis:
    """A history of 60 days; one that fell did so on its day 50."""
    times = START + DAY * (first_day + np.arange(60.0))
    size = RateRatio(0.5, 0.45, 0.55, 0.001, 9, 9, 0.95)
    change = Change(number, "collapse", times[49], times[50], times[52], 3, size, size)
    values = np.full(60, 2e9)
    return HistoryAnalysis(
        History({"phase": f"p{number:02}"}, times, values), (Segment(0, 60, 2e9),), 2e9, 0.05, 0.2, (change,) * fell
    )


def survey_histories(*analyses: HistoryAnalysis) -> Survey:
    return Survey(analyses, (), AlarmBudget(1.0, 365.0), DetectorCalibration(DetectorSettings(), 0.2, 120, True), 0)


def test_survey_page_spans_first_to_last_run_of_all_histories() -> None:
    study = build_survey_page(survey_histories(analysis(0, first_day=3), analysis(1)), "rates")
    facts = dict(study.facts)
    assert facts["Time"] == "2026-01-01 to 2026-03-04"
    assert facts["Histories"] == "2, 120 probes (rates)"
    assert study.alarms == []


def test_survey_page_without_histories_shows_no_empty_parts() -> None:
    study = build_survey_page(survey_histories(), "rates")
    assert study.facts == []
    assert [section.title for section in study.sections] == ["Joint changes"]


@pytest.mark.parametrize(
    ("history_count", "text_part"), [(60, []), (63, ["3 more histories without a change are in the table below."])]
)
def test_chart_limit_of_60_omits_histories_without_change(history_count: int, text_part: list[str]) -> None:
    study = build_survey_page(
        survey_histories(*(analysis(index, fell=index == history_count - 1) for index in range(history_count))), "rates"
    )
    pictures = next(section for section in study.sections if section.title == "Histories")
    assert pictures.paragraphs == text_part
    assert len(pictures.parts) == 1 + 60  # the legend first
    assert f"p{history_count - 1:02}" in pictures.parts[1], "what fell comes first"
    assert len(study.alarms) == 1


def test_survey_page_without_changes_states_if_any_was_watched() -> None:
    messages = {
        count: next(
            section.paragraphs
            for section in build_survey_page(survey_histories(*map(analysis, range(count))), "rates").sections
            if section.title == "Joint changes"
        )
        for count in (0, 1)
    }
    assert messages == {0: ["No history is long enough to be watched."], 1: ["No change was noticed."]}


def test_spread_charts_are_ordered_by_slower_changed_noisy() -> None:
    quiet, noisy = replace(analysis(0), noise=0.01), replace(analysis(1), noise=0.3)
    fell = replace(analysis(2, fell=True), noise=0.02)
    study = build_survey_page(survey_histories(quiet, noisy, fell), "rates")
    charts = next(section for section in study.sections if section.title == "Spread by date").parts
    assert [next(name for name in ("p00", "p01", "p02") if name in str(chart)) for chart in charts] == [
        "p02",
        "p01",
        "p00",
    ]


KEY = HistoryKey("a", "fs1", "hash", "", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")


def number(verdict: ChangeVerdict, value: float = 1.0, **members: object) -> NumberComparison:
    few = verdict == "too few runs"
    size = RateRatio(value, None, None, None, 1, 1, 0.95, ("one run is too"
                                                          " few")) if few else RateRatio(value, 0.9 * value,
                 1.1 * value, 0.001, 9, 9, 0.95)  # fmt: skip
    comparison_found = NumberComparison(
        KEY, "probe", (2e9,), (2e9 * value,), size, None, verdict, None, (), "fs1", None, None
    )
    return replace(comparison_found, **members)  # type: ignore[arg-type]


def comparison(*numbers: NumberComparison) -> Comparison:
    return Comparison(ComparedSide("old", ()), ComparedSide("new", ()), numbers, ())


@pytest.mark.parametrize(
    ("verdicts", "expected_sentence"),
    [
        (["slower", "faster", "no change seen"], "2 of 3 numbers changed by more than chance; 1 did not."),
        (["slower"], "1 of 1 numbers changed by more than chance."),
        (
            ["slower", "no change seen", "too few runs"],
            "1 of 3 numbers changed by more than chance; 1 did not. 1 have too few runs.",
        ),
        (["too few runs"] * 2, "No number has enough runs on both sides for a verdict."),
        (["no change seen", "too few runs"], "No number changed by more than chance. 1 have too few runs."),
        (["no change seen"], "No number changed by more than chance."),
    ],
)
def test_first_sentence_counts_changed_and_undecided_numbers(
    verdicts: list[ChangeVerdict], expected_sentence: str
) -> None:
    assert _make_lead_sentence(comparison(*map(number, verdicts))) == expected_sentence


def test_lead_counts_numbers_with_different_conditions() -> None:
    unlike = number("slower", differs_in=(("cache", "cold", "warm"),))
    assert " 1 of them did not measure the same on both sides; see what differed." in _make_lead_sentence(
        comparison(unlike)
    )


def test_number_comment_has_rates_or_the_reason_for_no_verdict() -> None:
    assert _make_number_comment(number("too few runs")) == "one run is too few"
    assert _make_number_comment(number("slower", visible=0.25)) == "2.00 GB/s → 2.00 GB/s"
    assert (
        _make_number_comment(number("no change seen", visible=0.25))
        == "2.00 GB/s → 2.00 GB/s; smallest detectable drop: 25 %"
    )
    assert _make_number_comment(number("no change seen")) == "2.00 GB/s → 2.00 GB/s"


def test_scatter_chart_appears_only_if_scatter_exists() -> None:
    assert _make_scatter_chart(comparison(number("slower"))) == []
    scattered = number("slower", scatter_before=CoefficientOfVariation(0.05, 0.03, 0.09, 5))
    (section,) = _make_scatter_chart(comparison(scattered))
    (chart,) = section.parts
    assert "5.0 % [3.0, 9.0]" in chart
    assert "before" in chart


def test_change_chart_shows_the_interval() -> None:
    (phrase,) = _make_change_chart(comparison(number("slower", 0.5))).parts
    assert "−50 % [−55, −45]" in phrase


def test_number_label_has_plan_and_informative_phase() -> None:
    assert _make_number_label(number("slower")) == "probe · p1 · read"
    for phase in ("read", ""):
        assert _make_number_label(number("slower", key=replace(KEY, phase=phase))) == "probe · read"
    assert _make_number_label(number("slower", plan="")) == "hash · p1 · read"


@pytest.mark.parametrize(
    ("sure", "survey"),
    [
        ("clear", "clear"),
        ("likely", "likely, not certain"),
        ("one of several explanations", "other explanations fit as well"),
    ],
)
def test_how_sure_an_explanation_is(sure: Certainty, survey: str) -> None:
    assert _describe_certainty(JointChangeExplanation((), 0, 0, 0, "storage", sure)) == survey


def test_a_page_of_histories_leads_with_its_verdict() -> None:
    quiet, fell = survey_histories(analysis(0)), survey_histories(analysis(0), analysis(1, fell=True))
    for analysis_shown in (quiet, fell):
        study = build_survey_page(analysis_shown, "rates")
        assert (study.title, study.lead) == ("Histories", summarize_survey(analysis_shown))
        assert dict(study.facts)["False alarms"].startswith("0.73 a year and history expected")
        assert [section.title for section in study.sections] == [
            "Joint changes", "Histories", "Spread by date", "All histories"
        ]  # fmt: skip
    assert build_survey_page(quiet, "rates").alarms == []
    assert build_survey_page(fell, "rates").alarms == [summarize_survey(fell)]


def test_history_chart_has_runs_levels_bands_and_changes() -> None:
    section_shown = analysis(0, fell=True)
    values = np.concatenate([np.arange(100.0, 151.0), np.arange(1.0, 10.0)])
    series = History(section_shown.history.labels, section_shown.history.times, values, "op/s")
    rose = replace(section_shown.changes[0], first_after=9.0, size=replace(section_shown.changes[0].size, value=2.0))
    parts = (Segment(0, 51, 125.0), Segment(51, 60, 5.0))
    section_shown = replace(section_shown, history=series, segments=parts, changes=(rose, section_shown.changes[0]))
    index = build_history_curve(section_shown, "p00", [], NO_EVENTS)
    assert (index.title, index.unit) == ("p00", "op/s")
    assert (index.times, index.values) == (series.times.tolist(), values.tolist())
    times = series.times
    assert index.segments == [
        LevelSegment(times[0], times[50], 125.0, 105.0, 145.0), LevelSegment(times[51], times[59], 5.0, 1.8, 8.2)
    ]  # fmt: skip
    assert index.marks == [
        ChangeMark(9.0, "+100 %", True, False), ChangeMark(times[50], "−50 %", True, True)
    ]  # fmt: skip
    assert build_history_curve(analysis(1), "", [], NO_EVENTS).unit == "B/s"


def test_joint_change_of_other_histories_is_marked() -> None:
    moved = [analysis(index, fell=True) for index in range(3)]
    joint = JointChange((JointChangePart(tuple(member.changes[0] for member in moved), UNEXPLAINED),))
    survey = replace(survey_histories(*moved, analysis(3)), joint=(joint,))
    other = survey.analyses[3]
    elsewhere = survey.find_changes_elsewhere(other)
    assert build_history_curve(other, "", elsewhere, NO_EVENTS).marks == [
        ChangeMark(joint.begin_time, "", is_own=False)
    ]
    assert survey.find_changes_elsewhere(moved[0]) == []
    assert survey.count_histories_changed_together(moved[0].changes[0]) == 2


def test_caveats_are_at_the_chart_and_in_the_table() -> None:
    caveats = (CaveatCount("", "p", "x", "others used it.", 4, 10), CaveatCount("", "p", "y", "", 1, 9))
    text = describe_analysis(replace(analysis(0), caveats=caveats))
    assert text == (
        "2.00 GB/s in the last three runs; noise 5.0 %. No change; smallest detectable drop: 20 %."
        " Doubtful in 4 of the last 10 runs: others used it. Doubtful in 1 of the last 9 runs: y."
    )
    table = build_survey_page(survey_histories(replace(analysis(0), caveats=caveats), analysis(1)), "rates").sections[
        -1
    ]
    assert table.paragraphs == [
        "Detectable: the smallest drop that ten runs show with a probability of 80 %.",
        "Doubtful: how many of its last runs have the caveat that is printed with its chart.",
    ]
    assert ">4 of 10<" in str(table.parts[0])
    quiet = build_survey_page(survey_histories(analysis(0)), "rates").sections[-1]
    assert quiet.paragraphs == ["Detectable: the smallest drop that ten runs show with a probability of 80 %."]
    assert "Doubtful" not in str(quiet.parts[0])


@pytest.mark.parametrize(
    ("moved", "more"), [(8, ""), (9, "; and 1 more"), (11, "; and 3 more")]
)  # fmt: skip
def test_joint_change_lists_eight_series_and_a_count(moved: int, more: str) -> None:
    few = [analysis(index, fell=True) for index in range(moved)]
    joint = JointChange((JointChangePart(tuple(member.changes[0] for member in few), UNEXPLAINED),))
    names = "; ".join(f"p{index:02} −50 % since 2026-02-20" for index in range(8))
    assert _list_joint_members(survey_histories(*few), joint) == names + more


@pytest.mark.parametrize(("count", "more"), [(12, []), (15, ["3 more histories are not drawn."])])
def test_spread_chart_is_limited_to_twelve_series(count: int, more: list[str]) -> None:
    page = build_survey_page(survey_histories(*map(analysis, range(count))), "rates")
    spread = next(section for section in page.sections if section.title == "Spread by date")
    assert list(spread.paragraphs)[1:] == more
    assert spread.paragraphs[0].startswith("Two shapes one above the other are two kinds of days")
    assert len(spread.parts) == 12


def test_histories_with_more_changes_come_first() -> None:
    """None of them is slower now: the changes are old."""
    fell = analysis(1, fell=True).changes[0]
    old = replace(fell, noticed=START, since=replace(fell.since, value=1.0))
    few = [replace(analysis(index), changes=(old,) * count) for index, count in enumerate((0, 1, 2))]
    page = build_survey_page(survey_histories(*few), "rates")
    for title in ("Histories", "Spread by date"):
        parts = [str(part) for section in page.sections if section.title == title for part in section.parts]
        names = [name for part in parts for name in ("p00", "p01", "p02") if name in part]
        assert names == ["p02", "p01", "p00"]
