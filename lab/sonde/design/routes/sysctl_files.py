# SPDX-License-Identifier: Apache-2.0
"""The order in which files of settings are read, and which files replace others.

Source: sysctl.d(5): files of one name in several folders, the one in /etc replaces that in /run, this the one in
/usr/lib; all are sorted by name, whatever their folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sonde.design.routes.inactive_profile import InactiveProfile

Tables = TypeVar("Tables")
# /etc/sysctl.conf is this one in /etc/sysctl.d.
_ORDER = {"sysctl.conf": "99-sysctl.conf"}
# Folders above sysctl.d, the strongest last.
_FOLDERS = ("lib", "run", "etc")
# A setting and its value without the sign between them.
_SKIPPED_PATTERN = re.compile(r"\s*((?:net|vm|kernel|fs|sunrpc|dev)[./][\w./-]+)(?:\s*:\s*|\s+)([^=]*)")


@dataclass(frozen=True)
class SkippedLine:
    """A line that sysctl does not understand, and the finding about it."""

    line: str
    profile: InactiveProfile


def list_skipped_lines(file_lines: Sequence[str], file_name: str) -> Iterator[SkippedLine]:
    """The lines that have the name of a setting and no "="."""
    for line in file_lines:
        if match := _SKIPPED_PATTERN.fullmatch(line):
            effect = "sysctl does not understand a line without = and skips it: the old value stays"
            profile = InactiveProfile(file_name, line.strip(), effect, f"write {match[1]} = {match[2].strip()}")
            yield SkippedLine(line, profile)


def sort_sysctl_files(tables_by_file: Iterable[tuple[Path, Tables]]) -> list[Tables]:
    """The tables of files of settings in the order in which the host reads them, without those that another file of the
    same name replaces."""
    chosen: dict[tuple[str, Path | None], tuple[int, Tables]] = {}
    for file, tables in tables_by_file:
        strength = _find_folder_strength(file)
        key = (_ORDER.get(file.name, file.name), None if strength is not None else file.parent)
        if key not in chosen or (strength or 0) >= chosen[key][0]:
            chosen[key] = (strength or 0, tables)
    return [tables for _, (_, tables) in sorted(chosen.items(), key=lambda item: item[0][0])]


def _find_folder_strength(file: Path) -> int | None:
    """The strength of the folder sysctl.d that has a file; None for other folders."""
    folder, parent = file.absolute().parent, file.absolute().parent.parent
    return _FOLDERS.index(parent.name) if folder.name == "sysctl.d" and parent.name in _FOLDERS else None
