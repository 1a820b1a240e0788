# SPDX-License-Identifier: Apache-2.0
"""What a phase can do, one row an operation, as the engine's table has it (``engine/plan/operations.hpp``).

Everything in the lab that treats kinds of operations differently asks here; a test holds the rows to the engine's and
the names to ``schema/plan``. ``stat``, ``read`` and ``remove`` are of both: on files of data and on items of a tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

On = Literal["data", "file", "item", "directory", "tree"]
Effect = Literal["moves", "looks", "makes", "renames", "removes", "turns over"]


@dataclass(frozen=True)
class Operation:
    """`on` is what one call is about: bytes of a data file, such a file by its name, or in a tree one item, one
    directory, or whatever is found. `effect` is what it leaves behind; `reads` and `writes` are about data files."""

    name: str
    on: On
    effect: Effect
    reads: bool = False
    writes: bool = False


OPERATIONS = (
    Operation("write", "data", "moves", writes=True),
    Operation("rewrite", "data", "moves", writes=True),
    Operation("read", "data", "moves", reads=True),
    Operation("reread", "data", "moves", reads=True),
    Operation("read_only", "data", "moves", reads=True),
    Operation("mixed", "data", "moves", reads=True, writes=True),
    Operation("duplex", "data", "moves", reads=True, writes=True),
    Operation("stat", "file", "looks"),
    Operation("remove", "file", "removes"),
    Operation("mktree", "directory", "makes"),
    Operation("create", "item", "makes"),
    Operation("stat", "item", "looks"),
    Operation("open_close", "item", "looks"),
    Operation("read", "item", "looks"),
    Operation("readdir", "directory", "looks"),
    Operation("walk", "tree", "looks"),
    Operation("rename", "item", "renames"),
    Operation("remove", "item", "removes"),
    Operation("cycle", "item", "turns over"),
    Operation("rmtree", "directory", "removes"),
)

_ON_DATA = frozenset(one.name for one in OPERATIONS if one.on in ("data", "file"))
_ON_TREES = frozenset(one.name for one in OPERATIONS if one.on not in ("data", "file"))

ON_BOTH = _ON_DATA & _ON_TREES
"""On files of data or on a tree, as the plan says."""
TREE_ONLY = _ON_TREES - _ON_DATA
"""On a tree, whatever the plan says."""
MOVING = frozenset(one.name for one in OPERATIONS if one.on == "data")
"""Moves bytes of data files."""
WRITING = frozenset(one.name for one in OPERATIONS if one.writes)
"""Writes bytes of data files, alone or beside reads."""
ONLY_WRITING = frozenset(one.name for one in OPERATIONS if one.writes and not one.reads)
ONLY_READING = frozenset(one.name for one in OPERATIONS if one.reads and not one.writes)
NAMES = frozenset(one.name for one in OPERATIONS) - MOVING
"""Works on names; moves no bytes that a rate in bytes would count."""
CHANGING_NAMES = frozenset(one.name for one in OPERATIONS if one.name in NAMES and one.effect not in ("moves", "looks"))
"""Makes, renames or removes names."""
ON_DIRECTORIES = frozenset(one.name for one in OPERATIONS if one.on == "directory")
OF_DIRECTORIES = frozenset(one.name for one in OPERATIONS if one.on == "directory" and one.effect != "looks")
"""Makes or removes whole trees of directories: what it counts are directories."""
