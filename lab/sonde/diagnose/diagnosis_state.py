# SPDX-License-Identifier: Apache-2.0
"""The state of a diagnosis in one JSON file, replaced atomically: a kill loses at most the experiment in progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

from sonde.diagnose.archive_evidence import EnvironmentEvidence
from sonde.diagnose.counter_evidence import CounterEvidence
from sonde.diagnose.description import DEFAULT_TRAITS
from sonde.diagnose.event_evidence import EventEvidence
from sonde.diagnose.hypotheses import FAULT_GRIDS
from sonde.diagnose.joint_change_evidence import JointChangeEvidence
from sonde.diagnose.library import list_causes, list_causes_for_machine_kind, list_diagnosis_experiments
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.simulation import Simulator
from sonde.model.confined_files import read_json_file, write_json_file
from sonde.model.errors import MachineError, UserError, suggest_close_name

_STATE_FORMAT = "sonde-diagnosis/1"
# Repeats of an experiment. Which of them other load slowed is summed over, so each doubles the computation.
_MAX_REPEATS = 6
_MAX_LOG_RATIO = 700.0  # its exponential is still a number


@dataclass(frozen=True)
class DiagnosisResult:
    """A result with its origin (`model`, `hand` or the id of a run), and whether it confirms a fix."""

    result: ExperimentResult
    origin: str
    confirms: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.result.experiment,
            "runs": [run.to_json() for run in self.result.runs],
            "reference_sd": self.result.reference_sd,
            "part_sd": self.result.part_sd,
            "scatter": dict(self.result.scatter),
            "effect_sd": self.result.effect_sd,
            "part_scatter": [[*key, value] for key, value in self.result.part_scatter.items()],
            "origin": self.origin,
            "confirms": self.confirms,
        }

    @classmethod
    def from_json(cls, result_document: Mapping[str, Any]) -> DiagnosisResult:
        runs = tuple(RunMeasurement.from_json(run) for run in result_document["runs"])
        result = ExperimentResult(
            str(result_document["experiment"]),
            runs,
            float(result_document["reference_sd"]),
            float(result_document.get("part_sd", 0)),
            {str(phase): float(value) for phase, value in result_document.get("scatter", {}).items()},
            float(result_document.get("effect_sd", 0)),
            {(str(phase), str(kind)): float(value) for phase, kind, value in result_document.get("part_scatter", ())},
        )
        return cls(result, str(result_document["origin"]), bool(result_document["confirms"]))


def _check_numbers(results: Sequence[DiagnosisResult], noise: NoiseModel) -> None:
    """Raises ValueError for numbers that no measurement has: a probability must not follow from them."""
    if not (
        0 < noise.run_sd < inf and 0 < noise.busy_sd < inf and 0 < noise.part_sd < inf and isfinite(noise.busy_shift)
    ):
        raise ValueError("a standard deviation of its noise is not a number above 0")
    if not 0 < noise.busy_share < 1:
        raise ValueError("busy_share of its noise is not between 0 and 1")
    for number, stored in enumerate(results, start=1):
        result = stored.result
        changes = [value for run in result.runs for value in run.rates.values()]
        changes += [value for run in result.runs for parts in run.vectors.values() for value in parts.values()]
        errors = [result.reference_sd, result.part_sd, result.effect_sd]
        errors += [*result.scatter.values(), *result.part_scatter.values()]
        if not result.runs:
            raise ValueError(f"result {number} has no run")
        if not all(abs(value) <= _MAX_LOG_RATIO for value in changes):
            raise ValueError(f"result {number} has a change that is no finite number")
        if not all(0 <= value < inf for value in errors):
            raise ValueError(f"result {number} has an error that is no number of at least 0")


@dataclass(frozen=True)
class DiagnosisState:
    """Stored state of a diagnosis: machine, complaint, results. `truth` is set in a trial on the model."""

    system: str = ""
    mount: str = ""
    most_targets: int = 0  # of a smaller machine of the same kind; 0: all
    complaint: Mapping[str, str] = field(default_factory=dict)
    suspects: tuple[str, ...] = ()  # faults of the model that are considered; empty: all
    seed: int = 1
    noise: NoiseModel = field(default_factory=NoiseModel)
    truth: ModeledTruth | None = None
    results: tuple[DiagnosisResult, ...] = ()
    environment: EnvironmentEvidence = field(default_factory=EnvironmentEvidence)
    counters: CounterEvidence = field(default_factory=CounterEvidence)
    joint_change: JointChangeEvidence = field(default_factory=JointChangeEvidence)
    events: EventEvidence = field(default_factory=EventEvidence)
    directory: str = ""  # a local one, instead of a system file

    @property
    def experiment_results(self) -> list[ExperimentResult]:
        """Results that the probabilities follow from: those after a fix belong to another machine."""
        return [item.result for item in self.results if not item.confirms]

    def require_few_repeats(self, experiment_id: str) -> None:
        """Raises UserError when an experiment has so many results that a further one changes little."""
        repeats = sum(len(item.runs) for item in self.experiment_results if item.experiment == experiment_id)
        if repeats >= _MAX_REPEATS:
            raise UserError(
                f"{experiment_id} has {repeats} results, and what is predicted has the same error in each: more of them"
                " hardly change the answer. Do another experiment; `sonde diagnose next` names one."
            )

    def with_result(self, result: ExperimentResult, result_origin: str, is_after_fix: bool = False) -> DiagnosisState:
        """Returns the state with one more result."""
        return replace(self, results=(*self.results, DiagnosisResult(result, result_origin, is_after_fix)))

    def has_result(self, experiment_id: str) -> bool:
        """Whether a result of this experiment was entered."""
        return any(item.result.experiment == experiment_id for item in self.results)

    def has_part_rates(self, run_id: str) -> bool:
        """Whether rates of single parts of this run were entered."""
        return any(item.origin == run_id and any(run.vectors for run in item.result.runs) for item in self.results)

    def without_part_rates(self, run_id: str) -> DiagnosisState:
        """Returns the state without results of a run that have rates of single parts and none of phases."""
        remaining = (
            item
            for item in self.results
            if item.origin != run_id or any(run.rates or not run.vectors for run in item.result.runs)
        )
        return replace(self, results=tuple(remaining))

    def to_json(self) -> dict[str, Any]:
        """The state as a document."""
        truth = self.truth and {
            "faults": list(self.truth.faults),
            "cause": self.truth.cause.id if self.truth.cause else "",
            "strength": self.truth.strength,
            "seed": self.truth.seed,
        }
        return {
            "schema": _STATE_FORMAT,
            "system": self.system,
            "mount": self.mount,
            "most_targets": self.most_targets,
            "complaint": dict(self.complaint),
            "suspects": list(self.suspects),
            "seed": self.seed,
            "noise": asdict(self.noise),
            "truth": truth,
            "results": [item.to_json() for item in self.results],
            "environment": self.environment.to_json(),
            "counters": self.counters.to_json(),
            "joint_change": self.joint_change.to_json(),
            "events": self.events.to_json(),
            "directory": self.directory,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> DiagnosisState:
        """The state from its document. Raises ValueError, TypeError, KeyError or AttributeError for another form."""
        if document.get("schema") != _STATE_FORMAT:
            raise ValueError(f'its schema is not "{_STATE_FORMAT}"')
        stored = document["truth"]
        truth = stored and make_truth(stored["faults"], stored["cause"], stored["strength"], stored["seed"])
        results = tuple(DiagnosisResult.from_json(item) for item in document["results"])
        noise = NoiseModel(**{name: float(value) for name, value in document["noise"].items()})
        _check_numbers(results, noise)
        names = {item.id for item in list_diagnosis_experiments()}
        for item in results:
            if item.result.experiment not in names:
                raise ValueError(f'there is no diagnosis experiment "{item.result.experiment}"')
        return cls(
            system=str(document["system"]),
            mount=str(document["mount"]),
            most_targets=int(document["most_targets"]),
            complaint={str(name): str(value) for name, value in document["complaint"].items()},
            suspects=check_suspects(document["suspects"]),
            seed=int(document["seed"]),
            noise=noise,
            truth=truth or None,
            results=results,
            environment=EnvironmentEvidence.from_json(document.get("environment", {})),
            counters=CounterEvidence.from_json(document.get("counters", {})),
            joint_change=JointChangeEvidence.from_json(document.get("joint_change", {})),
            events=EventEvidence.from_json(document.get("events", ())),
            directory=str(document.get("directory", "")),
        )


def make_truth(fault_texts: list[str] | tuple[str, ...], cause: str, cause_strength: float, seed: int) -> ModeledTruth:
    """Returns a machine with these faults or this cause. Raises UserError for an unknown cause."""
    by_id = {item.id: item for item in list_causes()}
    if cause and cause not in by_id:
        raise UserError(f'There is no cause "{cause}"; there are {", ".join(by_id)}.{suggest_close_name(cause, by_id)}')
    return ModeledTruth(tuple(str(fault) for fault in fault_texts), by_id.get(cause), float(cause_strength), int(seed))


def check_suspects(fault_names: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of faults. Raises UserError for one that the model does not know."""
    for name in fault_names:
        if name not in FAULT_GRIDS:
            raise UserError(
                f'There is no fault "{name}"; there are '
                f"{', '.join(FAULT_GRIDS)}.{suggest_close_name(str(name), FAULT_GRIDS)}"
            )
    return tuple(str(name) for name in fault_names)


def check_planted_truth(machine: DiagnosedMachine, state: DiagnosisState) -> None:
    """Checks that the machine can have the suspects and what is planted in it; simulates once. Raises UserError."""
    truth = state.truth or ModeledTruth()
    if not machine.targets and (state.suspects or truth.faults):
        raise UserError(
            f"{machine.mount} is a local file system, for which no fault is simulated; leave out --suspect and --fault,"
            " or plant a cause with --cause."
        )
    names = [item.id for item in list_causes_for_machine_kind(machine.machine_kind)]
    if truth.cause is not None and truth.cause.id not in names:
        raise UserError(f"{machine.mount} cannot have the cause {truth.cause.id}; it can have {', '.join(names)}.")
    if truth.faults:
        truth.check_faults(Simulator(machine))


def parse_complaint(complaint_arguments: tuple[str, ...]) -> dict[str, str]:
    """Parses NAME=VALUE of what the complaint is about. Raises UserError for an unknown name."""
    known_names = set(DEFAULT_TRAITS) | {
        name for cause in list_causes() for effect in cause.effects for name in effect.traits
    }
    complaint: dict[str, str] = {}
    for text in complaint_arguments:
        name, separator, value = text.partition("=")
        if not separator or not value or name not in known_names:
            raise UserError(
                f'--complaint "{text}" is not NAME=VALUE with a known name: {", ".join(sorted(known_names))}.'
                + suggest_close_name(name, known_names)
            )
        complaint[name] = value
    return complaint


def read_diagnosis_state(state_file: Path) -> DiagnosisState:
    """Reads the state of a diagnosis. Raises UserError when there is none, or it is damaged."""
    if not state_file.exists():
        raise UserError(
            f"There is no diagnosis {state_file}; begin one with `sonde diagnose start {state_file} --system FILE`."
        )
    document = read_json_file(state_file)
    try:
        if document is None:
            raise ValueError("it is not a JSON object")
        return DiagnosisState.from_json(document)
    except (UserError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise UserError(
            f"{state_file} is not a diagnosis: {error}; name the file that `sonde diagnose start` wrote."
        ) from None


def write_diagnosis_state(state_file: Path, state: DiagnosisState) -> None:
    """Replaces the state; it is on storage afterwards. Raises MachineError."""
    try:
        write_json_file(state_file, state.to_json())
    except OSError as error:
        raise MachineError(f"{state_file} cannot be written: {error.strerror}.") from None
