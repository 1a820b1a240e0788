# SPDX-License-Identifier: Apache-2.0
"""Probability density of measurements under a hypothesis, for each of its strengths and each part it can be at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from sonde.diagnose.experiment_plan import FittedExperiment
from sonde.diagnose.hypotheses import UNEXPLAINED, Hypothesis
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import NODES, RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import Prediction, VectorPrediction
from sonde.stats.ranks import Floats

# "Unexplained": a phase is as predicted for a healthy machine or changed by an unknown factor; so is each part.
_CHANGED_SHARE, _CHANGE_MEAN, _CHANGE_SD = 0.5, -0.7, 0.8
_UNEVEN_SHARE, _SLOW_PART_SHARE = 0.3, 0.1
_QUADRATURE = 41


@dataclass(frozen=True)
class ExperimentResult:
    """Runs of one experiment as log ratios to a reference.

    `reference_sd` is the error of the reference as a standard deviation of logarithms: zero for a long history.
    """

    experiment: str
    runs: tuple[RunMeasurement, ...]
    reference_sd: float = 0.0


class MemberMasks:
    """Which targets and nodes belong to each part that a hypothesis can be about."""

    def __init__(self, hypothesis: Hypothesis, machine: DiagnosedMachine) -> None:
        self._hypothesis = hypothesis
        self._machine = machine
        self._masks: dict[tuple[bool, tuple[str, ...]], Floats] = {}

    def select(self, kind: str, names: tuple[str, ...]) -> Floats:
        """Returns a matrix of members and names: 1 where the member slows the part of that name."""
        key = kind == NODES, names
        if key not in self._masks:
            group = self._hypothesis.group
            touched: Sequence[frozenset[str]] = (
                [frozenset()] * len(self._hypothesis.members)
                if group is None
                else (group.nodes if kind == NODES else group.targets)
            )
            self._masks[key] = np.array([[name in members for name in names] for members in touched], dtype=float)
        return self._masks[key]

    def select_exposed(self, nodes: int) -> Floats:
        """Returns for each member whether an experiment on the first `nodes` nodes can show it."""
        hypothesis, machine = self._hypothesis, self._machine
        if hypothesis.group is None or hypothesis.group.kind != "node":
            return np.ones(len(hypothesis.members))
        taking_part = set(machine.nodes[:nodes])
        return np.array([float(member in taking_part) for member in hypothesis.members])


def compute_log_density(
    hypothesis: Hypothesis,
    prediction: Prediction,
    healthy: Prediction,
    runs: Sequence[RunMeasurement],
    masks: MemberMasks,
    experiment: FittedExperiment,
    noise: NoiseModel,
    reference_sd: float = 0.0,
) -> Floats:
    """Returns log densities of all runs together, with strengths as first and members as second axis."""
    if hypothesis.kind == UNEXPLAINED:
        return np.full((1, 1), _compute_unexplained(healthy, runs, noise, reference_sd))
    parts = [
        compute_separate_densities(hypothesis, prediction, healthy, [run], masks, experiment, noise, reference_sd)
        for run in runs
    ]
    return np.asarray(np.sum(parts, axis=(0, 1)))


def compute_separate_densities(
    hypothesis: Hypothesis,
    prediction: Prediction,
    healthy: Prediction,
    runs: Sequence[RunMeasurement],
    masks: MemberMasks,
    experiment: FittedExperiment,
    noise: NoiseModel,
    reference_sd: float = 0.0,
) -> Floats:
    """Returns log densities of each run alone: axes are runs, strengths and members. All runs have the same phases."""
    if hypothesis.kind == UNEXPLAINED:
        return np.array([[[_compute_unexplained(healthy, [run], noise, reference_sd)]] for run in runs])
    members = len(hypothesis.members)
    exposed = masks.select_exposed(experiment.nodes) if members > 1 else np.ones(members)
    total = _compute_density(prediction, runs, masks, members, noise, reference_sd)
    if np.all(exposed):
        return total
    elsewhere = _compute_density(healthy, runs, masks, members, noise, reference_sd)
    return np.asarray(np.where(exposed > 0, total, elsewhere))


def _compute_density(
    prediction: Prediction,
    runs: Sequence[RunMeasurement],
    masks: MemberMasks,
    members: int,
    noise: NoiseModel,
    reference_sd: float,
) -> Floats:
    strengths = next((len(mean) for mean, _ in prediction.rates.values()), 1)
    total = np.zeros((len(runs), strengths, members))
    phases = [phase for phase in prediction.rates if phase in runs[0].rates]
    if phases:
        mean = np.stack([prediction.rates[phase][0] for phase in phases], axis=-1)
        sd = np.stack([prediction.rates[phase][1] for phase in phases], axis=-1)
        values = np.array([[run.rates[phase] for phase in phases] for run in runs])
        density = noise.compute_run_density(values[:, None, :] - mean, np.hypot(sd, reference_sd))
        total += density[:, :, None]
    for key, vector in prediction.vectors.items():
        if key in runs[0].vectors:
            names = tuple(runs[0].vectors[key])
            parts = np.array([[run.vectors[key][name] for name in names] for run in runs])
            total += _compute_vector_density(vector, parts, masks.select(key[1], names), noise)
    return total


def _compute_vector_density(vector: VectorPrediction, values: Floats, mask: Floats, noise: NoiseModel) -> Floats:
    """All parts as predicted for untouched ones, plus the difference for those that a member touches."""
    deviations = values[:, None, :] - vector.outside[:, None]
    outside = noise.compute_part_density(deviations, vector.outside_sd[:, None])
    alone = np.sum(outside, axis=-1)[..., None]
    if not np.any(mask):
        return np.asarray(alone)
    inside = noise.compute_part_density(values[:, None, :] - vector.inside[:, None], vector.inside_sd[:, None])
    return np.asarray(alone + (inside - outside) @ mask.T)


def _compute_unexplained(
    healthy: Prediction, runs: Sequence[RunMeasurement], noise: NoiseModel, reference_sd: float
) -> float:
    total = 0.0
    for phase, (_, sd) in healthy.rates.items():
        values = [run.rates[phase] for run in runs if phase in run.rates]
        if values:
            total += _compute_changed_phase(np.array(values), float(np.hypot(sd[0], reference_sd)), noise)
    for key, vector in healthy.vectors.items():
        vectors = [np.array(list(run.vectors[key].values())) for run in runs if key in run.vectors]
        if vectors:
            total += _compute_uneven_parts(vectors, float(vector.outside_sd[0]), noise)
    return total


def _compute_changed_phase(values: Floats, sd: float, noise: NoiseModel) -> float:
    """The change is the same in all runs; its distribution is integrated numerically."""
    changes = np.linspace(_CHANGE_MEAN - 4 * _CHANGE_SD, _CHANGE_MEAN + 4 * _CHANGE_SD, _QUADRATURE)
    weights = np.exp(-0.5 * ((changes - _CHANGE_MEAN) / _CHANGE_SD) ** 2)
    deviations = values[None, :, None] - np.append(changes, 0.0)[:, None, None]
    densities = np.sum(noise.compute_run_density(deviations, np.full(1, sd)), axis=-1)
    changed = np.logaddexp.reduce(densities[:-1] + np.log(weights / np.sum(weights)))
    return float(np.logaddexp(log(1 - _CHANGED_SHARE) + densities[-1], log(_CHANGED_SHARE) + changed))


def _compute_uneven_parts(vectors: Sequence[Floats], sd: float, noise: NoiseModel) -> float:
    even, uneven = 0.0, 0.0
    for values in vectors:
        usual = noise.compute_part_density(values, sd)
        slow = -0.5 * ((values - _CHANGE_MEAN) / _CHANGE_SD) ** 2 - log(_CHANGE_SD * (2 * np.pi) ** 0.5)
        even += float(np.sum(usual))
        mixed = np.logaddexp(log(1 - _SLOW_PART_SHARE) + usual, log(_SLOW_PART_SHARE) + slow)
        uneven += float(np.sum(mixed))
    return float(np.logaddexp(log(1 - _UNEVEN_SHARE) + even, log(_UNEVEN_SHARE) + uneven))
