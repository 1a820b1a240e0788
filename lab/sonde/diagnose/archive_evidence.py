# SPDX-License-Identifier: Apache-2.0
"""Evidence that costs no experiment: facts about the machine that differ between a slow run and one from when the
machine was fast speak for the causes that would change them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from sonde.diagnose.hypotheses import Hypothesis
from sonde.trends.environment import read_environment

# Assumptions: a cause that changes recorded facts shows in them this often; they differ without it this often.
_CHANGED_BY_CAUSE, _CHANGED_BY_CHANCE = 0.8, 0.2


@dataclass(frozen=True)
class EnvironmentEvidence:
    """Names of facts that both runs recorded: those that differ, and those that are equal."""

    changed: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()

    def compute_log_factor(self, hypothesis: Hypothesis) -> float:
        """Logarithm of the factor on the probability of a hypothesis; 0 where no run recorded what it would change."""
        topics = set(hypothesis.cause.environment) if hypothesis.cause is not None else set()
        if any(topics & _split_name_into_words(name) for name in self.changed):
            return log(_CHANGED_BY_CAUSE / _CHANGED_BY_CHANCE)
        if any(topics & _split_name_into_words(name) for name in self.equal):
            return log((1 - _CHANGED_BY_CAUSE) / (1 - _CHANGED_BY_CHANCE))
        return 0.0

    def describe(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Returns what differed, and which causes no recorded fact speaks about, in sentences."""
        if not self.changed and not self.equal:
            return []
        differing = ", ".join(self.changed) or "nothing"
        silent = [item.id for item in hypotheses if item.cause is not None and self.compute_log_factor(item) == 0]
        sentences = [f"Between the slow run and its reference differ: {differing}."]
        if silent:
            sentences.append(f"The runs recorded nothing that would show these causes: {', '.join(silent)}.")
        return sentences

    def to_json(self) -> dict[str, Any]:
        return {"changed": list(self.changed), "equal": list(self.equal)}

    @classmethod
    def from_json(cls, evidence_document: Mapping[str, Any]) -> EnvironmentEvidence:
        return cls(
            tuple(str(name) for name in evidence_document.get("changed", ())),
            tuple(str(name) for name in evidence_document.get("equal", ())),
        )


def _split_name_into_words(fact_name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", fact_name.lower()))


def compare_run_environments(run_folder: Path, reference_folder: Path) -> EnvironmentEvidence:
    """Compares the facts that two runs recorded about their machines."""
    after, before = read_environment(run_folder), read_environment(reference_folder)
    common = sorted(before.keys() & after.keys())
    return EnvironmentEvidence(
        tuple(name for name in common if before[name] != after[name]),
        tuple(name for name in common if before[name] == after[name]),
    )
