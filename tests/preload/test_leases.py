# SPDX-License-Identifier: Apache-2.0
"""Files that are buffered under a lease of the kernel: other processes never see an old byte, nor lose one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from preload_under_test import Preload

Program = Callable[[str], Path]

PYTHON = os.path.realpath(sys.executable)
AGE_PARAMS = "%process:age=60"
RECORD = 100

WRITER = """
import os, sys
fd = os.open("data", os.O_RDWR | os.O_CREAT, 0o666)
for burst in range(1, 1000):
    for _ in range(50):
        os.write(fd, b"x" * 100)
    print(burst * 5000, flush=True)
    if not sys.stdin.readline():
        break
"""


def run_schedules(
    preload: Preload, program: Path, folder: Path, peer_kind: str, schedule_count: int, params: str
) -> tuple[list[str], list[str]]:
    command: list[str | Path] = [program, "7", str(schedule_count), "60", peer_kind]
    bare = preload.outcome(command, folder / "without")
    under = preload.outcome(command, folder / "with", IOBUF_PARAMS=params)
    assert bare.code == under.code == 0
    return under.out.splitlines(), bare.out.splitlines()


@pytest.mark.parametrize("peer", ["bare", "same"])
@pytest.mark.parametrize("params", ["*:auto", "*"], ids=["auto", "named"])
def test_random_schedules_read_the_same_as_without_the_library(
    preload: Preload, compile_program: Program, tmp_path: Path, peer: str, params: str
) -> None:
    under, bare = run_schedules(preload, compile_program("leases"), tmp_path, peer, 500, params)
    assert under == bare


@pytest.mark.nightly
@pytest.mark.parametrize("peer", ["bare", "same"])
def test_ten_thousand_schedules_read_the_same_as_without(
    preload: Preload, compile_program: Program, tmp_path: Path, peer: str
) -> None:
    under, bare = run_schedules(preload, compile_program("leases"), tmp_path, peer, 10_000, f"*,{AGE_PARAMS}")
    assert under == bare


@contextmanager
def writer(preload: Preload, folder: Path, params: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that has written 5,000 bytes, and 5,000 more for each line that it gets."""
    process = subprocess.Popen(
        [PYTHON, "-S", "-c", WRITER],
        cwd=folder,
        env=preload.environment(IOBUF_PARAMS=params, SONDE_IOBUF_LINES=str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "5000\n"
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)


def write_more(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def report_of(folder: Path) -> dict[str, Any]:
    (report,) = [json.loads(line) for file in folder.glob("buffer-*") for line in file.read_text("utf-8").splitlines()]
    return dict(report)


def test_opener_sees_all_that_was_written(preload: Preload, tmp_path: Path) -> None:
    with writer(preload, tmp_path, f"*/data,{AGE_PARAMS}") as process:
        assert (tmp_path / "data").stat().st_size < 5000  # stat() breaks no lease
        assert len((tmp_path / "data").read_bytes()) == 5000
        size = write_more(process)
        assert (tmp_path / "data").stat().st_size == size  # passed through from then on
    report = report_of(tmp_path)
    assert report["guard"] == "lease"
    assert report["release_reason"] == "another process opened it"


def test_truncation_by_path_follows_earlier_writes(preload: Preload, tmp_path: Path) -> None:
    with writer(preload, tmp_path, f"*/data,{AGE_PARAMS}") as process:
        os.truncate(tmp_path / "data", 10)
        assert write_more(process) == 10_000
    assert (tmp_path / "data").read_bytes() == b"x" * 10 + b"\0" * 4990 + b"x" * 5000


def test_stopped_holder_makes_opener_wait(preload: Preload, tmp_path: Path) -> None:
    with writer(preload, tmp_path, f"*/data,{AGE_PARAMS}") as process:
        process.send_signal(signal.SIGSTOP)
        sizes: list[int] = []
        reader = threading.Thread(target=lambda: sizes.append(len((tmp_path / "data").read_bytes())))
        reader.start()
        reader.join(timeout=0.5)
        assert sizes == []
        process.send_signal(signal.SIGCONT)
        reader.join(timeout=60)
        assert sizes == [5000]


def test_nonblocking_open_of_a_leased_file_returns_eagain(preload: Preload, tmp_path: Path) -> None:
    with writer(preload, tmp_path, f"*/data,{AGE_PARAMS}") as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(BlockingIOError):
            os.open(tmp_path / "data", os.O_RDONLY | os.O_NONBLOCK)
        process.send_signal(signal.SIGCONT)
        limit = time.monotonic() + 60
        while True:
            try:
                fd = os.open(tmp_path / "data", os.O_RDONLY | os.O_NONBLOCK)
                break
            except BlockingIOError:
                assert time.monotonic() < limit
                time.sleep(0.01)
        assert os.fstat(fd).st_size == 5000
        os.close(fd)


@pytest.mark.parametrize(("params", "guard"), [("size=64k", "none"), ("alone", "node table")])
def test_refused_lease_is_overridden_only_by_alone(preload: Preload, tmp_path: Path, params: str, guard: str) -> None:
    with (tmp_path / "data").open("wb"), writer(preload, tmp_path, f"*/data:{params},{AGE_PARAMS}"):
        buffered = (tmp_path / "data").stat().st_size < 5000
    assert buffered == (guard != "none")
    report = report_of(tmp_path)
    assert report["guard"] == guard
    assert ("release_reason" in report) == (guard == "none")
    assert guard != "none" or "another process has it open" in report["release_reason"]


@pytest.mark.parametrize(("params", "guard"), [("auto", "none"), ("size=64k", "node table")])
def test_process_without_threads_gets_no_lease(preload: Preload, memory_folder: Path, params: str, guard: str) -> None:
    code = "import os; fd = os.open('data', os.O_RDWR | os.O_CREAT)\nfor i in range(2000): os.write(fd, b'x' * 100)"
    setting = f"*/data:{params},%process:threads=0"
    done = preload.run(
        [PYTHON, "-S", "-c", code],
        memory_folder,
        IOBUF_PARAMS=setting,
        SONDE_IOBUF_LINES=str(memory_folder),
        IOBUF_VERBOSE="1",
    )
    assert (done.returncode, (memory_folder / "data").read_bytes()) == (0, b"x" * 200_000)
    report = report_of(memory_folder)
    assert report["guard"] == guard
    assert ("no thread can wait" in report.get("release_reason", "")) == (guard == "none")
    assert (report["write"]["storage_calls"] < 100) == (guard != "none")


@pytest.mark.root
def test_file_of_another_owner_gets_no_lease(preload: Preload, memory_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("another user is needed")
    folder = memory_folder / "shared"
    folder.mkdir()
    (folder / "data").touch()
    for path in (folder / "data", folder, memory_folder):
        path.chmod(0o777)
    library = folder / preload.library.name
    library.write_bytes(preload.library.read_bytes())
    shell = "exec 3<>data; i=0; while [ $i -lt 500 ]; do echo record >&3; i=$((i+1)); done"
    environment = preload.environment(IOBUF_PARAMS=f"*/data,{AGE_PARAMS}", SONDE_IOBUF_LINES=str(folder))
    environment["LD_PRELOAD"] = str(library)
    subprocess.run(["/bin/sh", "-c", shell], cwd=folder, env=environment, user=65534, group=65534, check=True)
    assert (folder / "data").read_bytes() == b"record\n" * 500
    assert "its owner is another user" in report_of(folder)["release_reason"]


def test_files_only_read_are_leased_by_several_processes(preload: Preload, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"y" * 100_000)
    code = """
import os, sys
fd = os.open("data", os.O_RDONLY)
for _ in range(500): os.read(fd, 100)
print("read", flush=True)
sys.stdin.readline()
"""
    environment = preload.environment(IOBUF_PARAMS=f"*/data,{AGE_PARAMS}", SONDE_IOBUF_LINES=str(tmp_path))
    readers = [
        subprocess.Popen(
            [PYTHON, "-S", "-c", code],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "read\n"
    for reader in readers:
        reader.communicate("\n", timeout=60)
    reports = [json.loads(file.read_text("utf-8")) for file in tmp_path.glob("buffer-*")]
    assert [report["guard"] for report in reports] == ["lease", "lease"]
    assert all("release_reason" not in report and report["read"]["storage_calls"] < 100 for report in reports)


def test_second_open_in_the_same_process_reads_buffered_data(preload: Preload, tmp_path: Path) -> None:
    code = """
import os
fd = os.open("data", os.O_RDWR | os.O_CREAT)
for i in range(500): os.write(fd, b"z" * 100)
os.symlink("data", "link")
for name in ("data", "link"):
    other = os.open(name, os.O_RDWR)
    print(len(os.read(other, 100_000)), os.fstat(other).st_size)
    os.write(fd, b"z" * 100)
    print(os.read(other, 1000) == b"z" * 100)
    os.close(other)
"""
    for params in ("auto", "size=64k"):
        (tmp_path / params).mkdir()
        done = preload.run([PYTHON, "-S", "-c", code], tmp_path / params, IOBUF_PARAMS=f"*/data:{params},{AGE_PARAMS}")
        assert done.stdout == "50000 50000\nTrue\n50100 50100\nTrue\n", done.stderr


def test_break_under_load_loses_and_repeats_no_record(preload: Preload, tmp_path: Path) -> None:
    """Ten writers, each of a file of its own, all of which somebody opens again and again while they are written."""
    code = """
import os, sys
for turn in range(30):
    fd = os.open(f"file{sys.argv[1]}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for i in range(300): os.write(fd, f"{turn * 300 + i:<99}\\n".encode())
    os.close(fd)
"""
    environment = preload.environment(IOBUF_PARAMS=f"*,{AGE_PARAMS}")
    writers = [
        subprocess.Popen([PYTHON, "-S", "-c", code, str(number)], cwd=tmp_path, env=environment) for number in range(4)
    ]
    complete = 0
    while any(process.poll() is None for process in writers):
        for file in tmp_path.glob("file*"):
            data = file.read_bytes()
            lines = data.splitlines()
            assert [int(line) for line in lines[: len(data) // RECORD]] == list(range(len(data) // RECORD))
            complete += 1
    assert complete >= 4
    for number, process in enumerate(writers):
        assert process.returncode == 0
        assert len((tmp_path / f"file{number}").read_bytes()) == 30 * 300 * RECORD
