# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the gate in the formats of CI services: JUnit XML, GitHub workflow commands, GitLab Code Quality."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree  # nosec B405: writes XML, parses none

from sonde.model.escaping import escape_line
from sonde.model.units import format_count_with_noun
from sonde.terminal.encoding import encode_json
from sonde.trends.baseline_gate import GateCheck
from sonde.trends.comparison_text import format_change_percent, format_history_rate, format_number_name
from sonde.trends.stated_limits import LimitCheck


@dataclass(frozen=True)
class GateCase:
    """The verdict of the gate on one number. `id` is unique among the cases of a run and the same in every run."""

    id: str
    name: str
    plan: str
    verdict: Literal["good", "too slow", "not judged"]
    sentence: str


def describe_baseline_checks(checks: Sequence[GateCheck]) -> list[GateCase]:
    """Returns one case for each history that run and baseline have in common."""
    keys = [check.key for check in checks]
    cases = []
    for check in checks:
        unit = check.key.unit
        name = f"{format_number_name(check.key, check.plan, keys)} ({check.key.op}, {unit})"
        measured = ", ".join(format_history_rate(value, unit) for value in check.measured)
        sentence = (
            f"{name}: measured {measured}; the limit is {format_history_rate(check.limit, unit)}, the median of the "
            "baseline"
            f" {format_history_rate(check.usual, unit)}, the change {format_change_percent(check.relative_change)}."
        )
        cases.append(_build_gate_case(check.key.id, name, check.plan, check, sentence))
    return cases


def describe_limit_checks(checks: Sequence[LimitCheck], plan_name: str) -> list[GateCase]:
    """Returns one case for each stated limit of a run of `plan_name`."""
    cases = []
    for check in checks:
        name = f"{check.phase} ({'ops_per_s' if check.operations else 'bytes_per_s'})"
        measured = ", ".join(check.format_rate(value) for value in check.measured)
        sentence = f"{name}: measured {measured}; the limit is {check.format_rate(check.least)}."
        cases.append(_build_gate_case(f"limit {name}", name, plan_name, check, sentence))
    return cases


def _build_gate_case(
    case_id: str, number_name: str, plan_name: str, check: GateCheck | LimitCheck, check_sentence: str
) -> GateCase:
    if check.not_judged:
        return GateCase(
            case_id, number_name, plan_name, "not judged", f"{number_name}: not judged, {check.not_judged}."
        )
    return GateCase(case_id, number_name, plan_name, "too slow" if check.is_too_slow else "good", check_sentence)


def format_junit_document(gate_cases: Sequence[GateCase], reference_name: str, caveats: Sequence[str] = ()) -> str:
    """Returns a JUnit XML document: numbers that are too slow are failures, numbers not judged are skipped."""
    counts = {
        "tests": str(len(gate_cases)),
        "failures": str(sum(case.verdict == "too slow" for case in gate_cases)),
        "errors": "0",
    }
    root = ElementTree.Element("testsuites", counts)  # Jenkins' schema has no `skipped` here
    skipped = str(sum(case.verdict == "not judged" for case in gate_cases))
    names = {"name": escape_line(f"sonde gate: {reference_name}")}
    suite = ElementTree.SubElement(root, "testsuite", {**names, **counts, "skipped": skipped})
    for case in gate_cases:
        names = {"classname": escape_line(case.plan or "sonde"), "name": escape_line(case.name)}
        element = ElementTree.SubElement(suite, "testcase", names)
        text = escape_line(case.sentence)
        if case.verdict == "too slow":
            ElementTree.SubElement(element, "failure", {"type": "too slow", "message": text}).text = text
        elif case.verdict == "not judged":
            ElementTree.SubElement(element, "skipped", {"message": text})
        else:
            ElementTree.SubElement(element, "system-out").text = text
    if caveats:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(f"Doubtful {escape_line(c)}" for c in caveats)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def format_github_commands(gate_cases: Sequence[GateCase], caveats: Sequence[str] = ()) -> str:
    """Returns a GitHub workflow command a line: errors for numbers that are too slow, warnings for numbers that are
    not judged and for caveats, nothing for good numbers."""
    lines = []
    for case in gate_cases:
        if case.verdict != "good":
            command, title = ("error", "Too slow") if case.verdict == "too slow" else ("warning", "Not judged")
            lines.append(f"::{command} title={title}::{_escape_github_message(case.sentence)}")
    lines += [f"::warning title=Doubtful::{_escape_github_message(caveat)}" for caveat in caveats]
    return "\n".join(lines)


def _escape_github_message(message: str) -> str:
    """Returns the message of a workflow command: a percent sign begins an escape there."""
    return escape_line(message).replace("%", "%25")


def format_gitlab_report(gate_cases: Sequence[GateCase], caveats: Sequence[str] = ()) -> str:
    """Returns a GitLab Code Quality report, in which the plan is the file. Caveats follow each issue's description."""
    return encode_json([_build_gitlab_issue(case, caveats) for case in gate_cases if case.verdict != "good"])


def _build_gitlab_issue(gate_case: GateCase, caveats: Sequence[str]) -> Mapping[str, Any]:
    doubt = f" ({format_count_with_noun(len(caveats), 'caveat')}: {' '.join(caveats)})" if caveats else ""
    # GitLab matches issues of two pipelines by fingerprint, so the measured values are not part of it.
    identity = f"{gate_case.id}\n{gate_case.verdict}".encode("utf-8", "surrogateescape")
    return {
        "description": escape_line(f"{gate_case.sentence}{doubt}"),
        "check_name": f"sonde-gate/{gate_case.verdict.replace(' ', '-')}",
        "fingerprint": hashlib.sha256(identity).hexdigest(),
        "severity": "major" if gate_case.verdict == "too slow" else "info",
        "location": {"path": escape_line(gate_case.plan or "sonde"), "lines": {"begin": 1}},
    }


# Formats of `sonde gate --annotate`, by the service that reads them.
ANNOTATION_FORMATTERS: Mapping[str, Callable[[Sequence[GateCase], Sequence[str]], str]] = {
    "github": format_github_commands,
    "gitlab": format_gitlab_report,
}
