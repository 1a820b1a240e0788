# SPDX-License-Identifier: Apache-2.0
"""Which storage target was slow, from files that lie on one target each and the tasks that used them.

The rates of a target's files are held against those of all other files by the Mann-Whitney test; the slowdown is the
ratio of Hodges and Lehmann with the interval that belongs to the test, at a level shared by all targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.findings.members import task_rates
from sonde.model import quantities
from sonde.model.errors import sentence
from sonde.model.lines import LayoutLine
from sonde.model.record import PhaseRecord
from sonde.model.visible import one_line
from sonde.stats.ratio import CONFIDENCE, LEAST, ratio

# Less is no finding, however sure it is: targets of one file system differ by so much when nothing is wrong.
LEAST_FACTOR = 1.3
_MOST_NAMED = 3
# What the engine calls it when a file system that has targets does not tell them.
_UNTOLD = ("layout_unreadable", "placement_unknown")


@dataclass(frozen=True)
class TargetRates:
    """A target and the rates of the files that lie on it alone: bytes or operations per second, one a task."""

    name: str
    rates: tuple[float, ...]


@dataclass(frozen=True)
class SlowTarget:
    """A target whose files were `factor` times slower than those on the others; `low` to `high` is its interval."""

    name: str
    files: int
    factor: float
    low: float
    high: float


@dataclass(frozen=True)
class TargetHeld:
    """What lies on a target: `files` and `bytes` of them."""

    name: str
    files: int
    bytes: int


def held_by_targets(layout: LayoutLine) -> list[TargetHeld]:
    """Every target of the files that were looked at, in the order of the record."""
    return [
        TargetHeld(str(name), files, held)
        for name, files, held in _columns(layout.target_columns, layout.targets, "target", "files", "bytes")
        if isinstance(files, int) and isinstance(held, int)
    ]


@dataclass(frozen=True)
class Pieces:
    """How `files` local files lie on their device: in `fragments` pieces, `unplaced` bytes of them nowhere yet."""

    files: int
    fragments: int
    unplaced: int


def pieces_of(layout: LayoutLine) -> Pieces | None:
    """Of the files whose pieces were counted; None where none were."""
    rows = _columns(layout.columns, layout.rows, "fragments", "unplaced_bytes")
    known = [row for row in rows if all(isinstance(value, int) for value in row)]
    return Pieces(len(known), sum(row[0] for row in known), sum(row[1] for row in known)) if known else None


def pool_words(layout: LayoutLine) -> str:
    """How many disks a pool has that stands as the target, of how many servers; empty where no record says so."""
    told: dict[str, list[str]] = {}
    for shape in layout.shapes:
        for part in shape if isinstance(shape, list | tuple) else ():
            if isinstance(part, dict) and part.get("pool") and isinstance(part.get("members"), list | tuple):
                told[str(part["pool"])] = [str(one) for one in part["members"]]
    words = []
    for pool, disks in told.items():
        servers = {name for one in disks for name in one.partition("@")[2].split(",") if name}
        served = f" of {quantities.plural(len(servers), 'server')}" if servers else ""
        words.append(f"pool {one_line(pool, 40)} is {quantities.plural(len(disks), 'disk')}{served}")
    return f"{'; '.join(words)}: which of them holds which byte nobody tells" if words else ""


def target_rates(phase: PhaseRecord, operations: bool) -> list[TargetRates]:
    """By name. Files that several tasks use or that lie on several targets say nothing here; empty without others."""
    if phase.layout is None:
        return []
    rows = list(_columns(phase.layout.columns, phase.layout.rows, "task", "targets"))
    rates = task_rates(phase, operations)
    # Of a task with many files only the sum of its time is known.
    files_of = Counter(task for task, _ in rows if isinstance(task, int))
    found: dict[str, list[float]] = {}
    for task, held in rows:
        alone = isinstance(held, list | tuple) and len(held) == 1 and isinstance(held[0], list | tuple) and held[0]
        if isinstance(task, int) and files_of[task] == 1 and alone and rates.get(task, 0.0) > 0:
            found.setdefault(str(held[0][0]), []).append(rates[task])
    return [TargetRates(name, tuple(rates)) for name, rates in sorted(found.items())]


def slow_targets(found: Sequence[TargetRates]) -> list[SlowTarget]:
    """The slow ones, worst first. A target needs five files, and so do the others together."""
    judged = [one for one in found if len(one.rates) >= LEAST]
    slow = []
    for one in judged:
        others = [rate for other in found if other is not one for rate in other.rates]
        if len(others) < LEAST:
            continue
        # Each target is a chance to be wrong.
        seen = ratio(one.rates, others, 1 - (1 - CONFIDENCE) / len(judged))
        if seen.low is not None and seen.high is not None and seen.low > 1 and seen.value >= LEAST_FACTOR:
            slow.append(SlowTarget(one.name, len(one.rates), seen.value, seen.low, seen.high))
    return sorted(slow, key=lambda one: -one.factor)


def target_words(phase: PhaseRecord, operations: bool) -> str:
    """The slow targets as sentences; empty when none is, or nothing is known."""
    slow = slow_targets(target_rates(phase, operations))
    words = [
        f"Files on target {one_line(one.name, 60)} ({quantities.plural(one.files, 'file')}) were {one.factor:.1f} times"
        f" slower than those on the others (95 % interval over all targets: {one.low:.1f} to {one.high:.1f})."
        for one in slow[:_MOST_NAMED]
    ]
    if len(slow) > _MOST_NAMED:
        words.append(f"So were those on {quantities.plural(len(slow) - _MOST_NAMED, 'other target')}.")
    return " ".join(words)


def untold_words(phase: PhaseRecord) -> str:
    """Why nobody knows which target held which byte, where such a thing is to be known, as a sentence; else empty."""
    told = next((one for one in phase.findings if one.id in _UNTOLD), None)
    return sentence(one_line(told.text, 600)) if told else ""


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]], *wanted: str) -> Iterator[list[Any]]:
    """The wanted columns of each row; nothing when one of them is not there."""
    if set(wanted) <= set(names):
        places = [names.index(name) for name in wanted]
        yield from ([row[at] for at in places] for row in rows if len(row) == len(names))
