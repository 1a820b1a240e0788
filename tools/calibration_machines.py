# SPDX-License-Identifier: Apache-2.0
"""Six machines whose results follow from arithmetic, and comparisons of these with the records of simulated runs.

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

BLOCK_BYTES = 1 << 20  # bytes of a transfer
CALL_S = 10e-6  # seconds of a call
MAX_RELATIVE_ERROR = 0.001
# A percentile between the least and the most is known as far as its bucket is wide: 1/64 of a power of two at most,
# and its middle is reported.
HISTOGRAM_BUCKET_WIDTH = 1 / 64


@dataclass(frozen=True)
class Machine:
    """A simulated machine with its plan and the results that follow from arithmetic. Rates in bytes/s, times in s."""

    name: str
    description: str
    plan: Mapping[str, Any]
    truth: Callable[[Run], Sequence[Comparison]]
    series: Sequence[tuple[float, float, float]]  # from, to, rate in bytes/s or op/s, of phase 0 (or the create phase)
    target_rate: str = "100 MB/s"
    adapter: str = ""
    nodes: int = 4
    stripe_count: int = 1
    faults: Sequence[str] = ()
    phase: str = "write"
    operations: bool = False  # the series is of operations


@dataclass(frozen=True)
class Comparison:
    """One quantity: what must be, and what the record says."""

    quantity: str
    unit: str
    truth: float
    reported: float
    limit: float = MAX_RELATIVE_ERROR

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

    def find_line(self, line_type: str, phase_id: str) -> dict[str, Any]:
        return next(line for line in self.lines if line["type"] == line_type and line.get("phase") == phase_id)

    def list_task_values(self, phase_id: str, column_name: str) -> list[float]:
        table = self.find_line("tasks", phase_id)
        return [float(row[table["columns"].index(column_name)]) for row in table["rows"]]


def format_system_file(machine: Machine) -> str:
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


def make_transfer_plan(
    tasks: int, transfers_per_task: int, mapping: str = "per_task", transfer_bytes: int = BLOCK_BYTES
) -> dict[str, Any]:
    """Direct writes, `transfers_per_task` of each task, and the same read again."""
    access = {"transfer": f"{transfer_bytes}B", "block": f"{transfer_bytes * transfers_per_task}B", "segments": 1}
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


def make_metadata_plan(task_count: int, files_per_task: int) -> dict[str, Any]:
    return {
        "schema": "sonde-plan/2",
        "id": "calibration",
        "title": "calibration",
        "target": {"path": "/mnt"},
        "tasks": {"processes": task_count},
        "observe": {"slice": "100ms"},
        "meta": {"tree": {"items_per_task": files_per_task}},
        "phases": [{"id": id_, "op": op} for id_, op in (("mktree", "mktree"), ("create", "create"), ("stat", "stat"))],
    }


def simulate_machine(machine: Machine) -> Run:
    """Runs the plan of a machine on it."""
    with tempfile.TemporaryDirectory(prefix="sonde-calibration-") as name:
        folder = Path(name)
        (folder / "system.toml").write_text(format_system_file(machine), encoding="utf-8")
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


def compare_rates(
    run: Run, phase_id: str, seconds: float, expected_bytes: float, expected_ops: float
) -> list[Comparison]:
    """Bandwidth and operations of a phase that moves so much in so many seconds."""
    output = run.find_line("phase_end", phase_id)["rates"]["transfer"]
    return [
        Comparison(f"{phase_id}: bandwidth", "MB/s", expected_bytes / seconds / 1e6, output["bytes_per_s"] / 1e6),
        Comparison(f"{phase_id}: operations", "op/s", expected_ops / seconds, output["ops_per_s"]),
    ]


def compare_latencies(run: Run, phase_id: str, op_kind: str, expected_ms: Mapping[str, float]) -> list[Comparison]:
    """Mean, extremes and percentiles of operations of one kind, ms."""
    output = run.find_line("phase_end", phase_id)["latency"][op_kind]
    alike = output["min_ns"] == output["max_ns"]  # then no bucket is needed
    return [
        Comparison(
            f"{phase_id}: {name} latency",
            "ms",
            value * 1e3,
            output[f"{name}_ns"] / 1e6,
            MAX_RELATIVE_ERROR if alike or name in ("mean", "min", "max") else HISTOGRAM_BUCKET_WIDTH,
        )
        for name, value in expected_ms.items()
    ]


def compare_rate_over_time(run: Run, machine: Machine) -> list[Comparison]:
    """The mean of each stretch in which the rate is known, from the slices that lie wholly in it."""
    line = run.find_line("series", machine.phase)
    amounts, width = line["ops" if machine.operations else "bytes"], line["slice_s"]
    rows = []
    for begin, end, rate in machine.series:
        inside = [a for i, a in enumerate(amounts) if i * width >= begin - 1e-9 and (i + 1) * width <= end + 1e-9]
        scale, unit = (1.0, "op/s") if machine.operations else (1e6, "MB/s")
        output = sum(inside) / (len(inside) * width)
        # Bytes of an operation are shared out over the slices it lasts; operations count where they end.
        rows.append(Comparison(f"{machine.phase}: series, {begin:g}-{end:g} s", unit, rate / scale, output / scale))
    return rows


def compare_target_rates(run: Run, phase_id: str, expected_rates: Sequence[float]) -> list[Comparison]:
    """Rates of the tasks, each of which has one target for itself, slowest first, MB/s."""
    spans = zip(run.list_task_values(phase_id, "bytes"), run.list_task_values(phase_id, "transfer_s"), strict=True)
    output = sorted(bytes_ / seconds for bytes_, seconds in spans)
    return [
        Comparison(f"{phase_id}: target {rank} of {len(expected_rates)}, slowest first", "MB/s", must / 1e6, line / 1e6)
        for rank, (must, line) in enumerate(zip(sorted(expected_rates), output, strict=True), start=1)
    ]


def compare_counters(run: Run, expected_target_bytes: Sequence[float], verb: str = "write") -> list[Comparison]:
    """Bytes at the targets, as their counters have them."""
    output = sorted(float(lines[f"{verb}_bytes"][6]) for lines in run.targets.values() if f"{verb}_bytes" in lines)
    return [
        Comparison(f"{verb}: bytes at target {number + 1}", "MB", must / 1e6, line / 1e6, 0)
        for number, (must, line) in enumerate(zip(sorted(expected_target_bytes), output, strict=True))
    ]


TARGET_BYTES_PER_S = 100e6
TRANSFER_S = CALL_S + BLOCK_BYTES / TARGET_BYTES_PER_S  # one transfer to an idle target
STEADY_TRANSFERS, CAPPED_TRANSFERS, STRIPED_TRANSFERS, SHARED_TRANSFERS = 500, 100, 200, 100
STEADY_BYTES, DEGRADED_TRANSFERS, FILES_PER_TASK = STEADY_TRANSFERS * BLOCK_BYTES, 500, 2500
ADAPTER_BYTES_PER_S = 40e6
# The adapter is never idle; the last transfer then waits for its target.
CAPPED_S = CALL_S + 4 * CAPPED_TRANSFERS * BLOCK_BYTES / ADAPTER_BYTES_PER_S + BLOCK_BYTES / TARGET_BYTES_PER_S
SHARED_S = CALL_S + 4 * SHARED_TRANSFERS * BLOCK_BYTES / TARGET_BYTES_PER_S
SLOW_FACTOR, SLOW_FROM_S = 5, 2.0
SLOW_TRANSFER_S = CALL_S + SLOW_FACTOR * BLOCK_BYTES / TARGET_BYTES_PER_S
OPS_BEFORE_FAULT = int((SLOW_FROM_S - CALL_S) / TRANSFER_S) + 1  # at the slow target
HEALTHY_TARGET_S = DEGRADED_TRANSFERS * TRANSFER_S
SLOW_TARGET_S = OPS_BEFORE_FAULT * TRANSFER_S + (DEGRADED_TRANSFERS - OPS_BEFORE_FAULT) * SLOW_TRANSFER_S
CREATE_CALL_S, STAT_CALL_S, METADATA_THREADS, METADATA_TASKS = 1e-3, 0.2e-3, 2, 8
TOTAL_FILES = METADATA_TASKS * FILES_PER_TASK
# Each file is closed, at no cost but in turn: behind the creates of all others. So all tasks make their next file at
# one time, and the threads are idle while these calls are on their way.
CREATE_ROUND_S = METADATA_TASKS / METADATA_THREADS * CREATE_CALL_S + CALL_S
CREATE_PHASE_S = FILES_PER_TASK * CREATE_ROUND_S
# No thread is idle between the first and the last stat.
STAT_PHASE_S = TOTAL_FILES / METADATA_THREADS * STAT_CALL_S + CALL_S


def _compare_steady(run: Run) -> list[Comparison]:
    rows = []
    for phase in ("write", "read"):
        rows += compare_rates(run, phase, STEADY_TRANSFERS * TRANSFER_S, STEADY_BYTES, STEADY_TRANSFERS)
        rows += compare_latencies(run, phase, phase, {"mean": TRANSFER_S, "p50": TRANSFER_S, "p99": TRANSFER_S})
    rows += compare_target_rates(run, "write", [BLOCK_BYTES / TRANSFER_S])
    return rows + compare_counters(run, [STEADY_BYTES])


def _compare_capped(run: Run) -> list[Comparison]:
    operations = 4 * CAPPED_TRANSFERS
    rows = compare_rates(run, "write", CAPPED_S, operations * BLOCK_BYTES, operations)
    # Each waits for the three others at the adapter.
    wait_s = 4 * BLOCK_BYTES / ADAPTER_BYTES_PER_S
    rows += compare_latencies(run, "write", "write", {"p50": wait_s, "p99": wait_s})
    return rows + compare_counters(run, [CAPPED_TRANSFERS * BLOCK_BYTES] * 4)


def _compare_striped(run: Run) -> list[Comparison]:
    rows = []
    for phase in ("write", "read"):
        seconds, volume = STRIPED_TRANSFERS * TRANSFER_S, 4 * STRIPED_TRANSFERS * BLOCK_BYTES
        rows += compare_rates(run, phase, seconds, volume, STRIPED_TRANSFERS)
        rows += compare_latencies(run, phase, phase, {"mean": TRANSFER_S, "p50": TRANSFER_S, "p99": TRANSFER_S})
    amounts = [STRIPED_TRANSFERS * BLOCK_BYTES] * 4
    return rows + compare_counters(run, amounts) + compare_counters(run, amounts, "read")


def _compare_shared(run: Run) -> list[Comparison]:
    operations = 4 * SHARED_TRANSFERS
    rows = compare_rates(run, "write", SHARED_S, operations * BLOCK_BYTES, operations)
    # The first of each waits for those before it; then each for the three others, while there are any.
    wait_s = 4 * BLOCK_BYTES / TARGET_BYTES_PER_S
    rows += compare_latencies(run, "write", "write", {"p50": wait_s, "p99": wait_s, "min": TRANSFER_S})
    return rows + compare_counters(run, [operations * BLOCK_BYTES])


def _compare_degraded(run: Run) -> list[Comparison]:
    rows = compare_rates(run, "write", SLOW_TARGET_S, 4 * DEGRADED_TRANSFERS * BLOCK_BYTES, 4 * DEGRADED_TRANSFERS)
    rows += compare_latencies(
        run, "write", "write", {"p50": TRANSFER_S, "p99": SLOW_TRANSFER_S, "max": SLOW_TRANSFER_S, "min": TRANSFER_S}
    )
    sound = DEGRADED_TRANSFERS * BLOCK_BYTES / HEALTHY_TARGET_S
    return (
        rows
        + compare_target_rates(run, "write", [DEGRADED_TRANSFERS * BLOCK_BYTES / SLOW_TARGET_S, sound, sound, sound])
        + compare_counters(run, [DEGRADED_TRANSFERS * BLOCK_BYTES] * 4)
    )


def _compare_metadata_bound(run: Run) -> list[Comparison]:
    rows = []
    for phase, cost, seconds in (("create", CREATE_CALL_S, CREATE_PHASE_S), ("stat", STAT_CALL_S, STAT_PHASE_S)):
        reported = run.find_line("phase_end", phase)["rates"]["total"]["ops_per_s"]
        rows.append(Comparison(f"{phase}: operations", "op/s", TOTAL_FILES / seconds, reported))
        wait_s = METADATA_TASKS / METADATA_THREADS * cost
        rows += compare_latencies(run, phase, phase, {"p50": wait_s, "p99": wait_s})
    return rows


MACHINES = (
    Machine(
        "steady",
        "One task, one target of 100 MB/s",
        make_transfer_plan(1, STEADY_TRANSFERS),
        _compare_steady,
        [(0.1, 5.2, BLOCK_BYTES / TRANSFER_S)],
        nodes=1,
    ),
    Machine(
        "capped",
        "Four tasks of one node on four targets, behind an adapter of 40 MB/s",
        make_transfer_plan(4, CAPPED_TRANSFERS),
        _compare_capped,
        [(0.5, 10.2, ADAPTER_BYTES_PER_S)],
        adapter="40 MB/s",
        nodes=1,
    ),
    Machine(
        "striped",
        "One task, calls of 4 MiB on a file over four targets",
        make_transfer_plan(1, STRIPED_TRANSFERS, transfer_bytes=4 * BLOCK_BYTES),
        _compare_striped,
        [(0.1, 2.0, 4 * BLOCK_BYTES / TRANSFER_S)],
        nodes=1,
        stripe_count=4,
    ),
    Machine(
        "shared",
        "Four nodes in one file on one target",
        make_transfer_plan(4, SHARED_TRANSFERS, mapping="shared"),
        _compare_shared,
        [(0.1, 4.0, TARGET_BYTES_PER_S)],
    ),
    Machine(
        "degraded",
        "Four tasks on a target each, one of which takes five times as long from 2 s on",
        make_transfer_plan(4, DEGRADED_TRANSFERS),
        _compare_degraded,
        [
            (0.1, 1.9, 4 * BLOCK_BYTES / TRANSFER_S),
            (2.2, 5.2, 3 * BLOCK_BYTES / TRANSFER_S + BLOCK_BYTES / SLOW_TRANSFER_S),
            (5.4, 17.0, BLOCK_BYTES / SLOW_TRANSFER_S),
        ],
        faults=("slow-target t2 5x at 2s",),
    ),
    Machine(
        "metadata-bound",
        "Eight tasks make and look at files, on a server with two threads",
        make_metadata_plan(METADATA_TASKS, FILES_PER_TASK),
        _compare_metadata_bound,
        [(0.1, 9.9, METADATA_TASKS / CREATE_ROUND_S)],
        phase="create",
        operations=True,
    ),
)


def simulate_and_compare_all_machines() -> dict[str, tuple[Run, list[Comparison]]]:
    """All machines with their rows."""
    measured_runs = {}
    for machine in MACHINES:
        run = simulate_machine(machine)
        measured_runs[machine.name] = (run, [*machine.truth(run), *compare_rate_over_time(run, machine)])
    return measured_runs
