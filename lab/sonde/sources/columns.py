# SPDX-License-Identifier: Apache-2.0
"""Maps the columns of a CSV file to their meaning.

A map is a TOML file or a list of ``MEANING=COLUMN`` from the command line::

    tool = "TOKIO-ABC"
    definition = "bytes over the time of the slowest process"
    [columns]
    time = "start"
    rate = { column = "rate_GiBps", unit = "GiB/s" }
    op = "operation"
    experiment = ["benchmark", "files"]
    [constants]
    system = "edison"

Columns that the map does not name are kept with each run as its context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.documents import parse_toml
from sonde.model.errors import UserError, suggest_close_name
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_limited_text
from sonde.model.units import parse_bytes, parse_duration, parse_rate

# Meanings that take one column each; `experiment` takes any number.
TEXT_MEANINGS = (
    "system",
    "file_system",
    "target",
    "host",
    "node_class",
    "phase",
    "op",
    "title",
    "group",
    "status",
    "cache",
)
NUMBER_MEANINGS = ("tasks", "nodes")
AMOUNT_UNITS = {"rate": "B/s", "ops_rate": "1/s", "bytes": "B", "seconds": "s"}
COLUMN_MEANINGS = ("time", "experiment", *TEXT_MEANINGS, *NUMBER_MEANINGS, *AMOUNT_UNITS)


@dataclass(frozen=True)
class ColumnMap:
    """Columns by meaning, and values that are equal in all rows."""

    columns: Mapping[str, Sequence[str]]
    factors: Mapping[str, float]  # meaning -> what one unit of the column is in base units
    constants: Mapping[str, str] = field(default_factory=dict)
    tool: str = "CSV"
    definition: str = ""

    def require_mapped_columns(self, column_names: Sequence[str], file_location: str) -> None:
        """Raises UserError when the file lacks a column that the map names."""
        for meaning, columns in self.columns.items():
            for column in columns:
                if column not in column_names:
                    raise UserError(
                        f'{file_location} has no column "{column}" for {meaning}; it has {", ".join(column_names)}.'
                        f"{suggest_close_name(column, column_names)}"
                    )


def read_column_map(map_file: Path | None, map_settings: Sequence[str]) -> ColumnMap:
    """The map of a file with the settings of the command line laid over it. Raises UserError."""
    document = _read_map_document(map_file) if map_file else {}
    location = str(map_file) if map_file else "--map"
    column_settings: dict[str, Any] = dict(_get_table(document, "columns", location))
    constants = {str(name): str(value) for name, value in _get_table(document, "constants", location).items()}
    unknown = set(document) - {"tool", "definition", "columns", "constants"}
    if unknown:
        raise UserError(
            f"{location} has a member {sorted(unknown)[0]}; it has tool, definition, columns and constants."
        )
    names = {name: str(document.get(name, default)) for name, default in (("tool", "CSV"), ("definition", ""))}
    for setting in map_settings:
        meaning, equals, column = setting.partition("=")
        if not equals or not column:
            raise UserError(f'--map "{setting}" is not MEANING=COLUMN, like time=start or "rate=rate_GiBps GiB/s".')
        if meaning in names:
            names[meaning] = column
        elif meaning in column_settings and meaning == "experiment":
            column_settings[meaning] = [
                *(
                    [column_settings[meaning]]
                    if isinstance(column_settings[meaning], str)
                    else column_settings[meaning]
                ),
                column,
            ]
        else:
            column_settings[meaning] = column
    return _build_column_map(column_settings, constants, names, location)


def _build_column_map(
    column_settings: Mapping[str, Any],
    value_by_meaning: Mapping[str, str],
    tool_and_definition: Mapping[str, str],
    location: str,
) -> ColumnMap:
    columns: dict[str, Sequence[str]] = {}
    factors: dict[str, float] = {}
    for meaning in (*column_settings, *value_by_meaning):
        if meaning not in COLUMN_MEANINGS:
            raise UserError(
                f'{location}: "{meaning}" is not something a column can mean; known are {", ".join(COLUMN_MEANINGS)}.'
                f"{suggest_close_name(meaning, COLUMN_MEANINGS)}"
            )
    for meaning, value in column_settings.items():
        column_names, unit = _parse_column_and_unit(meaning, value, location)
        columns[meaning] = column_names
        if meaning in AMOUNT_UNITS:
            factors[meaning] = _parse_unit_factor(meaning, unit or AMOUNT_UNITS[meaning], location)
    if "time" not in columns:
        raise UserError(f"{location} does not say which column is the time of a run; add time=COLUMN.")
    if "rate" not in columns and "ops_rate" not in columns:
        raise UserError(f'{location} does not say which column is the result; add "rate=COLUMN UNIT", like GiB/s.')
    return ColumnMap(columns, factors, value_by_meaning, tool_and_definition["tool"], tool_and_definition["definition"])


def _parse_column_and_unit(column_meaning: str, setting_value: Any, location: str) -> tuple[list[str], str]:
    if isinstance(setting_value, str):
        column, _, unit = (
            setting_value.rpartition(" ")
            if column_meaning in AMOUNT_UNITS and " " in setting_value
            else (setting_value, "", "")
        )
        return [column], unit
    if (
        isinstance(setting_value, dict)
        and isinstance(setting_value.get("column"), str)
        and set(setting_value) <= {"column", "unit"}
    ):
        return [setting_value["column"]], str(setting_value.get("unit", ""))
    if (
        column_meaning == "experiment"
        and isinstance(setting_value, list)
        and all(isinstance(name, str) for name in setting_value)
        and setting_value
    ):
        return list(setting_value), ""
    raise UserError(f'{location}: {column_meaning} is not the name of a column; write {column_meaning} = "COLUMN".')


def _parse_unit_factor(column_meaning: str, unit_text: str, location: str) -> float:
    try:
        if column_meaning == "rate":
            return parse_rate(f"1 {unit_text}")
        if column_meaning == "bytes":
            return float(parse_bytes(f"1 {unit_text}"))
        if column_meaning == "seconds":
            return parse_duration(f"1 {unit_text}")
    except UserError as error:
        raise UserError(f"{location}: {column_meaning}: {error}") from None
    factors = {"1/s": 1.0, "op/s": 1.0, "ops/s": 1.0, "kop/s": 1e3, "kops/s": 1e3}
    if unit_text not in factors:
        raise UserError(
            f'{location}: {column_meaning}: "{unit_text}" is not a unit of operations; known are {", ".join(factors)}.'
        )
    return factors[unit_text]


def _read_map_document(map_file: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_limited_text(map_file, MAX_CONFIGURATION_BYTES))
    except UnicodeDecodeError:
        raise UserError(f"{map_file} is not a text file.") from None
    except ValueError as error:
        raise UserError(f"{map_file} is not valid TOML: {error}.") from None
    except OSError as error:
        raise UserError(f"{map_file} cannot be read: {error.strerror}.") from None


def _get_table(map_document: Mapping[str, Any], table_name: str, location: str) -> Mapping[str, Any]:
    table = map_document.get(table_name, {})
    if not isinstance(table, dict):
        raise UserError(f"{location}: {table_name} is not a table.")
    return table
