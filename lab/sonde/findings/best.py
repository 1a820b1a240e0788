# SPDX-License-Identifier: Apache-2.0
"""The best numbers of several phases, by one rule: what the headline of a check, the first line of a page and the list
of runs quote.

Of each kind of work (new data written, data written again, data read, blocks at random) it is the largest number that
is one of storage. So no number of a table stands above the headline without being of another kind, or not of storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.findings.judgement import Judgement, doubt_words, operations_first
from sonde.findings.standing import Standing, many_files
from sonde.model import quantities
from sonde.model.errors import UnitError
from sonde.model.lines import Finding
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.units import parse_bytes

# Numbers of storage. What was too short, came from memory or a cache, moved nothing or is not decided is none.
OF_STORAGE = (Standing.STORAGE, Standing.BURST)
RULE = (
    "Best: of each kind of work the largest number of storage. Numbers of caches, of memory and of synthetic backends,"
    " invalid ones and those over too soon do not count."
)
NONE = "No number of data read or written here is one of storage; each says why."
_VERBS = {"write": "writes", "rewrite": "rewrites", "read": "reads", "reread": "reads", "read_only": "reads"}
_RANDOM = frozenset({"random_permute", "random_replace"})


@dataclass(frozen=True)
class Kind:
    """What numbers are compared with each other: `verb` (writes, rewrites, reads); `random` names the block of random
    access ("4 KiB") and is empty for any other order."""

    verb: str
    random: str = ""

    @property
    def order(self) -> tuple[bool, int]:
        """Where it stands in the sentence."""
        return bool(self.random), list(dict.fromkeys(_VERBS.values())).index(self.verb)


@dataclass(frozen=True)
class Number:
    """One number that may be the best of its kind: bytes per second, or operations per second at random."""

    kind: Kind | None
    value: float | None
    standing: Standing
    doubts: Sequence[Finding] = ()
    name: str = ""

    def as_json(self) -> dict[str, Any]:
        """The machine form."""
        kind = self.kind or Kind("")
        unit = "ops_per_s" if kind.random else "bytes_per_s"
        return {"work": f"random {kind.random} {kind.verb}" if kind.random else kind.verb, unit: self.value} | (
            {"figure": self.name} if self.name else {}
        )


def kind_of(run: Run, phase: PhaseRecord) -> Kind | None:
    """The kind of work that a phase is the number of; None for what is told in files, or mixes directions."""
    verb = _VERBS.get(phase.begin.op)
    if verb is None or many_files(run, phase):
        return None
    if str(run.setting(phase.id, "access", "order")) not in _RANDOM or not operations_first(phase):
        return Kind(verb)
    try:
        block = str(quantities.size(float(parse_bytes(run.setting(phase.id, "access", "transfer")))))
    except (UnitError, TypeError, ValueError):
        return None
    return Kind("writes" if verb == "rewrites" else verb, quantities.plain(block))


def number_of(run: Run, phase: PhaseRecord, judgement: Judgement) -> Number:
    """The number of a phase, total over its whole time."""
    kind = kind_of(run, phase) if phase.begin.measured else None
    total = phase.end.rates.total if phase.end else None
    value = None if total is None else total.ops_per_s if kind and kind.random else total.bytes_per_s
    return Number(kind, value, judgement.standing, judgement.doubts)


def best(numbers: Iterable[Number]) -> list[Number]:
    """The best of each kind that has one, in the order of the sentence."""
    found: dict[Kind, Number] = {}
    for one in numbers:
        if one.kind is None or not one.value or one.standing not in OF_STORAGE:
            continue
        if one.kind not in found or one.value > (found[one.kind].value or 0):
            found[one.kind] = one
    return [found[kind] for kind in sorted(found, key=lambda kind: (kind.order, kind.random))]


def best_words(quoted: Sequence[Number]) -> str:
    """One sentence; what speaks against a number that it quotes stands before the numbers."""
    if not quoted:
        return NONE
    lasting = "sustained" if all(one.standing is Standing.STORAGE for one in quoted) else "in bursts of seconds"
    return f"{_doubt(quoted)}Best from storage, {lasting}: {', '.join(_words(one) for one in quoted)}."


def _words(one: Number) -> str:
    kind, value = one.kind or Kind(""), one.value or 0.0
    if not kind.random:
        return f"{kind.verb} {quantities.plain(str(quantities.byte_rate(value)))}"
    count = quantities.plain(str(quantities.operation_rate(value))).replace(" op/s", "")
    return f"{count} random {kind.random} {kind.verb} a second"


def _doubt(quoted: Sequence[Number]) -> str:
    """Why the sentence is doubtful, a doubt of one kind said once; empty when nothing speaks against its numbers."""
    kinds: dict[str, list[Finding]] = {}
    for number in quoted:
        for doubt in number.doubts:
            kinds.setdefault(doubt.id, []).append(doubt)
    clauses = []
    for doubts in kinds.values():
        of = "" if len(doubts) == len(quoted) else f" ({len(doubts)} of {len(quoted)} numbers)"
        clauses.append(f"{doubt_words(doubts[0])}{of}")
    return f"Doubtful: {'; '.join(clauses)}. " if clauses else ""
