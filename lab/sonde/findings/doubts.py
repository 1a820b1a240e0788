# SPDX-License-Identifier: Apache-2.0
"""What the engine found wrong with a number, and what is left of the trust in it: good, doubtful or invalid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sonde.findings.standing import Standing
from sonde.model.lines import Finding
from sonde.model.record import PhaseRecord
from sonde.model.run import Run

GOOD, DOUBTFUL, INVALID = "good", "doubtful", "invalid"
# What a standing says already need not be said again as a doubt.
_SAID = {Standing.CACHE: "cache_suspect", Standing.SHORT: "too_short"}


def verdict_of(severities: Iterable[str]) -> str:
    """The worst of them in one word: `good` (nothing, or remarks only), `doubtful` (a warning) or `invalid`."""
    seen = set(severities)
    return INVALID if "invalid" in seen else DOUBTFUL if "warning" in seen else GOOD


def verdict_of_phase(run: Run, phase: PhaseRecord) -> str:
    """The verdict on a phase: what was found about it, and about the whole run."""
    return verdict_of(one.severity for one in (*phase.findings, *run.record.findings))


def doubts_of(run: Run, phase: PhaseRecord, standing: Standing) -> tuple[Finding, ...]:
    """Findings, of the phase or of the whole run, that weigh on the number beyond what its standing says."""
    if standing is Standing.FAILED:
        return ()
    grave = [one for one in (*phase.findings, *run.record.findings) if one.severity in ("invalid", "warning")]
    if standing is Standing.INVALID:
        told = next((one for one in phase.findings if one.severity == "invalid"), None)
        return tuple(one for one in grave if one is not told)
    return tuple(one for one in grave if one.id != _SAID.get(standing))


def grave_findings(findings: Iterable[Mapping[str, Any]], standing: str) -> list[Mapping[str, Any]]:
    """The same of findings as run.json keeps them, for a number with the standing of that name ("" when unknown)."""
    said = next((known for one, known in _SAID.items() if one.value == standing), None)
    return [one for one in findings if one.get("severity") in ("invalid", "warning") and one.get("id") != said]


def grave_of_phase(kept: Mapping[str, Any], phase: str, standing: str) -> list[Mapping[str, Any]]:
    """Those of one phase, and of the run as a whole, in a run.json."""
    findings = [one for one in kept.get("findings") or () if isinstance(one, Mapping)]
    return grave_findings((one for one in findings if one.get("phase") in (phase, "", None)), standing)
