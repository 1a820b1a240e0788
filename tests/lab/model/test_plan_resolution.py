# SPDX-License-Identifier: Apache-2.0
"""Resolution of plans: the rules that no schema can express, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.plan_resolution import (
    convert_to_base_units,
    count_directories,
    count_item_directories,
    fill_defaults,
    find_table_schema,
    is_tree_phase,
    override_members,
    resolve_data,
    resolve_meta,
    resolve_plan,
)

TREE: dict[str, Any] = {"branching": 3, "depth": 2, "leaf_only": False, "copies": 1}


@pytest.mark.parametrize(
    ("tree", "every", "holding"),
    [
        ({}, 13, 13),
        ({"leaf_only": True}, 13, 9),
        ({"leaf_only": True, "copies": 2}, 13, 18),
        ({"copies": 4}, 13, 52),
        ({"branching": 1}, 3, 3),
        ({"branching": 1, "depth": 5, "leaf_only": True}, 6, 1),
        ({"depth": 0}, 1, 1),
        ({"branching": 2, "depth": 3}, 15, 15),
    ],
)
def test_a_tree_has_as_many_directories_as_its_branches_make(tree: dict[str, Any], every: int, holding: int) -> None:
    assert count_directories(TREE | tree) == every
    assert count_item_directories(TREE | tree) == holding


def tree_of(**members: Any) -> dict[str, Any]:
    tree: dict[str, Any] = resolve_meta({"meta": {"tree": TREE | members}}, {"id": "c", "op": "create"})["tree"]
    return tree


def test_items_per_task_become_items_per_dir_if_even() -> None:
    tree = tree_of(items_per_task=180, leaf_only=True, copies=2)
    assert (tree["items_per_dir"], "items_per_task" in tree) == (10, False)
    assert tree_of(items_per_task=26)["items_per_dir"] == 2
    uneven = tree_of(items_per_task=25)
    assert (uneven["items_per_task"], "items_per_dir" in uneven) == (25, False)
    assert tree_of()["items_per_dir"] == 0
    assert tree_of(items_per_dir=7)["items_per_dir"] == 7


@pytest.mark.parametrize(
    ("op", "on", "tables", "tree"),
    [
        ("create", None, {"meta": {}}, True),
        ("write", None, {"meta": {}}, False),
        ("stat", None, {"meta": {}}, True),
        ("stat", None, {"meta": {}, "data": {}}, False),
        ("stat", None, {}, False),
        ("stat", "meta", {"meta": {}, "data": {}}, True),
        ("stat", "data", {"meta": {}}, False),
    ],
)
def test_tree_phase_follows_from_operation_or_plan(op: str, on: str | None, tables: dict[str, Any], tree: bool) -> None:
    phase = {"id": "p", "op": op} | ({"on": on} if on else {})
    assert is_tree_phase(tables, phase) is tree


def test_member_of_a_phase_replaces_its_alternative_in_the_plan() -> None:
    schema = {"properties": {"volume": {"instead_of": ["segments"]}, "segments": {"instead_of": ["volume"]}, "x": {}}}
    assert override_members({"segments": 4, "x": 1}, {"volume": "1GiB"}, schema) == {"x": 1, "volume": "1GiB"}
    assert override_members({"segments": 4, "x": 1}, {"x": 2}, schema) == {"segments": 4, "x": 2}
    assert override_members({}, {}, schema) == {}


def test_data_of_a_phase_override_the_plan_member_by_member() -> None:
    plan = {"data": {"access": {"transfer": "64KiB", "segments": 4}, "files": {"mapping": "per_task"}}}
    data = resolve_data(plan, {"id": "w", "op": "write", "access": {"transfer": "1MiB"}, "suffix": "b"})
    assert (data["access"]["transfer"], data["access"]["block"], data["access"]["segments"]) == ("1MiB", "1MiB", 4)
    assert (data["files"]["mapping"], data["files"]["suffix"]) == ("per_task", "b")
    access = resolve_data({}, {"id": "w", "op": "write"})["access"]
    assert (access["segments"], access["block"] == access["transfer"]) == (1, True)
    volume = resolve_data({}, {"id": "w", "op": "write", "access": {"volume": "1GiB"}})["access"]
    assert "segments" not in volume


def test_constant_rate_resolves_to_a_schedule_of_one_step() -> None:
    plan = {"data": {"paced": {"rate": "10MB/s"}}}
    assert resolve_data(plan, {"id": "w", "op": "write"})["paced"]["schedule"] == [{"at": 0, "rate": "10MB/s"}]
    below = {"meta": {"paced": {"rate": "10op/s", "seed": 3}}}
    meta = resolve_meta(below, {"id": "c", "op": "create", "meta": {"paced": {"rate": "20op/s"}}})["paced"]
    assert meta["schedule"] == [{"at": 0, "rate": "20op/s"}]
    assert meta.get("seed") != 3, "a pace is one schedule: half of another would be none"


def lookup(**meta: Any) -> dict[str, Any]:
    lookup: dict[str, Any] = resolve_meta({"meta": meta}, {"id": "s", "op": "stat"})["lookup"]
    return lookup


def test_field_groups_are_expanded_and_entries_looked_up() -> None:
    every = lookup(lookup={"fields": ["all"]})["fields"]
    assert "btime" in every
    assert lookup()["fields"] == [name for name in every if name != "btime"]
    assert lookup(lookup={"fields": [every[2], every[0], every[2]]})["fields"] == [every[0], every[2]]
    assert lookup()["examine_all"] is True
    assert lookup(find={"name": "*.a"})["examine_all"] is False
    assert lookup(find={"name": "*.a"}, lookup={"examine_all": True})["examine_all"] is True


def test_searched_size_sets_minimum_and_maximum() -> None:
    search = resolve_meta({"meta": {"find": {"size": "4KiB"}}}, {"id": "s", "op": "find"})["find"]
    assert (search["size_min"], search["size_max"], "size" in search) == ("4KiB", "4KiB", False)


def test_writes_truncate_files_and_reads_do_not() -> None:
    plan = {"id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]}
    write, read = resolve_plan(plan)["phases"]
    assert (write["open"], read["open"]) == ("truncate", "overwrite")
    assert write["before"] == read["before"] == []
    assert "on" not in write
    assert "data" in resolve_plan(plan)
    names = {
        "id": "p",
        "target": {"path": "/x"},
        "meta": {},
        "phases": [{"id": "s", "op": "stat", "open": "overwrite"}],
    }
    full = resolve_plan(names)
    assert (full["phases"][0]["on"], "data" in full) == ("meta", False)


def test_metadata_phase_overrides_backend_and_verification() -> None:
    plan = {"meta": {"backend": "mmap", "tree": TREE}}
    phase = {"id": "c", "op": "create", "backend": "null", "verify": "on_read", "access": {"transfer": 1}}
    meta = resolve_meta(plan, phase)
    assert (meta["backend"], meta["verify"], "access" in meta) == ("null", "on_read", False)
    assert (resolve_meta(plan, {"id": "c", "op": "create"})["backend"], resolve_meta({}, phase)["tree"]["depth"]) == (
        "mmap",
        0,
    )
    own_meta = resolve_meta(
        plan, {"id": "c", "op": "create", "meta": {"tree": {"depth": 5}, "sync": True, "verify": "both"}}
    )
    assert (own_meta["tree"]["depth"], own_meta["tree"]["branching"], own_meta["sync"], own_meta["verify"]) == (
        5,
        3,
        True,
        "both",
    )


def test_items_per_dir_and_items_per_task_replace_each_other() -> None:
    def tree(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
        phase = {"id": "c", "op": "create", "meta": {"tree": above}}
        return dict(resolve_meta({"meta": {"tree": below}}, phase)["tree"])

    assert tree({"items_per_task": 5}, {"items_per_dir": 7})["items_per_dir"] == 7
    assert tree({"items_per_dir": 7}, {"items_per_task": 5})["items_per_dir"] == 5


def test_a_resolved_phase_is_complete_in_itself() -> None:
    """A data phase has all its members; a phase on names has no data members."""
    plan: dict[str, Any] = {
        "id": "p", "target": {"path": "/x"}, "meta": {"tree": {"items_per_task": 4}},
        "data": {"backend": "mmap", "files": {"suffix": ".d"}},
        "phases": [
            {"id": "w", "op": "write", "io": {"direct": True}, "suffix": ".w"},
            {"id": "s", "op": "stat", "on": "meta", "meta": {"sync": True}},
            {"id": "t", "op": "stat", "before": [{"kind": "sync"}], "open": "exclusive"},
            {"id": "m", "op": "mktree"},
        ],
    }  # fmt: skip
    full = resolve_plan(plan)
    write, names, data, tree = full["phases"]
    assert (write["backend"], write["io"]["direct"], write["suffix"], write["verify"]) == ("mmap", True, ".w", "none")
    assert (write["access"]["block"], "on" in write, "meta" in write, "files" in write) == ("1MiB", False, False, False)
    assert (names["on"], names["meta"]["sync"], names["meta"]["tree"]["items_per_dir"]) == ("meta", True, 4)
    assert {"backend", "access", "io", "verify", "suffix"}.isdisjoint(names)
    assert (data["on"], data["suffix"], data["open"], data["barrier"]) == ("data", ".d", "exclusive", "phase")
    assert data["before"] == [{"kind": "sync", "need": "best_effort", "max_residency": 0.01}]
    assert ("on" in tree, "meta" in tree) == (False, True)
    assert full["target"] == {"path": "/x", "device": False, "keep": False, "use_existing": False, "min_free": "64MiB",
                              "keep_manifest": True}  # fmt: skip
    assert full["tasks"] == {"processes": 1, "threads": 1, "pin": False}
    assert full["observe"] == {"slice": "1ms", "max_slices": 512, "progress": "250ms"}
    assert (full["data"]["backend"], full["data"]["files"]["mapping"]) == ("mmap", "per_task")
    assert full["meta"] == {"tree": {"items_per_task": 4}}, "as it was written: it stands whole in each phase"
    assert plan["phases"][0] == {"id": "w", "op": "write", "io": {"direct": True}, "suffix": ".w"}


def test_defaults_fill_missing_members() -> None:
    members: dict[str, Any] = {
        "a": {"default": [1]},
        "b": {"properties": {"c": {"default": 2}}},
        "d": {"items": {"properties": {"e": {"default": 3}}}},
        "f": {"properties": {"g": {}}},
        "h": {"properties": {"i": {"default": 4}}, "minProperties": 1},
        "meta": {"properties": {"j": {"default": 5}}},
    }
    schema = {"properties": members}
    assert fill_defaults({}, schema) == {"a": [1], "b": {"c": 2}}
    resolved = {"a": 7, "b": {"c": 8}, "d": [{}, {"e": 9}, 1], "f": {}, "h": {}, "meta": {}, "z": 0}
    assert fill_defaults(resolved, schema) == resolved | {"d": [{"e": 3}, {"e": 9}, 1], "h": {"i": 4}, "meta": {"j": 5}}
    assert fill_defaults(3, schema) == 3
    first = fill_defaults({}, schema)
    first["a"].append(2)
    assert fill_defaults({}, schema)["a"] == [1], "a default is nobody's own"
    amount = {"$ref": "#/$defs/amount"}
    assert fill_defaults({"of": "node_memory"}, amount) == {"of": "node_memory", "x": 1, "per": "task"}
    assert fill_defaults("1GiB", amount) == "1GiB"
    assert find_table_schema("#/$defs/bytes") == {}
    assert find_table_schema("#/$defs/amount")["type"] == "object"


@pytest.mark.parametrize(
    ("value", "schema", "expected_base"),
    [
        ("4KiB", {"$ref": "#/$defs/bytes"}, 4096),
        ("2min", {"$ref": "#/$defs/duration"}, 120.0),
        ("1MB/s", {"$ref": "#/$defs/rate"}, 1e6),
        ("4KiB", {"$ref": "#/$defs/amount"}, 4096),
        ({"of": "bytes", "bytes": "4KiB"}, {"$ref": "#/$defs/amount"}, 4096),
        ({"of": "bytes", "bytes": "4KiB", "per": "task", "x": 1}, {"$ref": "#/$defs/amount"}, 4096),
        ({"of": "bytes", "bytes": "4KiB", "per": "node", "x": 1}, {"$ref": "#/$defs/amount"},
         {"of": "bytes", "bytes": 4096, "per": "node"}),
        ({"of": "bytes"}, {"$ref": "#/$defs/amount"}, {"of": "bytes"}),
        ({"of": "node_memory"}, {"$ref": "#/$defs/amount"}, {"of": "node_memory", "x": 1, "per": "task"}),
        ({"of": "node_memory", "x": 2, "per": "total", "bytes": 3}, {"$ref": "#/$defs/amount"},
         {"of": "node_memory", "x": 2, "per": "total"}),
        ({"a": "1s", "b": {}, "c": [], "d": None, "e": 0, "f": "x"},
         {"properties": {"a": {"$ref": "#/$defs/duration"}}}, {"a": 1.0, "e": 0, "f": "x"}),
        (["1s", "2s"], {"items": {"$ref": "#/$defs/duration"}}, [1.0, 2.0]),
        (["1s"], {}, ["1s"]),
        (7, {}, 7),
    ],
)  # fmt: skip
def test_base_unit_conversion_omits_empty_values(value: Any, schema: dict[str, Any], expected_base: Any) -> None:
    assert convert_to_base_units(value, schema) == expected_base
