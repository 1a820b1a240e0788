# SPDX-License-Identifier: Apache-2.0
"""Explanations of findings: the sections of docs/concepts/findings.md, which is installed with Sonde."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from sonde.model.bundled_files import find_bundled_folder

FINDINGS_PAGE = "concepts/findings"
_FINDING_SECTION_PATTERN = re.compile(r"^### `([a-z0-9_]+)`\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
_MARKDOWN_LINK_PATTERN = re.compile(r"\[([^\]]+)\]\([^)\s]+\)$")


@cache
def read_explanations() -> Mapping[str, str]:
    """Returns a Markdown paragraph by finding id; empty where the documentation is not installed."""
    docs = find_bundled_folder("docs")
    path = docs / f"{FINDINGS_PAGE}.md" if docs else None
    if path is None or not path.is_file():
        return {}
    return {match[1]: match[2].strip() for match in _FINDING_SECTION_PATTERN.finditer(path.read_text(encoding="utf-8"))}


def explain_finding(finding_id: str) -> str:
    """Returns the explanation as plain text without its link to another page; "" for an unknown finding."""
    text = read_explanations().get(finding_id, "")
    return _MARKDOWN_LINK_PATTERN.sub("", " ".join(text.split())).replace("`", "").strip()


def list_help_commands(finding_ids: Iterable[str]) -> str:
    """Returns the commands that explain these findings, separated by commas."""
    known_ids = [finding_id for finding_id in dict.fromkeys(finding_ids) if finding_id in read_explanations()]
    return ", ".join(f"sonde help {finding_id}" for finding_id in known_ids)
