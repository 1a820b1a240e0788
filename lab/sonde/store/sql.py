# SPDX-License-Identifier: Apache-2.0
"""SQL over the archive, by DuckDB in this process.

The tables are ``runs`` and ``phases`` (from the index, so a million runs are no matter), and ``series`` and ``tasks``
(from the Parquet files of the runs: as many files as there are runs, so say which runs).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sonde.model.errors import UserError
from sonde.store import index
from sonde.store.catalog import Catalog
from sonde.store.selection import Selection

# Tables that lie in a file of each run.
_FILES = {"series": "series.parquet", "tasks": "tasks.parquet", "phases_full": "phases.parquet"}
TABLES = ("runs", "phases", *_FILES)


@dataclass(frozen=True)
class Answer:
    """Columns and rows, as Python values."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    table: Any  # the same as an Arrow table


def ask(catalog: Catalog, wanted: Selection, sql: str) -> Answer:
    """The answer to one statement about the runs that are wanted. Raises UserError with DuckDB's reason."""
    with duckdb.connect(":memory:") as connection:
        _define(connection, catalog, wanted, sql)
        try:
            relation = connection.sql(sql)
            if relation is None:  # a statement without a result, like COPY … TO …
                return Answer((), (), pa.table({}))
            table = relation.to_arrow_table()
        except duckdb.Error as reason:
            if "INTERRUPT" in str(reason):
                raise KeyboardInterrupt from None
            raise UserError(_sentence(reason)) from None
    return Answer(table.column_names, list(_rows(table)), table)


def _rows(table: Any) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    yield from zip(*columns, strict=True)


def _define(connection: Any, catalog: Catalog, wanted: Selection, sql: str) -> None:
    """Makes the tables that the statement names; the others cost nothing."""
    named = {name for name in TABLES if re.search(rf'(\bfrom|\bjoin|,)\s*"?{name}\b', sql, re.IGNORECASE)}
    everything = wanted == Selection()
    # DuckDB looks at what it is given when it is asked, so these names must live as long as the connection.
    needed = bool(named & set(_FILES)) or not everything
    folders = catalog.runs(["run", "folder"], wanted) if needed else index.RUNS.empty_table()
    connection.register("chosen_runs", folders.select(["run"]))
    for part, schema in (("runs", index.RUNS), ("phases", index.PHASES)):
        if part in named:
            _define_part(connection, catalog, part, schema, everything)
    for name in named & set(_FILES):
        files = [str(catalog.root / folder / _FILES[name]) for folder in folders["folder"].to_pylist()]
        present = [file for file in files if Path(file).is_file()]
        if not present:
            raise UserError(f"None of the {len(files):,} runs that are meant has a table {name}.")
        source = f"read_parquet([{', '.join(map(_quoted, present))}], union_by_name = true)"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")


def _define_part(connection: Any, catalog: Catalog, part: str, schema: Any, everything: bool) -> None:
    """A view over the files of the index and what is not in them yet."""
    pieces = []
    if files := catalog.files(part):
        pieces.append(f"SELECT * FROM read_parquet([{', '.join(_quoted(str(file)) for file in files)}])")
    for number, table in enumerate(catalog.tables(part) or ([] if files else [schema.empty_table()])):
        connection.register(f"{part}_{number}", table)
        pieces.append(f"SELECT * FROM {part}_{number}")
    hidden = "EXCLUDE (changed_ns, problem)" if part == "runs" else "EXCLUDE (key)"
    conditions = ["problem IS NULL"] if part == "runs" else []
    if everything:
        conditions += ["role <> 'calibration'"] if part == "runs" else []
    else:
        conditions += ["run IN (SELECT run FROM chosen_runs)"]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    connection.execute(f"CREATE VIEW {part} AS SELECT * {hidden} FROM ({' UNION ALL '.join(pieces)}){where}")


def columns_of(part: str) -> list[tuple[str, str]]:
    """Names and types of the columns of ``runs`` or ``phases``, for people."""
    schema = {"runs": index.RUNS, "phases": index.PHASES}[part]
    return [(one.name, str(one.type)) for one in schema if one.name not in ("changed_ns", "problem", "key")]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sentence(reason: Exception) -> str:
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    text = " ".join(line for line in lines if not re.fullmatch(r"[\^~ ]+|LINE \d+:.*", line))
    return f"The query failed: {text.rstrip('.')}. `sonde query` without SQL lists the tables and their columns."
