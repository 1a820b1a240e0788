# SPDX-License-Identifier: Apache-2.0
"""Six machines whose truth is arithmetic, and what the record of a simulated run says of them.

The truth of each machine is calculated here from its rates and costs; the record comes from the simulator, through the
engine's own loops, meters and histograms. A difference is an error of the instrument, or of the model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.launch.simulator import find_simulator  # noqa: E402
from sonde.model.system import read_system  # noqa: E402

B = 1 << 20  # bytes of a transfer
CALL = 10e-6  # seconds of a call
LIMIT = 0.001
# A percentile between the least and the most is known as far as its bucket is wide: 1/64 of a power of two at most,
# and its middle is reported.
BUCKET = 1 / 64


@dataclass(frozen=True)
class Machine:
    """What is simulated, and what must come out. Rates in bytes/s, times in s."""

    name: str
    description: str
    plan: Mapping[str, Any]
    truth: Callable[[Run], Sequence[Row]]
    series: Sequence[tuple[float, float, float]]  # from, to, rate in bytes/s or op/s, of phase 0 (or the create phase)
    target_rate: str = "100 MB/s"
    adapter: str = ""
    nodes: int = 4
    stripe_count: int = 1
    faults: Sequence[str] = ()
    phase: str = "write"
    operations: bool = False  # the series is of operations


@dataclass(frozen=True)
class Row:
    """One quantity: what must be, and what the record says."""

    quantity: str
    unit: str
    truth: float
    reported: float
    limit: float = LIMIT

    @property
    def error(self) -> float:
        return abs(self.reported - self.truth) / self.truth

    @property
    def holds(self) -> bool:
        return self.error <= self.limit


@dataclass
class Run:
    """A simulated record and the counters of the targets beside it."""

    lines: list[dict[str, Any]]
    targets: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def line(self, kind: str, phase: str) -> dict[str, Any]:
        return next(line for line in self.lines if line["type"] == kind and line.get("phase") == phase)

    def end(self, phase: str) -> dict[str, Any]:
        return self.line("phase_end", phase)

    def column(self, phase: str, name: str) -> list[float]:
        table = self.line("tasks", phase)
        return [float(row[table["columns"].index(name)]) for row in table["rows"]]


def system_text(machine: Machine) -> str:
    """The system file of a machine: nodes, one server, four targets, and a metadata server with two threads."""
    rate = f'\nrate = "{machine.adapter}"' if machine.adapter else ""
    return f"""
schema = "sonde-system/2"
id = "{machine.name}"
title = "{machine.description}"
source = "made for calibration"
status = "assumed"

[[networks]]
id = "net"
kind = "infiniband"{rate}

[[nodes]]
id = "c[1-{machine.nodes}]"
role = "compute"
cores = 16
interfaces = [{{ network = "net" }}]
model = {{ call_cost = "10 us" }}

[[servers]]
id = "oss"
roles = "oss"

[[servers]]
id = "mds"
roles = "mds"
model = {{ threads = 2, create_cost = "1 ms", stat_cost = "0.2 ms", remove_cost = "2 ms", open_cost = "0 s" }}

[[targets]]
id = "t[0-3]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss"
rate = "{machine.target_rate}"

[[targets]]
id = "mdt"
kind = "mdt"
index = 0
file_system = "fs"
server = "mds"

[[file_systems]]
id = "fs"
kind = "lustre"
stripe = {{ size = "1 MiB", count = {machine.stripe_count} }}

[[mounts]]
id = "mnt"
file_system = "fs"
on = "c[1-{machine.nodes}]"
path = "/mnt"
"""


def plan_of(tasks: int, transfers: int, mapping: str = "per_task", transfer: int = B) -> dict[str, Any]:
    """Direct writes, `transfers` of each task, and the same read again."""
    access = {"transfer": f"{transfer}B", "block": f"{transfer * transfers}B", "segments": 1}
    return {
        "schema": "sonde-plan/2",
        "id": "calibration",
        "title": "calibration",
        "target": {"path": "/mnt"},
        "tasks": {"processes": tasks},
        "observe": {"slice": "100ms"},
        "data": {"files": {"mapping": mapping}, "access": access, "io": {"direct": True}},
        "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
    }


def names_plan(tasks: int, files: int) -> dict[str, Any]:
    return {
        "schema": "sonde-plan/2",
        "id": "calibration",
        "title": "calibration",
        "target": {"path": "/mnt"},
        "tasks": {"processes": tasks},
        "observe": {"slice": "100ms"},
        "meta": {"tree": {"items_per_task": files}},
        "phases": [{"id": id_, "op": op} for id_, op in (("mktree", "mktree"), ("create", "create"), ("stat", "stat"))],
    }


def simulated(machine: Machine) -> Run:
    """Runs the plan of a machine on it."""
    with tempfile.TemporaryDirectory(prefix="sonde-calibration-") as name:
        folder = Path(name)
        (folder / "system.toml").write_text(system_text(machine), encoding="utf-8")
        (folder / "system.json").write_text(read_system(str(folder / "system.toml")).to_json(), encoding="utf-8")
        (folder / "plan.json").write_text(json.dumps(machine.plan), encoding="utf-8")
        record, traces = folder / "record.ndjson", folder / "traces"
        arguments = [str(find_simulator()), "run", str(folder / "plan.json"), "--system", str(folder / "system.json")]
        arguments += ["--nodes", str(machine.nodes), "--record", str(record), "--traces", str(traces)]
        for fault in machine.faults:
            arguments += ["--fault", fault]
        subprocess.run(arguments, check=True, capture_output=True)
        run = Run([json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()])
        for stats in sorted(traces.glob("proc/fs/lustre/obdfilter/*/stats")):
            lines = (line.split() for line in stats.read_text(encoding="utf-8").splitlines())
            run.targets[stats.parent.name] = {line[0]: line for line in lines}
    return run


def rates(run: Run, phase: str, seconds: float, bytes_: float, operations: float) -> list[Row]:
    """Bandwidth and operations of a phase that moves so much in so many seconds."""
    output = run.end(phase)["rates"]["transfer"]
    return [
        Row(f"{phase}: bandwidth", "MB/s", bytes_ / seconds / 1e6, output["bytes_per_s"] / 1e6),
        Row(f"{phase}: operations", "op/s", operations / seconds, output["ops_per_s"]),
    ]


def latencies(run: Run, phase: str, kind: str, truth: Mapping[str, float]) -> list[Row]:
    """Mean, extremes and percentiles of operations of one kind, ms."""
    output = run.end(phase)["latency"][kind]
    alike = output["min_ns"] == output["max_ns"]  # then no bucket is needed
    return [
        Row(
            f"{phase}: {name} latency",
            "ms",
            value * 1e3,
            output[f"{name}_ns"] / 1e6,
            LIMIT if alike or name in ("mean", "min", "max") else BUCKET,
        )
        for name, value in truth.items()
    ]


def series(run: Run, machine: Machine) -> list[Row]:
    """The mean of each stretch in which the rate is known, from the slices that lie wholly in it."""
    line = run.line("series", machine.phase)
    amounts, width = line["ops" if machine.operations else "bytes"], line["slice_s"]
    rows = []
    for begin, end, rate in machine.series:
        inside = [a for i, a in enumerate(amounts) if i * width >= begin - 1e-9 and (i + 1) * width <= end + 1e-9]
        scale, unit = (1.0, "op/s") if machine.operations else (1e6, "MB/s")
        output = sum(inside) / (len(inside) * width)
        # Bytes of an operation are shared out over the slices it lasts; operations count where they end.
        rows.append(Row(f"{machine.phase}: series, {begin:g}-{end:g} s", unit, rate / scale, output / scale))
    return rows


def per_target(run: Run, phase: str, truth: Sequence[float]) -> list[Row]:
    """Rates of the tasks, each of which has one target for itself, slowest first, MB/s."""
    spans = zip(run.column(phase, "bytes"), run.column(phase, "transfer_s"), strict=True)
    output = sorted(bytes_ / seconds for bytes_, seconds in spans)
    return [
        Row(f"{phase}: target {number + 1} of {len(truth)}, slowest first", "MB/s", must / 1e6, line / 1e6)
        for number, (must, line) in enumerate(zip(sorted(truth), output, strict=True))
    ]


def counted(run: Run, bytes_: Sequence[float], verb: str = "write") -> list[Row]:
    """Bytes at the targets, as their counters have them."""
    output = sorted(float(lines[f"{verb}_bytes"][6]) for lines in run.targets.values() if f"{verb}_bytes" in lines)
    return [
        Row(f"{verb}: bytes at target {number + 1}", "MB", must / 1e6, line / 1e6, 0)
        for number, (must, line) in enumerate(zip(sorted(bytes_), output, strict=True))
    ]


R = 100e6
OP = CALL + B / R  # one transfer to an idle target
STEADY_N, CAPPED_N, STRIPED_N, SHARED_N, DEGRADED_N, NAMES_N = 500, 100, 200, 100, 500, 2500
LINK = 40e6
CAPPED_S = CALL + 4 * CAPPED_N * B / LINK + B / R  # the adapter is never idle; then the last one is at its target
SHARED_S = CALL + 4 * SHARED_N * B / R
SLOW, SLOW_FROM = 5, 2.0
SLOW_OP = CALL + SLOW * B / R
SOUND_OPS = int((SLOW_FROM - CALL) / OP) + 1  # that the sick target began before it fell ill
SOUND_S = DEGRADED_N * OP
SICK_S = SOUND_OPS * OP + (DEGRADED_N - SOUND_OPS) * SLOW_OP
CREATE, STAT, THREADS, NAMERS = 1e-3, 0.2e-3, 2, 8
NAMED = NAMERS * NAMES_N
# Each file is closed, at no cost but in turn: behind the creates of all others. So all tasks make their next file at
# one time, and the threads are idle while these calls are on their way.
ROUND = NAMERS / THREADS * CREATE + CALL
CREATE_S = NAMES_N * ROUND
STAT_S = NAMED / THREADS * STAT + CALL  # no thread is idle between the first and the last one


def _steady(run: Run) -> list[Row]:
    rows = []
    for phase in ("write", "read"):
        rows += rates(run, phase, STEADY_N * OP, STEADY_N * B, STEADY_N)
        rows += latencies(run, phase, phase, {"mean": OP, "p50": OP, "p99": OP})
    return rows + per_target(run, "write", [B / OP]) + counted(run, [STEADY_N * B])


def _capped(run: Run) -> list[Row]:
    operations = 4 * CAPPED_N
    rows = rates(run, "write", CAPPED_S, operations * B, operations)
    # Each waits for the three others at the adapter.
    rows += latencies(run, "write", "write", {"p50": 4 * B / LINK, "p99": 4 * B / LINK})
    return rows + counted(run, [CAPPED_N * B] * 4)


def _striped(run: Run) -> list[Row]:
    rows = []
    for phase in ("write", "read"):
        rows += rates(run, phase, STRIPED_N * OP, 4 * STRIPED_N * B, STRIPED_N)
        rows += latencies(run, phase, phase, {"mean": OP, "p50": OP, "p99": OP})
    return rows + counted(run, [STRIPED_N * B] * 4) + counted(run, [STRIPED_N * B] * 4, "read")


def _shared(run: Run) -> list[Row]:
    operations = 4 * SHARED_N
    rows = rates(run, "write", SHARED_S, operations * B, operations)
    # The first of each waits for those before it; then each for the three others, while there are any.
    rows += latencies(run, "write", "write", {"p50": 4 * B / R, "p99": 4 * B / R, "min": CALL + B / R})
    return rows + counted(run, [operations * B])


def _degraded(run: Run) -> list[Row]:
    rows = rates(run, "write", SICK_S, 4 * DEGRADED_N * B, 4 * DEGRADED_N)
    rows += latencies(run, "write", "write", {"p50": OP, "p99": SLOW_OP, "max": SLOW_OP, "min": OP})
    sound = DEGRADED_N * B / SOUND_S
    return (
        rows
        + per_target(run, "write", [DEGRADED_N * B / SICK_S, sound, sound, sound])
        + counted(run, [DEGRADED_N * B] * 4)
    )


def _names(run: Run) -> list[Row]:
    rows = []
    for phase, cost, seconds in (("create", CREATE, CREATE_S), ("stat", STAT, STAT_S)):
        rows.append(Row(f"{phase}: operations", "op/s", NAMED / seconds, run.end(phase)["rates"]["total"]["ops_per_s"]))
        rows += latencies(run, phase, phase, {"p50": NAMERS / THREADS * cost, "p99": NAMERS / THREADS * cost})
    return rows


MACHINES = (
    Machine(
        "steady",
        "One task, one target of 100 MB/s",
        plan_of(1, STEADY_N),
        _steady,
        [(0.1, 5.2, B / OP)],
        nodes=1,
    ),
    Machine(
        "capped",
        "Four tasks of one node on four targets, behind an adapter of 40 MB/s",
        plan_of(4, CAPPED_N),
        _capped,
        [(0.5, 10.2, LINK)],
        adapter="40 MB/s",
        nodes=1,
    ),
    Machine(
        "striped",
        "One task, calls of 4 MiB on a file over four targets",
        plan_of(1, STRIPED_N, transfer=4 * B),
        _striped,
        [(0.1, 2.0, 4 * B / OP)],
        nodes=1,
        stripe_count=4,
    ),
    Machine(
        "shared",
        "Four nodes in one file on one target",
        plan_of(4, SHARED_N, mapping="shared"),
        _shared,
        [(0.1, 4.0, R)],
    ),
    Machine(
        "degraded",
        "Four tasks on a target each, one of which takes five times as long from 2 s on",
        plan_of(4, DEGRADED_N),
        _degraded,
        [(0.1, 1.9, 4 * B / OP), (2.2, 5.2, 3 * B / OP + B / SLOW_OP), (5.4, 17.0, B / SLOW_OP)],
        faults=("slow-target t2 5x at 2s",),
    ),
    Machine(
        "metadata-bound",
        "Eight tasks make and look at files, on a server with two threads",
        names_plan(NAMERS, NAMES_N),
        _names,
        [(0.1, 9.9, NAMERS / ROUND)],
        phase="create",
        operations=True,
    ),
)


def measured() -> dict[str, tuple[Run, list[Row]]]:
    """All machines with their rows."""
    measured_runs = {}
    for machine in MACHINES:
        run = simulated(machine)
        measured_runs[machine.name] = (run, [*machine.truth(run), *series(run, machine)])
    return measured_runs
