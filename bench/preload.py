#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the preload library costs, and what it gains: the same program with and without it, in turns.

Seven parts: `costs` of single calls; `few_calls`, files that are open for a few calls or accessed at random, in
memory, on the file system of --dir and where each call takes 100 microseconds; `files` smaller and larger than the
memory for their cache, on the file system of --dir and on an XFS of its own; `buffers`, small reads of a file through
buffers of usual and of large size, in the kernel's cache and on disk; `scattered` access, where there is nothing to
gain; `dear`, a file system whose calls take --pause microseconds; `databases`, with their files in --memory. A number
above 1 says how many times faster a program is under the library: median of the rounds, and in brackets where that
median lies with 95 % certainty (six rounds or more). "Large calls" are the same bytes in calls of 128 KB without the
library: no buffer can be quicker than that. With --json one object of named figures instead. What this machine lacks
is left out, with the reason.
Build first: cmake --preset dev && cmake --build --preset dev.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from buffering import cells, costs, databases, places
from buffering.programs import ROOT, MissingProgramError, Workshop, find_preload_library, make_low_noise_prefix
from buffering.turns import TurnResults, compute_ratio_interval, run_turn, take_turns

PARTS = ("costs", "few_calls", "files", "buffers", "scattered", "dear", "databases")
MEMORY_MIB = 64  #: for the cache of files that are larger than their cache


@dataclass
class Bench:
    """What all parts share."""

    options: argparse.Namespace
    workshop: Workshop
    library: Path
    figures: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """The table goes to standard output, unless that is for JSON."""
        print(line, file=sys.stderr if self.options.json else sys.stdout, flush=True)
        if line.endswith("BROKEN"):
            self.broken.append(line)

    def play(
        self,
        key: str,
        cell: cells.Cell,
        folder: Path,
        group: Path | None = None,
        from_disk: bool = False,
        of_processor: bool = False,
        brief: bool = False,
    ) -> None:
        """One cell in one place; within `group`: with little memory, and read from disk. `of_processor`: see tell().
        `brief`: the runs take milliseconds, before other work of the machine where that is allowed, and nothing waits
        for the disk between them.
        """
        name = f"{key}.{cell.name}"
        if self.options.cells not in name:
            return
        file = folder / "data"
        try:
            command = cell.command(self.workshop, file)
            bound = {} if cell.bound is None else {"large calls": cell.bound(self.workshop, file)}
            if cell.prepare is not None:
                run_turn(cell.prepare(self.workshop, file), {})
        except MissingProgramError as reason:
            self.say(f"{name:32} left out: {reason}")
            return
        ours = {"LD_PRELOAD": str(self.library)}
        ways = {
            variant: {} if params is None else {**ours, **({"IOBUF_PARAMS": params} if params else {})}
            for variant, params in cell.ways.items()
        }
        result = take_turns(
            {**dict.fromkeys(ways, command), **bound},
            {**ways, **{variant: {} for variant in bound}},
            self.options.rounds,
            make_preparation(cell, file, from_disk or group is not None, not brief),
            group,
            make_low_noise_prefix() if brief else (),
        )
        for path in folder.glob("data*"):
            path.unlink()
        self.tell(name, result, cell.least, cell.by, of_processor)

    def tell(
        self, name: str, result: TurnResults, least: float, by: tuple[str, ...], of_processor: bool = False
    ) -> None:
        """A line of the table and its figures. `of_processor`: the promise is about processor time, which other work of
        the machine changes less, and is broken when it is certain that it is.
        """
        line = f"{name:32}"
        for variant in result.turns:
            turn = result.median(variant)
            self.figures[f"{name}.{variant.replace(' ', '_')}_s"] = round(turn.real_s, 4)
            line += f" | {variant} {turn.real_s:7.3f} s ({turn.user_s:.2f} + {turn.system_s:.2f})"
            if variant != "as is":
                self.figures[f"{name}.{variant}"] = round(result.ratio(variant), 4)
                line += f" {result.ratio(variant):.2f} x {self.bounds(f'{name}.{variant}', *result.interval(variant))}"
            if variant != "as is" and of_processor:
                ratios = result.processor_ratios(variant)
                self.figures[f"{name}.{variant}.processor"] = round(statistics.median(ratios), 4)
                bounds = self.bounds(f"{name}.{variant}.processor", *compute_ratio_interval(ratios))
                line += f", processor {statistics.median(ratios):.2f} x {bounds}"
        reached = min(
            compute_ratio_interval(result.processor_ratios(variant))[1] if of_processor else result.ratio(variant)
            for variant in by
        )
        self.say(line + (" BROKEN" if reached < least else ""))

    def bounds(self, name: str, low: float, high: float) -> str:
        """An interval in words; its ends are figures."""
        self.figures[f"{name}.least"] = round(low, 4)
        self.figures[f"{name}.most"] = round(high, 4)
        return f"({low:.2f} to {high:.2f})"


def make_preparation(cell: cells.Cell, file: Path, cold: bool, waits_for_disk: bool) -> Callable[[], None]:
    """What the runs before left behind shall not be measured: their data is on disk when a run starts."""

    def clear() -> None:
        if cell.prepare is None:
            file.unlink(missing_ok=True)
        elif cold:
            places.evict_from_page_cache(file)
        if waits_for_disk:
            subprocess.run(["sync", "-f", file.parent], check=True)

    return clear


def measure_file_cells(bench: Bench, name: str, folder: Path) -> None:
    """All cells with as much memory as there is, and with little."""
    for cell in cells.FILE_CELLS:
        bench.play(f"{name}.in_memory", cell, folder)
    try:
        with places.limit_memory(MEMORY_MIB) as group:
            for cell in cells.FILE_CELLS:
                bench.play(f"{name}.larger", cell, folder, group)
    except MissingProgramError as reason:
        bench.say(f"{name}.larger: left out: {reason}")


def run_files(bench: Bench, folder: Path) -> None:
    measure_file_cells(bench, places.find_file_system_type(folder), folder)
    try:
        with places.mount_xfs_in_file(folder, gigabytes=4) as mounted:
            measure_file_cells(bench, "xfs", mounted)
    except MissingProgramError as reason:
        bench.say(f"xfs: left out: {reason}")


def run_few_calls(bench: Bench, folder: Path) -> None:
    """Rows with nothing to gain. Processor time in memory and on a disk,
    time on the clock where calls wait.
    """
    with tempfile.TemporaryDirectory(dir=bench.options.memory) as memory:
        # A transaction on a disk waits for it.
        for key, where, inserts in (
            ("tmpfs", Path(memory), 1_000),
            (places.find_file_system_type(folder), folder, 100),
        ):
            rows = (*cells.make_few_calls_cells(200), cells.make_random_read_cell(200_000), cells.MANY_FILES)
            for cell in (*rows, *databases.make_sqlite_cells(inserts)):
                bench.play(f"few_calls.{key}", cell, where, of_processor=True, brief=True)
    try:
        with places.mount_slow_file_system(bench.workshop, folder, 100) as mounted:
            for cell in (*cells.make_few_calls_cells(1), cells.make_random_read_cell(500)):
                bench.play("few_calls.100_us", cell, mounted, brief=True)
    except MissingProgramError as reason:
        bench.say(f"few_calls.100_us: left out: {reason}")


def run_buffers(bench: Bench, folder: Path) -> None:
    kind = places.find_file_system_type(folder)
    for cell in cells.BUFFER_CELLS:
        bench.play(f"buffers.{kind}.in_memory", cell, folder, of_processor=True)
        bench.play(f"buffers.{kind}.from_disk", cell, folder, from_disk=True)


def run_scattered(bench: Bench, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=bench.options.memory) as memory:
        for cell in cells.SCATTERED_CELLS:
            bench.play("memory", cell, Path(memory))
    for cell in cells.SCATTERED_CELLS:
        bench.play(places.find_file_system_type(folder), cell, folder)


def run_expensive_calls(bench: Bench, folder: Path) -> None:
    try:
        with places.mount_slow_file_system(bench.workshop, folder, bench.options.pause) as mounted:
            for cell in cells.EXPENSIVE_CALL_CELLS:
                bench.play("dear", cell, mounted)
    except MissingProgramError as reason:
        bench.say(f"dear: left out: {reason}")


def run_databases(bench: Bench, _: Path) -> None:
    with tempfile.TemporaryDirectory(dir=bench.options.memory) as memory:
        Path(memory).chmod(0o755)  # servers run as users of their own
        for cell in databases.LIBRARIES:
            bench.play("databases", cell, Path(memory), of_processor=True)
        for kind in databases.SERVERS:
            if bench.options.cells not in f"databases.{kind.name}":
                continue
            try:
                with databases.start_servers_side_by_side(kind, Path(memory), bench.library) as servers:
                    for load in servers["as is"].loads:
                        name = f"databases.{kind.name}.{load}"
                        result = databases.measure_servers_in_turns(servers, load, bench.options.rounds)
                        bench.tell(name, result, databases.MIN_RATE_RATIO, ("auto",), of_processor=True)
            except MissingProgramError as reason:
                bench.say(f"databases.{kind.name}: left out: {reason}")


def run_costs(bench: Bench, _: Path) -> None:
    for line in costs.measure_call_costs(
        bench.workshop, bench.library, bench.options.memory, bench.options.rounds * 200, bench.figures
    ):
        bench.say(line)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=ROOT / "build", help="where files are made (default: %(default)s)")
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="a folder in memory (%(default)s)")
    parser.add_argument("--library", type=Path, help="default: the newest in build/*/preload")
    parser.add_argument("--rounds", type=int, default=7, help="rounds a cell, at least 5 for a claim (%(default)s)")
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part")
    parser.add_argument("--cells", default="", help="only cells whose name contains this")
    parser.add_argument("--pause", type=int, default=200, help="microseconds of a dear call (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a promise is broken")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    parts = {
        "costs": run_costs,
        "few_calls": run_few_calls,
        "files": run_files,
        "buffers": run_buffers,
        "scattered": run_scattered,
        "dear": run_expensive_calls,
        "databases": run_databases,
    }
    options.dir.mkdir(exist_ok=True)
    with ExitStack() as stack:
        workshop = stack.enter_context(tempfile.TemporaryDirectory())
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=options.dir.absolute()))
        bench = Bench(options, Workshop(Path(workshop)), find_preload_library(options.library))
        for part in options.only or PARTS:
            parts[part](bench, Path(folder))
    if options.json:
        print(json.dumps(bench.figures, indent=2))
    return 1 if options.check and bench.broken else 0


if __name__ == "__main__":
    sys.exit(main())
