# SPDX-License-Identifier: Apache-2.0
"""SQL over the archive, by DuckDB in this process.

The tables are ``runs`` and ``phases`` (from the index, so a million runs are no matter), and ``series``, ``tasks`` and
``targets`` (from the Parquet files of the runs: as many files as there are runs, so say which runs).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet

from sonde.model.errors import UserError
from sonde.model.units import counted
from sonde.store import index, tables
from sonde.store.catalog import Catalog
from sonde.store.selection import Selection

# Tables that lie in a file of each run.
_FILES = {"series": tables.SERIES, "tasks": tables.TASKS, "targets": tables.TARGETS, "phases_full": tables.PHASES}
TABLES = ("runs", "phases", *_FILES)


# Words of DuckDB after which a table is named.
_BEFORE_A_TABLE = "from|join|describe|desc|summarize|table|show"
# A query may take this part of the memory of the machine: others work there too.
_MEMORY_SHARE = 4
# What no second try can change.
_MISTAKES = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.InterruptException)


@dataclass(frozen=True)
class Answer:
    """Columns and rows, as Python values."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    table: Any  # the same as an Arrow table
    complaints: Sequence[str] = ()  # a sentence for each file that could not be read


def ask(catalog: Catalog, wanted: Selection, sql: str) -> Answer:
    """The answer to one statement about the runs that are wanted. Raises UserError with DuckDB's reason."""
    complaints: list[str] = []
    try:
        try:
            table = _asked(catalog, wanted, sql, complaints)
        except _MISTAKES:
            raise
        except duckdb.Error:
            # A file of the index was damaged or replaced while it was read; DuckDB has many words for that.
            catalog.mend()
            complaints.clear()
            table = _asked(catalog, wanted, sql, complaints)
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as reason:  # what DuckDB says when it was interrupted while it handed over the answer
        if "interrupted" not in str(reason):
            raise
        raise KeyboardInterrupt from None
    except duckdb.Error as reason:
        raise UserError(_sentence(reason)) from None
    return Answer(table.column_names, list(_rows(table)), table, complaints)


def _asked(catalog: Catalog, wanted: Selection, sql: str, complaints: list[str]) -> Any:
    """The answer as an Arrow table; a statement without a result, like COPY … TO …, has one without columns."""
    # Without a place of its own DuckDB would spill into the current directory, which may be the storage under test.
    with tempfile.TemporaryDirectory(prefix="sonde-query-") as spill, duckdb.connect(":memory:") as connection:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _MEMORY_SHARE
        connection.execute(f"SET temp_directory = {_quoted(spill)}")
        connection.execute(f"SET memory_limit = '{memory // 2**20}MiB'")
        connection.execute("SET max_temp_directory_size = '4GiB'")
        _define(connection, catalog, wanted, sql, complaints)
        return _interruptible(connection, sql)


def _interruptible(connection: Any, sql: str) -> Any:
    """Runs the statement in a thread: DuckDB itself does not look at signals while it computes."""

    def work() -> Any:
        relation = connection.sql(sql)
        return pa.table({}) if relation is None else relation.to_arrow_table()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(work)
        try:
            while not answer.done():
                wait([answer], timeout=0.2)
            return answer.result()
        except KeyboardInterrupt:
            while not answer.done():  # it may be between two statements, where nothing is to be interrupted
                connection.interrupt()
                wait([answer], timeout=0.1)
            raise


def _rows(table: Any) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    yield from zip(*columns, strict=True)


def _define(connection: Any, catalog: Catalog, wanted: Selection, sql: str, complaints: list[str]) -> None:
    """Makes the tables that the statement names; the others cost nothing."""
    named = {name for name in TABLES if re.search(rf'(\b({_BEFORE_A_TABLE})|,)\s*"?{name}\b', sql, re.IGNORECASE)}
    everything = wanted == Selection()
    # DuckDB looks at what it is given when it is asked, so these names must live as long as the connection.
    needed = bool(named & set(_FILES)) or not everything
    folders = catalog.runs(["run", "folder"], wanted) if needed else index.RUNS.empty_table()
    connection.register("chosen_runs", folders.select(["run"]))
    for part, schema in (("runs", index.RUNS), ("phases", index.PHASES)):
        if part in named:
            _define_part(connection, catalog, part, schema, everything)
    for name in named & set(_FILES):
        files = [catalog.root / folder / _FILES[name] for folder in folders["folder"].to_pylist()]
        present = [str(file) for file in files if _is_table(file, complaints)]
        if not present:
            if files and name == "targets":  # most runs have none: then it is empty, and no mistake
                connection.register(name, tables.empty(_FILES[name]))
                continue
            if not files:
                raise UserError(f"There is no run, or none like that, so no table {name} either; `sonde list` shows.")
            raise UserError(f"None of the {counted(len(files), 'run')} that are meant has a table {name}.")
        source = f"read_parquet([{', '.join(map(_quoted, present))}], union_by_name = true)"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")


def _is_table(file: Path, complaints: list[str]) -> bool:
    """Whether there is a table; a damaged one is a complaint."""
    try:
        parquet.read_metadata(file)
    except FileNotFoundError:
        return False
    except (OSError, pa.ArrowException) as reason:
        complaints.append(f"{file} cannot be read ({' '.join(str(reason).split())[:200]}); it was skipped.")
        return False
    return True


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
    """Names and types of the columns of a table, for people."""
    if part in _FILES:
        return list(tables.columns_of(_FILES[part]).items())
    schema = {"runs": index.RUNS, "phases": index.PHASES}[part]
    return [(one.name, str(one.type)) for one in schema if one.name not in ("changed_ns", "problem", "key")]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sentence(reason: Exception) -> str:
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    text = " ".join(line for line in lines if not re.fullmatch(r"[\^~ ]+|LINE \d+:.*", line))
    # what it proposes may be a table of our own making or of its own
    text = re.sub(r"(Table with name \S+ does not exist)!.*", r"\1; there are " + ", ".join(TABLES), text)
    return f"The query failed: {text.rstrip('.?!')}. `sonde query` without SQL lists the tables and their columns."
