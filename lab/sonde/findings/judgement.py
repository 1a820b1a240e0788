# SPDX-License-Identifier: Apache-2.0
"""The judgement on one number: what it is about, how far to trust it, and what struck about it.

Every surface (terminal, page, JSON, tables) takes its words from here, so that all tell one story.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sonde.findings.doubts import GOOD, doubts_of, verdict_of_phase
from sonde.findings.members import lagging, tasks_of
from sonde.findings.movement import Movement
from sonde.findings.node_stretches import stretch_words
from sonde.findings.profile import Profile, profile_of
from sonde.findings.served import answer_words
from sonde.findings.standing import Standing, many_files, standing_of
from sonde.findings.targets import target_words, untold_words
from sonde.findings.units import unit_words
from sonde.model import quantities
from sonde.model.errors import sentence
from sonde.model.limits import SHORTEST_S
from sonde.model.lines import Finding, Rates
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line

# Below this many bytes an operation, people ask for operations per second.
SMALL_OPERATION = 64 * 1024


@dataclass(frozen=True)
class Judgement:
    """What a number is worth.

    `because` is the clause on its standing. `moved`, `slow`, `taken`, `node`, `target` and `unit` are sentences, or
    empty: how the rate moved, who was slow, how fast the page cache took what was made durable later, which nodes were
    slower than the middle one and when, which storage targets were slow (or why nobody knows), and which servers or
    units of them. Blanks inside quantities do not break; `plain` of `model.quantities` makes ordinary ones of them.
    """

    standing: Standing
    because: str
    verdict: str = GOOD  # good, doubtful, invalid
    doubts: tuple[Finding, ...] = ()
    moved: str = ""
    slow: str = ""
    taken: str = ""
    node: str = ""
    target: str = ""
    unit: str = ""

    @property
    def sentence(self) -> str:
        """The standing in a sentence."""
        return sentence(self.because)

    @property
    def doubt(self) -> str:
        """Why the number is doubtful, in one sentence; empty when nothing speaks against it."""
        texts = list(dict.fromkeys(doubt_words(one) for one in self.doubts))
        return f"Doubtful: {'; '.join(texts)}." if texts else ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Everything beyond the standing, a sentence each."""
        said = (self.doubt, self.moved, self.taken, self.slow, self.node, self.target, self.unit)
        return tuple(words for words in said if words)

    def as_json(self) -> dict[str, Any]:
        """The machine form; what there is nothing to say of is absent."""
        said = {"moved": self.moved, "slow": self.slow, "node": self.node, "target": self.target}
        said |= {"unit": self.unit, "taken": self.taken}
        return {
            "standing": self.standing.value,
            "verdict": self.verdict,
            "sentence": quantities.plain(self.sentence),
            **({"doubts": [doubt_json(one) for one in self.doubts]} if self.doubts else {}),
            **{name: quantities.plain(words) for name, words in said.items() if words},
        }


def doubt_words(doubt: Finding) -> str:
    """A doubt as a clause."""
    return one_line(doubt.text or doubt.id, 600).strip().rstrip(".")


def doubt_json(doubt: Finding) -> dict[str, str]:
    """A doubt in its machine form."""
    return {name: getattr(doubt, name) for name in ("id", "severity", "text", "advice") if getattr(doubt, name)}


def judgement_of(run: Run, phase: PhaseRecord, interval: str = "total") -> Judgement:
    """The judgement on a phase's rate over `interval` (a member of Rates)."""
    return judged(run, phase, profile_of(phase), interval)


def judged(run: Run, phase: PhaseRecord, profile: Profile | None, interval: str = "total") -> Judgement:
    """The same where the profile of the phase is known already."""
    standing, because = standing_of(run, phase, interval)
    operations = operations_first(phase)
    words = (_moved(phase, profile, operations, interval), _slow_words(run, phase, operations), _taken(phase))
    moved, slow, taken = (_of_files(run, phase, sentence(one)) for one in words)
    return Judgement(
        standing,
        because,
        verdict_of_phase(run, phase),
        doubts_of(run, phase, standing),
        moved,
        slow,
        taken if interval == "total" else "",
        stretch_words(run, phase, operations),
        answer_words(phase) or target_words(phase, operations) or untold_words(phase),
        unit_words(run, phase),
    )


def operations_first(phase: PhaseRecord) -> bool:
    """True when the phase is better told in operations per second: small operations, or none that move bytes."""
    end = phase.end
    return end is not None and end.ops.done > 0 and end.bytes.moved / end.ops.done < SMALL_OPERATION


def rate_words(value: float, operations: bool) -> str:
    """The rate in the unit of the phase."""
    return str(quantities.operation_rate(value) if operations else quantities.byte_rate(value))


def _of_files(run: Run, phase: PhaseRecord, words: str) -> str:
    return words.replace("op/s", "files/s") if many_files(run, phase) else words


def _moved(phase: PhaseRecord, profile: Profile | None, operations: bool, interval: str) -> str:
    rates = phase.end.rates if phase.end else Rates()
    rate = getattr(rates, interval) or rates.total
    if profile is None or rate is None or profile.edges[-1] < SHORTEST_S:
        return ""
    moved = profile.moved(operations)
    if not moved.explains(rate.ops_per_s if operations else rate.bytes_per_s):
        return ""
    return movement_words(moved, operations, profile.edges[-1])


def movement_words(moved: Movement, operations: bool, seconds: float) -> str:
    """When the rate moved during `seconds`, as one clause; empty when there was too little of it to tell."""

    def words(rate: float) -> str:
        return rate_words(rate, operations)

    if moved.kind == "steps":
        times = [str(quantities.seconds(at)) for at, _ in moved.parts]
        rates = [rate for _, rate in moved.parts]
        first = f"{_way(rates[0], rates[1])} from {words(rates[0])} to {words(rates[1])} after {times[1]}"
        if len(rates) == 2:
            return first
        return f"{first}, then {_way(rates[1], rates[2])} to {words(rates[2])} after {times[2]}"
    if moved.kind == "drift":
        return f"{_way(moved.before, moved.after)} gradually from {words(moved.before)} to {words(moved.after)}"
    if moved.kind == "stalls":
        whole, stood = quantities.seconds(seconds), quantities.seconds(moved.stalled_s)
        return f"stood still for {stood} of {whole}; otherwise {words(moved.moving)}"
    if moved.kind == "steady":
        return f"steady, ±{max(1, round(moved.spread * 100))}{quantities.GAP}% around {words(moved.mean)}"
    if moved.kind == "uneven":
        return f"uneven, between {words(moved.low)} and {words(moved.high)} for nine tenths of the time"
    return ""


def _way(before: float, after: float) -> str:
    return "rose" if after > before else "fell"


def _slow_words(run: Run, phase: PhaseRecord, operations: bool) -> str:
    behind = lagging(tasks_of(run, phase, operations))
    if behind is None:
        return ""
    slowest, middle, count = behind
    where = f" on {slowest.host}" if slowest.host else ""
    others = f"{quantities.plural(count - 1, 'other task')} {'was' if count == 2 else 'were'} slow too"
    also = f"; {others}" if count > 1 else ""
    return (
        f"{slowest.name}{where} reached {rate_words(slowest.value, operations)},"
        f" the median task {rate_words(middle, operations)}{also}"
    )


def _taken(phase: PhaseRecord) -> str:
    """How fast the page cache took what fsync made durable afterwards, when both were timed apart."""
    end = phase.end
    if end is None or phase.begin.direct or not end.rates.total or not end.rates.transfer or not end.bytes.written:
        return ""
    total, transfer = end.rates.total, end.rates.transfer
    if not end.seconds.fsync or 1.25 * transfer.seconds > total.seconds:
        return ""
    return f"the page cache took it at {quantities.byte_rate(transfer.bytes_per_s)}, which is not a storage number"
