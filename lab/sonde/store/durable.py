# SPDX-License-Identifier: Apache-2.0
"""Files that are either there whole or not there at all, also after a crash of the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Writes beside the place, syncs, then renames into it."""
    beside = path.with_name(f".{path.name}.part")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """A JSON document that a person can read."""
    write_text(path, json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """The text of such a document."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sync_file(path: Path) -> None:
    """What was written to the file is on storage."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """The names in the folder are on storage."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path: Path) -> dict[str, Any] | None:
    """The table in a JSON file; None when there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
