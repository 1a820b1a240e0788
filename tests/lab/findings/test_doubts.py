# SPDX-License-Identifier: Apache-2.0
"""What is left of the trust in a number, and which findings weigh on it beyond what its standing says."""

from __future__ import annotations

from typing import Any

import pytest
from made_phase import made, run_with

from sonde.findings.doubts import doubts_of, grave_findings, grave_of_phase, verdict_of, verdict_of_phase
from sonde.findings.standing import Standing
from sonde.model.lines import Finding

WRONG, WORSE = Finding(id="clock", severity="invalid"), Finding(id="lost", severity="invalid")
SHORT, CACHED = Finding(id="too_short", severity="warning"), Finding(id="cache_suspect", severity="warning")
REMARK, NOISY = Finding(id="note", severity="info"), Finding(id="noisy", severity="warning")
OF_RUN = Finding(id="all", severity="warning")


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [
        ([], "good"),
        (["info", "info"], "good"),
        (["info", "warning"], "doubtful"),
        (["warning", "invalid"], "invalid"),
        (["invalid"], "invalid"),
    ],
)
def test_the_worst_severity_is_the_verdict(severities: list[str], verdict: str) -> None:
    assert verdict_of(severities) == verdict


@pytest.mark.parametrize(
    ("standing", "doubts"),
    [
        (Standing.STORAGE, ("clock", "lost", "too_short", "cache_suspect", "noisy", "all")),
        (Standing.CACHE, ("clock", "lost", "too_short", "noisy", "all")),
        (Standing.SHORT, ("clock", "lost", "cache_suspect", "noisy", "all")),
        (Standing.INVALID, ("lost", "too_short", "cache_suspect", "noisy", "all")),
        (Standing.FAILED, ()),
    ],
)
def test_what_a_standing_says_already_is_no_doubt_beside_it(standing: Standing, doubts: tuple[str, ...]) -> None:
    """Of an invalid number the first reason is its standing; remarks weigh on none."""
    phase = made()
    phase.findings += [REMARK, WRONG, WORSE, SHORT, CACHED, NOISY]
    run = run_with(phase)
    run.record.findings.append(OF_RUN)
    assert tuple(one.id for one in doubts_of(run, phase, standing)) == doubts
    assert verdict_of_phase(run, phase) == "invalid"


def told(*findings: Finding, **more: Any) -> list[dict[str, Any]]:
    return [{"id": one.id, "severity": one.severity, **more} for one in findings]


def test_findings_of_a_run_that_is_kept_are_chosen_alike() -> None:
    every = told(REMARK, WRONG, SHORT, CACHED, NOISY)
    for standing, ids in (
        ("storage", ["clock", "too_short", "cache_suspect", "noisy"]),
        ("cache", ["clock", "too_short", "noisy"]),
        ("short", ["clock", "cache_suspect", "noisy"]),
        ("", ["clock", "too_short", "cache_suspect", "noisy"]),
    ):
        assert [one["id"] for one in grave_findings(every, standing)] == ids


def test_a_phase_has_its_own_findings_and_those_of_the_whole_run() -> None:
    kept = {"findings": [*told(WRONG, phase="p"), *told(NOISY, phase=""), *told(SHORT), *told(WORSE, phase="q"), "?"]}
    assert [one["id"] for one in grave_of_phase(kept, "p", "storage")] == ["clock", "noisy", "too_short"]
    assert [one["id"] for one in grave_of_phase(kept, "q", "short")] == ["noisy", "lost"]
    assert grave_of_phase({}, "p", "storage") == []
    assert grave_of_phase({"findings": None}, "p", "storage") == []
