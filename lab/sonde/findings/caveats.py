# SPDX-License-Identifier: Apache-2.0
"""Caveats of a number, from the engine's findings, and its validity: good, doubtful or invalid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sonde.findings.classification import Classification, is_unfinished
from sonde.findings.read_source import find_cache_and_device_contradiction
from sonde.model.escaping import escape_line
from sonde.model.lines import Finding
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun

GOOD_VALIDITY, DOUBTFUL_VALIDITY, INVALID_VALIDITY = "good", "doubtful", "invalid"
# Findings that the classification already states are not repeated as caveats.
_IMPLIED_FINDINGS = {Classification.CACHE: "cache_suspect", Classification.SHORT: "too_short"}
_FINDING_LABELS = {
    "noisy_node": "other load on the node",
    "imbalance": "uneven tasks",
    "clock": "uncertain clock",
    "coverage": "incomplete coverage",
    "droop": "falling rate",
    "cache_suspect": "possibly cached",
    "cache_unknown": "unknown cache state",
    "setting_not_used": "settings not used",
}


def determine_validity(caveat_severities: Iterable[str]) -> str:
    """`invalid` or `doubtful` (a warning) by the worst severity; `good` without either."""
    present = set(caveat_severities)
    return INVALID_VALIDITY if "invalid" in present else DOUBTFUL_VALIDITY if "warning" in present else GOOD_VALIDITY


def determine_phase_validity(run: RecordedRun, phase: PhaseRecord) -> str:
    """The validity of a phase, from its findings and those of the whole run; an unfinished phase is invalid."""
    if is_unfinished(phase):
        return INVALID_VALIDITY
    return determine_validity(finding.severity for finding in _collect_findings(run, phase))


def find_caveats(run: RecordedRun, phase: PhaseRecord, classification: Classification) -> tuple[Finding, ...]:
    """Warnings and invalidating findings of the phase and of the run that its classification does not imply."""
    if classification is Classification.FAILED:
        return ()
    severe = [finding for finding in _collect_findings(run, phase) if _is_severe(finding.severity)]
    if classification is Classification.INVALID:
        implied = next((finding for finding in phase.findings if finding.severity == "invalid"), None)
        return tuple(finding for finding in severe if finding is not implied)
    return tuple(finding for finding in severe if finding.id != _IMPLIED_FINDINGS.get(classification))


def _collect_findings(run: RecordedRun, phase: PhaseRecord) -> tuple[Finding, ...]:
    """The findings of the engine on the phase and on the run, and what the lab finds in the telemetry of the phase."""
    disagreement = find_cache_and_device_contradiction(run, phase)
    return (*phase.findings, *((disagreement,) if disagreement else ()), *run.findings)


def select_caveats(findings: Iterable[Mapping[str, Any]], classification: str) -> list[Mapping[str, Any]]:
    """Selects caveats from findings as run.json stores them. `classification` is a value of Classification, "" if
    unknown."""
    implied = next((name for key, name in _IMPLIED_FINDINGS.items() if key.value == classification), None)
    return [finding for finding in findings if _is_severe(finding.get("severity")) and finding.get("id") != implied]


def get_stored_classification(phase_row: Mapping[str, Any]) -> str:
    """The classification of a phase of a run.json that implies findings: within its model for a simulated number."""
    return str(phase_row.get("modeled_classification") or phase_row.get("classification") or "")


def select_phase_caveats(
    run_document: Mapping[str, Any], phase_id: str, classification: str
) -> list[Mapping[str, Any]]:
    """Caveats of one phase in a run.json, those of the whole run included."""
    findings = [finding for finding in run_document.get("findings") or () if isinstance(finding, Mapping)]
    return select_caveats(
        (finding for finding in findings if finding.get("phase") in (phase_id, "", None)), classification
    )


def label_finding(finding_id: str) -> str:
    """A few words for the id of a finding, for lists and tables."""
    return _FINDING_LABELS.get(finding_id, finding_id.replace("_", " "))


def format_caveat(caveat: Finding) -> str:
    """A caveat as a clause without a final period."""
    return escape_line(caveat.text or caveat.id, 600).strip().rstrip(".")


def convert_caveat_to_json(caveat: Finding) -> dict[str, str]:
    """The JSON form of a caveat, without empty members."""
    return {name: getattr(caveat, name) for name in ("id", "severity", "text", "advice") if getattr(caveat, name)}


def _is_severe(severity: Any) -> bool:
    return severity in ("invalid", "warning")
