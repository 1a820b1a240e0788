# SPDX-License-Identifier: Apache-2.0
"""When two plans are the same work: a hash of what is done, and of nothing else.

Two plans that mean the same have the same hash however they are written: sizes as text or as numbers, defaults
written out or left out, members in ``data`` or in each phase. What changes neither the work nor its order does not
count: names, titles, notes, where the directory lies, how finely it is observed, when it is given up. Of seeds only
counts which of them are equal: a read in the order of the write is another read than one in an order of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.plan_resolution import to_base_units
from sonde.model.schemas import load_plan_schema

# Which rules made a hash. It is part of what is hashed, so hashes of two versions are never equal. It must change when
# a default, a name or what counts changes.
HASH_VERSION = 4
# Members that say where, how closely or under which name, not what.
_TARGET_MEMBERS = ("use_existing", "striping")
_TASK_MEMBERS = ("pin", "active")
_IGNORED_PHASE_MEMBERS = ("id", "valid", "data_of", "operations_file", "open")


def compute_plan_hash(
    document: Mapping[str, Any], processes: int | None, threads: int | None, nodes: int | None
) -> str:
    """Returns twelve hexadecimal digits for a plan and its geometry: the actual processes, threads per process, nodes.

    A document that is not a valid plan (for example of a newer version) is hashed unchanged.
    """
    try:
        content: Any = _canonicalize_plan(Plan.from_document(document, "the plan of the record"))
    except (UserError, ValueError, TypeError, KeyError, AttributeError):
        content = {"foreign": document}
    return hash_json([f"sonde-plan-hash/{HASH_VERSION}", content, processes, threads, nodes])


def hash_json(value: Any, length: int = 12) -> str:
    """Hash of a JSON-like value that does not depend on the order of members."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _canonicalize_plan(plan: Plan) -> Any:
    """Only what differs from a default, in base units, with each phase complete in itself."""
    schema = load_plan_schema()
    full = to_base_units(plan.resolve(), schema)
    calibrated = sorted(plan.document.get("calibrated", ()))
    for name in calibrated:
        _remove_calibrated(full, name)
    members = schema["properties"]
    phases = full["phases"]
    seeds = _SeedNumbers()
    paced = any("paced" in (phase.get("backend"), phase.get("meta", {}).get("backend")) for phase in phases)
    return ({"calibrated": calibrated} if calibrated else {}) | {
        "target": _strip_defaults({name: full["target"].get(name) for name in _TARGET_MEMBERS}, members["target"]),
        "tasks": _strip_defaults(
            {name: full["tasks"][name] for name in _TASK_MEMBERS if name in full["tasks"]}, members["tasks"]
        ),
        "data": _canonicalize_data(full.get("data", {}), paced),
        "phases": [_canonicalize_phase(phase, position, phases, seeds) for position, phase in enumerate(phases)],
    }


def _remove_calibrated(plan: dict[str, Any], path: str) -> None:
    """Takes a calibrated member out, of the plan and of every phase: it says how much, not what."""
    _, table, member = path.split(".")
    for owner in (plan.get("data", {}), *plan["phases"]):
        if member in owner.get(table, {}):
            owner[table] = _drop_members(owner[table], member)


def _canonicalize_data(data: Mapping[str, Any], paced: bool) -> Any:
    """What all phases share; the rest stands in each of them. A plan about names has none."""
    files = {name: value for name, value in data.get("files", {}).items() if name not in ("name", "suffix")}
    for name in ("paths", "across"):
        if name in files:
            files[name] = len(files[name])  # how many, not where
    shared = {"files": files, "payload": _drop_members(data.get("payload", {}), "seed")}
    if paced:
        shared["paced"] = data.get("paced", {})
    return _strip_defaults(shared, load_plan_schema()["properties"]["data"])


class _SeedNumbers:
    """Numbers for seeds, by first appearance."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, int]] = {}

    def number(self, kind: str, seed: int) -> int:
        numbers = self._known.setdefault(kind, {})
        return numbers.setdefault(seed, len(numbers))


def _canonicalize_phase(
    phase: Mapping[str, Any], position: int, phases: list[dict[str, Any]], seeds: _SeedNumbers
) -> dict[str, Any]:
    members = load_plan_schema()["properties"]
    canonical = _drop_members(phase, *_IGNORED_PHASE_MEMBERS)
    if phase["op"] == "write":
        canonical["open"] = phase["open"]
    if "operations_file" in phase:
        canonical["operations_file"] = True  # it costs time; where it lies does not
    if "replay_file" in phase:  # named by its content; where it lies does not matter
        canonical["replay_file"] = phase["replay_file"].rpartition("/")[2]
    if "data_of" in phase:  # by distance: phases may be renamed without becoming other work
        phase_ids = [treatment["id"] for treatment in phases]
        canonical["data_of"] = (
            position - phase_ids.index(phase["data_of"]) if phase["data_of"] in phase_ids else phase["data_of"]
        )
    canonical["before"] = [_drop_members(treatment, "need", "max_residency") for treatment in phase.get("before", ())]
    canonical["shift"] = _replace_seed(phase["shift"], phase["shift"]["by"] in ("random", "permute"), "shift", seeds)
    canonical = dict(_strip_defaults(canonical, members["phases"]["items"]))
    if "access" in phase:
        is_random = phase["access"]["order"].startswith("random") or phase["op"] == "mixed"
        access = _replace_seed(phase["access"], is_random, "access", seeds)
        data = members["data"]["properties"]
        canonical |= {"access": _strip_defaults(access, data["access"]), "io": _strip_defaults(phase["io"], data["io"])}
    if "meta" in phase:
        canonical["meta"] = _canonicalize_meta(phase["meta"], seeds)
    return canonical


def _canonicalize_meta(meta: Mapping[str, Any], seeds: _SeedNumbers) -> Any:
    canonical = _drop_members(meta, *(() if meta["backend"] == "paced" else ("paced",)))
    canonical["payload"] = _drop_members(meta["payload"], "seed")
    canonical["select"] = _replace_seed(meta["select"], meta["select"]["order"] != "creation", "select", seeds)
    if "newer_than_file" in canonical.get("find", {}):
        canonical["find"] = {**canonical["find"], "newer_than_file": "some file"}
    return _strip_defaults(canonical, load_plan_schema()["properties"]["meta"])


def _replace_seed(table: Mapping[str, Any], is_random: bool, kind: str, seeds: _SeedNumbers) -> dict[str, Any]:
    """The table with the number of its seed, or without one where nothing is drawn."""
    remaining = _drop_members(table, "seed")
    return remaining | {"drawn": seeds.number(kind, int(table["seed"]))} if is_random else remaining


def _drop_members(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in names}


def _strip_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """`value` without the members that say what the schema says anyway: a member that a later version adds does not
    change the hash of plans that leave it out."""
    if isinstance(value, list):
        return [_strip_defaults(item, schema.get("items", {})) for item in value]
    if not isinstance(value, Mapping):
        return value
    remaining = {}
    for name, item in value.items():
        member_schema = schema.get("properties", {}).get(name, {})
        stripped = _strip_defaults(item, member_schema)
        default = to_base_units(member_schema["default"], member_schema) if "default" in member_schema else None
        if stripped not in ({}, [], None) and stripped != default:
            remaining[name] = stripped
    return remaining
