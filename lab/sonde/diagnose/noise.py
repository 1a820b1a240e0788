# SPDX-License-Identifier: Apache-2.0
"""Noise of measured rates at a site, as densities and as a generator.

A run is undisturbed, or other load slows all its phases. The default follows the residuals of one year of daily probes
on Edison and Cori (NERSC, TOKIO-ABC, 48 histories): robust standard deviation of logarithms 9.5 %, 14 % of the runs
more than 20 % low, 2.7 % more than 20 % high.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import erfc, log, pi, sqrt

import numpy as np

from sonde.stats.ranks import Floats

_LOG_ROOT = 0.5 * log(2 * pi)
# Shares and widths of the two components of the noise of one part: most runs, and a part that was busy by chance.
_PART_OUTLIER_SHARE, PART_OUTLIER_FACTOR = 0.05, 4.0


@dataclass(frozen=True)
class NoiseModel:
    """Logarithms of factors on rates.

    `run_sd`: standard deviation of one phase of an undisturbed run. `busy_share` of the runs are slowed by other load
    by `busy_shift` with `busy_sd`. `part_sd`: one target or node relative to the median of its peers.
    """

    run_sd: float = 0.095
    busy_share: float = 0.16
    busy_shift: float = -0.35
    busy_sd: float = 0.15
    part_sd: float = 0.06

    def draw_run_deviations(self, generator: np.random.Generator, phase_count: int) -> Floats:
        """Draws the factors of the phases of one run."""
        factors = generator.normal(0.0, self.run_sd, phase_count)
        if generator.random() < self.busy_share:
            factors += generator.normal(self.busy_shift, self.busy_sd)
        return np.asarray(factors)

    def draw_part_deviations(self, generator: np.random.Generator, part_count: int) -> Floats:
        """Draws the factors of parts relative to their peers."""
        widths = np.where(generator.random(part_count) < _PART_OUTLIER_SHARE, PART_OUTLIER_FACTOR, 1.0) * self.part_sd
        return np.asarray(generator.normal(0.0, 1.0, part_count) * widths)

    def compute_log_density_of_run(self, deviations: Floats, extra_sd: Floats) -> Floats:
        """Log density of the phases of one run: the last axis is the phases, `extra_sd` the error of the prediction.

        The phases of a busy run share one shift, whose distribution is integrated exactly.
        """
        quiet_variance = self.run_sd**2 + extra_sd**2
        quiet = np.sum(_compute_log_normal_density(deviations, quiet_variance), axis=-1)
        weights = 1 / quiet_variance
        total = np.sum(weights, axis=-1)
        mean = np.sum(weights * deviations, axis=-1) / total
        # Density of the phases given their shift, at its best value, times that of the best value.
        deviation_density = np.sum(_compute_log_normal_density(deviations - mean[..., None], quiet_variance), axis=-1)
        marginal = _compute_log_normal_density(mean - self.busy_shift, self.busy_sd**2 + 1 / total)
        busy = deviation_density + marginal + _LOG_ROOT - 0.5 * np.log(total)
        return np.asarray(np.logaddexp(log(1 - self.busy_share) + quiet, log(self.busy_share) + busy))

    def compute_joint_log_density_of_runs(self, deviations: Floats, shared_sd: Floats) -> Floats:
        """Log density of all runs of one experiment: axes are alternatives, runs and phases; NaN is a missing phase.

        `shared_sd` (alternatives, phases) is the error of the prediction, which is the same in all runs: repeats do not
        average it away. Which runs were busy is summed over.
        """
        present = ~np.isnan(deviations[0])
        runs, phases = np.nonzero(present)
        values = deviations[:, runs, phases]
        same_run, same_phase = runs[:, None] == runs, phases[:, None] == phases
        fixed = self.run_sd**2 * np.eye(len(runs)) + shared_sd[:, phases, None] ** 2 * same_phase
        logs = []
        for busy in product((False, True), repeat=deviations.shape[1]):
            is_busy = np.array(busy)[runs]
            covariance = fixed + self.busy_sd**2 * (same_run & is_busy[:, None])
            residuals = values - self.busy_shift * is_busy
            factor = np.linalg.cholesky(covariance)
            scaled = np.linalg.solve(factor, residuals[..., None])[..., 0]
            determinant = np.sum(np.log(np.diagonal(factor, axis1=1, axis2=2)), axis=1)
            prior = sum(log(self.busy_share if item else 1 - self.busy_share) for item in busy)
            logs.append(prior - 0.5 * np.sum(scaled**2, axis=1) - determinant - len(runs) * _LOG_ROOT)
        return np.asarray(np.logaddexp.reduce(logs))

    def compute_log_density_of_part(self, deviations: Floats, extra_sd: Floats | float) -> Floats:
        """Log density of the deviations of parts from their predicted values."""
        extra_variance = np.square(extra_sd)
        narrow = _compute_log_normal_density(deviations, self.part_sd**2 + extra_variance)
        wide = _compute_log_normal_density(deviations, (self.part_sd * PART_OUTLIER_FACTOR) ** 2 + extra_variance)
        return np.asarray(np.logaddexp(log(1 - _PART_OUTLIER_SHARE) + narrow, log(_PART_OUTLIER_SHARE) + wide))

    def compute_cumulative_probability_of_phase(self, deviations: Floats, extra_sd: Floats | float) -> Floats:
        """Probability that one phase of a run deviates less than this from its predicted value."""
        variance = self.run_sd**2 + np.square(extra_sd)
        quiet = compute_normal_cumulative_probability(deviations / np.sqrt(variance))
        busy = compute_normal_cumulative_probability(
            (deviations - self.busy_shift) / np.sqrt(variance + self.busy_sd**2)
        )
        return np.asarray((1 - self.busy_share) * quiet + self.busy_share * busy)

    def compute_cumulative_probability_of_part(self, deviations: Floats, extra_sd: Floats | float) -> Floats:
        """Probability that a part deviates less than this from its predicted value."""
        extra_variance = np.square(extra_sd)
        narrow = compute_normal_cumulative_probability(deviations / np.sqrt(self.part_sd**2 + extra_variance))
        wide = compute_normal_cumulative_probability(
            deviations / np.sqrt((self.part_sd * PART_OUTLIER_FACTOR) ** 2 + extra_variance)
        )
        return np.asarray((1 - _PART_OUTLIER_SHARE) * narrow + _PART_OUTLIER_SHARE * wide)


_compute_erfc = np.frompyfunc(erfc, 1, 1)


def compute_normal_cumulative_probability(quantiles: Floats) -> Floats:
    """Probability that a standard normal variable is below each value; accurate in both tails."""
    return np.asarray(0.5 * _compute_erfc(-np.asarray(quantiles) / sqrt(2)), dtype=float)


def _compute_log_normal_density(deviations: Floats, variance: Floats | float) -> Floats:
    return np.asarray(-0.5 * np.square(deviations) / variance - 0.5 * np.log(variance) - _LOG_ROOT)


def scale_noise(noise_model: NoiseModel, measured_sd: float) -> NoiseModel:
    """Returns the model for a site whose histories have this robust standard deviation of logarithms."""
    factor = measured_sd / noise_model.run_sd
    return NoiseModel(
        run_sd=measured_sd,
        busy_share=noise_model.busy_share,
        busy_shift=noise_model.busy_shift * factor,
        busy_sd=noise_model.busy_sd * factor,
        part_sd=noise_model.part_sd * sqrt(factor),
    )
