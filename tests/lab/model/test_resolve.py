# SPDX-License-Identifier: Apache-2.0
"""What a plan means with nothing left to a default: the rules that no schema can say, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.resolve import data_of, directories, holders, laid_over, meta_of, on_tree, resolved

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
    assert directories(TREE | tree) == every
    assert holders(TREE | tree) == holding


def tree_of(**members: Any) -> dict[str, Any]:
    found: dict[str, Any] = meta_of({"meta": {"tree": TREE | members}}, {"id": "c", "op": "create"})["tree"]
    return found


def test_items_of_a_task_become_items_of_each_directory_that_holds_some() -> None:
    found = tree_of(items_per_task=180, leaf_only=True, copies=2)
    assert (found["items_per_dir"], "items_per_task" in found) == (10, False)
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
def test_a_phase_works_on_names_where_its_operation_or_the_plan_says_so(
    op: str, on: str | None, tables: dict[str, Any], tree: bool
) -> None:
    phase = {"id": "p", "op": op} | ({"on": on} if on else {})
    assert on_tree(tables, phase) is tree


def test_what_a_phase_says_takes_away_what_cannot_stand_beside_it() -> None:
    schema = {"properties": {"volume": {"instead_of": ["segments"]}, "segments": {"instead_of": ["volume"]}, "x": {}}}
    assert laid_over({"segments": 4, "x": 1}, {"volume": "1GiB"}, schema) == {"x": 1, "volume": "1GiB"}
    assert laid_over({"segments": 4, "x": 1}, {"x": 2}, schema) == {"segments": 4, "x": 2}
    assert laid_over({}, {}, schema) == {}


def test_data_of_a_phase_lie_over_those_of_the_plan_member_by_member() -> None:
    plan = {"data": {"access": {"transfer": "64KiB", "segments": 4}, "files": {"mapping": "per_task"}}}
    found = data_of(plan, {"id": "w", "op": "write", "access": {"transfer": "1MiB"}, "suffix": "b"})
    assert (found["access"]["transfer"], found["access"]["block"], found["access"]["segments"]) == ("1MiB", "1MiB", 4)
    assert (found["files"]["mapping"], found["files"]["suffix"]) == ("per_task", "b")
    one = data_of({}, {"id": "w", "op": "write"})["access"]
    assert (one["segments"], one["block"] == one["transfer"]) == (1, True)
    volume = data_of({}, {"id": "w", "op": "write", "access": {"volume": "1GiB"}})["access"]
    assert "segments" not in volume


def test_a_rate_is_a_schedule_of_one_step_and_another_schedule_takes_its_place() -> None:
    plan = {"data": {"paced": {"rate": "10MB/s"}}}
    assert data_of(plan, {"id": "w", "op": "write"})["paced"]["schedule"] == [{"at": 0, "rate": "10MB/s"}]
    below = {"meta": {"paced": {"rate": "10op/s", "seed": 3}}}
    found = meta_of(below, {"id": "c", "op": "create", "meta": {"paced": {"rate": "20op/s"}}})["paced"]
    assert found["schedule"] == [{"at": 0, "rate": "20op/s"}]
    assert found.get("seed") != 3, "a pace is one schedule: half of another would be none"


def lookup(**meta: Any) -> dict[str, Any]:
    found: dict[str, Any] = meta_of({"meta": meta}, {"id": "s", "op": "stat"})["lookup"]
    return found


def test_fields_are_one_by_one_and_each_entry_is_looked_at_but_for_a_search() -> None:
    every = lookup(lookup={"fields": ["all"]})["fields"]
    assert "btime" in every
    assert lookup()["fields"] == [name for name in every if name != "btime"]
    assert lookup(lookup={"fields": [every[2], every[0], every[2]]})["fields"] == [every[0], every[2]]
    assert lookup()["each_entry"] is True
    assert lookup(find={"name": "*.a"})["each_entry"] is False
    assert lookup(find={"name": "*.a"}, lookup={"each_entry": True})["each_entry"] is True


def test_one_size_that_is_looked_for_is_the_smallest_and_the_largest() -> None:
    found = meta_of({"meta": {"find": {"size": "4KiB"}}}, {"id": "s", "op": "find"})["find"]
    assert (found["size_min"], found["size_max"], "size" in found) == ("4KiB", "4KiB", False)


def test_writes_begin_with_empty_files_and_reads_with_those_that_are_there() -> None:
    plan = {"id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]}
    write, read = resolved(plan)["phases"]
    assert (write["open"], read["open"]) == ("truncate", "overwrite")
    assert write["before"] == read["before"] == []
    assert "on" not in write
    assert "data" in resolved(plan)
    names = {
        "id": "p",
        "target": {"path": "/x"},
        "meta": {},
        "phases": [{"id": "s", "op": "stat", "open": "overwrite"}],
    }
    full = resolved(names)
    assert (full["phases"][0]["on"], "data" in full) == ("meta", False)
