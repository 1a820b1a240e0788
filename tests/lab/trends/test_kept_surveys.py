# SPDX-License-Identifier: Apache-2.0
"""A survey that is kept and read again is the same in all that is said of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sonde.stats.ratio import Ratio
from sonde.stats.segments import Segment
from sonde.trends.budget import Budget, Calibration
from sonde.trends.changes import Change, JointChange, Part
from sonde.trends.doubted import Doubted
from sonde.trends.known import Known
from sonde.trends.lanes import Settings
from sonde.trends.remembered import Memory, Remembered, of_histories, of_index, of_question, rules
from sonde.trends.scope import Explanation, Scope
from sonde.trends.series import Series
from sonde.trends.survey import FRESH, Standing, Survey

SIZE = Ratio(0.5, 0.45, 0.55, 0.001, 9, 9, 0.95)
CHANGES = tuple(Change(at, "gate", 48.0, 50.0 + at, 52.0, 3, SIZE, replace(SIZE, value=0.6)) for at in range(2))
WHY = Explanation((Scope({"system": "a"}, 2, 1, {"operation": (1, 2)}),), 1, 7, 3, "storage", "likely")
DOUBT = Doubted("", "read", "noisy_node", "others were there", 4, 10)


def standing(at: int) -> Standing:
    times = np.arange(60.0) + at
    series = Series({"series": f"s{at}", "phase": "p"}, times, 1e9 + times, "op/s", tuple(f"r{n}" for n in range(60)))
    parts = (Segment(0, 50, 2e9), Segment(50, 60, 1e9))
    return Standing(series, parts, 1e9, 0.05, 0.2 if at else None, (CHANGES[at],), (DOUBT,) * at)


FOUND = Survey(
    (standing(0), standing(1)),
    (JointChange((Part(CHANGES, WHY),)),),
    Budget(2.0, 300.0),
    Calibration(Settings(arl0=700.0), 0.2, 120, own=True, kept=False),
    5,
)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    kept = Memory(tmp_path / "kept")
    kept.keep("key", FOUND)
    return kept


def test_a_survey_is_the_same_again_with_its_own_histories(memory: Memory) -> None:
    own = [one.series for one in FOUND.standings]
    again = memory.recall("key", list(reversed(own)))
    assert again is not None
    assert [one.series is ours for one, ours in zip(again.standings, own, strict=True)] == [True, True]
    assert again == FOUND
    assert again.joint[0].parts[0].changes[1] is again.standings[1].changes[0], "one change is one value"


def test_without_its_histories_it_knows_their_labels_lengths_and_last_times(memory: Memory) -> None:
    again = memory.recall("key")
    assert again is not None
    for one, before in zip(again.standings, FOUND.standings, strict=True):
        assert isinstance(one.series, Remembered)
        assert (len(one.series), one.series.unit, one.series.labels) == (60, "op/s", before.series.labels)
        assert one.series.times.tolist() == before.series.times[-FRESH - 1 :].tolist()
        assert replace(one, series=before.series) == before
        assert one.slower == before.slower
    assert (again.joint, again.budget, again.calibration, again.short) == (
        FOUND.joint,
        FOUND.budget,
        FOUND.calibration,
        FOUND.short,
    )


def test_nothing_is_recalled_under_another_key_or_with_other_histories(memory: Memory) -> None:
    assert memory.recall("other") is None
    assert memory.recall("key", [FOUND.standings[0].series]) is None


def test_without_a_folder_nothing_is_kept() -> None:
    nowhere = Memory(None)
    nowhere.keep("key", FOUND)
    assert nowhere.recall("key") is None
    assert nowhere.recall_known("key").document(finished=True) == Memory(Path("/nowhere")).recall_known("key").document(
        finished=True
    )


def test_keys_are_short_and_say_what_was_asked() -> None:
    keys = [of_index(["a", "b"], 1.0), of_index(["ab"], 1.0), of_index(["a", "b"], 2.0), of_index(["a", "b"])]
    keys += [of_question("delivered", 1.0), of_question("index", 1.0), of_histories([]), of_histories([], "x")]
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {32}
    assert all(set(key) <= set("0123456789abcdef") for key in keys)
    assert len(rules()) == 16
    assert of_index(["a", "b"], 1.0) == keys[0]


def test_forty_surveys_are_kept(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "kept")
    for number in range(42):
        memory.keep(f"key{number}", FOUND)
    assert len(list((tmp_path / "kept").iterdir())) == 40
    assert memory.recall("key41") is not None


def test_what_is_known_of_histories_is_kept_and_read_again(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "kept")
    first = Known()
    first.answer("a", lambda: 1, int, int)
    memory.keep_known("q", first, finished=True)
    second = memory.recall_known("q")
    assert second.document() == {}, "nothing was asked yet"
    assert second.document(finished=False) == {"a": 1}
    assert second.answer("a", lambda: pytest.fail("it is known"), int, int) == 1
    memory.keep_known("q", Known({"old": 2}), finished=False)
    assert memory.recall_known("q").document(finished=False) == {"old": 2}
    (tmp_path / "kept" / "q.kept").write_bytes(b"0\n{}")
    assert memory.recall_known("q").document(finished=False) == {}
    assert memory.recall("q") is None


def test_a_survey_that_is_kept_is_one_line_below_its_checksum(tmp_path: Path) -> None:
    Memory(tmp_path / "kept").keep("key", FOUND)
    checksum, body = (tmp_path / "kept" / "key.kept").read_bytes().split(b"\n")
    assert checksum == hashlib.sha256(body).hexdigest().encode()
    assert set(json.loads(body)) == {"budget", "calibration", "changes", "joint", "short", "standings"}
