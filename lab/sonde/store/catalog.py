# SPDX-License-Identifier: Apache-2.0
"""All runs of an archive as columns: what lists, filters and histories read.

A million runs are some hundred megabytes of columns; only those that are asked for are read, and nothing here goes
through them one by one.
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
from sonde.store.columns import as_read, check_folders, decode_dictionaries, read_columns
from sonde.store.masks import select_wanted_rows
from sonde.store.selection import Selection

Answer = TypeVar("Answer")
_EVERYTHING = Selection(calibrations=True)
_UNSURE = re.compile(r"~\d+r")
_PATIENCE = 20  # times that files of the index may be replaced while they are read


@dataclass(frozen=True)
class Found:
    """Rows in the order of their start, and how many there are of which these may be the last."""

    table: Any
    count: int


class Catalog:
    """The archive at one moment. Opening it brings the index up to date."""

    def __init__(self, root: Path, progress: index.Progress = lambda done, total: None) -> None:
        self.root = root
        self._progress = progress
        self._damaged: set[Path] = set()
        self._parts = index.Index(root).refresh(progress)

    def runs(self, columns: Sequence[str], wanted: Selection = _EVERYTHING) -> Any:
        """A table with these columns of the runs that are wanted (also calibrations, when nothing is said), in the
        order of their start."""
        return self.find(columns, wanted).table

    def find(self, columns: Sequence[str], wanted: Selection = _EVERYTHING, last: int | None = None) -> Found:
        """The same, of the last so many only, and how many there are in all."""
        return self._retry_if_replaced(lambda: self._find_runs(columns, wanted, last))

    def _find_runs(self, columns: Sequence[str], wanted: Selection, last: int | None) -> Found:
        sources = self.sources("runs")
        looked_at = sorted({*wanted.columns(), "started_s"})
        hits, times = [], []
        for source in sources:
            table = source(looked_at)
            hits.append(np.asarray(select_wanted_rows(wanted, table).to_numpy(zero_copy_only=False)))
            times.append(table["started_s"].fill_null(0.0).to_numpy())
        count = int(sum(hit.sum() for hit in hits))
        if last is not None and last < count:
            begin = _find_start_of_last_runs(last, hits, times)
            hits = [hit & (started >= begin) for hit, started in zip(hits, times, strict=True)]
        wide = pa.schema([index.RUNS.field(name) for name in dict.fromkeys([*columns, "started_s", "run"])])
        tables = [
            decode_dictionaries(source(wide.names).filter(pa.array(hit)), index.RUNS)
            for source, hit in zip(sources, hits, strict=True)
            if hit.any()
        ]
        all_rows = pa.concat_tables([wide.empty_table(), *tables])
        check_folders(all_rows)
        if not _is_ascending(all_rows["started_s"].to_numpy()):
            all_rows = all_rows.sort_by([("started_s", "ascending"), ("run", "ascending")])
        return Found(
            all_rows.slice(max(0, len(all_rows) - (count if last is None else last))).select(list(columns)), count
        )

    def complaints(self) -> list[str]:
        """One sentence for each folder that is not a run."""
        return self._retry_if_replaced(self._complaints)

    def _complaints(self) -> list[str]:
        rows: list[dict[str, str]] = []
        for source in self.sources("runs"):
            if source(["problem"])["problem"].null_count < len(source(["problem"])):
                table = source(["folder", "problem"])
                check_folders(table)
                rows += table.filter(compute.is_valid(table["problem"])).to_pylist()
        return sorted(f"{self.root / row['folder']} {row['problem']}; it was skipped." for row in rows)

    def with_sources(self, ask: Callable[[Catalog], Answer]) -> Answer:
        """What `ask` makes of the sources; asked again when somebody replaced a file of the index meanwhile."""
        return self._retry_if_replaced(lambda: ask(self))

    def sources(self, part: str) -> list[Callable[[Sequence[str]], Any]]:
        """A function for each month that reads columns of that part ("runs" or "phases"), text as dictionaries. The
        sources of both parts are in the same order."""
        schema = {"runs": index.RUNS, "phases": index.PHASES}[part]
        files = [functools.partial(read_columns, file, schema=schema) for file in self._parts.files[part]]
        return [*files, *(functools.partial(as_read, table) for table in self._parts.tables[part])]

    def files(self, part: str) -> list[Path]:
        """Files of the index with rows of that part; the others are in `tables`."""
        return self._parts.files[part]

    def tables(self, part: str) -> list[Any]:
        """Rows of that part that were read just now."""
        return self._parts.tables[part]

    def stamps(self) -> list[str] | None:
        """What the files of the index are named by: the same names mean the same runs. None while rows are in memory
        only, or were read so soon after a change that they are read again."""
        names = [file.name for files in self._parts.files.values() for file in files]
        sure = not any(self._parts.tables.values()) and not any(_UNSURE.search(name) for name in names)
        return sorted(names) if sure else None

    def find_cache_folder(self, name: str) -> Path | None:
        """A folder beside the index for what others derive from it; None where nothing can be written."""
        index_place = index.Index(self.root).find_writable_folder()
        return index_place / name if index_place is not None else None

    def _retry_if_replaced(self, ask: Callable[[], Answer]) -> Answer:
        for _ in range(_PATIENCE):
            try:
                return ask()
            except FileNotFoundError:
                pass  # somebody has replaced a file since
            except (OSError, pa.ArrowException):
                self._drop_damaged()
            self._refresh_index()
        return ask()

    def mend(self) -> None:
        """Makes damaged files of the index anew: for those who read the files themselves."""
        self._drop_damaged()
        self._refresh_index()

    def _refresh_index(self) -> None:
        self._parts = index.Index(self.root, self._damaged).refresh(self._progress)

    def _drop_damaged(self) -> None:
        """Takes away the files of the index that cannot be read, or ignores them where they are somebody else's."""
        for part, schema in (("runs", index.RUNS), ("phases", index.PHASES)):
            for file in self._parts.files[part]:
                try:
                    check_folders(read_columns(file, schema.names, schema))
                except (OSError, pa.ArrowException):
                    self._damaged.add(file)
                    with contextlib.suppress(OSError):
                        remove_file(file)


def _find_start_of_last_runs(last: int, hits: Sequence[Any], times: Sequence[Any]) -> float:
    """When the first of the last so many runs started."""
    if last == 0:
        return float("inf")
    all_times = np.concatenate([started[hit] for hit, started in zip(hits, times, strict=True)])
    return float(np.partition(all_times, len(all_times) - last)[len(all_times) - last])


def _is_ascending(values: Any) -> bool:
    return bool(np.all(values[1:] >= values[:-1]))
