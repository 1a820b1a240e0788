# SPDX-License-Identifier: Apache-2.0
"""Scatter of parts between runs of the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_state import DiagnosisResult
from sonde.diagnose.hypotheses import NOTHING
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import NODES, TARGETS, RunMeasurement, measure_part_scatter

KEY = ("write", TARGETS)


def make_runs(count: int, parts: int, sd: float) -> list[RunMeasurement]:
    """Parts that differ always by 1, and between runs by a random deviation."""
    generator = np.random.default_rng(1)
    return [
        RunMeasurement({}, {KEY: {f"t{index}": index + generator.normal(0, sd) for index in range(parts)}})
        for _ in range(count)
    ]


def test_scatter_of_parts_is_that_between_runs() -> None:
    assert measure_part_scatter(make_runs(40, 21, 0.3), 0.06)[KEY] == pytest.approx(0.3, rel=0.1)
    assert measure_part_scatter(make_runs(40, 21, 0.05), 0.06) == {}


def test_few_runs_or_common_parts_have_no_scatter() -> None:
    assert measure_part_scatter(make_runs(2, 9, 0.3), 0.06) == {}
    runs = [RunMeasurement({}, {("read", NODES): {"n1": float(index), f"x{index}": 0.0}}) for index in range(5)]
    assert measure_part_scatter(runs, 0.06) == {}


def test_part_within_the_scatter_of_references_is_healthy(diagnosis_model: DiagnosisModel) -> None:
    parts = {**dict.fromkeys((f"t{index}" for index in range(8)), 0.0), "t3": -0.7, "t5": 0.5}
    strict = ExperimentResult("every-target", (RunMeasurement({"write": 0.0, "read": 0.0}, {KEY: parts}),))
    scattered = replace(strict, part_scatter={KEY: 0.4})
    healthy = [item.id for item in diagnosis_model.hypotheses].index(NOTHING)
    before, after = (diagnosis_model.compute_posterior([item]).hypothesis_probabilities for item in (strict, scattered))
    assert after[healthy] == max(after)
    assert before[healthy] < after[healthy]


def test_scatter_of_parts_is_stored() -> None:
    result = ExperimentResult("every-target", (RunMeasurement({"write": 0.0}),), part_scatter={KEY: 0.4}, effect_sd=0.3)
    item = DiagnosisResult(result, "x")
    assert DiagnosisResult.from_json(item.to_json()) == item
