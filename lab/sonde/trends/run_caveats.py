# SPDX-License-Identifier: Apache-2.0
"""Caveats of the compared runs: a change may come from the nodes, not from the storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sonde.findings.caveats import get_stored_classification, select_phase_caveats
from sonde.findings.classification import is_judged_classification, label_classification
from sonde.model.units import format_count_with_noun
from sonde.store.summary import Summary


@dataclass(frozen=True)
class CaveatCount:
    """One kind of caveat about one phase: in `runs` of the `of` runs of `side`, with the text of the latest of them.

    `varies`: other runs have other texts, for example with another task or value. `plan`: the plan of the number, ""
    for every plan that has the phase.
    """

    side: str
    phase: str
    id: str
    text: str
    runs: int
    of: int
    varies: bool = False
    plan: str = ""

    @property
    def text_with_count(self) -> str:
        """How often and why: ``other processes used 1.9 cores … (in 3 of 5 runs)``."""
        return self.format_with_count("in")

    def format_with_count(self, preposition: str) -> str:
        """Returns the text with how often it applies, after `preposition`; without it for a single run."""
        latest = "; the text is that of the last of them" * self.varies
        count = f"{self.runs} of {format_count_with_noun(self.of, 'run')}"
        often = "" if self.of == 1 else f" ({preposition} {count}{latest})"
        return f"{self.text.rstrip('.') or self.id}{often}"

    def to_json(self) -> dict[str, Any]:
        """All that is known."""
        return asdict(self)


def count_caveats(side_name: str, run_summaries: Sequence[Summary], phase_ids: Iterable[str]) -> list[CaveatCount]:
    """Counts the caveats about these phases by phase and kind. `run_summaries` begin with the oldest run; a text is
    that of the latest."""
    result = []
    for phase in dict.fromkeys(phase_ids):
        having = [run for run in run_summaries if any(item.get("phase") == phase for item in run.phases)]
        kinds: dict[str, list[str]] = {}
        for run in having:
            for finding in {str(item.get("id")): item for item in _list_phase_caveats(run, phase)}.values():
                kinds.setdefault(str(finding.get("id")), []).append(str(finding.get("text") or ""))
        result += [
            CaveatCount(side_name, phase, kind, texts[-1], len(texts), len(having), len(set(texts)) > 1)
            for kind, texts in kinds.items()
        ]
    return result


def count_caveats_of_numbers(
    side_name: str, run_summaries: Sequence[Summary], plan_phase_and_runs: Iterable[tuple[str, str, Collection[str]]]
) -> list[CaveatCount]:
    """The caveats of numbers: each is a plan, a phase and the ids of the runs that measured it."""
    return [
        replace(caveat, plan=plan)
        for plan, phase, run_ids in plan_phase_and_runs
        for caveat in count_caveats(side_name, [run for run in run_summaries if run.id in run_ids], [phase])
    ]


def count_runs_without_storage_number(
    side_name: str, run_summaries: Sequence[Summary], phase_id: str
) -> list[CaveatCount]:
    """Counts, by classification, the runs in which `phase_id` did not measure storage (for example, the page cache)."""
    rows = [row for run in run_summaries for row in run.phases if row.get("phase") == phase_id]
    kinds = Counter(str(row.get("classification") or "") for row in rows)
    return [
        CaveatCount(side_name, phase_id, kind, f"not a storage number ({label_classification(kind)})", count, len(rows))
        for kind, count in kinds.items()
        if not is_judged_classification(kind)
    ]


def _list_phase_caveats(run_summary: Summary, phase_id: str) -> list[Mapping[str, Any]]:
    classification = next(
        (get_stored_classification(item) for item in run_summary.phases if item.get("phase") == phase_id), ""
    )
    return select_phase_caveats(run_summary.document, phase_id, classification)


def list_caveat_sentences(caveat_counts: Sequence[CaveatCount]) -> list[str]:
    """A sentence for each kind of caveat on each side, with its phases: the count, or the worst phase's as "up to"."""
    kinds: dict[tuple[str, str], list[CaveatCount]] = {}
    for caveat in caveat_counts:
        kinds.setdefault((caveat.side, caveat.id), []).append(caveat)
    sentences = []
    for (side, _), alike in kinds.items():
        most = max(alike, key=lambda item: item.runs / item.of)
        phases = ", ".join(dict.fromkeys(item.phase for item in alike))
        are_alike = len({(item.runs, item.of) for item in alike}) == 1
        sentences.append(f"{side}, {phases}: {most.format_with_count('in' if are_alike else 'in up to')}.")
    return sentences
