# SPDX-License-Identifier: Apache-2.0
"""Evidence from histories that became slower together: what they have in common says where the cause is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from sonde.diagnose.hypotheses import CAUSE, FAULT, FAULT_GRIDS, Hypothesis
from sonde.trends.survey import Survey

# Origins of causes, as explanations of joint changes name them.
_CLIENTS, _STORAGE, _TEST = "clients", "storage", "test"
_CAUSE_ORIGINS_BY_EXPLANATION: Mapping[str, frozenset[str]] = {
    "clients": frozenset({_CLIENTS}),
    "storage": frozenset({_STORAGE}),
    "machine": frozenset({_CLIENTS}),
    "machine or storage": frozenset({_CLIENTS, _STORAGE}),
    "test": frozenset({_TEST}),
}
# Assumption: the explanation of a joint change is right this often, by its certainty. Another certainty says nothing.
_CORRECT_PROBABILITY_BY_CERTAINTY: Mapping[str, float] = {"clear": 0.9, "likely": 0.75}
# Conditions of measurements under which a cause is at the clients, or in the test itself; others are at the storage.
_CLIENT_TRAITS = frozenset({"nodes", "software", "options"})
_TEST_TRAITS = frozenset({"baseline", "application", "api"})


@dataclass(frozen=True)
class JointChangeEvidence:
    """Where the explanation of the latest joint drop looks for the cause, how certain it is, and its histories."""

    origin: str = ""
    certainty: str = ""
    histories: int = 0

    def compute_log_factor(self, hypothesis: Hypothesis) -> float:
        """Logarithm of the factor on the probability of a hypothesis; 0 where the change says nothing about it."""
        right, origins = (
            _CORRECT_PROBABILITY_BY_CERTAINTY.get(self.certainty),
            _CAUSE_ORIGINS_BY_EXPLANATION.get(self.origin),
        )
        if right is None or origins is None:
            return 0.0
        own_origins = find_origins(hypothesis)
        if not own_origins:
            return log(0.5)
        return log(right if own_origins & origins else 1 - right)

    def describe(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Returns the change in a sentence."""
        if not self.origin:
            return []
        meaning = (
            ""
            if self.origin in _CAUSE_ORIGINS_BY_EXPLANATION and self.certainty in _CORRECT_PROBABILITY_BY_CERTAINTY
            else ", which says nothing about the causes"
        )
        return [f"{self.histories} histories became slower together: {self.origin} ({self.certainty}){meaning}."]

    def to_json(self) -> dict[str, Any]:
        return {"origin": self.origin, "certainty": self.certainty, "histories": self.histories}

    @classmethod
    def from_json(cls, evidence_document: Mapping[str, Any]) -> JointChangeEvidence:
        return cls(
            str(evidence_document.get("origin", "")),
            str(evidence_document.get("certainty", "")),
            int(evidence_document.get("histories", 0)),
        )


def find_origins(hypothesis: Hypothesis) -> frozenset[str]:
    """Where a hypothesis is, from the conditions that its file or its fault names; empty for none of them."""
    if hypothesis.kind == FAULT:
        traits = set(FAULT_GRIDS[hypothesis.fault].absent_with)
        return frozenset({_CLIENTS if traits & _CLIENT_TRAITS else _STORAGE})
    if hypothesis.kind == CAUSE and hypothesis.cause is not None:
        origins = set()
        for effect in hypothesis.cause.effects:
            names = set(effect.traits)
            origins.add(_TEST if names & _TEST_TRAITS else _CLIENTS if names & _CLIENT_TRAITS else _STORAGE)
        return frozenset(origins)
    return frozenset()


def find_latest_joint_drop(survey: Survey, since_time: float, until_time: float) -> JointChangeEvidence:
    """Returns the largest part of the latest joint drop after `since_time` and until `until_time`, which is not over;
    empty evidence without one. Times are seconds since 1970."""
    for joint in sorted(survey.joint, key=lambda item: -item.begin_time):
        if not since_time < joint.begin_time <= until_time:
            continue
        for part in joint.parts:
            drops = [change for change in part.changes if change.is_drop and not change.is_temporary]
            if len(drops) == len(part.changes) and len(drops) > 1:
                return JointChangeEvidence(part.explanation.cause, part.explanation.certainty, len(drops))
    return JointChangeEvidence()
