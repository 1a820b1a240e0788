# SPDX-License-Identifier: Apache-2.0
"""Which column of a CSV file means what.

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

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.errors import UserError, suggestion
from sonde.model.units import parse_bytes, parse_duration, parse_rate

# Meanings that take one column each; `experiment` takes any number.
TEXTS = ("system", "file_system", "target", "host", "node_class", "phase", "op", "title", "group", "status", "cache")
NUMBERS = ("tasks", "nodes")
AMOUNTS = {"rate": "B/s", "ops_rate": "1/s", "bytes": "B", "seconds": "s"}
MEANINGS = ("time", "experiment", *TEXTS, *NUMBERS, *AMOUNTS)


@dataclass(frozen=True)
class ColumnMap:
    """Meaning -> columns, and what is the same in each row."""

    columns: Mapping[str, Sequence[str]]
    factors: Mapping[str, float]  # meaning -> what one unit of the column is in base units
    constants: Mapping[str, str] = field(default_factory=dict)
    tool: str = "CSV"
    definition: str = ""

    def check(self, header: Sequence[str], where: str) -> None:
        """Raises UserError when the file lacks a column that the map names."""
        for meaning, columns in self.columns.items():
            for column in columns:
                if column not in header:
                    raise UserError(
                        f'{where} has no column "{column}" for {meaning}; it has {", ".join(header)}.'
                        f"{suggestion(column, header)}"
                    )


def read_map(path: Path | None, settings: Sequence[str]) -> ColumnMap:
    """The map of a file with the settings of the command line laid over it. Raises UserError."""
    document = _document(path) if path else {}
    where = str(path) if path else "--map"
    given: dict[str, Any] = dict(_table(document, "columns", where))
    constants = {str(name): str(value) for name, value in _table(document, "constants", where).items()}
    unknown = set(document) - {"tool", "definition", "columns", "constants"}
    if unknown:
        raise UserError(f"{where} has a member {sorted(unknown)[0]}; it has tool, definition, columns and constants.")
    named = {name: str(document.get(name, default)) for name, default in (("tool", "CSV"), ("definition", ""))}
    for setting in settings:
        meaning, equals, column = setting.partition("=")
        if not equals or not column:
            raise UserError(f'--map "{setting}" is not MEANING=COLUMN, like time=start or "rate=rate_GiBps GiB/s".')
        if meaning in named:
            named[meaning] = column
        elif meaning in given and meaning == "experiment":
            given[meaning] = [*([given[meaning]] if isinstance(given[meaning], str) else given[meaning]), column]
        else:
            given[meaning] = column
    return _checked(given, constants, named, where)


def _checked(given: Mapping[str, Any], constants: Mapping[str, str], named: Mapping[str, str], where: str) -> ColumnMap:
    columns: dict[str, Sequence[str]] = {}
    factors: dict[str, float] = {}
    for meaning in (*given, *constants):
        if meaning not in MEANINGS:
            raise UserError(
                f'{where}: "{meaning}" is not something a column can mean; known are {", ".join(MEANINGS)}.'
                f"{suggestion(meaning, MEANINGS)}"
            )
    for meaning, value in given.items():
        names, unit = _column_and_unit(meaning, value, where)
        columns[meaning] = names
        if meaning in AMOUNTS:
            factors[meaning] = _factor(meaning, unit or AMOUNTS[meaning], where)
    if "time" not in columns:
        raise UserError(f"{where} does not say which column is the time of a run; add time=COLUMN.")
    if "rate" not in columns and "ops_rate" not in columns:
        raise UserError(f'{where} does not say which column is the result; add "rate=COLUMN UNIT", like GiB/s.')
    return ColumnMap(columns, factors, constants, named["tool"], named["definition"])


def _column_and_unit(meaning: str, value: Any, where: str) -> tuple[list[str], str]:
    if isinstance(value, str):
        column, _, unit = value.rpartition(" ") if meaning in AMOUNTS and " " in value else (value, "", "")
        return [column], unit
    if isinstance(value, dict) and isinstance(value.get("column"), str) and set(value) <= {"column", "unit"}:
        return [value["column"]], str(value.get("unit", ""))
    if meaning == "experiment" and isinstance(value, list) and all(isinstance(one, str) for one in value) and value:
        return list(value), ""
    raise UserError(f'{where}: {meaning} is not the name of a column; write {meaning} = "COLUMN".')


def _factor(meaning: str, unit: str, where: str) -> float:
    try:
        if meaning == "rate":
            return parse_rate(f"1 {unit}")
        if meaning == "bytes":
            return float(parse_bytes(f"1 {unit}"))
        if meaning == "seconds":
            return parse_duration(f"1 {unit}")
    except UserError as reason:
        raise UserError(f"{where}: {meaning}: {reason}") from None
    known = {"1/s": 1.0, "op/s": 1.0, "ops/s": 1.0, "kop/s": 1e3, "kops/s": 1e3}
    if unit not in known:
        raise UserError(f'{where}: {meaning}: "{unit}" is not a unit of operations; known are {", ".join(known)}.')
    return known[unit]


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as reason:
        raise UserError(f"{path} is not valid TOML: {reason}.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file.") from None
    except OSError as reason:
        raise UserError(f"{path} cannot be read: {reason.strerror}.") from None


def _table(document: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise UserError(f"{where}: {name} is not a table.")
    return found
