# SPDX-License-Identifier: Apache-2.0
"""What speaks against the runs that are judged: a change may be the machine's, not the storage's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sonde.findings.caveats import get_stored_classification, select_phase_caveats
from sonde.findings.classification import is_judged_classification, label_classification
from sonde.model.units import format_count_with_noun
from sonde.store.summary import Summary


@dataclass(frozen=True)
class CaveatCount:
    """One kind of caveat about one phase: in `runs` of the `of` runs of `side`, with the text of the latest of them.

    `varies`: other runs have other texts, for example with another task or value.
    """

    side: str
    phase: str
    id: str
    text: str
    runs: int
    of: int
    varies: bool = False

    @property
    def text_with_count(self) -> str:
        """How often and why: ``other processes used 1.9 cores … (in 3 of 5 runs)``."""
        latest = "; the text is that of the last of them" * self.varies
        often = "" if self.of == 1 else f" (in {self.runs} of {format_count_with_noun(self.of, 'run')}{latest})"
        return f"{self.text.rstrip('.') or self.id}{often}"

    def as_json(self) -> dict[str, Any]:
        """All that is known."""
        return asdict(self)


def count_caveats(side_name: str, runs: Sequence[Summary], phase_ids: Iterable[str]) -> list[CaveatCount]:
    """The caveats about these phases of the runs, the oldest run first."""
    result = []
    for phase in dict.fromkeys(phase_ids):
        having = [run for run in runs if any(item.get("phase") == phase for item in run.phases)]
        kinds: dict[str, list[str]] = {}
        for run in having:
            for finding in {str(item.get("id")): item for item in _list_phase_caveats(run, phase)}.values():
                kinds.setdefault(str(finding.get("id")), []).append(str(finding.get("text") or ""))
        result += [
            CaveatCount(side_name, phase, kind, texts[-1], len(texts), len(having), len(set(texts)) > 1)
            for kind, texts in kinds.items()
        ]
    return result


def count_runs_without_storage_number(side_name: str, runs: Sequence[Summary], phase_id: str) -> list[CaveatCount]:
    """Counts, by classification, the runs in which `phase_id` did not measure storage (for example, the page cache)."""
    rows = [row for run in runs for row in run.phases if row.get("phase") == phase_id]
    kinds = Counter(str(row.get("classification") or "") for row in rows)
    return [
        CaveatCount(side_name, phase_id, kind, f"not a storage number ({label_classification(kind)})", count, len(rows))
        for kind, count in kinds.items()
        if not is_judged_classification(kind)
    ]


def _list_phase_caveats(run: Summary, phase: str) -> list[Mapping[str, Any]]:
    classification = next((get_stored_classification(item) for item in run.phases if item.get("phase") == phase), "")
    return select_phase_caveats(run.document, phase, classification)


def list_caveat_sentences(caveats: Sequence[CaveatCount]) -> list[str]:
    """A sentence for each kind of caveat on each side, with the phases that it is about: the worst phase's count."""
    kinds: dict[tuple[str, str], list[CaveatCount]] = {}
    for caveat in caveats:
        kinds.setdefault((caveat.side, caveat.id), []).append(caveat)
    sentences = []
    for (side, _), alike in kinds.items():
        most = max(alike, key=lambda item: item.runs / item.of)
        phases = ", ".join(dict.fromkeys(item.phase for item in alike))
        sentences.append(f"{side}, {phases}: {most.text_with_count}.")
    return sentences
