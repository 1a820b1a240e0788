# SPDX-License-Identifier: Apache-2.0
"""When two plans are the same experiment: a hash of what is done, and of nothing else.

Two plans that mean the same have the same hash however they are written: sizes as text or as numbers, defaults
written out or left out, members in ``data`` or in each phase. What changes neither the work nor its order does not
count: names, titles, notes, seeds, where the directory lies, how finely it is observed, when it is given up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.schemas import plan_schema
from sonde.model.units import parse_bytes, parse_duration, parse_rate

# Part of what is hashed. It must change when a default of the plan changes its meaning: plans that leave the member out
# would else stand for two different experiments.
VERSION = "sonde-experiment/1"
_UNITS: dict[str, Callable[[Any], Any]] = {"bytes": parse_bytes, "duration": parse_duration, "rate": parse_rate}
# Members that say where, how closely or under which name, not what.
_TARGET = ("path", "directory", "keep", "min_free", "full_stripe")
_PHASE = ("id", "valid", "data_of")
# How files are opened when the plan does not say.
_OPEN = {"write": "truncate", "rewrite": "overwrite"}


def experiment_hash(document: Mapping[str, Any], processes: int | None, threads: int | None, nodes: int | None) -> str:
    """Twelve hexadecimal digits that stand for plan and geometry: the processes and nodes that really took part, and
    the threads of each. A document that is no valid plan (of a newer version, say) is hashed as it stands."""
    try:
        what: Any = _canonical(Plan.from_document(document, "the plan of the record"))
    except (UserError, ValueError, TypeError, KeyError):
        what = {"foreign": document}
    return short_hash([VERSION, what, processes, threads, nodes])


def short_hash(what: Any, digits: int = 12) -> str:
    """Hash of a JSON-like value that does not depend on the order of members."""
    text = json.dumps(what, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _canonical(plan: Plan) -> Any:
    """Only what differs from a default, in base units, with each phase complete in itself."""
    schema = plan_schema()
    full = plan.resolved()
    phases = full["phases"]
    own = full.get("data", {})  # a plan about names has none
    data = {name: own[name] for name in ("files", "payload", "paced") if name in own}
    data["files"] = {name: value for name, value in data.get("files", {}).items() if name != "name"}
    if "paths" in data["files"]:
        data["files"]["paths"] = len(data["files"]["paths"])  # how many, not where
    reduced = {
        "target": {name: value for name, value in full["target"].items() if name not in _TARGET},
        "tasks": {"pin": full["tasks"].get("pin", False)},
        "data": data,
        "phases": [_phase(one, position, phases) for position, one in enumerate(phases)],
    }
    return _reduce(reduced, schema, schema)


def _phase(phase: Mapping[str, Any], position: int, phases: list[dict[str, Any]]) -> dict[str, Any]:
    kept = {name: value for name, value in phase.items() if name not in _PHASE}
    if kept.get("open") == _OPEN.get(phase["op"]):
        kept.pop("open", None)
    if "data_of" in phase:  # by distance: phases may be renamed without becoming other work
        names = [one["id"] for one in phases]
        kept["data_of"] = position - names.index(phase["data_of"]) if phase["data_of"] in names else phase["data_of"]
    find = kept.get("meta", {}).get("find", {})
    if "newer_than_file" in find:
        kept["meta"] = {**kept["meta"], "find": {**find, "newer_than_file": "some file"}}
    kept["before"] = [
        {name: value for name, value in one.items() if name not in ("need", "max_resident")}
        for one in phase.get("before", ())
    ]
    return kept


def _reduce(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """`value` in base units; members that say what the schema says anyway, and empty ones, are left out."""
    reference = schema.get("$ref", "")
    if reference:
        kind = reference.rsplit("/", 1)[-1]
        if kind in _UNITS:
            return _UNITS[kind](value)
        return _UNITS["bytes"](value) if not isinstance(value, Mapping) else _table(value, _object(root, kind), root)
    if isinstance(value, Mapping):
        return _table(value, schema, root)
    if isinstance(value, list):
        return [_reduce(one, schema.get("items", {}), root) for one in value]
    return value


def _object(root: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The form of a definition that is a table."""
    arms = root["$defs"][kind].get("anyOf", ())
    return next((one for one in arms if one.get("type") == "object"), {})


def _table(value: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    members = schema.get("properties", {})
    reduced = {}
    for name, one in value.items():
        own = members.get(name, {})
        plain = _reduce(one, own, root)
        default = _reduce(own["default"], own, root) if "default" in own else None
        if name != "seed" and plain not in ({}, [], None) and plain != default:
            reduced[name] = plain
    return reduced
