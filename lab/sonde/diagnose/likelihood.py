# SPDX-License-Identifier: Apache-2.0
"""Probability density of measurements under a hypothesis, for each of its strengths and each part it can be at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.hypotheses import FAULT, UNEXPLAINED, Hypothesis
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import NODES, RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import Prediction, VectorPrediction
from sonde.diagnose.real_effects import list_real_effects
from sonde.diagnose.server_messages import compute_message_probability
from sonde.diagnose.unknown_causes import compute_unexplained_densities
from sonde.stats.ranks import Floats


@dataclass(frozen=True)
class ExperimentResult:
    """Runs of one experiment as log ratios to a reference.

    `reference_sd` is the error of the reference as a standard deviation of logarithms: zero for a long history.
    `part_sd` is the error of what is predicted for a slow part, when another plan than the experiment's was run.
    `scatter` is the standard deviation between several runs of the reference beyond the noise of a run, by phase.
    `part_scatter` is the same of parts relative to their peers, by (phase, kind) of vectors.
    `effect_sd` is the error of simulated effects as a share of them: zero for runs on the model.
    """

    experiment: str
    runs: tuple[RunMeasurement, ...]
    reference_sd: float = 0.0
    part_sd: float = 0.0
    scatter: Mapping[str, float] = field(default_factory=dict)
    effect_sd: float = 0.0
    part_scatter: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def get_errors(self) -> tuple[object, ...]:
        """Returns all errors, which are equal for results that can be joined."""
        scatters = tuple(sorted(self.scatter.items())), tuple(sorted(self.part_scatter.items()))
        return self.reference_sd, self.part_sd, self.effect_sd, *scatters


class PartMasks:
    """Which targets and nodes belong to each part that a hypothesis can be about."""

    def __init__(self, hypothesis: Hypothesis, machine: DiagnosedMachine) -> None:
        self._hypothesis = hypothesis
        self._machine = machine
        self._masks: dict[tuple[bool, tuple[str, ...]], Floats] = {}

    def select_slow_parts(self, part_kind: str, part_names: tuple[str, ...], peer_offset: int) -> Floats:
        """Returns a matrix of members and names: 1 where the member slows the part of that name, or a peer of it that
        waits for it. `peer_offset` as in VectorPrediction."""
        parts = self.select_vector_parts(part_kind, part_names)
        if not peer_offset or part_kind != NODES:
            return parts
        order = [part_names.index(node) for node in self._machine.nodes if node in part_names]
        peers = np.zeros_like(parts)
        peers[:, np.roll(order, -peer_offset)] = parts[:, order]
        return np.maximum(parts, peers)

    def select_vector_parts(self, part_kind: str, part_names: tuple[str, ...]) -> Floats:
        """Returns a matrix of members and names: 1 where the member slows the part of that name."""
        key = part_kind == NODES, part_names
        if key not in self._masks:
            group = self._hypothesis.group
            touched: Sequence[frozenset[str]] = (
                [frozenset()] * len(self._hypothesis.members)
                if group is None
                else (group.nodes if part_kind == NODES else group.targets)
            )
            self._masks[key] = np.array([[name in members for name in part_names] for members in touched], dtype=float)
        return self._masks[key]

    def select_exposed_parts(self, experiment: ScaledExperiment) -> Floats:
        """Returns for each member whether an experiment uses it: its nodes, or the only target of its files."""
        hypothesis, machine = self._hypothesis, self._machine
        if hypothesis.group is not None and experiment.only_target and hypothesis.group.kind in ("target", "server"):
            return np.array([float(experiment.only_target in targets) for targets in hypothesis.group.targets])
        if hypothesis.group is None or hypothesis.group.kind != "node":
            return np.ones(len(hypothesis.members))
        taking_part = set(machine.nodes[: experiment.nodes])
        return np.array([float(member in taking_part) for member in hypothesis.members])


def compute_joint_log_density(
    hypothesis: Hypothesis,
    prediction: Prediction,
    healthy_prediction: Prediction,
    run_measurements: Sequence[RunMeasurement],
    part_masks: PartMasks,
    experiment: ScaledExperiment,
    noise_model: NoiseModel,
    reference_sd: float = 0.0,
    part_sd: float = 0.0,
    effect_sd: float = 0.0,
) -> Floats:
    """Returns log densities of all runs together, with strengths as first and members as second axis."""
    if prediction.messages:
        return np.asarray(np.sum(compute_message_densities(prediction, run_measurements), axis=0))
    if hypothesis.kind == UNEXPLAINED:
        return compute_unexplained_densities(
            prediction, healthy_prediction, [run_measurements], noise_model, reference_sd
        ).T
    members = len(hypothesis.members)

    def compute_density_of_runs(prediction: Prediction) -> Floats:
        return _integrate_shared_errors(
            prediction, run_measurements, part_masks, members, noise_model, reference_sd, part_sd
        )

    effects = [(0.0, prediction)]
    if hypothesis.kind == FAULT:
        effects = list_real_effects(hypothesis, prediction, healthy_prediction, experiment, effect_sd)
    densities = [
        log_share
        + _combine_exposed_and_other_parts(compute_density_of_runs, effect, healthy_prediction, part_masks, experiment)
        for log_share, effect in effects
    ]
    return np.asarray(np.logaddexp.reduce(densities))


def compute_message_densities(prediction: Prediction, run_measurements: Sequence[RunMeasurement]) -> Floats:
    """Log probabilities of the messages of each run, logged or not. Axes: runs, strengths, members."""
    rows = []
    for run in run_measurements:
        row = np.zeros((1, 1))
        for name, is_logged in run.messages.items():
            probability = compute_message_probability(prediction.messages, name)
            if probability is not None:
                row = row + np.log(probability if is_logged else 1 - probability)
        rows.append(row)
    return np.stack(np.broadcast_arrays(*rows))


def _combine_exposed_and_other_parts(
    compute_density: Callable[[Prediction], Floats],
    prediction: Prediction,
    healthy_prediction: Prediction,
    part_masks: PartMasks,
    experiment: ScaledExperiment,
) -> Floats:
    """Densities of the prediction for members that take part in the experiment, of a healthy machine for the others."""
    total = compute_density(prediction)
    exposed = part_masks.select_exposed_parts(experiment)
    if np.all(exposed):
        return total
    return np.asarray(np.where(exposed > 0, total, compute_density(healthy_prediction)))


def _integrate_shared_errors(
    prediction: Prediction,
    run_measurements: Sequence[RunMeasurement],
    part_masks: PartMasks,
    part_count: int,
    noise_model: NoiseModel,
    reference_sd: float,
    part_sd: float,
) -> Floats:
    """The errors of the prediction and of the reference are the same in all runs, and so is an uncertain spread, but
    not what a fault does by chance."""
    phases = [phase for phase in prediction.rates if any(phase in run.rates for run in run_measurements)]
    strengths = next((len(mean) for mean, _ in prediction.rates.values()), 1)
    total = np.zeros((strengths, part_count))
    if any(phase in prediction.chance_rates for phase in phases):
        for run in run_measurements:
            total += compute_rate_densities(prediction, [run], noise_model, reference_sd)[0][:, None]
    elif phases:
        mean = np.stack([prediction.rates[phase][0] for phase in phases], axis=-1)
        sd = np.hypot(np.stack([prediction.rates[phase][1] for phase in phases], axis=-1), reference_sd)
        values = np.array([[run.rates.get(phase, np.nan) for phase in phases] for run in run_measurements])
        total += noise_model.compute_joint_log_density_of_runs(values - mean[:, None, :], sd)[:, None]
    for key, vector in prediction.vectors.items():
        by_run = []
        for run in run_measurements:
            if key in run.vectors:
                names = tuple(run.vectors[key])
                values = np.array([list(run.vectors[key].values())])
                mask = part_masks.select_slow_parts(key[1], names, vector.peer_offset)
                by_run.append(_list_vector_densities(vector, values, mask, noise_model, part_sd)[:, 0])
        if by_run and vector.has_uncertain_spread:
            total += np.logaddexp.reduce(_compute_log_shares(vector)[:, None, None] + np.sum(by_run, axis=0))
        elif by_run:
            total += np.sum(np.logaddexp.reduce(_compute_log_shares(vector)[:, None, None] + by_run, axis=1), axis=0)
    return total


def compute_log_densities_of_runs(
    hypothesis: Hypothesis,
    prediction: Prediction,
    healthy_prediction: Prediction,
    run_measurements: Sequence[RunMeasurement],
    part_masks: PartMasks,
    experiment: ScaledExperiment,
    noise_model: NoiseModel,
    reference_sd: float = 0.0,
) -> Floats:
    """Returns log densities of each run alone: axes are runs, strengths and members. All runs have the same phases."""
    if prediction.messages:
        return compute_message_densities(prediction, run_measurements)
    if hypothesis.kind == UNEXPLAINED:
        groups = [[run] for run in run_measurements]
        return compute_unexplained_densities(prediction, healthy_prediction, groups, noise_model, reference_sd)[
            :, :, None
        ]
    members = len(hypothesis.members)

    def compute_density_of_each_run(prediction: Prediction) -> Floats:
        return _compute_density_of_each_run(
            prediction, run_measurements, part_masks, members, noise_model, reference_sd
        )

    return _combine_exposed_and_other_parts(
        compute_density_of_each_run, prediction, healthy_prediction, part_masks, experiment
    )


def _compute_density_of_each_run(
    prediction: Prediction,
    run_measurements: Sequence[RunMeasurement],
    part_masks: PartMasks,
    part_count: int,
    noise_model: NoiseModel,
    reference_sd: float,
) -> Floats:
    strengths = next((len(mean) for mean, _ in prediction.rates.values()), 1)
    total = np.zeros((len(run_measurements), strengths, part_count))
    total += compute_rate_densities(prediction, run_measurements, noise_model, reference_sd)[:, :, None]
    return np.asarray(
        total + _compute_vector_densities(prediction, run_measurements, part_masks, part_count, noise_model)
    )


def compute_rate_densities(
    prediction: Prediction, run_measurements: Sequence[RunMeasurement], noise_model: NoiseModel, reference_sd: float
) -> Floats:
    """Log densities of the rates of each run alone; axes are runs and strengths. All runs have the same phases.

    Which phases a fault affects by chance is summed over.
    """
    phases = [phase for phase in prediction.rates if phase in run_measurements[0].rates]
    if not phases:
        return np.zeros((len(run_measurements), 1))
    values = np.array([[run.rates[phase] for phase in phases] for run in run_measurements])
    densities = []
    for alternatives in product(*(prediction.list_alternatives(phase) for phase in phases)):
        mean = np.stack([item.mean for item in alternatives], axis=-1)
        sd = np.hypot(np.stack([item.sd for item in alternatives], axis=-1), reference_sd)
        log_share = np.sum(np.log([item.share for item in alternatives]), axis=0)
        densities.append(log_share + noise_model.compute_log_density_of_run(values[:, None, :] - mean, sd))
    return np.asarray(np.logaddexp.reduce(densities))


def _compute_vector_densities(
    prediction: Prediction,
    run_measurements: Sequence[RunMeasurement],
    part_masks: PartMasks,
    part_count: int,
    noise_model: NoiseModel,
    part_sd: float = 0.0,
) -> Floats:
    strengths = next((len(mean) for mean, _ in prediction.rates.values()), 1)
    total = np.zeros((len(run_measurements), strengths, part_count))
    for key, vector in prediction.vectors.items():
        if key in run_measurements[0].vectors:
            names = tuple(run_measurements[0].vectors[key])
            parts = np.array([[run.vectors[key][name] for name in names] for run in run_measurements])
            mask = part_masks.select_slow_parts(key[1], names, vector.peer_offset)
            total += compute_vector_density(vector, parts, mask, noise_model, part_sd)
    return total


def compute_vector_density(
    vector: VectorPrediction, values: Floats, part_mask: Floats, noise_model: NoiseModel, part_sd: float
) -> Floats:
    """All parts as predicted for untouched ones, plus the difference for those that a member touches."""
    densities = _list_vector_densities(vector, values, part_mask, noise_model, part_sd)
    return np.asarray(np.logaddexp.reduce(_compute_log_shares(vector)[:, None, None, None] + densities))


def _compute_log_shares(vector: VectorPrediction) -> Floats:
    return np.log([share for share, _ in vector.outside_alternatives])


def _list_vector_densities(
    vector: VectorPrediction, values: Floats, part_mask: Floats, noise_model: NoiseModel, part_sd: float
) -> Floats:
    """Log densities of compute_vector_density() with each of the `outside_alternatives` as the first axis."""
    inside = None
    if np.any(part_mask):
        inside = np.logaddexp.reduce(
            [
                np.log(item.share[:, None])
                + noise_model.compute_log_density_of_part(
                    values[:, None, :] - item.mean[:, None], np.hypot(item.sd, part_sd)[:, None]
                )
                for item in vector.inside_alternatives
            ]
        )
    deviations = values[:, None, :] - vector.outside[:, None]
    densities = []
    for _, outside_sd in vector.outside_alternatives:
        outside = noise_model.compute_log_density_of_part(deviations, outside_sd[:, None])
        total = np.sum(outside, axis=-1)[..., None]
        densities.append(total if inside is None else total + (inside - outside) @ part_mask.T)
    return np.stack(np.broadcast_arrays(*densities))
