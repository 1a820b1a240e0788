# SPDX-License-Identifier: Apache-2.0
"""tools/new-backend makes a backend that compiles and is in the list; it never overwrites one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def source_copy(tmp_path: Path) -> Path:
    """The part of the repository that the script touches."""
    shutil.copytree(ROOT / "engine", tmp_path / "engine")
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "new-backend", tmp_path / "tools")
    return tmp_path


def new_backend(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["tools/new-backend", *arguments], cwd=root, capture_output=True, text=True, check=False)


def test_new_backend_is_registered_and_compiles(source_copy: Path) -> None:
    done = new_backend(source_copy, "object_store")
    assert done.returncode == 0, done.stderr
    backend_file = source_copy / "engine" / "backends" / "object_store.cpp"
    text = backend_file.read_text(encoding="utf-8")
    assert '.name = "object_store"' in text
    assert "class ObjectStoreChannel" in text
    assert not re.search(r"\bnull\b|NullChannel|null_backend", text)
    list_text = (source_copy / "engine" / "backends" / "list.cpp").read_text(encoding="utf-8")
    assert len(re.findall("object_store_backend", list_text)) == 2
    assert len(re.findall("null_backend", list_text)) == 2
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    for file in (backend_file, source_copy / "engine" / "backends" / "list.cpp"):
        command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Iengine", str(file)]
        compiled = subprocess.run(command, cwd=source_copy, capture_output=True, text=True, check=False)
        assert compiled.returncode == 0, compiled.stderr


@pytest.mark.parametrize("name", ["posix", "null", "", "Upper", "a-b", "../x", "9p"])
def test_duplicate_or_invalid_backend_name_changes_nothing(source_copy: Path, name: str) -> None:
    before = {path: path.read_bytes() for path in source_copy.rglob("*") if path.is_file()}
    done = new_backend(source_copy, name)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in source_copy.rglob("*") if path.is_file()} == before
