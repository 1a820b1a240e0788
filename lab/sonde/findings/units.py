# SPDX-License-Identifier: Apache-2.0
"""What servers and units of storage (OSS, SSU) served in a phase: their targets together, where a described system says
which target belongs to which (`Run.parents`), and which of them answered slowly.

Sums of bytes and operations are exact. Latencies of several targets are joined as far as they can be: the mean is that
of all operations, the percentiles are those of the worst target.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonde.findings.served import (
    LEVEL,
    Answers,
    Served,
    served,
    shares_of,
    slow_among,
    slow_answers,
    target_series,
    way_words,
)
from sonde.findings.targets import SlowTarget
from sonde.model.parents import Parents, plain_name
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.stats.bins import padded


@dataclass(frozen=True)
class UnitServed:
    """Reads or writes of the targets of one part; `bytes_per_s` over the phase, latencies in ns or None."""

    unit: str
    kind: str
    targets: int  # of it that served any
    bytes: int
    ops: int  # an operation over two of its targets counts twice, as with targets
    bytes_per_s: float | None
    mean_ns: float | None  # of operations that lie on one target alone
    worst_p99_ns: float | None  # of the worst of its targets
    max_ns: float | None

    def as_json(self) -> dict[str, Any]:
        """The machine form; what is not known is absent."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class UnitSeries:
    """Bytes of one part in each slice of `slice_s` seconds, of the busiest kind of operations."""

    unit: str
    bytes: tuple[float, ...]
    slice_s: float


def levels_of(run: Run, phase: PhaseRecord) -> list[str]:
    """The levels at which targets of this phase have a part, in the order of the run: "OSS", "SSU"."""
    rows = served(phase.targets) if phase.targets else []
    parents = run.parents.only([one.target for one in rows])
    return list(parents.levels)


def unit_rows(run: Run, phase: PhaseRecord, level: str) -> list[UnitServed]:
    """A row for each part and kind of operations, in the order of the described system."""
    part_of = run.parents.by_target(level)
    order = list(run.parents.levels.get(level, ()))
    seconds = phase.end.seconds.elapsed if phase.end else None
    found: dict[tuple[int, str], list[Served]] = {}
    for one in served(phase.targets) if phase.targets else ():
        part = part_of.get(plain_name(one.target))
        if part is not None:
            found.setdefault((order.index(part), one.kind), []).append(one)
    return [_sum(order[at], kind, rows, seconds) for (at, kind), rows in sorted(found.items())]


def _sum(unit: str, kind: str, rows: Sequence[Served], seconds: float | None) -> UnitServed:
    moved, single = sum(one.bytes for one in rows), sum(one.single_ops for one in rows)
    return UnitServed(
        unit,
        kind,
        len(rows),
        moved,
        sum(one.ops for one in rows),
        moved / seconds if seconds else None,
        sum(one.single_ns for one in rows) / single if single else None,
        max((one.p99_ns for one in rows if one.p99_ns is not None), default=None),
        max((one.max_ns for one in rows if one.max_ns is not None), default=None),
    )


def unit_series(run: Run, phase: PhaseRecord, level: str) -> list[UnitSeries]:
    """One for each part that served any, in the order of the described system."""
    series = target_series(phase)
    length = max((len(one.bytes) for one in series), default=0)
    sums = {
        part: np.sum([padded(series[at].bytes, length) for at in places], axis=0)
        for part, places in _places(run.parents, level, [str(one.target) for one in series]).items()
    }
    return [UnitSeries(part, tuple(moved.tolist()), series[0].slice_s) for part, moved in sums.items()]


def slow_units(run: Run, phase: PhaseRecord, level: str) -> list[SlowTarget]:
    """Parts whose operations took longer than those on the others, judged as targets are; worst first.

    A target that is named itself is left out of its part, unless it is at least half of it: one slow drive makes no
    slow server.
    """
    return slow_among(shares_of(unit_answers(run, phase, level, {one.name for one in slow_answers(phase)})))


def unit_answers(run: Run, phase: PhaseRecord, level: str, named: Collection[str]) -> list[Answers]:
    """What the targets of each part answered together, without those `named` themselves unless they are at least half
    of it."""
    series = target_series(phase)
    length = max((len(one.single_ops) for one in series), default=0)
    answers = []
    for part, places in _places(run.parents, level, [str(one.target) for one in series]).items():
        sound = [at for at in places if str(series[at].target) not in named]
        counted = sound if 2 * len(sound) > len(places) else places
        ops, ns = (
            np.sum([padded(row, length) for row in rows], axis=0)
            for rows in ([series[at].single_ops for at in counted], [series[at].single_ns for at in counted])
        )
        answers.append(Answers(part, tuple(ops.tolist()), tuple(ns.tolist())))
    return answers


def unit_words(run: Run, phase: PhaseRecord) -> str:
    """The slowest part of each level as a sentence; empty when none is slow, or nothing is known."""
    words = []
    for level in levels_of(run, phase):
        for one in slow_units(run, phase, level)[:1]:
            way = way_words(phase, "reads", "writes", "operations")
            words.append(
                f"{one_line(level, 40)} {one_line(one.name, 60)} answered {way} at {1 / one.factor:.2f} of the rate of"
                f" the others ({100 * LEVEL:g} % interval over all of them: {1 / one.high:.2f} to {1 / one.low:.2f})."
            )
    return " ".join(words)


def _places(parents: Parents, level: str, targets: Sequence[str]) -> Mapping[str, list[int]]:
    """Where the targets of each part stand in `targets`; parts without any are left out."""
    part_of = parents.by_target(level)
    found: dict[str, list[int]] = {part: [] for part in parents.levels.get(level, ())}
    for at, name in enumerate(targets):
        if (part := part_of.get(plain_name(name))) is not None:
            found[part].append(at)
    return {part: places for part, places in found.items() if places}
