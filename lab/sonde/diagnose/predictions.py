# SPDX-License-Identifier: Apache-2.0
"""Predictions of a hypothesis for an experiment: log ratios to the healthy machine, with the error of the prediction.

Faults of the model are simulated at several strengths at one part of each symmetric group; strengths in between are
interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sonde.diagnose.chance_effects import ChanceEffect, ValueAlternative, find_chance_effect
from sonde.diagnose.client_settings import CHANGED_AS_CAUSE, CHANGED_BY_CHANCE, changes_setting
from sonde.diagnose.counter_experiments import compute_chance_of_observation
from sonde.diagnose.description import DiagnosisExperiment
from sonde.diagnose.hypotheses import CAUSE, FAULT, Hypothesis
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import NODES, RunMeasurement, subtract_reference
from sonde.diagnose.noise import PART_OUTLIER_FACTOR, NoiseModel
from sonde.diagnose.server_messages import (
    LOGGED_WITH_CAUSE,
    compute_chance_of_message,
    find_named_part,
    list_message_names,
)
from sonde.diagnose.uneven_nodes import UnevenNodes, is_uneven
from sonde.stats.ranks import Floats

# Strengths between two simulated ones, and strengths of a cause outside the model. Several results together have an
# error of 3 %, so rates of neighboring strengths differ by 6 % (causes) to 8 % (faults): else no strength fits all.
_INTERPOLATED_STRENGTHS, CAUSE_STRENGTHS = 11, 25
STRENGTH_STEP = _INTERPOLATED_STRENGTHS + 1  # positions from one simulated strength to the next
# Error of a simulated effect, and of one in a contrast, as a standard deviation of logarithms.
MODEL_SD, CAUSE_SD, VECTOR_SD = 0.03, 0.1, 0.02
# The part of an effect that is unknown: a fault that slows by a factor of 10 slows by 8 to 12.
RELATIVE_SD = 0.08
# The error between two simulated strengths, as a share of the deviation of a simulated strength from what its neighbors
# predict. A smooth effect deviates by a quarter at half of the distance, an effect with a bend by up to a half.
_INTERPOLATION_ERROR_SHARE = 0.5
# A cause of a complaint changes some rate by at least this many standard deviations of one run.
VISIBLE_SDS = 2.0


# Spreads between the parts that a fault is not at come from one or few simulated runs and include the error of their
# mean. Larger ones are known to a factor of three: probabilities of multiples. Else the hypothesis with the narrower
# spread gains with each repeat, however well both fit.
_WELL_KNOWN_SPREAD = 0.1
SPREAD_MULTIPLES = ((1 / 3, 0.33), (1 / 3, 0.58), (1 / 3, 1.0))


@dataclass(frozen=True)
class VectorPrediction:
    """For each strength: the value of parts that the fault is at, of the others, and the errors of both.

    `chance` is the effect on parts that the fault is at, where it affects only some of them. A `peer_offset` other than
    zero says that the peer so many positions after a slow node waits for it, and is as slow. `uneven` is how nodes
    differ in some runs; `outside_sd` is then the error in the others.
    """

    inside: Floats
    outside: Floats
    inside_sd: Floats
    outside_sd: Floats
    chance: ChanceEffect | None = None
    peer_offset: int = 0
    uneven: UnevenNodes | None = None

    @property
    def outside_alternatives(self) -> tuple[tuple[float, Floats], ...]:
        """Probabilities of the errors of all parts of a run that the fault is not at."""
        if self.uneven is not None:
            return self.uneven.list_alternatives(self.outside_sd)
        if not self.has_uncertain_spread:
            return ((1.0, self.outside_sd),)
        return tuple((share, multiple * self.outside_sd) for share, multiple in SPREAD_MULTIPLES)

    @property
    def has_uncertain_spread(self) -> bool:
        """Whether `outside_sd` is known by SPREAD_MULTIPLES only."""
        return self.uneven is None and float(np.max(self.outside_sd)) > _WELL_KNOWN_SPREAD

    @property
    def inside_alternatives(self) -> tuple[ValueAlternative, ...]:
        """What parts that the fault is at can be."""
        if self.chance is not None:
            return self.chance.alternatives
        return (ValueAlternative(np.ones_like(self.inside), self.inside, self.inside_sd),)


@dataclass(frozen=True)
class Prediction:
    """For each strength (first axis) of a hypothesis: log ratios of the rates of phases and their errors, by phase.

    `messages` are the probabilities that servers log a message, by the names of server_messages.py, with strengths and
    members (or one for all) as axes; an experiment has these or rates. `chance_rates` are the effects on
    phases of which the fault affects only some.
    """

    rates: Mapping[str, tuple[Floats, Floats]]
    vectors: Mapping[tuple[str, str], VectorPrediction] = field(default_factory=dict)
    messages: Mapping[str, Floats] = field(default_factory=dict)
    chance_rates: Mapping[str, ChanceEffect] = field(default_factory=dict)

    def list_alternatives(self, phase: str) -> tuple[ValueAlternative, ...]:
        """What the rate of a phase can be."""
        if phase in self.chance_rates:
            return self.chance_rates[phase].alternatives
        mean, sd = self.rates[phase]
        return (ValueAlternative(np.ones_like(mean), mean, sd),)

    def find_strengths_above_noise(self, noise_model: NoiseModel) -> Floats:
        """Returns for each strength 1 where it changes a rate, or a part, by more than the noise, else 0."""
        changes = [np.abs(mean) / noise_model.run_sd for mean, _ in self.rates.values()]
        part_sd = noise_model.part_sd * PART_OUTLIER_FACTOR
        changes += [np.abs(item.inside - item.outside) / part_sd for item in self.vectors.values()]
        return np.asarray(np.max(changes, axis=0) >= VISIBLE_SDS, dtype=float) if changes else np.zeros(1)


@dataclass(frozen=True)
class SimulatedEffect:
    """Effect of one simulated strength: means over seeds with the errors of one further seed.

    `messages` is the share of seeds with a message, by name. `samples` are the values of all seeds, by phase, or by the
    key of a vector for the parts that the fault is at. `uneven_runs` are the numbers of seeds with uneven nodes and of
    all seeds, where no node is faulty.
    """

    rates: Mapping[str, tuple[float, float]]
    vectors: Mapping[tuple[str, str], tuple[float, float, float, float]]
    messages: Mapping[str, float] = field(default_factory=dict)
    samples: Mapping[str | tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    uneven_runs: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)


def count_strengths(hypothesis: Hypothesis) -> int:
    """Strengths of a hypothesis: its simulated ones and those in between."""
    if hypothesis.kind == FAULT:
        return (len(hypothesis.strength_grid.amounts) - 1) * STRENGTH_STEP + 1
    return CAUSE_STRENGTHS if hypothesis.kind == CAUSE else 1


def interpolate_amounts(hypothesis: Hypothesis) -> Floats:
    """Returns the amounts of a fault at all its strengths."""
    amounts = [float(text) for text in hypothesis.strength_grid.amounts]
    return np.asarray(
        np.exp(_StrengthScale(hypothesis.strength_grid.amounts).interpolate_to_all_strengths(np.log(amounts).tolist()))
    )


def predict_healthy_machine(experiment: DiagnosisExperiment, vector_keys: Sequence[tuple[str, str]] = ()) -> Prediction:
    """The prediction of a healthy machine."""
    zero, sd = np.zeros(1), np.full(1, MODEL_SD)
    vector = VectorPrediction(zero, zero, np.full(1, VECTOR_SD), np.full(1, VECTOR_SD))
    return Prediction({phase.id: (zero, sd) for phase in experiment.rate_phases}, dict.fromkeys(vector_keys, vector))


def compute_simulated_effect(
    faulty_runs: Sequence[RunMeasurement],
    healthy_runs: Sequence[RunMeasurement],
    target_names: frozenset[str],
    node_names: frozenset[str],
) -> SimulatedEffect:
    """Compares runs with a fault, which slows `target_names` and `node_names`, with healthy runs of the same seeds."""
    differences = [
        subtract_reference(item, reference) for item, reference in zip(faulty_runs, healthy_runs, strict=True)
    ]
    # The mean of few seeds has an error too, and their spread is known badly.
    factor = float(np.sqrt((len(faulty_runs) + 1) / max(1, len(faulty_runs) - 1)))
    rates: dict[str, tuple[float, float]] = {}
    samples: dict[str | tuple[str, str], tuple[float, ...]] = {}
    for phase in dict.fromkeys(phase for item in differences for phase in item.rates):
        values = np.array([item.rates[phase] for item in differences if phase in item.rates])
        rates[phase] = float(np.mean(values)), factor * float(np.std(values))
        samples[phase] = tuple(values.tolist())
    vectors: dict[tuple[str, str], tuple[float, float, float, float]] = {}
    for key in dict.fromkeys(key for item in differences for key in item.vectors):
        touched = node_names if key[1] == NODES else target_names
        inside = np.array([v for item in differences for n, v in item.vectors.get(key, {}).items() if n in touched])
        outside = np.array(
            [v for item in differences for n, v in item.vectors.get(key, {}).items() if n not in touched]
        )
        if not len(outside):
            inside, outside = outside, inside  # it slows all of them alike
        peers = float(np.mean(outside)), factor * float(np.std(outside))
        touched_parts = (float(np.mean(inside)), factor * float(np.std(inside))) if len(inside) else peers
        vectors[key] = touched_parts[0], peers[0], touched_parts[1], peers[1]
        samples[key] = tuple(inside.tolist()) if len(faulty_runs) > 1 else ()
    names = dict.fromkeys(name for item in faulty_runs for name in item.messages)
    messages = {name: sum(item.messages.get(name, False) for item in faulty_runs) / len(faulty_runs) for name in names}
    by_run = {key: [list(item.vectors[key].values()) for item in differences if key in item.vectors] for key in vectors}
    uneven_runs = {
        key: (sum(is_uneven(values, rates.get(key[0], (0.0, 0.0))[0]) for values in runs), len(runs))
        for key, runs in by_run.items()
        if not node_names
    }
    return SimulatedEffect(rates, vectors, messages, samples, uneven_runs)


class _StrengthScale:
    """Strengths between simulated ones, evenly in their logarithms."""

    def __init__(self, amounts: Sequence[str]) -> None:
        count = len(amounts)
        self._positions = np.log([float(text) for text in amounts]) if count > 1 else np.zeros(1)
        self._fine = np.arange((count - 1) * STRENGTH_STEP + 1) / STRENGTH_STEP

    def interpolate_to_all_strengths(self, simulated_values: Sequence[float]) -> Floats:
        """Returns values at all strengths of those at simulated ones."""
        return np.asarray(np.interp(self._fine, np.arange(len(simulated_values)), simulated_values))

    def compute_interpolation_errors(self, simulated_values: Sequence[float]) -> Floats:
        """Error of interpolated values, from how well each simulated strength follows from its neighbors."""
        count = len(simulated_values)
        if count < 3:
            return np.zeros(len(self._fine))
        held_out = [
            abs(
                simulated_values[index]
                - float(
                    np.interp(
                        self._positions[index],
                        self._positions[[index - 1, index + 1]],
                        [simulated_values[index - 1], simulated_values[index + 1]],
                    )
                )
            )
            for index in range(1, count - 1)
        ]
        by_interval = [max(held_out[max(0, index - 1) : index + 1]) for index in range(count - 1)]
        interval = np.minimum(self._fine.astype(int), count - 2)
        share = self._fine - interval
        return np.asarray(_INTERPOLATION_ERROR_SHARE * 4 * share * (1 - share) * np.array(by_interval)[interval])


def interpolate_effects(effects: Sequence[SimulatedEffect], strength_amounts: Sequence[str]) -> Prediction:
    """Interpolates the effects of rising strengths to a prediction."""
    scale = _StrengthScale(strength_amounts)

    def interpolate_with_errors(
        simulated_values: Sequence[float], simulated_errors: Sequence[float], min_error: float
    ) -> tuple[Floats, Floats]:
        mean, sd = (
            scale.interpolate_to_all_strengths(simulated_values),
            scale.interpolate_to_all_strengths(simulated_errors),
        )
        between = scale.compute_interpolation_errors(simulated_values)
        return mean, np.asarray(np.sqrt(sd**2 + between**2 + min_error**2 + (RELATIVE_SD * mean) ** 2))

    def find_chance(key: str | tuple[str, str], min_error: float) -> ChanceEffect | None:
        samples = [effect.samples.get(key, ()) for effect in effects]
        return find_chance_effect(samples, scale.interpolate_to_all_strengths, min_error, RELATIVE_SD)

    rates, chance_rates = {}, {}
    for phase in effects[0].rates:
        if all(phase in effect.rates for effect in effects):
            means, errors = zip(*(effect.rates[phase] for effect in effects), strict=True)
            rates[phase] = interpolate_with_errors(means, errors, MODEL_SD)
            if (chance := find_chance(phase, MODEL_SD)) is not None:
                chance_rates[phase] = chance
    vectors = {}
    for key in effects[0].vectors:
        if all(key in effect.vectors for effect in effects):
            columns = list(zip(*(effect.vectors[key] for effect in effects), strict=True))
            inside, inside_sd = interpolate_with_errors(columns[0], columns[2], VECTOR_SD)
            outside, outside_sd = interpolate_with_errors(columns[1], columns[3], VECTOR_SD)
            vectors[key] = VectorPrediction(inside, outside, inside_sd, outside_sd, find_chance(key, VECTOR_SD))
    return Prediction(rates, vectors, {}, chance_rates)


def predict_messages(
    experiment: DiagnosisExperiment,
    machine: DiagnosedMachine,
    hypothesis: Hypothesis,
    effects: Sequence[SimulatedEffect] = (),
) -> Prediction:
    """The probabilities that servers log each message; without `effects`, by chance.

    The fault was simulated at the first member. At another one, messages name the part of that one instead.
    """
    messages = {}
    for phase in experiment.yes_or_no_phases:
        names = list_message_names(phase.id, phase.part_kind, machine)
        by_chance = compute_chance_of_message(len(names))
        parts = [find_named_part(hypothesis, phase.part_kind, item, machine) for item in hypothesis.members]
        if phase.setting:
            is_cause = changes_setting(hypothesis.fault, phase.setting)
            messages[phase.id] = np.full((1, 1), CHANGED_AS_CAUSE if is_cause else CHANGED_BY_CHANCE)
            continue
        if phase.counter:
            messages[phase.id] = np.full((1, 1), compute_chance_of_observation(phase.counter, hypothesis.counters))
            continue
        simulated_shares = _interpolate_message_shares(names, hypothesis, effects)
        for name in names:
            part = name.removeprefix(f"{phase.id} ")
            columns = []
            for named_part in parts if effects else ():
                simulated_part = {parts[0]: named_part, named_part: parts[0]}.get(part, part) if named_part else part
                simulated_name = name.removesuffix(part) + simulated_part
                columns.append(simulated_shares.get(simulated_name, np.zeros(count_strengths(hypothesis))))
            share = np.stack(columns, axis=-1) if columns else np.zeros((1, 1))
            messages[name] = by_chance + (LOGGED_WITH_CAUSE - by_chance) * share
    return Prediction({}, {}, messages)


def _interpolate_message_shares(
    message_names: Sequence[str], hypothesis: Hypothesis, effects: Sequence[SimulatedEffect]
) -> dict[str, Floats]:
    """Shares of simulated runs with each message, at all strengths; empty without effects."""
    if not effects:
        return {}
    scale = _StrengthScale(hypothesis.strength_grid.amounts)
    return {
        name: scale.interpolate_to_all_strengths([effect.messages.get(name, 0.0) for effect in effects])
        for name in message_names
    }


def add_healthy_spread_to_prediction(
    prediction: Prediction, rate_spreads: Mapping[str, float], vector_spreads: Mapping[tuple[str, str], float]
) -> Prediction:
    """Returns the prediction with the spread of runs added to its errors."""
    return Prediction(
        {phase: (mean, np.hypot(sd, rate_spreads.get(phase, 0.0))) for phase, (mean, sd) in prediction.rates.items()},
        {
            key: VectorPrediction(
                item.inside,
                item.outside,
                np.hypot(item.inside_sd, vector_spreads.get(key, 0.0)),
                np.hypot(item.outside_sd, vector_spreads.get(key, 0.0)),
                item.chance and item.chance.add_spread(vector_spreads.get(key, 0.0)),
                item.peer_offset,
                item.uneven,
            )
            for key, item in prediction.vectors.items()
        },
        prediction.messages,
        {phase: chance.add_spread(rate_spreads.get(phase, 0.0)) for phase, chance in prediction.chance_rates.items()},
    )


def fill_missing_measurements_as_healthy(
    prediction: Prediction, healthy_prediction: Prediction, strength_count: int
) -> Prediction:
    """Returns the prediction for exactly the measurements of `healthy_prediction`; what a simulation did not show is as
    healthy.

    Hypotheses can only be compared when all of them predict the same measurements.
    """

    def repeat_for_strengths(healthy_values: Floats) -> Floats:
        return np.full(strength_count, healthy_values[0])

    rates = {
        phase: prediction.rates.get(phase, (repeat_for_strengths(mean), repeat_for_strengths(sd)))
        for phase, (mean, sd) in healthy_prediction.rates.items()
    }
    vectors = {
        key: prediction.vectors.get(
            key,
            VectorPrediction(
                repeat_for_strengths(item.inside),
                repeat_for_strengths(item.outside),
                repeat_for_strengths(item.inside_sd),
                repeat_for_strengths(item.outside_sd),
            ),
        )
        for key, item in healthy_prediction.vectors.items()
    }
    return Prediction(rates, vectors, {}, prediction.chance_rates)
