# SPDX-License-Identifier: Apache-2.0
"""Differences between the environments of two runs: kernel, mount options, tunables, library versions, the program
itself.

Taken from the head of the records, whatever members they have: what a later engine writes about the machine is compared
without a change here. Facts that always change (load, free space, clocks, ids) are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.model.confined_files import open_file, read_json_file
from sonde.model.documents import read_bounded_lines
from sonde.store.archive import RECORD
from sonde.store.summary import PLAN_FILE, SUMMARY_FILE, Summary

_RUN_FACTS = ("engine", "launch", "tasks", "processes", "threads", "nodes", "clock")
# Members that differ between any two runs, by name or by ending.
_VOLATILE_FACTS = ("clock_offset_ns", "clock_error_ns", "load_1m", "node", "t", "type", "inodes_free", "inodes_total")
_VOLATILE_FACT_ENDINGS = ("available_bytes", "free_bytes")
_IGNORED_PLAN_MEMBERS = ("schema", "id", "title", "target.path")
_MAX_COMPARED_RUNS = 20  # runs of a side that are looked at


@dataclass(frozen=True)
class EnvironmentDifference:
    """A member that had the values `before` on one side and `after` on the other ("" where it was not recorded).

    `steady` is False when it also changed within a side: then it explains little.
    """

    name: str
    before: str
    after: str
    steady: bool = True


def read_environment(run_folder: Path) -> dict[str, str]:
    """Facts of the record about program and nodes, as a flat mapping: ``file system options`` -> ``rw,relatime``.

    Nodes of one run that differ give all their values. An unreadable record says nothing.
    """
    result: dict[str, set[str]] = {}
    for line in _read_record_head(run_folder / RECORD):
        chosen = {name: line[name] for name in _RUN_FACTS if name in line} if line["type"] == "run" else line
        for name, value in _flatten_facts(chosen):
            result.setdefault(name, set()).add(value)
    modules = (read_json_file(run_folder / SUMMARY_FILE) or {}).get("modules")
    if isinstance(modules, list) and modules:
        result["modules"] = {", ".join(str(name) for name in modules)}
    return {name: ", ".join(sorted(values)) for name, values in result.items()}


def _read_record_head(record_file: Path) -> Iterator[Mapping[str, Any]]:
    """The lines about the run and its machines, which come before the first phase."""
    try:
        with open_file(record_file) as file:
            for text in read_bounded_lines(file):
                if not text.strip():
                    continue
                try:
                    line = json.loads(text.decode("utf-8", "replace"))
                except (ValueError, RecursionError):
                    continue
                kind = line.get("type") if isinstance(line, dict) else None
                if kind == "phase_begin":
                    return
                if kind in ("run", "node"):
                    yield line
    except OSError:
        return


def _flatten_facts(nested_facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, item in nested_facts.items():
        if name in _VOLATILE_FACTS or name.endswith(_VOLATILE_FACT_ENDINGS):
            continue
        text = f"{prefix} {name.replace('_', ' ')}".strip()
        if isinstance(item, Mapping):
            yield from _flatten_facts(item, text)
        elif item is not None:
            yield text, item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def compare_environments(runs_before: Sequence[Summary], runs_after: Sequence[Summary]) -> list[EnvironmentDifference]:
    """Differences between the latest runs of two sides; facts that are steady within both sides come first."""
    old, new = (
        [read_environment(run.folder) for run in side[-_MAX_COMPARED_RUNS:]] for side in (runs_before, runs_after)
    )
    if not old or not new:
        return []
    names = dict.fromkeys(name for facts in (old[-1], new[-1]) for name in facts)
    differences = [
        EnvironmentDifference(
            name,
            old[-1].get(name, ""),
            new[-1].get(name, ""),
            _is_fact_steady(name, old) and _is_fact_steady(name, new),
        )
        for name in names
        if old[-1].get(name) != new[-1].get(name)
    ]
    return sorted(differences, key=lambda difference: not difference.steady)


def list_plan_differences(folder_before: Path, folder_after: Path) -> list[tuple[str, str, str]]:
    """Members in which the plans of two runs differ: ``data.io.direct``, before, after ("not set" where absent).

    Members that only identify a run or a directory (id, title, target.path) are ignored. Empty when a plan cannot be
    read.
    """
    both = [_read_plan_members(folder / PLAN_FILE) for folder in (folder_before, folder_after)]
    if not all(both):
        return []
    old, new = both
    names = [name for name in dict.fromkeys([*old, *new]) if name not in _IGNORED_PLAN_MEMBERS]
    return [
        (name, old.get(name, "not set"), new.get(name, "not set")) for name in names if old.get(name) != new.get(name)
    ]


def _read_plan_members(plan_file: Path) -> dict[str, str]:
    return dict(_make_dotted_names(read_json_file(plan_file) or {}))


def _make_dotted_names(nested_facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, item in nested_facts.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(item, Mapping):
            yield from _make_dotted_names(item, path)
        elif isinstance(item, list) and all(isinstance(part, Mapping) and "id" in part for part in item) and item:
            for part in item:
                yield from _make_dotted_names(
                    {key: inner for key, inner in part.items() if key != "id"}, f"{path}.{part['id']}"
                )
        else:
            yield path, item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def _is_fact_steady(fact_name: str, environments_of_side: Sequence[Mapping[str, str]]) -> bool:
    return len({facts.get(fact_name) for facts in environments_of_side}) == 1
