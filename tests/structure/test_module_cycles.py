# SPDX-License-Identifier: Apache-2.0
"""No module depends on itself through others.

In C++ a header and its source are one module; in Python imports inside of functions and under TYPE_CHECKING count too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from syntax_trees import list_nodes, parse_python

ROOT = Path(__file__).resolve().parents[2]
Graph = Mapping[str, set[str]]


def cpp_graph(part: str) -> Graph:
    """Modules of a part (path without suffix) and the modules whose headers they include."""
    graph: dict[str, set[str]] = {}
    for path in sorted((ROOT / part).rglob("*.[ch]pp")):
        graph.setdefault(path.relative_to(ROOT).with_suffix("").as_posix(), set())
    for path in sorted((ROOT / part).rglob("*.[ch]pp")):
        module = path.relative_to(ROOT).with_suffix("").as_posix()
        for header in re.findall(r'(?m)^\s*#\s*include "([^"]+)\.hpp"', path.read_text(encoding="utf-8")):
            graph[module] |= {f"{part}/{header}"} & graph.keys() - {module}
    return graph


def python_graph(package: Path) -> Graph:
    """Modules of a package and the modules that they import. The package itself is left out: it only re-exports."""
    files = {path.relative_to(package.parent).with_suffix(""): path for path in sorted(package.rglob("*.py"))}
    names = {".".join(part for part in name.parts if part != "__init__"): path for name, path in files.items()}
    graph: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for node in list_nodes(parse_python(path)):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & names.keys()
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names} & names.keys()
                graph[name] |= inner or {node.module} & names.keys()
        graph[name] -= {name, package.name}
    return graph


def cycles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module (R. Tarjan, 1972), each in order of names."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            component = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(component) > 1:
                components.append(sorted(component))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return sorted(components)


@pytest.mark.parametrize("part", ["engine", "preload", "simulate"])
def test_cpp_modules_have_no_cycle(part: str) -> None:
    graph = cpp_graph(part)
    assert len(graph) > 25
    assert any(graph.values())
    assert cycles(graph) == []


def test_lab_modules_have_no_cycle() -> None:
    graph = python_graph(ROOT / "lab" / "sonde")
    assert len(graph) > 300
    assert cycles(graph) == []


def test_cycle_is_detected() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}
    assert cycles(graph) == [["a", "b", "c"]]
    assert cycles({"a": {"b"}, "b": set()}) == []
