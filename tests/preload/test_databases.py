# SPDX-License-Identifier: Apache-2.0
"""Databases that are libraries, under the preload library, used by two processes that are killed: nothing they promised
is missing and nothing is damaged. With `eager` too, although somebody else looks then: their processes share memory, or
lock parts of their files, and that is noticed.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from preload_under_test import Preload

PARAMS = {"auto": "*:auto", "named": "*", "alone": "*:alone"}
every_setting = pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS.keys())
kills_by_day_and_night = pytest.mark.parametrize("kills", [3, pytest.param(500, marks=pytest.mark.nightly)])

WRITER = """
import sqlite3, sys
name, journal, sign = sys.argv[1:]
data = sqlite3.connect(name, timeout=60)
data.execute(f"pragma journal_mode={journal}")
number = data.execute("select coalesce(max(number), -1) + 1 from lines where sign = ?", (sign,)).fetchone()[0]
while True:
    with data:
        data.execute("insert into lines values (?, ?, ?)", (sign, number, "x" * (number % 3000)))
    print(f"{number}\\n", end="", flush=True)
    number += 1
"""


LMDB_WRITER = """
import lmdb, sys
name, sign = sys.argv[1:]
data = lmdb.open(name, map_size=1 << 28, subdir=False)
with data.begin() as look:
    number = int(look.get(sign.encode(), b"0"))
while True:
    with data.begin(write=True) as change:
        change.put(f"{sign}{number % 1000:09}".encode(), f"{number} ".encode() * (number % 300))
        change.put(sign.encode(), str(number + 1).encode())
    print(f"{number}\\n", end="", flush=True)
    number += 1
"""


def last_numbers(
    preload: Preload, params: str, program_text: str, arguments: list[str], run_s: float
) -> dict[str, int]:
    """Two writers, killed after a while: the last number that each said to be safe, or -1."""
    python = os.path.realpath("/proc/self/exe")
    environment = preload.environment(IOBUF_PARAMS=params, PYTHONPATH=os.pathsep.join(sys.path))
    writers = {
        sign: subprocess.Popen(
            [python, "-c", program_text, *arguments, sign],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for sign in "ab"
    }
    for writer in writers.values():
        assert writer.stdout is not None
        writer.stdout.readline()
    time.sleep(run_s)
    last_by_sign = {}
    for sign, writer in writers.items():
        writer.kill()
        out, err = writer.communicate()
        assert err == "", err
        # what readline has read ahead is lost to communicate, so its first line may be the end of one
        complete_lines = [line for line in out.splitlines(keepends=True) if line.endswith("\n") and line.strip()]
        last_by_sign[sign] = max(map(int, complete_lines), default=-1)
    return last_by_sign


@every_setting
@kills_by_day_and_night
@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
def test_sqlite_with_two_writers_that_are_killed(
    preload: Preload, memory_folder: Path, journal_mode: str, params: str, kills: int
) -> None:
    chance = random.Random(journal_mode)
    file = memory_folder / "data.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"pragma journal_mode={journal_mode}")
        connection.execute("create table lines (sign text, number integer, text text, unique (sign, number))")
    connection.close()
    for _ in range(kills):
        last_by_sign = last_numbers(preload, params, WRITER, [str(file), journal_mode], chance.uniform(0.0, 0.1))
        with sqlite3.connect(file, timeout=60) as data:
            assert data.execute("pragma integrity_check").fetchall() == [("ok",)]
            for sign, last in last_by_sign.items():
                numbers = [row[0] for row in data.execute("select number from lines where sign = ? order by 1", sign)]
                assert numbers == list(range(len(numbers)))
                assert len(numbers) > last
        data.close()


@every_setting
@kills_by_day_and_night
def test_lmdb_with_two_writers_that_are_killed(preload: Preload, memory_folder: Path, params: str, kills: int) -> None:
    lmdb = pytest.importorskip("lmdb", reason="the package lmdb is not installed")
    chance = random.Random(1)
    file = memory_folder / "data.mdb"
    for _ in range(kills):
        last_by_sign = last_numbers(preload, params, LMDB_WRITER, [str(file)], chance.uniform(0.0, 0.1))
        with lmdb.open(str(file), subdir=False, map_size=1 << 28) as data, data.begin() as look:
            for sign, last in last_by_sign.items():
                count = int(look.get(sign.encode(), b"0"))
                assert count > last
                for number in range(max(0, count - 1000), count):
                    value = f"{number} ".encode() * (number % 300)
                    assert look.get(f"{sign}{number % 1000:09}".encode()) == value
