# SPDX-License-Identifier: Apache-2.0
"""Predictions between simulated strengths, and which strengths change anything."""

from __future__ import annotations

from math import hypot, log, sqrt

import numpy as np
import pytest

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.experiment_plan import scale_experiment_to_machine
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.likelihood import PartMasks, compute_vector_density
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import (
    STRENGTH_STEP,
    Prediction,
    SimulatedEffect,
    VectorPrediction,
    compute_simulated_effect,
    interpolate_effects,
)
from sonde.diagnose.simulation import Simulator

AMOUNTS = ("1", "10", "100")


def combine_rates(*changes: float) -> tuple[list[float], list[float]]:
    effects = [SimulatedEffect({"write": (change, 0.0)}, {}) for change in changes]
    mean, sd = interpolate_effects(effects, AMOUNTS).rates["write"]
    return mean.tolist(), sd.tolist()


def test_even_effect_is_interpolated_without_further_error() -> None:
    """The effect follows the logarithm of the strength, so each strength follows from its neighbors."""
    mean, sd = combine_rates(-0.3, -0.6, -0.9)
    assert mean == pytest.approx(np.linspace(-0.3, -0.9, 2 * STRENGTH_STEP + 1))
    assert sd == pytest.approx([hypot(0.03, 0.08 * value) for value in mean])


def test_bend_widens_strengths_between_simulated_strengths() -> None:
    """The middle strength is 0.9 from what its neighbors predict; a third of the way counts 8/9 of half of that."""
    _, sd = combine_rates(0.0, 0.0, -1.8)
    third = STRENGTH_STEP // 3
    assert sd[third] == pytest.approx(sd[2 * third])
    assert sd[third] == pytest.approx(hypot(0.03, 0.9 * 0.5 * 8 / 9))
    assert sd[STRENGTH_STEP] == pytest.approx(0.03)
    assert sd[0] == pytest.approx(0.03)


def test_spread_of_few_seeds_predicts_a_further_seed() -> None:
    healthy = [RunMeasurement({"read": 0.0})] * 3
    runs = [RunMeasurement({"read": value}) for value in (-0.1, 0.0, 0.1)]
    effect = compute_simulated_effect(runs, healthy, frozenset(), frozenset())
    assert effect.rates["read"] == pytest.approx((0.0, sqrt(2) * float(np.std([-0.1, 0.0, 0.1]))))


def test_strength_within_the_noise_is_invisible() -> None:
    noise = NoiseModel(run_sd=0.1)
    prediction = Prediction({"write": (np.array([-0.19, -0.21]), np.zeros(2)), "read": (np.zeros(2), np.zeros(2))})
    assert prediction.find_strengths_above_noise(noise).tolist() == [0, 1]


def test_invisible_strength_has_no_prior(diagnosis_model: DiagnosisModel) -> None:
    index = next(index for index, item in enumerate(diagnosis_model.hypotheses) if item.fault == "noisy-neighbor")
    visible = diagnosis_model.find_visible_strengths(index)
    shares = np.exp(diagnosis_model.prior_probabilities.log_weights[index][:, 0])
    assert set(visible.tolist()) <= {0.0, 1.0}
    assert shares[visible > 0] == pytest.approx(np.full(int(sum(visible)), np.max(shares)))
    assert np.all(shares[visible == 0] < 1e-3 * np.max(shares))


def test_experiment_on_one_target_shows_only_its_parts(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    experiment = scale_experiment_to_machine(find_diagnosis_experiment("one-target"), simulator.machine)
    assert experiment.only_target == "t0"
    by_fault = {item.fault: item for item in diagnosis_model.hypotheses}
    exposed = {
        name: PartMasks(by_fault[name], simulator.machine).select_exposed_parts(experiment)
        for name in ("slow-target", "slow-link", "noisy-neighbor")
    }
    assert exposed["slow-target"].tolist() == [1] + [0] * 7
    assert exposed["slow-link"].tolist() == [1, 0, 0, 0]
    assert exposed["noisy-neighbor"].tolist() == [1]


def test_narrower_of_two_wide_spreads_gains_little_by_repeats() -> None:
    """Few simulated runs tell both spreads, and the measured parts are closer together than either of them. If the
    spreads were known, each part would add the logarithm of their ratio."""
    zero, values = np.zeros(1), np.random.default_rng(3).normal(scale=0.12, size=(12, 7))
    densities = [
        compute_vector_density(VectorPrediction(zero, zero, sd, sd), values, np.zeros((1, 7)), NoiseModel(), 0.0)
        for sd in (np.array([0.5]), np.array([0.4]))
    ]
    assert 0 < float(np.sum(densities[1] - densities[0])) < values.size * log(0.5 / 0.4) / 2
