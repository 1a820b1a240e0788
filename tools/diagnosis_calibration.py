# SPDX-License-Identifier: Apache-2.0
"""Draws machines, faults and seeds, diagnoses each on the model, and writes how often the answer is right and whether
its probabilities are calibrated.

Usage: .venv/bin/python tools/diagnosis_calibration.py [--minutes N] [--rounds N] [--drawn N] [--seed N] [--write].
Results are appended to build/diagnosis/trials.jsonl as they come; the same command resumes an interrupted calibration.
--write replaces docs/concepts/diagnosis-figures.json, the tables of docs/concepts/diagnosis.md and diagnosis.svg there.
--page writes page and diagram from the stored figures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools")]

import diagnosis_figures  # noqa: E402
from diagnosis_trials import CAUSED, COVERED, HEALTHY, PAIR, UNCOVERED, Trial, draw_trial, list_machines  # noqa: E402
from sonde.diagnose.diagnosis import (  # noqa: E402
    DiagnosisStopRule,
    build_answer,
    choose_next_experiment,
    is_probable_enough,
    rank_hypotheses,
)
from sonde.diagnose.diagnosis_model import DiagnosisModel, build_diagnosis_model  # noqa: E402
from sonde.diagnose.likelihood import ExperimentResult  # noqa: E402
from sonde.diagnose.noise import NoiseModel  # noqa: E402
from sonde.diagnose.second_cause import SECOND_CAUSE_STOP_RULE, find_most_probable_pair  # noqa: E402
from sonde.diagnose.simulation import Simulator  # noqa: E402

TRIALS_FOLDER = ROOT / "build" / "diagnosis"
# One round on each machine: kinds of trials. The first of each also does the checklist, which takes longer.
TRIAL_KINDS = (COVERED, CAUSED, COVERED, UNCOVERED, COVERED, HEALTHY, COVERED, CAUSED, PAIR)
# The order of the Edison talk (slides 18 to 33), then what it did not need.
CHECKLIST = (
    *("mpiio-against-posix", "old-against-new-file", "read-after-write", "every-target", "server-cache"),
    *("previous-options", "previous-software", "one-client", "warm-cache", "small-reads", "names"),
    *("shared-against-own-files", "other-nodes", "network-alone", "quiet-time", "previous-server-software"),
)
STOP_RULE = DiagnosisStopRule()


def run_trial(model: DiagnosisModel, simulator: Simulator, trial: Trial, has_checklist: bool) -> dict[str, Any]:
    """Runs the adaptive diagnosis, and the fixed checklist where it is asked for."""
    if trial.left_out:
        model = model.remove_hypotheses_of_fault(trial.left_out)
    results: list[ExperimentResult] = []
    cost = 0.0
    forecasts: list[tuple[float, bool]] = []
    hypothesis, part = trial.answers[0]
    while True:
        posterior = model.compute_posterior(results)
        first = rank_hypotheses(posterior)[0]
        if results:
            forecasts.append((round(first.probability, 4), first.hypothesis.id == hypothesis))
        value, _, reason = choose_next_experiment(model, posterior, results, STOP_RULE, trial.truth.seed)
        if value is None:
            break
        cost += value.cost_s
        results.append(run_experiment(model, simulator, trial, value.experiment, len(results)))
    answer = build_answer(model, results, STOP_RULE, reason)
    answer_name = "unexplained" if answer.is_unexplained else answer.most_probable.hypothesis.id
    return {
        "kind": trial.kind,
        "planted": trial.name,
        "answer": answer_name,
        "is_right": answer_name == hypothesis and part in ("", answer.most_probable.part),
        "is_hypothesis_right": answer_name == hypothesis,
        "is_sure": answer.status in ("decided", "contradicted"),
        "experiments": len(results),
        "cost_s": round(cost),
        "checklist_s": round(run_checklist(model, simulator, trial)) if has_checklist else 0,
        "forecasts": forecasts,
    }


def run_pair_trial(model: DiagnosisModel, simulator: Simulator, trial: Trial) -> dict[str, Any]:
    """Runs the adaptive diagnosis, and then asks for a second cause."""
    results: list[ExperimentResult] = []
    cost = 0.0
    while (
        value := choose_next_experiment(model, model.compute_posterior(results), results, STOP_RULE, trial.truth.seed)[
            0
        ]
    ) is not None:
        cost += value.cost_s
        results.append(run_experiment(model, simulator, trial, value.experiment, len(results)))
    causes = find_most_probable_pair(model, results)
    while causes is not None and (value := causes.choose_next(SECOND_CAUSE_STOP_RULE, trial.truth.seed)[0]) is not None:
        cost += value.cost_s
        results.append(run_experiment(model, simulator, trial, value.experiment, len(results)))
        causes = find_most_probable_pair(model, results)
    answers = []
    if causes is not None:
        answers = [
            (causes.first.hypothesis.id, causes.first.part),
            (causes.second_cause.hypothesis.id, causes.second_cause.part),
        ]
    return {
        "kind": trial.kind,
        "planted": trial.name,
        "answer": " + ".join(hypothesis for hypothesis, _ in answers),
        "is_right": set(answers) == set(trial.answers),
        "is_hypothesis_right": {item for item, _ in answers} == {item for item, _ in trial.answers},
        "is_sure": causes is not None and causes.is_decided(SECOND_CAUSE_STOP_RULE),
        "experiments": len(results),
        "cost_s": round(cost),
        "checklist_s": 0,
        "forecasts": [],
    }


def run_checklist(model: DiagnosisModel, simulator: Simulator, trial: Trial) -> float:
    """Returns the cost in seconds until the same stop rule holds, or of the whole list."""
    results: list[ExperimentResult] = []
    cost = 0.0
    for name in CHECKLIST:
        cost += model.compute_cost_s(name)
        results.append(run_experiment(model, simulator, trial, name, len(results)))
        if is_probable_enough(rank_hypotheses(model.compute_posterior(results))[0], STOP_RULE):
            break
    return cost


def run_experiment(
    model: DiagnosisModel, simulator: Simulator, trial: Trial, experiment_id: str, experiment_number: int
) -> ExperimentResult:
    return trial.truth.run_experiment(model.find_experiment(experiment_id), experiment_number, simulator, model.noise)


def compute_code_version() -> str:
    """Results of other code are not reused."""
    files = [*sorted((ROOT / "lab" / "sonde" / "diagnose").rglob("*.*")), ROOT / "tools" / "diagnosis_trials.py"]
    texts = [path.read_bytes() for path in files if path.suffix in (".py", ".toml")]
    return hashlib.blake2b(b"\0".join(texts), digest_size=8).hexdigest()


def run_trials(
    options: argparse.Namespace, code_version: str, stored_outcomes: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yields one outcome after the other, in rounds over all machines, until the time is over."""
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="sonde-diagnosis-") as folder:
        machines = list(list_machines(options.drawn, Path(folder)))
        models: dict[str, tuple[DiagnosisModel, Simulator]] = {}
        for number in range(options.rounds):
            for machine_number, (name, machine) in enumerate(machines):
                if time.monotonic() > end:
                    return
                if name not in models:
                    print(f"{name}: simulating what each hypothesis predicts", file=sys.stderr, flush=True)
                    simulator = Simulator(machine, TRIALS_FOLDER / "simulations")
                    models[name] = build_diagnosis_model(machine, simulator, NoiseModel()), simulator
                for position, kind in enumerate(TRIAL_KINDS):
                    key = f"{code_version} {options.seed} {options.rounds} {name} {number} {position}"
                    if key in stored_outcomes:
                        yield stored_outcomes[key]
                        continue
                    # Each machine continues with the kinds of faults behind those of the machine before it.
                    index = (machine_number * options.rounds + number) * TRIAL_KINDS.count(kind)
                    index += TRIAL_KINDS[:position].count(kind)
                    trial = draw_trial(*models[name], kind, index, options.seed * 1000 + machine_number)
                    if trial is not None:
                        if kind == PAIR:
                            outcome = run_pair_trial(*models[name], trial)
                        else:
                            outcome = run_trial(*models[name], trial, has_checklist=position == 0)
                        yield {"key": key, "machine": name, **outcome}


def read_stored_trials() -> dict[str, dict[str, Any]]:
    """Returns the outcomes of earlier calls by key; a line that was cut off by a kill is left out."""
    outcomes = {}
    path = TRIALS_FOLDER / "trials.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            outcome = json.loads(line)
        except ValueError:
            continue
        outcomes[str(outcome["key"])] = outcome
    return outcomes


def main() -> int:
    """Runs trials, and prints or writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=25, help="no further round on a machine after this time")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of nine trials on each machine")
    parser.add_argument("--drawn", type=int, default=4, help="machines drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other faults")
    parser.add_argument("--write", action="store_true", help="write figures, tables and diagram")
    parser.add_argument("--page", action="store_true", help="run nothing; write tables and diagram of the figures")
    options = parser.parse_args()
    if options.page:
        diagnosis_figures.write_page()
        return 0
    TRIALS_FOLDER.mkdir(parents=True, exist_ok=True)
    version = compute_code_version()
    stored = read_stored_trials()
    outcomes = []
    with (TRIALS_FOLDER / "trials.jsonl").open("a", encoding="utf-8") as file:
        for outcome in run_trials(options, version, stored):
            outcomes.append(outcome)
            if outcome["key"] not in stored:
                file.write(json.dumps(outcome, separators=(",", ":")) + "\n")
                file.flush()
                verdict = "right" if outcome["is_right"] else "wrong"
                print(
                    f"{len(outcomes)} {outcome['machine']}: {outcome['kind']} {outcome['planted']} -> "
                    f"{outcome['answer']} ({verdict}, {outcome['experiments']} experiments)",
                    file=sys.stderr,
                    flush=True,
                )
    if outcomes:
        figures = diagnosis_figures.summarize_trials(outcomes)
        print(diagnosis_figures.format_tables(figures))
        if options.write:
            diagnosis_figures.write_figures(figures)
            diagnosis_figures.write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
