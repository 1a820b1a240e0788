# SPDX-License-Identifier: Apache-2.0
"""Which operations there are, and which of them move data, write it, work on names or on trees."""

from __future__ import annotations

from sonde.model import operations
from sonde.model.limits import MAX_RESIDENCY_OF_COLD_FILE, MIN_PHASE_S, MIN_SMALL_FILE_PHASE_S, MIN_SUSTAINED_S
from sonde.model.operations import OPERATIONS, OperationKind

DATA = {"write", "rewrite", "read", "reread", "read_only", "mixed", "duplex", "replay", "train"}
TREES = {"mktree", "create", "stat", "open_close", "read", "readdir", "walk", "rename", "remove", "cycle", "rmtree"}


def test_operation_sets_have_their_members() -> None:
    assert DATA == operations.TRANSFER_OPS
    assert {"stat", "read", "remove"} == operations.DATA_OR_TREE_OPS
    assert TREES - {"stat", "read", "remove"} == operations.TREE_ONLY_OPS
    assert {"write", "rewrite", "mixed", "duplex", "replay"} == operations.WRITE_OPS
    assert {"write", "rewrite"} == operations.WRITE_ONLY_OPS
    assert {"read", "reread", "read_only", "train"} == operations.READ_ONLY_OPS
    assert TREES - {"read"} == operations.METADATA_OPS
    assert {"mktree", "create", "rename", "remove", "cycle", "rmtree"} == operations.NAMESPACE_CHANGING_OPS
    assert {"mktree", "readdir", "rmtree"} == operations.DIRECTORY_OPS
    assert {"mktree", "rmtree"} == operations.DIRECTORY_CHANGING_OPS


def test_each_operation_has_its_object_and_effect() -> None:
    effects = {(operation.name, operation.acts_on): operation.effect for operation in OPERATIONS}
    assert effects == {(name, "data"): "transfers" for name in DATA} | {
        ("stat", "file"): "inspects", ("remove", "file"): "removes", ("mktree", "directory"): "creates",
        ("create", "item"): "creates", ("stat", "item"): "inspects", ("open_close", "item"): "inspects",
        ("read", "item"): "inspects", ("readdir", "directory"): "inspects", ("walk", "tree"): "inspects",
        ("rename", "item"): "renames", ("remove", "item"): "removes", ("cycle", "item"): "replaces",
        ("rmtree", "directory"): "removes",
    }  # fmt: skip
    assert len(OPERATIONS) == len(effects)
    assert not any(operation.reads or operation.writes for operation in OPERATIONS if operation.acts_on != "data")
    assert OperationKind("x", "item", "inspects") == OperationKind("x", "item", "inspects", reads=False, writes=False)


def test_storage_rate_limits_are_pinned() -> None:
    """A second half of a second is trusted, a file system of caches is emptied after fifty."""
    assert (MIN_PHASE_S, MIN_SMALL_FILE_PHASE_S, MIN_SUSTAINED_S, MAX_RESIDENCY_OF_COLD_FILE) == (0.5, 0.1, 50.0, 0.01)
