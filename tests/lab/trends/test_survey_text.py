# SPDX-License-Identifier: Apache-2.0
"""Histories, changes and comparisons in words, each sentence of numbers that are given."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sonde.model.history_key import HistoryKey
from sonde.stats.ratio import RateRatio
from sonde.stats.segments import Segment
from sonde.stats.shapes import RateShape
from sonde.trends.budget import AlarmBudget, DetectorCalibration
from sonde.trends.changes import Change, JointChange, JointChangePart
from sonde.trends.comparison_text import (
    format_change_interval,
    format_change_percent,
    format_history_rate,
    format_number_name,
    list_common_members,
)
from sonde.trends.detectors import DetectorSettings
from sonde.trends.history import History, select_distinguishing_labels
from sonde.trends.profile_comparison import describe_rate_shape
from sonde.trends.run_caveats import CaveatCount
from sonde.trends.scope import Cause, JointChangeExplanation, Scope
from sonde.trends.survey import HistoryAnalysis, Survey
from sonde.trends.survey_page import build_survey_page
from sonde.trends.survey_text import (
    describe_alarm_budget,
    describe_caveats,
    describe_joint_change,
    format_caveat_share,
    format_change,
    make_history_name,
    summarize_survey,
)

DAY = 86400.0
START = 1767225600.0  # 2026-01-01


def size(value: float) -> RateRatio:
    return RateRatio(value, value * 0.9, value * 1.1, 0.001, 9, 9, 0.95)


def change(series: int, value: float, *, since: float | None = None, run_index: int = 50, noticed: int = 52) -> Change:
    before, first, noticed_time = (START + DAY * day for day in (run_index - 1, run_index, noticed))
    later = size(value if since is None else since)
    return Change(series, "collapse", before, first, noticed_time, noticed - run_index + 1, size(value), later)


def history(**labels: str) -> History:
    return History(labels, START + DAY * np.arange(60.0), np.full(60, 2e9))


def analysis(examined: History, *own_changes: Change, visible: float | None = 0.2) -> HistoryAnalysis:
    segments = (Segment(0, 50, 2e9), Segment(50, 60, 1e9)) if own_changes else (Segment(0, 60, 2e9),)
    return HistoryAnalysis(examined, segments, 1e9, 0.05, visible, own_changes)


def survey_histories(*analyses: HistoryAnalysis, joint_change: tuple[JointChange, ...] = (), short: int = 0) -> Survey:
    calibration_made = DetectorCalibration(DetectorSettings(), 0.2, 120, True)
    return Survey(analyses, joint_change, AlarmBudget(1.0, 365.0), calibration_made, short)


READ = history(experiment="io", phase="read", operation="read", system="a", file_system="fs1")
WRITE = history(experiment="io", phase="write", operation="write", system="a", file_system="fs2")


def make_explanation(
    cause: Cause = "storage", spared: int = 0, uncovered: int = 0, unjudged: int = 0
) -> JointChangeExplanation:
    scope = Scope({"operation": "read", "made_with": "x"}, 2, spared, {"file_system": (2, 3), "system": (2, 2)})
    return JointChangeExplanation((scope,), uncovered, 7, unjudged, cause, "likely")


@pytest.mark.parametrize(
    ("share", "expected_text"),
    [(-0.714, "−71 %"), (0.042, "+4.2 %"), (2.1, "+210 %"), (-0.0996, "−10 %"), (0.0994, "+9.9 %")],
)
def test_change_is_formatted_in_percent(share: float, expected_text: str) -> None:
    assert format_change_percent(share) == expected_text


def test_change_text_has_an_interval_if_available() -> None:
    assert format_change_interval(RateRatio(0.29, 0.24, 0.352, 0.01, 9, 9, 0.95)) == "−71 % [−76, −65]"
    assert format_change_interval(RateRatio(0.29, None, None, None, 2, 2, 0.95, "few")) == "−71 %"


def test_a_value_is_in_the_unit_of_its_series() -> None:
    assert format_history_rate(2e9, "bytes_per_s") == "2.00 GB/s"
    assert "op/s" in format_history_rate(2000.0, "ops_per_s") == format_history_rate(2000.0, "op/s")


def test_common_labels_are_separated_from_distinguishing_labels() -> None:
    first_key = HistoryKey("a", "fs1", "hash", "24 cpus", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")
    other = HistoryKey("a", "fs2", "hash", "", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")
    assert list_common_members([first_key, other]) == [("system", "a")]
    assert list_common_members([first_key]) == [("system", "a"), ("file system", "fs1"), ("node class", "24 cpus")]
    assert format_number_name(first_key, "probe", [first_key, other]) == "probe · p1 · fs1"
    assert format_number_name(first_key, "", [first_key]) == "hash · p1"


@pytest.mark.parametrize(
    ("shape", "expected_phrase"),
    [
        (RateShape("periodic dips", 0, 1, 0.6, 0.042, 9), "periodic dips: 9, every 4.2 s, by 60 %"),
        (RateShape("stall", 0.5, 0.62, 0.9), "a stall of 12 s at 50 s, by 90 %"),
        (RateShape("slow start", 0.0, 0.2, 0.8), "a slow start of 20 s, 80 % lower at first"),
        (RateShape("steady decline", 0.0, 1.0, 0.4), "a steady decline by 40 %"),
        (RateShape("cliff", 0.3, 1.0, 0.5), "a cliff at 30 s, by 50 %"),
    ],
)
def test_rate_shape_is_described_in_a_phrase(shape: RateShape, expected_phrase: str) -> None:
    assert describe_rate_shape(shape, 100.0) == expected_phrase


def test_history_name_contains_distinguishing_labels() -> None:
    assert make_history_name(READ, select_distinguishing_labels([READ, WRITE])) == "io · read · fs1"
    assert make_history_name(READ, select_distinguishing_labels([READ])) == "io · read"
    for label in ("system", "file_system", "cache", "node_class", "epoch"):
        ours, other_history = history(phase="p", **{label: "x"}), history(phase="p", **{label: "y"})
        assert make_history_name(ours, select_distinguishing_labels([ours, other_history])) == "p · x"


def test_summary_counts_slower_and_undecidable_histories() -> None:
    fell = analysis(READ, change(0, 0.4))
    assert summarize_survey(survey_histories(fell, analysis(WRITE), short=2)) == (
        "Slower now: io · read · fs1 −60 % since 2026-02-20. 1 other history did not become slower."
        " 2 more histories with fewer than 5 runs cannot be judged."
    )
    assert summarize_survey(survey_histories(analysis(READ), analysis(WRITE))) == (
        "None of 2 histories became slower within its last ten runs."
    )
    assert summarize_survey(
        survey_histories(analysis(READ, visible=None), analysis(WRITE), analysis(history(phase="p")))
    ) == (
        "None of 3 histories became slower within its last ten runs."
        " Of 1 it is not known what drop would show: too few runs."
    )
    for short, sentence in (
        (0, "Nothing can be said: there is no history of measured runs yet."),
        (1, "Nothing can be said: the only history has fewer than 5 runs."),
        (20, "Nothing can be said: all 20 histories have fewer than 5 runs."),
    ):
        assert summarize_survey(survey_histories(short=short)) == sentence
    analyses = [analysis(history(phase=f"p{index}"), change(index, 0.5)) for index in range(8)]
    assert "p5 −50 % since 2026-02-20; and 2 more. 0 other histories" in summarize_survey(survey_histories(*analyses))
    assert "p5 −50 % since 2026-02-20. 0 other histories" in summarize_survey(survey_histories(*analyses[:6]))


def test_newly_slower_means_a_recent_lasting_drop() -> None:
    assert analysis(READ, change(0, 0.4)).is_newly_slower
    assert analysis(READ, change(0, 0.4, run_index=47, noticed=50)).is_newly_slower  # nine runs ago
    assert not analysis(READ, change(0, 0.4, run_index=47, noticed=49)).is_newly_slower
    assert not analysis(READ, change(0, 1.5)).is_newly_slower
    assert not analysis(READ, change(0, 0.4, since=0.9)).is_newly_slower
    assert not analysis(READ).is_newly_slower


def test_change_is_temporary_when_half_of_it_has_recovered() -> None:
    assert not change(0, 0.25, since=0.5).is_temporary
    assert change(0, 0.25, since=0.51).is_temporary
    assert format_change(change(0, 0.25, since=0.9)) == "−75 % (temporary)"


def joint(*sizes: float, of: JointChangeExplanation, since: float | None = None) -> JointChange:
    return JointChange(
        (JointChangePart(tuple(change(index, size, since=since) for index, size in enumerate(sizes)), of),)
    )


def test_joint_change_text_has_sizes_scope_and_unchanged_counts() -> None:
    (lines,) = describe_joint_change(
        survey_histories(analysis(READ), analysis(WRITE)), joint(0.4, 0.3, of=make_explanation(unjudged=3))
    )
    assert lines == (
        "read made with x on 2 of 3 file systems on all 2 systems fell by 60 to 70 %"
        " (2 histories; 7 unchanged, or changed differently, 3 cannot be judged)."
        " It points to that storage: its servers, disks, network or filling (likely, not certain)."
    )
    (lines,) = describe_joint_change(
        survey_histories(analysis(READ), analysis(WRITE)), joint(1.4, 1.4, of=make_explanation(spared=2, uncovered=1))
    )
    assert "rose by 40 % (2 histories; 7 unchanged, or changed differently). 2 other histories with the same" in lines
    assert "with the same labels did not change." in lines
    assert "1 history of these changes have no common cause. It points" in lines
    (alone,) = describe_joint_change(
        survey_histories(analysis(READ), analysis(WRITE)), joint(0.4, of=make_explanation())
    )
    assert alone == "io · read · fs1 fell by 60 %."


def test_joint_change_text_counts_recovered_series() -> None:
    joint_change = joint(0.4, 0.4, of=make_explanation(), since=1.0)
    (lines,) = describe_joint_change(survey_histories(analysis(READ), analysis(WRITE)), joint_change)
    assert "fell by 60 %, and came back (2 histories" in lines
    mixed = JointChange((JointChangePart((change(0, 0.4, since=1.0), change(1, 0.4)), make_explanation()),))
    (lines,) = describe_joint_change(survey_histories(analysis(READ), analysis(WRITE)), mixed)
    assert "fell by 60 %, 1 of them came back" in lines


@pytest.mark.parametrize(
    ("cause", "expected_phrase"),
    [
        ("clients", "It points to what all file systems share"),
        ("machine", "It points to that machine:"),
        ("machine or storage", "It points to that machine or its storage"),
        ("test", "It points to this kind of access;"),
        ("everything", "It points to what all of it shares"),
        ("unknown", "It does not point to one place"),
    ],
)
def test_cause_text_points_to_the_component_to_inspect(cause: Cause, expected_phrase: str) -> None:
    (line,) = describe_joint_change(
        survey_histories(analysis(READ), analysis(WRITE)), joint(0.4, 0.4, of=make_explanation(cause))
    )
    assert expected_phrase in line


def test_alarm_budget_text_has_calibrated_figures() -> None:
    survey = survey_histories(analysis(READ))
    assert describe_alarm_budget(survey) == (
        "False alarms: 0.73 a year and history expected (budget 1 a year and history), learned from 120 runs."
    )


def texts(survey: Survey) -> list[str]:
    """The page, section by section."""
    study = build_survey_page(survey, "rates")
    return ["".join(map(str, section.parts)) for section in study.sections]


def test_latest_joint_change_is_first_and_old_changes_separate() -> None:
    def joint_on(day: int) -> JointChange:
        return JointChange((JointChangePart((change(0, 0.4, run_index=day, noticed=day + 2),), make_explanation()),))

    table = texts(survey_histories(analysis(READ), joint_change=tuple(joint_on(day) for day in range(10, 24))))[0]
    days = [table.index(f"2026-01-{1 + day}") for day in range(10, 24)]
    assert days == sorted(days, reverse=True)
    older = table.index("Older joint changes")
    assert sum(position > older for position in days) == 2
    assert "3 runs" in table


def test_survey_page_shows_the_state_of_each_series() -> None:
    fell = analysis(READ, change(0, 0.4))
    pages = texts(survey_histories(fell, analysis(WRITE, visible=None)))
    table = pages[-1]
    for phrase in ("60", "1.00 GB/s", "5.0 %", "20 %", "2026-02-20", "−60 %", ">-<"):
        assert phrase in table, phrase
    pictures = pages[1]
    assert (
        "1.00 GB/s in the last three runs; noise 5.0 %. Latest change 2026-02-20: −60 %, noticed with run 3."
        in pictures
    )
    assert "No change; too few runs to say what would show." in pictures
    quiet = texts(survey_histories(analysis(WRITE)))[1]
    assert "No change; smallest detectable drop: 20 %." in quiet


@pytest.mark.parametrize(("moved", "marked"), [(2, False), (3, True)])
def test_joint_change_of_three_is_marked_in_other_charts(moved: int, marked: bool) -> None:
    analyses = [analysis(history(phase=f"p{index}"), change(index, 0.5)) for index in range(moved)]
    other = analysis(history(phase="other"))
    together = JointChange(
        (JointChangePart(tuple(analysis_made.changes[0] for analysis_made in analyses), make_explanation()),)
    )
    pictures = texts(survey_histories(*analyses, other, joint_change=(together,)))[1]
    assert ('class="elsewhere' in pictures) == marked


def test_scope_labels_have_a_fixed_order_with_unknown_labels_last() -> None:
    where = {"cache": "cold", "file_system": "fs1", "node_class": "fat", "system": "a", "operation": "read",
             "phase": "p", "experiment": "io", "made_with": ""}  # fmt: skip
    spans = {"cache": (1, 2), "node_class": (2, 2), "file_system": (1, 2), "system": (1, 3)}
    part = JointChangePart(
        (change(0, 0.4), change(1, 0.4)),
        JointChangeExplanation((Scope(where, 2, 0, spans),), 0, 7, 0, "storage", "clear"),
    )
    (lines,) = describe_joint_change(survey_histories(analysis(READ), analysis(WRITE)), JointChange((part,)))
    assert lines.startswith(
        "io p read cold a fat fs1 made with none on all 2 kinds of node on 1 of 2 file systems on 1 of 3 systems fell"
    )


def test_alarm_budget_text_states_its_basis() -> None:
    def budget_text(calibration: DetectorCalibration, budget: AlarmBudget) -> str:
        return describe_alarm_budget(Survey((), (), budget, calibration, 0))

    assert budget_text(
        DetectorCalibration(DetectorSettings(), None, 0, from_site_noise=False), AlarmBudget(0.5, 100)
    ) == (
        "False alarms: settings for independent runs, until a history has 60 runs; the budget is 0.5 a"
        " year and history."
    )
    assert budget_text(
        DetectorCalibration(DetectorSettings(), 0.5, 1, from_site_noise=True, meets_budget=False),
        AlarmBudget(2.0, 1000.0),
    ) == (
        "False alarms: 5 a year and history expected (budget 2 a year and history), learned from 1 run: the noise of"
        " this site breaks the budget; repeat each probe."
    )
    assert "0 a year and history expected" in budget_text(
        DetectorCalibration(DetectorSettings(), None, 9, from_site_noise=True), AlarmBudget()
    )


def caveat(id: str, text: str, runs: int, of: int) -> CaveatCount:
    return CaveatCount("", "read", id, text, runs, of)


def test_caveats_of_slower_histories_take_precedence() -> None:
    quiet = [analysis(history(phase=f"p{index}")) for index in range(3)]
    fell = analysis(history(phase="fell"), change(0, 0.4))
    busy, busier = caveat("x", "others used it.", 2, 10), caveat("x", "others used it much.", 3, 10)
    analysis_made = replace(quiet[0], caveats=(busy,))
    assert describe_caveats(survey_histories(analysis_made, *quiet[1:])) == (
        " Doubtful, 1 of 3 histories: others used it (in 2 of its last 10 runs)."
    )
    two = replace(quiet[1], caveats=(busier, caveat("y", "", 1, 4)))
    assert describe_caveats(survey_histories(analysis_made, two, quiet[2])) == (
        " Doubtful, 2 of 3 histories: others used it much (in up to 3 of their last 10 runs)."
        " Doubtful, 1 of 3 histories: y (in 1 of its last 4 runs)."
    )
    assert describe_caveats(survey_histories(replace(fell, caveats=(busy,)), two)) == (
        " Doubtful, 1 of 1 slower history: others used it (in 2 of its last 10 runs)."
        " Doubtful, 1 of 2 histories: y (in 1 of its last 4 runs)."
    )
    often = replace(quiet[2], caveats=(caveat("x", "others used it always", 3, 4),))
    assert describe_caveats(survey_histories(two, often)).startswith(
        " Doubtful, 2 of 2 histories: others used it always (in up to 3 of their last 4 runs)."
    )
    assert describe_caveats(survey_histories(fell, *quiet)) == ""
    assert summarize_survey(survey_histories(analysis_made)).endswith(
        "ten runs. Doubtful, 1 of 1 history: others used it (in 2 of its last 10 runs)."
    )


def test_caveat_share_is_that_of_the_most_frequent_caveat() -> None:
    assert format_caveat_share(analysis(READ)) == ""
    assert (
        format_caveat_share(replace(analysis(READ), caveats=(caveat("x", "", 4, 10), caveat("y", "", 3, 6))))
        == "3 of 6"
    )


def test_joint_change_without_conditions_is_about_all_series() -> None:
    every = JointChangeExplanation((Scope({}, 2, 0, {}),), 0, 1, 0, "everything", "clear")
    (line,) = describe_joint_change(survey_histories(analysis(READ), analysis(WRITE)), joint(0.4, 0.4, of=every))
    assert line == (
        "Everything that is measured fell by 60 % (2 histories; 1 unchanged, or changed differently). It points to what"
        " all of it shares: network, power, clocks, or how it is measured (clear)."
    )
    pair = JointChangeExplanation(
        (Scope({"phase": "x"}, 1, 1, {}), Scope({"phase": "y"}, 1, 1, {})), 0, 1, 0, "unknown", "clear"
    )
    (line,) = describe_joint_change(survey_histories(analysis(READ), analysis(WRITE)), joint(0.4, 0.4, of=pair))
    assert line.startswith(
        "x and y fell by 60 % (2 histories; 1 unchanged, or changed differently). 2 other histories with the same"
    )


def test_series_without_distinguishing_labels_has_a_fallback_name() -> None:
    assert make_history_name(history(made_with="x"), ()) == "x"
    assert make_history_name(history(experiment="io", phase="io", operation="read"), ("phase",)) == "io · read"


def test_survey_table_columns_match_their_headings() -> None:
    fell, quiet = analysis(READ, change(0, 0.4)), analysis(WRITE, visible=None)
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in texts(survey_histories(fell, quiet))[-1].split("<tr>")]
    assert [row for row in rows if row] == [
        ["io · read · fs1", "60", "1.00 GB/s", "1.00 GB/s", "5.0 %", "20 %", "2026-02-20", "−60 %"],
        ["io · write · fs2", "60", "2.00 GB/s", "1.00 GB/s", "5.0 %", "-", "", ""],
    ]
    joint_table = texts(survey_histories(fell, quiet, joint_change=(joint(0.4, of=make_explanation()),)))[0]
    assert 'class="n"' not in joint_table, "all of it is words"
    (row,) = [re.findall(r"<td[^>]*>([^<]*)</td>", row_html) for row_html in joint_table.split("<tr>")[2:]]
    assert row == [
        "2026-02-20 00:00",
        "3 runs",
        "io · read · fs1 fell by 60 %.",
        "io · read · fs1 −60 % since 2026-02-20",
    ]
