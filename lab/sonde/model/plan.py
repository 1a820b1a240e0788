# SPDX-License-Identifier: Apache-2.0
"""A plan: what one run does. Read from TOML or JSON, changed by settings, checked against the schema.

The document stays as it was written (sizes as text), because that is what the engine reads and what a person wants to
find in the archive. ``resolved()`` gives it with every default filled in.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.model import resolve
from sonde.model.errors import PlanError
from sonde.model.explain import place, problems
from sonde.model.file_text import text_of
from sonde.model.schemas import plan_schema
from sonde.model.settings import apply_settings
from sonde.model.units import parse_bytes, parse_duration

SCHEMA = "sonde-plan/1"
_LARGEST_PLAN_FILE = 16 << 20


@dataclass(frozen=True)
class Plan:
    """A checked plan. Make one with `from_document` or `read`; change it by making another."""

    document: Mapping[str, Any]
    origin: str  # where it came from, for messages

    @classmethod
    def from_document(cls, document: Mapping[str, Any], origin: str, settings: Iterable[str] = ()) -> Plan:
        """Checks `document` after `settings`. Raises PlanError with one sentence."""
        changed = copy.deepcopy(dict(document))
        apply_settings(changed, settings)
        changed.setdefault("schema", SCHEMA)
        changed.setdefault("id", _id_from(origin))
        found = problems(plan_schema(), changed) or _contradictions(changed)
        if found:
            more = f" ({len(found) - 1} more after that.)" if len(found) > 1 else ""
            raise PlanError(f"{origin}: {found[0]}{more}")
        return cls(changed, origin)

    @classmethod
    def read(cls, source: str, settings: Iterable[str] = ()) -> Plan:
        """Reads a file (``-`` is standard input) and checks it."""
        return cls.from_document(read_document(source), "standard input" if source == "-" else source, settings)

    def with_settings(self, settings: Iterable[str]) -> Plan:
        """The same plan with some members changed."""
        return Plan.from_document(self.document, self.origin, settings)

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def title(self) -> str:
        return str(self.document.get("title", self.id))

    @property
    def target(self) -> Path:
        return Path(self.document["target"]["path"])

    @property
    def phases(self) -> Sequence[Mapping[str, Any]]:
        phases: Sequence[Mapping[str, Any]] = self.document["phases"]
        return phases

    @property
    def processes(self) -> int:
        return int(self.document.get("tasks", {}).get("processes", 1))

    @property
    def threads(self) -> int:
        return int(self.document.get("tasks", {}).get("threads", 1))

    @property
    def stages(self) -> int:
        """Engine processes that run one after the other: a new one starts at each phase with process = separate."""
        return 1 + sum(1 for phase in self.phases[1:] if phase.get("process") == "separate")

    @property
    def time_limit_s(self) -> float | None:
        """After which the run ends itself (limits.time)."""
        limit = self.document.get("limits", {}).get("time")
        return None if limit is None else parse_duration(limit)

    def data_of(self, phase: Mapping[str, Any]) -> dict[str, Any]:
        """The plan's `data` with this phase's own members laid over it and every default filled in."""
        return resolve.data_of(self.document, phase)

    def on_tree(self, phase: Mapping[str, Any]) -> bool:
        """True when the phase works on the names of a tree (`meta`), not on data."""
        return resolve.on_tree(self.document, phase)

    def meta_of(self, phase: Mapping[str, Any]) -> dict[str, Any]:
        """The plan's `meta` with this phase's own members laid over it and every default filled in."""
        return resolve.meta_of(self.document, phase)

    def resolved(self) -> dict[str, Any]:
        """The document with every default filled in; still a valid plan, and the same plan."""
        return resolve.resolved(self.document)

    def to_json(self) -> str:
        """The text that the engine reads."""
        return json.dumps(self.document, indent=2, ensure_ascii=False) + "\n"


def read_document(source: str) -> dict[str, Any]:
    """The tree in a TOML or JSON file, unchecked. The suffix decides; standard input and others are tried as both."""
    file = Path(source)
    text = sys.stdin.read() if source == "-" else text_of(file, "plan file", _LARGEST_PLAN_FILE, PlanError, True)
    name = "standard input" if source == "-" else source
    suffix = file.suffix.lower()
    as_json = suffix == ".json" or (suffix != ".toml" and text.lstrip().startswith("{"))
    document = _from_json(text, name) if as_json else _from_toml(text, name)
    if not isinstance(document, dict):
        raise PlanError(f"{name}: a plan is a table of members, not {type(document).__name__}.")
    return document


def _from_toml(text: str, name: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        raise PlanError(f"{name} is not valid TOML: {reason}.") from None


def _from_json(text: str, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except json.JSONDecodeError as reason:
        where = f"line {reason.lineno}, column {reason.colno}"
        raise PlanError(f"{name} is not valid JSON: {reason.msg} (at {where}).") from None
    except RecursionError:
        raise PlanError(f"{name} is nested too deeply to be a plan.") from None
    except PlanError as reason:
        raise PlanError(f"{name}: {reason}") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [key for key, _ in pairs]
    twice = next((key for key in names if names.count(key) > 1), None)
    if twice is not None:
        raise PlanError(f'the member "{twice}" appears twice in one table; keep one of them.')
    return dict(pairs)


def _no_constants(name: str) -> Any:
    raise PlanError(f"{name} is not a number that a plan can hold.")


def _id_from(origin: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(origin).stem).strip("-") or "plan"


def _contradictions(document: Mapping[str, Any]) -> list[str]:
    """What no schema can say but everything here relies on. The engine checks the rest."""
    found: list[str] = []
    seen: dict[str, int] = {}
    for position, phase in enumerate(document["phases"]):
        name = phase["id"]
        if name in seen:
            found.append(f'phases.{seen[name]} and phases.{position} have the same id "{name}"; ids must differ.')
        seen[name] = position
        found += _wrong_geometry(document.get("data", {}), phase, place(["phases", position], document))
    return found


def _wrong_geometry(data: Mapping[str, Any], phase: Mapping[str, Any], where: str) -> list[str]:
    for layer, name in ((data, "data"), (phase, where)):
        if {"segments", "volume"} <= layer.get("access", {}).keys():
            return [f"{name}.access has both segments and volume; give exactly one of them."]
    access = resolve.data_of({"data": data}, phase)["access"]
    transfer, block = parse_bytes(access["transfer"]), parse_bytes(access["block"])
    if transfer == 0:
        return [f"{where}: access.transfer is 0; an operation must move at least one byte."]
    if block % transfer or block == 0:
        return [
            f"{where}: access.block ({access['block']}) is not a multiple of access.transfer ({access['transfer']});"
            f" {_remedy(data, phase, where)}"
        ]
    return []


def _remedy(data: Mapping[str, Any], phase: Mapping[str, Any], where: str) -> str:
    """What to change: a block that the plan gives stays when a phase, or --set, changes the transfer."""
    if "block" not in phase.get("access", {}) and "transfer" in phase.get("access", {}):
        return f"the block is that of data, so give {where}.access a block, too."
    if "block" in data.get("access", {}):
        return "change both, or leave block out: then it is the transfer."
    return "change one of them."
