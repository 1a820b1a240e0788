# SPDX-License-Identifier: Apache-2.0
"""Reads results from a CSV file with one row per run."""

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

_OPERATIONS_BY_NAME = {"w": "write", "r": "read", "writes": "write", "reads": "read"}
MAX_CSV_ROWS = 1_000_000
MAX_LINE_CHARACTERS = 1 << 20
_UNIX_TIME_PATTERN = re.compile(r"\d{9,11}(\.\d+)?")
ReportProblem = Callable[[str], None]


def read_csv_runs(csv_file: Path, column_map: ColumnMap, report_problem: ReportProblem) -> Iterator[ImportedRun]:
    """A run for each row; a row that makes no sense is a sentence to `report_problem`. Raises UserError when the file
    is no CSV file or lacks a column."""
    try:
        with csv_file.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(_iterate_limited_lines(file), strict=True)
            header = list(reader.fieldnames or ())
            column_map.require_mapped_columns(header, str(csv_file))
            for number, row in enumerate(reader):
                if number == MAX_CSV_ROWS:
                    raise UserError(
                        f"{csv_file} has more than {MAX_CSV_ROWS:,} rows; the rows before were read."
                        " Split the file and import the rest."
                    )
                try:
                    yield _build_run_of_row(row, column_map)
                except ValueError as error:
                    report_problem(f"{csv_file}, line {reader.line_num}: {error}; it was skipped.")
    except UnicodeDecodeError:
        raise UserError(f"{csv_file} is not a text file.") from None
    except csv.Error as error:
        raise UserError(f"{csv_file} is not a CSV file: {error}.") from None
    except OSError as error:
        raise UserError(f"{csv_file} cannot be read: {error.strerror}.") from None


def read_csv_header(csv_file: Path) -> list[str]:
    """The names of the columns; none when the file is no CSV file."""
    try:
        with csv_file.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(_iterate_limited_lines(file), strict=True).fieldnames or ())
    except (UnicodeDecodeError, csv.Error, OSError):
        return []


def _iterate_limited_lines(file: TextIO) -> Iterator[str]:
    """The lines of a file. Raises csv.Error for a line that is too long."""
    while line := file.readline(MAX_LINE_CHARACTERS):
        if len(line) == MAX_LINE_CHARACTERS:
            raise csv.Error(f"a line has more than {MAX_LINE_CHARACTERS:,} characters")
        yield line


def _build_run_of_row(csv_row: Mapping[str | None, Any], column_map: ColumnMap) -> ImportedRun:
    """The run of one row. Raises ValueError with a part of a sentence."""
    if None in csv_row or any(value is None for value in csv_row.values()):
        raise ValueError("the number of values is not that of the header")
    values = {str(name): str(value).strip() for name, value in csv_row.items()}
    text = _RowTexts(values, column_map)
    experiment = {column: values[column] for column in column_map.columns.get("experiment", ())}
    op = _OPERATIONS_BY_NAME.get(text("op").lower(), text("op").lower()) or "unknown"
    tasks, nodes = (_parse_count(text(name), name) for name in NUMBER_MEANINGS)
    amounts = {name: _parse_amount(values, column_map, name) for name in AMOUNT_UNITS}
    if amounts["rate"] is None and amounts["ops_rate"] is None:
        raise ValueError("there is no result")
    moved_bytes = amounts["bytes"]
    phase = ImportedPhase(
        phase=text("phase") or op,
        op=op,
        definition=" ".join(part for part in (column_map.tool, column_map.definition) if part),
        bytes_per_s=amounts["rate"],
        ops_per_s=amounts["ops_rate"],
        bytes=None if moved_bytes is None else round(moved_bytes),
        seconds=amounts["seconds"],
        cache=text("cache") or "unknown",
    )
    mapped_columns = {name for names in column_map.columns.values() for name in names}
    name = "-".join(value for value in experiment.values() if value) or op
    return ImportedRun(
        tool=column_map.tool,
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
            name: _convert_to_number_or_text(value)
            for name, value in values.items()
            if name not in mapped_columns and value
        },
        title=text("title"),
        system=text("system"),
        host=text("host"),
        target=text("target"),
        file_system=text("file_system"),
        node_class=text("node_class"),
    )


class _RowTexts:
    """Text of a row by column meaning; "" where the row has none."""

    def __init__(self, csv_row: Mapping[str, str], column_map: ColumnMap) -> None:
        self._row = csv_row
        self._columns = column_map

    def __call__(self, column_meaning: str) -> str:
        values = [self._row[column] for column in self._columns.columns.get(column_meaning, ())]
        return " ".join(value for value in values if value) or self._columns.constants.get(column_meaning, "")


def _parse_time(time_text: str) -> datetime:
    if _UNIX_TIME_PATTERN.fullmatch(time_text):
        return datetime.fromtimestamp(float(time_text), UTC)
    try:
        time = datetime.fromisoformat(time_text)
    except ValueError:
        raise ValueError(f'"{time_text}" is not a time; write 2026-11-21T14:00:00Z or seconds since 1970') from None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def _parse_amount(csv_row: Mapping[str, str], column_map: ColumnMap, column_meaning: str) -> float | None:
    text = next((csv_row[column] for column in column_map.columns.get(column_meaning, ())), "")
    if not text or text.lower() in ("nan", "na", "null", "none", "-"):
        return None
    try:
        value = float(text) * column_map.factors[column_meaning]
    except ValueError:
        raise ValueError(f'{column_meaning} is "{text}", which is not a number') from None
    if not 0 <= value < float("inf"):
        raise ValueError(f"{column_meaning} is {text}, which cannot be")
    return value


def _parse_count(count_text: str, column_meaning: str) -> int | None:
    if not count_text:
        return None
    try:
        value = float(count_text)
        if value != int(value) or value < 1:
            raise ValueError
    except (ValueError, OverflowError):
        raise ValueError(f'{column_meaning} is "{count_text}", which is not a number of {column_meaning}') from None
    return int(value)


def _convert_to_number_or_text(cell_text: str) -> float | str:
    try:
        value = float(cell_text)
    except ValueError:
        return cell_text
    return value if abs(value) < float("inf") else cell_text
