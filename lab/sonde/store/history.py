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
from sonde.store.columns import Coded, combine_chunks, test_each_value
from sonde.store.masks import select_wanted_rows
from sonde.store.selection import Selection

_COLUMNS = ("history", "key", "started_s", "value", "run", "group", "plan")


class Texts(Sequence[str]):
    """Texts that stay in their column until somebody looks at them: a history may have millions."""

    def __init__(self, column: Coded, rows: NDArray[np.int64]) -> None:
        self._column = column
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        if isinstance(position, slice):
            return self._column.take(self._rows[position])
        return self._column.text(int(self._rows[position])) or ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._column.take(self._rows))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True)
class Series:
    """One number over time, the oldest first."""

    key: HistoryKey
    plan: str  # what people call the experiment: the id of the latest plan
    times: NDArray[np.float64]  # starts of the runs, seconds since 1970 (UTC)
    values: NDArray[np.float64]  # in key.unit, above zero
    runs: Sequence[str]  # ids
    groups: Sequence[str]  # what the run was a part of (repeats of one probe, one check); "" when it stood alone

    def __len__(self) -> int:
        return len(self.values)


def list_series(archive: Archive, wanted: Selection | None = None, ids: Sequence[str] | None = None) -> list[Series]:
    """Every history, sorted by key; of the runs that are wanted only, and with these history ids only, if given."""
    return list_series_in_catalog(Catalog(archive.root), wanted, ids)


def list_series_in_catalog(
    catalog: Catalog, wanted: Selection | None = None, ids: Sequence[str] | None = None
) -> list[Series]:
    """The same from a catalog that is open already."""
    parts = catalog.with_sources(lambda pair: list(_read_series_rows(pair, wanted, ids)))
    return sorted(_split_into_series(parts), key=lambda pair: pair.key)


def _read_series_rows(catalog: Catalog, wanted: Selection | None, ids: Sequence[str] | None) -> Iterator[Any]:
    """For each month the rows that belong to a history."""
    for runs, phases in zip(catalog.sources("runs"), catalog.sources("phases"), strict=True):
        rows = phases(_COLUMNS)
        keep = compute.is_valid(combine_chunks(rows["history"]))
        if ids is not None:
            keep = compute.and_(
                keep, test_each_value(rows["history"], lambda texts: compute.is_in(texts, pa.array(ids)))
            )
        if wanted is not None:
            table = runs(sorted({*wanted.columns(), "run"}))
            names = combine_chunks(table.filter(select_wanted_rows(wanted, table))["run"].cast(pa.string()))
            keep = compute.and_(keep, test_each_value(rows["run"], functools.partial(compute.is_in, value_set=names)))
        rows_left = rows.filter(keep)
        if len(rows_left):
            yield rows_left


def _split_into_series(parts: Sequence[Any]) -> Iterator[Series]:
    """One history for each history id in the rows."""
    if not parts:
        return
    series = Coded((part["history"] for part in parts), unique=True)
    keys = Coded((part["key"] for part in parts), unique=False)
    plans = Coded((part["plan"] for part in parts), unique=False)
    groups = Coded((part["group"] for part in parts), unique=False)
    runs = Coded((part["run"] for part in parts), unique=False)
    times = np.concatenate([part["started_s"].to_numpy() for part in parts])
    values = np.concatenate([part["value"].to_numpy() for part in parts])
    small = series.codes.astype(np.uint16) if len(series.texts) < 2**16 else series.codes
    order = np.argsort(small, kind="stable")  # numpy sorts numbers of 16 bits in linear time
    for rows in np.split(order, np.flatnonzero(np.diff(series.codes[order])) + 1):
        in_time = rows if _is_rising(times[rows]) else _sort_by_time(rows, times, runs)
        yield Series(
            key=HistoryKey(**json.loads(keys.text(int(in_time[-1])) or "{}")),
            plan=plans.text(int(in_time[-1])) or "",
            times=times[in_time],
            values=values[in_time],
            runs=Texts(runs, in_time),
            groups=Texts(groups, in_time),
        )


def _is_rising(times: NDArray[np.float64]) -> bool:
    return bool(np.all(times[1:] > times[:-1]))


def _sort_by_time(rows: NDArray[np.int64], times: NDArray[np.float64], runs: Coded) -> NDArray[np.int64]:
    """`rows` by time; those that started in the same second by name."""
    return rows[np.lexsort((np.array(runs.take(rows)), times[rows]))]
