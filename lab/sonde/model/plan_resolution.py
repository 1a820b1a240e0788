# SPDX-License-Identifier: Apache-2.0
"""Resolves a plan: fills in every default, so that each phase is complete.

``schema/plan``, which the engine prints from its declaration of the plan, states ``default``, and ``instead_of`` for
members that exclude each other. Defaults that depend on another member are below. The engine has them too, and
``tests/together/test_plan_agreement.py`` compares the two.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from sonde.model.operations import DATA_OR_TREE_OPS, TREE_ONLY_OPS
from sonde.model.schemas import load_plan_schema
from sonde.model.units import parse_bytes, parse_duration, parse_rate

Table = Mapping[str, Any]

# Members of `data` that a phase may have itself; `suffix` is a member of data.files.
_DATA_OVERRIDES = ("backend", "access", "io", "verify")
# Members of `meta` that a phase may also have at its top level.
_META_OVERRIDES = ("backend", "verify")
_QUANTITY_PARSERS: dict[str, Callable[[Any], Any]] = {
    "bytes": parse_bytes,
    "duration": parse_duration,
    "rate": parse_rate,
}


def is_tree_phase(plan_document: Table, phase: Table) -> bool:
    """Returns whether a phase of this plan works on a tree."""
    is_ambiguous = phase["op"] in DATA_OR_TREE_OPS
    applies_to = phase.get(
        "on", "meta" if is_ambiguous and "meta" in plan_document and "data" not in plan_document else "data"
    )
    return phase["op"] in TREE_ONLY_OPS or (is_ambiguous and applies_to == "meta")


def override_members(base_table: Table, overriding_table: Table, table_schema: Table) -> dict[str, Any]:
    """Returns `base_table` overridden by `overriding_table`. An override removes the members that it excludes
    (``instead_of``)."""
    members = table_schema["properties"]
    replaced = {other for name in overriding_table for other in members.get(name, {}).get("instead_of", ())}
    remaining = {name: value for name, value in base_table.items() if name not in replaced}
    return {**remaining, **overriding_table}


def fill_defaults(plan_value: Any, value_schema: Table) -> Any:
    """Returns a copy of `plan_value` with the defaults of its schema, also in absent tables."""
    if "$ref" in value_schema:
        if not isinstance(plan_value, Mapping):
            return plan_value
        value_schema = find_table_schema(value_schema["$ref"])
    if isinstance(plan_value, list):
        return [fill_defaults(item, value_schema.get("items", {})) for item in plan_value]
    if not isinstance(plan_value, Mapping):
        return plan_value
    full = dict(plan_value)
    for name, member in value_schema.get("properties", {}).items():
        if name in full:
            full[name] = fill_defaults(full[name], member)
        elif "default" in member:
            full[name] = copy.deepcopy(member["default"])
        elif "properties" in member and not member.get("minProperties"):
            nested = fill_defaults({}, member)
            if nested and name != "meta":
                full[name] = nested
    return full


def find_table_schema(schema_reference: str) -> Table:
    """Returns the alternative of a schema definition that is an object; {} when there is none."""
    arms = load_plan_schema()["$defs"][schema_reference.rsplit("/", 1)[-1]].get("anyOf", ())
    return next((arm for arm in arms if arm.get("type") == "object"), {})


def resolve_data(plan_document: Table, phase: Table) -> dict[str, Any]:
    """Returns the plan's `data`, overridden by the phase's members, with every default filled in."""
    schema = load_plan_schema()["properties"]["data"]
    merged = dict(plan_document.get("data", {}))
    for name in _DATA_OVERRIDES:
        if name in phase:
            value = phase[name]
            is_table = isinstance(value, Mapping)
            merged[name] = (
                override_members(merged.get(name, {}), value, schema["properties"][name]) if is_table else value
            )
    if "suffix" in phase:
        merged["files"] = {**merged.get("files", {}), "suffix": phase["suffix"]}
    full: dict[str, Any] = fill_defaults(merged, schema)
    access = full["access"]
    access.setdefault("block", access["transfer"])
    if "volume" not in access:
        access.setdefault("segments", 1)
    full["paced"] = _resolve_pace(full["paced"])
    return full


def resolve_meta(plan_document: Table, phase: Table) -> dict[str, Any]:
    """Returns the plan's `meta`, overridden by the phase's members, with every default filled in."""
    schema = load_plan_schema()["properties"]["meta"]
    merged = dict(plan_document.get("meta", {}))
    for name, value in phase.get("meta", {}).items():
        base = merged.get(name)
        # A pace is one schedule; merging two would mix them.
        if isinstance(base, Mapping) and isinstance(value, Mapping) and name != "paced":
            merged[name] = override_members(base, value, schema["properties"][name])
        else:
            merged[name] = value
    merged |= {name: phase[name] for name in _META_OVERRIDES if name in phase}
    full: dict[str, Any] = fill_defaults(merged, schema)
    full["tree"] = _resolve_tree(full["tree"])
    full["lookup"] = _resolve_lookup(full["lookup"], "find" in full)
    full["paced"] = _resolve_pace(full["paced"])
    if "size" in full.get("find", {}):
        size = full["find"].pop("size")
        full["find"] |= {"size_min": size, "size_max": size}
    return full


def _resolve_tree(tree_table: dict[str, Any]) -> dict[str, Any]:
    """Converts items per task to items per directory."""
    if "items_per_task" in tree_table:
        directory_count = count_item_directories(tree_table)
        if int(tree_table["items_per_task"]) % directory_count == 0:  # otherwise the engine reports the error
            tree_table["items_per_dir"] = int(tree_table.pop("items_per_task")) // directory_count
    else:
        tree_table.setdefault("items_per_dir", 0)
    return tree_table


def count_directories(tree_table: Table) -> int:
    """Returns the directories of one tree, including its root."""
    branching, depth = int(tree_table["branching"]), int(tree_table["depth"])
    return depth + 1 if branching == 1 else (branching ** (depth + 1) - 1) // (branching - 1)


def count_item_directories(tree_table: Table) -> int:
    """Returns the directories that hold items, over all copies of a tree."""
    per_copy = (
        int(tree_table["branching"]) ** int(tree_table["depth"])
        if tree_table["leaf_only"]
        else count_directories(tree_table)
    )
    return per_copy * int(tree_table["copies"])


def _resolve_lookup(lookup: dict[str, Any], has_find: bool) -> dict[str, Any]:
    """Expands field groups in the order of the schema; without `find`, each entry is looked up."""
    schema = load_plan_schema()["properties"]["meta"]["properties"]["lookup"]["properties"]["fields"]
    all_fields = [name for name in schema["items"]["enum"] if name not in ("basic", "all")]
    groups = {"basic": {*all_fields} - {"btime"}, "all": {*all_fields}}
    requested = {field for name in lookup.get("fields", ["basic"]) for field in groups.get(name, {name})}
    lookup["fields"] = [name for name in all_fields if name in requested]
    lookup.setdefault("examine_all", not has_find)
    return lookup


def _resolve_pace(paced: dict[str, Any]) -> dict[str, Any]:
    """Converts a constant rate to a schedule of one step."""
    if "rate" in paced:
        paced["schedule"] = [{"at": 0, "rate": paced.pop("rate")}]
    return paced


def resolve_plan(plan_document: Table) -> dict[str, Any]:
    """Returns the document with every default filled in; it is a valid plan with the same meaning."""
    schema = load_plan_schema()["properties"]
    full = copy.deepcopy(dict(plan_document))
    for name in ("target", "tasks", "observe"):
        full[name] = fill_defaults(full.get(name, {}), schema[name])
    if "data" in full or "meta" not in full:
        full["data"] = resolve_data(plan_document, {})
    full["phases"] = [_resolve_phase(plan_document, phase) for phase in plan_document["phases"]]
    return full


def _resolve_phase(plan_document: Table, phase: Table) -> dict[str, Any]:
    members = {name: value for name, value in phase.items() if name not in (*_DATA_OVERRIDES, "meta", "suffix")}
    full: dict[str, Any] = fill_defaults(members, load_plan_schema()["properties"]["phases"]["items"])
    full.setdefault("open", "truncate" if phase["op"] == "write" else "overwrite")
    full.setdefault("before", [])
    is_tree = is_tree_phase(plan_document, phase)
    if phase["op"] in DATA_OR_TREE_OPS:
        full["on"] = "meta" if is_tree else "data"
    else:
        full.pop("on", None)
    if is_tree:
        full["meta"] = resolve_meta(plan_document, phase)
        return full
    data = resolve_data(plan_document, phase)
    return full | {name: data[name] for name in _DATA_OVERRIDES} | {"suffix": data["files"]["suffix"]}


def convert_to_base_units(plan_value: Any, value_schema: Table) -> Any:
    """Converts sizes to bytes, durations to seconds, rates to bytes per second; drops empty tables and lists."""
    if "$ref" in value_schema:
        unit = value_schema["$ref"].rsplit("/", 1)[-1]
        if not isinstance(plan_value, Mapping):
            return _QUANTITY_PARSERS.get(unit, parse_bytes)(plan_value)
        return _simplify_amount(convert_to_base_units(plan_value, find_table_schema(value_schema["$ref"])))
    if isinstance(plan_value, Mapping):
        members = value_schema.get("properties", {})
        converted = {name: convert_to_base_units(item, members.get(name, {})) for name, item in plan_value.items()}
        return {name: item for name, item in converted.items() if item not in ({}, [], None)}
    if isinstance(plan_value, list):
        return [convert_to_base_units(item, value_schema.get("items", {})) for item in plan_value]
    return plan_value


def _simplify_amount(amount_table: dict[str, Any]) -> Any:
    """Simplifies an amount: bytes per task become a plain number, unused members are dropped."""
    per = amount_table.get("per", "task")
    if amount_table["of"] == "node_memory":
        return {"of": "node_memory", "x": amount_table.get("x", 1), "per": per}
    return (
        amount_table["bytes"]
        if per == "task" and "bytes" in amount_table
        else {name: amount_table[name] for name in amount_table if name != "x"}
    )
