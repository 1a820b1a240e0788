# SPDX-License-Identifier: Apache-2.0
"""Results that somebody keeps in a CSV file: one row a run."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from sonde.model.errors import UserError
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.columns import AMOUNT_UNITS, NUMBER_MEANINGS, ColumnMap

_OPS = {"w": "write", "r": "read", "writes": "write", "reads": "read"}
MAX_ROWS = 1_000_000
MAX_LINE_CHARACTERS = 1 << 20
_UNIX_TIME = re.compile(r"\d{9,11}(\.\d+)?")
ReportProblem = Callable[[str], None]


def read_rows(path: Path, columns: ColumnMap, report_problem: ReportProblem) -> Iterator[ImportedRun]:
    """A run for each row; a row that makes no sense is a sentence to `complain`. Raises UserError when the file is no
    CSV file or lacks a column."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(_iterate_limited_lines(file), strict=True)
            header = list(reader.fieldnames or ())
            columns.check(header, str(path))
            for number, row in enumerate(reader):
                if number == MAX_ROWS:
                    raise UserError(
                        f"{path} has more than {MAX_ROWS:,} rows; the rows before were read. Split the file and import"
                        " the rest."
                    )
                try:
                    yield _build_run(row, columns)
                except ValueError as error:
                    report_problem(f"{path}, line {reader.line_num}: {error}; it was skipped.")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file.") from None
    except csv.Error as error:
        raise UserError(f"{path} is not a CSV file: {error}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


def read_header(path: Path) -> list[str]:
    """The names of the columns; none when the file is no CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(_iterate_limited_lines(file), strict=True).fieldnames or ())
    except (UnicodeDecodeError, csv.Error, OSError):
        return []


def _iterate_limited_lines(file: TextIO) -> Iterator[str]:
    """The lines of a file. Raises csv.Error for a line that is too long."""
    while line := file.readline(MAX_LINE_CHARACTERS):
        if len(line) == MAX_LINE_CHARACTERS:
            raise csv.Error(f"a line has more than {MAX_LINE_CHARACTERS:,} characters")
        yield line


def _build_run(row: Mapping[str | None, Any], columns: ColumnMap) -> ImportedRun:
    """The run of one row. Raises ValueError with a part of a sentence."""
    if None in row or any(value is None for value in row.values()):
        raise ValueError("the number of values is not that of the header")
    values = {str(name): str(value).strip() for name, value in row.items()}
    text = _RowTexts(values, columns)
    experiment = {column: values[column] for column in columns.columns.get("experiment", ())}
    op = _OPS.get(text("op").lower(), text("op").lower()) or "unknown"
    tasks, nodes = (_parse_count(text(name), name) for name in NUMBER_MEANINGS)
    amounts = {name: _parse_amount(values, columns, name) for name in AMOUNT_UNITS}
    if amounts["rate"] is None and amounts["ops_rate"] is None:
        raise ValueError("there is no result")
    moved_bytes = amounts["bytes"]
    phase = ImportedPhase(
        phase=text("phase") or op,
        op=op,
        definition=" ".join(part for part in (columns.tool, columns.definition) if part),
        bytes_per_s=amounts["rate"],
        ops_per_s=amounts["ops_rate"],
        bytes=None if moved_bytes is None else round(moved_bytes),
        seconds=amounts["seconds"],
        cache=text("cache") or "unknown",
    )
    mapped_columns = {name for names in columns.columns.values() for name in names}
    name = "-".join(value for value in experiment.values() if value) or op
    return ImportedRun(
        tool=columns.tool,
        name=name,
        started=_parse_time(text("time")),
        experiment=experiment,
        phases=[phase],
        tasks=tasks,
        nodes=nodes,
        seconds=amounts["seconds"],
        group=text("group") or None,
        status=text("status") or "done",
        context={
            name: _to_number_or_text(value) for name, value in values.items() if name not in mapped_columns and value
        },
        title=text("title"),
        system=text("system"),
        host=text("host"),
        target=text("target"),
        file_system=text("file_system"),
        node_class=text("node_class"),
    )


class _RowTexts:
    """What a row says under a meaning; "" where it says nothing."""

    def __init__(self, row: Mapping[str, str], columns: ColumnMap) -> None:
        self._row = row
        self._columns = columns

    def __call__(self, meaning: str) -> str:
        values = [self._row[column] for column in self._columns.columns.get(meaning, ())]
        return " ".join(value for value in values if value) or self._columns.constants.get(meaning, "")


def _parse_time(text: str) -> datetime:
    if _UNIX_TIME.fullmatch(text):
        return datetime.fromtimestamp(float(text), UTC)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a time; write 2026-11-21T14:00:00Z or seconds since 1970') from None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def _parse_amount(row: Mapping[str, str], columns: ColumnMap, meaning: str) -> float | None:
    text = next((row[column] for column in columns.columns.get(meaning, ())), "")
    if not text or text.lower() in ("nan", "na", "null", "none", "-"):
        return None
    try:
        value = float(text) * columns.factors[meaning]
    except ValueError:
        raise ValueError(f'{meaning} is "{text}", which is not a number') from None
    if not 0 <= value < float("inf"):
        raise ValueError(f"{meaning} is {text}, which cannot be")
    return value


def _parse_count(text: str, meaning: str) -> int | None:
    if not text:
        return None
    try:
        value = float(text)
        if value != int(value) or value < 1:
            raise ValueError
    except (ValueError, OverflowError):
        raise ValueError(f'{meaning} is "{text}", which is not a number of {meaning}') from None
    return int(value)


def _to_number_or_text(text: str) -> float | str:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if abs(value) < float("inf") else text
