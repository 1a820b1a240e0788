# SPDX-License-Identifier: Apache-2.0
"""SQL over the archive, by DuckDB in this process.

The tables are ``runs`` and ``phases`` (from the index, so a million runs are no matter), and ``series``, ``tasks`` and
``targets`` (from the Parquet files of the runs: as many files as there are runs, so say which runs).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet

from sonde.model.confined_files import open_file
from sonde.model.errors import UserError
from sonde.model.units import format_count_with_noun
from sonde.store import index, tables
from sonde.store.catalog import Catalog
from sonde.store.selection import Selection

# Tables that lie in a file of each run.
_TABLE_FILES = {
    "series": tables.SERIES_FILE,
    "tasks": tables.TASKS_FILE,
    "targets": tables.TARGETS_FILE,
    "phases_full": tables.PHASES_FILE,
}
TABLE_NAMES = ("runs", "phases", *_TABLE_FILES)


# Words of DuckDB after which a table is named.
_KEYWORDS_BEFORE_TABLE = "from|join|describe|desc|summarize|table|show|copy"
# A query may take this part of the memory of the machine: others work there too.
_MEMORY_LIMIT_DIVISOR = 4
# What no second try can change.
_STATEMENT_ERRORS = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.InterruptException)


@dataclass(frozen=True)
class SqlResult:
    """The result of a query as an Arrow table, or converted to Python values: four million rows of `phases` take 0.6 GB
    as a table and 6 GB as values."""

    table: Any
    complaints: Sequence[str] = ()  # a sentence for each file that could not be read

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        return self.table.column_names  # type: ignore[no-any-return]

    @cached_property
    def rows(self) -> Sequence[Sequence[Any]]:
        """The rows as Python values."""
        return list(zip(*(column.to_pylist() for column in self.table.columns), strict=True))


def execute_query(catalog: Catalog, selection: Selection, sql_statement: str, allow_files: bool = False) -> SqlResult:
    """Returns the result of one SQL statement about the selected runs. Raises UserError with DuckDB's reason.

    `allow_files`: the statement may read and write any file that the caller may, and load extensions.
    """
    complaints: list[str] = []
    if not allow_files:
        _refuse_copy_statement(sql_statement)
    try:
        try:
            table = _run_statement(catalog, selection, sql_statement, complaints, allow_files)
        except _STATEMENT_ERRORS:
            raise
        except duckdb.Error:
            # A file of the index was damaged or replaced while it was read; DuckDB has many words for that.
            catalog.rebuild_damaged_files()
            complaints.clear()
            table = _run_statement(catalog, selection, sql_statement, complaints, allow_files)
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as reason:  # what DuckDB says when it was interrupted while it handed over the answer
        if "interrupted" not in str(reason):
            raise
        raise KeyboardInterrupt from None
    except duckdb.Error as reason:
        raise UserError(_shorten_reason(reason)) from None
    return SqlResult(table, complaints)


def _refuse_copy_statement(sql_statement: str) -> None:
    """Raises UserError for COPY: the tables lie in files that DuckDB may open, and COPY could replace these."""
    try:
        kinds = {statement.type for statement in duckdb.extract_statements(sql_statement)}
    except duckdb.Error:
        return  # its mistake is reported when it runs
    if {duckdb.StatementType.COPY, duckdb.StatementType.PREPARE} & kinds:
        raise UserError(
            "COPY and PREPARE are not allowed in a query, because COPY reads and writes files; write the answer to a"
            " file with -o FILE, or allow every access to files with --allow-files."
        )


def _run_statement(
    catalog: Catalog, selection: Selection, sql_statement: str, complaints: list[str], allow_files: bool
) -> Any:
    """The answer as an Arrow table; a statement without a result, like COPY … TO …, has one without columns."""
    # Without a place of its own DuckDB would spill into the current directory, which may be the storage under test.
    with tempfile.TemporaryDirectory(prefix="sonde-query-") as spill, duckdb.connect(":memory:") as connection:
        connection.execute(f"SET temp_directory = {_quote_sql(spill)}")
        connection.execute(f"SET memory_limit = '{_format_memory_limit()}'")
        connection.execute("SET max_temp_directory_size = '4GiB'")
        files = _define_tables(connection, catalog, selection, sql_statement, complaints)
        if not allow_files:
            # Only the files of the tables can be opened, and the statement cannot change that.
            connection.execute(f"SET allowed_paths = [{', '.join(map(_quote_sql, files))}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        return _execute_interruptibly(connection, sql_statement)


def _format_memory_limit() -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _MEMORY_LIMIT_DIVISOR
    return f"{memory // 2**20}MiB"


def _execute_interruptibly(duckdb_connection: Any, sql_statement: str) -> Any:
    """Runs the statement in a thread: DuckDB itself does not look at signals while it computes."""

    def execute_in_thread() -> Any:
        relation = duckdb_connection.sql(sql_statement)
        return pa.table({}) if relation is None else relation.to_arrow_table()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(execute_in_thread)
        try:
            while not answer.done():
                wait([answer], timeout=0.2)
            return answer.result()
        except KeyboardInterrupt:
            while not answer.done():  # it may be between two statements, where nothing is to be interrupted
                duckdb_connection.interrupt()
                wait([answer], timeout=0.1)
            raise


def _define_tables(
    duckdb_connection: Any, catalog: Catalog, selection: Selection, sql_statement: str, complaints: list[str]
) -> list[str]:
    """Makes the tables that the statement names; the others cost nothing. Returns the files they lie in."""
    opened: list[str] = []
    named_tables = {
        name
        for name in TABLE_NAMES
        if re.search(rf'(\b({_KEYWORDS_BEFORE_TABLE})|,)\s*"?{name}\b', sql_statement, re.IGNORECASE)
    }
    everything = selection == Selection()
    # DuckDB looks at what it is given when it is asked, so these names must live as long as the connection.
    needed = bool(named_tables & set(_TABLE_FILES)) or not everything
    folders = catalog.read_run_table(["run", "folder"], selection) if needed else index.RUN_SCHEMA.empty_table()
    duckdb_connection.register("chosen_runs", folders.select(["run"]))
    for part, schema in (("runs", index.RUN_SCHEMA), ("phases", index.PHASE_SCHEMA)):
        if part in named_tables:
            _define_table_view(duckdb_connection, catalog, part, schema, everything)
            opened += map(str, catalog.list_index_files(part))
    for name in named_tables & set(_TABLE_FILES):
        files = [catalog.root / folder / _TABLE_FILES[name] for folder in folders["folder"].to_pylist()]
        present = [str(file) for file in files if _has_undamaged_table(file, complaints)]
        if not present:
            if files and name == "targets":  # most runs have none: then it is empty, and no mistake
                duckdb_connection.register(name, tables.make_empty_table(_TABLE_FILES[name]))
                continue
            if not files:
                raise UserError(f"There is no run, or none like that, so no table {name} either; `sonde list` shows.")
            raise UserError(
                f"None of the {format_count_with_noun(len(files), 'run')} that are meant has a table {name}."
            )
        source = f"read_parquet([{', '.join(map(_quote_sql, present))}], union_by_name = true)"
        duckdb_connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")  # nosec B608 # names of _FILES
        opened += present
    return opened


def _has_undamaged_table(table_file: Path, complaints: list[str]) -> bool:
    """Whether there is a table; a damaged one is a complaint."""
    try:
        with open_file(table_file) as content:
            parquet.read_metadata(content)
    except FileNotFoundError:
        return False
    except (OSError, pa.ArrowException) as reason:
        complaints.append(f"{table_file} cannot be read ({' '.join(str(reason).split())[:200]}); it was skipped.")
        return False
    return True


def _define_table_view(
    duckdb_connection: Any, catalog: Catalog, table_name: str, table_schema: Any, include_foreign_runs: bool
) -> None:
    """A view over the files of the index and what is not in them yet."""
    pieces = []
    if files := catalog.list_index_files(table_name):
        names = ", ".join(_quote_sql(str(file)) for file in files)
        pieces.append(f"SELECT * FROM read_parquet([{names}])")  # nosec B608 # quoted
    for number, table in enumerate(
        catalog.list_tables_in_memory(table_name) or ([] if files else [table_schema.empty_table()])
    ):
        duckdb_connection.register(f"{table_name}_{number}", table)
        pieces.append(f"SELECT * FROM {table_name}_{number}")  # nosec B608 # a part and a number
    hidden = "EXCLUDE (changed_ns, problem)" if table_name == "runs" else "EXCLUDE (key)"
    conditions = ["problem IS NULL"] if table_name == "runs" else []
    if include_foreign_runs:
        conditions += ["role <> 'calibration'"] if table_name == "runs" else []
    else:
        conditions += ["run IN (SELECT run FROM chosen_runs)"]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    all_rows = " UNION ALL ".join(pieces)
    duckdb_connection.execute(f"CREATE VIEW {table_name} AS SELECT * {hidden} FROM ({all_rows}){where}")  # nosec B608 # as above


def list_table_columns(table_name: str) -> list[tuple[str, str]]:
    """Names and types of the columns of a table, for people."""
    if table_name in _TABLE_FILES:
        return list(tables.list_columns_of_table_file(_TABLE_FILES[table_name]).items())
    schema = {"runs": index.RUN_SCHEMA, "phases": index.PHASE_SCHEMA}[table_name]
    return [(field.name, str(field.type)) for field in schema if field.name not in ("changed_ns", "problem", "key")]


def _quote_sql(sql_text: str) -> str:
    return "'" + sql_text.replace("'", "''") + "'"


def _shorten_reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(line for line in lines if not re.fullmatch(r"[\^~ ]+|LINE \d+:.*", line))
    # what it proposes may be a table of our own making or of its own
    if isinstance(error, duckdb.PermissionException):
        text = f"{text.rstrip('.?!')}; --allow-files allows queries to read and write files"
    text = re.sub(r"(Table with name \S+ does not exist)!.*", r"\1; there are " + ", ".join(TABLE_NAMES), text)
    return f"The query failed: {text.rstrip('.?!')}. `sonde query` without SQL lists the tables and their columns."
