# SPDX-License-Identifier: Apache-2.0
"""All runs of an archive as columns: what lists, filters and histories read.

A million runs are some hundred megabytes of columns; only the requested columns are read, and no function loops over
single runs.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from sonde.model.confined_files import remove_file
from sonde.store import index
from sonde.store.columns import (
    check_folder_column,
    decode_dictionaries,
    read_table_columns,
    select_columns_with_dictionaries,
)
from sonde.store.masks import make_selection_mask
from sonde.store.selection import Selection

QueryResult = TypeVar("QueryResult")
_ALL_RUNS = Selection(calibrations=True)
_RECOVERED_RUN_SUFFIX_PATTERN = re.compile(r"~\d+r")
_MAX_QUERY_RETRIES = 20  # times that files of the index may be replaced while they are read


@dataclass(frozen=True)
class SelectedRuns:
    """Rows in the order of their start, and the number of all selected runs, of which these may be only the last."""

    table: Any
    count: int


class Catalog:
    """The archive at one moment. Opening it brings the index up to date."""

    def __init__(self, archive_root: Path, progress: index.ProgressCallback = lambda done, total: None) -> None:
        self.root = archive_root
        self._progress = progress
        self._damaged: set[Path] = set()
        self._parts = index.Index(archive_root).refresh_index(progress)

    def read_run_table(self, column_names: Sequence[str], selection: Selection = _ALL_RUNS) -> Any:
        """A table with these columns of the selected runs (without a selection: all runs with calibrations), in the
        order of their start."""
        return self.find_runs(column_names, selection).table

    def find_runs(
        self, column_names: Sequence[str], selection: Selection = _ALL_RUNS, last_count: int | None = None
    ) -> SelectedRuns:
        """Rows of the last `last_count` selected runs, and the number of all selected runs."""
        return self._retry_if_replaced(lambda: self._find_runs_once(column_names, selection, last_count))

    def _find_runs_once(
        self, column_names: Sequence[str], selection: Selection, last_count: int | None
    ) -> SelectedRuns:
        sources = self.list_column_readers("runs")
        looked_at = sorted({*selection.list_needed_columns(), "started_s"})
        hits, times = [], []
        for source in sources:
            table = source(looked_at)
            hits.append(np.asarray(make_selection_mask(selection, table).to_numpy(zero_copy_only=False)))
            times.append(table["started_s"].fill_null(0.0).to_numpy())
        count = int(sum(hit.sum() for hit in hits))
        if last_count is not None and last_count < count:
            begin = _find_start_of_last_runs(last_count, hits, times)
            hits = [hit & (started >= begin) for hit, started in zip(hits, times, strict=True)]
        wide = pa.schema([index.RUN_SCHEMA.field(name) for name in dict.fromkeys([*column_names, "started_s", "run"])])
        tables = [
            decode_dictionaries(source(wide.names).filter(pa.array(hit)), index.RUN_SCHEMA)
            for source, hit in zip(sources, hits, strict=True)
            if hit.any()
        ]
        all_rows = pa.concat_tables([wide.empty_table(), *tables])
        check_folder_column(all_rows)
        if not _is_ascending(all_rows["started_s"].to_numpy()):
            all_rows = all_rows.sort_by([("started_s", "ascending"), ("run", "ascending")])
        return SelectedRuns(
            all_rows.slice(max(0, len(all_rows) - (count if last_count is None else last_count))).select(
                list(column_names)
            ),
            count,
        )

    def describe_foreign_folders(self) -> list[str]:
        """One sentence for each folder that is not a run."""
        return self._retry_if_replaced(self._describe_foreign_folders_once)

    def _describe_foreign_folders_once(self) -> list[str]:
        rows: list[dict[str, str]] = []
        for source in self.list_column_readers("runs"):
            if source(["problem"])["problem"].null_count < len(source(["problem"])):
                table = source(["folder", "problem"])
                check_folder_column(table)
                rows += table.filter(compute.is_valid(table["problem"])).to_pylist()
        return sorted(f"{self.root / row['folder']} {row['problem']}; it was skipped." for row in rows)

    def query_sources(self, query: Callable[[Catalog], QueryResult]) -> QueryResult:
        """Returns the result of `query`, and repeats the query if another process replaced a file of the index
        meanwhile."""
        return self._retry_if_replaced(lambda: query(self))

    def list_column_readers(self, table_name: str) -> list[Callable[[Sequence[str]], Any]]:
        """A function for each month that reads columns of that part ("runs" or "phases"), text as dictionaries. The
        sources of both parts are in the same order."""
        schema = {"runs": index.RUN_SCHEMA, "phases": index.PHASE_SCHEMA}[table_name]
        files = [
            functools.partial(read_table_columns, file, table_schema=schema) for file in self._parts.files[table_name]
        ]
        return [
            *files,
            *(functools.partial(select_columns_with_dictionaries, table) for table in self._parts.tables[table_name]),
        ]

    def list_index_files(self, table_name: str) -> list[Path]:
        """Files of the index with rows of that part; `list_tables_in_memory` has the others."""
        return self._parts.files[table_name]

    def list_tables_in_memory(self, table_name: str) -> list[Any]:
        """Rows of that part that were read just now."""
        return self._parts.tables[table_name]

    def list_index_stamps(self) -> list[str] | None:
        """The key of the index files: equal names mean equal runs. None while rows are in memory
        only, or were read so soon after a change that they are read again."""
        names = [file.name for files in self._parts.files.values() for file in files]
        sure = not any(self._parts.tables.values()) and not any(
            _RECOVERED_RUN_SUFFIX_PATTERN.search(name) for name in names
        )
        return sorted(names) if sure else None

    def find_cache_folder(self, cache_name: str) -> Path | None:
        """A folder next to the index for data derived from it; None if it cannot be created."""
        index_place = index.Index(self.root).find_writable_folder()
        return index_place / cache_name if index_place is not None else None

    def _retry_if_replaced(self, query: Callable[[], QueryResult]) -> QueryResult:
        for _ in range(_MAX_QUERY_RETRIES):
            try:
                return query()
            except FileNotFoundError:
                pass  # somebody has replaced a file since
            except (OSError, pa.ArrowException):
                self._drop_damaged()
            self._refresh_index()
        return query()

    def rebuild_damaged_files(self) -> None:
        """Makes damaged files of the index anew: for those who read the files themselves."""
        self._drop_damaged()
        self._refresh_index()

    def _refresh_index(self) -> None:
        self._parts = index.Index(self.root, self._damaged).refresh_index(self._progress)

    def _drop_damaged(self) -> None:
        """Removes index files that cannot be read; those of other users are ignored."""
        for part, schema in (("runs", index.RUN_SCHEMA), ("phases", index.PHASE_SCHEMA)):
            for file in self._parts.files[part]:
                try:
                    check_folder_column(read_table_columns(file, schema.names, schema))
                except (OSError, pa.ArrowException):
                    self._damaged.add(file)
                    with contextlib.suppress(OSError):
                        remove_file(file)


def _find_start_of_last_runs(last_count: int, row_masks: Sequence[Any], start_times: Sequence[Any]) -> float:
    """When the first of the last so many runs started."""
    if last_count == 0:
        return float("inf")
    all_times = np.concatenate([started[hit] for hit, started in zip(row_masks, start_times, strict=True)])
    return float(np.partition(all_times, len(all_times) - last_count)[len(all_times) - last_count])


def _is_ascending(array: Any) -> bool:
    return bool(np.all(array[1:] >= array[:-1]))
