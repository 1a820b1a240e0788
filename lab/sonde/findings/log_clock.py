# SPDX-License-Identifier: Apache-2.0
"""The offset of the clock of logs to that of a run, from events that both saw."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sonde.findings.run_marks import DROPPED_CACHES_MARK, TROUBLE_MARK, list_run_marks
from sonde.model.run import RecordedRun
from sonde.stats.clock_offset import ClockOffset, estimate_clock_offset

_DROP_RULE = "rule kernel-caches-dropped"
_TROUBLE_KINDS = ("failure", "incident", "failover", "rebuild")


def correct_event_times_to_run_clock(
    runs: Sequence[RecordedRun], event_documents: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], str]:
    """The events with their times on the clock of the runs, and a sentence on the offset.

    The ids stay, so that scanning the same log again adds no event twice.
    """
    logged: dict[str, list[float]] = {DROPPED_CACHES_MARK: [], TROUBLE_MARK: []}
    for document in event_documents:
        time = datetime.fromisoformat(document["when"].split("/")[0]).timestamp()
        if _DROP_RULE in document.get("source", ""):
            logged[DROPPED_CACHES_MARK].append(time)
        elif document["kind"] in _TROUBLE_KINDS:
            logged[TROUBLE_MARK].append(time)
    marks = [list_run_marks(run) for run in runs]
    run_marks = {kind: [time for entry in marks for time in entry.get(kind, [])] for kind in logged}
    offset = estimate_clock_offset(run_marks, logged)
    name = runs[0].folder.name if len(runs) == 1 else f"{len(runs)} runs"
    if offset is None:
        return list(event_documents), (
            f"The offset of the clock of the logs to that of {name} is unknown: they have fewer than three events in"
            " common, or several offsets fit. Times are those of the logs."
        )
    basis = f"{offset.matches} events in both, ±{offset.error_s:.0f} s"
    if abs(offset.offset_s) <= offset.error_s:
        return list(event_documents), f"The clocks of the logs and of {name} agree ({basis})."
    side = "ahead of" if offset.offset_s > 0 else "behind"
    sentence = (
        f"The clock of the logs is {abs(offset.offset_s):.0f} s {side} that of {name} ({basis});"
        " times of the events are corrected."
    )
    return [_shift_event_times(document, offset) for document in event_documents], sentence


def _shift_event_times(event_document: dict[str, Any], clock_offset: ClockOffset) -> dict[str, Any]:
    times = [
        f"{datetime.fromisoformat(text) - timedelta(seconds=clock_offset.offset_s):%Y-%m-%dT%H:%M:%SZ}"
        for text in event_document["when"].split("/")
    ]
    details = f"{event_document.get('details', '')} (clock corrected by {-clock_offset.offset_s:+.0f} s)".strip()
    return {**event_document, "when": "/".join(times), "details": details}
