# SPDX-License-Identifier: Apache-2.0
"""Results of a run as Parquet, one file per kind of row, for queries over many runs.

Every row carries the id of its run, so ``SELECT … FROM 'sonde-archive/*/phases.parquet'`` needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sonde.findings.target_operations import read_target_operations
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.lines import SeriesLine, TableLine
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run
from sonde.store.pandas_discovery import prevent_pandas_import
from sonde.store.summary import classify_for_tables

PHASES_FILE, SERIES_FILE, TASKS_FILE, TARGETS_FILE = (
    "phases.parquet",
    "series.parquet",
    "tasks.parquet",
    "targets.parquet",
)
_RATE_NAMES = ("total", "transfer", "stonewall", "steady", "task_sum", "first_done")
_LATENCY_KINDS = (
    *("read", "write", "open", "fsync", "close", "stat", "remove"),
    *("create", "mkdir", "open_close", "readdir", "rename", "rmdir"),
)
_LATENCY_COLUMNS = ("count", "min_ns", "mean_ns", "p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns")
_TASK_TIME_PARTS = ("elapsed", "open", "transfer", "fsync", "close", "verify")
# Rows that are held in memory at once, and written as one group.
_MAX_ROWS_PER_GROUP = 65536
_TARGET_TIMES = ("p50_ns", "p90_ns", "p99_ns", "max_ns")
_SPREAD_COLUMNS = ("min", "p25", "p50", "p75", "max")
_SPREAD_RATES = ("task_rate", "node_rate", "node_ops_rate")


def write_tables(
    directory: ConfinedDirectory, run_id: str, reader: RecordReader, run_facts: Mapping[str, Any] | None = None
) -> None:
    """Writes the files into `directory`; that of targets only where the record knows any. `run_facts`: of run.json."""
    run = make_recorded_run(reader, directory.path, run_facts)
    phases = run.phases
    rows = ([{**_make_phase_row(run_id, phase), **classify_for_tables(run, phase)}] for phase in phases)
    _write_parquet_table(directory, PHASES_FILE, _define_phase_columns(), rows)
    series = (line for phase in phases for line in phase.series)
    _write_parquet_table(
        directory, SERIES_FILE, _define_series_columns(), (_make_series_rows(run_id, line) for line in series)
    )
    tables = [table for phase in phases for table in phase.tasks]
    types = _define_task_columns(tables)
    _write_parquet_table(directory, TASKS_FILE, types, (_make_task_rows(run_id, table, types) for table in tables))
    targets = [_make_target_rows(run_id, run, phase) for phase in phases]
    if any(targets):
        _write_parquet_table(directory, TARGETS_FILE, _define_target_columns(), targets)


def list_columns_of_table_file(table_file: str) -> dict[str, str]:
    """Names and kinds (text, int, float, bool) of the columns of one of the files; those of the tasks file are the ones
    that every run has, the rest depends on what its phases count."""
    types = {
        PHASES_FILE: _define_phase_columns(),
        SERIES_FILE: _define_series_columns(),
        TASKS_FILE: _define_task_columns([]),
        TARGETS_FILE: _define_target_columns(),
    }
    return types[table_file]


def make_empty_table(table_file: str) -> Any:
    """One of the files without rows, as an Arrow table."""
    return make_arrow_schema(list_columns_of_table_file(table_file)).empty_table()


def make_arrow_schema(column_types: Mapping[str, str]) -> Any:
    """Returns the Arrow schema of columns by name; kinds are text, int, float, bool, texts and time (UTC)."""
    # pyarrow takes longer to import than most commands take to run
    import pyarrow as pa

    prevent_pandas_import(pa)
    kinds: dict[str, Any] = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    kinds |= {"texts": pa.list_(pa.string()), "time": pa.timestamp("us", tz="UTC")}
    return pa.schema([(name, kinds[kind]) for name, kind in column_types.items()])


def _write_parquet_table(
    directory: ConfinedDirectory,
    file_name: str,
    column_types: dict[str, str],
    row_groups: Iterable[Sequence[dict[str, Any]]],
) -> None:
    """One group of rows after the other, so that a run on thousands of nodes needs no more memory than one of them."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    schema = make_arrow_schema(column_types)
    with (
        directory.open_atomic_replacement(file_name) as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for rows in _join_small_groups(row_groups, _MAX_ROWS_PER_GROUP):
            columns = {
                file_name: [_convert_cell_value(kind, row.get(file_name)) for row in rows]
                for file_name, kind in column_types.items()
            }
            writer.write_table(pa.Table.from_pydict(columns, schema=schema))


def _join_small_groups(row_groups: Iterable[Sequence[dict[str, Any]]], min_rows: int) -> Iterator[list[dict[str, Any]]]:
    """Joins groups until they hold `min_rows` rows: small groups would make a file of crumbs."""
    gathered: list[dict[str, Any]] = []
    for rows in row_groups:
        gathered += rows
        if len(gathered) >= min_rows:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


def _convert_cell_value(column_kind: str, cell_value: Any) -> Any:
    return float(cell_value) if column_kind == "float" and cell_value is not None else cell_value


def _define_phase_columns() -> dict[str, str]:
    types = {"run": "text", "phase": "text", "index": "int", "op": "text", "backend": "text"}
    types |= {"direct": "bool", "cache": "text", "measured": "bool", "finished": "bool", "stopped_by": "text"}
    types |= {"planned_bytes": "int", "bytes": "int", "bytes_read": "int", "bytes_written": "int"}
    types |= {"planned_ops": "int", "ops": "int", "ops_failed": "int", "ops_short": "int", "files": "int"}
    types |= {f"{part}_s": "float" for part in _TASK_TIME_PARTS}
    for rate in _RATE_NAMES:
        types |= {f"{rate}_bytes_per_s": "float", f"{rate}_ops_per_s": "float", f"{rate}_s": "float"}
    for kind in _LATENCY_KINDS:
        types |= {f"{kind}_{name}": "int" if name == "count" else "float" for name in _LATENCY_COLUMNS}
    types |= {"user_s": "float", "system_s": "float", "bytes_per_system_s": "float", "max_over_mean": "float"}
    types |= {"tail_share": "float", "wearout_ratio": "float", "residency": "float", "checked_bytes": "int"}
    types |= {
        "mismatches": "int",
        "findings": "text",
        "classification": "text",
        "classification_text": "text",
        "validity": "text",
    }
    return types


def _make_phase_row(run_id: str, phase: PhaseRecord) -> dict[str, Any]:
    begin, end = phase.begin, phase.end
    row: dict[str, Any] = {
        "run": run_id,
        "phase": begin.phase,
        "index": begin.index,
        "op": begin.op,
        "backend": begin.backend,
        "direct": begin.direct,
        "cache": begin.cache,
        "measured": begin.measured,
        "finished": end is not None,
        "planned_bytes": begin.planned_bytes,
        "planned_ops": begin.planned_ops,
        "files": begin.files,
        "findings": ",".join(finding.id for finding in phase.findings),
    }
    if end is None:
        return row
    row |= {"stopped_by": end.stopped_by, "bytes": end.bytes.transferred, "ops": end.ops.done}
    row |= {"bytes_read": end.bytes.read, "bytes_written": end.bytes.written}
    row |= {"ops_failed": end.ops.failed, "ops_short": end.ops.short}
    row |= {f"{part}_s": getattr(end.seconds, part) for part in _TASK_TIME_PARTS}
    for name in _RATE_NAMES:
        rate = getattr(end.rates, name)
        if rate is not None:
            row |= {f"{name}_bytes_per_s": rate.bytes_per_s, f"{name}_ops_per_s": rate.ops_per_s}
            row[f"{name}_s"] = rate.seconds
    for kind, latency in end.latency.items():
        if kind in _LATENCY_KINDS:
            row |= {f"{kind}_{name}": getattr(latency, name) for name in _LATENCY_COLUMNS}
    row |= {"user_s": end.cpu.user_s, "system_s": end.cpu.system_s, "bytes_per_system_s": end.cpu.bytes_per_system_s}
    row |= {"max_over_mean": end.imbalance.max_over_mean, "tail_share": end.imbalance.tail_share}
    row |= {"wearout_ratio": end.wearout_ratio, "residency": end.residency}
    if end.verify is not None:
        row |= {"checked_bytes": end.verify.checked_bytes, "mismatches": end.verify.mismatches}
    return row


def _define_series_columns() -> dict[str, str]:
    types = {"run": "text", "phase": "text", "scope": "text", "node": "int", "slice": "int", "start_s": "float"}
    types |= {"slice_s": "float", "bytes": "int", "ops": "int", "active": "int", "extreme": "text"}
    types |= {"target": "text", "kind": "text", "single_ops": "int", "single_ns": "int"}
    return types | {f"{of}_{name}": "float" for of in _SPREAD_RATES for name in _SPREAD_COLUMNS}


def _make_series_rows(run_id: str, series: SeriesLine) -> list[dict[str, Any]]:
    rows = []
    for position in range(max(len(series.bytes), len(series.ops))):
        row: dict[str, Any] = {
            "run": run_id,
            "phase": series.phase,
            "scope": series.scope,
            "node": series.node,
            "slice": position,
            "start_s": position * series.slice_s,
            "slice_s": series.slice_s,
        }
        row |= {"target": series.target, "kind": series.kind}
        for name in ("bytes", "ops", "active", "single_ops", "single_ns"):
            row[name] = _get_value_or_none(getattr(series, name), position)
        row["extreme"] = series.extreme
        for of in _SPREAD_RATES:
            row |= {
                f"{of}_{name}": _get_value_or_none(getattr(getattr(series, of), name), position)
                for name in _SPREAD_COLUMNS
            }
        rows.append(row)
    return rows


def _define_target_columns() -> dict[str, str]:
    types = {"run": "text", "phase": "text", "target": "text", "kind": "text", "server": "text", "unit": "text"}
    types |= {"bytes": "int", "bytes_per_s": "float", "ops": "int", "single_ops": "int", "single_ns": "int"}
    return types | dict.fromkeys(_TARGET_TIMES, "float")


def _make_target_rows(run_id: str, run: RecordedRun, phase: PhaseRecord) -> list[dict[str, Any]]:
    seconds = phase.end.seconds.elapsed if phase.end else None
    rows = []
    for operation in read_target_operations(phase.targets) if phase.targets else ():
        row: dict[str, Any] = {"run": run_id, "phase": phase.id, **vars(operation)}
        row |= {
            "server": run.parents.find_server_of_target(operation.target),
            "unit": run.parents.find_unit_of_target(operation.target),
        }
        rows.append(row | {"bytes_per_s": operation.bytes / seconds if seconds else None})
    return rows


def _get_value_or_none(row_values: Sequence[Any], position: int) -> Any:
    return row_values[position] if position < len(row_values) else None


def _define_task_columns(task_tables: Sequence[TableLine]) -> dict[str, str]:
    """The columns are the record's own: whichever the engine wrote, in the order it first wrote them."""
    types: dict[str, str] = {"run": "text", "phase": "text", "task": "int"}
    for table in task_tables:
        for values in table.rows:
            for name, value in zip(table.columns, values, strict=False):
                types[name] = _widen_column_kind(types.get(name), value)
    return {name: kind or "text" for name, kind in types.items()}


def _make_task_rows(run_id: str, task_table: TableLine, column_types: dict[str, str]) -> list[dict[str, Any]]:
    rows = []
    for number, values in enumerate(task_table.rows):
        row: dict[str, Any] = {"run": run_id, "phase": task_table.phase, "task": task_table.first_task + number}
        row |= dict(zip(task_table.columns, values, strict=False))
        rows.append({name: _convert_to_column_value(column_types[name], value) for name, value in row.items()})
    return rows


def _widen_column_kind(kind_so_far: str | None, cell_value: Any) -> str:
    """The narrowest type for all values so far and `cell_value`; "" if all were null."""
    if cell_value is None:
        return kind_so_far or ""
    kind_of_value = "bool" if isinstance(cell_value, bool) else "int" if isinstance(cell_value, int) else "float"
    kind_of_value = kind_of_value if isinstance(cell_value, bool | int | float) else "text"
    if not kind_so_far or kind_so_far == kind_of_value:
        return kind_of_value
    return "float" if {kind_so_far, kind_of_value} == {"int", "float"} else "text"


def _convert_to_column_value(column_kind: str, cell_value: Any) -> Any:
    if cell_value is None or column_kind != "text":
        return cell_value
    return cell_value if isinstance(cell_value, str) else str(cell_value)
