# SPDX-License-Identifier: Apache-2.0
"""User instructions per operation, counted by callgrind: exact on any machine, however busy it is.

Counted inside the timed loops only, with all that the engine does between two operations, and twice: two runs that
differ only in the number of operations, so that what is done once is not among it. The order in which the bare loop
goes over the file is made before its time begins, the engine's within.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from overhead.cells import KIB, Cell, get_prepared_file
from overhead.contestants import Engine, RawLoop, RunError, make_engine_plan, run_command, write_layout
from overhead.rounds import make_given_file

FEW, MANY = 16_384, 65_536  # powers of two: the best case of a permutation
#: Most instructions an operation above the bare loop, in order and in random order; HACKING.md has what is measured.
MAX_INSTRUCTIONS_PER_OPERATION = {False: 70, True: 120}
#: The timed loop of each program, as callgrind matches it.
LOOPS = {"raw": "*bench*pass<*", "engine": "*TimedStream<*MachineTime>::run()"}


def count_instructions(command: list[str], folder: Path, loop: str, env: dict[str, str] | None = None) -> int:
    """Instructions of one run, inside the functions that `loop` names."""
    out = folder / "callgrind.out"
    tool = ["--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={loop}"]
    run_command(["valgrind", *tool, *command], folder, env)
    match = re.search(r"^(?:summary|totals): (\d+)", out.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise RunError("callgrind wrote no total")
    if int(match.group(1)) == 0:
        raise RunError(f"callgrind met no function named {loop}")
    return int(match.group(1))


def count_instructions_per_operation(
    raw: RawLoop, engine: Engine, base: Path, write: bool, random: bool
) -> dict[str, float]:
    """Instructions an operation of the bare loop and of the engine, 4 KiB."""
    instructions: dict[str, float] = {}
    cell = Cell("callgrind", True, write, 4 * KIB, MANY * 4 * KIB, random=random)
    with tempfile.TemporaryDirectory(prefix="sonde-bench-", dir=base) as name:
        folder = Path(name) / "one"
        folder.mkdir()
        make_given_file(cell, Path(name))
        totals: dict[str, list[int]] = {"raw": [], "engine": []}
        for operations in (FEW, MANY):
            part = dataclasses.replace(cell, size=operations * 4 * KIB)
            totals["raw"].append(count_instructions(raw.command(part, folder, 0), folder, LOOPS["raw"]))
            plan = make_engine_plan(part, folder, None)
            # Under callgrind an operation takes fifty times as long: with slices of a millisecond it would look as if
            # every few operations a slice ended.
            plan["observe"] = {"slice": "1s", "progress": 0}
            command, _ = engine.command(plan, folder)
            totals["engine"].append(count_instructions(command, folder, LOOPS["engine"]))
        for who, (few, count_many) in totals.items():
            instructions[who] = (count_many - few) / (MANY - FEW)
    return instructions


def count_instructions_by_target_count(
    engine: Engine, base: Path, random: bool, widths: Sequence[int]
) -> dict[int, float]:
    """Further instructions of a 4 KiB read when the file lies on so many targets, 1 MiB on each in turn, and each
    operation is given to one of them. What they are further to is counted once for all widths.
    """
    cell = Cell("callgrind", True, False, 4 * KIB, MANY * 4 * KIB, random=random)
    with tempfile.TemporaryDirectory(prefix="sonde-bench-", dir=base) as name:
        folder = Path(name) / "one"
        folder.mkdir()
        make_given_file(cell, Path(name))
        layouts = {
            width: write_layout(Path(name) / f"layouts-{width}", get_prepared_file(folder), width) for width in widths
        }

        def per_read(layout: dict[str, str] | None) -> float:
            totals = []
            for operations in (FEW, MANY):
                plan = make_engine_plan(dataclasses.replace(cell, size=operations * 4 * KIB), folder, None)
                plan["observe"] = {"slice": "1s", "progress": 0}
                command, record = engine.command(plan, folder)
                totals.append(count_instructions(command, folder, LOOPS["engine"], layout))
                if (layout is not None) != ('"type":"targets"' in record.read_text(encoding="utf-8")):
                    raise RunError("the engine did not take the layout that was given to it")
            return (totals[1] - totals[0]) / (MANY - FEW)

        without = per_read(None)
        return {width: per_read(layout) - without for width, layout in layouts.items()}


def is_callgrind_available() -> bool:
    return shutil.which("valgrind") is not None
