# SPDX-License-Identifier: Apache-2.0
"""Events in the log messages of a run become findings of that run."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

from sonde.logs.rule_engine import LogEvent
from sonde.logs.rule_files import compile_shipped_rules
from sonde.logs.scan import LogDefaults, replace_unprintable_characters, scan_logs
from sonde.model.units import format_count_with_noun

LOGGED_EVENT = "logged_event"
_MAX_FINDINGS = 20
_SEVERITY_ORDER = ("error", "warning", "info")


def find_logged_events(log_file: Path) -> list[dict[str, Any]]:
    """One finding for each event that the shipped rules see in the log, the most severe first, at most 20.

    Returns nothing when the file does not exist.
    """
    if not log_file.is_file():
        return []
    events, _ = scan_logs([log_file], compile_shipped_rules(), LogDefaults())
    events.sort(key=lambda event: (_SEVERITY_ORDER.index(event.severity), event.first))
    return [_make_finding(event) for event in events[:_MAX_FINDINGS]]


def _make_finding(event: LogEvent) -> dict[str, Any]:
    first, last = event.first.astimezone(UTC), event.last.astimezone(UTC)
    times = f"at {first:%H:%M:%S}" if first == last else f"from {first:%H:%M:%S} to {last:%H:%M:%S}"
    return {
        "id": LOGGED_EVENT,
        "severity": "info" if event.severity == "info" else "warning",
        "text": replace_unprintable_characters(
            f"{event.title}: {format_count_with_noun(event.count, 'log message')} {times} UTC"
        ),
        "advice": replace_unprintable_characters(f"The first message is: {event.line}"),
        "evidence": {"rule": event.rule, "kind": event.kind, "parts": ", ".join(event.parts), "messages": event.count},
    }
