# SPDX-License-Identifier: Apache-2.0
"""The package compiles the files of one folder as one: what two of them keep to themselves needs two names."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("engine", "tests/engine", "preload", "simulate", "tests/simulate")
SEPARATE_FOLDERS = {"backends", "intercept"}  # which cmake/unity.cmake and preload/CMakeLists.txt leave out

_TYPE = re.compile(r"(?:enum class|class|struct|enum|union) (\w+)")
_OTHER = re.compile(r"[^(={]*?([A-Za-z_]\w*)\s*(?:\[[^\]]*\])*\s*(\(.*|=|\{|;)")


def own_names(text: str) -> set[tuple[str, str]]:
    """Names at the outer level of unnamed namespaces, each with the parameters if it is a function.

    Relies on the layout of tools/format: what is declared at that level begins at the margin.
    """
    names_found: set[tuple[str, str]] = set()
    open_namespaces: list[bool] = []
    for line in text.split("\n"):
        if opened := re.match(r"(?:inline )?namespace ?([\w:]*) ?\{", line):
            open_namespaces.append(opened[1] == "")
        elif line.startswith("}  // namespace") and open_namespaces:
            open_namespaces.pop()
        elif any(open_namespaces) and re.match(r"[A-Za-z\[]", line) and not line.startswith("using "):
            plain = re.sub(r"^(\[\[.*?\]\] ?|template <.*?> ?)+", "", line)
            if match := _TYPE.match(plain):
                names_found.add((match[1], ""))
            elif (match := _OTHER.match(plain)) and match[1] not in ("TEST_CASE", "static_assert", "__attribute__"):
                names_found.add((match[1], match[2] if match[2].startswith("(") else ""))
    return names_found


def find_name_clashes(files: dict[str, str]) -> list[str]:
    """Names that two files of one folder have for themselves; `files` maps names to texts."""
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, text in files.items():
        for identifier in own_names(text):
            owners[identifier].append(name)
    return [f"{name[0]}: {', '.join(sorted(names))}" for name, names in sorted(owners.items()) if len(names) > 1]


@pytest.mark.parametrize("part", PARTS)
def test_local_names_are_unique_within_a_folder(part: str) -> None:
    folders: defaultdict[Path, dict[str, str]] = defaultdict(dict)
    for path in sorted((ROOT / part).rglob("*.cpp")):
        # Programs of their own, and what is built into the MPI modules.
        if path.parent.name not in SEPARATE_FOLDERS and not re.search(
            r"_probe\.cpp$|mpi_(module|file|waiting)\.cpp$", path.name
        ):
            folders[path.parent][path.name] = path.read_text(encoding="utf-8")
    wrong = [
        f"{folder.relative_to(ROOT)}: {clash}"
        for folder, files in folders.items()
        for clash in find_name_clashes(files)
    ]
    assert wrong == [], "rename one of each, or keep it once for both"


def test_clash_is_detected_and_an_overload_is_accepted() -> None:
    first = "namespace sonde {\nnamespace {\n\nconstexpr int most = 3;\nint size(int a) {\n    int inner = 0;\n}\n"
    same = "namespace {\n\nstruct most {\n    int a;\n};\n[[noreturn]] void size(char b) {\n}\n\n}  // namespace\n"
    same += "int size(int a) {\n"
    assert find_name_clashes({"a.cpp": first, "b.cpp": same}) == ["most: a.cpp, b.cpp"]
    assert find_name_clashes({"a.cpp": first, "b.cpp": first}) == ["most: a.cpp, b.cpp", "size: a.cpp, b.cpp"]
