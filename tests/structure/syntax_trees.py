# SPDX-License-Identifier: Apache-2.0
"""Syntax trees of Python files: each file is parsed once for all tests of a process."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def parse_python(path: Path) -> ast.Module:
    """The syntax tree of a file, hidden from the garbage collector, which would walk all trees again and again."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        gc.enable()


@cache
def list_nodes(tree: ast.Module) -> list[ast.AST]:
    """All nodes of a tree in the order of ast.walk, which takes several times as long as a walk of the list."""
    return list(ast.walk(tree))
