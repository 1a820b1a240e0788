# SPDX-License-Identifier: Apache-2.0
"""Computes a hash of the work of a plan. Two plans with equal hashes do the same operations in the same order.

Two plans that mean the same have the same hash however they are written: sizes as text or as numbers, 1 or 1.0,
defaults written out or left out, members in ``data`` or in each phase. Members that change neither the work nor its
order do not count: names, titles, notes, the target directory, the slice length, the time limits. Of seeds only counts
which of them are equal: a read in the order of the write differs from a read in another order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.plan_resolution import convert_to_base_units
from sonde.model.schemas import load_plan_schema

# Which rules made a hash. It is part of what is hashed, so hashes of two versions are never equal. It must change when
# a default, a name or what counts changes.
HASH_VERSION = 5
# Members that say where, how closely or under which name, not what.
_TARGET_MEMBERS = ("use_existing", "striping", "device")
_TASK_MEMBERS = ("pin", "active")
_IGNORED_PHASE_MEMBERS = ("id", "valid", "data_of", "operations_file", "open")


def compute_plan_hash(
    plan_document: Mapping[str, Any], process_count: int | None, thread_count: int | None, node_count: int | None
) -> str:
    """Returns twelve hexadecimal digits for a plan and its geometry: the actual processes, threads per process, nodes.

    A document that is not a valid plan (for example of a newer version) is hashed unchanged.
    """
    try:
        content: Any = _unify_numbers(_canonicalize_plan(Plan.from_document(plan_document, "the plan of the record")))
    except (UserError, ValueError, TypeError, KeyError, AttributeError):
        content = {"foreign": plan_document}
    return hash_json([f"sonde-plan-hash/{HASH_VERSION}", content, process_count, thread_count, node_count])


def hash_json(json_value: Any, hex_digits: int = 12) -> str:
    """Hash of a JSON-like value that does not depend on the order of members."""
    text = json.dumps(json_value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:hex_digits]


def _unify_numbers(json_value: Any) -> Any:
    """`json_value` with an int for each float that is a whole number, so that numbers of equal value have one text."""
    if isinstance(json_value, Mapping):
        return {name: _unify_numbers(item) for name, item in json_value.items()}
    if isinstance(json_value, list | tuple):
        return [_unify_numbers(item) for item in json_value]
    return int(json_value) if isinstance(json_value, float) and json_value.is_integer() else json_value


def _canonicalize_plan(plan: Plan) -> Any:
    """Only what differs from a default, in base units, with each phase complete in itself."""
    schema = load_plan_schema()
    full = convert_to_base_units(plan.resolve(), schema)
    calibrated = sorted(plan.document.get("calibrated", ()))
    for name in calibrated:
        _remove_calibrated_member(full, name)
    members = schema["properties"]
    phases = full["phases"]
    seeds = _SeedNumbering()
    paced = any("paced" in (phase.get("backend"), phase.get("meta", {}).get("backend")) for phase in phases)
    return ({"calibrated": calibrated} if calibrated else {}) | {
        "target": _remove_default_members(
            {name: full["target"].get(name) for name in _TARGET_MEMBERS}, members["target"]
        ),
        "tasks": _remove_default_members(
            {name: full["tasks"][name] for name in _TASK_MEMBERS if name in full["tasks"]}, members["tasks"]
        ),
        "data": _canonicalize_data_table(full.get("data", {}), paced),
        "phases": [_canonicalize_phase(phase, position, phases, seeds) for position, phase in enumerate(phases)],
    }


def _remove_calibrated_member(plan_document: dict[str, Any], member_path: str) -> None:
    """Takes a calibrated member out, of the plan and of every phase: it says how much, not what."""
    _, table, member = member_path.split(".")
    for owner in (plan_document.get("data", {}), *plan_document["phases"]):
        if member in owner.get(table, {}):
            owner[table] = _remove_members(owner[table], member)


def _canonicalize_data_table(data_table: Mapping[str, Any], is_paced: bool) -> Any:
    """The members that all phases share; each phase holds the others. A plan about names has none."""
    files = {name: value for name, value in data_table.get("files", {}).items() if name not in ("name", "suffix")}
    for name in ("paths", "across"):
        if name in files:
            files[name] = len(files[name])  # how many, not where
    shared = {"files": files, "payload": _remove_members(data_table.get("payload", {}), "seed")}
    if is_paced:
        shared["paced"] = data_table.get("paced", {})
    return _remove_default_members(shared, load_plan_schema()["properties"]["data"])


class _SeedNumbering:
    """Numbers for seeds, by first appearance."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, int]] = {}

    def assign_number(self, seed_kind: str, seed: int) -> int:
        numbers = self._known.setdefault(seed_kind, {})
        return numbers.setdefault(seed, len(numbers))


def _canonicalize_phase(
    phase_table: Mapping[str, Any], phase_position: int, all_phases: list[dict[str, Any]], seed_numbers: _SeedNumbering
) -> dict[str, Any]:
    members = load_plan_schema()["properties"]
    canonical = _remove_members(phase_table, *_IGNORED_PHASE_MEMBERS)
    if phase_table["op"] == "write":
        canonical["open"] = phase_table["open"]
    if "operations_file" in phase_table:
        canonical["operations_file"] = True  # it costs time; where it lies does not
    if "replay_file" in phase_table:  # named by its content; where it lies does not matter
        canonical["replay_file"] = phase_table["replay_file"].rpartition("/")[2]
    if "data_of" in phase_table:  # by distance: phases may be renamed without becoming other work
        phase_ids = [treatment["id"] for treatment in all_phases]
        canonical["data_of"] = (
            phase_position - phase_ids.index(phase_table["data_of"])
            if phase_table["data_of"] in phase_ids
            else phase_table["data_of"]
        )
    canonical["before"] = [
        _remove_members(treatment, "need", "max_residency") for treatment in phase_table.get("before", ())
    ]
    canonical["shift"] = _replace_seed(
        phase_table["shift"], phase_table["shift"]["by"] in ("random", "permute"), "shift", seed_numbers
    )
    canonical = dict(_remove_default_members(canonical, members["phases"]["items"]))
    if "access" in phase_table:
        is_random = phase_table["access"]["order"].startswith("random") or phase_table["op"] == "mixed"
        access = _replace_seed(phase_table["access"], is_random, "access", seed_numbers)
        data = members["data"]["properties"]
        canonical |= {
            "access": _remove_default_members(access, data["access"]),
            "io": _remove_default_members(phase_table["io"], data["io"]),
        }
    if "meta" in phase_table:
        canonical["meta"] = _canonicalize_meta(phase_table["meta"], seed_numbers)
    return canonical


def _canonicalize_meta(meta_members: Mapping[str, Any], seeds: _SeedNumbering) -> Any:
    canonical = _remove_members(meta_members, *(() if meta_members["backend"] == "paced" else ("paced",)))
    canonical["payload"] = _remove_members(meta_members["payload"], "seed")
    canonical["select"] = _replace_seed(
        meta_members["select"], meta_members["select"]["order"] != "creation", "select", seeds
    )
    if "newer_than_file" in canonical.get("find", {}):
        canonical["find"] = {**canonical["find"], "newer_than_file": "some file"}
    return _remove_default_members(canonical, load_plan_schema()["properties"]["meta"])


def _replace_seed(
    seeded_table: Mapping[str, Any], is_random: bool, seed_kind: str, seed_numbers: _SeedNumbering
) -> dict[str, Any]:
    """Replaces the seed in a table by its number, or removes it if the table uses no random numbers."""
    remaining = _remove_members(seeded_table, "seed")
    return (
        remaining | {"drawn": seed_numbers.assign_number(seed_kind, int(seeded_table["seed"]))}
        if is_random
        else remaining
    )


def _remove_members(table: Mapping[str, Any], *member_names: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in member_names}


def _remove_default_members(json_value: Any, json_schema: Mapping[str, Any]) -> Any:
    """`json_value` without the members that equal their default in the schema: a member that a later version adds does
    not change the hash of plans without it."""
    if isinstance(json_value, list):
        return [_remove_default_members(item, json_schema.get("items", {})) for item in json_value]
    if not isinstance(json_value, Mapping):
        return json_value
    remaining = {}
    for name, item in json_value.items():
        member_schema = json_schema.get("properties", {}).get(name, {})
        stripped = _remove_default_members(item, member_schema)
        default = convert_to_base_units(member_schema["default"], member_schema) if "default" in member_schema else None
        if stripped not in ({}, [], None) and stripped != default:
            remaining[name] = stripped
    return remaining
