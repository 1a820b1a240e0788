# SPDX-License-Identifier: Apache-2.0
"""Plants real faults on this machine, diagnoses each by real runs, and prints how often the answer is right.

Usage: .venv/bin/python tools/diagnosis_real_faults.py [--rounds N] [--minutes N] [--seed N] [--only TEXT]
[--out FILE]. Needs root. Each round plants every fault of real_faults.py once, with a drawn strength, and does each
experiment once. References are the last runs on the healthy machine: each experiment is done there before each fault,
so load by others affects both sides. Loop device, control groups and mount are removed. --out appends one JSON line for
each trial.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools")]

from real_faults import REAL_FAULTS, LoopFileSystem, RealFault, find_missing_need, open_loop_file_system  # noqa: E402
from sonde.conduct.run import RunSetup, conduct_run  # noqa: E402
from sonde.diagnose.diagnosis import DiagnosisStopRule, is_probable_enough, rank_hypotheses  # noqa: E402
from sonde.diagnose.diagnosis_session import DiagnosisSession  # noqa: E402
from sonde.diagnose.diagnosis_state import DiagnosisState  # noqa: E402
from sonde.diagnose.library import find_diagnosis_experiment  # noqa: E402
from sonde.diagnose.stated_machine import UnsimulatedMachine  # noqa: E402
from sonde.launch.engine import find_engine  # noqa: E402
from sonde.store.archive import Archive  # noqa: E402

RULE = DiagnosisStopRule()
_FIRST_REFERENCES, _MAX_REFERENCES = 4, 8


class RealMachine:
    """A loop file system with an archive, and the baseline of its experiments."""

    def __init__(self, system: LoopFileSystem, archive: Archive) -> None:
        self.system = system
        self._setup = RunSetup(find_engine(), archive)
        self._opened = DiagnosisSession.open_session(DiagnosisState(directory=str(system.directory)), None)
        self.experiments = [item for item in self._opened.model.experiments if not item.description.is_contrast]
        self._references: dict[str, list[Path]] = {}

    def measure(self, name: str) -> Path:
        """Runs an experiment and returns the folder of the run."""
        plan = self._opened.model.find_experiment(name).make_plan(str(self.system.directory))
        result = conduct_run(plan, self._setup, lambda kind, line: None)
        if result.exit_code:
            raise RuntimeError(f"{name}: {result.text}")
        return result.folder

    def measure_baseline(self) -> None:
        """Measures each experiment on the healthy machine, the first time repeatedly."""
        for experiment in self.experiments:
            earlier = self._references.setdefault(experiment.id, [])
            count = 1 if earlier else _FIRST_REFERENCES
            earlier += [self.measure(experiment.id) for _ in range(count)]
            del earlier[:-_MAX_REFERENCES]

    def diagnose(self, fault: RealFault[LoopFileSystem], strength: int) -> dict[str, Any]:
        """Plants a fault and returns what the diagnosis said."""
        session = DiagnosisSession(
            self._opened.state, self._opened.model, UnsimulatedMachine(self._opened.model.machine)
        )
        names = [item.id for item in self.experiments]
        with fault.plant(self.system, strength):
            for name in names:
                run, references = self.measure(name), self._references[name]
                session.add_stored_run(find_diagnosis_experiment(name), run, references)
                session.add_archive_runs(run, references[-1])
        ranking = rank_hypotheses(session.posterior)
        return {
            "planted": fault.name,
            "strength": f"{strength} {fault.unit}" if fault.unit else "",
            "answer": ranking[0].hypothesis.id,
            "probability": round(ranking[0].probability, 4),
            "is_right": ranking[0].hypothesis.id in fault.answers,
            "is_decided": is_probable_enough(ranking[0], RULE),
            "second": ranking[1].hypothesis.id,
            "experiments": [
                {"id": item.experiment, "rates": {name: round(v, 3) for name, v in item.runs[0].rates.items()}}
                for item in session.state.experiment_results
            ],
            "counters": dict(session.state.counters.observed),
            "changed_facts": list(session.state.environment.changed),
        }


def format_shares(outcomes: list[dict[str, Any]]) -> str:
    """Returns a table of right answers by fault."""
    lines = ["| planted | trials | right | decided | taken for |", "|---|--:|--:|--:|---|"]
    for name in dict.fromkeys(item["planted"] for item in outcomes):
        rows = [item for item in outcomes if item["planted"] == name]
        wrong = Counter(item["answer"] for item in rows if not item["is_right"])
        answers = ", ".join(f"{answer} ({count})" for answer, count in wrong.items())
        right, decided = (sum(item[key] for item in rows) for key in ("is_right", "is_decided"))
        lines.append(f"| {name} | {len(rows)} | {right} | {decided} | {answers} |")
    right = sum(item["is_right"] for item in outcomes)
    lines.append(f"| all | {len(outcomes)} | {right} ({right / len(outcomes):.0%}) | | |")
    return "\n".join(lines)


def main() -> int:
    """Does rounds of trials and prints the table. Exit code 3 without root or control groups."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times that each fault is planted")
    parser.add_argument("--minutes", type=float, default=60, help="no further trial after this time")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn strengths")
    parser.add_argument("--only", default="", help="faults whose names have this text")
    parser.add_argument("--out", type=Path, help="file to which a JSON line is appended for each trial")
    options = parser.parse_args()
    if missing := find_missing_need():
        print(f"No real fault can be planted here: {missing}.", file=sys.stderr)
        return 3
    # An end by a signal leaves no mount, device or limit, as an end by an exception does.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    end = time.monotonic() + 60 * options.minutes
    numbers = random.Random(options.seed)
    faults = [item for item in REAL_FAULTS if options.only in item.name]
    outcomes: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="sonde-real-faults-") as temporary_folder:
        folder = Path(temporary_folder)
        with open_loop_file_system(folder) as system:
            machine = RealMachine(system, Archive(folder / "archive"))
            for _ in range(options.rounds):
                if time.monotonic() > end:
                    break
                for fault in faults:
                    if time.monotonic() > end:
                        break
                    machine.measure_baseline()
                    outcome = machine.diagnose(fault, fault.draw_strength(numbers))
                    outcomes.append(outcome)
                    verdict = "right" if outcome["is_right"] else "wrong"
                    name, strength = fault.name, outcome["strength"]
                    print(f"{name} {strength} -> {outcome['answer']} ({verdict})", file=sys.stderr, flush=True)
                    if options.out:
                        with options.out.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(outcome) + "\n")
    if outcomes:
        print(format_shares(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
