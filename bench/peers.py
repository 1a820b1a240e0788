#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sonde beside IOR, mdtest, elbencho and fio: the same work, in turn, by all that are on PATH.

Prints for each step the median of the ratios Sonde / other within a round, with the least and the largest; more than 1
means that Sonde is faster. "below": Sonde was slower in so many rounds that chance would do that in one of twenty
comparisons at most (sign test). With --json one object of named figures instead. Build first: cmake --preset dev &&
cmake --build --preset dev. On a machine that others use, run it under `chrt -f 1` (as root).
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import math
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from beside.courses import COURSES, Rates, WorkloadCourse
from beside.places import open_new_file_system, open_new_folder
from beside.tools import Sonde, SondeNames, Tool, list_other_tools
from overhead.cells import find_file_system_type
from overhead.contestants import RunError
from overhead.rounds import read_busy_seconds, read_own_processor_seconds
from overhead.scale import list_launchers

ROOT = Path(__file__).resolve().parent.parent
OpenFolder = Callable[[], AbstractContextManager[Path]]  # a new one for each turn
MAX_CHANCE = 0.05  # of calling a step "below" that is not


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, action="append", help="where data is made (default: /dev/shm and here)")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev", help="developer build (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of a course, at least 5 (default: %(default)s)")
    parser.add_argument("--tasks", type=int, action="append", help="tasks; several (default: 1 and 2)")
    parser.add_argument(
        "--fresh", metavar="TYPE", help="a new file system of this type (mkfs.TYPE) in DIR for each turn; needs root"
    )
    parser.add_argument("--courses", default="*", help="only those whose FILESYSTEM.COURSE matches, e.g. 'tmpfs.data*'")
    parser.add_argument("--size", type=float, default=1.0, help="times the usual work (default: %(default)s)")
    parser.add_argument("--mpiexec", default="mpiexec", help="launcher of IOR and mdtest (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a step is below")
    return parser.parse_args()


def compute_chance(slower: int, rounds: int) -> float:
    """How probable it is that of two equal tools one is slower in at least so many rounds."""
    return sum(math.comb(rounds, k) for k in range(slower, rounds + 1)) / float(2**rounds)


def run_round(
    course: WorkloadCourse, tools: list[Tool], open_folder: OpenFolder, tasks: int, failures: dict[str, str]
) -> dict[str, Rates]:
    """Everybody goes over the course once, each in a new place. Who fails is left out from then on."""
    rates: dict[str, Rates] = {}
    for tool in tools:
        if tool.name in failures or not tool.steps(course, tasks):
            continue
        with open_folder() as folder:
            try:
                rates_found = tool.run(course, folder, tasks)
                rates[tool.name] = {step: rates_found[step] for step in tool.steps(course, tasks)}
            except (RunError, OSError, ValueError, KeyError, IndexError) as failure:
                failures[tool.name] = f"{type(failure).__name__}: {failure}"
    return rates


def run_rounds(
    course: WorkloadCourse, tools: list[Tool], open_folder: OpenFolder, tasks: int, rounds: int
) -> list[dict[str, Rates]]:
    """All rounds, each in another order: what one leaves behind is the next one's luck."""
    chance = random.Random(1)
    failures: dict[str, str] = {}
    run_round(course.smaller(0.1), tools, open_folder, tasks, failures)  # warms up
    begin, busy, own_busy = time.monotonic(), read_busy_seconds(), read_own_processor_seconds()
    rounds_played = [
        run_round(course, chance.sample(tools, len(tools)), open_folder, tasks, failures) for _ in range(rounds)
    ]
    disturbance = max(0.0, (read_busy_seconds() - busy) - (read_own_processor_seconds() - own_busy)) / (
        time.monotonic() - begin
    )
    for name, reason in failures.items():
        print(f"{course.name}, {tasks} tasks: {name} left out: {reason}", file=sys.stderr)
    if disturbance > 0.3:
        print(f"{course.name}, {tasks} tasks: others kept {disturbance:.1f} processors busy", file=sys.stderr)
    return rounds_played


def format_comparison(
    key: str, step: str, rounds: list[dict[str, Rates]], figures: dict[str, float]
) -> tuple[str, list[str]]:
    """The line of a step, and the names of those that Sonde is below."""
    sonde_rate = statistics.median(round_["sonde"][step] for round_ in rounds)
    sonde_variant = {"elbencho": "sonde_names", "fio": "sonde_names"}  # whom we are compared with by which of ours
    figures[f"{key}.{step}.sonde"] = round(sonde_rate, 1)
    parts, below = [f"{key + '.' + step:38} {sonde_rate:12.0f} /s"], []
    for name in sorted({name for round_ in rounds for name in round_} - {"sonde", "sonde_names"}):
        ours = sonde_variant.get(name, "sonde") if sonde_variant.get(name) in rounds[0] else "sonde"
        pairs = [
            round_[ours][step] / round_[name][step]
            for round_ in rounds
            if step in round_.get(name, {}) and ours in round_
        ]
        if not pairs:
            continue
        median = statistics.median(pairs)
        slower = sum(pair < 1 for pair in pairs)
        figures[f"{key}.{step}.vs_{name}"] = round(median, 4)
        parts.append(f"{name} {median:.3f} ({min(pairs):.2f} to {max(pairs):.2f})")
        if median < 1 and compute_chance(slower, len(pairs)) < MAX_CHANCE:
            below.append(name)
            parts[-1] += " BELOW"
    return " | ".join(parts), below


def main() -> int:
    options = parse_arguments()
    program = Path(os.environ.get("SONDE_ENGINE", options.build / "engine/sonde-engine")).resolve()
    if not program.exists():
        print(f"bench: {program} is not built; run cmake --preset dev && cmake --build --preset dev", file=sys.stderr)
        return 3
    if options.rounds < 5:
        print("bench: five rounds at least: fewer say nothing about chance", file=sys.stderr)
        return 2
    launchers_found = list_launchers([options.mpiexec], ROOT)
    mpiexec = (launchers_found[0].path, *launchers_found[0].options, "-n") if launchers_found else ()
    tools: list[Tool] = [Sonde(program), SondeNames(program), *list_other_tools(mpiexec)]
    out = sys.stderr if options.json else sys.stdout
    print(f"beside {', '.join(tool.name for tool in tools[2:]) or 'nobody: none is on PATH'}", file=out)
    figures: dict[str, float] = {}
    worse: list[str] = []
    for base in options.dir or [Path("/dev/shm"), options.build]:
        kind = options.fresh or find_file_system_type(base.resolve())
        for course in COURSES:
            if not fnmatch.fnmatch(f"{kind}.{course.name}", options.courses):
                continue
            work = course.smaller(options.size) if options.size != 1 else course
            need = 3 * work.size * max(options.tasks or [2]) if not work.items else work.items * 8192
            if shutil.disk_usage(base).free < need:
                print(f"{kind}.{course.name}: left out: {base} has less than {need >> 20} MiB free", file=sys.stderr)
                continue
            open_folder = functools.partial(open_new_folder, base.resolve())
            if options.fresh:
                open_folder = functools.partial(open_new_file_system, base.resolve(), options.fresh, 2 * need)
            for tasks in options.tasks or [1, 2]:
                rounds = run_rounds(work, tools, open_folder, tasks, options.rounds)
                rounds = [round_ for round_ in rounds if "sonde" in round_]
                if not rounds:
                    worse.append(f"{kind}.{course.name}: Sonde failed")
                    continue
                for step in course.steps:
                    key = f"{kind}.{course.name}.{tasks}"
                    line, below = format_comparison(key, step, rounds, figures)
                    print(line, file=out, flush=True)
                    worse += [f"{key}.{step}: below {name}" for name in below]
    for sentence in worse:
        print(sentence, file=out)
    if options.json:
        print(json.dumps(figures, indent=2))
    return 1 if worse and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
