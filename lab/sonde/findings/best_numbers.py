# SPDX-License-Identifier: Apache-2.0
"""The best numbers of several phases, as quoted by the headline of a check, the first line of a page, the list of runs.

For each kind of work (data written, rewritten, read, random blocks) the best number is the largest storage number. So a
number of a table that exceeds the headline is of another kind, or not a storage number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.findings.assessment import Assessment, is_reported_in_operations
from sonde.findings.caveats import format_caveat
from sonde.findings.classification import Classification, is_one_file_per_operation
from sonde.model import quantities
from sonde.model.errors import UnitError
from sonde.model.lines import Finding
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.model.units import parse_bytes

# Classifications of storage numbers.
STORAGE_CLASSIFICATIONS = (Classification.STORAGE, Classification.BURST)
# A model has no caches of devices that a short phase may end in, unless it describes them.
_MODELED_CLASSIFICATIONS = (*STORAGE_CLASSIFICATIONS, Classification.SHORT)
BEST_NUMBER_RULE = (
    "Best: of each kind of work the largest number of storage. Numbers of caches, of memory and of synthetic backends,"
    " invalid ones and those over too soon do not count."
)
SIMULATED_RULE = (
    "Best in the model: of each kind of work the largest number that does not describe caches or memory of the model."
    " Nothing was measured."
)
NO_MEASURED_NUMBER = "Simulated: nothing was measured."

NO_STORAGE_NUMBER = "No number of data read or written here is one of storage; each says why."
_VERBS_BY_OPERATION = {
    "write": "writes",
    "rewrite": "rewrites",
    "read": "reads",
    "reread": "reads",
    "read_only": "reads",
}
_RANDOM_ORDERS = frozenset({"random_permute", "random_replace"})


@dataclass(frozen=True)
class WorkKind:
    """Numbers of one kind are comparable. `verb` is writes, rewrites or reads; `random` is the block size of random
    access ("4 KiB"), empty for other orders."""

    verb: str
    random: str = ""

    @property
    def sentence_sort_key(self) -> tuple[bool, int]:
        """Sort key for the numbers of a sentence: sequential before random access, then by `_VERBS_BY_OPERATION`."""
        return bool(self.random), list(dict.fromkeys(_VERBS_BY_OPERATION.values())).index(self.verb)


@dataclass(frozen=True)
class BestCandidate:
    """A number that may be the best of its kind: bytes per second, or operations per second for random access."""

    kind: WorkKind | None
    value: float | None
    classification: Classification
    caveats: Sequence[Finding] = ()
    name: str = ""
    modeled: Classification | None = None  # of a simulated number: its classification within the model

    def to_json(self) -> dict[str, Any]:
        """The machine form."""
        kind = self.kind or WorkKind("")
        unit = "ops_per_s" if kind.random else "bytes_per_s"
        return (
            {"work": f"random {kind.random} {kind.verb}" if kind.random else kind.verb, unit: self.value}
            | ({"figure": self.name} if self.name else {})
            | ({"simulated": True} if self.classification is Classification.SIMULATED else {})
        )


def determine_work_kind(run: RecordedRun, phase: PhaseRecord) -> WorkKind | None:
    """The kind of work of a phase; None for phases in files per second or with mixed directions."""
    verb = _VERBS_BY_OPERATION.get(phase.begin.op)
    if verb is None or is_one_file_per_operation(run, phase):
        return None
    if str(run.find_setting(phase.id, "access", "order")) not in _RANDOM_ORDERS or not is_reported_in_operations(phase):
        return WorkKind(verb)
    try:
        block = str(
            quantities.display_configured_size(float(parse_bytes(run.find_setting(phase.id, "access", "transfer"))))
        )
    except (UnitError, TypeError, ValueError):
        return None
    return WorkKind("writes" if verb == "rewrites" else verb, quantities.replace_no_break_spaces(block))


def make_candidate(run: RecordedRun, phase: PhaseRecord, assessment: Assessment) -> BestCandidate:
    """The number of a phase, total over its whole time."""
    kind = determine_work_kind(run, phase) if phase.begin.measured else None
    total = phase.end.rates.total if phase.end else None
    value = None if total is None else total.ops_per_s if kind and kind.random else total.bytes_per_s
    return BestCandidate(kind, value, assessment.classification, assessment.caveats, modeled=assessment.modeled)


def select_best_numbers(number_candidates: Iterable[BestCandidate]) -> list[BestCandidate]:
    """The best candidate of each kind, in the order of the sentence: of measured storage numbers; if there are none, of
    simulated ones."""
    candidates = list(number_candidates)
    stored = [number for number in candidates if number.classification in STORAGE_CLASSIFICATIONS]
    return _select_best_of_each_kind(stored) or _select_best_of_each_kind(
        number for number in candidates if number.modeled in _MODELED_CLASSIFICATIONS
    )


def _select_best_of_each_kind(candidates: Iterable[BestCandidate]) -> list[BestCandidate]:
    result: dict[WorkKind, BestCandidate] = {}
    for number in candidates:
        if number.kind is None or not number.value:
            continue
        if number.kind not in result or number.value > (result[number.kind].value or 0):
            result[number.kind] = number
    return [result[kind] for kind in sorted(result, key=lambda kind: (kind.sentence_sort_key, kind.random))]


def is_simulated(quoted_candidates: Sequence[BestCandidate]) -> bool:
    """Whether the best numbers are of a model."""
    return any(candidate.classification is Classification.SIMULATED for candidate in quoted_candidates)


def describe_best(quoted_candidates: Sequence[BestCandidate]) -> str:
    """One sentence with the numbers, preceded by their caveats."""
    if not quoted_candidates:
        return NO_STORAGE_NUMBER
    if is_simulated(quoted_candidates):
        numbers = ", ".join(_describe_candidate(candidate) for candidate in quoted_candidates)
        return f"{_make_caveat_sentence(quoted_candidates)}Simulated, not measured. Best in the model: {numbers}."
    lasting = (
        "sustained"
        if all(candidate.classification is Classification.STORAGE for candidate in quoted_candidates)
        else "in bursts of seconds"
    )
    numbers = ", ".join(_describe_candidate(candidate) for candidate in quoted_candidates)
    return f"{_make_caveat_sentence(quoted_candidates)}Best from storage, {lasting}: {numbers}."


def _describe_candidate(candidate: BestCandidate) -> str:
    kind, value = candidate.kind or WorkKind(""), candidate.value or 0.0
    if not kind.random:
        return f"{kind.verb} {quantities.replace_no_break_spaces(str(quantities.display_byte_rate(value)))}"
    count = quantities.replace_no_break_spaces(str(quantities.display_operation_rate(value))).replace(" op/s", "")
    return f"{count} random {kind.random} {kind.verb} a second"


def _make_caveat_sentence(quoted_candidates: Sequence[BestCandidate]) -> str:
    """Why the sentence is doubtful, each kind of caveat once; empty without caveats."""
    kinds: dict[str, list[Finding]] = {}
    for number in quoted_candidates:
        for caveat in number.caveats:
            kinds.setdefault(caveat.id, []).append(caveat)
    clauses = []
    for caveats in kinds.values():
        of = "" if len(caveats) == len(quoted_candidates) else f" ({len(caveats)} of {len(quoted_candidates)} numbers)"
        clauses.append(f"{format_caveat(caveats[0])}{of}")
    return f"Doubtful: {'; '.join(clauses)}. " if clauses else ""
