# SPDX-License-Identifier: Apache-2.0
"""Describes what the runs of an experiment executed: a title names what the source document had, not what ran here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sonde.experiments.results import Results
from sonde.model.errors import RecordError
from sonde.model.settings import parse_setting
from sonde.model.units import format_count_with_noun
from sonde.store.summary import Summary, read_summary

# Profiles that only test that an experiment runs: they move too little data for a statement on storage.
SMOKE_TEST_PROFILES = ("ci",)
# Axes whose values name different storage.
_STORAGE_AXES = ("file_system", "mount", "pool", "oss", "target")
_MAX_LISTED_DIRECTORIES = 2
_MAX_LISTED_CHANGES = 8


def is_smoke_test(results: Results) -> bool:
    """Whether the profile is too small for a statement on storage."""
    return results.profile in SMOKE_TEST_PROFILES


def describe_smoke_test(results: Results) -> str:
    """The label of a smoke test in one sentence; empty for other profiles."""
    if not is_smoke_test(results):
        return ""
    return f"Smoke test (profile {results.profile}): it shows that the experiment runs, not how fast the storage is."


def describe_profile_changes(results: Results) -> str:
    """One sentence on the members that profile and settings change in the experiment that the titles describe; empty
    without changes. A member of the profile that a setting changes again is named with the value of the setting.

    Equal members of several plans are listed once: ``data.backend = posix (2 plans)``.
    """
    settings = {".".join(steps): value for steps, value in map(parse_setting, results.settings)}
    profile = (results.experiment.file.profiles or {}).get(results.profile, {})
    parts = [
        f"{origin} sets {_list_changes(changes)}"
        for origin, changes in (
            (f"profile {results.profile}", {path: value for path, value in profile.items() if path not in settings}),
            ("--set", settings),
        )
        if changes
    ]
    return f"Titles describe the whole experiment; {'; '.join(parts)}." if parts else ""


def _list_changes(value_by_path: Mapping[str, Any]) -> str:
    plans_by_change: dict[str, int] = {}
    for path, value in value_by_path.items():
        steps = path.split(".")
        member = ".".join(steps[2:]) if steps[0] == "plans" and len(steps) > 2 else path
        change = f"{member} = {_format_setting(value)}"
        plans_by_change[change] = plans_by_change.get(change, 0) + (member != path)
    changes = [f"{change} ({count} plans)" if count > 1 else change for change, count in plans_by_change.items()]
    more = f" and {len(changes) - _MAX_LISTED_CHANGES} more members" if len(changes) > _MAX_LISTED_CHANGES else ""
    return f"{', '.join(changes[:_MAX_LISTED_CHANGES])}{more}"


def _format_setting(setting_value: Any) -> str:
    return setting_value if isinstance(setting_value, str) else json.dumps(setting_value, ensure_ascii=False)


def describe_executed_runs(results: Results) -> str:
    """One sentence: tasks, nodes, backends, file systems and directories of the measured runs; empty without runs."""
    runs = [run for item in results.runs if not item.warm_up and (run := _read_summary(item.folder)) is not None]
    if not runs:
        return ""
    parts = [f"{_format_range(run.tasks for run in runs)} on {_format_range((run.nodes for run in runs), 'node')}"]
    backends = _list_distinct(row.get("backend") for run in runs for row in run.phases if row.get("measured", True))
    if backends:
        parts.append(" and ".join(backends))
    file_systems = " and ".join(_list_distinct(run.file_system for run in runs)) or "an unknown file system"
    directories = _list_run_directories(results, runs)
    more = (
        f" and {len(directories) - _MAX_LISTED_DIRECTORIES} more" if len(directories) > _MAX_LISTED_DIRECTORIES else ""
    )
    parts.append(
        f"{file_systems} in {', '.join(directories[:_MAX_LISTED_DIRECTORIES])}{more}" if directories else file_systems
    )
    verb = "Simulated" if results.simulated else "Ran"
    return f"{verb}: {', '.join(parts)}."


def _list_run_directories(results: Results, runs: Sequence[Summary]) -> Sequence[str]:
    """The directories of the runs. Those of simulated runs are paths on the machine that is modeled."""
    prepared = [] if results.simulated else _list_distinct(results.directories.values())
    return prepared or _list_distinct(run.target for run in runs)


def describe_shared_directories(results: Results) -> list[str]:
    """One sentence for each axis whose values name different storage but were measured in the same directory."""
    if results.simulated:
        return []
    cells = {cell.id: cell for cell in results.experiment.cells}
    sentences = []
    for axis in _STORAGE_AXES:
        directories: dict[str, set[str]] = {}
        for cell, directory in results.directories.items():
            if cell in cells and axis in cells[cell].coordinates:
                directories.setdefault(str(cells[cell].coordinates[axis]), set()).add(directory)
        values_by_directory: dict[frozenset[str], list[str]] = {}
        for value, names in directories.items():
            values_by_directory.setdefault(frozenset(names), []).append(value)
        sentences += [
            f"{axis} {' and '.join(values)} are the same directory, {', '.join(sorted(names))}: their numbers do not"
            " compare storage."
            for names, values in values_by_directory.items()
            if len(values) > 1
        ]
    return sentences


def _read_summary(run_folder: Any) -> Summary | None:
    try:
        return read_summary(run_folder)
    except RecordError:
        return None


def _format_range(counts_of_runs: Iterable[int | None], noun: str = "task") -> str:
    positive = [count for count in counts_of_runs if count]
    if not positive:
        return f"an unknown number of {noun}s"
    low, high = min(positive), max(positive)
    return format_count_with_noun(low, noun) if low == high else f"{low:,} to {format_count_with_noun(high, noun)}"


def _list_distinct(values: Iterable[Any]) -> Sequence[str]:
    return list(dict.fromkeys(str(name) for name in values if name))
