# SPDX-License-Identifier: Apache-2.0
"""Writes records with known contents, line by line as schema/record describes them, for the tests of the report.

A `Work` says how fast each task is at each moment; everything else of the record (series, quantiles, histograms, rates,
tables) is computed from it, so that a test can compare what the report says with what was put in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record_scene import Scene, Work


def write_run(folder: Path, scene: Scene, cut: int = 0) -> Path:
    """Makes `folder` the folder of a run. `cut` bytes are taken from the end of the record, as a crash would."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = record_lines(scene)
    # surrogateescape: how a name that is not UTF-8 would come out of Python; the engine escapes it as \udcXX too
    data = "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines).encode()
    (folder / "record.ndjson").write_bytes(data[: len(data) - cut])
    (folder / "plan.json").write_text(json.dumps(_plan(scene)), encoding="utf-8")
    notes = {"schema": "sonde-run/2", "id": folder.name, "command": ["sonde", "run", "plan.toml", "--on", scene.path]}
    (folder / "run.json").write_text(json.dumps(notes), encoding="utf-8")
    return folder


def record_lines(scene: Scene) -> list[dict[str, Any]]:
    """All lines of the record of `scene`."""
    random = np.random.default_rng(scene.seed)
    lines: list[dict[str, Any]] = [_run_line(scene)]
    lines += [_node_line(scene, node) for node in range(scene.nodes)]
    lines += [{"type": "finding", "t": 0.02, **finding} for finding in scene.findings]
    clock = 0.05
    for index, work in enumerate(scene.works):
        for treatment in work.treatments:
            clock += float(treatment.get("seconds", 0.1))
            lines.append(
                {"type": "treatment", "t": round(clock, 6), "phase": work.id, "need": "best_effort", **treatment}
            )
        phase_lines, clock = _phase_lines(scene, work, index, clock + 0.01, random)
        lines += phase_lines
    if scene.ends:
        code = {"done": 0, "failed": 1, "mismatch": 4, "interrupted": 5}[scene.status]
        end = {"type": "end", "t": clock + 0.1, "status": scene.status, "exit_code": code, "seconds": clock + 0.1}
        lines.append({**end, "text": scene.text, "files_removed": scene.tasks, "files_left": 0})
    return lines


def _plan(scene: Scene) -> dict[str, Any]:
    phases = [{"id": work.id, "op": work.op, **work.plan} for work in scene.works]
    for phase, work in zip(phases, scene.works, strict=True):
        phase.setdefault("access", {"transfer": work.transfer, "order": "sequential"})
    return {
        "schema": "sonde-plan/2",
        "id": scene.plan,
        "title": scene.title,
        "target": {"path": scene.path},
        "tasks": {"processes": scene.nodes, "threads": scene.tasks // scene.nodes},
        "data": dict(scene.data),
        "phases": phases,
    }


def _run_line(scene: Scene) -> dict[str, Any]:
    return {
        "type": "run",
        "t": 0.0,
        "schema": "sonde-record/2",
        "id": "20261121T204501Z-known-ab12",
        "engine": {"version": "0.1.0", "compiler": "GCC 12.2", "build_type": "Release"},
        "started": scene.started,
        "command": ["sonde-engine", "run", "plan.json", "--record", "record.ndjson"],
        "launch": "single" if scene.nodes == 1 else "mpi (MPICH 5.0.2, standard ABI)",
        "tasks": scene.tasks,
        "processes": scene.nodes,
        "threads": scene.tasks // scene.nodes,
        "nodes": scene.nodes,
        "clock": "tsc",
        "plan": _plan(scene),
        **({"simulated": dict(scene.simulated)} if scene.simulated else {}),
    }


def _node_line(scene: Scene, node: int) -> dict[str, Any]:
    host = scene.hosts[node] if node < len(scene.hosts) else f"node{17 + node}"
    return {
        "type": "node",
        "t": 0.01,
        "node": node,
        "host": host,
        "kernel": "Linux 6.18.44",
        "cpus": 64,
        "cpu_model": "A processor with 64 cores",
        "memory_bytes": 270_000_000_000,
        "page_bytes": 4096,
        "clock_offset_ns": 0 if node == 0 else -1250 * node,
        "clock_error_ns": 0 if node == 0 else 900,
        "load_1m": 0.21,
        "file_system": dict(scene.file_system),
    }


@dataclass(frozen=True)
class _Moved:
    """Work of the tasks of a phase: bytes by task and slice, and the working time of each task."""

    by_slice: NDArray[np.int64]
    start: NDArray[np.float64]
    stop: NDArray[np.float64]
    width: float


def _simulate(scene: Scene, work: Work, random: np.random.Generator) -> _Moved:
    slices = max(1, int(np.ceil(work.seconds / work.slice_s - 1e-9)))
    middle = (np.arange(float(slices)) + 0.5) * work.slice_s
    shape = work.curve(middle)[None, :] * np.ones((scene.tasks, 1))
    shape *= np.clip(random.normal(1.0, work.noise, (scene.tasks, 1)), 0.5, 1.5)
    shape *= np.clip(random.normal(1.0, work.noise * 2, (scene.tasks, slices)), 0.2, 2.0)
    for task, factor in work.slow.items():
        shape[task] /= factor
    start = random.uniform(0.0, 0.01, scene.tasks) * work.seconds
    stop = work.seconds * (1.0 - random.uniform(0.0, 0.02, scene.tasks))
    begin, end = middle - work.slice_s / 2, middle + work.slice_s / 2
    inside = np.clip(np.minimum(end, stop[:, None]) - np.maximum(begin, start[:, None]), 0.0, work.slice_s)
    return _Moved(np.rint(shape * inside).astype(np.int64), start, stop, work.slice_s)


def _phase_lines(
    scene: Scene, work: Work, index: int, begin: float, random: np.random.Generator
) -> tuple[list[dict[str, Any]], float]:
    moved = _simulate(scene, work, random)
    total = int(moved.by_slice.sum())
    head = {
        "type": "phase_begin",
        "t": round(begin, 6),
        "phase": work.id,
        "index": index,
        "op": work.op,
        "backend": work.backend,
        "direct": work.direct,
        "measured": work.measured,
        "cache": work.cache,
        "planned_bytes": total,
        "planned_ops": total // work.transfer,
        "files": scene.tasks,
        "labels": list(work.labels),
    }
    lines = [head]
    if not work.ends:
        done = total // 2
        middle = begin + work.seconds / 2
        progress = {"phase_s": work.seconds / 2, "bytes": done, "ops": done // work.transfer, "percent": 50.0}
        rate = {"bytes_per_s": done / work.seconds * 2, "ops_per_s": done / work.seconds * 2 / work.transfer}
        lines.append({"type": "progress", "t": middle, "phase": work.id, **progress, **rate, "nodes_seen": scene.nodes})
        lines += [{"type": "error", "t": middle, "phase": work.id, **error} for error in work.errors]
        return lines, middle
    end = begin + work.seconds + work.fsync + 0.002
    lines += [{"type": "error", "t": end, "phase": work.id, **error} for error in work.errors]
    result = _end_line(scene, work, moved, random)
    lines.append({"type": "phase_end", "t": round(end, 6), **result.pop("line")})
    lines += [{"t": round(end, 6), "phase": work.id, **line} for line in result["after"]]
    lines += [{"type": "finding", "t": end, "phase": work.id, **finding} for finding in work.findings]
    return lines, end


def _rate(bytes_: int, ops: int, seconds: float) -> dict[str, Any]:
    per = 1.0 / seconds if seconds > 0 else 0.0
    return {"bytes": bytes_, "ops": ops, "seconds": seconds, "bytes_per_s": bytes_ * per, "ops_per_s": ops * per}


def _end_line(scene: Scene, work: Work, moved: _Moved, random: np.random.Generator) -> dict[str, Any]:
    by_task = moved.by_slice.sum(axis=1)
    total, ops = int(by_task.sum()), int((by_task // work.transfer).sum())
    busy = moved.stop - moved.start
    transfer = float(moved.stop.max() - moved.start.min()) if total else work.seconds
    elapsed = work.seconds + work.fsync + 0.002
    kind = "read" if "read" in work.op else "write"
    latencies = _latencies(work, ops, by_task, busy, random)
    rates = {"total": _rate(total, ops, elapsed), "transfer": _rate(total, ops, transfer)}
    low, high = float(moved.start.max()), float(moved.stop.min())
    inside = _between(moved, low, high)
    rates["steady"] = _rate(inside, inside // work.transfer, high - low)
    task_sum = float((by_task / busy).sum())
    rates["task_sum"] = {
        **_rate(total, ops, float(busy.mean())),
        "bytes_per_s": task_sum,
        "ops_per_s": task_sum / work.transfer,
    }
    if work.stonewall is not None:
        until = _between(moved, 0.0, work.stonewall)
        rates["stonewall"] = _rate(until, until // work.transfer, work.stonewall)
    side = {"read": (total, 0), "write": (0, total)}[kind]
    line: dict[str, Any] = {
        "phase": work.id,
        "stopped_by": "volume" if work.stonewall is None else "stonewall",
        "bytes": {"planned": total, "transferred": total, "read": side[0], "written": side[1]},
        "ops": {"planned": ops, "done": ops, "read": ops * (kind == "read"), "written": ops * (kind == "write")}
        | {"short": 0, "failed": 0},
        "seconds": {"elapsed": elapsed, "open": 0.0011, "transfer": transfer, "close": 0.0004}
        | ({"fsync": work.fsync} if work.fsync else {}),
        "task_seconds": {"open": 0.0009 * scene.tasks, "transfer": float(busy.sum()), "close": 0.0002 * scene.tasks}
        | ({"fsync": work.fsync * scene.tasks} if work.fsync else {}),
        "rates": rates,
        "latency": {name: _percentiles(values) for name, values in latencies.items() if len(values)},
        "cpu": {"user_s": 0.02 * float(busy.sum()), "system_s": 0.11 * float(busy.sum())}
        | {"bytes_per_system_s": total / max(0.11 * float(busy.sum()), 1e-9)},
        "imbalance": _imbalance(scene, by_task, busy),
    }
    if work.residency is not None:
        line["residency"] = work.residency
    after = [*_series(scene, moved, work), *(_histogram(name, values) for name, values in latencies.items())]
    return {"line": line, "after": [*after, *_tables(scene, moved, work)]}


def _between(moved: _Moved, from_s: float, until_s: float) -> int:
    edges = np.arange(moved.by_slice.shape[1] + 1) * moved.width
    share = np.clip(np.minimum(edges[1:], until_s) - np.maximum(edges[:-1], from_s), 0.0, moved.width) / moved.width
    return int((moved.by_slice.sum(axis=0) * share).sum())


def _latencies(
    work: Work, ops: int, by_task: NDArray[np.int64], busy: NDArray[np.float64], random: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """A log-normal body around the mean that the rates imply; one in two thousand is a hundred times slower."""
    kind = "read" if "read" in work.op else "write"
    mean = float(busy.sum()) / max(ops, 1) * 1e9
    sample = mean * random.lognormal(-0.05, 0.3, ops)
    slow = random.random(ops) < 0.0005
    sample[slow] *= random.lognormal(4.6, 0.4, int(slow.sum()))
    latencies = {kind: np.rint(sample), "open": np.rint(random.lognormal(12.5, 0.5, len(by_task)))}
    if work.fsync:
        latencies["fsync"] = np.rint(work.fsync * 1e9 * random.lognormal(0, 0.1, len(by_task)))
    return latencies


def _percentiles(values: NDArray[np.float64]) -> dict[str, Any]:
    q = np.quantile(values, [0.5, 0.9, 0.95, 0.99, 0.999])
    names = ("p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns")
    ends = {"count": len(values), "min_ns": float(values.min()), "mean_ns": float(values.mean())}
    return {**ends, **{name: float(v) for name, v in zip(names, q, strict=True)}, "max_ns": float(values.max())}


def _histogram(kind: str, values: NDArray[np.float64]) -> dict[str, Any]:
    """64 buckets an octave, as the engine has them."""
    if not len(values):
        return {"type": "histogram", "kind": kind, "count": 0, "overflow": 0, "buckets": []}
    widths = _compute_bucket_widths(values)
    low, counts = np.unique(np.floor(values / widths) * widths, return_counts=True)
    buckets = [[int(a), int(a + w), int(n)] for a, w, n in zip(low, _compute_bucket_widths(low), counts, strict=True)]
    ends = {"min_ns": float(values.min()), "max_ns": float(values.max()), "sum_ns": float(values.sum())}
    return {"type": "histogram", "kind": kind, "count": len(values), **ends, "overflow": 0, "buckets": buckets}


def _compute_bucket_widths(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp2(np.floor(np.log2(np.maximum(values, 64))) - 6))


def _series(scene: Scene, moved: _Moved, work: Work) -> list[dict[str, Any]]:
    """Returns the rate over time of all tasks together and, with several nodes, of each node."""
    nodes = np.array([_node_of(scene, task) for task in range(scene.tasks)])
    each = [
        {"type": "series", "scope": "node", "node": node, **_slices(moved, work, np.flatnonzero(nodes == node))}
        for node in range(scene.nodes if scene.nodes > 1 else 0)
    ]
    return [_whole_series(moved, work), *each]


def _slices(moved: _Moved, work: Work, tasks: NDArray[np.int64]) -> dict[str, Any]:
    edges = np.arange(moved.by_slice.shape[1] + 1) * moved.width
    active = (moved.start[tasks, None] < edges[None, 1:]) & (moved.stop[tasks, None] > edges[None, :-1])
    total = moved.by_slice[tasks].sum(axis=0)
    return {
        "slice_s": moved.width,
        "bytes": [int(v) for v in total],
        "ops": [int(v) for v in total // work.transfer],
        "active": [int(v) for v in active.sum(axis=0)],
    }


def _whole_series(moved: _Moved, work: Work) -> dict[str, Any]:
    edges = np.arange(moved.by_slice.shape[1] + 1) * moved.width
    active = (moved.start[:, None] < edges[None, 1:]) & (moved.stop[:, None] > edges[None, :-1])
    rates = np.where(active, moved.by_slice / moved.width, np.nan)
    any_ = active.any(axis=0)
    quantiles = np.full((5, rates.shape[1]), np.nan)
    quantiles[:, any_] = np.nanquantile(rates[:, any_], [0.0, 0.25, 0.5, 0.75, 1.0], axis=0)
    spread = {
        name: [None if np.isnan(v) else float(v) for v in row]
        for name, row in zip(("min", "p25", "p50", "p75", "max"), quantiles, strict=True)
    }
    everyone = np.arange(len(moved.start))
    return {"type": "series", "scope": "all", **_slices(moved, work, everyone), "task_rate": spread}


def _imbalance(scene: Scene, by_task: NDArray[np.int64], busy: NDArray[np.float64]) -> dict[str, Any]:
    rates = by_task / busy
    slowest = [
        {"task": int(i), "node": _node_of(scene, int(i)), "host": f"node{17 + _node_of(scene, int(i))}"}
        | {"bytes_per_s": float(rates[i]), "seconds": float(busy[i])}
        for i in np.argsort(rates)[:5]
    ]
    return {"max_over_mean": float(busy.max() / busy.mean()), "slowest": slowest, "tail_share": 0.02}


def _node_of(scene: Scene, task: int) -> int:
    return task * scene.nodes // scene.tasks


def _tables(scene: Scene, moved: _Moved, work: Work) -> list[dict[str, Any]]:
    """The columns that the engine writes, without the parts of a task's time."""
    by_task = moved.by_slice.sum(axis=1)
    columns = ["task", "node", "stream", "bytes", "ops", "start_s", "end_s", "bytes_per_s"]
    rows = [
        [
            i,
            _node_of(scene, i),
            0,
            int(b),
            int(b) // work.transfer,
            float(start_s),
            float(to),
            float(b / (to - start_s)),
        ]
        for i, (b, start_s, to) in enumerate(zip(by_task, moved.start, moved.stop, strict=True))
    ]
    lines: list[dict[str, Any]] = [
        {"type": "tasks", "columns": columns, "rows": rows[index : index + 1024], "first_task": index}
        for index in range(0, len(rows), 1024)
    ]
    nodes = []
    for node in range(scene.nodes):
        node_rows = [row for row in rows if row[1] == node]
        total, took = (
            sum(row[3] for row in node_rows),
            max(row[6] for row in node_rows) - min(row[5] for row in node_rows),
        )
        nodes.append(
            [node, f"node{17 + node}", len(node_rows), total, sum(row[4] for row in node_rows), took, total / took]
        )
    head = ["node", "host", "tasks", "bytes", "ops", "seconds", "bytes_per_s"]
    return [*lines, {"type": "nodes", "columns": head, "rows": nodes}]
