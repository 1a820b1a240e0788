# SPDX-License-Identifier: Apache-2.0
"""Everything that a diagnosis knows before its first result: hypotheses, experiments and what the first predict for the
second."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from sonde.diagnose.archive_evidence import EnvironmentEvidence
from sonde.diagnose.cause_predictions import predict_cause
from sonde.diagnose.contrast_predictions import predict_fault_in_contrast
from sonde.diagnose.counter_evidence import CounterEvidence
from sonde.diagnose.description import DEFAULT_TRAITS, CauseFile, DiagnosisExperiment
from sonde.diagnose.event_evidence import EventEvidence
from sonde.diagnose.experiment_plan import ScaledExperiment, is_predictable, scale_experiment_to_machine
from sonde.diagnose.hypotheses import (
    CAUSE,
    FAULT,
    FAULT_GRIDS,
    NOTHING,
    UNEXPLAINED,
    Hypothesis,
    assign_priors,
    list_hypotheses,
)
from sonde.diagnose.joint_change_evidence import JointChangeEvidence
from sonde.diagnose.library import list_causes_for_machine_kind, list_experiments_for_machine_kind
from sonde.diagnose.likelihood import ExperimentResult, PartMasks, compute_joint_log_density
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import RunMeasurement, compute_healthy_spread
from sonde.diagnose.network_streams import is_stream
from sonde.diagnose.next_experiment import compute_cost_s
from sonde.diagnose.node_predictions import add_uneven_nodes
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.predictions import (
    Prediction,
    SimulatedEffect,
    add_healthy_spread_to_prediction,
    compute_simulated_effect,
    count_strengths,
    fill_missing_measurements_as_healthy,
    interpolate_effects,
    predict_healthy_machine,
    predict_messages,
)
from sonde.diagnose.server_messages import SIMULATED_WITH
from sonde.diagnose.simulation import SimulationRequest
from sonde.diagnose.stated_machine import MachineModel
from sonde.diagnose.unknown_causes import UnknownCauses, draw_unknown_causes
from sonde.model.errors import UserError
from sonde.stats.ranks import Floats

# A repeat on a real machine takes about this long where the model only knows the time of the transfer.
_MIN_RUN_S = 60.0
# Healthy machines of different seeds say how much runs differ by chance.
_HEALTHY_SEEDS = 3
# Strengths within the noise are no cause of a complaint: "nothing" stands for them.
_INVISIBLE_SHARE = 1e-6
HealthySpread = tuple[Mapping[str, float], Mapping[tuple[str, str], float]]


class PassiveEvidence(Protocol):
    """Evidence from the archive, logs and events, for which no experiment is run."""

    def compute_log_factor(self, hypothesis: Hypothesis) -> float:
        """Logarithm of the factor on the probability of a hypothesis."""
        ...

    def describe(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Sentences on the evidence and on what it does not decide; empty without evidence."""
        ...


@dataclass(frozen=True)
class DiagnosisModel:
    """`predictions` has one list for each experiment, in the order of the hypotheses. `refused` are faults that this
    machine cannot have, with the sentence of the simulator; `invisible` those that no experiment would show."""

    machine: DiagnosedMachine
    noise: NoiseModel
    hypotheses: tuple[Hypothesis, ...]
    experiments: tuple[ScaledExperiment, ...]
    predictions: Mapping[str, Sequence[Prediction]]
    unknown_causes: UnknownCauses
    refused: Mapping[str, str]
    invisible: tuple[Hypothesis, ...]
    environment: EnvironmentEvidence = field(default_factory=EnvironmentEvidence)
    counters: CounterEvidence = field(default_factory=CounterEvidence)
    joint_change: JointChangeEvidence = field(default_factory=JointChangeEvidence)
    events: EventEvidence = field(default_factory=EventEvidence)

    @property
    def passive_evidence(self) -> Mapping[str, PassiveEvidence]:
        """Evidence for which no experiment is run, by name."""
        return {
            "facts of both runs": self.environment,
            "counters of both runs": self.counters,
            "joint changes of histories": self.joint_change,
            "events between both runs": self.events,
        }

    def remove_hypotheses_of_fault(self, fault_kind: str) -> DiagnosisModel:
        """Returns the model without the hypotheses of a fault, for trials of faults that none covers."""
        remaining = [item for item in self.hypotheses if item.fault != fault_kind]
        positions = {item.id: index for index, item in enumerate(self.hypotheses)}
        predictions = {
            item.id: {name: values[positions[item.id]] for name, values in self.predictions.items()}
            for item in remaining
        }
        return assemble_diagnosis_model(
            self.machine, self.noise, self.experiments, remaining, predictions, self.refused
        )

    @cached_property
    def part_masks(self) -> tuple[PartMasks, ...]:
        """The parts of each hypothesis."""
        return tuple(PartMasks(hypothesis, self.machine) for hypothesis in self.hypotheses)

    @cached_property
    def prior_probabilities(self) -> Posterior:
        """The probabilities before any result of an experiment."""
        prior = Posterior.from_priors(
            self.hypotheses,
            [
                self.unknown_causes.prior_shares
                if item.kind == UNEXPLAINED
                else self._compute_prior_of_strengths(index, item)
                for index, item in enumerate(self.hypotheses)
            ],
        )
        for evidence in self.passive_evidence.values():
            prior = prior.multiply_by_densities(
                [np.full((1, 1), evidence.compute_log_factor(item)) for item in self.hypotheses]
            )
        return prior

    def _compute_prior_of_strengths(self, hypothesis_index: int, hypothesis: Hypothesis) -> Floats:
        """Divides a hypothesis equally among its strengths that change a rate by more than the noise."""
        if hypothesis.kind not in (FAULT, CAUSE):
            return np.ones(1)
        weights = np.maximum(self.find_visible_strengths(hypothesis_index), _INVISIBLE_SHARE)
        return np.asarray(weights / np.sum(weights))

    def find_visible_strengths(self, hypothesis_index: int) -> Floats:
        """Returns for each strength of a hypothesis 1 where some experiment with files shows it, else 0."""
        predictions = {name: values[hypothesis_index] for name, values in self.predictions.items()}
        return _find_strengths_visible_in_files(self.experiments, predictions, self.noise)

    def find_experiment(self, experiment_id: str) -> ScaledExperiment:
        """The experiment of that name. Raises UserError when it is not for this machine."""
        for item in self.experiments:
            if item.id == experiment_id:
                return item
        names = ", ".join(item.id for item in self.experiments)
        raise UserError(f"The experiment {experiment_id} cannot be done on {self.machine.mount}; there are {names}.")

    def get_healthy_prediction(self, experiment_id: str) -> Prediction:
        """The prediction of a machine without faults."""
        index = next(index for index, item in enumerate(self.hypotheses) if item.kind == NOTHING)
        return self.predictions[experiment_id][index]

    def compute_log_densities(self, result: ExperimentResult) -> list[Floats]:
        """Log densities of a result under each hypothesis."""
        experiment = self.find_experiment(result.experiment)
        healthy = add_healthy_spread_to_prediction(
            self.get_healthy_prediction(result.experiment), result.scatter, result.part_scatter
        )
        return [
            compute_joint_log_density(
                hypothesis,
                add_healthy_spread_to_prediction(prediction, result.scatter, result.part_scatter),
                healthy,
                result.runs,
                masks,
                experiment,
                self.noise,
                result.reference_sd,
                result.part_sd,
                result.effect_sd,
            )
            for hypothesis, prediction, masks in zip(
                self.hypotheses, self.predictions[result.experiment], self.part_masks, strict=True
            )
        ]

    def compute_posterior(self, results: Sequence[ExperimentResult]) -> Posterior:
        """The probabilities after these results. Runs of one experiment may be divided among several results."""
        posterior = self.prior_probabilities
        for result in merge_results_by_experiment(results):
            posterior = posterior.multiply_by_densities(self.compute_log_densities(result))
        return posterior

    def compute_cost_s(self, experiment_id: str) -> float:
        """Cost of one repeat in seconds."""
        return compute_cost_s(self.find_experiment(experiment_id).description, _MIN_RUN_S)


@dataclass(frozen=True)
class HypothesisLibrary:
    """Causes, experiments and faults that a diagnosis considers."""

    causes: Sequence[CauseFile]
    experiments: Sequence[DiagnosisExperiment]
    faults: Collection[str] = frozenset(FAULT_GRIDS)


def _find_strengths_visible_in_files(
    experiments: Sequence[ScaledExperiment], predictions: Mapping[str, Prediction], noise_model: NoiseModel
) -> Floats:
    """A complaint is about files: what only slows a stream without storage is no cause of it."""
    with_files = [item.id for item in experiments if not any(is_stream(phase) for phase in item.description.phases)]
    flags = np.broadcast_arrays(*(predictions[name].find_strengths_above_noise(noise_model) for name in with_files))
    return np.asarray(np.max(np.stack(flags), axis=0))


def merge_results_by_experiment(results: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """Joins the runs of each experiment: "unexplained" has one unknown change for all of them."""
    merged: dict[tuple[object, ...], ExperimentResult] = {}
    for result in results:
        key = result.experiment, *result.get_errors()
        earlier = merged.get(key)
        runs = (*(earlier.runs if earlier else ()), *result.runs)
        merged[key] = replace(result, runs=runs)
    return list(merged.values())


def is_within_complaint(cause: CauseFile, complaint: Mapping[str, str]) -> bool:
    """Whether the cause can slow what the complaint is about: none of its traits contradicts those of the complaint."""
    traits = {**DEFAULT_TRAITS, **complaint}
    return any(
        all(traits.get(name, value) == value for name, value in effect.traits.items() if name != "medium")
        for effect in cause.effects
    )


def build_diagnosis_model(
    machine: DiagnosedMachine,
    machine_model: MachineModel,
    noise_model: NoiseModel,
    complaint: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    hypothesis_library: HypothesisLibrary | None = None,
) -> DiagnosisModel:
    """Simulates what each hypothesis predicts for each experiment; from the cache where it was simulated before."""
    hypothesis_library = hypothesis_library or HypothesisLibrary(
        list_causes_for_machine_kind(machine.machine_kind), list_experiments_for_machine_kind(machine.machine_kind)
    )
    experiments = tuple(
        scale_experiment_to_machine(item, machine)
        for item in hypothesis_library.experiments
        if is_predictable(item, machine)
    )
    eligible = [cause for cause in hypothesis_library.causes if is_within_complaint(cause, complaint or {})]
    hypotheses = [
        item for item in list_hypotheses(machine, eligible) if not item.fault or item.fault in hypothesis_library.faults
    ]
    simulated = [item for item in experiments if not item.description.is_contrast]
    effects, spreads, refused = simulate_faults(hypotheses, simulated, machine_model, on_progress)
    candidates = [item for item in hypotheses if item.id not in refused]
    predictions: dict[str, dict[str, Prediction]] = {item.id: {} for item in candidates}
    for experiment in [*simulated, *(item for item in experiments if item.description.is_contrast)]:
        for item in candidates:
            prediction = _predict_result(item, experiment, machine, effects, predictions[item.id])
            predictions[item.id][experiment.id] = add_healthy_spread_to_prediction(
                prediction, *spreads.get(experiment.id, ({}, {}))
            )
    return assemble_diagnosis_model(machine, noise_model, experiments, candidates, predictions, refused)


def assemble_diagnosis_model(
    machine: DiagnosedMachine,
    noise_model: NoiseModel,
    experiments: tuple[ScaledExperiment, ...],
    candidate_hypotheses: Sequence[Hypothesis],
    predictions: Mapping[str, Mapping[str, Prediction]],
    refused_faults: Mapping[str, str],
) -> DiagnosisModel:
    """Returns the model of hypotheses that some experiment shows; `predictions` are by hypothesis and experiment."""
    visible = [
        item
        for item in candidate_hypotheses
        if item.kind not in (FAULT, CAUSE)
        or np.any(_find_strengths_visible_in_files(experiments, predictions[item.id], noise_model))
    ]
    final = assign_priors(visible)
    covered = [predictions[item.id] for item in final if item.kind != UNEXPLAINED]
    described = [effect.traits for item in final if item.cause is not None for effect in item.cause.effects]
    unknown = draw_unknown_causes(experiments, predictions[NOTHING], covered, noise_model, described)

    def get_prediction(hypothesis: Hypothesis, experiment_id: str) -> Prediction:
        is_covered = hypothesis.kind != UNEXPLAINED or bool(predictions[UNEXPLAINED][experiment_id].messages)
        return predictions[hypothesis.id][experiment_id] if is_covered else unknown.predictions[experiment_id]

    return DiagnosisModel(
        machine=machine,
        noise=noise_model,
        hypotheses=final,
        experiments=experiments,
        predictions={item.id: [get_prediction(hypothesis, item.id) for hypothesis in final] for item in experiments},
        unknown_causes=unknown,
        refused=refused_faults,
        invisible=tuple(item for item in candidate_hypotheses if item not in visible),
    )


def simulate_faults(
    hypotheses: Sequence[Hypothesis],
    experiments: Sequence[ScaledExperiment],
    machine_model: MachineModel,
    on_progress: Callable[[int, int], None],
) -> tuple[dict[tuple[str, str], list[SimulatedEffect]], dict[str, HealthySpread], dict[str, str]]:
    """Returns effects by (hypothesis, experiment), weakest first, the spread of healthy machines by experiment, and the
    reason for each fault that was refused."""
    faults = [item for item in hypotheses if item.kind == FAULT]
    # The first experiment is cheap and shows which faults the machine can have.
    first = experiments[0]
    checks = [
        SimulationRequest(first, (item.format_fault_argument(item.strength_grid.amounts[-1], item.members[0]),))
        for item in faults
    ]
    answers = machine_model.simulate_requests(checks, on_progress)
    refused = {item.id: answer for item, answer in zip(faults, answers, strict=True) if isinstance(answer, str)}
    jobs = [
        (item, experiment, amount, seed)
        for item in faults
        if item.id not in refused
        for experiment in experiments
        for amount in item.strength_grid.amounts
        for seed in range(1, item.strength_grid.seeds + 1)
    ]
    max_seeds = max((item.strength_grid.seeds for item in faults), default=0)
    max_seeds = max(max_seeds, _HEALTHY_SEEDS)
    base = [(experiment, seed) for experiment in experiments for seed in range(1, max_seeds + 1)]
    requests = [SimulationRequest(experiment, (), seed) for experiment, seed in base]
    requests += [
        SimulationRequest(experiment, (item.format_fault_argument(amount, item.members[0]),), seed)
        for item, experiment, amount, seed in jobs
    ]
    measured = [
        item for item in machine_model.simulate_requests(requests, on_progress) if isinstance(item, RunMeasurement)
    ]
    healthy = {(key[0].id, key[1]): value for key, value in zip(base, measured, strict=False)}
    runs: dict[tuple[str, str], dict[str, list[RunMeasurement]]] = {}
    for (item, experiment, amount, _), value in zip(jobs, measured[len(base) :], strict=True):
        runs.setdefault((item.id, experiment.id), {}).setdefault(amount, []).append(value)
    by_id = {item.id: item for item in faults}
    effects = {
        key: [
            compute_simulated_effect(
                values,
                [healthy[key[1], seed] for seed in range(1, len(values) + 1)],
                *_get_first_parts(by_id[key[0]]),
            )
            for values in by_amount.values()
        ]
        for key, by_amount in runs.items()
    }
    spreads: dict[str, HealthySpread] = {
        experiment.id: compute_healthy_spread([healthy[experiment.id, seed] for seed in range(1, max_seeds + 1)])
        for experiment in experiments
    }
    return effects, spreads, refused


def _get_first_parts(hypothesis: Hypothesis) -> tuple[frozenset[str], frozenset[str]]:
    group = hypothesis.group
    return (group.targets[0], group.nodes[0]) if group else (frozenset(), frozenset())


def _predict_result(
    hypothesis: Hypothesis,
    experiment: ScaledExperiment,
    machine: DiagnosedMachine,
    effects: Mapping[tuple[str, str], list[SimulatedEffect]],
    earlier_predictions: Mapping[str, Prediction],
) -> Prediction:
    description = experiment.description
    keys = () if description.is_contrast else experiment.vector_keys
    if description.yes_or_no_phases:
        return predict_messages(description, machine, hypothesis, effects.get((hypothesis.id, SIMULATED_WITH), []))
    if hypothesis.cause is not None:
        return predict_cause(hypothesis.cause, description, keys)
    if hypothesis.kind != FAULT:
        return predict_healthy_machine(description, keys)
    if description.is_contrast:
        like = description.phases[0].like.partition(".")[0]
        return predict_fault_in_contrast(hypothesis, description, earlier_predictions.get(like))
    prediction = interpolate_effects(effects[hypothesis.id, experiment.id], hypothesis.strength_grid.amounts)
    complete = fill_missing_measurements_as_healthy(
        prediction, predict_healthy_machine(description, keys), count_strengths(hypothesis)
    )
    return add_uneven_nodes(complete, effects[hypothesis.id, experiment.id][-1], hypothesis)
