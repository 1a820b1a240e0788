# SPDX-License-Identifier: Apache-2.0
"""Which C++ sources clang-tidy reads in `.ci/run`: those that were changed last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import tidy  # noqa: E402

SOURCES = ["engine/files/manifest.cpp", "engine/plan/reader.cpp", "engine/runs/run.cpp", "preload/cache/pages.cpp"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A history whose second commit has one source, and whose first has the others and two headers."""
    run_git(tmp_path, "init", "-q")
    for file in (*SOURCES[:3], "engine/files/manifest.hpp", "engine/plan/limits.hpp"):
        write_file(tmp_path, file, '#include "plan/limits.hpp"\n' if file == "engine/runs/run.cpp" else "int x;\n")
    commit_all(tmp_path)
    write_file(tmp_path, SOURCES[3], "int x;\n")
    commit_all(tmp_path)
    return tmp_path


def run_git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def write_file(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def commit_all(root: Path) -> None:
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "files: change one")


def select(root: Path, count: int) -> list[str]:
    return tidy.select_newest_sources(tidy.list_changed_files(root), SOURCES, root, count)


def test_newest_commits_come_first(repository: Path) -> None:
    assert select(repository, 2) == ["preload/cache/pages.cpp", "engine/files/manifest.cpp"]
    assert sorted(select(repository, 9)) == SOURCES


def test_uncommitted_file_comes_before_commits(repository: Path) -> None:
    write_file(repository, "engine/plan/reader.cpp", "int changed;\n")
    assert select(repository, 2) == ["engine/plan/reader.cpp", "preload/cache/pages.cpp"]


def test_header_stands_for_its_source(repository: Path) -> None:
    write_file(repository, "engine/files/manifest.hpp", "int changed;\n")
    commit_all(repository)
    assert select(repository, 1) == ["engine/files/manifest.cpp"]


def test_header_without_a_source_stands_for_an_includer(repository: Path) -> None:
    write_file(repository, "engine/plan/limits.hpp", "int changed;\n")
    commit_all(repository)
    assert select(repository, 1) == ["engine/runs/run.cpp"]


def test_removed_and_unused_files_are_skipped(repository: Path) -> None:
    write_file(repository, "engine/plan/unused.hpp", "int x;\n")
    commit_all(repository)
    (repository / "engine/plan/unused.hpp").unlink()
    write_file(repository, "engine/new.cpp", "int x;\n")
    commit_all(repository)
    assert select(repository, 1) == ["preload/cache/pages.cpp"]


@pytest.mark.parametrize("arguments", [["--newest"], ["--newest", "-1"], ["--newest", "few"], ["--newest", "1", "2"]])
def test_invalid_count_is_one_sentence(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        tidy.select_files(arguments, SOURCES)
    assert str(raised.value) == "tidy: --newest needs a number of files, for example --newest 6"


def test_folders_select_their_sources() -> None:
    assert tidy.select_files([], SOURCES) == SOURCES
    assert tidy.select_files(["engine/plan", "preload"], SOURCES) == [SOURCES[1], SOURCES[3]]
