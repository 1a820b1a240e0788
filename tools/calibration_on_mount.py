# SPDX-License-Identifier: Apache-2.0
"""Holds records of the engine on the mounted model against arithmetic: the machines, plans and truths of
tools/calibration_machines.py, but through the kernel, FUSE and the real clock.

Usage: .venv/bin/python tools/calibration_on_mount.py [--write] [--only NAME]. The machine runs at half of its speed,
so that this computer keeps up; all times are in the machine's virtual time. A machine of which a quantity misses the
limit is run again, twice at most. With --write the table goes to docs/concepts/calibration-on-mount.md, which the page
on calibration shows. The exit code is 1 when a limit is missed for which no reason is known.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import calibration_machines
import two_drivers
from calibration_machines import Comparison, Machine, Run

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.launch.engine import find_engine  # noqa: E402
from sonde.model.system import read_system  # noqa: E402

MAX_RELATIVE_ERROR = 0.02
MAX_TRIES = 3
CLOCK_SPEED = 0.5
FILES_PER_TASK = 500  # files of each of eight tasks
PAGE_FILE = ROOT / "docs" / "concepts" / "calibration-on-mount.md"

# Why a quantity may miss the limit: machine, the beginning of the quantity, and the reason.
_ONE_CALL = "one call: what an answer is late on this computer is made up for with the next call, so means hold"
REASONS: tuple[tuple[str, str, str], ...] = (
    ("shared", "write: min", _ONE_CALL),
    ("degraded", "write: m", _ONE_CALL),
    ("metadata-bound", "create: p99", _ONE_CALL),
    ("metadata-bound", "stat: p99", _ONE_CALL),
)


def find_deviation_reason(machine_name: str, quantity_name: str) -> str:
    return next((why for name, begin, why in REASONS if name == machine_name and quantity_name.startswith(begin)), "")


def convert_to_machine_time(record_lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a record as the machine would have written them: its seconds are SPEED of ours."""
    converted = copy.deepcopy(list(record_lines))
    for line in converted:
        if line["type"] == "phase_end":
            for rate in line["rates"].values():
                if isinstance(rate, dict):
                    for name in ("bytes_per_s", "ops_per_s"):
                        rate[name] = rate.get(name, 0) / CLOCK_SPEED
            for latency in line.get("latency", {}).values():
                latency.update({name: value * CLOCK_SPEED for name, value in latency.items() if name.endswith("_ns")})
        elif line["type"] == "series":
            line["slice_s"] *= CLOCK_SPEED
        elif line["type"] == "tasks":
            column = line["columns"].index("transfer_s") if "transfer_s" in line["columns"] else None
            for row in line["rows"] if column is not None else ():
                row[column] *= CLOCK_SPEED
    return converted


def compare_degraded(run: Run) -> list[Comparison]:
    """As on the machine of that name, but its target is slow from the beginning: the mount's time begins earlier."""
    number, slow_s = (
        calibration_machines.DEGRADED_TRANSFERS,
        calibration_machines.DEGRADED_TRANSFERS * calibration_machines.SLOW_TRANSFER_S,
    )
    sound = number * calibration_machines.BLOCK_BYTES / calibration_machines.HEALTHY_TARGET_S
    rows = calibration_machines.compare_rates(
        run, "write", slow_s, 4 * number * calibration_machines.BLOCK_BYTES, 4 * number
    )
    truth = {
        "p50": calibration_machines.TRANSFER_S,
        "p99": calibration_machines.SLOW_TRANSFER_S,
        "max": calibration_machines.SLOW_TRANSFER_S,
        "min": calibration_machines.TRANSFER_S,
    }
    rows += calibration_machines.compare_latencies(run, "write", "write", truth)
    rows += calibration_machines.compare_target_rates(
        run, "write", [number * calibration_machines.BLOCK_BYTES / slow_s, sound, sound, sound]
    )
    return rows + calibration_machines.compare_counters(run, [number * calibration_machines.BLOCK_BYTES] * 4)


def compare_striped(run: Run) -> list[Comparison]:
    """As on the machine of that name, but in calls of 1 MiB over four targets of a quarter of the rate: the kernel
    hands over a longer call in pieces of 1 MiB, one after the other."""
    number, b, op = (
        calibration_machines.STRIPED_TRANSFERS,
        calibration_machines.BLOCK_BYTES,
        calibration_machines.TRANSFER_S,
    )
    rows = []
    for phase in ("write", "read"):
        rows += calibration_machines.compare_rates(run, phase, number * op, number * b, number)
        rows += calibration_machines.compare_latencies(run, phase, phase, {"mean": op, "p50": op, "p99": op})
    return (
        rows
        + calibration_machines.compare_counters(run, [number * b / 4] * 4)
        + calibration_machines.compare_counters(run, [number * b / 4] * 4, "read")
    )


def compare_shared(run: Run) -> list[Comparison]:
    """As on the machine of that name, over blocks that are there: in the kernel one task at a time makes a file longer,
    and who waits there waits beside the line of the machine (the mean stays, p99 is 12 % more)."""
    operations, wait = (
        4 * calibration_machines.SHARED_TRANSFERS,
        4 * calibration_machines.BLOCK_BYTES / calibration_machines.TARGET_BYTES_PER_S,
    )
    rows = calibration_machines.compare_rates(
        run, "write", calibration_machines.SHARED_S, operations * calibration_machines.BLOCK_BYTES, operations
    )
    rows += calibration_machines.compare_latencies(
        run, "write", "write", {"p50": wait, "p99": wait, "min": calibration_machines.TRANSFER_S}
    )
    return rows + calibration_machines.compare_counters(run, [2 * operations * calibration_machines.BLOCK_BYTES])


def compare_metadata_bound(run: Run) -> list[Comparison]:
    """As on the machine of that name, with fewer files: each that the kernel remembers is an open one of the mount."""
    rows = []
    threads, files = calibration_machines.METADATA_THREADS, calibration_machines.METADATA_TASKS * FILES_PER_TASK
    stat_s = files / threads * calibration_machines.STAT_CALL_S + calibration_machines.CALL_S
    costs = (
        ("create", calibration_machines.CREATE_CALL_S, FILES_PER_TASK * calibration_machines.CREATE_ROUND_S),
        ("stat", calibration_machines.STAT_CALL_S, stat_s),
    )
    for phase, cost, seconds in costs:
        output = run.find_line("phase_end", phase)["rates"]["total"]["ops_per_s"]
        rows.append(Comparison(f"{phase}: operations", "op/s", files / seconds, output))
        wait = calibration_machines.METADATA_TASKS / threads * cost
        rows += calibration_machines.compare_latencies(run, phase, phase, {"p50": wait, "p99": wait})
    return rows


def list_mounted_machines() -> list[Machine]:
    """Those of the calibration, with only the phases that their truths are about."""
    machine_list = []
    for machine in calibration_machines.MACHINES:
        plan = copy.deepcopy(dict(machine.plan))
        if machine.name in ("capped", "shared", "degraded"):
            plan["phases"] = plan["phases"][:1]
        if machine.name == "degraded":
            fast, slow = (
                calibration_machines.BLOCK_BYTES / calibration_machines.TRANSFER_S,
                calibration_machines.BLOCK_BYTES / calibration_machines.SLOW_TRANSFER_S,
            )
            stretches = [(0.2, 5.0, 3 * fast + slow), (5.4, 26.0, slow)]
            machine = replace(machine, faults=("slow-target t2 5x",), truth=compare_degraded, series=stretches)
        if machine.name == "shared":
            plan["phases"] = [{"id": "lay", "op": "write"}, {"id": "write", "op": "rewrite"}]
            machine = replace(machine, truth=compare_shared)
        if machine.name == "striped":
            plan = calibration_machines.make_transfer_plan(1, calibration_machines.STRIPED_TRANSFERS)
            plan["target"]["striping"] = {"count": 4, "size": calibration_machines.BLOCK_BYTES // 4}
            fast = calibration_machines.BLOCK_BYTES / calibration_machines.TRANSFER_S
            machine = replace(machine, target_rate="25 MB/s", truth=compare_striped, series=[(0.1, 2.0, fast)])
        if machine.name == "metadata-bound":
            plan = calibration_machines.make_metadata_plan(calibration_machines.METADATA_TASKS, FILES_PER_TASK)
            rate = calibration_machines.METADATA_TASKS / calibration_machines.CREATE_ROUND_S
            machine = replace(machine, truth=compare_metadata_bound, series=[(0.2, 1.8, rate)])
        machine_list.append(replace(machine, plan=plan))
    return machine_list


def make_plan_on_mount(machine: Machine, directory: Path) -> dict[str, Any]:
    """The plan of a machine on the mount. Each task makes files in a directory of its own: in one, the kernel lets only
    one task at a time make a file."""
    plan = copy.deepcopy(dict(machine.plan))
    plan["target"] = {**plan["target"], "path": str(directory), "min_free": 0}
    plan["observe"] = {"slice": f"{100 / CLOCK_SPEED:g}ms"}
    if "meta" in plan:
        plan["meta"]["tree"]["scope"] = "per_task"
    return plan


def read_target_counters(directory: Path) -> dict[str, dict[str, list[str]]]:
    """Bytes in the files of each target, by target; targets that only hold small files of the engine are left out."""
    counters_by_target = {}
    for stats in sorted((directory / ".sonde").rglob("obdfilter/*/stats")):
        lines = (line.split() for line in stats.read_text(encoding="utf-8").splitlines())
        sums = {line[0]: line for line in lines if line}
        counters_by_target[stats.parent.name] = {
            name: line
            for name, line in sums.items()
            if not name.endswith("_bytes") or int(line[6]) > calibration_machines.BLOCK_BYTES
        }
    return counters_by_target


def measure_mounted_machine(machine: Machine, folder: Path) -> list[Comparison]:
    """The engine on the mounted machine, held against the truth of the machine."""
    (folder / "system.toml").write_text(calibration_machines.format_system_file(machine), encoding="utf-8")
    system, plan, record = folder / "system.json", folder / "plan.json", folder / "record.ndjson"
    system.write_text(read_system(str(folder / "system.toml")).to_json(), encoding="utf-8")
    more = ["--speed", str(CLOCK_SPEED), "--lead", str(two_drivers.LEAD), "--nodes", str(machine.nodes)]
    with two_drivers.mount_machine(system, folder, machine.faults, more) as directory:
        plan.write_text(json.dumps(make_plan_on_mount(machine, directory)), encoding="utf-8")
        two_drivers.run_or_fail([str(find_engine().path), "run", str(plan), "--record", str(record)])
        targets = read_target_counters(directory)
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    run = Run(convert_to_machine_time(lines), targets)
    rows = [*machine.truth(run), *calibration_machines.compare_rate_over_time(run, machine)]
    return [replace(row, limit=MAX_RELATIVE_ERROR) for row in rows]  # counters have the engine's own small files, too


def measure_with_retries(machine: Machine) -> list[Comparison]:
    """The run that misses by least."""
    best: list[Comparison] = []
    for _try in range(MAX_TRIES):
        with tempfile.TemporaryDirectory(prefix="sonde-drivers-", dir=two_drivers.find_memory_folder()) as name:
            rows = measure_mounted_machine(machine, Path(name))
        if not best or max(row.error for row in rows) < max(row.error for row in best):
            best = rows
        if all(row.holds for row in best):
            break
    return best


def format_table(named_rows: Sequence[tuple[str, Comparison]]) -> str:
    lines = ["| machine | quantity | truth | mounted | error | more than 2 %, because |", "|---|---|---|---|---|---|"]
    last = ""
    for name, row in named_rows:
        why = "" if row.holds else find_deviation_reason(name, row.quantity) or "**not known**"
        both = f"{row.truth:.5g} {row.unit} | {row.reported:.5g} {row.unit}"
        lines.append(f"| {name if name != last else ''} | {row.quantity} | {both} | {row.error:.2%} | {why} |")
        last = name
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table for the page on calibration")
    parser.add_argument("--only", help="one machine")
    options = parser.parse_args(arguments)
    named_rows: list[tuple[str, Comparison]] = []
    for machine in list_mounted_machines():
        if options.only in (None, machine.name):
            for row in measure_with_retries(machine):
                named_rows.append((machine.name, row))
                print(
                    f"{machine.name:15} {row.quantity:38} {row.truth:12.6g} {row.reported:12.6g} {row.error:8.3%}",
                    flush=True,
                )
    if options.write:
        PAGE_FILE.write_text(format_table(named_rows), encoding="utf-8")
    return 0 if all(row.holds or find_deviation_reason(name, row.quantity) for name, row in named_rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
