# SPDX-License-Identifier: Apache-2.0
"""What HACKING.md says one must touch to add something to the engine: no more and no less, and it is enough.

A row's example stands in exactly the files that the row names; a workload is really added in a copy.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED = re.compile(r"`((?:engine|schema|docs|tools)/[\w./-]+)`")


def row(subject: str) -> str:
    """The second column of the table in HACKING.md for what one wants to add."""
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    found = re.findall(rf"^\| {re.escape(subject)} \| (.*?) \| .* \|$", text, re.MULTILINE)
    assert len(found) == 1, f"HACKING.md has {len(found)} rows for {subject}"
    return str(found[0])


@dataclass(frozen=True)
class Example:
    """One thing that was added once, by its words, and where it may stand besides the files that the row names."""

    subject: str
    words: str
    roots: tuple[str, ...]
    own: tuple[str, ...]  # files that were made for it


EXAMPLES = (
    Example("a backend", r"\bnull_backend\b", ("engine",), ("engine/backends/null.cpp",)),
    Example("a treatment", r"\bKind::memory_hog\b|enum class Kind \{[^}]*\bmemory_hog\b", ("engine",), ()),
    Example(
        "a workload",
        r"\bFileStream\b",
        ("engine",),
        ("engine/workloads/file_stream.hpp", "engine/workloads/file_stream.cpp"),
    ),
    Example("an operation on names", r"\b(kind_)?open_close\b", ("engine", "schema", "docs/concepts"), ()),
    Example("a member of a record line", r"\bdroop\b", ("schema",), ()),
)


def files_with(words: str, roots: tuple[str, ...]) -> set[str]:
    """Sources, pages and schemas that hold the words."""
    pattern = re.compile(words)
    return {
        path.relative_to(ROOT).as_posix()
        for root in roots
        for path in (ROOT / root).rglob("*")
        if path.suffix in (".cpp", ".hpp", ".json", ".md") and pattern.search(path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.subject for one in EXAMPLES])
def test_an_example_stands_in_the_files_that_its_row_names_and_nowhere_else(example: Example) -> None:
    named = {path for path in LISTED.findall(row(example.subject)) if (ROOT / path).is_file()}
    within = {path for path in named if path.startswith(tuple(f"{root}/" for root in example.roots))}
    assert files_with(example.words, example.roots) - set(example.own) == within


def test_every_file_that_a_row_names_is_there() -> None:
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    table = text[text.index("## To add something") : text.index("## Commands")]
    missing = [path for path in LISTED.findall(table) if not (ROOT / path).exists()]
    assert missing == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "engine", tmp_path / "engine")
    return tmp_path


def compiles(root: Path, *files: str) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    for file in files:
        command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Iengine", file]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def insert(path: Path, before: str, text: str) -> None:
    whole = path.read_text(encoding="utf-8")
    assert whole.count(before) == 1, f"{path} has {before!r} {whole.count(before)} times"
    path.write_text(whole.replace(before, text + before), encoding="utf-8")


def test_a_workload_is_one_class_and_one_line_where_streams_are_made(copy: Path) -> None:
    folder = copy / "engine" / "workloads"
    for ending in ("hpp", "cpp"):
        text = (folder / f"file_stream.{ending}").read_text(encoding="utf-8")
        text = text.replace("FileStream", "NapStream").replace("file_stream", "nap_stream")
        (folder / f"nap_stream.{ending}").write_text(text, encoding="utf-8")
    data = folder / "data.cpp"
    insert(data, '#include "workloads/file_stream.hpp"', '#include "workloads/nap_stream.hpp"\n')
    insert(
        data,
        "    if (plan::on_files(job.phase->op)) {",
        "    if (job.phase->op == plan::Op::reread) {\n"
        "        return std::make_unique<NapStream<Time>>(job, team, clock, meter, job.backend->make(setup));\n"
        "    }\n",
    )
    compiles(copy, "engine/workloads/nap_stream.cpp", "engine/workloads/data.cpp")
