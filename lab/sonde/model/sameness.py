# SPDX-License-Identifier: Apache-2.0
"""When two plans are the same work: a hash of what is done, and of nothing else.

Two plans that mean the same have the same hash however they are written: sizes as text or as numbers, defaults
written out or left out, members in ``data`` or in each phase. What changes neither the work nor its order does not
count: names, titles, notes, where the directory lies, how finely it is observed, when it is given up. Of seeds only
counts which of them are equal: a read in the order of the write is another read than one in an order of its own.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.resolve import in_base_units
from sonde.model.schemas import plan_schema

# Which rules made a hash. It is part of what is hashed, so hashes of two versions are never equal. It must change when
# a default changes or when what counts changes; 1 was called `experiment` and left out `tasks.used`.
VERSION = 2
# How a phase's members are laid over the plan's. An engine that says nothing (``run.overlay`` of a record) has rule 1.
OVERLAY = 2
# Members that say where, how closely or under which name, not what.
_TARGET = ("use_existing", "striping")
_TASKS = ("pin", "used")
_NOT_OF_A_PHASE = ("id", "valid", "data_of", "operations_file", "open")


def plan_hash(
    document: Mapping[str, Any],
    processes: int | None,
    threads: int | None,
    nodes: int | None,
    overlay: int = OVERLAY,
) -> str:
    """Twelve hexadecimal digits that stand for plan and geometry: the processes and nodes that really took part, and
    the threads of each. `overlay` is the rule by which the engine that ran it laid phases over the plan. A document
    that is no valid plan (of a newer version, say) is hashed as it stands."""
    try:
        meant = document if overlay >= OVERLAY else _as_rule_1_read_it(document)
        what: Any = _canonical(Plan.from_document(meant, "the plan of the record"))
    except (UserError, ValueError, TypeError, KeyError, AttributeError):
        what = {"foreign": document, "overlay": overlay}
    return short_hash([f"sonde-plan-hash/{VERSION}", what, processes, threads, nodes])


def short_hash(what: Any, digits: int = 12) -> str:
    """Hash of a JSON-like value that does not depend on the order of members."""
    text = json.dumps(what, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _as_rule_1_read_it(document: Mapping[str, Any]) -> dict[str, Any]:
    """The plan as engines before rule 2 understood it: a phase that gave a transfer, and segments or a volume, but no
    block, took the plan's block away."""
    plan = copy.deepcopy(dict(document))
    for phase in plan["phases"]:
        own = phase.get("access", {})
        if "transfer" in own and "block" not in own and own.keys() & {"segments", "volume"}:
            own["block"] = own["transfer"]
    return plan


def _canonical(plan: Plan) -> Any:
    """Only what differs from a default, in base units, with each phase complete in itself."""
    schema = plan_schema()
    full = in_base_units(plan.resolved(), schema)
    calibrated = sorted(plan.document.get("calibrated", ()))
    for name in calibrated:
        _forget(full, name)
    members = schema["properties"]
    phases = full["phases"]
    seeds = _Seeds()
    paced = any("paced" in (one.get("backend"), one.get("meta", {}).get("backend")) for one in phases)
    return ({"calibrated": calibrated} if calibrated else {}) | {
        "target": _unusual({name: full["target"].get(name) for name in _TARGET}, members["target"]),
        "tasks": _unusual({name: full["tasks"][name] for name in _TASKS if name in full["tasks"]}, members["tasks"]),
        "data": _data(full.get("data", {}), paced),
        "phases": [_phase(one, position, phases, seeds) for position, one in enumerate(phases)],
    }


def _forget(full: dict[str, Any], name: str) -> None:
    """Takes a calibrated member out, of the plan and of every phase: it says how much, not what."""
    _, table, member = name.split(".")
    for owner in (full.get("data", {}), *full["phases"]):
        if member in owner.get(table, {}):
            owner[table] = _without(owner[table], member)


def _data(data: Mapping[str, Any], paced: bool) -> Any:
    """What all phases share; the rest stands in each of them. A plan about names has none."""
    files = {name: value for name, value in data.get("files", {}).items() if name not in ("name", "suffix")}
    for name in ("paths", "across"):
        if name in files:
            files[name] = len(files[name])  # how many, not where
    shared = {"files": files, "payload": _without(data.get("payload", {}), "seed")}
    if paced:
        shared["paced"] = data.get("paced", {})
    return _unusual(shared, plan_schema()["properties"]["data"])


class _Seeds:
    """Numbers for seeds, by first appearance."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, int]] = {}

    def number(self, kind: str, seed: int) -> int:
        known = self._known.setdefault(kind, {})
        return known.setdefault(seed, len(known))


def _phase(phase: Mapping[str, Any], position: int, phases: list[dict[str, Any]], seeds: _Seeds) -> dict[str, Any]:
    members = plan_schema()["properties"]
    kept = _without(phase, *_NOT_OF_A_PHASE)
    if phase["op"] == "write":
        kept["open"] = phase["open"]
    if "operations_file" in phase:
        kept["operations_file"] = True  # it costs time; where it lies does not
    if "data_of" in phase:  # by distance: phases may be renamed without becoming other work
        names = [one["id"] for one in phases]
        kept["data_of"] = position - names.index(phase["data_of"]) if phase["data_of"] in names else phase["data_of"]
    kept["before"] = [_without(one, "need", "max_resident") for one in phase.get("before", ())]
    kept["shift"] = _chosen(phase["shift"], phase["shift"]["by"] in ("random", "permute"), "shift", seeds)
    kept = dict(_unusual(kept, members["phases"]["items"]))
    if "access" in phase:
        random = phase["access"]["order"].startswith("random") or phase["op"] == "mixed"
        access = _chosen(phase["access"], random, "access", seeds)
        data = members["data"]["properties"]
        kept |= {"access": _unusual(access, data["access"]), "io": _unusual(phase["io"], data["io"])}
    if "meta" in phase:
        kept["meta"] = _meta(phase["meta"], seeds)
    return kept


def _meta(meta: Mapping[str, Any], seeds: _Seeds) -> Any:
    kept = _without(meta, *(() if meta["backend"] == "paced" else ("paced",)))
    kept["payload"] = _without(meta["payload"], "seed")
    kept["select"] = _chosen(meta["select"], meta["select"]["order"] != "creation", "select", seeds)
    if "newer_than_file" in kept.get("find", {}):
        kept["find"] = {**kept["find"], "newer_than_file": "some file"}
    return _unusual(kept, plan_schema()["properties"]["meta"])


def _chosen(table: Mapping[str, Any], random: bool, kind: str, seeds: _Seeds) -> dict[str, Any]:
    """The table with the number of its seed, or without one where nothing is drawn."""
    kept = _without(table, "seed")
    return kept | {"drawn": seeds.number(kind, int(table["seed"]))} if random else kept


def _without(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in names}


def _unusual(value: Any, schema: Mapping[str, Any]) -> Any:
    """`value` without the members that say what the schema says anyway: a member that a later version adds does not
    change the hash of plans that leave it out."""
    if isinstance(value, list):
        return [_unusual(one, schema.get("items", {})) for one in value]
    if not isinstance(value, Mapping):
        return value
    kept = {}
    for name, one in value.items():
        own = schema.get("properties", {}).get(name, {})
        less = _unusual(one, own)
        default = in_base_units(own["default"], own) if "default" in own else None
        if less not in ({}, [], None) and less != default:
            kept[name] = less
    return kept
