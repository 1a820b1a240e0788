# SPDX-License-Identifier: Apache-2.0
"""Plays the runs of an experiment: an executor that puts runs with known rates into an archive, without any engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.conduct.run import Result
from sonde.experiments.executor import Attempt
from sonde.experiments.request import Request, new_request
from sonde.experiments.runner import Ended, Runner, Watcher
from sonde.experiments.where import Where
from sonde.model.errors import DONE
from sonde.model.experiment import experiment_from_document
from sonde.model.record import read_record
from sonde.store.archive import RECORD, Archive

# What a run of a cell gives: bytes/s by phase; a sentence instead when the run fails.
Truth = Callable[[Attempt], dict[str, float] | str]


@dataclass
class Played:
    """Runs that are known beforehand."""

    archive: Archive
    truth: Truth
    stop_after: int | None = None
    simulated: bool = False
    stopped: bool = False
    asked: list[Attempt] = field(default_factory=list)

    def execute(self, attempt: Attempt) -> Result:
        self.asked.append(attempt)
        rates = self.truth(attempt)
        self.stopped = self.stop_after is not None and len(self.asked) >= self.stop_after
        facts = {"plan": {"id": attempt.plan.id, "title": attempt.plan.title}, "target": str(attempt.plan.target)}
        draft = self.archive.begin(attempt.name, attempt.plan.to_json(), {**facts, **attempt.facts})
        failed = isinstance(rates, str)
        lines = record_of({} if isinstance(rates, str) else rates, failed)
        (draft.folder / RECORD).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        record = read_record(draft.folder / RECORD)
        text = rates if isinstance(rates, str) else ""
        return Result(
            self.archive.commit(draft, record, 1 if failed else DONE, text), 1 if failed else DONE, text, record
        )


def record_of(rates: dict[str, float], failed: bool = False) -> list[dict[str, Any]]:
    """The smallest record of phases that moved 1 GB each at these rates."""
    head = {"type": "run", "t": 0.0, "schema": "sonde-record/1", "id": "played", "started": "2026-11-21T20:45:01Z",
            "tasks": 1, "processes": 1, "threads": 1, "nodes": 1, "plan": {}}  # fmt: skip
    lines: list[dict[str, Any]] = [head]
    for index, (phase, rate) in enumerate(rates.items()):
        lines.append({"type": "phase_begin", "t": 0.0, "phase": phase, "index": index, "op": "write",
                      "backend": "null", "measured": True, "cache": "unknown"})  # fmt: skip
        seconds = 1e9 / rate
        whole = {"bytes": 10**9, "ops": 1000, "seconds": seconds, "bytes_per_s": rate, "ops_per_s": rate / 1e6}
        lines.append({"type": "phase_end", "t": seconds, "phase": phase, "stopped_by": "volume",
                      "bytes": {"planned": 10**9, "moved": 10**9}, "ops": {"planned": 1000, "done": 1000, "failed": 0},
                      "seconds": {"elapsed": seconds}, "rates": {"total": whole}})  # fmt: skip
    end = {"type": "end", "t": 1.0, "status": "failed" if failed else "done", "exit_code": 1 if failed else 0}
    return [*lines, {**end, "seconds": 1.0, "text": ""}]


def request(document: dict[str, Any], on: Path | str, group: str = "g", **more: Any) -> Request:
    """A request for the experiment in `document`, all of it in one directory."""
    where = more.pop("where", Where(str(on)))
    experiment = experiment_from_document({"schema": "sonde-experiment/1", **document}, "x.toml")
    return new_request(experiment, more.pop("profile", ""), more.pop("settings", ()), where, group, **more)


def play(asked: Request, archive: Archive, truth: Truth, end: float | None = None, **more: Any) -> tuple[Ended, Played]:
    """Runs all of it, or what fits before `end`."""
    played = Played(archive, truth, **more)
    return Runner(asked, archive, played, Watcher(), end).run(), played
