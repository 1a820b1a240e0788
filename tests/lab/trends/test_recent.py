# SPDX-License-Identifier: Apache-2.0
"""Doubts about the last runs of a history are those of the archive."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sonde.trends.budget import Budget, Calibration
from sonde.trends.lanes import Settings
from sonde.trends.recent import with_doubts
from sonde.trends.series import Series
from sonde.trends.survey import Standing, Survey

AddRun = Callable[..., Path]
BUSY = {"id": "noisy_node", "phase": "read", "severity": "warning", "text": "others used it"}


def surveyed(runs: list[str], phase: str = "read") -> Survey:
    series = Series({"phase": phase}, np.arange(float(len(runs))), np.ones(len(runs)), runs=tuple(runs))
    one = Standing(series, (), 1.0, 0.1, None, ())
    return Survey((one,), (), Budget(), Calibration(Settings(), None, 0, own=False), 0)


def test_the_last_ten_runs_are_looked_at_and_those_that_are_gone_not_counted(add_run: AddRun, archive: Path) -> None:
    runs = [add_run(day, {("read", "read"): 1e9}, findings=[BUSY] * (day in (0, 1, 5))).name for day in range(11)]
    (doubt,) = with_doubts(surveyed(runs), archive).standings[0].doubts
    assert (doubt.side, doubt.phase, doubt.id, doubt.runs, doubt.of) == ("", "read", "noisy_node", 2, 10)
    (doubt,) = with_doubts(surveyed([*runs[:9], "20990101T000000Z-gone-0000"]), archive).standings[0].doubts
    assert (doubt.runs, doubt.of) == (3, 9)
    before = surveyed(runs, phase="write")
    assert with_doubts(before, archive) == before
    assert with_doubts(surveyed(runs[6:]), archive).standings[0].doubts == ()


def test_a_run_that_lies_in_the_archive_itself_is_found_too(
    add_run: AddRun, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = add_run(0, {("read", "read"): 1e9}, findings=[BUSY])
    folder.rename(archive / folder.name)
    found = with_doubts(surveyed([folder.name] * 3), archive).standings[0].doubts
    assert [(one.runs, one.of) for one in found] == [(3, 3)]
    assert json.loads((archive / folder.name / "run.json").read_text(encoding="utf-8"))["id"] == folder.name
