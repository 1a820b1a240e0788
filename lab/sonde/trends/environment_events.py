# SPDX-License-Identifier: Apache-2.0
"""Events from the records themselves: the environment of the runs before a change differed from that of the runs after.

Only the latest change of each history is examined, with at most three runs on each side, so that a survey of hundreds
of histories reads some thousand records. A fact counts when it is the same in all runs of each side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sonde.model.event import Event, TimeInterval
from sonde.model.plan_hash import hash_json
from sonde.store.shards import locate_run_folder
from sonde.trends.changes import Change
from sonde.trends.environment import read_environment
from sonde.trends.history import History
from sonde.trends.result_cache import ResultCache, compute_digest
from sonde.trends.survey import Survey

_RUNS_PER_SIDE = 3
_MAX_LISTED_FACTS = 3  # in a title
# What was asked for, or which node took part, says nothing about an upgrade.
_IGNORED_FACTS = ("host", "tasks", "processes", "threads", "nodes", "clock", "launch")
_IGNORED_FACT_PREFIXES = ("engine build", "engine compiler", "limits ", "cpu model", "memory ")


def find_environment_events(archive_root: Path, survey: Survey, result_cache: ResultCache) -> tuple[Event, ...]:
    """Differences of the environment at the latest change of each history, in order of time; one event for each
    interval and difference. Runs without a readable record give none. `result_cache` has those of earlier surveys."""
    environments: dict[str, dict[str, str]] = {}

    def read_environment_once(run_id: str) -> dict[str, str]:
        if run_id not in environments:
            sharded = locate_run_folder(archive_root, run_id)
            environments[run_id] = read_environment(sharded if sharded.exists() else archive_root / run_id)
        return environments[run_id]

    events: dict[str, Event] = {}
    for analysis in survey.analyses:
        for change in analysis.changes[-1:]:
            differences = _find_environment_differences(analysis.history, change, read_environment_once, result_cache)
            if differences:
                event = _make_event(change.last_before, change.first_after, differences)
                events[event.id] = event
    return tuple(sorted(events.values(), key=lambda event: (event.when.first, event.id)))


def convert_event_to_json(event: Event) -> dict[str, Any]:
    """The event as JSON, for a cache of surveys."""
    changes = {name: list(pair) for name, pair in (event.changes or {}).items()}
    return {"last_before": event.when.first.timestamp(), "first_after": event.when.last.timestamp(), "changes": changes}


def convert_event_from_json(event_document: Mapping[str, Any]) -> Event:
    """Returns the event that `convert_event_to_json` wrote."""
    changes = {name: (str(before), str(after)) for name, (before, after) in event_document["changes"].items()}
    return _make_event(event_document["last_before"], event_document["first_after"], changes)


def _find_environment_differences(
    history: History, change: Change, read_environment: Callable[[str], dict[str, str]], result_cache: ResultCache
) -> dict[str, tuple[str, str]]:
    """The facts that are steady on each side of a change and differ between them: name -> before, after."""
    if not len(history.runs):
        return {}
    first = int(np.searchsorted(history.times, change.first_after))
    sides = (history.runs[max(0, first - _RUNS_PER_SIDE) : first], history.runs[first : first + _RUNS_PER_SIDE])
    return result_cache.get_or_compute(
        f"environment {compute_digest(json.dumps([list(map(str, side)) for side in sides]))}",
        lambda: _compare_steady_facts(
            *([environment for run in side if (environment := read_environment(run))] for side in sides)
        ),
        lambda stored: {name: (str(before), str(after)) for name, (before, after) in stored.items()},
        lambda differences: {name: list(pair) for name, pair in differences.items()},
    )


def _compare_steady_facts(
    environments_before: list[dict[str, str]], environments_after: list[dict[str, str]]
) -> dict[str, tuple[str, str]]:
    if not environments_before or not environments_after:
        return {}
    return {
        name: (value, environments_after[0][name])
        for name, value in environments_before[-1].items()
        if name in environments_after[0]
        and value != environments_after[0][name]
        and name not in _IGNORED_FACTS
        and not name.startswith(_IGNORED_FACT_PREFIXES)
        and len({environment.get(name) for environment in environments_before}) == 1
        and len({environment.get(name) for environment in environments_after}) == 1
    }


def _make_event(last_time_before: float, first_time_after: float, differences: dict[str, tuple[str, str]]) -> Event:
    last_time_before, first_time_after = (
        round(last_time_before, 3),
        round(first_time_after, 3),
    )  # the id survives JSON and datetime
    times = (datetime.fromtimestamp(time, UTC) for time in (last_time_before, first_time_after))
    names = list(differences)
    more = f" and {len(names) - _MAX_LISTED_FACTS} more" if len(names) > _MAX_LISTED_FACTS else ""
    name = hash_json([last_time_before, first_time_after, differences])[:8]
    return Event(
        id=f"environment-{name}",
        kind="change",
        title=f"The environment of the runs changed: {', '.join(names[:_MAX_LISTED_FACTS])}{more}",
        when=TimeInterval(*times),
        details="; ".join(f"{name}: {before} → {after}" for name, (before, after) in differences.items()),
        changes=dict(differences),
        source="records of the runs before and after",
        tags=("environment",),
    )
