# SPDX-License-Identifier: Apache-2.0
"""Figures of diagnosed trials: their arithmetic, and that the page shows the stored ones."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("diagnosis_figures", ROOT / "tools" / "diagnosis_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["diagnosis_figures"] = module
    spec.loader.exec_module(module)
    return module


def make_outcome(kind: str, planted: str, answer: str, is_right: bool, forecasts: list[Any]) -> dict[str, Any]:
    return {
        "machine": "m",
        "kind": kind,
        "planted": planted,
        "answer": answer,
        "is_right": is_right,
        "is_hypothesis_right": is_right,
        "is_sure": True,
        "experiments": 2,
        "cost_s": 100,
        "checklist_s": 400,
        "forecasts": forecasts,
    }


def test_summary_counts_right_and_surely_wrong(figures: ModuleType) -> None:
    outcomes = [
        make_outcome("covered", "slow-target:a-b", "slow-target:a-b", True, [[0.5, False], [0.9, True]]),
        make_outcome("covered", "slow-target:a-b", "slow-node:n", False, [[0.9, False]]),
        make_outcome("healthy", "healthy", "nothing", True, [[1.0, True]]),
    ]
    summary = figures.summarize_trials(outcomes)
    covered = summary["kinds"]["covered"]
    assert (covered["trials"], covered["right"], covered["surely_wrong"], covered["cost_share"]) == (2, 1, 1, 0.25)
    assert summary["planted"]["slow-target"]["taken_for"] == {"slow-node": 1}
    weights = 0.7 / 2, 0.7 / 2, 0.7 / 2, 0.2  # two trials share the prior of described causes
    assert summary["brier"] == pytest.approx(np.average((0.25, 0.01, 0.81, 0), weights=weights), abs=1e-4)
    assert [row[:3] for row in summary["reliability"]] == [[0.5, 0.0, 1], [0.9, 0.5, 2], [1.0, 1.0, 1]]


def test_forecasts_weigh_by_the_prior_of_their_trials(figures: ModuleType) -> None:
    """Half of the trials are healthy, and have a weight of 0.2 beside 0.7: that is the share of right forecasts."""
    outcomes = [make_outcome("healthy", "healthy", "nothing", True, [[0.9, True]])] * 5
    outcomes += [make_outcome("covered", "slow-target:a-b", "nothing", False, [[0.9, False]])] * 5
    assert figures.compute_reliability(outcomes)[0][1] == pytest.approx(0.2 / 0.9, abs=1e-3)


def test_interval_counts_forecasts_of_one_trial_as_dependent(figures: ModuleType) -> None:
    """Two trials of many forecasts each, one always right and one never, say as little as two forecasts."""
    outcomes = [make_outcome("covered", "slow-target:a-b", "x", right, [[0.9, right]] * 50) for right in (True, False)]
    assert figures.compute_reliability(outcomes) == [[0.9, 0.5, 100, 0.0, 1.0]]


def test_page_shows_the_stored_figures(figures: ModuleType) -> None:
    stored = json.loads(figures.FIGURES.read_text(encoding="utf-8"))
    page = figures.PAGE.read_text(encoding="utf-8")
    assert figures.format_tables(stored) in page
    assert figures.DIAGRAM.read_text(encoding="utf-8") == figures.draw_diagram(stored["reliability"])
    assert sum(row["trials"] for row in stored["kinds"].values()) >= 36  # one whole round
