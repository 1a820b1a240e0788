# SPDX-License-Identifier: Apache-2.0
"""Events from records: an upgraded kernel at a change is named; facts that vary within a side are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from sonde.stats.ratio import RateRatio
from sonde.stats.segments import Segment
from sonde.trends.changes import Change
from sonde.trends.environment_events import convert_event_from_json, convert_event_to_json, find_environment_events
from sonde.trends.history import History
from sonde.trends.result_cache import ResultCache
from sonde.trends.survey import HistoryAnalysis, Survey, survey_histories

DAY = 86400.0
DROP = 40
RUNS = 60


def survey_of_drop() -> Survey:
    """A history of 60 runs with one change, at run 40."""
    half = RateRatio(0.5, 0.45, 0.55, None, 30, 20, 0.95)
    change = Change(0, "collapse", (DROP - 1) * DAY, DROP * DAY, (DROP + 2) * DAY, 3, half, half)
    values = np.where(np.arange(RUNS) < DROP, 1e9, 0.5e9)
    runs = tuple(f"run{index}" for index in range(RUNS))
    history = History({"history": "a"}, DAY * np.arange(float(RUNS)), values, runs=runs)
    analysis = HistoryAnalysis(history, (Segment(0, RUNS, 1e9),), 0.5e9, 0.02, 0.1, (change,))
    return replace(survey_histories([]), analyses=(analysis,))


def write_records(root: Path, upgrade: int | None) -> None:
    """A record for each run; from run `upgrade` on the kernel and the mount options are others."""
    for index in range(RUNS):
        is_new = upgrade is not None and index >= upgrade
        node = {
            "type": "node",
            "host": f"n{index}",
            "kernel": "Linux 6.8" if is_new else "Linux 6.1",
            "file_system": {"options": "rw,flock" if is_new else "rw", "free_bytes": index},
            "writeback": {"ratio_percent": 10 + index % 2},
        }
        (root / f"run{index}").mkdir()
        (root / f"run{index}" / "record.ndjson").write_text(json.dumps(node) + "\n", encoding="utf-8")


def test_upgrade_at_a_change_becomes_an_event(tmp_path: Path) -> None:
    write_records(tmp_path, DROP)
    (event,) = find_environment_events(tmp_path, survey_of_drop(), ResultCache())
    assert event.title == "The environment of the runs changed: kernel, file system options"
    assert event.changes == {"kernel": ("Linux 6.1", "Linux 6.8"), "file system options": ("rw", "rw,flock")}
    assert (event.when.first.timestamp(), event.when.last.timestamp()) == ((DROP - 1) * DAY, DROP * DAY)
    assert "Linux 6.1 → Linux 6.8" in event.details


def test_change_without_a_difference_has_no_event(tmp_path: Path) -> None:
    write_records(tmp_path, None)
    assert find_environment_events(tmp_path, survey_of_drop(), ResultCache()) == ()


def test_upgrade_at_another_time_is_no_event(tmp_path: Path) -> None:
    """Within one side the kernel is not steady; far from the change nobody compares."""
    write_records(tmp_path, DROP - 1)
    assert find_environment_events(tmp_path, survey_of_drop(), ResultCache()) == ()


def test_runs_without_a_record_have_no_event(tmp_path: Path) -> None:
    assert find_environment_events(tmp_path, survey_of_drop(), ResultCache()) == ()


def test_cached_differences_read_no_record(tmp_path: Path) -> None:
    write_records(tmp_path, DROP)
    results = ResultCache()
    events = find_environment_events(tmp_path, survey_of_drop(), results)
    stored = json.loads(json.dumps(results.build_document()))
    assert find_environment_events(tmp_path / "absent", survey_of_drop(), ResultCache(stored)) == events


def test_event_of_a_cached_survey_is_the_same(tmp_path: Path) -> None:
    write_records(tmp_path, DROP)
    (event,) = find_environment_events(tmp_path, survey_of_drop(), ResultCache())
    assert convert_event_from_json(json.loads(json.dumps(convert_event_to_json(event)))) == event
