# SPDX-License-Identifier: Apache-2.0
"""Which storage targets answer otherwise in the runs of one side than in those of another, and which servers and units.

In each run a target is first held against the middle one, so that a busier day of all of them is no change of one; of
several runs the median counts. What it changed by is then judged against the changes of the other targets, by the rule
that names a slow target in one run (`served.apart_from_others`): it needs four targets on both sides, and one run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sonde.findings.judgement import operations_first
from sonde.findings.served import (
    LEAST_OTHERS,
    LEVEL,
    answer_rates,
    apart_from_others,
    busiest_kind,
    served,
    shares_of,
    unknown_words,
)
from sonde.findings.targets import LEAST_FACTOR, TargetRates, target_rates
from sonde.findings.units import levels_of, unit_answers, unit_rows
from sonde.model import quantities
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.stats.ratio import CONFIDENCE, LEAST, ratio

Verdict = Literal["slower", "faster", "no change seen", "not known"]
TARGET = "target"
_MOST_NAMED = 3
# Why a target has no level: of operations, and of whole files.
_SILENT = ("too few operations lie on it alone", f"fewer than {LEAST} files of tasks lie on it alone")
_FEW = f"fewer than {LEAST_OTHERS + 1} with enough operations on both sides"


@dataclass(frozen=True)
class PartChange:
    """A target, server or unit on both sides.

    `own` is the rate at which it answered, after by before, less what changed for the middle one; `low` to `high` is
    its interval at 99.5 % over all parts. `rate` is the same ratio of its mean latency alone, with an interval where
    both sides have five runs. None is not known, and `why` says why no verdict can be given.
    """

    name: str
    verdict: Verdict
    why: str
    own: float | None
    low: float | None
    high: float | None
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    mean_ns_before: float | None  # of operations that lie on one target alone, the median of the runs
    mean_ns_after: float | None
    bytes_before: float | None  # the median of the runs
    bytes_after: float | None

    @property
    def differs(self) -> bool:
        """Whether it is said to have changed."""
        return self.verdict in ("slower", "faster")


@dataclass(frozen=True)
class LevelChanges:
    """All targets of a phase, or all parts of a level ("OSS", "SSU"), in the order of the names."""

    level: str
    kind: str  # read, write, or "file" where only whole files on single targets are known
    parts: tuple[PartChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def differing(self) -> list[PartChange]:
        """Those that changed, the strongest change first."""
        return sorted((one for one in self.parts if one.differs), key=lambda one: -abs(math.log(one.own or 1.0)))

    @property
    def words(self) -> list[str]:
        """A sentence for each of those that differ, and one on those of which nothing can be said."""
        told = [_sentence(self, one) for one in self.differing[:_MOST_NAMED]]
        judged = [one for one in self.parts if one.verdict != "not known"]
        if judged and not told:
            told.append(_none_words(self, judged))
        if (more := len(self.differing) - _MOST_NAMED) > 0:
            told.append(f"So {'does' if more == 1 else 'do'} {_counted(more, self.level)} more.")
        silent = [one for one in self.parts if one.verdict == "not known"]
        for why in dict.fromkeys(one.why for one in silent):
            count = sum(one.why == why for one in silent)
            told.append(f"Of {_counted(count, self.level)} it is not known: {why}.")
        for side, names in (("before", self.only_before), ("after", self.only_after)):
            if names:
                shown = ", ".join(one_line(name, 40) for name in names[:_MOST_NAMED])
                more_words = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
                told.append(f"Only {side} served any: {_noun(self.level)} {shown}{more_words}.")
        return told

    def as_json(self) -> dict[str, Any]:
        """The machine form; of a part what is not known is absent."""
        return {
            "level": self.level,
            "kind": self.kind,
            "parts": [
                {name: value for name, value in vars(one).items() if value is not None and value != ""}
                for one in self.parts
            ],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }


@dataclass(frozen=True)
class PhaseChanges:
    """What is known of a phase's targets on both sides: `levels` begins with the targets themselves; `unknown` are
    sentences on what the records do not say."""

    levels: tuple[LevelChanges, ...]
    unknown: tuple[str, ...]


def phase_changes(before: Sequence[tuple[Run, PhaseRecord]], after: Sequence[tuple[Run, PhaseRecord]]) -> PhaseChanges:
    """One phase of the runs of both sides. Empty where neither side knows of targets."""
    sides = (before, after)
    known = tuple([one for one in side if _tells(one[1])] for side in sides)
    if not any(known):
        return PhaseChanges((), ())
    if len({name for side in known for _, phase in side for name in _names(phase)}) < 2:
        return PhaseChanges((), ())  # one drive: what it did is what the phase did
    unknown = [*_without(sides, known), *_not_given(known)]
    kinds = [_kind_of(side) for side in known]
    if not all(known):
        return PhaseChanges((), tuple(unknown))
    if kinds[0] != kinds[1]:
        words = " and ".join(_KINDS.get(kind, kind) for kind in kinds)
        unknown.append(f"Targets cannot be compared: before and after are told by {words}.")
        return PhaseChanges((), tuple(unknown))
    targets = _level(TARGET, kinds[0], [_target_tellings(side, kinds[0]) for side in known])
    named = {one.name for one in targets.differing}
    levels = [targets]
    if kinds[0] != _FILE:
        both = [dict.fromkeys(level for run, phase in side for level in levels_of(run, phase)) for side in known]
        levels += [
            _level(level, kinds[0], [_unit_tellings(side, level, named) for side in known])
            for level in both[0]
            if level in both[1]
        ]
    return PhaseChanges(tuple(levels), tuple(unknown))


_FILE = "file"
_KINDS = {"read": "reads", "write": "writes", _FILE: "whole files on single targets"}


@dataclass(frozen=True)
class _Telling:
    """What one run says of one part: its level against the middle one (logarithm), and its own figures."""

    level: float | None
    mean_ns: float | None
    bytes: float | None


def _tells(phase: PhaseRecord) -> bool:
    return bool(phase.targets and served(phase.targets)) or bool(target_rates(phase, operations_first(phase)))


def _names(phase: PhaseRecord) -> set[str]:
    named = {one.target for one in served(phase.targets)} if phase.targets else set()
    return named | {one.name for one in target_rates(phase, operations_first(phase))}


def _kind_of(side: Sequence[tuple[Run, PhaseRecord]]) -> str:
    """Of the latest run: the busiest kind of operations, or whole files where no operations are known."""
    return (busiest_kind(side[-1][1]) or _FILE) if side else ""


def _target_tellings(side: Sequence[tuple[Run, PhaseRecord]], kind: str) -> list[dict[str, _Telling]]:
    return [_by_files(phase) if kind == _FILE else _by_operations(phase, kind) for _, phase in side]


def _by_operations(phase: PhaseRecord, kind: str) -> dict[str, _Telling]:
    levels = _levels(answer_rates(phase)) if busiest_kind(phase) == kind else {}
    return {
        one.target: _Telling(
            levels.get(one.target), one.single_ns / one.single_ops if one.single_ops else None, float(one.bytes)
        )
        for one in (served(phase.targets) if phase.targets else ())
        if one.kind == kind
    }


def _by_files(phase: PhaseRecord) -> dict[str, _Telling]:
    found = target_rates(phase, operations_first(phase))
    if not found:
        return {}
    middle = statistics.median(statistics.median(one.rates) for one in found)
    shares = [TargetRates(one.name, tuple(rate / middle for rate in one.rates)) for one in found]
    levels = _levels(shares)
    return {one.name: _Telling(levels.get(one.name), None, None) for one in shares}


def _unit_tellings(
    side: Sequence[tuple[Run, PhaseRecord]], level: str, named: Iterable[str]
) -> list[dict[str, _Telling]]:
    told = []
    for run, phase in side:
        kind = busiest_kind(phase)
        levels = _levels(shares_of(unit_answers(run, phase, level, set(named))))
        told.append(
            {
                one.unit: _Telling(levels.get(one.unit), one.mean_ns, float(one.bytes))
                for one in unit_rows(run, phase, level)
                if one.kind == kind
            }
        )
    return told


def _levels(rates: Sequence[TargetRates]) -> dict[str, float]:
    return {one.name: math.log(float(np.median(one.rates))) for one in rates if len(one.rates) >= LEAST}


def _level(level: str, kind: str, sides: Sequence[Sequence[Mapping[str, _Telling]]]) -> LevelChanges:
    before, after = ({name for one in side for name in one} for side in sides)
    names = sorted(before & after)
    told = [[[one[name] for one in side if name in one] for side in sides] for name in names]
    moved = [_moved(*both) for both in told]
    at = [place for place, value in enumerate(moved) if value is not None]
    apart = dict(zip(at, apart_from_others([moved[place] or 0.0 for place in at]), strict=True))
    parts = []
    for place, name in enumerate(names):
        found = apart.get(place)
        verdict: Verdict = "not known" if found is None else "no change seen"
        if found is not None and found.differs:
            verdict = "slower" if found.by < 0 else "faster"
        own = [None] * 3 if found is None else [math.exp(found.by + side * found.room) for side in (0, -1, 1)]
        why = "" if found is not None else _FEW if place in apart else _SILENT[kind == _FILE]
        parts.append(PartChange(name, verdict, why, *own, *_figures(*told[place])))
    return LevelChanges(level, kind, tuple(parts), tuple(sorted(before - after)), tuple(sorted(after - before)))


def _moved(before: Sequence[_Telling], after: Sequence[_Telling]) -> float | None:
    """By how much the level against the middle one changed; None where a side does not know it."""
    sides = [[one.level for one in side if one.level is not None] for side in (before, after)]
    return statistics.median(sides[1]) - statistics.median(sides[0]) if all(sides) else None


def _figures(before: Sequence[_Telling], after: Sequence[_Telling]) -> list[float | None]:
    """Ratio of the rates with its interval, mean latencies and bytes of both sides."""
    means = [[one.mean_ns for one in side if one.mean_ns] for side in (before, after)]
    moved = [[one.bytes for one in side if one.bytes is not None] for side in (before, after)]
    change: list[float | None] = [None, None, None]
    if all(means):
        # Latencies by their inverse: the rate at which one operation after the other is answered.
        old, new = ([1 / ns for ns in side] for side in means)
        found = ratio(old, new, CONFIDENCE, test=False)
        change = [found.value, found.low, found.high]
    return [*change, *(statistics.median(side) if side else None for side in (*means, *moved))]


def _without(
    sides: Sequence[Sequence[tuple[Run, PhaseRecord]]], known: Sequence[Sequence[tuple[Run, PhaseRecord]]]
) -> list[str]:
    words = []
    for name, side, told in zip(("before", "after"), sides, known, strict=True):
        if missing := len(side) - len(told):
            which = "the run" if len(side) == 1 else f"{missing} of {quantities.plural(len(side), 'run')}"
            words.append(f"Of {which} {name} no figures of targets are known.")
    return words


def _not_given(known: Sequence[Sequence[tuple[Run, PhaseRecord]]]) -> list[str]:
    """What belongs to no target, of the run of each side in which that is most."""
    words = []
    for name, side in zip(("Before", "After"), known, strict=True):
        partly = [phase for _, phase in side if unknown_words(phase)]
        if partly:
            words.append(f"{name}, {unknown_words(min(partly, key=_share_known))}.")
    return words


def _none_words(changes: LevelChanges, judged: Sequence[PartChange]) -> str:
    """That none differs, and what could not have been seen: the widest interval of any of them."""
    widest = max(LEAST_FACTOR, *(math.sqrt((one.high or 1.0) / (one.low or 1.0)) for one in judged))
    return (
        f"Of {_counted(len(judged), changes.level)} none answered otherwise than before, held against the others"
        f" (a change by less than a factor of {widest:.1f} would not show)."
    )


def _share_known(phase: PhaseRecord) -> float:
    return phase.targets.known_bytes / phase.targets.bytes if phase.targets and phase.targets.bytes else 1.0


def _noun(level: str) -> str:
    return level if level == TARGET else one_line(level, 40)


def _counted(count: int, level: str) -> str:
    """ "3 targets", "3 OSS": short names of levels have no plural."""
    noun = _noun(level)
    return quantities.plural(count, noun) if noun[-1:].islower() else f"{count:,} {noun}"


def _sentence(changes: LevelChanges, one: PartChange) -> str:
    verbs = {"read": "answered reads at", "write": "answered writes at", _FILE: "served its files at"}
    noun = _noun(changes.level)
    name = f"{noun[:1].upper()}{noun[1:]} {one_line(one.name, 60)}"
    others = "targets" if changes.level == TARGET else f"{noun}s" if noun[-1:].islower() else noun
    return (
        f"{name} {verbs.get(changes.kind, 'answered at')} {one.own or 0:.2f} of its rate before, held against the other"
        f" {others} ({100 * LEVEL:g} % interval over all of them: {one.low or 0:.2f} to {one.high or 0:.2f})."
    )
