# SPDX-License-Identifier: Apache-2.0
"""Turns: in every round each contestant works once, for a fraction of a second, so that all meet the same machine.

Only ratios within a round are trusted. The median over the rounds is reported, with the tenth percentile beside it.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from overhead.cells import MIB, Cell, get_prepared_file
from overhead.contestants import Contestant, RunError, Turn


@dataclass
class CellResult:
    """What each contestant did, one turn a round."""

    cell: Cell
    file_system_type: str  #: type of the file system
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    others_cpus: float = 0.0  #: processors that were busy with something else in the rounds that count, on average
    disturbed: int = 0  #: rounds that do not count, because more than was allowed was

    def nanoseconds(self, name: str) -> float:
        """Median time of an operation."""
        return 1e9 / statistics.median(turn.rate for turn in self.turns[name])

    def ratios(self, name: str, to: str) -> list[float]:
        """Rate of `name` over rate of `to`, round by round."""
        return [a.rate / b.rate for a, b in zip(self.turns[name], self.turns[to], strict=True)]

    def cpu_ratios(self, name: str, to: str) -> list[float]:
        """The same of operations per second of processor time: waiting for a processor does not count."""
        pairs = zip(self.turns[name], self.turns[to], strict=True)
        return [b.cpu_ns / a.cpu_ns for a, b in pairs if a.cpu_ns and b.cpu_ns]


def compute_tenth_percentile(values: list[float]) -> float:
    """The value that nine in ten exceed."""
    ordered = sorted(values)
    return ordered[len(ordered) // 10]


def read_busy_seconds() -> float:
    """Processor seconds that the machine has spent working, all processors together."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]]
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / 100


def read_own_processor_seconds() -> float:
    """Processor seconds of this program and all that it started."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        use = resource.getrusage(who)
        total += use.ru_utime + use.ru_stime
    return total


def make_given_file(cell: Cell, folder: Path) -> None:
    """On the disk, and in the page cache unless direct I/O is to read it."""
    path = get_prepared_file(folder / "anybody")
    path.parent.mkdir()
    with path.open("wb") as file:
        for _ in range(cell.size // MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())
        if cell.direct:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run_round(result: CellResult, able: list[Contestant], folder: Path, seconds: float) -> dict[str, Turn]:
    """A turn of everybody who has not failed yet. Who fails is left out from then on, with the reason."""
    turns: dict[str, Turn] = {}
    for contestant in able:
        if contestant.name in result.failures:
            continue
        place_of_its_own = folder / contestant.name
        place_of_its_own.mkdir(exist_ok=True)
        try:
            turns[contestant.name] = contestant.run(result.cell, place_of_its_own, seconds)
        except (RunError, OSError, ValueError, KeyError, IndexError) as failure:
            result.failures[contestant.name] = f"{type(failure).__name__}: {failure}"
        if result.cell.fresh:
            # A left-over file would be overwritten by the next round instead of being made anew.
            shutil.rmtree(place_of_its_own)
    return turns


def wait_for_idle_processors(max_others: float, patience_s: float) -> None:
    """Waits until other programs leave the processors idle, at most `patience_s` seconds."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        busy, begin = read_busy_seconds(), time.monotonic()
        time.sleep(0.3)
        if (read_busy_seconds() - busy) / (time.monotonic() - begin) <= max_others:
            return


@dataclass(frozen=True)
class RoundRules:
    """How long, how often, and how quiet the machine should be."""

    rounds: int
    seconds: float  #: of a turn
    max_others: float  #: processors that others may keep busy in a round that counts
    patience_s: float  #: how long to wait for that before each round


def run_rounds(
    cell: Cell, file_system: str, contestants: list[Contestant], base: Path, rules: RoundRules
) -> CellResult:
    """All rounds of one cell. A round in which others kept more processors busy than allowed is played again, until
    three times as many have been played.
    """
    rounds, seconds, max_others = rules.rounds, rules.seconds, rules.max_others
    result = CellResult(cell, file_system)
    able = [contestant for contestant in contestants if contestant.can(cell)]
    rounds_done: list[dict[str, Turn]] = []
    others: list[float] = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-", dir=base) as folder:
        if not cell.fresh:
            make_given_file(cell, Path(folder))
        chance = random.Random(1)
        run_round(result, able, Path(folder), seconds / 4)  # warms up
        for number in range(3 * rounds):
            if len(rounds_done) == rounds or {"raw", "engine"} & result.failures.keys():
                break
            wait_for_idle_processors(max_others, rules.patience_s)
            begin, busy, own_busy = time.monotonic(), read_busy_seconds(), read_own_processor_seconds()
            # In another order each time: what one leaves behind (free memory, warm caches) is the next one's luck.
            turns = run_round(result, chance.sample(able, len(able)), Path(folder), seconds)
            elapsed = time.monotonic() - begin
            disturbance = max(0.0, (read_busy_seconds() - busy) - (read_own_processor_seconds() - own_busy)) / elapsed
            if disturbance > max_others and number < 3 * rounds - (rounds - len(rounds_done)):
                result.disturbed += 1
                continue
            rounds_done.append(turns)
            others.append(disturbance)
    for contestant in able:
        if contestant.name not in result.failures:
            result.turns[contestant.name] = [turns[contestant.name] for turns in rounds_done]
    result.others_cpus = statistics.mean(others) if others else 0.0
    for name, reason in result.failures.items():
        print(f"{file_system} {cell.name}: {name} left out: {reason}", file=sys.stderr)
    return result
