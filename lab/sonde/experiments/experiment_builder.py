# SPDX-License-Identifier: Apache-2.0
"""Builds experiments from a plan and command-line options: repeats, sweeps, a command before each run."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sonde.model.errors import UserError
from sonde.model.experiment.description import EXPERIMENT_FORMAT
from sonde.model.plan import Plan
from sonde.model.settings import parse_setting

_RANGE_PATTERN = re.compile(r"([^.,*+]+)\.\.([^.,*+]+)([*+])([^.,*+]+)")


def build_experiment_from_plan(plan: Plan) -> dict[str, Any]:
    """Returns the experiment that runs a plan once, unchanged."""
    plan_document = copy.deepcopy(dict(plan.document))
    name, title = plan_document.pop("id"), plan_document.pop("title", "")
    plan_document.pop("schema", None)
    return {
        "schema": EXPERIMENT_FORMAT,
        "id": name,
        **({"title": title} if title else {}),
        "plan": plan_document,
        "repeat": {"min": 1},
    }


def apply_command_line(
    experiment_document: Mapping[str, Any],
    repeat_count: int | None = None,
    warmup_count: int | None = None,
    prepare_command: str | None = None,
    sweep_texts: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the experiment with the command-line options applied. Raises UserError for an invalid sweep."""
    changed = copy.deepcopy(dict(experiment_document))
    changed["repeat"] = _override_repeat(changed.get("repeat", {}), repeat_count, warmup_count)
    # Numbers of the command line override those of profiles.
    for name, members in changed.get("profiles", {}).items():
        changed["profiles"][name] = _override_profile(members, repeat_count, warmup_count)
    if prepare_command:
        treatment = {"kind": "command", "command": prepare_command, "when": "run", "need": "required"}
        changed["treatments"] = [*changed.get("treatments", []), treatment]
    if sweep_texts:
        changed["sweep"] = [*changed.get("sweep", []), *(parse_sweep(sweep) for sweep in sweep_texts)]
    return changed


def _override_repeat(
    repeat_table: Mapping[str, Any], repeat_count: int | None, warmup_count: int | None
) -> dict[str, Any]:
    """Returns the repeat members with the numbers of the command line."""
    overridden = dict(repeat_table)
    if repeat_count is not None:
        overridden = {name: value for name, value in overridden.items() if name not in ("max", "interval")} | {
            "min": repeat_count
        }
    return overridden if warmup_count is None else overridden | {"warmup": warmup_count}


def _override_profile(
    profile_table: Mapping[str, Any], repeat_count: int | None, warmup_count: int | None
) -> dict[str, Any]:
    """Returns a profile without the members that the command line replaces."""
    replaced_members = [
        *(("min", "max", "interval") if repeat_count is not None else ()),
        *(("warmup",) if warmup_count is not None else ()),
    ]
    kept_members = {
        path: value
        for path, value in profile_table.items()
        if path not in [f"repeat.{name}" for name in replaced_members]
    }
    if isinstance(kept_members.get("repeat"), Mapping):
        kept_members["repeat"] = _override_repeat(kept_members["repeat"], repeat_count, warmup_count)
    return kept_members


def parse_sweep(sweep_text: str) -> dict[str, Any]:
    """Parses ``data.access.transfer=4KiB,64KiB`` or ``tasks.threads=1..32*2``. Several paths, and their values, are
    joined by ``+``. Raises UserError."""
    path_text, equals, value_text = sweep_text.partition("=")
    paths = [item.strip() for item in path_text.split("+")]
    if not equals or not all(paths) or not value_text.strip():
        raise UserError(
            f'--sweep "{sweep_text}" is not PATH=VALUES; write it like --sweep data.access.transfer=4KiB,64KiB,1MiB or'
            f" --sweep tasks.threads=1..32*2."
        )
    range_match = _RANGE_PATTERN.fullmatch(value_text.strip())
    if range_match:
        step = "factor" if range_match[3] == "*" else "step"
        values: Any = {
            "from": _parse_value(range_match[1]),
            "to": _parse_value(range_match[2]),
            step: _parse_value(range_match[4]),
        }
    else:
        values = [_parse_joined_values(item, len(paths), sweep_text) for item in value_text.split(",")]
    return {"paths": paths if len(paths) > 1 else paths[0], "values": values}


def _parse_joined_values(value_text: str, path_count: int, sweep_text: str) -> Any:
    if path_count == 1:
        return _parse_value(value_text)
    values = [_parse_value(part) for part in value_text.split("+")]
    if len(values) != path_count:
        raise UserError(
            f'--sweep "{sweep_text}" has {path_count} paths, so each of its values is {path_count} joined by "+"; '
            f'"{value_text}" is'
            f" not."
        )
    return values


def _parse_value(value_text: str) -> Any:
    return parse_setting(f"value={value_text.strip()}")[1]
