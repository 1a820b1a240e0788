# SPDX-License-Identifier: Apache-2.0
"""Every finding that the sources can make is explained on docs/concepts/findings.md, and the page has no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sonde.findings.explanations import explain_finding, list_help_commands, read_explanations

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("engine", "simulate", "lab/sonde")
SEVERITY = r'"(?:info|warning|invalid)"'
# An id beside its severity: as members of JSON or arguments of a function.
PATTERNS = (
    rf'"id"\s*[,:]\s*"([a-z0-9_]+)"[^;]{{0,160}}?"severity"\s*[,:]\s*{SEVERITY}',
    rf'\badd\(\s*"([a-z0-9_]+)",\s*[^;]{{0,80}}?{SEVERITY}',
    rf'\bmake_finding\(\s*circumstances,\s*"([a-z0-9_]+)",\s*{SEVERITY}',
    rf'\bFinding\([^;"]*"([a-z0-9_]+)",[^;"]*{SEVERITY}',
    r'^UNUSED_MEMBER_FINDING = "([a-z0-9_]+)"',
    r'else "(tool_)',  # f"tool_{level}"
)
# Levels of messages that lab/sonde/sources/tool_messages.py puts after "tool_".
TOOL_LEVELS = ("invalid", "error", "warning")


def find_ids() -> Iterator[str]:
    for folder in SOURCES:
        for path in sorted(file for ending in ("py", "cpp", "hpp") for file in (ROOT / folder).rglob(f"*.{ending}")):
            text = path.read_text(encoding="utf-8")
            for pattern in PATTERNS:
                yield from re.findall(pattern, text, re.MULTILINE)
    yield from (f"tool_{level}" for level in TOOL_LEVELS)


def test_every_finding_of_the_sources_is_explained() -> None:
    ids = {name for name in find_ids() if name != "tool_"}
    assert len(ids) > 35
    assert sorted(ids) == sorted(read_explanations())
    assert [name for name in ids if not 20 < len(explain_finding(name)) < 300] == []


def test_explanation_is_plain_text() -> None:
    assert explain_finding("clock") == (
        "Two clocks of one node disagree. Set SONDE_CLOCK=monotonic and report the machine."
    )
    assert explain_finding("another") == ""
    assert list_help_commands(["clock", "another", "clock", "droop"]) == "sonde help clock, sonde help droop"


def test_help_explains_a_finding(sonde: Any) -> None:
    output = sonde("help", "noisy_node").out
    assert "Other processes used cores that the tasks needed." in output
    assert "slow_node" not in output
