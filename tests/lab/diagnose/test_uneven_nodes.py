# SPDX-License-Identifier: Apache-2.0
"""Nodes that a fault of a server makes uneven in some runs, though no node is faulty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sonde.diagnose.diagnosis import rank_hypotheses
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.likelihood import compute_vector_density
from sonde.diagnose.measurements import NODES
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import VectorPrediction
from sonde.diagnose.predictive_check import check_runs_against_hypothesis
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.uneven_nodes import is_uneven, predict_uneven_nodes

NOISE = NoiseModel()


def make_vector(uneven_runs: int) -> VectorPrediction:
    zero, even_sd = np.zeros(1), np.array([0.02])
    uneven = predict_uneven_nodes(uneven_runs, 1, even_sd, np.array([-1.0]))
    return VectorPrediction(zero, zero, even_sd, even_sd, uneven=uneven)


def compute_density(vector: VectorPrediction, values: list[float]) -> float:
    masks = np.zeros((1, len(values)))
    return float(compute_vector_density(vector, np.array([values]), masks, NOISE, 0.0)[0, 0, 0])


def test_even_and_uneven_runs_are_both_probable() -> None:
    even, uneven = [0.0, 0.01, -0.02, 0.03], [0.5, -0.5, 0.5, -0.5]
    zero, narrow = np.zeros(1), np.array([0.02])
    always_even = VectorPrediction(zero, zero, narrow, narrow)
    always_uneven = VectorPrediction(zero, zero, np.array([0.7]), np.array([0.7]))
    mixed = make_vector(1)
    assert compute_density(mixed, even) > compute_density(always_uneven, even) + 3
    assert compute_density(mixed, uneven) > compute_density(always_even, uneven) + 5
    assert compute_density(make_vector(0), even) > compute_density(mixed, even)


def test_density_of_an_uneven_run_integrates_to_one() -> None:
    grid = np.linspace(-8, 8, 801)
    total = sum(np.exp(compute_density(make_vector(1), [value])) for value in grid) * (grid[1] - grid[0])
    assert total == pytest.approx(1, abs=2e-3)


def test_simulated_nodes_that_differ_are_uneven() -> None:
    assert is_uneven([0.46, -0.46, 0.46, -0.46], -1.0)
    assert not is_uneven([0.01, 0.0, -0.02, 0.0], -1.0)
    assert not is_uneven([], -1.0)


def test_small_differences_of_strongly_slowed_nodes_are_even() -> None:
    """Uneven nodes are expected half of the effect apart; a tenth of that is nearer to even ones."""
    assert is_uneven([0.15, -0.15, 0.15, -0.15], -0.3)
    assert not is_uneven([0.15, -0.15, 0.15, -0.15], -2.3)


@pytest.mark.parametrize("changes", [(0.0, 0.02, -0.02, 0.0), (-1.6, 0.05, 0.0, -0.05), (0.8, -0.8, 0.8, -0.8)])
def test_slow_link_allows_even_and_uneven_nodes(
    diagnosis_model: DiagnosisModel, simulator: Simulator, changes: tuple[float, ...]
) -> None:
    """Which nodes wait for a slow link differs from run to run: all, one or half of them."""
    truth = ModeledTruth(("slow-link oss3 12",), seed=5)
    measured = truth.run_experiment(diagnosis_model.find_experiment("every-target"), 0, simulator, NOISE)
    run = measured.runs[0]
    nodes = dict(zip(run.vectors["read", NODES], changes, strict=True))
    result = replace(measured, runs=(replace(run, vectors={**run.vectors, ("read", NODES): nodes}),))
    posterior = diagnosis_model.compute_posterior([result])
    first = rank_hypotheses(posterior)[0]
    assert (first.hypothesis.id, first.part) == ("slow-link:oss1-oss4", "oss3")
    index = posterior.hypotheses.index(first.hypothesis)
    assert not check_runs_against_hypothesis(diagnosis_model, posterior, [result], index).is_contradicted
