# SPDX-License-Identifier: Apache-2.0
"""Events from the records themselves: the environment of the runs before a change differed from that of the runs after.

Only the latest change of each history is examined, with at most three runs on each side, so that a survey of hundreds
of histories reads some thousand records. A fact counts when it is the same in all runs of each side.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from sonde.model.event import Event, Interval
from sonde.model.plan_hash import hash_json
from sonde.store.shards import place_of
from sonde.trends.changes import Change
from sonde.trends.environment import read_environment
from sonde.trends.history import History
from sonde.trends.survey import Survey

_RUNS_A_SIDE = 3
_MOST_NAMES = 3  # in a title
# What was asked for, or which node took part, says nothing about an upgrade.
_IGNORED = ("host", "tasks", "processes", "threads", "nodes", "clock", "launch")
_IGNORED_BEGINNINGS = ("engine build", "engine compiler", "limits ", "cpu model", "memory ")


def find_environment_events(root: Path, survey: Survey) -> list[Event]:
    """Differences of the environment at the latest change of each history, in order of time; one event for each
    interval and difference. Runs without a readable record give none."""
    environments: dict[str, dict[str, str]] = {}

    def read(run: str) -> dict[str, str]:
        if run not in environments:
            sharded = place_of(root, run)
            environments[run] = read_environment(sharded if sharded.exists() else root / run)
        return environments[run]

    events: dict[str, Event] = {}
    for analysis in survey.analyses:
        for change in analysis.changes[-1:]:
            differences = _find_differences(analysis.history, change, read)
            if differences:
                event = _make_event(change, differences)
                events[event.id] = event
    return sorted(events.values(), key=lambda event: (event.when.first, event.id))


def _find_differences(
    history: History, change: Change, read: Callable[[str], dict[str, str]]
) -> dict[str, tuple[str, str]]:
    """The facts that are steady on each side of a change and differ between them: name -> before, after."""
    if not len(history.runs):
        return {}
    first = int(np.searchsorted(history.times, change.first_after))
    before, after = (
        [environment for run in runs if (environment := read(run))]
        for runs in (history.runs[max(0, first - _RUNS_A_SIDE) : first], history.runs[first : first + _RUNS_A_SIDE])
    )
    if not before or not after:
        return {}
    return {
        name: (value, after[0][name])
        for name, value in before[-1].items()
        if name in after[0]
        and value != after[0][name]
        and name not in _IGNORED
        and not name.startswith(_IGNORED_BEGINNINGS)
        and len({environment.get(name) for environment in before}) == 1
        and len({environment.get(name) for environment in after}) == 1
    }


def _make_event(change: Change, differences: dict[str, tuple[str, str]]) -> Event:
    times = (datetime.fromtimestamp(time, UTC) for time in (change.last_before, change.first_after))
    names = list(differences)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    digest = hash_json([change.last_before, change.first_after, differences])[:8]
    return Event(
        id=f"environment-{digest}",
        kind="change",
        title=f"The environment of the runs changed: {', '.join(names[:_MOST_NAMES])}{more}",
        when=Interval(*times),
        details="; ".join(f"{name}: {before} → {after}" for name, (before, after) in differences.items()),
        changes=dict(differences),
        source="records of the runs before and after",
        tags=("environment",),
    )
