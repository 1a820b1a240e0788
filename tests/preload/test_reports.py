# SPDX-License-Identifier: Apache-2.0
"""The report on a file matches the calls of the program, also while buffering was suspended, and it is short."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from preload_under_test import Preload

PYTHON = os.path.realpath("/proc/self/exe")
PAGES = 4000
READS, WRITES = 12_000, 3_000

#: Scattered accesses of two files in turns; the second one in two threads, one after the other.
SCATTERED = f"""
import os, random, threading
chance = random.Random(1)
first, second = (os.open(name, os.O_RDWR) for name in ("first", "second"))
def some(fd, reads, writes):
    for _ in range(reads):
        os.pread(fd, 4096, chance.randrange({PAGES}) * 4096)
    for _ in range(writes):
        os.pwrite(fd, b"y" * 100, chance.randrange({PAGES}) * 4096)
for _ in range({READS} // 10):
    some(first, 10, 0)
    some(second, 1, 0)
some(first, 0, {WRITES})
thread = threading.Thread(target=some, args=(second, {READS}, 7))
thread.start()
thread.join()
os.close(first)
os.close(second)
"""


def reports(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """The last line of each file, by its name."""
    lines = [line for file in sorted(folder.iterdir()) for line in file.read_text(encoding="utf-8").splitlines()]
    return {Path(report["path"]).name: report for report in map(json.loads, lines)}


@pytest.mark.parametrize("params", ["*:auto:alone", "*:size=4k"])
def test_bypassed_calls_are_counted_too(preload: Preload, memory_folder: Path, params: str) -> None:
    for name in ("first", "second"):
        (memory_folder / name).write_bytes(b"x" * (PAGES * 4096))
    (memory_folder / "lines").mkdir()
    done = preload.run(
        [PYTHON, "-S", "-c", SCATTERED],
        memory_folder,
        IOBUF_PARAMS=params,
        SONDE_IOBUF_LINES=str(memory_folder / "lines"),
    )
    assert done.returncode == 0, done.stderr
    reports_by_name = reports(memory_folder / "lines")
    calls = {
        name: (reports_by_name[name]["read"]["calls"], reports_by_name[name]["write"]["calls"])
        for name in ("first", "second")
    }
    assert calls == {"first": (READS, WRITES), "second": (READS + READS // 10, 7)}
    assert reports_by_name["first"]["read"]["bytes"] == READS * 4096
    assert reports_by_name["first"]["write"]["bytes"] == WRITES * 100
    if "auto" in params:
        assert reports_by_name["first"]["read"]["bypassed"] > READS / 2  # or nothing was shown
        assert reports_by_name["first"]["read"]["storage_calls"] > READS * 0.9


SHORT_AND_LONG = """
import os
for number in range(20):
    fd = os.open(f"short{number}", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 1000)
    os.close(fd)
fd = os.open("long", os.O_WRONLY | os.O_CREAT)
for _ in range(5000):
    os.write(fd, b"x" * 100)
os.close(fd)
"""


@pytest.mark.parametrize("params", ["*:auto", "*"])
def test_files_of_a_few_calls_are_one_line_of_a_report_for_all_files(
    preload: Preload, memory_folder: Path, params: str
) -> None:
    brief = preload.run(
        [PYTHON, "-S", "-c", SHORT_AND_LONG], memory_folder, IOBUF_PARAMS=params, IOBUF_VERBOSE="1"
    ).stderr
    assert f"sonde: {memory_folder}/long  (" in brief
    assert "/short" not in brief
    totals = re.findall(r"(\d+) other files, each of fewer than 16 calls: together (\d+) calls, (\d+\.\d+) MB", brief)
    (files, calls, megabytes), *_ = totals
    assert int(files) >= 20
    assert int(calls) >= 20
    assert float(megabytes) >= 0.02
    assert len(totals) == 1
    each = preload.run([PYTHON, "-S", "-c", SHORT_AND_LONG], memory_folder, IOBUF_PARAMS=f"{params}:verbose").stderr
    assert all(f"{memory_folder}/short{number}  (" in each for number in range(20))
    assert "other files" not in each


def test_report_states_saved_calls_and_slower_phases(preload: Preload, memory_folder: Path) -> None:
    report = preload.run(
        [PYTHON, "-S", "-c", SHORT_AND_LONG], memory_folder, IOBUF_PARAMS="*:auto", IOBUF_VERBOSE="1"
    ).stderr
    assert re.search(r"\d{4} calls saved, of \d+\.\d+ us each: about \d+\.\d+ s, less what copying costs", report), (
        report
    )
    (memory_folder / "big").write_bytes(b"x" * (64 << 20))
    scattered = (
        "import os; fd = os.open('big', os.O_RDONLY); [os.pread(fd, 100, (i * 37 % 64) << 20) for i in range(64)]"
    )
    report = preload.run(
        [PYTHON, "-S", "-c", scattered], memory_folder, IOBUF_PARAMS="*:alone", IOBUF_VERBOSE="1"
    ).stderr
    match = re.search(r"storage moved (\d+) times the bytes .*: most likely slower than without", report)
    assert match, report
    assert int(match[1]) > 1000


#: A file is mapped, removed and unmapped; the next one gets its number and is locked. The other way: it is still there.
MAPPED = """
import fcntl, mmap, os, sys
for attempt in range(50):
    first = os.open("mapped", os.O_RDWR | os.O_CREAT)
    os.ftruncate(first, 4096)
    seen = os.fstat(first)
    memory = mmap.mmap(first, 4096)
    memory[0] = 1
    if sys.argv[1] == "still there":
        again = first
        break
    memory.close()
    os.close(first)
    os.unlink("mapped")
    again = os.open(f"next{attempt}", os.O_RDWR | os.O_CREAT)
    if os.fstat(again).st_ino == seen.st_ino:
        break
else:
    sys.exit(77)
fcntl.lockf(again, fcntl.LOCK_EX, 1)
fd = os.open("data", os.O_WRONLY | os.O_CREAT)
for _ in range(5000):
    os.write(fd, b"x" * 100)
os.close(fd)
"""


@pytest.mark.parametrize("mapped", ["removed", "still there"])
def test_lock_on_reused_inode_number_ends_nothing(preload: Preload, tmp_path: Path, mapped: str) -> None:
    """Like Open MPI: maps and removes own files, then locks a file of the program."""
    (tmp_path / "lines").mkdir()
    done = preload.run(
        [PYTHON, "-S", "-c", MAPPED, mapped],
        tmp_path,
        IOBUF_PARAMS=f"{tmp_path}/data:alone",
        SONDE_IOBUF_LINES=str(tmp_path / "lines"),
    )
    if done.returncode == 77:
        pytest.skip("this file system gives no number a second time")
    assert done.returncode == 0, done.stderr
    assert ("data" in reports(tmp_path / "lines")) == (mapped == "removed")
