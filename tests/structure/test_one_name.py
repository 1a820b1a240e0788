# SPDX-License-Identifier: Apache-2.0
"""A header and its source have one name: who has read a declaration knows where to read on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[2] / "engine"

# Sources whose declarations stand elsewhere, and why. A folder stands for all in it.
ALLOWED_LOCATIONS = {
    "backends/": "a backend is one value that the list names; their seam is backend.hpp",
    "dialects/": "a dialect is one value that the list names; their seams are dialect.hpp and each session's header",
    "main/": "what the program can be asked stands in commands.hpp",
    "workloads/moving.cpp": "the hot loops of data_stream.hpp",
    "workloads/plain_moves.cpp": "those of its hot loops that need least",
}
NOT_A_DEFINITION = (
    *("namespace", "using", "template", "extern", "static", "enum", "struct", "class", "constexpr"),
    *("#", "/", "}"),
)
DEFINITION = re.compile(
    r"(?:[A-Za-z_][^=;()]*?[\s*&])?((?:[A-Za-z_]\w*(?:<[^<>()]*>)?::)*~?[A-Za-z_]\w*)\("  # type, then name, then (
)


def definitions(source: str) -> Iterator[str]:
    """Functions and members (Class::name) that a source defines for others: what begins in the first column, outside of
    unnamed namespaces."""
    hidden = False
    for line in source.splitlines():
        if line == "namespace {":
            hidden = True
        elif line == "}  // namespace":
            hidden = False
        elif not hidden and not line.startswith(NOT_A_DEFINITION) and (match := DEFINITION.match(line)):
            yield re.sub(r"<[^<>]*>", "", match[1])


def find_undeclared_definitions(source: str, header: str) -> list[str]:
    """Definitions of a source that its header does not declare."""
    wrong = []
    for name in definitions(source):
        owner = name.split("::")[0]
        declared = rf"\b(?:class|struct|union)\s+(?:alignas\([^)]*\)\s+)?{owner}\b" if "::" in name else rf"\b{owner}\("
        if not re.search(declared, header):
            wrong.append(name)
    return wrong


def test_functions_are_declared_in_the_header_of_their_source() -> None:
    wrong, definition_count = [], 0
    for source in sorted(ENGINE.rglob("*.cpp")):
        name = source.relative_to(ENGINE).as_posix()
        if name.startswith(tuple(ALLOWED_LOCATIONS)):
            continue
        text = source.read_text(encoding="utf-8")
        header = source.with_suffix(".hpp")
        undeclared = find_undeclared_definitions(text, header.read_text(encoding="utf-8") if header.exists() else "")
        definition_count += len(list(definitions(text)))
        wrong += [f"{name} defines {definition}" for definition in undeclared]
    assert definition_count > 200
    assert wrong == []


def test_the_exceptions_are_still_needed() -> None:
    for name in ALLOWED_LOCATIONS:
        folder = ENGINE / name
        sources = sorted(folder.rglob("*.cpp")) if name.endswith("/") else [folder]
        assert any(
            find_undeclared_definitions(
                source.read_text(encoding="utf-8"), source.with_suffix(".hpp").read_text(encoding="utf-8")
            )
            if source.with_suffix(".hpp").exists()
            else list(definitions(source.read_text(encoding="utf-8")))
            for source in sources
        ), f"{name} needs no exception any more"


def test_a_definition_without_a_declaration_is_noticed() -> None:
    hidden = "namespace {\nint hidden(int x) {\n}\n}  // namespace\n"
    source = hidden + "Thing::Thing(int x) : x_(x) {\n}\nstd::string Thing::say() const {\n}\nint seen(int x) {\n}\n"
    assert list(definitions(source)) == ["Thing::Thing", "Thing::say", "seen"]
    assert find_undeclared_definitions(source, "class Thing {};\nint seen(int x);\n") == []
    assert find_undeclared_definitions(source, "int seen(int x);\n") == ["Thing::Thing", "Thing::say"]
    assert find_undeclared_definitions(source, "class Thing {};\n") == ["seen"]
