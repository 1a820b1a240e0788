# SPDX-License-Identifier: Apache-2.0
"""The index of the archive: a cache of its run.json files, as two Parquet files per month.

It is never the truth. Any reader or writer makes what is missing or out of date, alone and without a lock: a month's
files carry in their names the time stamp that the month's folder had when it was read, appear by a rename, and are
replaced, not changed. Whoever finds another time stamp on the folder reads the month again, and of it only the folders
that changed. Deleting the index costs time and nothing else.

::

    sonde-archive/.index/8/2026-11~1795305600123456789.runs.parquet
                           2026-11~1795305600123456789.phases.parquet

A folder that changed within the last two seconds may change again without another time stamp. Rows that were read
within these two seconds are marked with an `r` and read again next time."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import MachineError
from sonde.store import shards
from sonde.store.columns import decode_dictionaries, read_table_columns
from sonde.store.rows import PHASE_COLUMNS, RUN_COLUMNS, Row, read_folder_rows
from sonde.store.tables import make_arrow_schema

# Changes when a column is added or means something else: indexes of other versions are left alone.
INDEX_VERSION = "11"
INDEX_FOLDER = ".index"
_MAX_FRESH_AGE_NS = 2_000_000_000
RUN_SCHEMA = make_arrow_schema(RUN_COLUMNS)
PHASE_SCHEMA = make_arrow_schema(PHASE_COLUMNS)
_INDEX_TABLES = ("runs", "phases")
# How its files are written. Checksums: a cache that is wrong is worse than none.
PARQUET_WRITE_OPTIONS: Mapping[str, Any] = {"compression": "zstd", "write_page_checksum": True}
# A month that has more new folders than this is written while it is read, so that an interruption costs little.
_FOLDERS_PER_BATCH = 20_000

ProgressCallback = Callable[[int, int], None]


@dataclass
class IndexedTables:
    """Where the rows of the archive are: in files of the index, and in memory where they were just made."""

    files: dict[str, list[Path]] = field(default_factory=lambda: {part: [] for part in _INDEX_TABLES})
    tables: dict[str, list[Any]] = field(default_factory=lambda: {part: [] for part in _INDEX_TABLES})


class Index:
    """The index of one archive."""

    def __init__(self, archive_root: Path, damaged_files: Collection[Path] = ()) -> None:
        """`damaged_files`: files that are not to be looked at."""
        self._root = archive_root
        self._damaged = damaged_files
        self._folder: Path | None = None

    def refresh_index(self, on_progress: ProgressCallback = lambda done, total: None) -> IndexedTables:
        """Brings the index up to date and says where its rows are. `on_progress` hears how many new folders were read,
        and of how many."""
        try:
            now = shards.read_shard_stamps(self._root)
        except FileNotFoundError:
            return IndexedTables()
        except OSError as reason:
            raise MachineError(f"The archive {self._root} cannot be read: {reason.strerror}.") from None
        have = self._find_shard_files(now)
        parts = IndexedTables()
        stale = []
        for shard, stamp in now.items():
            if shard in have and have[shard].stamp == str(stamp):
                for part in _INDEX_TABLES:
                    parts.files[part].append(have[shard].files[part])
            else:
                stale.append(shard)
        work = _RefreshProgress(on_progress)
        listings = [(shard, listing) for shard in stale if (listing := self._list_shard(shard)) is not None]
        known_by_shard = {shard: _read_indexed_rows(have.get(shard)) for shard, _ in listings}
        work.total = sum(len(_select_new_folders(listing, known_by_shard[shard])) for shard, listing in listings)
        for shard, listing in listings:
            self._rebuild_shard(shard, listing, known_by_shard[shard], parts, work)
        self._remove_files(pair for shard, pair in have.items() if shard not in now)
        return parts

    def _list_shard(self, shard_name: str) -> shards.ShardListing | None:
        try:
            return shards.list_shard_contents(self._root, shard_name)
        except OSError:
            return None  # removed since

    def _find_shard_files(self, present_stamp_by_shard: Mapping[str, int]) -> dict[str, _ShardFiles]:
        """Shard -> its files: those with the stamp of now if there are any, else others that may hold most of it."""
        pairs_by_shard: dict[str, _ShardFiles] = {}
        for folder in self._list_index_folders():
            for pair in self._find_file_pairs(folder):
                if any(file in self._damaged for file in pair.files.values()):
                    continue
                previous = pairs_by_shard.get(pair.shard)
                if previous is None or (
                    previous.stamp != str(present_stamp_by_shard.get(pair.shard)) and pair.stamp >= previous.stamp
                ):
                    pairs_by_shard[pair.shard] = pair
                if pair.stamp == str(present_stamp_by_shard.get(pair.shard)):
                    pairs_by_shard[pair.shard] = pair
        return pairs_by_shard

    def _find_file_pairs(self, index_folder: Path) -> list[_ShardFiles]:
        """Shards with both files in the directory; of each shard the latest pair. None where other users may write:
        what they planted there would be believed."""
        files_by_stamp: dict[tuple[str, str], dict[str, Path]] = {}
        with suppress(OSError), self._enter_index_folder(index_folder) as folder:
            for name in folder.list_names() if folder.is_protected_from_others() else ():
                stem, _, kind = name.partition(".")
                shard, tilde, stamp = stem.partition("~")
                part = kind.removesuffix(".parquet")
                if tilde and part in _INDEX_TABLES and folder.has_file(name, trusted_only=True):
                    files_by_stamp.setdefault((shard, stamp), {})[part] = index_folder / name
        return [
            _ShardFiles(shard, stamp, files)
            for (shard, stamp), files in files_by_stamp.items()
            if len(files) == len(_INDEX_TABLES)
        ]

    def _rebuild_shard(
        self,
        shard_name: str,
        listing: shards.ShardListing,
        indexed_rows: _IndexedRows,
        index_parts: IndexedTables,
        refresh_work: _RefreshProgress,
    ) -> None:
        new = _select_new_folders(listing, indexed_rows)
        unchanged = indexed_rows.select_folders({name for name in listing.changed_ns if name not in new})
        clock = self._read_storage_clock_ns()
        tables = unchanged.tables
        for start in range(0, len(new), _FOLDERS_PER_BATCH):
            rows: dict[str, list[Row]] = {part: [] for part in _INDEX_TABLES}
            for name in new[start : start + _FOLDERS_PER_BATCH]:
                folder = shards.locate_shard_folder(self._root, shard_name) / name
                folder_name = name if shard_name == shards.ROOT_SHARD else f"{shard_name}/{name}"
                changed = listing.changed_ns[name]
                run, phases = read_folder_rows(
                    folder, folder_name, 0 if clock - changed < _MAX_FRESH_AGE_NS else changed
                )
                rows["runs"].append(run)
                rows["phases"] += phases
                refresh_work.count_folder()
            tables = {
                "runs": _append_rows(tables["runs"], rows["runs"], RUN_SCHEMA),
                "phases": _append_rows(tables["phases"], rows["phases"], PHASE_SCHEMA),
            }
            if start + _FOLDERS_PER_BATCH < len(new):
                self._write_shard_files(shard_name, f"{listing.stamp_ns}r{secrets.token_hex(3)}", tables)
        order = [("started_s", "ascending"), ("run", "ascending")]
        tables = {part: table.sort_by(order) for part, table in tables.items()}
        sure = clock - listing.stamp_ns >= _MAX_FRESH_AGE_NS
        self._write_shard_files(shard_name, f"{listing.stamp_ns}{'' if sure else f'r{secrets.token_hex(3)}'}", tables)
        for part in _INDEX_TABLES:
            # From memory, not from the file: somebody else may replace it before it is read.
            index_parts.tables[part].append(tables[part])

    def _write_shard_files(self, shard_name: str, shard_stamp: str, table_by_name: Mapping[str, Any]) -> None:
        """Writes the files of a shard and removes those that they replace; does nothing if the index is not
        writable."""
        written = {part: f"{shard_name}~{shard_stamp}.{part}.parquet" for part in _INDEX_TABLES}
        # No space, say: the rows are in memory, and the next one tries again.
        with suppress(OSError), self._open_index_folder() as folder:
            for part, name in written.items():
                with folder.open_atomic_replacement(name) as file:
                    parquet.write_table(table_by_name[part], file, **PARQUET_WRITE_OPTIONS)
            for old in folder.list_names():
                if old.startswith(f"{shard_name}~") and old.endswith(".parquet") and old not in written.values():
                    folder.remove_file(old, missing_ok=True)

    def _remove_files(self, file_pairs: Iterable[_ShardFiles]) -> None:
        with suppress(OSError), self._open_index_folder() as folder:
            for pair in file_pairs:
                for file in pair.files.values():
                    if file.parent == folder.path:
                        folder.remove_file(file.name, missing_ok=True)

    def _read_storage_clock_ns(self) -> int:
        """Time of the archive's file server in ns: its clock may differ from the clock of this node."""
        name = f".{secrets.token_hex(6)}.clock"
        with suppress(OSError), self._open_index_folder() as folder:
            folder.create_file(name).close()
            now = folder.stat_entry(name).st_mtime_ns
            folder.remove_file(name, missing_ok=True)
            return now
        return time.time_ns()

    def _list_index_folders(self) -> list[Path]:
        """Where an index may be: in the archive, and with what the user caches, for archives that are not ours."""
        root_hash = hashlib.sha256(str(self._root.resolve()).encode()).hexdigest()[:16]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or "/nonexistent") / ".cache")
        return [self._root / INDEX_FOLDER / INDEX_VERSION, cache / "sonde" / "index" / root_hash / INDEX_VERSION]

    def find_writable_folder(self) -> Path | None:
        """Where the index is written: the first of the places that can be. None when none can."""
        if self._folder is None:
            for path in self._list_index_folders():
                with suppress(OSError), self._enter_index_folder(path, create_if_absent=True) as folder:
                    folder.remove_write_permission_of_others()
                    if folder.is_protected_from_others() and os.access(path, os.W_OK | os.X_OK):
                        self._folder = path
                        break
        return self._folder

    def _open_index_folder(self) -> ConfinedDirectory:
        """The directory that the index is written to. Raises FileNotFoundError when there is none."""
        index_folder = self.find_writable_folder()
        if index_folder is None:
            raise FileNotFoundError(self._root)
        return self._enter_index_folder(index_folder)

    def _enter_index_folder(self, index_folder: Path, create_if_absent: bool = False) -> ConfinedDirectory:
        """Opens one of the places. `create_if_absent`: makes it, so that only its owner may write there whatever the
        umask."""
        parts = (
            index_folder.relative_to(self._root).parts
            if index_folder.is_relative_to(self._root)
            else index_folder.parts[-1:]
        )
        base = index_folder.parents[len(parts) - 1]
        folder = ConfinedDirectory.open(base, create_if_absent and base != self._root)
        for name in parts:
            with folder:
                if create_if_absent and not folder.has_entry(name):
                    with suppress(FileExistsError):
                        folder.create_directory(name).close()
                folder = folder.open_subdirectory(name)
        return folder


@dataclass(frozen=True)
class _ShardFiles:
    """The two files of a shard."""

    shard: str
    stamp: str
    files: Mapping[str, Path]


@dataclass
class _RefreshProgress:
    """Counts folders that were read, for whoever waits."""

    progress: ProgressCallback
    total: int = 0
    done: int = 0

    def count_folder(self) -> None:
        self.done += 1
        if self.done % 256 == 0 or self.done == self.total:
            self.progress(self.done, self.total)


@dataclass(frozen=True)
class _IndexedRows:
    """Rows of a shard in an older index."""

    tables: Mapping[str, Any]

    def changed_ns(self) -> dict[str, int]:
        folders = self.tables["runs"].column("folder").to_pylist()
        return {
            str(folder).rpartition("/")[2]: changed
            for folder, changed in zip(folders, self.tables["runs"].column("changed_ns").to_pylist(), strict=True)
        }

    def select_folders(self, folder_names: set[str]) -> _IndexedRows:
        """Without the rows of other folders."""
        runs, phases = self.tables["runs"], self.tables["phases"]
        if not len(runs):
            return self
        stay = pa.array(
            [str(folder_name).rpartition("/")[2] in folder_names for folder_name in runs.column("folder").to_pylist()]
        )
        runs = runs.filter(stay)
        return _IndexedRows(
            {"runs": runs, "phases": phases.filter(compute.is_in(phases["run"], runs["run"].combine_chunks()))}
        )


def _select_new_folders(listing: shards.ShardListing, known_rows: _IndexedRows) -> list[str]:
    """Folders that the index does not know as they are now."""
    before = known_rows.changed_ns()
    return [name for name, changed in listing.changed_ns.items() if before.get(name) != changed]


def _read_indexed_rows(file_pair: _ShardFiles | None) -> _IndexedRows:
    if file_pair is not None:
        try:
            schemas = {"runs": RUN_SCHEMA, "phases": PHASE_SCHEMA}
            return _IndexedRows(
                {
                    part: decode_dictionaries(read_table_columns(file_pair.files[part], schema.names, schema), schema)
                    for part, schema in schemas.items()
                }
            )
        except (OSError, pa.ArrowException):
            pass  # a damaged index is as good as none
    return _IndexedRows({"runs": RUN_SCHEMA.empty_table(), "phases": PHASE_SCHEMA.empty_table()})


def _append_rows(table: Any, new_rows: Sequence[Row], table_schema: Any) -> Any:
    columns = {
        name: [
            float(value) if isinstance(value := row.get(name), int) and kind == pa.float64() else value
            for row in new_rows
        ]
        for name, kind in zip(table_schema.names, table_schema.types, strict=True)
    }
    return pa.concat_tables([table, pa.Table.from_pydict(columns, schema=table_schema)])
