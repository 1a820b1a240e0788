# SPDX-License-Identifier: Apache-2.0
"""Rules that every file of the repository satisfies."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Trees that hold no sources of ours: build outputs, environments, what tools leave behind.
IGNORED_FOLDERS = {"build", "dist", "sonde-archive", "__pycache__", "data"}
CODE = {".cpp", ".hpp", ".py", ".cmake", ".toml", ".cff"}
LONGEST_FILE = 400  # lines
# Longer files, with their limit and the reason.
LONGER_FILES = {
    "lab/sonde/model/confined_files.py": (450, "the only module that writes files, reviewed as a whole"),
    "tests/preload/programs/same/process.c": (420, "one program with all scenarios of a process"),
}


def repository() -> list[Path]:
    """All files of ours, relative to the root."""
    paths = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [
            name for name in inner if name not in IGNORED_FOLDERS and (not name.startswith(".") or name == ".ci")
        ]
        paths += [(Path(folder) / name).relative_to(ROOT) for name in names if not name.endswith(".egg-info")]
    return sorted(paths)


def is_script(path: Path) -> bool:
    """A file without an ending that starts with #!."""
    return path.suffix == "" and (ROOT / path).read_bytes()[:2] == b"#!"


def test_structure_tests_see_the_files_of_the_repository() -> None:
    assert len(repository()) > 100


def test_source_files_are_short() -> None:
    lines = {
        str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines())
        for path in repository()
        if path.suffix in {".py", ".cpp", ".hpp", ".c", ".h"}
    }
    limits = {path: limit for path, (limit, _) in LONGER_FILES.items()}
    assert [f"{path}: {count}" for path, count in lines.items() if count > limits.get(path, LONGEST_FILE)] == []
    assert [path for path in limits if lines.get(path, 0) <= LONGEST_FILE] == []


def test_no_file_name_is_generic() -> None:
    """A file is named by its topic. These words are what people write when they have not found one."""
    empty = {"util", "utils", "utility", "utilities", "common", "misc", "helper", "helpers", "manager", "managers"}
    wrong = [str(path) for path in repository() if any(set(re.split(r"[-_.]", part)) & empty for part in path.parts)]
    assert wrong == []


def test_every_source_names_its_licence_first() -> None:
    wrong = []
    for path in repository():
        if path.suffix in CODE or path.name in ("CMakeLists.txt", "Makefile") or is_script(path):
            lines = (ROOT / path).read_text(encoding="utf-8").split("\n", 2)
            first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
            if "SPDX-License-Identifier: Apache-2.0" not in first:
                wrong.append(str(path))
    assert wrong == []


def test_scripts_can_be_run() -> None:
    wrong = [str(path) for path in repository() if is_script(path) and not os.access(ROOT / path, os.X_OK)]
    assert wrong == []


def test_text_ends_with_one_newline_without_tabs_or_blanks() -> None:
    wrong = []
    for path in repository():
        if path.suffix not in CODE | {".md", ".json", ".ndjson", ".txt", ".sh"} and not is_script(path):
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            wrong.append(f"{path}: end of file")
        if re.search(r"[ \t]+$", text, re.MULTILINE):
            wrong.append(f"{path}: blanks at the end of a line")
        if "\r" in text:
            wrong.append(f"{path}: carriage return")
    assert wrong == []


def test_files_in_the_test_order_exist() -> None:
    tree = ast.parse((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    lists = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)]
    names_listed = [ast.literal_eval(element) for node in lists for element in node.value.elts]  # type: ignore[attr-defined]
    assert len(lists) == 7
    assert [name for name in names_listed if not (ROOT / "tests" / name).exists()] == []
