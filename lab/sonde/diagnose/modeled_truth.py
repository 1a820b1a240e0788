# SPDX-License-Identifier: Apache-2.0
"""A machine whose truth is known, for tests and training: the model with faults or a cause switched on, and noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from sonde.diagnose.cause_predictions import compute_cause_change
from sonde.diagnose.client_settings import CHANGED_AS_CAUSE, CHANGED_BY_CHANCE, changes_setting
from sonde.diagnose.counter_experiments import compute_chance_of_observation
from sonde.diagnose.description import CauseFile
from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.hypotheses import FAULT_GRIDS, FaultGrid
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement, compute_median_measurement, subtract_reference
from sonde.diagnose.network_streams import compute_stream_change, is_stream
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.server_messages import (
    LOGGED_WITH_CAUSE,
    SIMULATED_WITH,
    compute_chance_of_message,
    list_message_names,
)
from sonde.diagnose.simulation import SimulationRequest
from sonde.diagnose.stated_machine import MachineModel
from sonde.model.errors import UserError

# Seeds of the planted machine differ from those of predictions. There are few, so that the cache has them.
_FIRST_SEED, _SEEDS = 101, 3
_REFERENCE_RUNS = 20
# Simulated to have faults checked.
_CHEAP_EXPERIMENT = "one-client"


@dataclass(frozen=True)
class ModeledTruth:
    """Faults as the simulator reads them, or a cause with its strength from 0 to 1; and the seed of the noise."""

    faults: tuple[str, ...] = ()
    cause: CauseFile | None = None
    strength: float = 0.5
    seed: int = 1

    def run_experiment(
        self, experiment: ScaledExperiment, repeat_number: int, machine_model: MachineModel, noise_model: NoiseModel
    ) -> ExperimentResult:
        """Returns the result of one repeat; the same seed and `repeat_number` give the same result."""
        generator = np.random.default_rng([self.seed, repeat_number, *experiment.id.encode()])
        if experiment.description.yes_or_no_phases:
            return self._answer_questions(experiment, machine_model, generator)
        if experiment.description.is_contrast:
            return self._simulate_contrast(experiment, repeat_number, machine_model, noise_model, generator)
        run = self._simulate_repeat(experiment, repeat_number, machine_model)
        healthy = compute_median_measurement(
            [_require_measurement(machine_model, experiment, (), _FIRST_SEED + index) for index in range(_SEEDS)]
        )
        ratio = subtract_reference(run, healthy)
        factors = noise_model.draw_run_deviations(generator, len(ratio.rates))
        rates = {phase: value + factors[index] for index, (phase, value) in enumerate(ratio.rates.items())}
        # The reference is the median of earlier runs with noise of their own, the same for all repeats.
        earlier = np.random.default_rng([self.seed, *experiment.id.encode()])
        error = earlier.normal(0.0, noise_model.run_sd * sqrt(np.pi / 2 / _REFERENCE_RUNS), len(rates))
        rates = {phase: value - error[index] for index, (phase, value) in enumerate(rates.items())}
        if self.cause is not None:
            rates = {phase: value + self._compute_change(experiment, phase) for phase, value in rates.items()}
        vectors = {}
        for key, values in ratio.vectors.items():
            factors_by_part = dict(zip(values, noise_model.draw_part_deviations(generator, len(values)), strict=True))
            vectors[key] = {name: value + float(factors_by_part[name]) for name, value in values.items()}
        measurement = RunMeasurement({phase: float(value) for phase, value in rates.items()}, vectors)
        reference_sd = noise_model.run_sd * sqrt(np.pi / 2 / _REFERENCE_RUNS)
        return ExperimentResult(experiment.id, (measurement,), reference_sd)

    def check_faults(self, machine_model: MachineModel) -> None:
        """Raises UserError when the simulator refuses a fault: its name, its part or its amount."""
        _require_measurement(machine_model, _scale_experiment(_CHEAP_EXPERIMENT, machine_model), self.faults, 1)

    def _simulate_repeat(
        self, experiment: ScaledExperiment, repeat_number: int, machine_model: MachineModel
    ) -> RunMeasurement:
        return _require_measurement(machine_model, experiment, self.faults, _FIRST_SEED + repeat_number % _SEEDS)

    def _answer_questions(
        self, experiment: ScaledExperiment, machine_model: MachineModel, generator: np.random.Generator
    ) -> ExperimentResult:
        """Messages that the simulated servers logged, or settings that faults changed; some are missing, and some have
        other reasons."""
        phases = experiment.description.yes_or_no_phases
        logged: Mapping[str, bool] = {}
        if any(phase.rules for phase in phases):
            simulated_with = _scale_experiment(SIMULATED_WITH, machine_model)
            logged = _require_measurement(machine_model, simulated_with, self.faults, _FIRST_SEED).messages
        probabilities = {}
        for phase in phases:
            if phase.setting:
                is_changed = any(changes_setting(fault, phase.setting) for fault in self.faults)
                probabilities[phase.id] = CHANGED_AS_CAUSE if is_changed else CHANGED_BY_CHANCE
                continue
            if phase.counter:
                probabilities[phase.id] = compute_chance_of_observation(phase.counter, self._list_observations())
                continue
            names = list_message_names(phase.id, phase.part_kind, machine_model.machine)
            for name in names:
                is_logged = logged.get(name) or logged.get(phase.id)
                probabilities[name] = LOGGED_WITH_CAUSE if is_logged else compute_chance_of_message(len(names))
        messages = {name: bool(generator.random() < probability) for name, probability in probabilities.items()}
        return ExperimentResult(experiment.id, (RunMeasurement({}, {}, messages),))

    def _list_observations(self) -> list[str]:
        """Names of what the counters of this machine show."""
        of_faults = [name for fault in self.faults if (grid := _find_grid(fault)) for name in grid.counters]
        return [*of_faults, *(self.cause.counters if self.cause is not None else ())]

    def _compute_change(self, experiment: ScaledExperiment, phase: str) -> float:
        """The change that the cause makes to a phase; of a contrast its ratio."""
        assert self.cause is not None
        change = compute_cause_change(self.cause, experiment.description, phase)
        return float(np.interp(self.strength, np.linspace(0, 1, len(change)), change))

    def _simulate_contrast(
        self,
        experiment: ScaledExperiment,
        repeat_number: int,
        machine_model: MachineModel,
        noise_model: NoiseModel,
        generator: np.random.Generator,
    ) -> ExperimentResult:
        """A contrast: both sides have noise, and only one has faults that the contrast removes."""
        rates = {}
        for phase in experiment.description.phases:
            change = self._compute_change(experiment, phase.id) if self.cause is not None else 0.0
            changed = set(phase.against or ())
            removed = tuple(fault for fault in self.faults if changed & set(_find_grid_traits(fault)))
            streams = [compute_stream_change(*_split_fault(fault)) for fault in removed if is_stream(phase)]
            of_links = [item for item in streams if item is not None]
            change += sum(of_links)
            if removed and phase.like and len(of_links) < len(removed):
                name, _, like_phase = phase.like.partition(".")
                like = _scale_experiment(name, machine_model)
                run = _require_measurement(machine_model, like, removed, _FIRST_SEED + repeat_number % _SEEDS)
                healthy = _require_measurement(machine_model, like, (), _FIRST_SEED + repeat_number % _SEEDS)
                change += subtract_reference(run, healthy).rates[like_phase]
            # Both sides are repeated in turns, and the better half of each is compared, so load by others cancels.
            rates[phase.id] = change + float(generator.normal(0.0, noise_model.run_sd))
        return ExperimentResult(experiment.id, (RunMeasurement(rates),))


def _scale_experiment(experiment_id: str, machine_model: MachineModel) -> ScaledExperiment:
    from sonde.diagnose.experiment_plan import scale_experiment_to_machine

    return scale_experiment_to_machine(find_diagnosis_experiment(experiment_id), machine_model.machine)


def _split_fault(fault: str) -> tuple[str, str]:
    """The name of a fault and its amount, without its part."""
    texts = fault.split()
    return texts[0], texts[-1]


def _find_grid(fault: str) -> FaultGrid | None:
    texts = fault.split()
    return FAULT_GRIDS.get(" ".join(texts[:2])) or FAULT_GRIDS.get(texts[0])


def _find_grid_traits(fault: str) -> tuple[str, ...]:
    grid = _find_grid(fault)
    return grid.absent_with if grid else ()


def _require_measurement(
    machine_model: MachineModel, experiment: ScaledExperiment, faults: tuple[str, ...], seed: int
) -> RunMeasurement:
    result = machine_model.simulate_request(SimulationRequest(experiment, faults, seed))
    if isinstance(result, str):
        raise UserError(result[:1].upper() + result[1:] + ("" if result.endswith(".") else "."))
    return result
