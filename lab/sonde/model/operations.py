# SPDX-License-Identifier: Apache-2.0
"""Operations of a phase, one row each, equal to the engine's table (``engine/plan/operations.hpp``).

The lab distinguishes kinds of operations only through these sets. A test compares the rows with the engine's and the
names with ``schema/plan``. ``stat``, ``read`` and ``remove`` exist for data files and for items of a tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OperationObject = Literal["data", "file", "item", "directory", "tree"]
Effect = Literal["transfers", "inspects", "creates", "renames", "removes", "replaces"]


@dataclass(frozen=True)
class OperationKind:
    """`acts_on` is what one operation works on: bytes of a data file, a data file by name, or in a tree an item, a
    directory or the whole tree. `effect` is its effect on that; `reads` and `writes` refer to bytes of data files."""

    name: str
    acts_on: OperationObject
    effect: Effect
    reads: bool = False
    writes: bool = False


OPERATIONS = (
    OperationKind("write", "data", "transfers", writes=True),
    OperationKind("rewrite", "data", "transfers", writes=True),
    OperationKind("read", "data", "transfers", reads=True),
    OperationKind("reread", "data", "transfers", reads=True),
    OperationKind("read_only", "data", "transfers", reads=True),
    OperationKind("mixed", "data", "transfers", reads=True, writes=True),
    OperationKind("duplex", "data", "transfers", reads=True, writes=True),
    OperationKind("replay", "data", "transfers", reads=True, writes=True),
    OperationKind("train", "data", "transfers", reads=True),
    OperationKind("stat", "file", "inspects"),
    OperationKind("remove", "file", "removes"),
    OperationKind("mktree", "directory", "creates"),
    OperationKind("create", "item", "creates"),
    OperationKind("stat", "item", "inspects"),
    OperationKind("open_close", "item", "inspects"),
    OperationKind("read", "item", "inspects"),
    OperationKind("readdir", "directory", "inspects"),
    OperationKind("walk", "tree", "inspects"),
    OperationKind("rename", "item", "renames"),
    OperationKind("remove", "item", "removes"),
    OperationKind("cycle", "item", "replaces"),
    OperationKind("rmtree", "directory", "removes"),
)

_DATA_OPS = frozenset(operation.name for operation in OPERATIONS if operation.acts_on in ("data", "file"))
_TREE_OPS = frozenset(operation.name for operation in OPERATIONS if operation.acts_on not in ("data", "file"))

DATA_OR_TREE_OPS = _DATA_OPS & _TREE_OPS
"""On data files or on a tree, depending on the plan."""
TREE_ONLY_OPS = _TREE_OPS - _DATA_OPS
"""Only on a tree."""
TRANSFER_OPS = frozenset(operation.name for operation in OPERATIONS if operation.acts_on == "data")
"""Transfers bytes of data files."""
WRITE_OPS = frozenset(operation.name for operation in OPERATIONS if operation.writes)
"""Writes bytes of data files, possibly together with reads."""
WRITE_ONLY_OPS = frozenset(operation.name for operation in OPERATIONS if operation.writes and not operation.reads)
READ_ONLY_OPS = frozenset(operation.name for operation in OPERATIONS if operation.reads and not operation.writes)
METADATA_OPS = frozenset(operation.name for operation in OPERATIONS) - TRANSFER_OPS
"""Metadata operations; they have no rate in bytes."""
NAMESPACE_CHANGING_OPS = frozenset(
    operation.name
    for operation in OPERATIONS
    if operation.name in METADATA_OPS and operation.effect not in ("transfers", "inspects")
)
"""Creates, renames or removes names."""
DIRECTORY_OPS = frozenset(operation.name for operation in OPERATIONS if operation.acts_on == "directory")
DIRECTORY_CHANGING_OPS = frozenset(
    operation.name for operation in OPERATIONS if operation.acts_on == "directory" and operation.effect != "inspects"
)
"""Creates or removes directory trees; counts directories."""
