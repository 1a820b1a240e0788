# SPDX-License-Identifier: Apache-2.0
"""A diagnosis that is open: its state with the model of the machine, and the steps that a person can take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sonde.diagnose.archive_evidence import compare_run_environments
from sonde.diagnose.client_settings import SETTINGS_EXPERIMENT, find_recorded_settings
from sonde.diagnose.counter_evidence import CounterEvidence, compare_counters_of_runs
from sonde.diagnose.description import DiagnosisExperiment
from sonde.diagnose.diagnosis import (
    DiagnosisAnswer,
    DiagnosisStopRule,
    RankedHypothesis,
    build_answer,
    choose_next_experiment,
)
from sonde.diagnose.diagnosis_model import DiagnosisModel, HypothesisLibrary, build_diagnosis_model
from sonde.diagnose.diagnosis_state import DiagnosisState
from sonde.diagnose.diagnosis_text import (
    EvidenceRow,
    describe_answer,
    describe_answer_with_advice,
    describe_contradicting_repeats,
    describe_measured_changes,
    describe_results_after_fix,
    format_probability,
    list_evidence,
    list_passive_evidence,
)
from sonde.diagnose.event_evidence import select_events
from sonde.diagnose.hypotheses import FAULT_GRIDS, NOTHING
from sonde.diagnose.joint_change_evidence import find_latest_joint_drop
from sonde.diagnose.library import list_causes_for_machine_kind, list_experiments_for_machine_kind
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.limit_evidence import read_device_limits
from sonde.diagnose.machine_map import DiagnosedMachine, make_directory_machine, read_machine
from sonde.diagnose.measurements import (
    RunMeasurement,
    compute_median_measurement,
    measure_part_scatter,
    measure_scatter,
    subtract_reference,
)
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.next_experiment import ExperimentValue
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.second_cause import SECOND_CAUSE_STOP_RULE, TwoCauses, find_most_probable_pair
from sonde.diagnose.server_messages import MESSAGE_EXPERIMENT, describe_messages, find_messages
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.stated_machine import MachineModel, UnsimulatedMachine
from sonde.diagnose.stated_results import parse_stated_result
from sonde.diagnose.stored_runs import find_effect_sd, measure_relative_target_rates, measure_stored_run
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError, suggest_close_name
from sonde.model.event import Event
from sonde.model.system import read_system
from sonde.trends.survey import Survey

# Error of a single earlier run as the reference, in units of the noise of one run.
_SINGLE_REFERENCE_ERROR = 1.0
# A fix is confirmed from this probability on.
_MIN_FIXED_PROBABILITY = 0.95


@dataclass(frozen=True)
class NextChoice:
    """The experiment that is worth most, or None with the reason; and the values of all experiments."""

    experiment: str | None
    values: tuple[ExperimentValue, ...]
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {
            "next": self.experiment,
            "reason": self.reason,
            "experiments": [{"id": item.experiment, "bits": item.bits, "cost_s": item.cost_s} for item in self.values],
        }


@dataclass(frozen=True)
class Confirmation:
    """The deciding experiment after a fix, next to its result before."""

    experiment: str
    before: ExperimentResult
    after: ExperimentResult
    probability: float  # that the cause is gone, when both answers were equally probable before

    @property
    def is_fixed(self) -> bool:
        return self.probability >= _MIN_FIXED_PROBABILITY

    def describe(self) -> str:
        """Returns one sentence."""
        verdict = "The cause is gone" if self.is_fixed else "The cause is not known to be gone"
        probability = format_probability(self.probability)
        return (
            f"{verdict} ({probability}): {self.experiment} gave {describe_measured_changes(self.after)};"
            f" before the fix it gave {describe_measured_changes(self.before)}."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "is_fixed": self.is_fixed,
            "probability": self.probability,
            "before": dict(self.before.runs[-1].rates),
            "after": dict(self.after.runs[-1].rates),
        }


class DiagnosisSession:
    """A diagnosis with its model. Open one with `open`."""

    def __init__(self, state: DiagnosisState, model: DiagnosisModel, machine_model: MachineModel) -> None:
        self.state = state
        self.model = replace(
            model,
            environment=state.environment,
            counters=state.counters,
            joint_change=state.joint_change,
            events=state.events,
        )
        self._simulator = machine_model

    @classmethod
    def open_session(
        cls,
        state: DiagnosisState,
        cache_folder: Path | None,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> DiagnosisSession:
        """Simulates or reads what the hypotheses predict."""
        machine = cls.read_machine(state)
        simulator: MachineModel = Simulator(machine, cache_folder) if machine.targets else UnsimulatedMachine(machine)
        faults = frozenset(state.suspects or FAULT_GRIDS) if machine.targets else frozenset()
        library = HypothesisLibrary(
            list_causes_for_machine_kind(machine.machine_kind),
            list_experiments_for_machine_kind(machine.machine_kind),
            faults,
        )
        model = build_diagnosis_model(simulator.machine, simulator, state.noise, state.complaint, on_progress, library)
        return cls(state, model, simulator)

    @staticmethod
    def read_machine(state: DiagnosisState) -> DiagnosedMachine:
        """The machine that a state is about. Raises UserError."""
        if state.directory:
            return make_directory_machine(state.directory)
        return read_machine(read_system(find_system_file(state.system)), state.mount, state.most_targets)

    @property
    def mount_path(self) -> str:
        """Where the nodes have the file system."""
        return str(self.model.machine.document["mounts"][0].get("path", "/"))

    @property
    def posterior(self) -> Posterior:
        return self.model.compute_posterior(self.state.experiment_results)

    @property
    def answer(self) -> DiagnosisAnswer:
        """The answer after all results so far, without looking for further experiments."""
        return build_answer(self.model, self.state.experiment_results, DiagnosisStopRule(), self._closing_reason)

    _closing_reason = ""

    def choose_next(self, rule: DiagnosisStopRule) -> NextChoice:
        """Returns the next experiment. On the model, only experiments that need no person cost nothing to prefer."""
        value, values, reason = choose_next_experiment(
            self.model, self.posterior, self.state.experiment_results, rule, self.state.seed
        )
        self._closing_reason = reason
        ordered = tuple(values) if value is None else (value, *(item for item in values if item is not value))
        return NextChoice(value.experiment if value else None, ordered, reason)

    def run_on_model(self, experiment_id: str) -> ExperimentResult:
        """Does one repeat on the simulated machine and adds its result."""
        assert self.state.truth is not None
        result = self._simulate_planted_truth(self.state.truth, experiment_id, len(self.state.results))
        self.add_result(result, "model")
        return result

    def _simulate_planted_truth(self, truth: ModeledTruth, experiment_id: str, repeat_number: int) -> ExperimentResult:
        return truth.run_experiment(
            self.model.find_experiment(experiment_id), repeat_number, self._simulator, self.state.noise
        )

    def add_result(self, result: ExperimentResult, result_origin: str, is_after_fix: bool = False) -> None:
        """Adds a result. Raises UserError for an experiment that this machine cannot do, or was repeated too often."""
        self.model.find_experiment(result.experiment)
        if not is_after_fix:
            self.state.require_few_repeats(result.experiment)
        self.state = self.state.with_result(result, result_origin, is_after_fix)

    def add_stored_run(
        self, experiment: DiagnosisExperiment, run_folder: Path, reference_folders: Sequence[Path]
    ) -> None:
        """Adds a stored run of an experiment, compared with earlier ones. Raises UserError.

        Where several earlier runs scatter more than the noise of a run and of a part, the result is as uncertain.
        """
        kinds = self.model.find_experiment(experiment.id).vector_kinds
        measured, *earlier = (
            measure_stored_run(folder, experiment, kinds, self.model.machine)
            for folder in (run_folder, *reference_folders)
        )
        ratio = subtract_reference(measured, compute_median_measurement(earlier))
        if not ratio.rates:
            names = ", ".join(folder.name for folder in reference_folders)
            raise UserError(f"Runs {run_folder.name} and {names} have no phase of {experiment.id} in common.")
        noise = self.state.noise
        result = ExperimentResult(
            experiment.id,
            (ratio,),
            reference_sd=_SINGLE_REFERENCE_ERROR * noise.run_sd / math.sqrt(len(earlier)),
            scatter=measure_scatter(earlier, noise.run_sd),
            part_scatter=measure_part_scatter(earlier, noise.part_sd),
            effect_sd=find_effect_sd(run_folder),
        )
        if ratio.vectors:
            self.state = self.state.without_part_rates(run_folder.name)  # these rates of parts count once
        self.add_result(result, run_folder.name)

    def add_archive_runs(self, run_folder: Path, reference_folder: Path) -> list[str]:
        """Adds what two stored runs of any plan show; returns it in sentences. Raises UserError."""
        environment = compare_run_environments(run_folder, reference_folder)
        counters = self.state.counters.merge_observations(compare_counters_of_runs(run_folder, reference_folder))
        if self.state.directory:
            counters = counters.merge_observations(CounterEvidence(read_device_limits(self.state.directory)))
        self.state = replace(self.state, environment=environment, counters=counters)
        self.model = replace(self.model, environment=environment, counters=counters)
        hypotheses = self.model.hypotheses
        sentences = environment.describe(hypotheses) or ["The runs recorded no common facts about their machines."]
        sentences += counters.describe(hypotheses) or ["The runs have no counters; sample them with `sonde run`."]
        settings = find_recorded_settings(environment)
        is_askable = any(item.id == SETTINGS_EXPERIMENT for item in self.model.experiments)
        if settings and is_askable and not self.state.has_result(SETTINGS_EXPERIMENT):
            self.add_result(ExperimentResult(SETTINGS_EXPERIMENT, (RunMeasurement({}, {}, settings),)), run_folder.name)
            changed = ", ".join(name for name, is_changed in settings.items() if is_changed)
            sentences.append(f"Of the settings {', '.join(settings)} changed: {changed or 'none'}.")
        result = measure_relative_target_rates(run_folder, reference_folder, self.model.machine)
        if result is None and self.model.machine.targets:
            sentences.append("The runs have no direct phase with rates of this machine's targets in common.")
        elif result is not None and self.state.has_part_rates(run_folder.name):
            sentences.append(f"The rates of targets of {run_folder.name} were entered already and count once.")
        elif result is not None:
            self.add_result(result, run_folder.name)
            sentences.append(
                f"Rates of targets: {describe_measured_changes(result) or 'none deviates from its peers'}."
            )
        return sentences

    def add_joint_change(self, survey: Survey, since_time: float, until_time: float) -> str:
        """Adds the latest drop of several histories within an interval; returns it in a sentence."""
        change = find_latest_joint_drop(survey, since_time, until_time)
        self.state = replace(self.state, joint_change=change)
        self.model = replace(self.model, joint_change=change)
        return " ".join(change.describe(self.model.hypotheses)) or "No histories became slower together in that time."

    def add_events(self, events: Iterable[Event], since_s: float, until_s: float) -> list[str]:
        """Adds the events of an archive within an interval; returns those that count in sentences."""
        system = read_system(find_system_file(self.state.system)) if self.state.system else None
        evidence = select_events(events, since_s, until_s, system)
        self.state = replace(self.state, events=evidence)
        self.model = replace(self.model, events=evidence)
        return evidence.describe(self.model.hypotheses)

    def add_logs(self, logs: Sequence[Path]) -> str:
        """Adds which kinds of messages the logs of all servers have; returns it in a sentence. Raises UserError."""
        self.model.find_experiment(MESSAGE_EXPERIMENT)
        if self.state.has_result(MESSAGE_EXPERIMENT):
            raise UserError("The logs of servers were entered already; begin another diagnosis to replace them.")
        messages = find_messages(logs, self.model.machine)
        self.add_result(ExperimentResult(MESSAGE_EXPERIMENT, (RunMeasurement({}, {}, messages),)), "logs")
        answers = [f"{message_id}: {answer}" for message_id, answer in describe_messages(messages).items()]
        return f"Messages in the logs: {', '.join(answers)}."

    def describe_last_result(self) -> str:
        """Returns what the last experiment showed and what is most probable now."""
        result = self.state.results[-1].result
        title = self.model.find_experiment(result.experiment).description.title
        answer = build_answer(self.model, self.state.experiment_results, DiagnosisStopRule(), "")
        return f"{title}: {describe_measured_changes(result)}. {describe_answer(answer)[0]}"

    def describe_limits(self) -> list[str]:
        """Returns what the diagnosis cannot see, one sentence each."""
        machine, after_fix = self.model.machine, [item.result for item in self.state.results if item.confirms]
        sentences = describe_contradicting_repeats(self.state.experiment_results)
        sentences += describe_results_after_fix(after_fix)
        if machine.node_count > len(machine.nodes):
            used = f"{len(machine.nodes)} of {machine.node_count} nodes"
            sentences.append(f"Experiments use {used}; faults of other nodes do not show.")
        if machine.target_count > len(machine.targets):
            left_out = machine.target_count - len(machine.targets)
            sentences.append(
                f"This is a smaller machine of the same kind: {left_out} targets and what only they need are left out."
            )
        for evidence in self.model.passive_evidence.values():
            sentences += evidence.describe(self.model.hypotheses)
        if self.state.suspects:
            sentences.append(
                f"Of the faults of the model only these were considered: {', '.join(self.state.suspects)}."
            )
        if self.model.invisible:
            names = ", ".join(item.id for item in self.model.invisible)
            sentences.append(f"No experiment of the library would show: {names}.")
        if self.model.refused:
            sentences.append(f"The system file does not describe what these need: {', '.join(self.model.refused)}.")
        return sentences

    def find_candidate(self, hypothesis_name: str) -> RankedHypothesis:
        """Returns the hypothesis of that name. Raises UserError with the nearest name."""
        by_id = {candidate.hypothesis.id: candidate for candidate in self.answer.ranking}
        if hypothesis_name not in by_id:
            if hypothesis_name in self.model.refused:
                raise UserError(
                    f"{hypothesis_name} is no hypothesis for this machine: {self.model.refused[hypothesis_name]}."
                )
            raise UserError(
                f'There is no hypothesis "{hypothesis_name}"; `sonde diagnose show --json` lists '
                f"them.{suggest_close_name(hypothesis_name, by_id)}"
            )
        return by_id[hypothesis_name]

    def list_evidence_for_hypothesis(self, hypothesis_name: str) -> list[EvidenceRow]:
        """Returns the evidence for and against a hypothesis."""
        candidate = self.find_candidate(hypothesis_name)
        index = self.model.hypotheses.index(candidate.hypothesis)
        return [
            *list_passive_evidence(self.model, index),
            *list_evidence(self.model, self.state.experiment_results, index),
        ]

    def find_second_cause(self) -> tuple[TwoCauses, str | None]:
        """Returns two causes that explain the results together, and the next experiment. Raises UserError."""
        results = self.state.experiment_results
        causes = find_most_probable_pair(self.model, results) if results else None
        if causes is None:
            raise UserError("There is no result yet; do the experiment of `sonde diagnose next` first.")
        value, _ = causes.choose_next(SECOND_CAUSE_STOP_RULE, self.state.seed)
        return causes, value.experiment if value else None

    def confirm_fix(self, fix_changes: Sequence[str]) -> Confirmation:
        """Repeats the experiment that spoke most for the answer, after a fix. Raises UserError."""
        before = self.find_deciding_result()
        description = self.model.find_experiment(before.experiment).description
        if self.state.truth is not None:
            fixed = replace(self.state.truth, faults=(), cause=None)
            after, origin = self._simulate_planted_truth(fixed, before.experiment, len(self.state.results)), "model"
        else:
            if not fix_changes:
                phases = " ".join(f"{phase}=CHANGE" for phase in before.runs[-1].rates)
                raise UserError(
                    f"Repeat {before.experiment} and enter its result: sonde diagnose confirm FILE {phases}"
                )
            after, origin = parse_stated_result(description, fix_changes, self.model.machine), "hand"
        self.add_result(after, origin, is_after_fix=True)
        return Confirmation(before.experiment, before, after, self._compute_fixed_probability(after))

    def _compute_fixed_probability(self, result_after_fix: ExperimentResult) -> float:
        """Compares a healthy machine with the first hypothesis as it is known from the results before the fix."""
        hypotheses = self.model.hypotheses
        densities = self.model.compute_log_densities(result_after_fix)
        healthy = next(index for index, item in enumerate(hypotheses) if item.kind == NOTHING)
        first = hypotheses.index(self.answer.most_probable.hypothesis)
        weights = self.posterior.log_weights[first]
        still = np.logaddexp.reduce(weights - np.logaddexp.reduce(weights, axis=None) + densities[first], axis=None)
        healthy_density = float(densities[healthy][0, 0])
        return float(1 / (1 + np.exp(np.clip(still - healthy_density, -700, 700))))

    def find_deciding_result(self) -> ExperimentResult:
        """Returns the result that speaks most for the first hypothesis. Raises UserError without results."""
        earlier = self.state.experiment_results
        if not earlier or self.answer.most_probable.hypothesis.kind == NOTHING:
            raise UserError("There is no cause to confirm yet; do the experiments of `sonde diagnose next` first.")
        index = self.model.hypotheses.index(self.answer.most_probable.hypothesis)
        rows = list_evidence(self.model, earlier, index)
        return earlier[int(np.argmax([row.factor for row in rows]))]

    def to_json(self) -> dict[str, Any]:
        """The answer as a document."""
        answer = self.answer
        return {
            "status": answer.status,
            "sentences": [*describe_answer_with_advice(self.model, self.posterior, answer), *self.describe_limits()],
            "entropy_bits": self.posterior.entropy_bits,
            "experiments": [item.result.experiment for item in self.state.results],
            "categories": dict(self.posterior.sum_probabilities_by_category()),
            "ranking": [item.to_json() for item in answer.ranking],
        }
