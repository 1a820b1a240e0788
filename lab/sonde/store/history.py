# SPDX-License-Identifier: Apache-2.0
"""All histories in the archive, ready for statistics.

A history holds only comparable values: see ``sonde.model.history_key``. It has no phases that are unfinished, were
ended by an error or a signal, or failed verification, and no calibrations.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from numpy.typing import NDArray

from sonde.model.history_key import HistoryKey
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog
from sonde.store.columns import CodedTextColumn, apply_predicate_to_distinct_texts, combine_chunks
from sonde.store.masks import make_selection_mask
from sonde.store.selection import Selection

_HISTORY_COLUMNS = ("history", "key", "started_s", "value", "run", "group", "plan")


class TextRows(Sequence[str]):
    """Texts that stay in their column until they are accessed: a history may have millions."""

    def __init__(self, column: CodedTextColumn, row_indices: NDArray[np.int64]) -> None:
        self._column = column
        self._rows = row_indices

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        if isinstance(position, slice):
            return self._column.get_texts(self._rows[position])
        return self._column.get_text(int(self._rows[position])) or ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._column.get_texts(self._rows))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True)
class StoredHistory:
    """One number over time, the oldest first."""

    key: HistoryKey
    plan: str  # what people call the experiment: the id of the latest plan
    times: NDArray[np.float64]  # starts of the runs, seconds since 1970 (UTC)
    values: NDArray[np.float64]  # in key.unit, above zero
    runs: Sequence[str]  # ids
    groups: Sequence[str]  # what the run was a part of (repeats of one probe, one check); "" when it stood alone

    def __len__(self) -> int:
        return len(self.values)


def list_histories(
    archive: Archive, selection: Selection | None = None, history_ids: Sequence[str] | None = None
) -> list[StoredHistory]:
    """Every history, sorted by key; of the runs that are wanted only, and with these history ids only, if given."""
    return list_histories_in_catalog(Catalog(archive.root), selection, history_ids)


def list_histories_in_catalog(
    catalog: Catalog, selection: Selection | None = None, history_ids: Sequence[str] | None = None
) -> list[StoredHistory]:
    """Lists histories from an open catalog."""
    parts = catalog.query_sources(lambda pair: list(_iterate_history_rows(pair, selection, history_ids)))
    return sorted(_split_into_histories(parts), key=lambda pair: pair.key)


def _iterate_history_rows(
    catalog: Catalog, selection: Selection | None, history_ids: Sequence[str] | None
) -> Iterator[Any]:
    """For each month the rows that belong to a history."""
    for runs, phases in zip(catalog.list_column_readers("runs"), catalog.list_column_readers("phases"), strict=True):
        rows = phases(_HISTORY_COLUMNS)
        keep = compute.is_valid(combine_chunks(rows["history"]))
        if history_ids is not None:
            keep = compute.and_(
                keep,
                apply_predicate_to_distinct_texts(
                    rows["history"], lambda texts: compute.is_in(texts, pa.array(history_ids))
                ),
            )
        if selection is not None:
            table = runs(sorted({*selection.list_needed_columns(), "run"}))
            names = combine_chunks(table.filter(make_selection_mask(selection, table))["run"].cast(pa.string()))
            keep = compute.and_(
                keep, apply_predicate_to_distinct_texts(rows["run"], functools.partial(compute.is_in, value_set=names))
            )
        rows_left = rows.filter(keep)
        if len(rows_left):
            yield rows_left


def _split_into_histories(monthly_tables: Sequence[Any]) -> Iterator[StoredHistory]:
    """One history for each history id in the rows."""
    if not monthly_tables:
        return
    series = CodedTextColumn((part["history"] for part in monthly_tables), has_unique_codes=True)
    keys = CodedTextColumn((part["key"] for part in monthly_tables), has_unique_codes=False)
    plans = CodedTextColumn((part["plan"] for part in monthly_tables), has_unique_codes=False)
    groups = CodedTextColumn((part["group"] for part in monthly_tables), has_unique_codes=False)
    runs = CodedTextColumn((part["run"] for part in monthly_tables), has_unique_codes=False)
    times = np.concatenate([part["started_s"].to_numpy() for part in monthly_tables])
    values = np.concatenate([part["value"].to_numpy() for part in monthly_tables])
    small = series.codes.astype(np.uint16) if len(series.texts) < 2**16 else series.codes
    order = np.argsort(small, kind="stable")  # numpy sorts numbers of 16 bits in linear time
    for rows in np.split(order, np.flatnonzero(np.diff(series.codes[order])) + 1):
        in_time = rows if _is_rising(times[rows]) else _sort_rows_by_time(rows, times, runs)
        yield StoredHistory(
            key=HistoryKey(**json.loads(keys.get_text(int(in_time[-1])) or "{}")),
            plan=plans.get_text(int(in_time[-1])) or "",
            times=times[in_time],
            values=values[in_time],
            runs=TextRows(runs, in_time),
            groups=TextRows(groups, in_time),
        )


def _is_rising(start_times: NDArray[np.float64]) -> bool:
    return bool(np.all(start_times[1:] > start_times[:-1]))


def _sort_rows_by_time(
    row_indices: NDArray[np.int64], start_times: NDArray[np.float64], run_column: CodedTextColumn
) -> NDArray[np.int64]:
    """`row_indices` by time; those that started in the same second by name."""
    return row_indices[np.lexsort((np.array(run_column.get_texts(row_indices)), start_times[row_indices]))]
