# SPDX-License-Identifier: Apache-2.0
"""The alternative to all hypotheses: causes that nobody described, drawn at random.

A drawn cause changes the rates of one to three kinds of measurements by factors of a broad distribution, in the
language of traits in which the files of causes are written. Half of the kinds are drawn at random; the others are those
of a described cause with one trait more, less or changed: what nobody described resembles what somebody did.

Causes whose predictions no experiment separates from a hypothesis are drawn again: the alternative is the complement of
the hypotheses. So "unexplained" has a predictive distribution over all experiments together, as every hypothesis has: a
result that one hypothesis predicts raises both, and only results that agree with the hypothesis where drawn causes
differ from it make the hypothesis certain.

A part of the prior belongs to changes without any structure: each phase is as healthy or changed by a factor of its
own, and so is each target and node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from sonde.diagnose.description import DEFAULT_TRAITS
from sonde.diagnose.experiment_plan import ScaledExperiment, combine_reference_traits, combine_traits
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import Prediction, VectorPrediction
from sonde.stats.ranks import Floats

# Drawn causes: how many, of how many attempts, and the error of each change, which makes few draws cover many causes.
# With 600 causes, five results of a further drawn cause were three times less probable than with 9,600.
_DRAWN_CAUSES, _MAX_DRAW_ATTEMPTS, _CHANGED_SD = 4800, 6000, 0.2
_RELATED_SHARE = 0.5  # of the kinds of changed measurements that resemble those of a described cause
_EFFECT_SHARES = (0.4, 0.4, 0.2)  # causes with one, two and three kinds of changed measurements
_MIN_FACTOR, _MAX_FACTOR, _FASTER_SHARE = 0.08, 0.85, 0.15
# Some causes nearly stop single measurements, as faults of the model do (a lost server: 2 % of a rate).
_MIN_EXTREME_FACTOR, _EXTREME_SHARE = 0.005, 0.2
# A cause is separated from a hypothesis by a phase whose predictions differ by this many standard deviations.
MIN_SEPARATION = 3.0
# Prior shares within "unexplained": changes without structure, and causes that also make parts uneven.
_UNSTRUCTURED_SHARE, _UNEVEN_SHARE = 0.2, 0.3
# A phase without structure: share that is changed, and its change; a slow part among its peers.
_CHANGED_SHARE, _CHANGE_MEAN, _CHANGE_SD = 0.5, -0.7, 0.8
_SLOW_PART_SHARES = (0.1, 0.4)
_QUADRATURE_POINTS = 41
_QUADRATURE_LOG_CHANGES = np.append(
    np.linspace(_CHANGE_MEAN - 4 * _CHANGE_SD, _CHANGE_MEAN + 4 * _CHANGE_SD, _QUADRATURE_POINTS), 0.0
)


@dataclass(frozen=True)
class UnknownCauses:
    """Drawn causes as predictions by experiment; the first axis of their rates is the causes."""

    predictions: Mapping[str, Prediction]
    count: int

    @property
    def prior_shares(self) -> Floats:
        """Prior share of each cause with even parts, of each with uneven parts, and of changes without structure."""
        structured = (1 - _UNSTRUCTURED_SHARE if self.count else 0.0) / max(1, self.count)
        even, uneven = structured * (1 - _UNEVEN_SHARE), structured * _UNEVEN_SHARE
        return np.concatenate([np.full(self.count, even), np.full(self.count, uneven), [1 - structured * self.count]])


def draw_unknown_causes(
    experiments: Sequence[ScaledExperiment],
    healthy_predictions: Mapping[str, Prediction],
    hypotheses: Sequence[Mapping[str, Prediction]],
    noise_model: NoiseModel,
    described_traits: Sequence[Mapping[str, str]] = (),
    seed: int = 0,
) -> UnknownCauses:
    """Draws causes that some experiment separates from each of the `hypotheses`, given as predictions by experiment.

    `described_traits` are those of the effects of described causes.
    """
    generator = np.random.default_rng(seed)
    changes = _draw_log_rate_factors(experiments, described_traits, generator)
    phases = list_rate_phases(experiments)
    accepted = np.any(np.abs(changes) > 0, axis=1)
    for predictions in hypotheses:
        accepted &= compute_separation(changes, phases, predictions, noise_model) >= MIN_SEPARATION
    chosen = changes[accepted][:_DRAWN_CAUSES]
    predictions_by_experiment = {}
    for item in experiments:
        columns = {phase: chosen[:, phases.index((item.id, phase))] for phase in item.phase_ids}
        errors_by_phase = {phase: healthy_predictions[item.id].rates[phase][1][0] for phase in item.phase_ids}
        rates = {
            phase: (
                values,
                np.where(values != 0, np.hypot(_CHANGED_SD, errors_by_phase[phase]), errors_by_phase[phase]),
            )
            for phase, values in columns.items()
        }
        predictions_by_experiment[item.id] = Prediction(rates, healthy_predictions[item.id].vectors)
    return UnknownCauses(predictions_by_experiment, len(chosen))


def list_rate_phases(experiments: Sequence[ScaledExperiment]) -> list[tuple[str, str]]:
    """Measured phases of all experiments as (experiment, phase)."""
    return [(item.id, phase) for item in experiments for phase in item.phase_ids]


def compute_separation(
    log_changes: Floats,
    phases: Sequence[tuple[str, str]],
    predictions: Mapping[str, Prediction],
    noise_model: NoiseModel,
) -> Floats:
    """Returns for each row of log factors by phase the largest deviation from a hypothesis at its nearest strength, in
    standard deviations of one run."""
    means = np.stack([predictions[name].rates[phase][0] for name, phase in phases], axis=-1)
    errors = np.stack([predictions[name].rates[phase][1] for name, phase in phases], axis=-1)
    nearest = np.full(len(log_changes), np.inf)
    for mean, error in zip(means, errors, strict=True):
        scale = np.sqrt(error**2 + noise_model.run_sd**2)
        nearest = np.minimum(nearest, np.max(np.abs(log_changes - mean) / scale, axis=1))
    return nearest


def _draw_log_rate_factors(
    experiments: Sequence[ScaledExperiment],
    described_traits: Sequence[Mapping[str, str]],
    generator: np.random.Generator,
) -> Floats:
    """Returns log factors with attempts as first and measured phases of all experiments as second axis."""
    sides = [
        (combine_traits(item.description, phase), combine_reference_traits(item.description, phase))
        for item in experiments
        for phase in item.phase_ids
    ]
    stated = [dict(phase.traits) for item in experiments for phase in item.description.rate_phases]
    stated = [{name: value for name, value in traits.items() if name not in DEFAULT_TRAITS} for traits in stated]
    stated = [traits for traits in stated if traits]
    changes = np.zeros((_MAX_DRAW_ATTEMPTS if stated else 0, len(sides)))
    defaults = list(DEFAULT_TRAITS.items())
    for row in changes:
        # Half of the causes have one condition of the site: they follow the nodes, the software, the options.
        condition = [defaults[int(generator.integers(len(defaults)))]] if generator.random() < 0.5 else []
        for _ in range(1 + int(generator.choice(len(_EFFECT_SHARES), p=_EFFECT_SHARES))):
            if described_traits and generator.random() < _RELATED_SHARE:
                effect = _draw_related_traits(described_traits, stated, generator)
            else:
                effect = {**_draw_traits(stated, int(generator.integers(1, 3)), generator), **dict(condition)}
            factor = _draw_log_rate_factor(generator)
            for position, (traits_here, reference) in enumerate(sides):
                row[position] += factor * (
                    _matches_traits(effect, traits_here)
                    - (reference is not None and _matches_traits(effect, reference))
                )
    return changes


def _draw_traits(
    stated_traits: Sequence[Mapping[str, str]], max_count: int, generator: np.random.Generator
) -> dict[str, str]:
    """Draws some of the traits of one measurement."""
    traits = stated_traits[int(generator.integers(len(stated_traits)))]
    names = generator.choice(sorted(traits), size=min(len(traits), max_count), replace=False)
    return {str(name): traits[str(name)] for name in names}


def _draw_related_traits(
    described_traits: Sequence[Mapping[str, str]],
    stated_traits: Sequence[Mapping[str, str]],
    generator: np.random.Generator,
) -> dict[str, str]:
    """Draws the traits of a described effect without one of them, or with a drawn one that may replace one."""
    traits = dict(described_traits[int(generator.integers(len(described_traits)))])
    if len(traits) > 1 and generator.random() < 0.5:
        del traits[str(generator.choice(sorted(traits)))]
        return traits
    return {**traits, **_draw_traits(stated_traits, 1, generator)}


def _draw_log_rate_factor(generator: np.random.Generator) -> float:
    """Draws the logarithm of the factor on a rate."""
    if generator.random() < _EXTREME_SHARE:
        return float(generator.uniform(log(_MIN_EXTREME_FACTOR), log(_MIN_FACTOR)))
    factor = float(generator.uniform(log(_MIN_FACTOR), log(_MAX_FACTOR)))
    return -factor if generator.random() < _FASTER_SHARE else factor


def _matches_traits(effect_traits: Mapping[str, str], traits: Mapping[str, str]) -> bool:
    return all(traits.get(name) == value for name, value in effect_traits.items())


def compute_unexplained_densities(
    causes: Prediction,
    healthy_prediction: Prediction,
    measurement_groups: Sequence[Sequence[RunMeasurement]],
    noise_model: NoiseModel,
    reference_sd: float = 0.0,
) -> Floats:
    """Returns log densities of groups of runs; axes are groups, and the elements of `UnknownCauses.shares`.

    Causes, changes and the share of slow parts are the same in all runs of a group; all groups have as many runs.
    """
    phases = [
        phase
        for phase in healthy_prediction.rates
        if any(phase in run.rates for group in measurement_groups for run in group)
    ]
    values = np.array(
        [[[run.rates.get(phase, np.nan) for phase in phases] for run in group] for group in measurement_groups]
    )
    sd = np.array([float(np.hypot(healthy_prediction.rates[phase][1][0], reference_sd)) for phase in phases])
    even, uneven = _compute_part_densities(healthy_prediction, measurement_groups, noise_model)
    structured = _compute_density_of_causes(causes, phases, values, noise_model, reference_sd)
    unstructured = _compute_density_of_unstructured_changes(values, sd, noise_model)
    parts = np.logaddexp(log(1 - _UNEVEN_SHARE) + even, log(_UNEVEN_SHARE) + uneven)
    return np.concatenate(
        [structured + even[:, None], structured + uneven[:, None], (unstructured + parts)[:, None]], axis=1
    )


def _compute_density_of_causes(
    cause_prediction: Prediction,
    phase_ids: Sequence[str],
    measured_values: Floats,
    noise_model: NoiseModel,
    reference_sd: float,
) -> Floats:
    count = len(next(iter(cause_prediction.rates.values()))[0])
    total = np.zeros((len(measured_values), count))
    if not phase_ids or not count:
        return total
    mean = np.stack([cause_prediction.rates[phase][0] for phase in phase_ids], axis=-1)
    sd = np.hypot(np.stack([cause_prediction.rates[phase][1] for phase in phase_ids], axis=-1), reference_sd)
    if measured_values.shape[1] == 1:
        return noise_model.compute_log_density_of_run(measured_values - mean, sd)
    return np.stack(
        [noise_model.compute_joint_log_density_of_runs(group - mean[:, None, :], sd) for group in measured_values]
    )


def _compute_density_of_unstructured_changes(
    measured_values: Floats, measured_sd: Floats, noise_model: NoiseModel
) -> Floats:
    """Changes without structure: the distribution of each phase's change is integrated numerically."""
    deviations = np.moveaxis(measured_values, 1, 2)[:, :, None, :, None] - _QUADRATURE_LOG_CHANGES[:, None, None]
    with np.errstate(invalid="ignore"):  # NaN is a phase that a repeat does not have
        by_phase = noise_model.compute_log_density_of_run(deviations, measured_sd[:, None, None, None])
    densities = np.sum(np.nan_to_num(by_phase), axis=-1)
    weights = np.exp(-0.5 * ((_QUADRATURE_LOG_CHANGES[:-1] - _CHANGE_MEAN) / _CHANGE_SD) ** 2)
    changed = np.logaddexp.reduce(densities[..., :-1] + np.log(weights / np.sum(weights)), axis=-1)
    mixed = np.logaddexp(log(1 - _CHANGED_SHARE) + densities[..., -1], log(_CHANGED_SHARE) + changed)
    return np.asarray(np.sum(mixed, axis=-1))


def _compute_part_densities(
    healthy_prediction: Prediction, measurement_groups: Sequence[Sequence[RunMeasurement]], noise_model: NoiseModel
) -> tuple[Floats, Floats]:
    """Log densities of the parts of each group, when all are alike and when an unknown share of them is slow."""
    even = np.zeros(len(measurement_groups))
    uneven = np.zeros((len(measurement_groups), len(_SLOW_PART_SHARES)))
    for key, vector in healthy_prediction.vectors.items():
        for position in range(len(measurement_groups[0])):
            values = [np.array(list(group[position].vectors.get(key, {}).values())) for group in measurement_groups]
            rows = np.stack(values) if len({len(item) for item in values}) == 1 else None
            if rows is not None and rows.shape[1]:
                usual, mixed = _compute_density_of_vectors(rows, vector, noise_model)
                even += usual
                uneven += mixed
    return even, np.logaddexp.reduce(uneven, axis=1) - log(len(_SLOW_PART_SHARES))


def _compute_density_of_vectors(
    vector_values: Floats, vector: VectorPrediction, noise_model: NoiseModel
) -> tuple[Floats, Floats]:
    usual = noise_model.compute_log_density_of_part(vector_values, float(vector.outside_sd[0]))
    slow = -0.5 * ((vector_values - _CHANGE_MEAN) / _CHANGE_SD) ** 2 - log(_CHANGE_SD * (2 * np.pi) ** 0.5)
    mixed = [np.sum(np.logaddexp(log(1 - share) + usual, log(share) + slow), axis=1) for share in _SLOW_PART_SHARES]
    return np.sum(usual, axis=1), np.stack(mixed, axis=1)


def draw_unexplained_rates(
    causes: Prediction,
    phase_ids: Sequence[str],
    element_index: int,
    noise_model: NoiseModel,
    generator: np.random.Generator,
) -> Floats:
    """Draws the rates of the phases of one run under an element of `UnknownCauses.shares`."""
    count = len(next(iter(causes.rates.values()))[0])
    factors = noise_model.draw_run_deviations(generator, len(phase_ids))
    if element_index < 2 * count:
        mean = np.array([causes.rates[phase][0][element_index % count] for phase in phase_ids])
        sd = np.array([causes.rates[phase][1][element_index % count] for phase in phase_ids])
        return np.asarray(factors + mean + sd * generator.normal(size=len(phase_ids)))
    changed = generator.random(len(phase_ids)) < _CHANGED_SHARE
    return np.asarray(factors + np.where(changed, generator.normal(_CHANGE_MEAN, _CHANGE_SD, len(phase_ids)), 0.0))


def draw_unexplained_parts(
    cause_prediction: Prediction,
    share_index: int,
    part_count: int,
    noise_model: NoiseModel,
    generator: np.random.Generator,
) -> Floats:
    """Draws the values of parts relative to their peers under an element of `UnknownCauses.shares`."""
    count = len(next(iter(cause_prediction.rates.values()))[0])
    values = noise_model.draw_part_deviations(generator, part_count)
    is_uneven = share_index >= count if share_index < 2 * count else generator.random() < _UNEVEN_SHARE
    if is_uneven:
        slow = generator.random(part_count) < float(generator.choice(_SLOW_PART_SHARES))
        values = np.where(slow, generator.normal(_CHANGE_MEAN, _CHANGE_SD, part_count), values)
    return np.asarray(values)
