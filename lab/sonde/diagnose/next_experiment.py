# SPDX-License-Identifier: Apache-2.0
"""The experiment that is worth most next: expected information, in bits, for its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.diagnose.chance_effects import ValueAlternative
from sonde.diagnose.description import DiagnosisExperiment, ExperimentCost
from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.hypotheses import NOTHING, UNEXPLAINED
from sonde.diagnose.likelihood import PartMasks, compute_log_densities_of_runs
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import NODES, RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.predictions import Prediction, VectorPrediction
from sonde.diagnose.unknown_causes import draw_unexplained_parts, draw_unexplained_rates
from sonde.stats.ranks import Floats

# Seconds that a unit of each cost is worth: what a need costs is the time to obtain it.
_LOAD_COST_S = {"low": 0.0, "medium": 30.0, "high": 120.0}
_NEED_COST_S = {"root": 30.0, "server_access": 600.0, "quiet_time": 3600.0, "old_software": 3600.0}
_DRAWN_MEASUREMENTS = 48
# Hypotheses below this probability are left out of the expectation; together they are less than a hundredth.
_NEGLIGIBLE_PROBABILITY = 1e-4


@dataclass(frozen=True)
class ExperimentValue:
    """Expected information of an experiment, in bits, and its cost in seconds."""

    experiment: str
    bits: float
    cost_s: float

    @property
    def bits_per_minute(self) -> float:
        return 60 * self.bits / self.cost_s


def compute_cost_s(experiment: DiagnosisExperiment, run_seconds: float) -> float:
    """Returns the cost of one repeat: its seconds, preparation, time of a person, load and what it needs."""
    cost = experiment.cost or ExperimentCost()
    needs = sum(_NEED_COST_S[need] for need in cost.needs)
    return max(1.0, run_seconds + (cost.setup or 0.0) + (cost.person or 0.0) + needs + _LOAD_COST_S[cost.load])


def estimate_information_bits(
    posterior: Posterior,
    experiment: ScaledExperiment,
    predictions: Sequence[Prediction],
    masks_by_hypothesis: Sequence[PartMasks],
    machine: DiagnosedMachine,
    noise_model: NoiseModel,
    generator: np.random.Generator,
) -> float:
    """Returns the expected decrease of entropy over hypotheses and parts by one repeat, in bits."""
    probabilities = posterior.hypothesis_probabilities
    live = [index for index, probability in enumerate(probabilities) if probability >= _NEGLIGIBLE_PROBABILITY]
    live_posterior = Posterior(
        tuple(posterior.hypotheses[index] for index in live), tuple(posterior.log_weights[index] for index in live)
    ).normalize()
    healthy = next(
        prediction
        for hypothesis, prediction in zip(posterior.hypotheses, predictions, strict=True)
        if hypothesis.kind == NOTHING
    )
    shares = np.cumsum(live_posterior.hypothesis_probabilities)
    outcomes = []
    for draw in range(_DRAWN_MEASUREMENTS):
        # Stratified: each hypothesis is sampled in proportion to its probability, with little chance.
        level = (draw + generator.random()) / _DRAWN_MEASUREMENTS
        chosen = min(int(np.searchsorted(shares, level)), len(live) - 1)
        index = live[chosen]
        outcomes.append(
            draw_measurement(
                live_posterior,
                chosen,
                predictions[index],
                healthy,
                masks_by_hypothesis[index],
                experiment,
                machine,
                noise_model,
                generator,
            )
        )
    densities: list[Floats] = [
        compute_log_densities_of_runs(
            posterior.hypotheses[index],
            predictions[index],
            healthy,
            outcomes,
            masks_by_hypothesis[index],
            experiment,
            noise_model,
        )
        for index in live
    ]
    decrease = live_posterior.entropy_bits - float(np.mean(live_posterior.compute_entropies_after_results(densities)))
    return max(0.0, decrease)


def draw_measurement(
    posterior: Posterior,
    hypothesis_index: int,
    prediction: Prediction,
    healthy_prediction: Prediction,
    part_masks: PartMasks,
    experiment: ScaledExperiment,
    machine: DiagnosedMachine,
    noise_model: NoiseModel,
    generator: np.random.Generator,
) -> RunMeasurement:
    """Draws a result under one hypothesis, with a strength and a part drawn from their probabilities."""
    weights = np.exp(posterior.log_weights[hypothesis_index] - np.max(posterior.log_weights[hypothesis_index]))
    flat = generator.choice(weights.size, p=(weights / np.sum(weights)).ravel())
    strength, member = divmod(int(flat), weights.shape[1])
    if prediction.messages:
        probabilities = {
            name: item[min(strength, len(item) - 1), min(member, item.shape[1] - 1)]
            for name, item in prediction.messages.items()
        }
        return RunMeasurement({}, {}, {name: bool(generator.random() < item) for name, item in probabilities.items()})
    if posterior.hypotheses[hypothesis_index].kind == UNEXPLAINED:
        return _draw_unexplained(prediction, strength, experiment, machine, noise_model, generator)
    source = prediction if part_masks.select_exposed_parts(experiment)[member] else healthy_prediction
    strength = strength if source is prediction else 0
    rates = list(source.rates)
    deviations = noise_model.draw_run_deviations(generator, len(rates))
    alternatives = [_draw_alternative(source.list_alternatives(phase), strength, generator) for phase in rates]
    means = np.array([item.mean[strength] for item in alternatives])
    errors = np.array([item.sd[strength] for item in alternatives])
    values = means + generator.normal(0.0, 1.0, len(rates)) * errors + deviations
    vectors: dict[tuple[str, str], dict[str, float]] = {}
    for key, vector in source.vectors.items():
        names = list_measured_parts(key[1], experiment, machine)
        inside = part_masks.select_vector_parts(key[1], names)[member] > 0
        alternatives_of_parts = [_draw_alternative(vector.inside_alternatives, strength, generator) for _ in names]
        mean = np.where(inside, [item.mean[strength] for item in alternatives_of_parts], vector.outside[strength])
        outside_sd = _draw_outside_sd(vector, strength, generator)
        error = np.where(inside, [item.sd[strength] for item in alternatives_of_parts], outside_sd)
        sampled = (
            mean
            + generator.normal(0.0, 1.0, len(names)) * error
            + noise_model.draw_part_deviations(generator, len(names))
        )
        vectors[key] = dict(zip(names, (sampled - np.median(sampled)).tolist(), strict=True))
    return RunMeasurement(dict(zip(rates, values.tolist(), strict=True)), vectors)


def _draw_alternative(
    alternatives: Sequence[ValueAlternative], strength_index: int, generator: np.random.Generator
) -> ValueAlternative:
    """Draws one of the alternatives at a strength by their probabilities."""
    shares = np.cumsum([item.share[strength_index] for item in alternatives])
    return alternatives[min(int(np.searchsorted(shares, generator.random())), len(alternatives) - 1)]


def _draw_outside_sd(vector: VectorPrediction, strength_index: int, generator: np.random.Generator) -> float:
    """Draws the error of all parts of a run that the fault is not at."""
    if vector.uneven is None:
        return float(vector.outside_sd[strength_index])
    shares, errors = zip(*vector.outside_alternatives, strict=True)
    return float(errors[generator.choice(len(shares), p=np.array(shares) / sum(shares))][strength_index])


def _draw_unexplained(
    causes: Prediction,
    element_index: int,
    experiment: ScaledExperiment,
    machine: DiagnosedMachine,
    noise_model: NoiseModel,
    generator: np.random.Generator,
) -> RunMeasurement:
    phases = list(causes.rates)
    values = draw_unexplained_rates(causes, phases, element_index, noise_model, generator)
    vectors = {}
    for key in causes.vectors:
        names = list_measured_parts(key[1], experiment, machine)
        parts = draw_unexplained_parts(causes, element_index, len(names), noise_model, generator)
        vectors[key] = dict(zip(names, (parts - np.median(parts)).tolist(), strict=True))
    return RunMeasurement(dict(zip(phases, values.tolist(), strict=True)), vectors)


def list_measured_parts(vector_kind: str, experiment: ScaledExperiment, machine: DiagnosedMachine) -> tuple[str, ...]:
    """The parts of a vector: nodes that take part, or all targets."""
    return machine.nodes[: experiment.nodes] if vector_kind == NODES else machine.targets
