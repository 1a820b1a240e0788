# SPDX-License-Identifier: Apache-2.0
"""Warnings and errors that a tool printed with its results, imported as findings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_MESSAGE_LINE_PATTERN = re.compile(r"^\W*(?:ior |mdtest )?(ERROR|WARNING|INVALID)\b\W*(.*)$", re.IGNORECASE)
_MAX_FINDINGS = 5


def find_tool_messages(result_text: str) -> Sequence[Mapping[str, str]]:
    """Returns the first few warnings and errors as findings."""
    findings = []
    for line in result_text.splitlines():
        if match := _MESSAGE_LINE_PATTERN.match(line.strip()):
            level = match[1].upper()
            invalid = "INVALID" in line
            name = "tool_invalid" if invalid else f"tool_{level.lower()}"
            severity = "invalid" if invalid else "warning" if level == "ERROR" else "info"
            findings.append({"id": name, "severity": severity, "text": line.strip()})
    return findings[:_MAX_FINDINGS]
