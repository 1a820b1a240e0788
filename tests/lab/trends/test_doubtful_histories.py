# SPDX-License-Identifier: Apache-2.0
"""Caveats about the last runs of a history are those of the archive."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sonde.trends.budget import AlarmBudget, DetectorCalibration
from sonde.trends.detectors import DetectorSettings
from sonde.trends.doubtful_histories import add_caveats_to_survey
from sonde.trends.history import History
from sonde.trends.survey import HistoryAnalysis, Survey

AddRun = Callable[..., Path]
BUSY = {"id": "noisy_node", "phase": "read", "severity": "warning", "text": "others used it"}


def survey_runs(runs: list[str], phase: str = "read") -> Survey:
    series = History({"phase": phase}, np.arange(float(len(runs))), np.ones(len(runs)), runs=tuple(runs))
    history_analysis = HistoryAnalysis(series, (), 1.0, 0.1, None, ())
    return Survey(
        (history_analysis,),
        (),
        AlarmBudget(),
        DetectorCalibration(DetectorSettings(), None, 0, from_site_noise=False),
        0,
    )


def test_caveats_cover_the_last_ten_existing_runs(add_run: AddRun, archive: Path) -> None:
    runs = [add_run(day, {("read", "read"): 1e9}, findings=[BUSY] * (day in (0, 1, 5))).name for day in range(11)]
    (caveat,) = add_caveats_to_survey(survey_runs(runs), archive).analyses[0].caveats
    assert (caveat.side, caveat.phase, caveat.id, caveat.runs, caveat.of) == ("", "read", "noisy_node", 2, 10)
    (caveat,) = (
        add_caveats_to_survey(survey_runs([*runs[:9], "20990101T000000Z-gone-0000"]), archive).analyses[0].caveats
    )
    assert (caveat.runs, caveat.of) == (3, 9)
    before = survey_runs(runs, phase="write")
    assert add_caveats_to_survey(before, archive) == before
    assert add_caveats_to_survey(survey_runs(runs[6:]), archive).analyses[0].caveats == ()


def test_caveats_of_a_run_at_the_archive_root_are_counted(
    add_run: AddRun, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = add_run(0, {("read", "read"): 1e9}, findings=[BUSY])
    folder.rename(archive / folder.name)
    counts = add_caveats_to_survey(survey_runs([folder.name] * 3), archive).analyses[0].caveats
    assert [(count_found.runs, count_found.of) for count_found in counts] == [(3, 3)]
    assert json.loads((archive / folder.name / "run.json").read_text(encoding="utf-8"))["id"] == folder.name
