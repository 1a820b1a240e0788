#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the engine costs: beside the bare system calls, and beside IOR, elbencho and fio where they are on PATH.

Prints a table; with --json one object of named figures instead. A ratio is the engine's rate over the other's: 1 means
no cost, more than 1 means faster. "by CPU time" is the same of the processor time that both say they used. Build first:
cmake --preset dev && cmake --build --preset dev. On a machine that others use, run it under `chrt -f 1` (as root).
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

from overhead import instructions, scale
from overhead.cells import CELLS, find_file_system_type
from overhead.contestants import Contestant, Engine, EngineWithTargets, RawLoop, RunError, list_peers
from overhead.rounds import CellResult, RoundRules, compute_tenth_percentile, run_rounds

ROOT = Path(__file__).resolve().parent.parent
MEMORY_TYPES = ("tmpfs", "ramfs")
#: Of the time of a 4 KiB read in order from memory, for knowing which target served it.
MAX_TARGET_COST_SHARE = 0.01


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, action="append", help="where data is made (default: /dev/shm and here)")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build/dev", help="a developer build (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=21, help="rounds a cell, at least 15 for a claim")
    parser.add_argument("--seconds", type=float, default=0.35, help="length of one turn")
    parser.add_argument(
        "--max-others", type=float, default=0.5, help="processors that may be busy with something else in a round"
    )
    parser.add_argument("--patience", type=float, default=0, help="seconds to wait for that before each round")
    parser.add_argument("--cells", default="*", help="only cells whose FILESYSTEM.NAME matches, e.g. 'tmpfs.read*'")
    parser.add_argument("--only", help="cells, instructions, targets or ranks")
    parser.add_argument("--ranks", type=int, default=64, help="ranks of the start-to-end measurement")
    parser.add_argument("--mpiexec", action="append", default=[], help="a launcher (default: all that are found)")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a promise is broken")
    return parser.parse_args()


def print_unless_quiet(text: str, options: argparse.Namespace) -> None:
    """The table goes to standard output, unless that is for JSON."""
    print(text, file=sys.stderr if options.json else sys.stdout, flush=True)


def report_cell(result: CellResult, figures: dict[str, float], broken: list[str], options: argparse.Namespace) -> None:
    """One line of the table, its figures, and the promises it breaks."""
    key = f"{result.file_system_type}.{result.cell.name}"
    if "engine" not in result.turns:
        broken.append(f"{key}: the engine failed: {result.failures.get('engine')}")
        return
    line = f"{key:42} engine {result.nanoseconds('engine'):9.0f} ns"
    for name in result.turns:
        if name == "engine":
            continue
        ratios = result.ratios("engine", name)
        median, low = statistics.median(ratios), compute_tenth_percentile(ratios)
        figures[f"{key}.vs_{name}"] = round(median, 4)
        figures[f"{key}.vs_{name}_p10"] = round(low, 4)
        line += f" | {name} {result.nanoseconds(name):.0f} ns: {median:.3f} ({low:.3f})"
        if cpu := result.cpu_ratios("engine", name):
            figures[f"{key}.cpu_vs_{name}"] = round(statistics.median(cpu), 4)
            line += f" by CPU time {statistics.median(cpu):.3f}"
        goal = result.cell.goal if name == "raw" else None if name.startswith(("t_", "fio_")) else 1.0
        if name == "fio" and result.cell.depth:
            goal = 0.95
        if goal is not None and median < goal:
            broken.append(f"{key}: {median:.3f} of {name}, promised {goal}")
            line += " BROKEN"
    print_unless_quiet(f"{line} | others {result.others_cpus:.2f} CPUs, {result.disturbed} rounds discarded", options)


def run_cells(
    bases: list[Path], all_of_them: list[Contestant], figures: dict[str, float], options: argparse.Namespace
) -> list[str]:
    """All cells in all places; the promises that were broken."""
    broken: list[str] = []
    rules = RoundRules(options.rounds, options.seconds, options.max_others, options.patience)
    print_unless_quiet(
        f"ratio = engine's rate / the other's, median of {options.rounds} rounds (tenth percentile)", options
    )
    for base in bases:
        file_system = find_file_system_type(base)
        for cell in CELLS:
            if cell.memory != (file_system in MEMORY_TYPES) or not fnmatch.fnmatch(
                f"{file_system}.{cell.name}", options.cells
            ):
                continue
            result = run_rounds(cell, file_system, all_of_them, base, rules)
            report_cell(result, figures, broken, options)
    return broken


def run_instructions(
    raw: RawLoop, engine: Engine, base: Path, figures: dict[str, float], options: argparse.Namespace
) -> list[str]:
    if not instructions.is_callgrind_available():
        print_unless_quiet("instructions: left out, valgrind is not on PATH", options)
        return []
    broken: list[str] = []
    for write, random in ((False, False), (False, True), (True, False), (True, True)):
        name = ("random " if random else "") + ("write" if write else "read")
        try:
            counts = instructions.count_instructions_per_operation(raw, engine, base, write, random)
        except RunError as failure:
            print_unless_quiet(f"instructions of a 4 KiB {name}: left out: {failure}", options)
            continue
        above = counts["engine"] - counts["raw"]
        key = ("write" if write else "read") + "_4k" + ("_random" if random else "")
        figures[f"instructions.{key}_above_raw"] = round(above, 1)
        print_unless_quiet(
            f"instructions of a 4 KiB {name}: engine {counts['engine']:.0f}, raw {counts['raw']:.0f}, "
            f"above raw {above:.0f} (IOR: about 220)",
            options,
        )
        if above > (promised := instructions.MAX_INSTRUCTIONS_PER_OPERATION[random]):
            broken.append(f"a 4 KiB {name} takes {above:.0f} instructions above the bare loop, promised {promised}")
    for random in (False, True):
        order = "random" if random else "sequential"
        try:
            further = instructions.count_instructions_by_target_count(engine, base, random, (1, 144))
        except RunError as failure:
            print_unless_quiet(f"instructions of targets: left out: {failure}", options)
            continue
        for stripes, more in further.items():
            figures[f"instructions.targets_{stripes}_{order}"] = round(more, 1)
            print_unless_quiet(
                f"instructions of a {order} 4 KiB read for its target among {stripes}: {more:.0f}", options
            )
    return broken


def run_targets(engine: Engine, base: Path, figures: dict[str, float], options: argparse.Namespace) -> list[str]:
    """What it costs in time to give each operation to its target: the rate without a layout over that with one."""
    broken: list[str] = []
    rules = RoundRules(options.rounds, options.seconds, options.max_others, options.patience)
    file_system = find_file_system_type(base)
    for cell in (cell for cell in CELLS if cell.memory and cell.name in ("read_4k", "read_4k_random")):
        with_targets = [EngineWithTargets(engine.program, f"targets_{count}", count) for count in (1, 144)]
        result = run_rounds(cell, file_system, [engine, *with_targets], base, rules)
        for contestant in with_targets:
            if contestant.name not in result.turns or "engine" not in result.turns:
                print_unless_quiet(f"targets.{cell.name}: left out: {result.failures}", options)
                continue
            ratio = statistics.median(result.ratios("engine", contestant.name))
            figures[f"targets.{cell.name}.{contestant.stripes}"] = round(ratio, 4)
            text = f"{cell.name} on {contestant.stripes} targets: {100 * (ratio - 1):.2f} % of the time more"
            print_unless_quiet(f"{text} | others {result.others_cpus:.2f} CPUs", options)
            if not cell.random and ratio > 1 + MAX_TARGET_COST_SHARE:
                broken.append(f"{text}, promised {100 * MAX_TARGET_COST_SHARE:g} %")
    return broken


def run_ranks(
    raw: RawLoop, engine: Engine, base: Path, figures: dict[str, float], options: argparse.Namespace
) -> list[str]:
    broken: list[str] = []
    ior = shutil.which("ior")
    for mpi in scale.list_launchers(options.mpiexec, ROOT):
        for who, program in (("engine", engine), ("ior", ior)):
            if program is None:
                continue
            try:
                outcome = scale.measure_median_start(who, program, mpi, raw.program, base, options.ranks, 3)
            except RunError as failure:
                print_unless_quiet(f"{options.ranks} ranks, {mpi.name}: {who} left out: {failure}", options)
                continue
            figures[f"ranks{options.ranks}.{mpi.name}.{who}_s"] = round(outcome.seconds, 3)
            figures[f"ranks{options.ranks}.{mpi.name}.{who}_peak_mib"] = round(outcome.peak_mib, 2)
            print_unless_quiet(
                f"{options.ranks} ranks, {mpi.name}: {who} {outcome.seconds:.2f} s from start to end, "
                f"{outcome.peak_mib:.1f} MiB the largest rank",
                options,
            )
            if who == "engine" and options.ranks == 64:
                if outcome.seconds > 2:
                    broken.append(f"64 ranks under {mpi.name} took {outcome.seconds:.2f} s, promised 2 s")
                if outcome.peak_mib > 18.8:
                    broken.append(f"a rank under {mpi.name} took {outcome.peak_mib:.1f} MiB, promised 18.8 MiB")
    return broken


def main() -> int:
    options = parse_arguments()
    options.build = options.build.resolve()
    raw = RawLoop(options.build / "bench/sonde-bench-raw")
    engine = Engine(Path(os.environ.get("SONDE_ENGINE", options.build / "engine/sonde-engine")).resolve())
    for program in (raw.program, engine.program):
        if not program.exists():
            print(
                f"bench: {program} is not built; run cmake --preset dev && cmake --build --preset dev", file=sys.stderr
            )
            return 3
    bases = [Path(base).resolve() for base in options.dir or ("/dev/shm", options.build)]
    memory = next((base for base in bases if find_file_system_type(base) in MEMORY_TYPES), bases[0])
    figures: dict[str, float] = {}
    broken: list[str] = []
    if options.only in (None, "cells"):
        broken += run_cells(bases, [raw, engine, *list_peers()], figures, options)
    if options.only in (None, "instructions"):
        broken += run_instructions(raw, engine, memory, figures, options)
    if options.only in (None, "targets"):
        broken += run_targets(engine, memory, figures, options)
    if options.only in (None, "ranks"):
        broken += run_ranks(raw, engine, memory, figures, options)
    for sentence in broken:
        print_unless_quiet(f"broken promise: {sentence}", options)
    if options.json:
        print(json.dumps(figures, indent=2))
    return 1 if broken and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
