# SPDX-License-Identifier: Apache-2.0
"""HACKING.md is a short map that is true, and README.md shows the two commands that need nothing installed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HACKING = (ROOT / "HACKING.md").read_text(encoding="utf-8")
LONGEST_MAP = 150  # lines


def section(title: str) -> str:
    """The text under that heading."""
    return HACKING.split(f"## {title}\n")[1].split("\n## ")[0]


def test_paths_in_map_and_answers_exist() -> None:
    rows = (section("A run, in the order it flows") + section("Where is …")).splitlines()
    paths = [path for row in rows if row.startswith("|") for path in re.findall(r"`([\w./-]+/[\w./-]*)`", row)]
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_folder_with_code_is_in_the_map() -> None:
    rows = section("A run, in the order it flows")
    folders = [*(ROOT / "engine").iterdir(), *(ROOT / "lab" / "sonde").iterdir()]
    with_code = [
        folder.relative_to(ROOT) for folder in folders if any(folder.glob("*.py")) or any(folder.glob("*.cpp"))
    ]
    assert len(with_code) > 25
    assert [str(folder) for folder in with_code if f"`{folder}/`" not in rows] == []


def test_links_of_the_map_exist() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", HACKING)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_hacking_page_is_within_the_line_limit() -> None:
    assert len(HACKING.splitlines()) <= LONGEST_MAP


def test_readme_names_demo_and_test_before_other_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first_screen = text.split("\n## ")[0]
    block = first_screen.split("```shell\n")[1].split("```")[0]
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["make demo", "make test"]
    assert first_screen.index("make test") < first_screen.index("sonde check")
