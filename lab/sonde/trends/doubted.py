# SPDX-License-Identifier: Apache-2.0
"""What speaks against the runs that are judged: a change may be the machine's, not the storage's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sonde.findings.doubts import grave_of_phase
from sonde.model.units import counted
from sonde.store.summary import Summary


@dataclass(frozen=True)
class Doubted:
    """One kind of doubt about one phase: in `runs` of the `of` runs of `side`, in the words of the latest of them."""

    side: str
    phase: str
    id: str
    text: str
    runs: int
    of: int

    @property
    def words(self) -> str:
        """How often and why: ``other processes used 1.9 cores … (in 3 of 5 runs)``."""
        often = "" if self.of == 1 else f" (in {self.runs} of {counted(self.of, 'run')})"
        return f"{self.text.rstrip('.') or self.id}{often}"

    def as_json(self) -> dict[str, Any]:
        """All that is known."""
        return asdict(self)


def doubted(side: str, runs: Sequence[Summary], phases: Iterable[str]) -> list[Doubted]:
    """The doubts about these phases of the runs, the oldest run first."""
    found = []
    for phase in dict.fromkeys(phases):
        having = [run for run in runs if any(one.get("phase") == phase for one in run.phases)]
        kinds: dict[str, list[str]] = {}
        for run in having:
            for finding in {str(one.get("id")): one for one in _of_phase(run, phase)}.values():
                kinds.setdefault(str(finding.get("id")), []).append(str(finding.get("text") or ""))
        found += [Doubted(side, phase, kind, texts[-1], len(texts), len(having)) for kind, texts in kinds.items()]
    return found


def _of_phase(run: Summary, phase: str) -> list[Mapping[str, Any]]:
    standing = next((str(one.get("standing") or "") for one in run.phases if one.get("phase") == phase), "")
    return grave_of_phase(run.document, phase, standing)


def doubt_sentences(found: Sequence[Doubted]) -> list[str]:
    """A sentence for each kind of doubt on each side, with the phases that it is about: the worst phase's count."""
    kinds: dict[tuple[str, str], list[Doubted]] = {}
    for one in found:
        kinds.setdefault((one.side, one.id), []).append(one)
    said = []
    for (side, _), alike in kinds.items():
        most = max(alike, key=lambda one: one.runs / one.of)
        phases = ", ".join(dict.fromkeys(one.phase for one in alike))
        said.append(f"{side}, {phases}: {most.words}.")
    return said
