# SPDX-License-Identifier: Apache-2.0
"""Densities and draws of the noise of runs and parts."""

from __future__ import annotations

from math import exp, pi, sqrt

import numpy as np
import pytest

from sonde.diagnose.noise import NoiseModel, scale_noise

NOISE = NoiseModel()


def compute_normal_density(value: float, sd: float) -> float:
    return exp(-0.5 * (value / sd) ** 2) / (sd * sqrt(2 * pi))


def test_one_phase_density_is_a_mixture_of_two_normals() -> None:
    expected = 0.84 * compute_normal_density(-0.2, 0.095) + 0.16 * compute_normal_density(
        -0.2 + 0.35, sqrt(0.15**2 + 0.095**2)
    )
    density = NOISE.compute_log_density_of_run(np.array([-0.2]), np.zeros(1))
    assert exp(float(density)) == pytest.approx(expected, rel=1e-12)


def test_two_phases_share_the_shift_of_a_busy_run() -> None:
    shifts = np.linspace(-1.6, 0.9, 20001)
    weights = [
        compute_normal_density(shift + 0.35, 0.15)
        * compute_normal_density(-0.4 - shift, 0.1)
        * compute_normal_density(-0.3 - shift, 0.12)
        for shift in shifts
    ]
    busy = float(np.trapezoid(weights, shifts))
    noise = NoiseModel(run_sd=0.06)
    extra = np.array([0.08, sqrt(0.12**2 - 0.06**2)])
    quiet = compute_normal_density(-0.4, 0.1) * compute_normal_density(-0.3, 0.12)
    density = noise.compute_log_density_of_run(np.array([-0.4, -0.3]), extra)
    assert exp(float(density)) == pytest.approx(0.84 * quiet + 0.16 * busy, rel=1e-6)


def test_repeats_share_the_error_of_the_prediction() -> None:
    noise = NoiseModel(run_sd=0.1, busy_share=0.2)
    errors = np.linspace(-1, 1, 4001)
    values = np.array([[-0.3, 0.1], [-0.2, np.nan]])
    density = 0.0
    for first in (False, True):
        for second in (False, True):
            weight = (0.2 if first else 0.8) * (0.2 if second else 0.8)
            shifts = np.linspace(-1.2, 0.5, 1701) if first else np.zeros(1)
            prior = np.array([compute_normal_density(shift + 0.35, 0.15) for shift in shifts]) if first else np.ones(1)
            sd, shift = (np.hypot(0.1, 0.15), -0.35) if second else (0.1, 0.0)
            inner = [
                np.trapezoid(
                    [
                        compute_normal_density(e, 0.2)
                        * compute_normal_density(-0.3 - e - s, 0.1)
                        * compute_normal_density(-0.2 - e - shift, sd)
                        for e in errors[::20]
                    ],
                    errors[::20],
                )
                * compute_normal_density(0.1 - s, np.hypot(0.1, 0.05))
                for s in shifts[::10]
            ]
            density += weight * (float(np.trapezoid(inner * prior[::10], shifts[::10])) if first else inner[0])
    result = noise.compute_joint_log_density_of_runs(values[None], np.array([[0.2, 0.05]]))
    assert exp(float(result[0])) == pytest.approx(density, rel=1e-3)
    single = noise.compute_joint_log_density_of_runs(values[None, :1], np.array([[0.2, 0.05]]))
    alone = noise.compute_log_density_of_run(values[:1], np.array([[0.2, 0.05]]))
    assert float(single[0]) == pytest.approx(float(alone[0]))


def test_part_density_integrates_to_1() -> None:
    values = np.linspace(-3, 3, 60001)
    density = np.exp(NOISE.compute_log_density_of_part(values, 0.02))
    assert float(np.trapezoid(density, values)) == pytest.approx(1, abs=1e-6)


def test_random_runs_have_the_published_shares() -> None:
    generator = np.random.default_rng(7)
    factors = np.array([NOISE.draw_run_deviations(generator, 1)[0] for _ in range(20000)])
    assert np.mean(factors < np.log(0.8)) == pytest.approx(0.14, abs=0.02)
    assert np.mean(factors > np.log(1.2)) == pytest.approx(0.027, abs=0.01)


def test_scaled_noise_keeps_the_share_of_busy_runs() -> None:
    quiet = scale_noise(NOISE, 0.0475)
    assert (quiet.run_sd, quiet.busy_share) == (0.0475, 0.16)
    assert quiet.busy_shift == pytest.approx(-0.175)
