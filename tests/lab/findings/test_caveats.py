# SPDX-License-Identifier: Apache-2.0
"""The validity of a number, and the findings that reduce it beyond its classification."""

from __future__ import annotations

from typing import Any

import pytest
from phase_builders import make_phase, run_with

from sonde.findings.caveats import (
    determine_phase_validity,
    determine_validity,
    find_caveats,
    format_caveat,
    select_caveats,
    select_phase_caveats,
)
from sonde.findings.classification import Classification
from sonde.model.lines import (
    Finding,
)

WRONG, WORSE = Finding(id="clock", severity="invalid"), Finding(id="lost", severity="invalid")
SHORT, CACHED = Finding(id="too_short", severity="warning"), Finding(id="cache_suspect", severity="warning")
REMARK, NOISY = Finding(id="note", severity="info"), Finding(id="noisy", severity="warning")
OF_RUN = Finding(id="all", severity="warning")


@pytest.mark.parametrize(
    ("severities", "validity"),
    [
        ([], "good"),
        (["info", "info"], "good"),
        (["info", "warning"], "doubtful"),
        (["warning", "invalid"], "invalid"),
        (["invalid"], "invalid"),
    ],
)
def test_the_worst_severity_is_the_verdict(severities: list[str], validity: str) -> None:
    assert determine_validity(severities) == validity


@pytest.mark.parametrize(
    ("classification", "caveats"),
    [
        (Classification.STORAGE, ("clock", "lost", "too_short", "cache_suspect", "noisy", "all")),
        (Classification.CACHE, ("clock", "lost", "too_short", "noisy", "all")),
        (Classification.SHORT, ("clock", "lost", "cache_suspect", "noisy", "all")),
        (Classification.INVALID, ("lost", "too_short", "cache_suspect", "noisy", "all")),
        (Classification.FAILED, ()),
    ],
)
def test_findings_implied_by_classification_are_not_repeated(
    classification: Classification, caveats: tuple[str, ...]
) -> None:
    """The first reason of an invalid number is its classification; findings of level remark make no number invalid."""
    phase = make_phase()
    phase.findings += [REMARK, WRONG, WORSE, SHORT, CACHED, NOISY]
    run = run_with(phase)
    run.record.findings.append(OF_RUN)
    assert tuple(caveat.id for caveat in find_caveats(run, phase, classification)) == caveats
    assert determine_phase_validity(run, phase) == "invalid"


def make_finding_documents(*findings: Finding, **more: Any) -> list[dict[str, Any]]:
    return [{"id": finding.id, "severity": finding.severity, **more} for finding in findings]


def test_findings_of_a_stored_run_are_selected_the_same() -> None:
    every = make_finding_documents(REMARK, WRONG, SHORT, CACHED, NOISY)
    for classification, ids in (
        ("storage", ["clock", "too_short", "cache_suspect", "noisy"]),
        ("cache", ["clock", "too_short", "noisy"]),
        ("short", ["clock", "cache_suspect", "noisy"]),
        ("", ["clock", "too_short", "cache_suspect", "noisy"]),
    ):
        assert [caveat["id"] for caveat in select_caveats(every, classification)] == ids


def test_caveats_of_a_phase_include_findings_of_the_run() -> None:
    summary = {
        "findings": [
            *make_finding_documents(WRONG, phase="p"),
            *make_finding_documents(NOISY, phase=""),
            *make_finding_documents(SHORT),
            *make_finding_documents(WORSE, phase="q"),
            "?",
        ]
    }
    assert [caveat["id"] for caveat in select_phase_caveats(summary, "p", "storage")] == ["clock", "noisy", "too_short"]
    assert [caveat["id"] for caveat in select_phase_caveats(summary, "q", "short")] == ["noisy", "lost"]
    assert select_phase_caveats({}, "p", "storage") == []
    assert select_phase_caveats({"findings": None}, "p", "storage") == []


def test_caveat_is_its_text_or_id_up_to_600_characters() -> None:
    assert format_caveat(Finding(id="noisy", text=" others were busy. ")) == "others were busy"
    assert format_caveat(Finding(id="noisy")) == "noisy"
    assert format_caveat(Finding(text="x" * 600)) == "x" * 600
    assert format_caveat(Finding(text="x" * 601)) == "x" * 600 + "…"
