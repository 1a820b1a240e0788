# SPDX-License-Identifier: Apache-2.0
"""What each storage target served in a phase, operation by operation, and which of them answered slowly.

A target is judged by the operations that lie on it alone, because one over several targets waits for the slowest. Time
is cut into blocks; in each the rate at which a target answered is held against the middle target of the same block, so
that what hits all of them at once blames none. The median of these shares is what targets are compared by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.findings.targets import LEAST_FACTOR, SlowTarget, TargetRates
from sonde.model import quantities
from sonde.model.lines import SeriesLine, TargetsLine
from sonde.model.record import PhaseRecord
from sonde.model.visible import one_line
from sonde.stats.bins import padded, rebin
from sonde.stats.ratio import LEAST
from sonde.stats.spread import student_quantile

# Blocks are long, so that they depend little on one another and hold enough operations to be a number.
_MOST_BLOCKS, _OPERATIONS_A_BLOCK = 16, 8
_MOST_NAMED = 3
# By this two of 500 drawn phases without a slow target name one, by 95 % eleven: history asks every day.
LEVEL = 0.995
LEAST_OTHERS = 3
# So many of all targets can differ without being what is usual.
_ONE_IN = 6


@dataclass(frozen=True)
class Served:
    """Reads or writes of one target; latencies in ns are those of operations that lie on it alone, else None."""

    target: str
    kind: str
    bytes: int
    ops: int
    single_ops: int
    single_ns: int
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    max_ns: float | None


def served(line: TargetsLine) -> list[Served]:
    """Every row that can be read, in the order of the record."""
    found = []
    for row in line.rows:
        one = dict(zip(line.columns, row, strict=False))
        counts: list[Any] = [one.get(name) for name in ("bytes", "ops", "single_ops", "single_ns")]
        if not all(isinstance(count, int) for count in counts):
            continue
        times = [_number(one.get(name)) for name in ("p50_ns", "p90_ns", "p99_ns", "max_ns")]
        found.append(Served(str(one.get("target", "?")), str(one.get("kind", "")), *counts, *times))
    return found


def busiest_kind(phase: PhaseRecord) -> str:
    """Read or write, whichever moved more bytes on known targets; empty when none is known."""
    moved: dict[str, int] = {}
    for one in served(phase.targets) if phase.targets else ():
        moved[one.kind] = moved.get(one.kind, 0) + one.bytes
    return max(moved, key=lambda kind: moved[kind], default="")


def target_series(phase: PhaseRecord) -> list[SeriesLine]:
    """One for each target, of the busiest kind of operations."""
    kind = busiest_kind(phase)
    return [one for one in phase.series if one.scope == "target" and one.kind == kind and one.slice_s > 0]


@dataclass(frozen=True)
class Answers:
    """Operations of a target, or of several together, that lie on it alone: how many ended in each slice, and how long
    they took together (ns)."""

    name: str
    ops: tuple[float, ...]
    ns: tuple[float, ...]


def answer_rates(phase: PhaseRecord) -> list[TargetRates]:
    """By target the rate at which it answered in each block, as a share of the middle target's in that block.

    Empty when too few operations lie on one target alone.
    """
    return shares_of([Answers(str(one.target), one.single_ops, one.single_ns) for one in target_series(phase)])


def shares_of(answers: Sequence[Answers]) -> list[TargetRates]:
    """The same of targets or groups of them."""
    if len(answers) < 2:
        return []
    length = max(len(one.ops) for one in answers)
    counts = [sum(one.ops) for one in answers]
    blocks = min(length, _MOST_BLOCKS, int(float(np.median(counts)) / _OPERATIONS_A_BLOCK))
    if blocks < LEAST:
        return []
    ops = _blocks([one.ops for one in answers], length, blocks)
    seconds = _blocks([one.ns for one in answers], length, blocks) / 1e9
    enough = (ops >= _OPERATIONS_A_BLOCK / 2) & (seconds > 0)
    rates = np.where(enough, ops / np.where(enough, seconds, 1.0), np.nan)
    told = [at for at in range(blocks) if np.count_nonzero(enough[:, at]) >= 2]
    if not told:
        return []
    shares = rates[:, told] / np.nanmedian(rates[:, told], axis=0)
    return [
        TargetRates(one.name, tuple(float(share) for share in row if np.isfinite(share)))
        for one, row in zip(answers, shares, strict=True)
    ]


def slow_answers(phase: PhaseRecord) -> list[SlowTarget]:
    """Targets whose operations took longer than those on the others, worst first."""
    return slow_among(answer_rates(phase))


def slow_among(rates: Sequence[TargetRates]) -> list[SlowTarget]:
    """The slow ones, worst first; `files` is the number of blocks.

    What a target did in one block is like what it did in the next, so blocks are no repetitions: a target is one value,
    the median of its blocks. It is slow when the other targets, as far as they differ among themselves, leave no room
    for one like it (a prediction interval by Student's t on logarithms, at a level shared by all targets). So a few
    targets can be told apart only by a large factor, and four are the fewest.
    """
    judged = [one for one in rates if len(one.rates) >= LEAST]
    apart = apart_from_others([math.log(float(np.median(one.rates))) for one in judged])
    slow = []
    for one, found in zip(judged, apart, strict=True):
        if found is not None and found.differs and found.by < 0:
            factor, low, high = (math.exp(-found.by + side) for side in (0.0, -found.room, found.room))
            slow.append(SlowTarget(one.name, len(one.rates), factor, low, high))
    return sorted(slow, key=lambda one: -one.factor)


@dataclass(frozen=True)
class Apart:
    """By how much one lies above the middle of the others, and the room that they leave it; natural logarithms."""

    by: float
    room: float

    @property
    def differs(self) -> bool:
        """Whether it is another than the others: outside their room, and by the least factor that counts."""
        return abs(self.by) > self.room and abs(self.by) >= math.log(LEAST_FACTOR)


def apart_from_others(levels: Sequence[float]) -> list[Apart | None]:
    """The one rule of which of several targets differ: how far each is from the sound others, None where there are too
    few.

    `levels` are natural logarithms, one a target. Several that differ would hide each other, each being among the
    others of the rest: so they are looked for from the most extreme on, each without those before it (the generalized
    test of Rosner for many outliers), one in six at most.
    """
    values = np.asarray(levels, dtype=float)
    if values.size <= LEAST_OTHERS:
        return [None] * values.size
    order = np.argsort(-np.abs(values - np.median(values)), kind="stable")
    differing = 0
    for count in range(1, max(1, values.size // _ONE_IN) + 1):
        if _apart(float(values[order[count - 1]]), values[order[count:]], values.size - count + 1).differs:
            differing = count
    sound = np.ones(values.size, dtype=bool)
    sound[order[:differing]] = False
    at = np.arange(values.size)
    return [_apart(float(values[one]), values[sound & (at != one)], values.size) for one in at]


def _apart(level: float, others: NDArray[np.float64], judged: int) -> Apart:
    """Against a prediction interval by Student's t, at a level shared by all that are judged."""
    quantile = student_quantile(1 - (1 - LEVEL) / 2 / judged, others.size - 1)
    room = quantile * float(np.std(others, ddof=1)) * math.sqrt(1 + 1 / others.size)
    return Apart(level - float(np.median(others)), room)


def answer_words(phase: PhaseRecord) -> str:
    """The slow ones as sentences; empty when none is, or nothing is known."""
    slow = slow_answers(phase)
    kind = way_words(phase, "Reads from", "Writes to", "Operations on")
    words = [
        f"{kind} target {one_line(one.name, 60)} took {one.factor:.1f} times as long as those on the others"
        f" ({100 * LEVEL:g} % interval over all targets: {one.low:.1f} to {one.high:.1f})."
        for one in slow[:_MOST_NAMED]
    ]
    if len(slow) > _MOST_NAMED:
        words.append(f"So did those of {quantities.plural(len(slow) - _MOST_NAMED, 'other target')}.")
    return " ".join(words)


def way_words(phase: PhaseRecord, read: str, written: str, other: str) -> str:
    """The word for the busiest kind of operations of the phase."""
    return {"read": read, "write": written}.get(busiest_kind(phase), other)


def unknown_words(phase: PhaseRecord) -> str:
    """How much of the phase is given to no target, and why as far as that is known; empty when all of it is."""
    line = phase.targets
    if line is None or line.known_bytes >= line.bytes:
        return ""
    share = f"{100 * (1 - line.known_bytes / line.bytes):.3g} % of the bytes belong to no known target"
    if phase.layout is not None and phase.layout.kind == "local":
        return f"{share}: a local file system chooses places for new bytes only after they were written"
    unknown = line.files - line.known_files
    return f"{share}: the layout of {unknown:,} of {line.files:,} opened files is not known" if unknown > 0 else share


def _blocks(rows: Sequence[Sequence[float]], length: int, blocks: int) -> NDArray[np.float64]:
    return np.array([rebin(padded(row, length), blocks) for row in rows])


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
