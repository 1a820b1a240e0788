# SPDX-License-Identifier: Apache-2.0
"""Trials with planted real faults: baseline, diagnosis by real runs, and the table of right answers."""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from machine_idleness import measure_idleness
from real_streams import Stream, find_changed_stream
from sonde.diagnose.diagnosis import DiagnosisStopRule, is_probable_enough, rank_hypotheses
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.hypotheses import NOTHING
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.noise import PART_OUTLIER_FACTOR, NoiseModel
from sonde.diagnose.predictions import VISIBLE_SDS
from sonde.diagnose.stated_machine import UnsimulatedMachine
from sonde.diagnose.stated_results import parse_stated_result

Storage = TypeVar("Storage")
_STOP_RULE = DiagnosisStopRule()
_FIRST_REFERENCES, _MAX_REFERENCES = 4, 8


@dataclass(frozen=True)
class RealFault(Generic[Storage]):
    """A fault of a storage with the hypotheses that name it rightly, and the range of its strength in `unit`."""

    name: str
    answers: tuple[str, ...]
    plant: Callable[[Storage, int], AbstractContextManager[None]]
    min_strength: int = 0
    max_strength: int = 0
    unit: str = ""
    has_part: bool = False

    def draw_strength(self, generator: random.Random) -> int:
        """Draws a strength uniformly in its logarithm; returns 0 for a fault without strengths."""
        if not self.max_strength:
            return 0
        ratio: float = self.max_strength / self.min_strength
        return round(math.pow(ratio, generator.random()) * self.min_strength)


class RealMachine(ABC, Generic[Storage]):
    """Storage in which faults are planted, with the model of the machine and the baseline of its experiments."""

    def __init__(self, diagnosis_session: DiagnosisSession, experiment_ids: Sequence[str]) -> None:
        self.opened = diagnosis_session
        self._experiments = experiment_ids
        self._references: dict[str, list[Path]] = {}
        self._healthy_streams: Sequence[Stream] = ()

    @abstractmethod
    def measure(self, experiment_id: str) -> Path:
        """Runs an experiment and returns the folder of the run."""

    @abstractmethod
    def draw_storage(self, generator: random.Random) -> tuple[Storage, str]:
        """Draws where a fault is planted, and returns it with the name of the part."""

    def measure_streams(self) -> Sequence[Stream]:
        """Measures the network between clients and servers without storage; empty for a machine without a network."""
        return ()

    def measure_baseline(self) -> None:
        """Measures each experiment on the healthy machine, the first time repeatedly."""
        self._healthy_streams = self.measure_streams()
        for name in self._experiments:
            earlier = self._references.setdefault(name, [])
            earlier += [self.measure(name) for _ in range(1 if earlier else _FIRST_REFERENCES)]
            del earlier[:-_MAX_REFERENCES]

    def diagnose(self, fault: RealFault[Storage], generator: random.Random) -> dict[str, Any]:
        """Plants a fault and returns what the diagnosis said."""
        session = DiagnosisSession(self.opened.state, self.opened.model, UnsimulatedMachine(self.opened.model.machine))
        strength = fault.draw_strength(generator)
        storage, part = self.draw_storage(generator)
        part = part if fault.has_part else ""
        idleness = measure_idleness()
        with fault.plant(storage, strength):
            for name in self._experiments:
                run, references = self.measure(name), self._references[name]
                session.add_stored_run(find_diagnosis_experiment(name), run, references)
                session.add_archive_runs(run, references[-1])
            if streams := self.measure_streams():
                _add_streams(session, streams, self._healthy_streams)
        first, second = rank_hypotheses(session.posterior)[:2]
        return {
            "planted": fault.name,
            "idleness": idleness.describe(),
            "strength": f"{strength} {fault.unit}" if fault.unit else "",
            "planted_part": part,
            "answer": first.hypothesis.id,
            "part": first.part,
            "probability": round(first.probability, 4),
            "is_right": (first.hypothesis.fault or first.hypothesis.id) in fault.answers and part in ("", first.part),
            "is_decided": is_probable_enough(first, _STOP_RULE),
            # A strength that costs nothing is no cause, so the answer to it is neither right nor wrong.
            "counts": NOTHING in fault.answers
            or any(has_visible_effect(item, session.state.noise) for item in session.state.experiment_results),
            "second": second.hypothesis.id,
            "experiments": [
                {
                    "id": item.experiment,
                    "rates": {name: round(value, 3) for name, value in item.runs[0].rates.items()},
                    "answers": dict(item.runs[0].messages),
                    "parts": [
                        [*key, {name: round(value, 3) for name, value in values.items()}]
                        for key, values in item.runs[0].vectors.items()
                    ],
                }
                for item in session.state.experiment_results
            ],
            "counters": dict(session.state.counters.observed),
            "changed_facts": list(session.state.environment.changed),
        }


def has_visible_effect(result: ExperimentResult, noise: NoiseModel) -> bool:
    """Whether a rate or part changed by two standard deviations, those of one run and of the reference
    together, as with each cause of a complaint."""
    rates = [
        abs(value) / math.hypot(noise.run_sd, result.scatter.get(phase, 0.0))
        for run in result.runs
        for phase, value in run.rates.items()
    ]
    part_sd = PART_OUTLIER_FACTOR * noise.part_sd
    parts = [
        abs(value) / math.hypot(part_sd, result.part_scatter.get(key, 0.0))
        for run in result.runs
        for key, values in run.vectors.items()
        for value in values.values()
    ]
    return max([*rates, *parts], default=0.0) >= VISIBLE_SDS


def _add_streams(session: DiagnosisSession, streams: Sequence[Stream], healthy_streams: Sequence[Stream]) -> None:
    """Enters what a person would enter after measuring the network without storage."""
    ratio, loses = find_changed_stream(streams, healthy_streams)
    for experiment_id, text in (
        ("network-alone", f"ratio={ratio}x"),
        ("network-losses", f"retransmissions={'yes' if loses else 'no'}"),
    ):
        session.add_result(parse_stated_result(find_diagnosis_experiment(experiment_id), [text]), "streams")


def make_trial_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of the options that all tools with planted real faults have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=5, help="times that each fault is planted")
    parser.add_argument("--minutes", type=float, default=60, help="no further trial after this time")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn strengths and parts")
    parser.add_argument("--only", default="", help="faults whose names have this text")
    parser.add_argument("--out", type=Path, help="file to which a JSON line is appended for each trial")
    return parser


def run_trials(
    machine: RealMachine[Storage], faults: Sequence[RealFault[Storage]], options: argparse.Namespace
) -> None:
    """Does rounds of trials until their number or the time is reached, and prints the table."""
    end = time.monotonic() + 60 * options.minutes
    numbers = random.Random(options.seed)
    outcomes: list[dict[str, Any]] = []
    try:
        for fault in options.rounds * [item for item in faults if options.only in item.name]:
            if time.monotonic() > end:
                break
            try:
                machine.measure_baseline()
                outcome = machine.diagnose(fault, numbers)
            except RuntimeError as error:
                print(f"{fault.name}: no result, {error}", file=sys.stderr, flush=True)
                continue
            outcomes.append(outcome)
            print(_describe_outcome(outcome), file=sys.stderr, flush=True)
            if options.out:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(outcome) + "\n")
    finally:
        if outcomes:
            print(format_shares(outcomes), flush=True)


def _describe_outcome(outcome: dict[str, Any]) -> str:
    verdict = ("right" if outcome["is_right"] else "wrong") if outcome["counts"] else "no effect"
    planted = " ".join(filter(None, (outcome["planted"], outcome["planted_part"], outcome["strength"])))
    answer = f"{outcome['answer']} {outcome['part']}".strip()
    return f"{planted} -> {answer} ({verdict}); {outcome['idleness']}"


def format_shares(trial_outcomes: Sequence[dict[str, Any]]) -> str:
    """Returns a table of right answers by fault."""
    lines = ["| planted | trials | right | decided | without effect | taken for |", "|---|--:|--:|--:|--:|---|"]
    counted = [item for item in trial_outcomes if item["counts"]]
    for name in dict.fromkeys(item["planted"] for item in trial_outcomes):
        rows = [item for item in counted if item["planted"] == name]
        wrong = Counter(item["answer"] for item in rows if not item["is_right"])
        answers = ", ".join(f"{answer} ({count})" for answer, count in wrong.items())
        right, decided = (sum(item[key] for item in rows) for key in ("is_right", "is_decided"))
        invisible = sum(item["planted"] == name for item in trial_outcomes) - len(rows)
        lines.append(f"| {name} | {len(rows)} | {right} | {decided} | {invisible} | {answers} |")
    right, count = sum(item["is_right"] for item in counted), len(counted)
    lines.append(f"| all | {count} | {right} ({right / max(1, count):.0%}) | | {len(trial_outcomes) - count} | |")
    return "\n".join(lines)
