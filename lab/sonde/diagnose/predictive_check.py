# SPDX-License-Identifier: Apache-2.0
"""Posterior predictive check: whether the results are within what the most probable hypothesis and the noise allow.

Probabilities only compare hypotheses with each other and with drawn causes. The check asks of one hypothesis alone:
with what probability is a run as slow as the measured one, averaged over strengths and parts by their probabilities?
The p-value is the smallest of all phases and parts, times their number (Bonferroni). Only slowness is checked: it is
what a cause must explain, while predicted slowness is easily too large between simulated strengths.

A measurement that fits badly is repeated before the hypothesis is rejected: what was slow by chance is not slow again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, factorial, log

import numpy as np

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.hypotheses import FAULT, UNEXPLAINED
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.predictions import add_healthy_spread_to_prediction
from sonde.diagnose.real_effects import predict_slowest_real_effect
from sonde.stats.ranks import Floats

_MIN_P_VALUE = 1e-300  # smaller ones have no logarithm
# Results contradict a hypothesis when they are less probable than this, over all experiments together.
_MAX_CONTRADICTED_P_VALUE = 0.01


@dataclass(frozen=True)
class PredictiveCheck:
    """The measurement that fits a hypothesis worst, and its p-value over all measurements."""

    experiment: str = ""
    measurement: str = ""
    p_value: float = 1.0

    @property
    def is_contradicted(self) -> bool:
        return self.p_value < _MAX_CONTRADICTED_P_VALUE


def check_runs_against_hypothesis(
    model: DiagnosisModel, posterior: Posterior, results: Sequence[ExperimentResult], hypothesis_index: int
) -> PredictiveCheck:
    """Checks all runs against one hypothesis. "Unexplained" predicts nothing that could fail."""
    if model.hypotheses[hypothesis_index].kind == UNEXPLAINED:
        return PredictiveCheck()
    weights = np.exp(
        posterior.log_weights[hypothesis_index]
        - np.logaddexp.reduce(posterior.log_weights[hypothesis_index], axis=None)
    )
    tails: dict[tuple[str, str], list[float]] = {}
    for result in results:
        for run in result.runs:
            for p_value, name in _compute_tail_probabilities(model, weights, result, run, hypothesis_index):
                tails.setdefault((result.experiment, name), []).append(p_value)
    if not tails:
        return PredictiveCheck()
    p_value, (experiment, name) = min((combine_repeated_p_values(values), key) for key, values in tails.items())
    return PredictiveCheck(experiment, name, min(1.0, p_value * len(tails)))


def combine_repeated_p_values(p_values: Sequence[float]) -> float:
    """Returns one p-value of a measurement that was repeated: that of Fisher's method, and at least the smallest times
    their number. So it is valid although repeats share the error of the prediction, and a repeat that fits counts."""
    count = len(p_values)
    exponent = -sum(log(max(item, _MIN_P_VALUE)) for item in p_values)
    fisher = exp(-exponent) * sum(exponent**k / factorial(k) for k in range(count))
    return min(1.0, max(fisher, count * min(p_values)))


def _compute_tail_probabilities(
    model: DiagnosisModel,
    strength_weights: Floats,
    result: ExperimentResult,
    run_measurement: RunMeasurement,
    hypothesis_index: int,
) -> list[tuple[float, str]]:
    """Probability that each phase and part of a run is as slow as measured."""
    experiment = model.find_experiment(result.experiment)
    prediction = add_healthy_spread_to_prediction(
        model.predictions[result.experiment][hypothesis_index], result.scatter, result.part_scatter
    )
    hypothesis = model.hypotheses[hypothesis_index]
    if hypothesis.kind == FAULT:
        prediction = predict_slowest_real_effect(hypothesis, prediction, experiment, result.effect_sd)
    healthy = add_healthy_spread_to_prediction(
        model.get_healthy_prediction(result.experiment), result.scatter, result.part_scatter
    )
    masks = model.part_masks[hypothesis_index]
    exposed = masks.select_exposed_parts(experiment)
    exposed_weights, unexposed_weight = strength_weights @ exposed, float(np.sum(strength_weights @ (1 - exposed)))
    noise = model.noise
    tails = []
    for phase, value in run_measurement.rates.items():
        if phase in prediction.rates:
            below = 0.0
            for alternatives, shares in (
                (prediction.list_alternatives(phase), exposed_weights),
                (healthy.list_alternatives(phase), np.array([unexposed_weight])),
            ):
                for item in alternatives:
                    sd = np.hypot(item.sd, result.reference_sd)
                    lower = noise.compute_cumulative_probability_of_phase(value - item.mean, sd)
                    below += float(np.sum(shares * item.share * lower))
            tails.append((below, phase))
    for key, values in run_measurement.vectors.items():
        if key in prediction.vectors:
            vector = prediction.vectors[key]
            names = tuple(values)
            measured = np.array(list(values.values()))
            inside = (strength_weights * exposed) @ masks.select_slow_parts(key[1], names, vector.peer_offset)
            outside = np.sum(strength_weights, axis=1)[:, None] - inside
            deviations = measured - vector.outside[:, None]
            probability_by_strength = outside * sum(
                share * noise.compute_cumulative_probability_of_part(deviations, outside_sd[:, None])
                for share, outside_sd in vector.outside_alternatives
            )
            for item in vector.inside_alternatives:
                sd = np.hypot(item.sd, result.part_sd)[:, None]
                lower = noise.compute_cumulative_probability_of_part(measured - item.mean[:, None], sd)
                probability_by_strength += inside * item.share[:, None] * lower
            below_by_name = np.sum(probability_by_strength, axis=0)
            tails += [(float(below), name) for name, below in zip(names, below_by_name, strict=True)]
    return tails
