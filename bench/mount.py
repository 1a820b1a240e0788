#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The overhead of `sonde mount` with a machine that takes no time: an upper bound of any mounted machine.

The engine overwrites and reads its files in calls of 1 MiB and of 4 KiB (random order), in turn in three directories:
one in --dir (raw), one of `sonde mount --no-cost` with its store in --dir, and one of passthrough_ll, an example
of libfuse. The script compiles passthrough_ll if it finds the source, and otherwise prints why it is left out.
Prints medians of the rounds, and ratios within a round. The goals are 2 GB/s at 1 MiB and 100,000 operations of 4 KiB a
second; on a shared computer the ratios are more reliable. A line begins with the number of tasks (threads).
Build first: cmake --preset dev && cmake --build --preset dev.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from overhead.contestants import Engine, RunError, read_phase_end_line, run_command

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "lab"))

from sonde.model.system import read_system  # noqa: E402

MIB = 1 << 20
FILE_BYTES = 64 * MIB  #: of each task
CELLS = {  # name: operation, bytes of a call, order, the goal in operations/s
    "write_1m": ("rewrite", MIB, "sequential", 2e9 / MIB),
    "read_1m": ("read_only", MIB, "sequential", 2e9 / MIB),
    "write_4k": ("rewrite", 4096, "random_permute", 100e3),
    "read_4k": ("read_only", 4096, "random_permute", 100e3),
}
SOURCES = ("/usr/share/doc/libfuse3-dev/examples", "/usr/share/doc/fuse3/examples", "/usr/share/doc/fuse3-devel")
DISPLAY_UNITS = {MIB: (1e9 / MIB, "GB/s"), 4096: (1e3, "k op/s")}
Rates = dict[str, float]  #: operations/s, by cell


class SkippedExampleError(Exception):
    """A place cannot be had here; one sentence."""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="of all data (default: %(default)s)")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev", help="a developer build (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each cell in a round (default: %(default)s)")
    parser.add_argument("--tasks", type=int, action="append", help="threads that call; several (default: 1 and 4)")
    parser.add_argument(
        "--spin",
        type=float,
        default=0,
        help="s that the mount looks out for the next call (default: it sleeps at once)",
    )
    parser.add_argument("--example", type=Path, help="folder with passthrough_ll.c of libfuse")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    return parser.parse_args()


def make_plan(folder: Path, tasks: int, seconds: float) -> dict[str, Any]:
    """The first phase writes the files, then one phase per cell accesses them for `seconds`."""
    phases: list[dict[str, Any]] = [{"id": "lay", "op": "write"}]
    for name, (operation, transfer, order, _goal) in CELLS.items():
        access = {"transfer": transfer, "block": FILE_BYTES, "segments": 1, "order": order}
        phases.append({"id": name, "op": operation, "access": access, "stop": {"time": seconds}})
    return {
        "schema": "sonde-plan/2",
        "id": "bench",
        "target": {"path": str(folder), "min_free": 0},
        "tasks": {"threads": tasks},
        "data": {
            "access": {"transfer": MIB, "block": FILE_BYTES, "segments": 1},
            "payload": {"period": 4096},
        },
        "phases": phases,
    }


def measure_turn(engine: Engine, folder: Path, work: Path, tasks: int, seconds: float) -> Rates:
    command, record = engine.command(make_plan(folder, tasks, seconds), work)
    run_command(command, work)
    return {name: float(read_phase_end_line(record, name)["rates"]["transfer"]["ops_per_s"]) for name in CELLS}


@contextmanager
def serve_mount(command: Sequence[str], point: Path) -> Iterator[Path]:
    """A file system whose program stays in the foreground, until the end."""
    point.mkdir()
    with subprocess.Popen([*command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        before = point.stat().st_dev
        while point.stat().st_dev == before:
            if program.poll() is not None:
                output = program.stderr.read().strip() if program.stderr else ""
                raise SkippedExampleError(f"{Path(command[0]).name} ended with {program.returncode}: {output}")
            time.sleep(0.01)
        try:
            yield point
        finally:
            subprocess.run(["fusermount3", "-u", "-z", str(point)], check=False, capture_output=True)
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()


def make_mount_command(build: Path, work: Path, spin: float) -> list[str]:
    program = build / "simulate" / "sonde-mount"
    if not program.exists():
        raise SkippedExampleError(f"{program} is not built")
    system = work / "system.json"
    system.write_text(read_system(str(ROOT / "systems" / "edison.toml")).to_json(), encoding="utf-8")
    (work / "store").mkdir()
    arguments = ["mount", str(work / "mount"), "--system", str(system), "--store", str(work / "store")]
    return [str(program), *arguments, "--no-cost", "--foreground", "--spin", str(spin)]


def build_passthrough_example(source_directory: Path | None, work: Path) -> list[str]:
    """The command of passthrough_ll without kernel cache, like that of the machine."""
    folders = [source_directory] if source_directory else [Path(name) for name in SOURCES]
    source = next((folder / "passthrough_ll.c" for folder in folders if (folder / "passthrough_ll.c").exists()), None)
    compiler = shutil.which("cc")
    if source is None or compiler is None:
        raise SkippedExampleError("passthrough_ll.c of libfuse (--example) or a C compiler is not here")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False)
    program = work / "passthrough_ll"
    command = [compiler, "-O2", "-w", str(source), "-o", str(program), *flags.stdout.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SkippedExampleError(f"{source} cannot be compiled: {(done.stderr.splitlines() or ['?'])[-1]}")
    (work / "passed").mkdir()
    return [str(program), "-f", "-o", f"source={work / 'passed'},cache=never", str(work / "example")]


def print_rates(tasks: int, measured: dict[str, list[Rates]]) -> dict[str, float]:
    """Prints the rates with `tasks` tasks and returns them by name."""
    figures = {}
    for name, (_operation, transfer, _order, goal) in CELLS.items():
        scale, unit = DISPLAY_UNITS[transfer]
        columns = [f"{tasks} task{'s' * (tasks > 1)}  {name:9}"]
        for directory, rounds in measured.items():
            rate = statistics.median(rates[name] for rates in rounds)
            figures[f"{directory}.{name}.{tasks}"] = rate
            columns.append(f"{directory} {rate / scale:7.2f} {unit}")
        for reference in ("raw", "example"):
            if reference in measured and "mount" in measured:
                ratio = statistics.median(
                    mounted[name] / other[name]
                    for mounted, other in zip(measured["mount"], measured[reference], strict=True)
                )
                figures[f"mount_over_{reference}.{name}.{tasks}"] = ratio
                columns.append(f"mount/{reference} {ratio:5.2f}")
        if "mount" in measured:
            is_reached = figures[f"mount.{name}.{tasks}"] >= goal
            columns.append(f"goal {goal / scale:g} {unit}: {'reached' if is_reached else 'not reached'}")
        print("  ".join(columns), file=sys.stderr, flush=True)
    return figures


def main() -> int:
    options = parse_arguments()
    program = options.build / "engine" / "sonde-engine"
    if not program.exists():
        raise RunError(f"{program} is not built: cmake --preset dev && cmake --build --preset dev, or name --build")
    engine = Engine(program)
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-bench-", dir=options.dir)))
        (work / "raw").mkdir()
        places = {"raw": work / "raw"}
        for name in ("mount", "example"):
            try:
                command = (
                    make_mount_command(options.build, work, options.spin)
                    if name == "mount"
                    else build_passthrough_example(options.example, work)
                )
                places[name] = stack.enter_context(serve_mount(command, work / name))
            except SkippedExampleError as reason:
                print(f"{name} is left out: {reason}", file=sys.stderr)
        for tasks in options.tasks or [1, 4]:
            measured: dict[str, list[Rates]] = {name: [] for name in places}
            for number in range(options.rounds):
                order = list(places)
                for name in order[number % len(order) :] + order[: number % len(order)]:
                    measured[name].append(measure_turn(engine, places[name], work, tasks, options.seconds))
            figures |= print_rates(tasks, measured)
    if options.json:
        print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except RunError as error:
        raise SystemExit(str(error)) from error
