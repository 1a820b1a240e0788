# SPDX-License-Identifier: Apache-2.0
"""Events of logs get the clock of a run from the dips, errors and dropped caches that both saw."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_record import write_run
from numpy.typing import NDArray
from record_scene import Scene, Work

from sonde.findings.log_clock import correct_event_times_to_run_clock
from sonde.findings.run_marks import DROPPED_CACHES_MARK, TROUBLE_MARK, list_run_marks
from sonde.model.run import RecordedRun, read_recorded_run_folder

STARTED = datetime(2026, 11, 21, 20, 45, 1, tzinfo=UTC)
DIPS = (5.0, 17.0, 26.0, 44.0)


def make_dipping_rates(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """100 MB/s, and a tenth of it for two seconds from each of DIPS."""
    low = np.any([(times >= begin) & (times < begin + 2) for begin in DIPS], axis=0)
    return np.where(low, 10e6, 100e6)


@pytest.fixture
def run(tmp_path: Path) -> RecordedRun:
    drop = {"kind": "drop_page_cache", "outcome": "done", "seconds": 0.5, "text": ""}
    work = Work(curve=make_dipping_rates, seconds=60, slice_s=0.5, noise=0.0, treatments=[drop])
    return read_recorded_run_folder(write_run(tmp_path / "run", Scene(works=(work,))))


def make_events(offset_s: float, dropped_at: float, dips: tuple[float, ...]) -> list[dict[str, Any]]:
    """Events as a scan makes them, on a clock that is `offset_s` ahead."""

    def make(number: int, second: float, kind: str, rule: str) -> dict[str, Any]:
        time = STARTED + timedelta(seconds=second + offset_s)
        when = f"{time:%Y-%m-%dT%H:%M:%SZ}"
        return {"id": f"e{number}", "when": when, "kind": kind, "source": f"/log, rule {rule}", "details": "x"}

    events = [make(0, dropped_at, "other", "kernel-caches-dropped")]
    return events + [make(number + 1, dip, "incident", "lustre-slow-thread") for number, dip in enumerate(dips)]


def test_marks_are_the_dips_and_dropped_caches(run: RecordedRun) -> None:
    marks = list_run_marks(run)
    assert marks[DROPPED_CACHES_MARK] == [pytest.approx(STARTED.timestamp() + run.phases[0].treatments[0].t)]
    begin = STARTED.timestamp() + run.phases[0].begin.t
    assert np.array(marks[TROUBLE_MARK]) - begin == pytest.approx(np.array(DIPS), abs=1.1)


@pytest.mark.parametrize("offset_s", [3607, -18_000, 45])
def test_events_are_moved_to_the_clock_of_the_run(run: RecordedRun, offset_s: int) -> None:
    begin = run.phases[0].begin.t
    events, sentence = correct_event_times_to_run_clock(
        [run], make_events(offset_s, 0.5, tuple(begin + dip for dip in DIPS))
    )
    side = "ahead of" if offset_s > 0 else "behind"
    assert f"{side} that of run (5 events in both" in sentence
    assert "times of the events are corrected" in sentence
    dip = datetime.fromisoformat(events[1]["when"])
    assert dip.timestamp() == pytest.approx((STARTED + timedelta(seconds=begin + DIPS[0])).timestamp(), abs=2)
    assert [event["id"] for event in events] == [f"e{number}" for number in range(5)]
    assert "clock corrected by" in events[0]["details"]


def test_equal_clocks_are_stated(run: RecordedRun) -> None:
    begin = run.phases[0].begin.t
    original = make_events(0, 0.5, tuple(begin + dip for dip in DIPS))
    events, sentence = correct_event_times_to_run_clock([run], original)
    assert sentence.startswith("The clocks of the logs and of run agree (5 events in both")
    assert events == original


def test_unknown_offset_changes_no_time(run: RecordedRun) -> None:
    original = make_events(0, 0.5, (3.0,))
    events, sentence = correct_event_times_to_run_clock([run], original)
    assert "is unknown" in sentence
    assert events == original
