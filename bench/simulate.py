# SPDX-License-Identifier: Apache-2.0
"""How many events of the model a core handles in a second, and what a large run costs.

Usage: .venv/bin/python bench/simulate.py [--large]. Takes the newest programs below build/ (`make build`). Events are
those of 256 transfers over a network of 64 clients, 16 servers and 64 targets. With --large, the script also runs
100,000 tasks on the largest file system of systems/edison.toml. It prints processor time, since elapsed time on a busy
computer is not comparable. The goal is 5 million events a second, and 100,000 tasks in less than ten minutes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.launch.simulator import find_simulator  # noqa: E402
from sonde.model.system import read_system  # noqa: E402

MIB = 1 << 20


def describe_network() -> str:
    """Input of sonde-bench-flows: four transfers per client, half of them reads, of 2,000 messages each."""
    lines = ["seed 1 noise 0", "router 50000000000 full"]
    lines += ["client 1000000000 full"] * 64 + ["server 5000000000 full"] * 16
    lines += [f"target {number % 16} 500000000" for number in range(64)]
    for client in range(64):
        lines += [f"flow {client} {(5 * client + 7 * k) % 64} {2000 * MIB} {'rw'[k % 2]}" for k in range(4)]
    return "\n".join(lines) + "\n"


def run_timed(command: list[str], text: str = "") -> tuple[str, float, int]:
    """Output, processor time in s, and the largest memory in KiB of any child process so far."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    completed = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return completed.stdout, spent, after.ru_maxrss


def measure_event_rate() -> None:
    programs = sorted(ROOT.glob("build/*/bench/sonde-bench-flows"), key=lambda path: path.stat().st_mtime)
    if not programs:
        raise SystemExit("sonde-bench-flows is not built: cmake --preset dev && cmake --build --preset dev")
    output, spent, _memory = run_timed([str(programs[-1])], describe_network())
    handled = int(output.split()[-1])
    print(f"{handled:,} events in {spent:.2f} s of processor time: {handled / spent / 1e6:.1f} million a second")


def measure_large_run() -> None:
    plan = {
        "schema": "sonde-plan/2",
        "id": "large",
        "title": "100,000 tasks",
        "target": {"path": "/scratch"},
        "tasks": {"processes": 50_000, "threads": 2},
        "observe": {"max_slices": 64},
        "data": {"access": {"transfer": "1MiB", "block": "4MiB", "segments": 1}, "io": {"fsync": "end"}},
        "phases": [{"id": "write", "op": "write"}],
    }
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as name:
        folder = Path(name)
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        system = read_system(str(ROOT / "systems" / "edison.toml")).to_json()
        (folder / "system.json").write_text(system, encoding="utf-8")
        arguments = [str(find_simulator()), "run", str(folder / "plan.json"), "--system", str(folder / "system.json")]
        _output, spent, memory = run_timed([*arguments, "--mount", "fs3", "--record", str(folder / "record.ndjson")])
    print(f"100,000 tasks write 4 MiB each on 144 targets: {spent:.0f} s of processor time, {memory / 1024:.0f} MiB")


if __name__ == "__main__":
    measure_event_rate()
    if "--large" in sys.argv[1:]:
        measure_large_run()
