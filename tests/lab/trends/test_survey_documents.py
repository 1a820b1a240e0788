# SPDX-License-Identifier: Apache-2.0
"""A survey that is kept and read again is the same in all that is said of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sonde.stats.ratio import RateRatio
from sonde.stats.segments import Segment
from sonde.trends.budget import AlarmBudget, DetectorCalibration
from sonde.trends.changes import Change, JointChange, JointChangePart
from sonde.trends.detectors import DetectorSettings
from sonde.trends.history import History
from sonde.trends.result_cache import ResultCache
from sonde.trends.run_caveats import CaveatCount
from sonde.trends.scope import JointChangeExplanation, Scope
from sonde.trends.survey import MAX_RUNS_OF_NEW_CHANGE, HistoryAnalysis, Survey
from sonde.trends.survey_cache import (
    HistoryOutline,
    SurveyCache,
    hash_survey_code,
    make_histories_key,
    make_selection_key,
    make_survey_key,
)

SIZE = RateRatio(0.5, 0.45, 0.55, 0.001, 9, 9, 0.95)
CHANGES = tuple(
    Change(index, "collapse", 48.0, 50.0 + index, 52.0, 3, SIZE, replace(SIZE, value=0.6)) for index in range(2)
)
WHY = JointChangeExplanation((Scope({"system": "a"}, 2, 1, {"operation": (1, 2)}),), 1, 7, 3, "storage", "likely")
DOUBT = CaveatCount("", "read", "noisy_node", "others were there", 4, 10)


def analysis(index: int) -> HistoryAnalysis:
    times = np.arange(60.0) + index
    series = History(
        {"history": f"s{index}", "phase": "p"}, times, 1e9 + times, "op/s", tuple(f"r{n}" for n in range(60))
    )
    parts = (Segment(0, 50, 2e9), Segment(50, 60, 1e9))
    return HistoryAnalysis(series, parts, 1e9, 0.05, 0.2 if index else None, (CHANGES[index],), (DOUBT,) * index)


SURVEY = Survey(
    (analysis(0), analysis(1)),
    (JointChange((JointChangePart(CHANGES, WHY),)),),
    AlarmBudget(2.0, 300.0),
    DetectorCalibration(DetectorSettings(arl0=700.0), 0.2, 120, from_site_noise=True, meets_budget=False),
    5,
)


@pytest.fixture
def survey_cache(tmp_path: Path) -> SurveyCache:
    cache = SurveyCache(tmp_path / "kept")
    cache.store_survey("key", SURVEY)
    return cache


def test_cached_survey_round_trips_with_its_histories(survey_cache: SurveyCache) -> None:
    histories = [analysis.history for analysis in SURVEY.analyses]
    again = survey_cache.load_cached_survey("key", list(reversed(histories)))
    assert again is not None
    assert [analysis.history is ours for analysis, ours in zip(again.analyses, histories, strict=True)] == [True, True]
    assert again == SURVEY
    assert again.joint[0].parts[0].changes[1] is again.analyses[1].changes[0], "one change is one value"


def test_cached_survey_has_outlines_of_its_histories(survey_cache: SurveyCache) -> None:
    again = survey_cache.load_cached_survey("key")
    assert again is not None
    for analysis, before in zip(again.analyses, SURVEY.analyses, strict=True):
        assert isinstance(analysis.history, HistoryOutline)
        assert (len(analysis.history), analysis.history.unit, analysis.history.labels) == (
            60,
            "op/s",
            before.history.labels,
        )
        assert analysis.history.times.tolist() == before.history.times[-MAX_RUNS_OF_NEW_CHANGE - 1 :].tolist()
        assert replace(analysis, history=before.history) == before
        assert analysis.is_newly_slower == before.is_newly_slower
    assert (again.joint, again.budget, again.calibration, again.short) == (
        SURVEY.joint,
        SURVEY.budget,
        SURVEY.calibration,
        SURVEY.short,
    )


def test_other_key_or_histories_find_no_cached_survey(survey_cache: SurveyCache) -> None:
    assert survey_cache.load_cached_survey("other") is None
    assert survey_cache.load_cached_survey("key", [SURVEY.analyses[0].history]) is None


def test_survey_cache_without_folder_stores_nothing() -> None:
    nowhere = SurveyCache(None)
    nowhere.store_survey("key", SURVEY)
    assert nowhere.load_cached_survey("key") is None
    assert nowhere.load_results("key").build_document(is_finished=True) == SurveyCache(Path("/nowhere")).load_results(
        "key"
    ).build_document(is_finished=True)


def test_cache_keys_are_short_and_distinct() -> None:
    keys = [
        make_survey_key(["a", "b"], 1.0),
        make_survey_key(["ab"], 1.0),
        make_survey_key(["a", "b"], 2.0),
        make_survey_key(["a", "b"]),
    ]
    keys += [
        make_selection_key("delivered", 1.0),
        make_selection_key("index", 1.0),
        make_histories_key([]),
        make_histories_key([], "x"),
    ]
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {32}
    assert all(set(key) <= set("0123456789abcdef") for key in keys)
    assert len(hash_survey_code()) == 16
    assert make_survey_key(["a", "b"], 1.0) == keys[0]


def test_survey_cache_retains_forty_surveys(tmp_path: Path) -> None:
    memory = SurveyCache(tmp_path / "kept")
    for number in range(42):
        memory.store_survey(f"key{number}", SURVEY)
    assert len(list((tmp_path / "kept").iterdir())) == 40
    assert memory.load_cached_survey("key41") is not None


def test_cached_history_results_round_trip(tmp_path: Path) -> None:
    memory = SurveyCache(tmp_path / "kept")
    first = ResultCache()
    first.get_or_compute("a", lambda: 1, int, int)
    memory.store_results("q", first, is_finished=True)
    second = memory.load_results("q")
    assert second.build_document() == {}, "nothing was asked yet"
    assert second.build_document(is_finished=False) == {"a": 1}
    assert second.get_or_compute("a", lambda: pytest.fail("it is known"), int, int) == 1
    memory.store_results("q", ResultCache({"old": 2}), is_finished=False)
    assert memory.load_results("q").build_document(is_finished=False) == {"old": 2}
    (tmp_path / "kept" / "q.kept").write_bytes(b"0\n{}")
    assert memory.load_results("q").build_document(is_finished=False) == {}
    assert memory.load_cached_survey("q") is None


def test_cached_survey_is_a_line_below_its_checksum(tmp_path: Path) -> None:
    SurveyCache(tmp_path / "kept").store_survey("key", SURVEY)
    checksum, body = (tmp_path / "kept" / "key.kept").read_bytes().split(b"\n")
    assert checksum == hashlib.sha256(body).hexdigest().encode()
    assert set(json.loads(body)) == {
        "budget",
        "calibration",
        "changes",
        "joint",
        "short",
        "simulated",
        "analyses",
        "environment_events",
    }
