# SPDX-License-Identifier: Apache-2.0
"""SECURITY.md is short, and each test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 120  # lines
NAMED_SOURCE = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|cpp))`")


def find_missing_files(text: str) -> list[str]:
    """Sources named in backticks that do not exist. A name without a folder is in the folder of the preceding path."""
    missing = []
    folder = Path()
    for name in NAMED_SOURCE.findall(text):
        path = Path(name) if "/" in name else folder / name
        folder = path.parent
        if not (ROOT / path).is_file():
            missing.append(path.as_posix())
    return missing


def test_tests_cited_by_the_page_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert len(NAMED_SOURCE.findall(text)) > 15
    assert find_missing_files(text) == []


def test_missing_file_is_noticed() -> None:
    text = "`tests/structure/test_shell.py` and `test_nothing.py`, `tests/none.cpp`"
    assert find_missing_files(text) == ["tests/structure/test_nothing.py", "tests/none.cpp"]


def test_security_page_is_within_the_line_limit() -> None:
    assert len((ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()) <= LONGEST
