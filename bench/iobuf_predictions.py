#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `sonde trace` predicts of the preload library, next to what the library gains.

    bench/iobuf_predictions.py [--rounds 7] [--cells TEXT] [--write]

Each program runs in turns: as is, with option auto, with the settings that its trace chooses, and traced. A gain is
the fraction of the run time that the library saves, the median of the rounds; predicted from the trace of each round.
A prediction is right when it differs from the gain by at most 25 % of it, or when both are below 5 % of the run time,
which is not worth a change. `--write` replaces the table in docs/reference/iobuf-figures.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from buffering import cells, databases, places
from buffering.cells import Cell
from buffering.programs import ROOT, MissingProgramError, Workshop, find_preload_library, make_low_noise_prefix
from buffering.turns import Turn, run_turn
from sonde.advise.buffer_gains import BufferForecast, predict_buffering
from sonde.advise.buffers import choose_file_buffers
from sonde.model.trace import is_trace, read_trace

PAGE = ROOT / "docs" / "reference" / "iobuf-figures.md"
BEGIN, END = "<!-- predictions: begin -->\n", "<!-- predictions: end -->\n"
WITHIN, WORTH = 0.25, 0.05
TOUCHED_BYTES = 512 << 20
MODES = ("auto", "from trace")
FEW_CALLS = ("read.20", "read_access.5", "write.20")


@dataclass
class Comparison:
    """Gains of one program on one storage, as fractions of the run time, by mode: one value for each round."""

    storage: str
    program: str
    predicted: dict[str, list[float]] = field(default_factory=lambda: {mode: [] for mode in MODES})
    gained: dict[str, list[float]] = field(default_factory=lambda: {mode: [] for mode in MODES})

    def compare(self, mode: str) -> tuple[float, float, bool]:
        """Prediction, gain, and whether the prediction is right."""
        predicted, gained = (statistics.median(values[mode]) for values in (self.predicted, self.gained))
        is_close = abs(predicted - gained) <= WITHIN * abs(gained)
        return predicted, gained, is_close or max(abs(predicted), abs(gained)) < WORTH

    def format_row(self) -> str:
        """One row of the table."""
        columns = []
        for mode in MODES:
            predicted, gained, is_right = self.compare(mode)
            columns += [f"{100 * predicted:.0f} %", f"{100 * gained:.0f} %{'' if is_right else ' (wrong)'}"]
        return f"| {self.storage} | {self.program} | {' | '.join(columns)} |"


@dataclass(frozen=True)
class PredictionBench:
    """Runs programs in turns, each before other work of the machine where that is allowed."""

    workshop: Workshop
    library: Path
    rounds: int

    def measure(self, storage: str, cell: Cell, folder: Path) -> Comparison:
        comparison = Comparison(storage, cell.name)
        file = folder / "data"
        command = cell.command(self.workshop, file)
        prepare = cell.prepare(self.workshop, file) if cell.prepare is not None else None

        def run(**variables: str) -> Turn:
            for path in folder.glob("data*") if prepare is None else ():
                path.unlink()
            if prepare is not None and not any(folder.glob("data*")):
                run_turn(prepare, {})
            touch_free_memory()
            library = {"LD_PRELOAD": str(self.library), **variables} if variables else {}
            return run_turn(command, library, prefix=make_low_noise_prefix())

        for _ in range(self.rounds):
            forecast, params = self._trace(run, folder)
            bare = run().real_s
            for mode, gain, setting in (
                ("auto", forecast.automatic, "*:auto"),
                ("from trace", forecast.chosen, params),
            ):
                saved_s = gain.saved_s if gain is not None else 0.0
                comparison.predicted[mode].append(saved_s / max(forecast.run_seconds, 1e-9))
                seconds = run(IOBUF_PARAMS=setting).real_s if setting else bare
                comparison.gained[mode].append(1 - seconds / bare)
        for path in folder.glob("data*"):
            path.unlink()
        return comparison

    def _trace(self, run: Callable[..., Turn], folder: Path) -> tuple[BufferForecast, str]:
        """What the trace predicts, and the settings that it chooses."""
        with tempfile.TemporaryDirectory() as traces:
            run(SONDE_TRACE=traces)
            if not is_trace(Path(traces)):
                return BufferForecast(0, 0, 0.0, 1.0, None, None), ""
            trace = read_trace(Path(traces))
        with limit_noise():
            forecast = predict_buffering(trace, folder)
        return forecast, ",".join(buffer.entry for buffer in choose_file_buffers(trace))


def touch_free_memory() -> None:
    """Uses as much memory as a program's file will. A virtual machine returns free memory to its host, and whoever uses
    it first waits: without this, the way that the kernel allocates pages for large calls looked ten times slower."""
    memory = bytearray(TOUCHED_BYTES)
    memory[::4096] = b"x" * (TOUCHED_BYTES // 4096)


@contextmanager
def limit_noise() -> Iterator[None]:
    """Lets this process go before other work of the machine, as the programs that it starts."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def list_cases(
    bench_folder: Path, memory: Path, workshop: Workshop, stack: ExitStack
) -> Iterator[tuple[str, Cell, Path]]:
    """Storage, program and folder. Storages that this machine lacks are left out with the reason."""
    few_calls = [cell for cell in cells.make_few_calls_cells(200) if cell.name in FEW_CALLS]
    quick = (*cells.FILE_CELLS, *cells.SCATTERED_CELLS, *few_calls, cells.MANY_FILES)
    for storage, folder, inserts in (
        (places.find_file_system_type(bench_folder), bench_folder, 100),
        ("tmpfs", memory, 1000),
    ):
        yield from ((storage, cell, folder) for cell in (*quick, *databases.make_sqlite_cells(inserts)))
    try:
        mounted = stack.enter_context(places.mount_slow_file_system(workshop, bench_folder, 100))
    except MissingProgramError as reason:
        print(f"100 us a call: left out: {reason}")
        return
    slow = (*cells.EXPENSIVE_CALL_CELLS, *[cell for cell in cells.make_few_calls_cells(1) if cell.name in FEW_CALLS])
    yield from (("100 µs a call", cell, mounted) for cell in slow)


def make_table(comparisons: list[Comparison]) -> str:
    lines = [
        "| storage | program | auto: predicted | gained | from the trace: predicted | gained |",
        "|---|---|---|---|---|---|",
        *(comparison.format_row() for comparison in comparisons),
    ]
    for mode in MODES:
        results = [comparison.compare(mode) for comparison in comparisons]
        worth = [result for result in results if max(abs(result[0]), abs(result[1])) >= WORTH]
        right, right_of_worth = (sum(result[2] for result in part) for part in (results, worth))
        share = 100 * right / max(1, len(results))
        lines += [
            "",
            f"Right with {mode}: {right} of {len(results)} ({share:.0f} %); of those with a gain or loss of 5 % and"
            f" more, predicted or measured: {right_of_worth} of {len(worth)}.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=ROOT / "build", help="where files are made (default: %(default)s)")
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="a folder in memory (%(default)s)")
    parser.add_argument("--library", type=Path, help="default: the newest in build/*/preload")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cells", default="", help="only programs whose storage and name contain this")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    comparisons = []
    with ExitStack() as stack:
        folder, memory, programs = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(dir=base)))
            for base in (options.dir.absolute(), options.memory, None)
        )
        workshop = Workshop(programs)
        bench = PredictionBench(workshop, find_preload_library(options.library), options.rounds)
        for storage, cell, where in list_cases(folder, memory, workshop, stack):
            if options.cells in f"{storage} {cell.name}":
                try:
                    comparisons.append(bench.measure(storage, cell, where))
                    print(comparisons[-1].format_row(), flush=True)
                except MissingProgramError as reason:
                    print(f"{storage} {cell.name}: left out: {reason}")
    table = make_table(comparisons)
    print(table)
    if options.write:
        text = PAGE.read_text()
        PAGE.write_text(text[: text.index(BEGIN)] + BEGIN + table + text[text.index(END) :])


if __name__ == "__main__":
    main()
