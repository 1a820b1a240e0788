# SPDX-License-Identifier: Apache-2.0
"""Archives of runs whose numbers are known beforehand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sonde.store.shards import locate_run_folder

FIRST_START = datetime(2026, 1, 1, 6, 0, tzinfo=UTC)
AddRun = Callable[..., Path]


@pytest.fixture
def add_run(archive: Path) -> AddRun:
    """Puts a run into the archive of the test: day, rates by phase and operation, and what its record says."""

    numbers = itertools.count()

    def add(
        day: float,
        rates: Mapping[tuple[str, str], float],
        *,
        plan: str = "probe",
        storage: str = "lustre:fs1 /scratch",
        system: str = "edison",
        document: Mapping[str, Any] | None = None,
        group: str | None = None,
        node: Mapping[str, Any] | None = None,
        engine: Mapping[str, Any] | None = None,
        slices: Mapping[str, Sequence[float]] | None = None,
        hosts: Mapping[str, float] | None = None,
        findings: Sequence[Mapping[str, Any]] = (),
    ) -> Path:
        started = FIRST_START + timedelta(days=day)
        run_id = f"{started:%Y%m%dT%H%M%SZ}-{plan}-{next(numbers):04x}"
        folder = locate_run_folder(archive, run_id)
        folder.mkdir(parents=True)
        phases = [_phase(phase, op, rate) for (phase, op), rate in rates.items()]
        summary = {
            "schema": "sonde-run/2",
            "id": run_id,
            "status": "done",
            "exit_code": 0,
            "started": started.isoformat(),
            "role": "run",
            "group": group,
            "plan": {"id": plan, "title": plan},
            "target": "/scratch",
            "phases": phases,
            "findings": list(findings),
            "history": {
                "system": system,
                "file_system": storage,
                "plan_hash": f"{plan:x<12.12}"
                if document is None
                else f"{abs(hash(json.dumps(document.get('data')))):012x}"[-12:],
                "node_class": "24 cpus, 64 GiB",
                "epoch": "sonde-record/2",
            },
        }
        (folder / "run.json").write_text(json.dumps(summary), encoding="utf-8")
        (folder / "plan.json").write_text(json.dumps(document or {}), encoding="utf-8")
        (folder / "record.ndjson").write_text(
            _record(node or {}, engine or {}, slices or {}, hosts or {}), encoding="utf-8"
        )
        return folder

    return add


def _phase(phase: str, op: str, rate: float) -> dict[str, Any]:
    return {
        "phase": phase,
        "op": op,
        "backend": "posix",
        "cache": "cold",
        "measured": True,
        "done": True,
        "findings": [],
        "definition": "sonde total",
        "bytes": int(rate * 10),
        "ops": 100,
        "failed": 0,
        "seconds": 10.0,
        "bytes_per_s": rate,
        "ops_per_s": 10.0,
        "stopped_by": "volume",
    }


def _record(
    node: Mapping[str, Any],
    engine: Mapping[str, Any],
    slices: Mapping[str, Sequence[float]],
    hosts: Mapping[str, float],
) -> str:
    lines: list[dict[str, Any]] = [
        {
            "type": "run",
            "t": 0.0,
            "schema": "sonde-record/2",
            "engine": {"version": "0.1.0", **engine},
            "launch": "single",
            "tasks": 4,
        },
        {
            "type": "node",
            "t": 0.0,
            "node": 0,
            "host": "nid00001",
            "kernel": "Linux 3.0.101",
            "load_1m": 0.5,
            "file_system": {"type": "lustre", "options": "rw,flock", "free_bytes": 10**12},
            **node,
        },
    ]
    lines += [{**lines[1], "node": number, "host": host} for number, host in enumerate(hosts) if number]
    if hosts:
        lines[1]["host"] = next(iter(hosts))
    for index, (phase, rates) in enumerate(slices.items()):
        begin = {"type": "phase_begin", "t": 1.0, "phase": phase, "index": index, "op": phase, "tasks": 4}
        series = {"type": "series", "t": 2.0, "phase": phase, "index": index, "op": phase, "scope": "all"}
        series |= {"slice_s": 0.1, "bytes": [int(rate / 10) for rate in rates], "ops": [1] * len(rates)}
        lines += [begin, *_end(phase, index, hosts), series | {"active": [4] * len(rates)}]
    return "".join(json.dumps(line) + "\n" for line in lines)


def _end(phase: str, index: int, hosts: Mapping[str, float]) -> list[dict[str, Any]]:
    """The end of a phase in which each host moved 1 GB at its rate, with two tasks."""
    shared: dict[str, Any] = {"t": 2.0, "phase": phase, "index": index, "op": phase}
    end = {"type": "phase_end", **shared, "stopped_by": "volume", "bytes": {"transferred": 1}, "ops": {"done": 1}}
    nodes: list[list[Any]] = [
        [number, host, 2, 10**9, 100, 1e9 / rate, rate] for number, (host, rate) in enumerate(hosts.items())
    ]
    tasks = [[2 * row[0] + task, row[0], 0.0, row[5]] for row in nodes for task in range(2)]
    names = ["node", "host", "tasks", "bytes", "ops", "seconds", "bytes_per_s"]
    return [
        end,
        {"type": "nodes", **shared, "columns": names, "rows": nodes},
        {"type": "tasks", **shared, "first_task": 0, "columns": ["task", "node", "start_s", "end_s"], "rows": tasks},
    ]
