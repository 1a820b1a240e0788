# SPDX-License-Identifier: Apache-2.0
"""The engine beside a bare loop over a library: both rewrite and read in every round, and only ratios within a round or
of the fastest rounds are trusted."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from beside.tools import read_phase_end_lines
from overhead.contestants import Turn, run_command
from overhead.rounds import compute_tenth_percentile

ROOT = Path(__file__).resolve().parents[2]
MIN_RATE_RATIO = 0.97
PHASES = ("rewrite", "read")
#: What both do in a round: phase -> what it gave.
Contestant = Callable[[], Mapping[str, Turn]]


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every such bench but where the data is."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", type=Path, default=ROOT / "build/dev/engine/sonde-engine", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="at least 15 for a claim (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.35, help="of each phase (default: %(default)s)")
    parser.add_argument("--only", help="the name of one cell, for example 4k")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    parser.add_argument(
        "--check", action="store_true", help=f"exit code 1 when a ratio of the fastest rounds is below {MIN_RATE_RATIO}"
    )
    return parser


def build_loop(source: str, package: str, debian_name: str, folder: Path, compiler: str) -> Path:
    """Compiles a bare loop of bench/raw with a library that pkg-config knows by `package`."""
    compiler_path, query = shutil.which(compiler), shutil.which("pkg-config")
    flags = subprocess.run([query or "false", "--cflags", "--libs", package], capture_output=True, text=True)
    if compiler_path is None or flags.returncode != 0:
        raise SystemExit(f"{sys.argv[0]}: {compiler} or the headers of {package} are missing: install {debian_name}.")
    program = folder / Path(source).stem
    path = str(ROOT / "bench/raw" / source)
    subprocess.run([compiler_path, "-O2", "-std=c++20", path, "-o", str(program), *flags.stdout.split()], check=True)
    return program


def run_loop(command: list[str], folder: Path, environment: Mapping[str, str]) -> dict[str, Turn]:
    """What the phases of the bare loop gave."""
    phases = json.loads(run_command(command, folder, dict(environment)))
    return {name: Turn(**numbers) for name, numbers in phases.items()}


def make_phases(seconds: float, rewrite: str) -> list[dict[str, Any]]:
    """Of a plan: all data once, then rewritten and read for so long each. `rewrite`: the operation that does it."""
    stop = {"time": f"{seconds}s"}
    timed = [{"id": "rewrite", "op": rewrite, "stop": stop}, {"id": "read", "op": "read", "stop": stop}]
    return [{"id": "write", "op": "write"}, *timed]


def run_engine(
    engine: Path, plan: Mapping[str, Any], folder: Path, environment: Mapping[str, str], options: Sequence[str] = ()
) -> dict[str, Turn]:
    """The same of the engine, with all meters. `options`: further arguments of `sonde-engine run`."""
    document = {"schema": "sonde-plan/2", "id": "bench", **plan}
    (folder / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    record = folder / "record.ndjson"
    record.unlink(missing_ok=True)
    command = [str(engine), "run", str(folder / "plan.json"), "--record", str(record), *options]
    run_command(command, folder, dict(environment))
    return {end["phase"]: make_turn(end) for end in read_phase_end_lines(record)}


def make_turn(end: dict[str, Any]) -> Turn:
    cpu_s = float(end["cpu"]["user_s"]) + float(end["cpu"]["system_s"])
    return Turn(float(end["rates"]["transfer"]["ops_per_s"]), cpu_s / float(end["ops"]["done"]) * 1e9)


@dataclass
class Ratios:
    """Engine / loop, round by round."""

    rate: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  #: operations per second of processor time
    engine: list[float] = field(default_factory=list)  #: operations per second
    loop: list[float] = field(default_factory=list)


def compare(engine: Contestant, loop: Contestant, rounds: int) -> dict[str, Ratios]:
    """Ratios of each phase. The order within a round is drawn."""
    ratios = {phase: Ratios() for phase in PHASES}
    chance = random.Random(1)
    contestants = {"engine": engine, "loop": loop}
    for number in range(rounds + 1):
        turns = {name: contestants[name]() for name in chance.sample(sorted(contestants), 2)}
        for phase, values in ratios.items():
            ours, bare = turns["engine"][phase], turns["loop"][phase]
            if number > 0 and ours.cpu_ns and bare.cpu_ns:  # the first round warms up
                values.rate.append(ours.rate / bare.rate)
                values.cpu.append(bare.cpu_ns / ours.cpu_ns)
                values.engine.append(ours.rate)
                values.loop.append(bare.rate)
    return ratios


class Cell(Protocol):
    """One kind of transfers. `where`: the folder or the address of the server."""

    @property
    def name(self) -> str: ...

    def plan(self, where: str, seconds: float) -> dict[str, Any]:
        """Members of the engine's plan."""
        ...

    def command(self, loop: Path, where: str, seconds: float) -> list[str]:
        """Starts the bare loop for the same transfers."""
        ...


def compare_cells(
    cells: Iterable[Cell], arguments: argparse.Namespace, loop: Path, where: str, folder: Path,
    environment: Mapping[str, str],
) -> int:  # fmt: skip
    """Compares the engine and the bare loop in every cell that is asked for, and prints the figures; the exit code."""
    figures = Figures(arguments.json)
    engine = arguments.engine.resolve()
    for cell in cells:
        if arguments.only in (None, cell.name):
            plan = cell.plan(where, arguments.seconds)
            command = cell.command(loop, where, arguments.seconds)
            ratios = compare(
                partial(run_engine, engine, plan, folder, environment),
                partial(run_loop, command, folder, environment),
                arguments.rounds,
            )
            figures.add(cell.name, ratios)
    return figures.finish(arguments.check)


@dataclass
class Figures:
    """Named figures of all cells: printed a line each, or as one object with --json."""

    as_json: bool
    values: dict[str, float] = field(default_factory=dict)

    def add(self, cell: str, phases: Mapping[str, Ratios]) -> None:
        for phase, ratios in phases.items():
            name = f"{phase}_{cell}"
            self.values[f"{name}_fastest"] = round(max(ratios.engine) / max(ratios.loop), 4)
            self.values[f"{name}_ns"] = round(1e9 / max(ratios.loop))
            text = f" | fastest {self.values[f'{name}_fastest']:.3f} of {self.values[f'{name}_ns']:.0f} ns"
            for kind, values in (("rate", ratios.rate), ("cpu", ratios.cpu)):
                median, low = statistics.median(values), compute_tenth_percentile(values)
                self.values |= {f"{name}_{kind}": round(median, 4), f"{name}_{kind}_p10": round(low, 4)}
                text += f" | {kind} {median:.3f} ({low:.3f})"
            print(f"{name:24}{text}", file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def finish(self, check: bool) -> int:
        """Prints the object; the exit code."""
        if self.as_json:
            print(json.dumps(self.values))
        is_below = any(value < MIN_RATE_RATIO for name, value in self.values.items() if name.endswith("_fastest"))
        return int(check and is_below)
