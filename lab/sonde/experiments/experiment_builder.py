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


def experiment_from_plan(plan: Plan) -> dict[str, Any]:
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
    document: Mapping[str, Any],
    repeat: int | None = None,
    warmup: int | None = None,
    prepare: str | None = None,
    sweeps: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the experiment with the command-line options applied. Raises UserError for an invalid sweep."""
    changed = copy.deepcopy(dict(document))
    changed["repeat"] = _override_repeat(changed.get("repeat", {}), repeat, warmup)
    # Numbers of the command line override those of profiles.
    for name, members in changed.get("profiles", {}).items():
        changed["profiles"][name] = _override_profile(members, repeat, warmup)
    if prepare:
        treatment = {"kind": "command", "command": prepare, "when": "run", "need": "required"}
        changed["treatments"] = [*changed.get("treatments", []), treatment]
    if sweeps:
        changed["sweep"] = [*changed.get("sweep", []), *(read_sweep(sweep) for sweep in sweeps)]
    return changed


def _override_repeat(members: Mapping[str, Any], repeat: int | None, warmup: int | None) -> dict[str, Any]:
    """Returns the repeat members with the numbers of the command line."""
    overridden = dict(members)
    if repeat is not None:
        overridden = {name: value for name, value in overridden.items() if name not in ("max", "interval")} | {
            "min": repeat
        }
    return overridden if warmup is None else overridden | {"warmup": warmup}


def _override_profile(members: Mapping[str, Any], repeat: int | None, warmup: int | None) -> dict[str, Any]:
    """Returns a profile without the members that the command line replaces."""
    replaced_members = [
        *(("min", "max", "interval") if repeat is not None else ()),
        *(("warmup",) if warmup is not None else ()),
    ]
    kept_members = {
        path: value for path, value in members.items() if path not in [f"repeat.{name}" for name in replaced_members]
    }
    if isinstance(kept_members.get("repeat"), Mapping):
        kept_members["repeat"] = _override_repeat(kept_members["repeat"], repeat, warmup)
    return kept_members


def read_sweep(text: str) -> dict[str, Any]:
    """Parses ``data.access.transfer=4KiB,64KiB`` or ``tasks.threads=1..32*2``. Several paths, and their values, are
    joined by ``+``. Raises UserError."""
    path_text, equals, value_text = text.partition("=")
    paths = [item.strip() for item in path_text.split("+")]
    if not equals or not all(paths) or not value_text.strip():
        raise UserError(
            f'--sweep "{text}" is not PATH=VALUES; write it like --sweep data.access.transfer=4KiB,64KiB,1MiB or'
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
        values = [_parse_joined_values(item, len(paths), text) for item in value_text.split(",")]
    return {"paths": paths if len(paths) > 1 else paths[0], "values": values}


def _parse_joined_values(value_text: str, count: int, text: str) -> Any:
    if count == 1:
        return _parse_value(value_text)
    values = [_parse_value(part) for part in value_text.split("+")]
    if len(values) != count:
        raise UserError(
            f'--sweep "{text}" has {count} paths, so each of its values is {count} joined by "+"; "{value_text}" is'
            f" not."
        )
    return values


def _parse_value(value_text: str) -> Any:
    return parse_setting(f"value={value_text.strip()}")[1]
