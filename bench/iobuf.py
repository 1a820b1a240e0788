#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the preload library costs, and what it gains: pairs of runs, with and without it, in turns.

Prints a line a cell: the median time of a record without and with the library, and the median of the ratios of the
pairs (more than 1 means faster with it). With --json one object of named figures. Build first: cmake --preset dev &&
cmake --build --preset dev. The cell `slow` needs the headers of FUSE 3 and root.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "preload"


@dataclass(frozen=True)
class Cell:
    """One loop, with the settings it is compared under. `trace`: the tracer instead of the buffer."""

    name: str
    mode: str
    record: int
    records: int
    params: str = "*"
    trace: bool = False


SIZES = (1_000, 10_000, 100_000)
VOLUME = 64_000_000
CELLS = (
    Cell("cost.not_buffered.read", "read", 512, 200_000, "*:off"),
    Cell("cost.not_buffered.write", "rewrite", 512, 200_000, "*:off"),
    Cell("cost.trace.read", "read", 512, 200_000, trace=True),
    Cell("cost.trace.write", "rewrite", 512, 200_000, trace=True),
    *(Cell(f"gain.write.{size}", "write", size, VOLUME // size) for size in SIZES),
    *(Cell(f"gain.rewrite.{size}", "rewrite", size, VOLUME // size) for size in SIZES),
    *(Cell(f"gain.read.{size}", "read", size, VOLUME // size) for size in SIZES),
    Cell("gain.backward.8000", "backward", 8_000, VOLUME // 8_000),
    Cell("random.read.4096", "random", 4_096, 100_000),
    Cell("random.write.4096", "random_write", 4_096, 100_000),
)
SLOW = (
    Cell("slow.write.1000", "write", 1_000, 3_000),
    Cell("slow.read.1000", "read", 1_000, 3_000),
    Cell("slow.backward.1000", "backward", 1_000, 3_000),
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, action="append", help="where data is made (default: /dev/shm and here)")
    parser.add_argument("--library", type=Path, help="default: the newest in build/*/preload")
    parser.add_argument("--pairs", type=int, default=7, help="pairs a cell, at least 5 for a claim")
    parser.add_argument("--cells", default="", help="only cells whose name contains this")
    parser.add_argument("--pause", type=int, default=200, help="microseconds a call costs in the cells `slow`")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    return parser.parse_args()


def library(given: Path | None) -> Path:
    built = list(ROOT.glob("build/*/preload/libsonde-preload.so"))
    if given is None and not built:
        sys.exit("bench/iobuf.py: the library is not built: cmake --preset dev && cmake --build --preset dev")
    return (given or max(built, key=lambda path: path.stat().st_mtime)).absolute()


def compiled(source: str, folder: Path, *options: str) -> Path:
    made = folder / source
    subprocess.run(["cc", "-O2", "-o", str(made), str(HERE / f"{source}.c"), *options], check=True)
    return made


def nanoseconds(loops: Path, cell: Cell, file: Path, variables: dict[str, str]) -> float:
    """One run: time of a record."""
    command = [str(loops), cell.mode, str(file), str(cell.record), str(cell.records)]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(loops: Path, cell: Cell, place: Path, preload: Path, pairs: int) -> tuple[float, float, float]:
    """Median time without and with the library, and the median of the ratios of the pairs."""
    file = place / "data"
    if cell.mode not in ("write",):
        nanoseconds(loops, Cell("", "write", cell.record, cell.records), file, {})
    with tempfile.TemporaryDirectory() as traces:
        settings = {"SONDE_TRACE": traces} if cell.trace else {"IOBUF_PARAMS": cell.params}
        variables = {"LD_PRELOAD": str(preload), **settings}
        turns = []
        for number in range(pairs):
            order = [{}, variables] if number % 2 == 0 else [variables, {}]
            times = [nanoseconds(loops, cell, file, one) for one in order]
            turns.append(tuple(times if number % 2 == 0 else times[::-1]))
    file.unlink()
    without, under = zip(*turns, strict=True)
    ratio = statistics.median(one / other for one, other in turns)
    return statistics.median(without), statistics.median(under), ratio


def work(loops: Path, place: Path, variables: dict[str, str]) -> tuple[float, float] | None:
    """User instructions and cycles of one read of 512 bytes, loop included; None without perf or its counters."""
    records = 300_000
    command = [str(loops), "read", str(place / "data"), "512", str(records)]
    nanoseconds(loops, Cell("", "write", 512, records), place / "data", {})
    perf = ["perf", "stat", "-x,", "-e", "instructions:u,cycles:u", "env", *(f"{a}={b}" for a, b in variables.items())]
    done = subprocess.run([*perf, *command], capture_output=True, text=True, check=False)
    found = [line.split(",")[0] for line in done.stderr.splitlines() if ":u" in line]
    if done.returncode != 0 or len(found) != 2 or not all(one.isdecimal() for one in found):
        return None
    return int(found[0]) / records, int(found[1]) / records


def report_work(loops: Path, place: Path, preload: Path, figures: dict[str, float]) -> None:
    """What the library adds to a call that it does not buffer, and to one that it traces: unlike times, counts of
    instructions are the same on a busy machine.
    """
    modes = {"plain": {}, "not_buffered": {"IOBUF_PARAMS": "*:off"}, "trace": {"SONDE_TRACE": str(place)}}
    plain = work(loops, place, {}) if shutil.which("perf") else None
    for name, settings in modes.items():
        counted = work(loops, place, {"LD_PRELOAD": str(preload), **settings}) if plain and settings else None
        if plain is not None and counted is not None:
            figures[f"work.{name}.added_instructions"] = round(counted[0] - plain[0], 1)
            figures[f"work.{name}.added_cycles"] = round(counted[1] - plain[1], 1)
            added = f"{counted[0] - plain[0]:.0f} instructions, {counted[1] - plain[1]:.0f} cycles"
            print(f"{'work.' + name:36} adds {added} to a call", file=sys.stderr)


@contextmanager
def slow_file_system(folder: Path, pause: int) -> Iterator[Path | None]:
    """A mounted file system whose calls take `pause` microseconds; None where there is no FUSE."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False)
    if flags.returncode != 0 or os.geteuid() != 0 or shutil.which("fusermount3") is None:
        yield None
        return
    program = compiled("slow_fs", folder, *flags.stdout.split())
    below, mounted = folder / "below", folder / "mounted"
    below.mkdir()
    mounted.mkdir()
    server = subprocess.Popen([str(program), str(below), str(pause), str(mounted)])
    try:
        limit = time.monotonic() + 10
        while not mounted.is_mount() and time.monotonic() < limit:
            time.sleep(0.05)
        yield mounted if mounted.is_mount() else None
    finally:
        subprocess.run(["fusermount3", "-u", str(mounted)], check=False)
        server.wait(timeout=20)


def main() -> int:
    options = arguments()
    preload = library(options.library)
    figures: dict[str, float] = {}
    places = options.dir or [Path("/dev/shm"), ROOT / "build"]

    def cell_of(key: str, loops: Path, cell: Cell, place: Path) -> None:
        if options.cells not in key:
            return
        without, under, ratio = measure(loops, cell, place, preload, options.pairs)
        figures[f"{key}.ratio"] = round(ratio, 4)
        figures[f"{key}.added_ns"] = round(under - without, 1)
        line = f"{key:36} without {without:10.1f} ns | with {under:10.1f} ns | {ratio:8.3f} x"
        print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        loops = compiled("loops", Path(folder))
        if not options.cells or "work".startswith(options.cells):
            with tempfile.TemporaryDirectory(dir=places[0]) as place:
                report_work(loops, Path(place), preload, figures)
        for root in places:
            name = "memory" if str(root).startswith("/dev/shm") else "disk"
            root.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=root) as place:
                for cell in CELLS:
                    cell_of(f"{name}.{cell.name}", loops, cell, Path(place))
        with slow_file_system(Path(folder), options.pause) as mounted:
            for cell in SLOW:
                if mounted is not None:
                    cell_of(cell.name, loops, cell, mounted)
    if options.json:
        print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
