# SPDX-License-Identifier: Apache-2.0
"""An executor that stores runs with given rates in an archive without starting the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunResult
from sonde.experiments.executor import RunAttempt
from sonde.experiments.locations import RunLocations
from sonde.experiments.request import ExperimentRequest, create_request
from sonde.experiments.runner import ExperimentRunner, RunnerObserver, RunnerOutcome
from sonde.model.errors import EXIT_OK
from sonde.model.experiment import make_experiment
from sonde.model.record import read_record
from sonde.store.archive import RECORD, Archive

# Returns the rates of a run in bytes/s by phase, or an error message when the run fails.
Truth = Callable[[RunAttempt], dict[str, float] | str]


@dataclass
class FakeExecutor:
    """Executes attempts with rates given in advance."""

    archive: Archive
    truth: Truth
    stop_after: int | None = None
    simulated: bool = False
    stopped: bool = False
    attempts: list[RunAttempt] = field(default_factory=list)

    def execute(self, attempt: RunAttempt) -> RunResult:
        self.attempts.append(attempt)
        rates = self.truth(attempt)
        self.stopped = self.stop_after is not None and len(self.attempts) >= self.stop_after
        facts = {"plan": {"id": attempt.plan.id, "title": attempt.plan.title}, "target": str(attempt.plan.target)}
        draft = self.archive.begin_run(attempt.name, attempt.plan.to_json(), {**facts, **attempt.facts})
        failed = isinstance(rates, str)
        lines = build_record_lines({} if isinstance(rates, str) else rates, failed)
        (draft.folder / RECORD).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        record = read_record(draft.folder / RECORD)
        text = rates if isinstance(rates, str) else ""
        return RunResult(
            self.archive.commit_run(draft, record, 1 if failed else EXIT_OK, text),
            1 if failed else EXIT_OK,
            text,
            record,
        )


def build_record_lines(rate_by_phase: dict[str, float], failed: bool = False) -> list[dict[str, Any]]:
    """Returns the lines of a minimal record in which each phase transferred 1 GB at the given rate."""
    head = {"type": "run", "t": 0.0, "schema": "sonde-record/2", "id": "played", "started": "2026-11-21T20:45:01Z",
            "tasks": 1, "processes": 1, "threads": 1, "nodes": 1, "plan": {}}  # fmt: skip
    lines: list[dict[str, Any]] = [head]
    for index, (phase, rate) in enumerate(rate_by_phase.items()):
        lines.append({"type": "phase_begin", "t": 0.0, "phase": phase, "index": index, "op": "write",
                      "backend": "null", "measured": True, "cache": "unknown"})  # fmt: skip
        seconds = 1e9 / rate
        rates_total = {"bytes": 10**9, "ops": 1000, "seconds": seconds, "bytes_per_s": rate, "ops_per_s": rate / 1e6}
        lines.append({"type": "phase_end", "t": seconds, "phase": phase, "stopped_by": "volume",
                      "bytes": {"planned": 10**9, "transferred": 10**9},
                      "ops": {"planned": 1000, "done": 1000, "failed": 0},
                      "seconds": {"elapsed": seconds}, "rates": {"total": rates_total}})  # fmt: skip
    end = {"type": "end", "t": 1.0, "status": "failed" if failed else "done", "exit_code": 1 if failed else 0}
    return [*lines, {**end, "seconds": 1.0, "text": ""}]


def build_request(
    document: dict[str, Any], directory: Path | str, group: str = "g", **overrides: Any
) -> ExperimentRequest:
    """Returns a request to run the experiment in `document` in one directory."""
    locations = overrides.pop("where", RunLocations(str(directory)))
    experiment = make_experiment({"schema": "sonde-experiment/2", **document}, "x.toml")
    return create_request(
        experiment, overrides.pop("profile", ""), overrides.pop("settings", ()), locations, group, **overrides
    )


def run_fake_experiment(
    request: ExperimentRequest, archive: Archive, truth: Truth, end_time: float | None = None, **options: Any
) -> tuple[RunnerOutcome, FakeExecutor]:
    """Runs the experiment until it is complete or the time `end_time` is reached."""
    executor = FakeExecutor(archive, truth, **options)
    return ExperimentRunner(request, archive, executor, RunnerObserver(), end_time).run_all_cells(), executor
