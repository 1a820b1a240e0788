# SPDX-License-Identifier: Apache-2.0
"""Sentences on joint changes cover exactly their members; drops that are not over are named."""

from __future__ import annotations

import numpy as np

from sonde.stats.ratio import RateRatio
from sonde.stats.segments import Segment
from sonde.trends.budget import AlarmBudget, DetectorCalibration
from sonde.trends.changes import Change, JointChange, JointChangePart, group_changes
from sonde.trends.detectors import DetectorSettings
from sonde.trends.history import History
from sonde.trends.scope import JointChangeExplanation, Scope
from sonde.trends.survey import HistoryAnalysis, Survey
from sonde.trends.survey_text import describe_joint_change, format_joint_dates, summarize_survey

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


FS1_READ = history(experiment="io", operation="read", file_system="fs1")
FS1_WRITE = history(experiment="io", operation="write", file_system="fs1")
FS2_READ = history(experiment="io", operation="read", file_system="fs2")
FS3_READ = history(experiment="io", operation="read", file_system="fs3")


def test_joint_change_describes_only_the_series_of_its_scope() -> None:
    scope = Scope({"file_system": "fs1"}, 2, 0, {})
    part = JointChangePart(
        (change(0, 0.5), change(1, 0.6), change(2, 0.1)), JointChangeExplanation((scope,), 1, 7, 0, "storage", "clear")
    )
    survey = survey_histories(*map(analysis, (FS1_READ, FS1_WRITE, FS2_READ)))
    (sentence,) = describe_joint_change(survey, JointChange((part,)))
    assert sentence.startswith("fs1 fell by 40 to 50 % (2 histories; 7 unchanged")
    assert "1 other history fell by 90 % and has no common cause." in sentence


def test_joint_sentence_uses_all_only_for_every_surveyed_value() -> None:
    scope = Scope({"operation": "read"}, 2, 0, {"file_system": (2, 2)})
    part = JointChangePart(
        (change(0, 0.5), change(1, 0.5)), JointChangeExplanation((scope,), 0, 7, 1, "clients", "clear")
    )
    three = survey_histories(*map(analysis, (FS1_READ, FS2_READ, FS3_READ)))
    assert "on 2 of 3 file systems" in describe_joint_change(three, JointChange((part,)))[0]
    two = survey_histories(*map(analysis, (FS1_READ, FS2_READ, FS1_WRITE)))
    assert "on all 2 file systems" in describe_joint_change(two, JointChange((part,)))[0]


def test_summary_lists_series_that_did_not_recover() -> None:
    old = analysis(FS1_READ, change(0, 0.4, run_index=30, noticed=32))
    back = analysis(FS2_READ, change(1, 1.6, run_index=30, noticed=32))
    assert (old.is_newly_slower, old.is_still_slower, back.is_still_slower) == (False, True, False)
    summary = summarize_survey(survey_histories(old, back))
    assert summary.startswith(
        "None of 2 histories became slower within its last ten runs. 1 history did not recover from"
    )
    assert "fs1 −60 % since 2026-01-31" in summary
    assert "recover" not in summarize_survey(survey_histories(back))


def test_joint_change_over_days_names_first_and_last_day() -> None:
    pair = JointChangePart(
        (change(0, 0.5), change(1, 0.5, run_index=53)), JointChangeExplanation((), 2, 0, 0, "unknown", "clear")
    )
    assert format_joint_dates(JointChange((pair,))) == "2026-02-20 to 2026-02-23"
    alone = JointChangePart((change(0, 0.5),), JointChangeExplanation((), 1, 0, 0, "unknown", "clear"))
    assert format_joint_dates(JointChange((alone,))) == "2026-02-20 00:00"


def test_series_that_rose_are_not_joined_with_series_that_fell() -> None:
    opposite = [change(0, 0.67, since=0.7), change(1, 1.33, since=0.7)]
    (joint_change,) = group_changes([FS1_READ, FS2_READ], opposite)
    assert [[item.is_drop for item in part.changes] for part in joint_change.parts] == [[True], [False]]
