# SPDX-License-Identifier: Apache-2.0
"""Events of an archive raise the hypotheses that they are about, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState, read_diagnosis_state, write_diagnosis_state
from sonde.diagnose.event_evidence import EventEvidence, EvidenceEvent, select_events
from sonde.model.event.description import EVENT_FORMAT
from sonde.model.event.event import parse_event_lines

SINCE, UNTIL = (datetime(2026, 11, day, tzinfo=UTC).timestamp() for day in (10, 20))


def make_event(title: str, when: str = "2026-11-15", **members: Any) -> str:
    event = {"schema": EVENT_FORMAT, "id": title.replace(" ", "-"), "kind": "failure", "title": title, "when": when}
    return json.dumps(event | members) + "\n"


def select(*lines: str) -> EventEvidence:
    return select_events(parse_event_lines("".join(lines), Path("events.ndjson")), SINCE, UNTIL, None)


def compute_odds(diagnosis_model: DiagnosisModel, evidence: EventEvidence, first: str, second: str) -> float:
    """The factor by which the events change the odds of the first hypothesis against the second."""

    def read(from_model: DiagnosisModel) -> float:
        probabilities = from_model.compute_posterior([]).hypothesis_probabilities
        names = [item.id for item in from_model.hypotheses]
        return float(probabilities[names.index(first)] / probabilities[names.index(second)])

    return read(replace(diagnosis_model, events=evidence)) / read(diagnosis_model)


def test_failure_of_a_part_raises_its_faults(diagnosis_model: DiagnosisModel) -> None:
    evidence = select(make_event("drive failed", parts=["t3"]))
    assert compute_odds(diagnosis_model, evidence, "slow-target:t0-t7", "client-kernel") == pytest.approx(10)
    assert evidence.describe(diagnosis_model.hypotheses) == ["Noted between both runs: drive failed (failure)."]


def test_upgrade_raises_causes_that_match_its_text(diagnosis_model: DiagnosisModel) -> None:
    evidence = select(make_event("new Kernel on all nodes", kind="upgrade"))
    assert compute_odds(diagnosis_model, evidence, "client-kernel", "slow-target:t0-t7") == pytest.approx(10)
    changed = select(make_event("update", kind="change", changes={"kernel": ["5.3", "6.4"]}))
    assert compute_odds(diagnosis_model, changed, "client-kernel", "slow-target:t0-t7") == pytest.approx(10)


def test_several_events_about_one_part_count_once(diagnosis_model: DiagnosisModel) -> None:
    lines = [make_event(f"error {number}", parts=["t3"]) for number in range(50)]
    evidence = select(*lines)
    assert compute_odds(diagnosis_model, evidence, "slow-target:t0-t7", "client-kernel") == pytest.approx(10)
    (sentence,) = evidence.describe(diagnosis_model.hypotheses)
    assert sentence.endswith("error 4 (failure); and 45 more.")


@pytest.mark.parametrize(
    "line",
    [
        make_event("repaired", kind="repair", parts=["t3"]),
        make_event("failed", parts=["t99"]),
        make_event("failed somewhere"),
        make_event("kernel panic", kind="failure"),  # no upgrade
    ],
)
def test_event_about_no_hypothesis_changes_nothing(diagnosis_model: DiagnosisModel, line: str) -> None:
    evidence = select(line)
    before, after = (
        item.compute_posterior([]).hypothesis_probabilities
        for item in (diagnosis_model, replace(diagnosis_model, events=evidence))
    )
    assert np.allclose(before, after)
    assert evidence.describe(diagnosis_model.hypotheses) == [
        "Of the 1 events between both runs none is about a hypothesis."
    ]


def test_only_events_between_both_runs_count() -> None:
    lines = [make_event(f"at {day}", f"2026-11-{day:02}", parts=["t3"]) for day in (1, 9, 12, 20, 25)]
    assert [event.title for event in select(*lines).events] == ["at 12", "at 20"]
    assert select().describe([]) == []


def test_events_are_stored_with_the_diagnosis(tmp_path: Path) -> None:
    events = EventEvidence((EvidenceEvent("failure", "drive failed", ("t3",), ("drive", "failed")),))
    write_diagnosis_state(tmp_path / "case.json", DiagnosisState(directory="/scratch", events=events))
    assert read_diagnosis_state(tmp_path / "case.json").events == events


def test_events_change_the_open_diagnosis() -> None:
    session = DiagnosisSession.open_session(DiagnosisState(directory="/scratch"), None)
    events = parse_event_lines(make_event("mount options changed", kind="change"), Path("events.ndjson"))
    assert session.add_events(events, SINCE, UNTIL) == ["Noted between both runs: mount options changed (change)."]
    assert session.state.events.events[0].title_words == ("changed", "mount", "options")
    assert session.model.events == session.state.events
