# SPDX-License-Identifier: Apache-2.0
"""Which operations there are, and which of them move data, write it, work on names or on trees."""

from __future__ import annotations

from sonde.model import operations
from sonde.model.limits import COLD, SHORTEST_FILES_S, SHORTEST_S, SUSTAINED_S
from sonde.model.operations import OPERATIONS, Operation

DATA = {"write", "rewrite", "read", "reread", "read_only", "mixed", "duplex"}
TREES = {"mktree", "create", "stat", "open_close", "read", "readdir", "walk", "rename", "remove", "cycle", "rmtree"}


def test_every_operation_is_in_the_kinds_that_it_belongs_to() -> None:
    assert DATA == operations.MOVING
    assert {"stat", "read", "remove"} == operations.ON_BOTH
    assert TREES - {"stat", "read", "remove"} == operations.TREE_ONLY
    assert {"write", "rewrite", "mixed", "duplex"} == operations.WRITING
    assert {"write", "rewrite"} == operations.ONLY_WRITING
    assert {"read", "reread", "read_only"} == operations.ONLY_READING
    assert TREES - {"read"} == operations.NAMES
    assert {"mktree", "create", "rename", "remove", "cycle", "rmtree"} == operations.CHANGING_NAMES
    assert {"mktree", "readdir", "rmtree"} == operations.ON_DIRECTORIES
    assert {"mktree", "rmtree"} == operations.OF_DIRECTORIES


def test_what_an_operation_is_about_and_what_it_leaves_behind() -> None:
    told = {(one.name, one.on): one.effect for one in OPERATIONS}
    assert told == {(name, "data"): "moves" for name in DATA} | {
        ("stat", "file"): "looks", ("remove", "file"): "removes", ("mktree", "directory"): "makes",
        ("create", "item"): "makes", ("stat", "item"): "looks", ("open_close", "item"): "looks",
        ("read", "item"): "looks", ("readdir", "directory"): "looks", ("walk", "tree"): "looks",
        ("rename", "item"): "renames", ("remove", "item"): "removes", ("cycle", "item"): "turns over",
        ("rmtree", "directory"): "removes",
    }  # fmt: skip
    assert len(OPERATIONS) == len(told)
    assert not any(one.reads or one.writes for one in OPERATIONS if one.on != "data")
    assert Operation("x", "item", "looks") == Operation("x", "item", "looks", reads=False, writes=False)


def test_a_rate_of_storage_lasts_and_is_cold() -> None:
    """A second half of a second is trusted, a file system of caches is emptied after fifty."""
    assert (SHORTEST_S, SHORTEST_FILES_S, SUSTAINED_S, COLD) == (0.5, 0.1, 50.0, 0.01)
