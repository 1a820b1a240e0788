# SPDX-License-Identifier: Apache-2.0
"""Events of the archive as evidence: what was noted between the run from when the machine was fast and the slow one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import log
from typing import Any

from sonde.diagnose.hypotheses import Hypothesis
from sonde.model.errors import EventError
from sonde.model.event import Event
from sonde.model.event.times import TimeInterval
from sonde.model.system import System

# Assumptions: a cause is noted as an event this often; an event is about a hypothesis for other reasons this often.
# That nothing was noted says nothing: no site notes all.
_NOTED_WITH_CAUSE, _NOTED_BY_CHANCE = 0.5, 0.05
# Kinds of events after which a part may be slower, and those after which software or settings may be.
_EVENT_KINDS_OF_PARTS = frozenset({"failure", "rebuild", "failover", "incident", "reboot", "maintenance", "change"})
_EVENT_KINDS_OF_SETTINGS = frozenset({"upgrade", "reconfiguration", "maintenance", "change"})
_MAX_PRINTED_EVENTS = 5


@dataclass(frozen=True)
class EvidenceEvent:
    """An event with the ids of its parts, and the words of its title and of the names of what it changed."""

    kind: str
    title: str
    parts: tuple[str, ...] = ()
    title_words: tuple[str, ...] = ()

    def is_about(self, hypothesis: Hypothesis) -> bool:
        """Whether it happened to a part of the hypothesis, or changed what its cause names."""
        if hypothesis.cause is not None:
            return self.kind in _EVENT_KINDS_OF_SETTINGS and bool(
                set(hypothesis.cause.environment) & set(self.title_words)
            )
        return self.kind in _EVENT_KINDS_OF_PARTS and bool(set(hypothesis.members) & set(self.parts))


@dataclass(frozen=True)
class EventEvidence:
    """Events after the reference and before the end of the slow run, in order of time."""

    events: tuple[EvidenceEvent, ...] = ()

    def compute_log_factor(self, hypothesis: Hypothesis) -> float:
        """Logarithm of the factor on the probability of a hypothesis. Several events are one piece of evidence: logs
        repeat what happened once."""
        if any(event.is_about(hypothesis) for event in self.events):
            return log(_NOTED_WITH_CAUSE / _NOTED_BY_CHANCE)
        return 0.0

    def describe(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Returns the events that are about a hypothesis, and how many are about none, in sentences."""
        if not self.events:
            return []
        related = [event for event in self.events if any(event.is_about(item) for item in hypotheses)]
        titles = list(dict.fromkeys(f"{event.title} ({event.kind})" for event in related))
        others = len(self.events) - len(related)
        if not titles:
            return [f"Of the {others} events between both runs none is about a hypothesis."]
        more = f"; and {len(titles) - _MAX_PRINTED_EVENTS} more" if len(titles) > _MAX_PRINTED_EVENTS else ""
        sentence = f"Noted between both runs: {'; '.join(titles[:_MAX_PRINTED_EVENTS])}{more}."
        return [sentence, *([f"{others} other events are about no hypothesis."] if others else [])]

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(event) for event in self.events]

    @classmethod
    def from_json(cls, event_documents: Iterable[Mapping[str, Any]]) -> EventEvidence:
        return cls(
            tuple(
                EvidenceEvent(
                    str(document["kind"]),
                    str(document["title"]),
                    tuple(map(str, document["parts"])),
                    tuple(map(str, document["title_words"])),
                )
                for document in event_documents
            )
        )


def select_events(events: Iterable[Event], since_s: float, until_s: float, system: System | None) -> EventEvidence:
    """The events that may have happened after `since_s` and until `until_s`, seconds since 1970."""
    interval = TimeInterval(datetime.fromtimestamp(since_s, UTC), datetime.fromtimestamp(until_s, UTC))
    return EventEvidence(
        tuple(_make_evidence_event(event, system) for event in events if event.when.overlaps_interval(interval))
    )


def _make_evidence_event(event: Event, system: System | None) -> EvidenceEvent:
    try:
        parts = event.resolve_parts(system)
    except EventError:  # parts of another system file
        parts = event.parts
    text = " ".join([event.title, *(event.changes or {})])
    return EvidenceEvent(event.kind, event.title, parts, tuple(sorted(set(re.findall(r"[a-z]+", text.lower())))))
