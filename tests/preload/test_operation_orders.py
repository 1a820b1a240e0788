# SPDX-License-Identifier: Apache-2.0
"""A small world, looked through from end to end: processes with a few operations each on one file, in every order in
which their operations can follow each other. Every result, and the file at the end, is what the kernel alone gives.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from preload_under_test import Preload

Program = Callable[[str], Path]
#: write, pwrite, read, pread; stat, fstat, seek to the end and back; truncate, close and open, O_APPEND, fsync, lock,
#: unlock, a child that writes.
OPERATIONS = "wprPsfebtcaylux"


def orders(lengths: Sequence[int]) -> Iterator[str]:
    """Every order of the operations of all processes, each one's own kept."""
    if not any(lengths):
        yield ""
        return
    for process, remaining in enumerate(lengths):
        if remaining:
            shorter = [*lengths[:process], remaining - 1, *lengths[process + 1 :]]
            yield from (f"{process}{order}" for order in orders(shorter))


def compare(preload: Preload, world: Path, folder: Path, lines: Sequence[str]) -> None:
    """All of them without and with the library."""
    program_text = "\n".join(lines) + "\n"
    (folder / "given").write_text(program_text)
    command = ["sh", "-c", f"{world} < ../given; rm -f data"]
    without = preload.outcome(command, folder / "without")
    assert len(without.out.splitlines()) == len(lines)
    under = preload.outcome(command, folder / "with", IOBUF_PARAMS="*")
    different = [
        (line, expected, other)
        for line, expected, other in zip(lines, without.out.splitlines(), under.out.splitlines(), strict=True)
        if expected != other
    ]
    assert different == []


def test_every_pair_of_operations_of_two_processes_in_every_order(
    preload: Preload, compile_program: Program, memory_folder: Path
) -> None:
    """Each process executes one operation; a write precedes both, and a read follows."""
    lines = [
        f"{order} w{first} {second}s"
        for first, second in itertools.product(OPERATIONS, repeat=2)
        for order in orders((2, 2))
    ]
    assert len(lines) == len(OPERATIONS) ** 2 * 6
    compare(preload, compile_program("world"), memory_folder, lines)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "first_operations", ["".join(pair) for pair in itertools.combinations_with_replacement(OPERATIONS, 2)]
)
def test_all_two_process_programs_in_every_order(
    preload: Preload, compile_program: Program, memory_folder: Path, first_operations: str
) -> None:
    """162,000 in all: 15 operations, two of each process, six orders; which process is which does not matter."""
    lines = [
        f"{order} {first_operations[0]}{second} {first_operations[1]}{third}"
        for second, third in itertools.product(OPERATIONS, repeat=2)
        for order in orders((2, 2))
    ]
    assert len(lines) == 1350
    compare(preload, compile_program("world"), memory_folder, lines)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 100))]
)
def test_random_programs_of_three_processes(
    preload: Preload, compile_program: Program, memory_folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    lines = []
    for _ in range(300):
        programs = ["".join(chance.choices(OPERATIONS, k=chance.randint(1, 4))) for _ in range(3)]
        turns = [str(process) for process, compile_program in enumerate(programs) for _ in compile_program]
        chance.shuffle(turns)
        lines.append(f"{''.join(turns)} {' '.join(programs)}")
    compare(preload, compile_program("world"), memory_folder, lines)
