# SPDX-License-Identifier: Apache-2.0
"""What the engine's operations on names cost beside a bare loop over the same system calls, and beside mdtest.

    python bench/metadata.py --on /dev/shm --on /scratch            ratios of rates, by interleaved rounds
    python bench/metadata.py --on /dev/shm --fresh ext4             the same on ext4 without a past, in memory
    python bench/metadata.py --on /dev/shm --million                peak memory of a million files

Only ratios within a round are trusted; the median over the rounds is reported with the tenth percentile beside it.
mdtest takes part when it is on PATH. On a machine that others use, start it with a real-time priority
(`chrt -f 2 python bench/metadata.py …`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from beside.courses import Rates
from beside.places import open_new_file_system, open_new_folder
from beside.tools import parse_mdtest_rates
from overhead.rounds import compute_tenth_percentile

OPERATIONS = ("create", "stat", "open_close", "remove")


def run_and_read_output(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()[-200:]}")
    return done.stdout


def measure_raw_loop(program: Path, folder: Path, items: int, paths: str) -> Rates:
    """The bare loop."""
    tree = folder / "barest" / "items-0" / "branch.0"  # whole paths have as many parts as the engine's
    tree.mkdir(parents=True)
    seconds = json.loads(run_and_read_output([str(program), "names", str(tree), str(items), paths], folder))
    shutil.rmtree(folder / "barest")
    return {name: items / seconds[name] for name in OPERATIONS}


def make_plan(folder: Path, items: int, paths: str, *more: str) -> dict[str, Any]:
    operations = [*OPERATIONS[:3], *more, OPERATIONS[3]]
    return {
        "schema": "sonde-plan/2",
        "id": "metadata",
        "target": {"path": str(folder), "directory": "engine", "min_free": 0},
        "meta": {"tree": {"items_per_task": items}, "lookup": {"paths": paths}},
        "phases": [{"id": name, "op": name} for name in ("mktree", *operations, "rmtree")],
    }


def measure_engine(program: Path, folder: Path, items: int, paths: str) -> Rates:
    """The engine with all its meters."""
    (folder / "plan.json").write_text(json.dumps(make_plan(folder, items, paths)), encoding="utf-8")
    lines = run_and_read_output([str(program), "run", "plan.json", "--record", "-"], folder).splitlines()
    ends = [line for line in map(json.loads, lines) if line["type"] == "phase_end"]
    return {line["phase"]: line["rates"]["total"]["ops_per_s"] for line in ends if line["phase"] in OPERATIONS}


def measure_mdtest(program: str, folder: Path, items: int) -> Rates:
    """mdtest, which hands whole paths to the kernel and starts with a second of sleep outside its clock."""
    table = run_and_read_output(
        [program, "-F", "-C", "-T", "-E", "-r", "-n", str(items), "-d", str(folder / "md")], folder
    )
    rates = parse_mdtest_rates(table)
    return {name: rates["open" if name == "open_close" else name] for name in OPERATIONS}


def compare_programs(
    base: Path, fresh: str | None, programs: tuple[Path, Path], rounds: int, items: int, paths: str
) -> None:
    peer = shutil.which("mdtest") if paths == "full" else None
    turns: dict[str, list[Rates]] = {who: [] for who in ("raw", "engine", *(["mdtest"] if peer else []))}
    chance = random.Random(1)
    for number in range(rounds + 1):
        rates_by_contestant = {}
        for who in chance.sample(sorted(turns), len(turns)):
            with open_new_file_system(base, fresh, items * 16384) if fresh else open_new_folder(base) as folder:
                if who == "raw":
                    rates_by_contestant[who] = measure_raw_loop(programs[1], folder, items, paths)
                elif who == "engine":
                    rates_by_contestant[who] = measure_engine(programs[0], folder, items, paths)
                elif peer:
                    rates_by_contestant[who] = measure_mdtest(peer, folder, items)
        for who in turns if number else ():  # the first round warms up
            turns[who].append(rates_by_contestant[who])
    print(
        f"{fresh or base}, {items} files, {paths} names, {rounds} rounds: rate / bare loop, median (tenth percentile)"
    )
    for name in OPERATIONS:
        floor = 1e9 / statistics.median(rates_of_round[name] for rates_of_round in turns["raw"])
        parts = [f"  {name:11} bare loop {floor:7.0f} ns"]
        for who in list(turns)[1:]:
            ratios = [a[name] / b[name] for a, b in zip(turns[who], turns["raw"], strict=True)]
            parts.append(f"{who} {statistics.median(ratios):.3f} ({compute_tenth_percentile(ratios):.3f})")
        print("  ".join(parts), flush=True)


def measure_peak_memory_mib(program: Path, folder: Path, items: int) -> tuple[float, float]:
    """Peak resident memory of the engine's largest process, and seconds."""
    plan = make_plan(folder, items, "relative", "walk")
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    arguments = [str(program), "run", str(folder / "plan.json"), "--record", str(folder / "record")]
    pid = os.posix_spawn(program, arguments, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(arguments)} failed")
    lines = [json.loads(line) for line in (folder / "record").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["type"] == "phase_end" and line["ops"]["done"] > 1:
            rate = line["rates"]["total"]
            print(f"  {line['phase']:10} {rate['ops']:9} operations {rate['ops_per_s']:12.0f}/s")
    return usage.ru_maxrss / 1024, lines[-1]["seconds"]


def measure_large_tree(base: Path, program: Path, items: int) -> None:
    with tempfile.TemporaryDirectory(prefix="sonde-bench-", dir=base) as name:
        few, _ = measure_peak_memory_mib(program, Path(name), 1)
        (Path(name) / "record").unlink()
        peak_many, seconds = measure_peak_memory_mib(program, Path(name), items)
    print(
        f"{base}, {items} files: {seconds:.1f} s, peak {peak_many:.1f} MiB, "
        f"{peak_many - few:.1f} MiB more than with one file"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of operations on names.")
    parser.add_argument("--on", action="append", type=Path, help="directory to measure in; several (default: /dev/shm)")
    parser.add_argument(
        "--fresh", metavar="TYPE", help="a new file system of this type (mkfs.TYPE) there for each turn; needs root"
    )
    parser.add_argument("--engine", type=Path, help="sonde-engine; default: the newest in build/")
    parser.add_argument("--raw", type=Path, help="sonde-bench-raw; default: the newest in build/")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--million", action="store_true", help="peak memory with a million files instead")
    arguments = parser.parse_args()
    program = (arguments.engine or find_newest_program("engine/sonde-engine")).resolve()
    bare = (
        (arguments.raw or find_newest_program("bench/sonde-bench-raw")).resolve() if not arguments.million else program
    )
    for base in arguments.on or [Path("/dev/shm")]:
        if arguments.million:
            measure_large_tree(base, program, 1_000_000)
            continue
        for paths in ("relative", "full"):
            compare_programs(base, arguments.fresh, (program, bare), arguments.rounds, arguments.items, paths)


def find_newest_program(name: str) -> Path:
    candidates = list((Path(__file__).resolve().parents[1] / "build").glob(f"*/{name}"))
    if not candidates:
        sys.exit(f"there is no build/*/{name}; build it first: cmake --preset dev && cmake --build --preset dev")
    return max(candidates, key=lambda path: path.stat().st_mtime)


if __name__ == "__main__":
    main()
