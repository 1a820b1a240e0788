# SPDX-License-Identifier: Apache-2.0
"""Faults that affect only some runs and parts: simulated values, their predictions, and the density of results."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from sonde.diagnose.chance_effects import ChanceEffect, find_chance_effect
from sonde.diagnose.likelihood import compute_rate_densities, compute_vector_density
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import Prediction, VectorPrediction
from sonde.stats.ranks import Floats

QUIET = NoiseModel(run_sd=0.1, busy_share=1e-12, part_sd=0.05)


def find(*samples: tuple[float, ...]) -> ChanceEffect | None:
    return find_chance_effect(samples, np.array, min_error=0.0, relative_error=0.0)


def test_share_and_mean_follow_from_simulated_values() -> None:
    effect = find((0.0, 0.0, 0.01, -0.6), (0.0, -0.5, -0.6, -0.7))
    assert effect is not None
    assert effect.unaffected_share == pytest.approx([3.5 / 5, 1.5 / 5])
    assert effect.mean == pytest.approx([-0.6, -0.6])
    assert effect.sd == pytest.approx([0.3, sqrt(4 / 2) * np.std([-0.5, -0.6, -0.7])])


def test_strength_without_affected_values_takes_its_neighbors_values() -> None:
    effect = find((0.0, 0.0), (0.0, -0.4), (-1.0, -1.0))
    assert effect is not None
    assert effect.mean == pytest.approx([-0.4, -0.4, -1.0])


@pytest.mark.parametrize("samples", [((0.0, 0.0), (0.0, 0.01)), ((-0.5, -0.5), (-1.0, -0.2)), ((0.0,), (-1.0,)), ((),)])
def test_values_of_one_kind_or_one_seed_have_no_chance(samples: tuple[tuple[float, ...], ...]) -> None:
    assert find(*samples) is None


def make_effect(share: float) -> ChanceEffect:
    return ChanceEffect(np.array([share]), np.array([0.02]), np.array([-1.0]), np.array([0.3]))


def make_prediction(share: float) -> Prediction:
    moments = np.array([-0.5]), np.array([0.5])
    return Prediction({"write": moments, "read": moments}, chance_rates={"write": make_effect(share)})


def compute_densities(prediction: Prediction, *runs: tuple[float, float]) -> Floats:
    measurements = [RunMeasurement({"write": write, "read": read}) for write, read in runs]
    return compute_rate_densities(prediction, measurements, QUIET, 0.0)[:, 0]


def test_unaffected_run_has_its_share_of_the_healthy_density() -> None:
    certain, likely = (compute_densities(make_prediction(share), (0.0, -0.5))[0] for share in (1 - 1e-9, 0.25))
    assert likely - certain == pytest.approx(log(0.25), abs=0.02)


def test_density_of_rates_integrates_to_one() -> None:
    grid = np.linspace(-4, 2, 241)
    densities = compute_densities(make_prediction(0.4), *((write, read) for write in grid for read in grid))
    assert np.sum(np.exp(densities)) * (grid[1] - grid[0]) ** 2 == pytest.approx(1, abs=1e-3)


def test_part_as_fast_as_its_peers_is_as_probable_as_its_share() -> None:
    inside, outside, inside_sd, outside_sd = (np.array([value]) for value in (-0.5, 0.0, 0.5, 0.02))
    vector = VectorPrediction(inside, outside, inside_sd, outside_sd, make_effect(0.4))
    values = np.zeros((1, 2))
    at_first_part, at_none = (
        compute_vector_density(vector, values, np.array([mask]), QUIET, 0.0)[0, 0, 0] for mask in ([1.0, 0], [0, 0.0])
    )
    assert at_first_part - at_none == pytest.approx(log(0.4), abs=0.05)
