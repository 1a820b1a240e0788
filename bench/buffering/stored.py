# SPDX-License-Identifier: Apache-2.0
"""A program with a database in a file: stored.py sqlite|sqlite-wal|lmdb.insert|select FILE COUNT.

Each insert is a transaction. Every select is for one row, by its key.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path


def run_sqlite(journal: str, kind: str, file: Path, count: int) -> None:
    if kind == "insert":
        for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
            path.unlink(missing_ok=True)
    data = sqlite3.connect(file, isolation_level=None)
    data.execute(f"pragma journal_mode={journal}")
    data.execute("pragma cache_size=20")  # what is looked up comes from the file
    if kind == "insert":
        data.execute("create table lines (number integer primary key, text text)")
        for number in range(count):
            data.execute("insert into lines values (?, ?)", (number, "x" * (number % 300)))
    else:
        for number in range(10 * count):
            key = number * 7919 % count
            assert len(data.execute("select text from lines where number = ?", (key,)).fetchone()[0]) == key % 300


def run_lmdb(kind: str, file: Path, count: int) -> None:
    import lmdb as library

    with library.open(str(file), subdir=False, map_size=1 << 28) as data:
        if kind == "insert":
            for number in range(count):
                with data.begin(write=True) as change:
                    change.put(b"%09d" % number, b"x" * (number % 300))
            return
        for number in range(20 * count):
            with data.begin() as look:
                key = number * 7919 % count
                value = look.get(b"%09d" % key)
                assert value is not None
                assert len(value) == key % 300


def main() -> None:
    cell, name, count = sys.argv[1:]
    library, kind = cell.split(".")
    if library == "lmdb":
        run_lmdb(kind, Path(name), int(count))
    else:
        run_sqlite("wal" if library == "sqlite-wal" else "delete", kind, Path(name), int(count))


if __name__ == "__main__":
    main()
