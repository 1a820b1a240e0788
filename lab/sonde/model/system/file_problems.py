# SPDX-License-Identifier: Apache-2.0
"""Lists every problem of a system file, where reading it raises the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.errors import SystemFileError, UserError
from sonde.model.ranges import RangeError, expand_name_range
from sonde.model.system.checks import find_system_problems
from sonde.model.system.description import PART_KINDS, SystemFile
from sonde.model.system.index import PartIndex, PartSource
from sonde.model.system.system_reader import read_system_document
from sonde.model.tables.members import get_members
from sonde.model.tables.table_reader import ReadContext, find_table_problems, read_table


@dataclass
class _FileProblems:
    """Results of reading the files: readable tables, problems, and names of the tables that are not readable."""

    sources: list[PartSource] = field(default_factory=list)
    problems: list[UserError] = field(default_factory=list)
    unread_names: set[str] = field(default_factory=set)


def find_system_file_problems(system_file: Path | str) -> list[UserError]:
    """Every problem of a system file and of the files that it includes, each once.

    Tables without a problem of their own are checked together; names of the other tables are not called unknown.
    """
    files = _FileProblems()
    _read_system_file(Path(system_file), (), files)
    for problem in _check_parts(files.sources):
        if not any(f'"{name}"' in str(problem) for name in files.unread_names):
            files.problems.append(problem)
    return list({str(problem): problem for problem in files.problems}.values())


def _check_parts(sources: list[PartSource]) -> Iterator[UserError]:
    """Problems of names and of references between tables."""
    while True:
        try:
            index = PartIndex(sources)
        except SystemFileError as problem:
            yield problem
            culprit = next(
                (source for source in reversed(sources) if f"{source.kind}.{source.table.id}" in str(problem)), None
            )
            if culprit is None:
                return
            sources.remove(culprit)
        else:
            yield from find_system_problems(index)
            return


def _read_system_file(system_file: Path, including_files: tuple[Path, ...], problems_of_files: _FileProblems) -> None:
    if system_file.resolve() in including_files:
        problems_of_files.problems.append(SystemFileError(f"{system_file}: a file cannot include itself."))
        return
    context = ReadContext(SystemFileError, str(system_file))
    try:
        document = read_system_document(system_file)
    except UserError as problem:
        problems_of_files.problems.append(problem)
        return
    problems_of_files.problems += find_table_problems(SystemFile, document, context)
    for kind in PART_KINDS:
        entries = document.get(kind, ())
        for entry in entries if isinstance(entries, list) else ():
            _read_table_entry(kind, entry, context, problems_of_files)
    include = document.get("include", ())
    for name in (include,) if isinstance(include, str) else include if isinstance(include, list) else ():
        if not isinstance(name, str):
            continue  # reported with the members of the file
        included_path = system_file.parent / name
        if included_path.is_file():
            _read_system_file(included_path, (*including_files, system_file.resolve()), problems_of_files)
        else:
            problems_of_files.problems.append(
                SystemFileError(f'{system_file}: include names "{name}", but there is no file {included_path}.')
            )


def _read_table_entry(part_kind: str, table_entry: Any, context: ReadContext, problems_of_files: _FileProblems) -> None:
    """Reads one table; the names of a table that cannot be read are remembered."""
    table_class = get_members(SystemFile)[part_kind].table
    assert table_class is not None
    try:
        problems_of_files.sources.append(
            PartSource(part_kind, read_table(table_class, table_entry, context), context.origin)
        )
    except UserError:
        for member in ("id", "group"):
            text = table_entry.get(member) if isinstance(table_entry, Mapping) else None
            if isinstance(text, str):
                try:
                    problems_of_files.unread_names |= {text, *expand_name_range(text)}
                except RangeError:
                    problems_of_files.unread_names.add(text)
