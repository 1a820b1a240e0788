# SPDX-License-Identifier: Apache-2.0
"""What a plan means with nothing left to a default: each phase complete in itself.

The rules stand in ``schema/plan`` and nowhere else: ``default``, and ``instead_of`` for members that cannot stand
beside each other. What no schema can say (a default that depends on another member) is below, and the engine says the
same of every plan (``sonde-engine resolve``; ``tests/together/test_one_rule.py`` holds the two together).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from sonde.model.operations import ON_BOTH, TREE_ONLY
from sonde.model.schemas import plan_schema
from sonde.model.units import parse_bytes, parse_duration, parse_rate

Table = Mapping[str, Any]

# Members of `data` that a phase may have itself; `suffix` is a member of data.files.
_OF_DATA = ("backend", "access", "io", "verify")
# Members of `meta` that a phase may have beside its own `meta`.
_OF_META = ("backend", "verify")
_UNITS: dict[str, Callable[[Any], Any]] = {"bytes": parse_bytes, "duration": parse_duration, "rate": parse_rate}


def on_tree(document: Table, phase: Table) -> bool:
    """True when a phase of this plan works on the names of a tree."""
    both = phase["op"] in ON_BOTH
    told = phase.get("on", "meta" if both and "meta" in document and "data" not in document else "data")
    return phase["op"] in TREE_ONLY or (both and told == "meta")


def laid_over(below: Table, above: Table, schema: Table) -> dict[str, Any]:
    """`below` with the members of `above` in place of its own, one by one. A member of `above` takes away those that
    cannot stand beside it."""
    members = schema["properties"]
    gone = {other for name in above for other in members.get(name, {}).get("instead_of", ())}
    kept = {name: value for name, value in below.items() if name not in gone}
    return {**kept, **above}


def filled(value: Any, schema: Table) -> Any:
    """A copy of `value` with the defaults of its schema where it says nothing, also in tables that are not there."""
    if "$ref" in schema:
        if not isinstance(value, Mapping):
            return value
        schema = table_form(schema["$ref"])
    if isinstance(value, list):
        return [filled(one, schema.get("items", {})) for one in value]
    if not isinstance(value, Mapping):
        return value
    full = dict(value)
    for name, member in schema.get("properties", {}).items():
        if name in full:
            full[name] = filled(full[name], member)
        elif "default" in member:
            full[name] = copy.deepcopy(member["default"])
        elif "properties" in member and not member.get("minProperties"):
            inner = filled({}, member)
            if inner and name != "meta":
                full[name] = inner
    return full


def table_form(reference: str) -> Table:
    """The form of a definition that is a table, of those that it may have; {} when it has none."""
    arms = plan_schema()["$defs"][reference.rsplit("/", 1)[-1]].get("anyOf", ())
    return next((one for one in arms if one.get("type") == "object"), {})


def data_of(document: Table, phase: Table) -> dict[str, Any]:
    """The plan's `data` with this phase's own members laid over it and every default filled in."""
    schema = plan_schema()["properties"]["data"]
    merged = dict(document.get("data", {}))
    for name in _OF_DATA:
        if name in phase:
            own = phase[name]
            tables = isinstance(own, Mapping)
            merged[name] = laid_over(merged.get(name, {}), own, schema["properties"][name]) if tables else own
    if "suffix" in phase:
        merged["files"] = {**merged.get("files", {}), "suffix": phase["suffix"]}
    full: dict[str, Any] = filled(merged, schema)
    access = full["access"]
    access.setdefault("block", access["transfer"])
    if "volume" not in access:
        access.setdefault("segments", 1)
    full["paced"] = _paced(full["paced"])
    return full


def meta_of(document: Table, phase: Table) -> dict[str, Any]:
    """The plan's `meta` with this phase's own members laid over it and every default filled in."""
    schema = plan_schema()["properties"]["meta"]
    merged = dict(document.get("meta", {}))
    for name, own in phase.get("meta", {}).items():
        below = merged.get(name)
        # A pace is one schedule: half of another would be none.
        if isinstance(below, Mapping) and isinstance(own, Mapping) and name != "paced":
            merged[name] = laid_over(below, own, schema["properties"][name])
        else:
            merged[name] = own
    merged |= {name: phase[name] for name in _OF_META if name in phase}
    full: dict[str, Any] = filled(merged, schema)
    full["tree"] = _tree(full["tree"])
    full["lookup"] = _lookup(full["lookup"], "find" in full)
    full["paced"] = _paced(full["paced"])
    if "size" in full.get("find", {}):
        size = full["find"].pop("size")
        full["find"] |= {"size_min": size, "size_max": size}
    return full


def _tree(tree: dict[str, Any]) -> dict[str, Any]:
    """Items of each directory, also where the plan counts those of a task."""
    if "items_per_task" in tree:
        places = holders(tree)
        if int(tree["items_per_task"]) % places == 0:  # else the engine says that it is wrong
            tree["items_per_dir"] = int(tree.pop("items_per_task")) // places
    else:
        tree.setdefault("items_per_dir", 0)
    return tree


def directories(tree: Table) -> int:
    """Directories of one tree, its root included."""
    branching, depth = int(tree["branching"]), int(tree["depth"])
    return depth + 1 if branching == 1 else (branching ** (depth + 1) - 1) // (branching - 1)


def holders(tree: Table) -> int:
    """Directories that hold items, of all copies of a tree."""
    of_one = int(tree["branching"]) ** int(tree["depth"]) if tree["leaf_only"] else directories(tree)
    return of_one * int(tree["copies"])


def _lookup(lookup: dict[str, Any], finds: bool) -> dict[str, Any]:
    """The fields one by one, in the order of the schema; without a search each entry is looked at."""
    schema = plan_schema()["properties"]["meta"]["properties"]["lookup"]["properties"]["fields"]
    every = [name for name in schema["items"]["enum"] if name not in ("basic", "all")]
    groups = {"basic": {*every} - {"btime"}, "all": {*every}}
    asked = {one for name in lookup.get("fields", ["basic"]) for one in groups.get(name, {name})}
    lookup["fields"] = [name for name in every if name in asked]
    lookup.setdefault("each_entry", not finds)
    return lookup


def _paced(paced: dict[str, Any]) -> dict[str, Any]:
    """A constant rate is a schedule of one step."""
    if "rate" in paced:
        paced["schedule"] = [{"at": 0, "rate": paced.pop("rate")}]
    return paced


def resolved(document: Table) -> dict[str, Any]:
    """The document with every default filled in; still a valid plan, and the same plan."""
    schema = plan_schema()["properties"]
    full = copy.deepcopy(dict(document))
    for name in ("target", "tasks", "observe"):
        full[name] = filled(full.get(name, {}), schema[name])
    if "data" in full or "meta" not in full:
        full["data"] = data_of(document, {})
    full["phases"] = [_phase(document, phase) for phase in document["phases"]]
    return full


def _phase(document: Table, phase: Table) -> dict[str, Any]:
    whole = {name: value for name, value in phase.items() if name not in (*_OF_DATA, "meta", "suffix")}
    full: dict[str, Any] = filled(whole, plan_schema()["properties"]["phases"]["items"])
    full.setdefault("open", "truncate" if phase["op"] == "write" else "overwrite")
    full.setdefault("before", [])
    tree = on_tree(document, phase)
    if phase["op"] in ON_BOTH:
        full["on"] = "meta" if tree else "data"
    else:
        full.pop("on", None)
    if tree:
        full["meta"] = meta_of(document, phase)
        return full
    data = data_of(document, phase)
    return full | {name: data[name] for name in _OF_DATA} | {"suffix": data["files"]["suffix"]}


def in_base_units(value: Any, schema: Table) -> Any:
    """`value` with sizes in bytes, durations in seconds, rates in bytes per second, and no empty tables or lists."""
    if "$ref" in schema:
        kind = schema["$ref"].rsplit("/", 1)[-1]
        if not isinstance(value, Mapping):
            return _UNITS.get(kind, parse_bytes)(value)
        return _amount(in_base_units(value, table_form(schema["$ref"])))
    if isinstance(value, Mapping):
        members = schema.get("properties", {})
        plain = {name: in_base_units(one, members.get(name, {})) for name, one in value.items()}
        return {name: one for name, one in plain.items() if one not in ({}, [], None)}
    if isinstance(value, list):
        return [in_base_units(one, schema.get("items", {})) for one in value]
    return value


def _amount(amount: dict[str, Any]) -> Any:
    """So many bytes of each task are a plain number; of an amount only what counts."""
    per = amount.get("per", "task")
    if amount["of"] == "node_memory":
        return {"of": "node_memory", "x": amount.get("x", 1), "per": per}
    return (
        amount["bytes"]
        if per == "task" and "bytes" in amount
        else {name: amount[name] for name in amount if name != "x"}
    )
