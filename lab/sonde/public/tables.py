# SPDX-License-Identifier: Apache-2.0
"""Tables of the public API: rows that convert to Arrow, pandas and Polars."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, overload

from sonde.model.errors import UserError

Item = TypeVar("Item")
# Rows that a notebook shows of a table.
MAX_DISPLAYED_ROWS = 20


class Convertible(ABC):
    """Rows under named columns."""

    @abstractmethod
    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`."""

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        from sonde.public.html_table import render_notebook_table

        table = self.to_arrow()
        first = table.slice(0, MAX_DISPLAYED_ROWS).to_pydict()
        return render_notebook_table(table.column_names, list(zip(*first.values(), strict=True)), table.num_rows)

    def to_pandas(self) -> Any:
        """Returns a `pandas.DataFrame`. Raises UserError if pandas is not installed."""
        _require_library("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Returns a `polars.DataFrame`. Raises UserError if Polars is not installed."""
        return _require_library("polars").from_arrow(self.to_arrow())


class Table(Convertible):
    """Rows that are read when they are first needed, and then kept in memory."""

    def __init__(self, read_arrow_table: Callable[[], Any]) -> None:
        """`read_arrow_table` returns the rows as a `pyarrow.Table`."""
        self._read = read_arrow_table

    @cached_property
    def _table(self) -> Any:
        return self._read()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, as `sonde query` lists them."""
        return tuple(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`."""
        return self._table


class Rows(Convertible, Sequence[Item], Generic[Item]):
    """Typed objects, one for each row of a table. `==` compares the objects."""

    # Kind of each column: text, int, float, bool or time.
    _kinds: ClassVar[Mapping[str, str]] = {}

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = tuple(items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Rows[Item]:
        return type(self)(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._items)!r})"

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`, one row for each object."""
        return make_arrow_table(self._kinds, [self._to_row(item) for item in self._items])

    @staticmethod
    def _to_row(item: Any) -> Mapping[str, Any]:
        """Returns the values of an object by column."""
        return asdict(item)


def make_arrow_table(kind_by_column: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Returns the rows as a `pyarrow.Table` with these columns; a missing value is null."""
    import pyarrow as pa  # takes longer to import than `import sonde` may take

    from sonde.store.tables import make_arrow_schema

    columns = {
        name: [_convert_cell_value(kind, row.get(name)) for row in rows] for name, kind in kind_by_column.items()
    }
    return pa.Table.from_pydict(columns, schema=make_arrow_schema(kind_by_column))


def _convert_cell_value(column_kind: str, value: Any) -> Any:
    if value is None:
        return None
    return float(value) if column_kind == "float" else str(value) if column_kind == "text" else value


def _require_library(library_name: str) -> Any:
    try:
        return importlib.import_module(library_name)
    except ImportError:
        raise UserError(
            f"This needs the library {library_name}, which is not installed: `pip install {library_name}`."
        ) from None
