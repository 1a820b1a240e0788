# SPDX-License-Identifier: Apache-2.0
"""Warnings and errors that a tool printed between its numbers: they stay with the numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_LINE = re.compile(r"^\W*(?:ior |mdtest )?(ERROR|WARNING|INVALID)\b\W*(.*)$", re.IGNORECASE)
_KEPT = 5


def findings_of(text: str) -> Sequence[Mapping[str, str]]:
    """The first few of them as findings."""
    found = []
    for line in text.splitlines():
        if match := _LINE.match(line.strip()):
            word = match[1].upper()
            invalid = "INVALID" in line
            name = "tool_invalid" if invalid else f"tool_{word.lower()}"
            severity = "invalid" if invalid else "warning" if word == "ERROR" else "info"
            found.append({"id": name, "severity": severity, "text": line.strip()})
    return found[:_KEPT]
