# SPDX-License-Identifier: Apache-2.0
"""Places that HACKING.md names are there, and every folder with code has its row in the map."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HACKING = (ROOT / "HACKING.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under that heading."""
    return HACKING.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_place_in_the_map_and_in_the_answers_is_there() -> None:
    rows = (section("A run, in the order it flows") + section("Where is …")).splitlines()
    named = [place for row in rows if row.startswith("|") for place in re.findall(r"`([\w./-]+/[\w./-]*)`", row)]
    assert len(named) > 40
    assert [place for place in named if not (ROOT / place).exists()] == []


def test_every_folder_with_code_is_in_the_map() -> None:
    rows = section("A run, in the order it flows")
    folders = [*(ROOT / "engine").iterdir(), *(ROOT / "lab" / "sonde").iterdir()]
    with_code = [one.relative_to(ROOT) for one in folders if any(one.glob("*.py")) or any(one.glob("*.cpp"))]
    assert len(with_code) > 25
    assert [str(one) for one in with_code if f"`{one}/`" not in rows] == []


def test_links_of_hacking_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", HACKING)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
