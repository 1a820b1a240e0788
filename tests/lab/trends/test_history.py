# SPDX-License-Identifier: Apache-2.0
"""The value that everything about histories works on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from sonde.store.summary import Summary
from sonde.trends.history import History, convert_run_time_to_utc
from sonde.trends.profile_comparison import RunRecords
from sonde.trends.survey import survey_histories

DAY = 86400.0


def history(times: list[float]) -> History:
    return History({"system": "edison", "file_system": "", "op": "read"}, np.array(times), np.ones(len(times)))


@pytest.mark.parametrize(
    ("times", "pace"),
    [
        ([DAY * day for day in range(101)], 365.25),
        ([DAY / 2 * step for step in range(101)], 730.5),
        ([60.0 * minute for minute in range(100)], 365.0),  # an hour and a half of work is no pace
        ([0.0], 365.0),
        ([], 365.0),
    ],
)
def test_history_has_its_runs_per_year(times: list[float], pace: float) -> None:
    assert history(times).runs_per_year == pytest.approx(pace)


def test_the_usual_distance_ignores_gaps_and_repeats() -> None:
    assert history([0.0, 0.0, DAY, 2 * DAY, 60 * DAY, 61 * DAY]).usual_interval_s == DAY
    assert history([]).usual_interval_s == DAY
    assert history([0.0, 0.0, 0.0, 0.0, DAY]).usual_interval_s == DAY
    assert history([0.0, 0.5, 1.0]).usual_interval_s == 0.5, "runs of less than a second are runs"


def test_history_name_joins_its_labels() -> None:
    assert history([0.0]).joined_labels == "edison · read"


def test_up_to_a_time() -> None:
    assert len(history([0.0, DAY, 2 * DAY]).select_runs_until(DAY)) == 2


def test_times_that_go_back_are_refused() -> None:
    with pytest.raises(ValueError, match="ascend"):
        history([1.0, 0.0])
    with pytest.raises(ValueError, match="one time for each value"):
        History({}, np.zeros(2), np.ones(3))


def test_current_level_is_the_median_of_the_last_three_runs() -> None:
    values = np.array([8.0, 8.0, 8.0, 8.0, 4.0, 2.0, 1.0])
    examined = History({"op": "read"}, DAY * np.arange(7.0), values)
    few = History({"op": "write"}, DAY * np.arange(4.0), values[:4])
    survey = survey_histories([examined, few])
    (analysis,) = survey.analyses
    assert analysis.now == 2.0
    assert [(part.first, part.end, part.level) for part in analysis.segments] == [(0, 7, 8.0)]
    assert survey.short == 1
    assert examined.unit == "bytes/s"


def test_a_record_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    readable = tmp_path / "there"
    readable.mkdir()
    begin = '{"type": "phase_begin", "t": 1.0, "phase": "p", "index": 0, "op": "read", "tasks": 1}\n'
    (readable / "record.ndjson").write_text(begin, encoding="utf-8")
    runs = [cast(Summary, SimpleNamespace(folder=folder)) for folder in (tmp_path / "gone", readable)]
    assert len(RunRecords(runs).list_phase_records("p")) == 1
    assert RunRecords(runs).list_phase_records("other") == []
    assert len(RunRecords(runs * 13).list_phase_records("p")) == 12  # of the last 24 runs


def test_runs_per_year_need_fourteen_days() -> None:
    assert history([0.0, 7 * DAY, 14 * DAY]).runs_per_year == pytest.approx(2 / 14 * 365.25)
    assert history([0.0, 7 * DAY, 14 * DAY - 1]).runs_per_year == 365.0


def test_invalid_history_is_rejected_with_the_reason() -> None:
    for times, values, why in (
        (np.zeros(2), np.ones(3), "a history needs one time for each value"),
        (np.zeros((2, 2)), np.ones((2, 2)), "a history needs one time for each value"),
        (np.array([1.0, 0.0]), np.ones(2), "the times of a history ascend"),
        (np.zeros(1), np.zeros(1), "the values of a history are above 0; a run that measured nothing has none"),
        (np.zeros(1), np.array([np.inf]), "the values of a history are above 0; a run that measured nothing has none"),
    ):
        with pytest.raises(ValueError, match=f"^{why}$"):
            History({}, times, values)


def test_history_cut_after_a_time_preserves_unit_labels_and_ids() -> None:
    examined = History({"op": "stat"}, DAY * np.arange(3.0), np.array([1.0, 2.0, 3.0]), "op/s", ("a", "b", "c"))
    part = examined.select_runs_until(DAY)
    assert (part.labels, part.unit, part.runs) == ({"op": "stat"}, "op/s", ("a", "b"))
    assert (part.times.tolist(), part.values.tolist()) == ([0.0, DAY], [1.0, 2.0])
    assert len(examined.select_runs_until(-1.0)) == 0
    assert part.log_rates.tolist() == [0.0, np.log(2.0)]


def test_a_site_without_histories_has_the_budget_of_daily_runs() -> None:
    survey = survey_histories([])
    assert (survey.analyses, survey.joint, survey.short) == ((), (), 0)
    assert (survey.budget.alarms_per_year, survey.budget.runs_per_year) == (1.0, 365.0)
    assert survey.calibration.from_site_noise is False
    assert f"{convert_run_time_to_utc(1767225600.0):%Y-%m-%d %H:%M}" == "2026-01-01 00:00"
