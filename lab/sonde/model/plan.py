# SPDX-License-Identifier: Apache-2.0
"""A plan: what one run does. Read from TOML or JSON, changed by settings, checked against the schema.

The document stays as written (sizes as text), for the engine and for people who read the archive. `Plan.resolve`
fills in every default.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.model import plan_resolution
from sonde.model.documents import DocumentError, parse_json, parse_toml
from sonde.model.errors import PlanError
from sonde.model.file_text import read_text_file
from sonde.model.plan_title import compose_title
from sonde.model.schema_problems import find_schema_problems, format_member_path
from sonde.model.schemas import load_plan_schema
from sonde.model.settings import apply_settings
from sonde.model.units import parse_bytes, parse_duration

PLAN_FORMAT = "sonde-plan/2"
_MAX_PLAN_FILE_BYTES = 16 << 20
_MAX_PROBLEMS_IN_MESSAGE = 3


@dataclass(frozen=True)
class Plan:
    """A checked, immutable plan. Create one with `from_document` or `read`."""

    document: Mapping[str, Any]
    origin: str  # file name or "standard input", for messages

    @classmethod
    def from_document(
        cls, plan_document: Mapping[str, Any], plan_origin: str, setting_texts: Iterable[str] = ()
    ) -> Plan:
        """Checks `plan_document` after `setting_texts`. Raises PlanError with one sentence."""
        document_copy = copy.deepcopy(dict(plan_document))
        apply_settings(document_copy, setting_texts)
        document_copy.setdefault("schema", PLAN_FORMAT)
        document_copy.setdefault("id", _derive_id_from_origin(plan_origin))
        problems_found = find_schema_problems(load_plan_schema(), document_copy) or _find_contradictions(document_copy)
        if problems_found:
            raise PlanError(f"{plan_origin}: {_join_problems(problems_found)}")
        return cls(document_copy, plan_origin)

    @classmethod
    def read(cls, plan_file: str, setting_texts: Iterable[str] = ()) -> Plan:
        """Reads a file (``-`` is standard input) and checks it."""
        return cls.from_document(
            read_plan_document(plan_file), "standard input" if plan_file == "-" else plan_file, setting_texts
        )

    def with_settings(self, setting_texts: Iterable[str]) -> Plan:
        """Returns a copy with some members changed."""
        return Plan.from_document(self.document, self.origin, setting_texts)

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def title(self) -> str:
        """The title, with the values of the members that it names in braces."""
        return compose_title(self.title_template, [self.resolve()] if "{" in self.title_template else [])

    @property
    def title_template(self) -> str:
        """The title as written."""
        return str(self.document.get("title", self.id))

    @property
    def target(self) -> Path:
        return Path(self.document["target"]["path"])

    @property
    def target_name(self) -> str:
        """The target as the plan names it: a path, or s3://bucket/prefix."""
        return str(self.document["target"]["path"])

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
    def stage_count(self) -> int:
        """Number of consecutive engine processes: each phase with process = separate starts a new one."""
        return 1 + sum(1 for phase in self.phases[1:] if phase.get("process") == "separate")

    @property
    def time_limit_s(self) -> float | None:
        """Seconds after which the engine ends the run (limits.time)."""
        limit = self.document.get("limits", {}).get("time")
        return None if limit is None else parse_duration(limit)

    def resolve_data(self, phase: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the plan's `data`, overridden by the phase's members, with every default filled in."""
        return plan_resolution.resolve_data(self.document, phase)

    def is_tree_phase(self, phase: Mapping[str, Any]) -> bool:
        """True when the phase works on a tree (`meta`), not on data files."""
        return plan_resolution.is_tree_phase(self.document, phase)

    def resolve_meta(self, phase: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the plan's `meta`, overridden by the phase's members, with every default filled in."""
        return plan_resolution.resolve_meta(self.document, phase)

    def resolve(self) -> dict[str, Any]:
        """Returns the document with every default filled in; it is a valid plan with the same meaning."""
        return plan_resolution.resolve_plan(self.document)

    def to_json(self) -> str:
        """Returns the JSON text that the engine reads, with the composed title."""
        document = {**self.document, "title": self.title} if "title" in self.document else self.document
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_plan_document(file_name: str) -> dict[str, Any]:
    """Returns the unchecked document in a TOML or JSON file; without a known suffix, the first character decides."""
    file = Path(file_name)
    text = (
        sys.stdin.read()
        if file_name == "-"
        else read_text_file(file, "plan file", _MAX_PLAN_FILE_BYTES, PlanError, True)
    )
    name = "standard input" if file_name == "-" else file_name
    suffix = file.suffix.lower()
    as_json = suffix == ".json" or (suffix != ".toml" and text.lstrip().startswith("{"))
    document = _parse_json_plan(text, name) if as_json else _parse_toml_plan(text, name)
    if not isinstance(document, dict):
        raise PlanError(f"{name}: a plan is a table of members, not {type(document).__name__}.")
    return document


def _parse_toml_plan(toml_text: str, file_name: str) -> Any:
    try:
        return parse_toml(toml_text)
    except ValueError as error:
        raise PlanError(f"{file_name} is not valid TOML: {error}.") from None


def _parse_json_plan(json_text: str, file_name: str) -> Any:
    try:
        return parse_json(json_text, object_pairs_hook=_reject_duplicate_members, parse_constant=_reject_json_constant)
    except json.JSONDecodeError as error:
        location = f"line {error.lineno}, column {error.colno}"
        raise PlanError(f"{file_name} is not valid JSON: {error.msg} (at {location}).") from None
    except DocumentError as error:
        raise PlanError(f"{file_name} is not valid JSON: {error}.") from None
    except PlanError as error:
        raise PlanError(f"{file_name}: {error}") from None


def _reject_duplicate_members(name_value_pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [key for key, _ in name_value_pairs]
    duplicate = next((key for key in names if names.count(key) > 1), None)
    if duplicate is not None:
        raise PlanError(f'the member "{duplicate}" appears twice in one table; keep one of them.')
    return dict(name_value_pairs)


def _reject_json_constant(constant_name: str) -> Any:
    raise PlanError(f"{constant_name} is not a number that a plan can hold.")


def _derive_id_from_origin(document_origin: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(document_origin).stem).strip("-") or "plan"


def _join_problems(problem_sentences: Sequence[str]) -> str:
    """Returns the sentences of the first problems and the number of the others."""
    more = len(problem_sentences) - _MAX_PROBLEMS_IN_MESSAGE
    return " ".join(
        [*problem_sentences[:_MAX_PROBLEMS_IN_MESSAGE], *([f"({more} more after that.)"] if more > 0 else [])]
    )


def _find_contradictions(plan_document: Mapping[str, Any]) -> list[str]:
    """Returns contradictions that a JSON Schema cannot express. The engine checks the rest."""
    problems_found: list[str] = []
    position_by_id: dict[str, int] = {}
    for position, phase in enumerate(plan_document["phases"]):
        name = phase["id"]
        if name in position_by_id:
            problems_found.append(
                f'phases.{position_by_id[name]} and phases.{position} have the same id "{name}"; ids must differ.'
            )
        position_by_id[name] = position
        problems_found += _check_access_geometry(
            plan_document.get("data", {}), phase, format_member_path(["phases", position], plan_document)
        )
    return problems_found


def _check_access_geometry(data_table: Mapping[str, Any], phase_table: Mapping[str, Any], phase_path: str) -> list[str]:
    for layer, name in ((data_table, "data"), (phase_table, phase_path)):
        if {"segments", "volume"} <= layer.get("access", {}).keys():
            return [f"{name}.access has both segments and volume; give exactly one of them."]
    access = plan_resolution.resolve_data({"data": data_table}, phase_table)["access"]
    transfer, block = parse_bytes(access["transfer"]), parse_bytes(access["block"])
    if transfer == 0:
        return [f"{phase_path}: access.transfer is 0; an operation must move at least one byte."]
    if block % transfer or block == 0:
        return [
            f"{phase_path}: access.block ({access['block']}) is not a multiple of access.transfer"
            f" ({access['transfer']});"
            f" {_suggest_geometry_remedy(data_table, phase_table, phase_path)}"
        ]
    return []


def _suggest_geometry_remedy(data_table: Mapping[str, Any], phase_table: Mapping[str, Any], phase_path: str) -> str:
    """Returns the remedy: the plan's block stays when a phase or --set changes the transfer."""
    if "block" not in phase_table.get("access", {}) and "transfer" in phase_table.get("access", {}):
        return f"the block is that of data, so give {phase_path}.access a block, too."
    if "block" in data_table.get("access", {}):
        return "change both, or leave block out: then it is the transfer."
    return "change one of them."
