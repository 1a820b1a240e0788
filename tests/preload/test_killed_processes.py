# SPDX-License-Identifier: Apache-2.0
"""Data that remains when a process is killed, and when storage rejects data."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from preload_under_test import Preload

Program = Callable[[str], Path]


def read_complete_records(file: Path) -> int:
    """Number of records in the file; every byte must be the beginning of what was written, in its order."""
    data = file.read_bytes()
    for number in range(0, len(data), 1000):
        expected = f"{number // 1000:<999}\n".encode()
        assert expected.startswith(data[number : number + 1000]), f"record {number // 1000} is damaged"
    return len(data) // 1000


KILLED_SETTINGS = [
    "*",
    "*:size=16k:count=4:alone",
    "*:size=64k:count=8:alone",
    "*:alone",
    "*:size=8k:count=8:alone",
]


def check_kills(preload: Preload, journal: Path, folder: Path, params: str, kill_count: int, max_run_s: float) -> None:
    """Kills so many processes, each within `max_run_s` seconds of its start, and checks what each leaves behind."""
    chance = random.Random(params)
    for _ in range(kill_count):
        file = folder / "data"
        appends = [str(1 << 40), "append"] if "append" in params else []
        child = subprocess.Popen(
            [journal, file, *appends],
            env=preload.environment(IOBUF_PARAMS=params),
            stdout=subprocess.PIPE,
            text=True,
        )
        time.sleep(chance.uniform(0.005, max_run_s))
        child.kill()
        out, _ = child.communicate()
        # The last word may be cut in the middle of a line.
        safe = [int(number) for number in re.findall(r"^safe (\d+)\n", out, re.MULTILINE)]
        record_count = read_complete_records(file) if file.exists() else 0
        assert record_count >= (safe[-1] if safe else 0)


@pytest.mark.parametrize("params", KILLED_SETTINGS)
def test_killed_process_leaves_a_prefix_of_its_writes(
    preload: Preload, compile_program: Program, memory_folder: Path, params: str
) -> None:
    check_kills(preload, compile_program("journal"), memory_folder, params, 12, 0.15)


@pytest.mark.nightly
@pytest.mark.parametrize("params", ["*:auto", *KILLED_SETTINGS[:4]])
def test_ten_thousand_killed_processes_preserve_synced_data(
    preload: Preload, compile_program: Program, memory_folder: Path, params: str
) -> None:
    check_kills(preload, compile_program("journal"), memory_folder, params, 2_000, 0.04)


def test_idle_process_flushes_its_data_soon(preload: Preload, tmp_path: Path) -> None:
    """Data of a program that computes reaches the kernel without any further call."""
    code = "import os, time; fd = os.open('data', os.O_RDWR | os.O_CREAT); os.write(fd, b'x' * 1000); time.sleep(600)"
    environment = preload.environment(IOBUF_PARAMS="*/data:alone,%process:age=1")
    python = os.path.realpath("/proc/self/exe")
    child = subprocess.Popen([python, "-S", "-c", code], cwd=tmp_path, env=environment)
    try:
        limit = time.monotonic() + 60
        file = tmp_path / "data"
        while not (file.exists() and file.stat().st_size == 1000) and time.monotonic() < limit:
            time.sleep(0.05)
        assert file.stat().st_size == 1000
    finally:
        child.kill()
        child.wait()


@pytest.fixture
def small_mount(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mount_folder = tmp_path / "small"
    mount_folder.mkdir()
    mount_result = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "none", mount_folder], capture_output=True, check=False
    )
    if mount_result.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield mount_folder
    subprocess.run(["umount", "-l", mount_folder], check=False)


@pytest.mark.root
@pytest.mark.parametrize("params", ["*", "*:size=16k:count=4:alone", "*:alone", "*:size=1M:count=16:alone"])
def test_full_file_system_fails_some_call_and_damages_nothing(
    preload: Preload, compile_program: Program, small_mount: Path, params: str
) -> None:
    done = preload.run([compile_program("journal"), small_mount / "data"], small_mount, IOBUF_PARAMS=params)
    assert "No space left on device" in done.stdout
    safe = [int(number) for number in re.findall(r"^safe (\d+)$", done.stdout, re.MULTILINE)]
    # Hardly less than without the library: what was accepted and then refused is at most what the buffers hold.
    assert read_complete_records(small_mount / "data") >= safe[-1]
    assert (small_mount / "data").stat().st_size > 20_000_000


@pytest.mark.parametrize("error_number", [errno.EIO, errno.EDQUOT, errno.ENOSPC])
@pytest.mark.parametrize("first_failing_write", [1, 3])
def test_storage_error_is_reported_and_earlier_data_is_preserved(
    preload: Preload,
    compile_program: Program,
    tmp_path: Path,
    memory_folder: Path,
    error_number: int,
    first_failing_write: int,
) -> None:
    """Behind another preloaded library, too: ours calls the next in line, which here fails from some write on."""
    library = tmp_path / "failing.so"
    source = Path(__file__).resolve().parent / "programs" / "failing_writes.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(library), str(source)], check=True)
    settings = {"FAIL_FIRST": str(first_failing_write), "FAIL_COUNT": "1000000", "FAIL_ERRNO": str(error_number)}
    variables = {
        **settings,
        "LD_PRELOAD": f"{preload.library} {library}",
        "IOBUF_PARAMS": "*/data:size=64k:count=4:alone",
    }
    command: list[str | Path] = [compile_program("journal"), memory_folder / "data", "3000"]
    done = subprocess.run(
        command, env={**preload.environment(), **variables}, capture_output=True, text=True, timeout=60, check=False
    )
    reported = [line for line in done.stdout.splitlines() if os.strerror(error_number) in line]
    assert reported, done.stdout
    assert reported[0].startswith(("write", "fsync"))
    safe = [int(error_number) for error_number in re.findall(r"^safe (\d+)$", done.stdout, re.MULTILINE)]
    assert read_complete_records(memory_folder / "data") >= (safe[-1] if safe else 0)


WRITER = """
import os, sys
fd = os.open("data", os.O_RDWR | os.O_CREAT)
for _ in range(16):
    os.write(fd, b"-")  # the first writes of a file may bypass the buffer
for sign in (b"a", b"b"):
    os.write(fd, sign * 100)
    print("written", flush=True)
    sys.stdin.readline()
"""
VISITOR = 'import os, sys; os.open("data", os.O_RDWR); print("open", flush=True); sys.stdin.readline()'


def test_a_second_process_that_opens_the_file_ends_its_buffering(preload: Preload, memory_folder: Path) -> None:
    """Seen on the same node: what the first one writes from then on is in the kernel when the call returns."""
    environment = preload.environment(IOBUF_PARAMS="*/data:alone,%process:age=60")
    python = os.path.realpath("/proc/self/exe")
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "cwd": memory_folder,
        "env": environment,
    }

    def size() -> int:
        return (memory_folder / "data").stat().st_size

    started: subprocess.Popen[str] = subprocess.Popen([python, "-S", "-c", WRITER], **pipes)
    with started as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        writer.stdout.readline()
        assert size() <= 16  # buffered, and not old enough yet
        second: subprocess.Popen[str] = subprocess.Popen([python, "-S", "-c", VISITOR], **pipes)
        with second as visitor:
            assert visitor.stdout is not None
            visitor.stdout.readline()
            limit = time.monotonic() + 60
            while size() <= 16 and time.monotonic() < limit:
                time.sleep(0.05)
            assert size() == 116
            print("go on", file=writer.stdin, flush=True)
            writer.stdout.readline()
            assert size() == 216
            visitor.communicate("")
        writer.communicate("")


FORKER = """
import os, time
for name in range(40):  # closed so soon that the threads still have them on their list
    fd = os.open(f"early{name}", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 100)
    os.close(fd)
if os.fork() == 0:
    fd = os.open("data", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 1000)
    time.sleep(30)
else:
    print("forked", flush=True)
    time.sleep(30)
"""


def test_child_process_has_separate_writer_threads(preload: Preload, memory_folder: Path) -> None:
    environment = preload.environment(IOBUF_PARAMS=f"{memory_folder}/*:alone,%process:age=1")
    python = os.path.realpath("/proc/self/exe")
    for number in range(4):
        folder = memory_folder / str(number)
        folder.mkdir()
        child = subprocess.Popen(
            [python, "-S", "-c", FORKER], cwd=folder, env=environment, stdout=subprocess.PIPE, start_new_session=True
        )
        try:
            assert child.stdout is not None
            child.stdout.readline()
            limit = time.monotonic() + 60
            file = folder / "data"
            while not (file.exists() and file.stat().st_size == 1000) and time.monotonic() < limit:
                time.sleep(0.05)
            assert file.stat().st_size == 1000
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


APPENDER = """
import os
fd = os.open("data", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for i in range(3000):
    os.write(fd, f"mine {i:<94}\\n".encode())
    if i == 1500:
        os.fsync(fd)
        print("half", flush=True)
        input()
os.close(fd)
"""


@pytest.mark.parametrize(
    ("leases", "expected_reason"), [("off", "alone says that nobody does"), ("", "another process opened it")]
)
def test_records_appended_by_two_processes_are_all_present(
    preload: Preload, memory_folder: Path, leases: str, expected_reason: str
) -> None:
    """Also where `alone` states that no other process writes, and no lease reports the other process."""
    (memory_folder / "lines").mkdir()
    python = os.path.realpath("/proc/self/exe")
    environment = preload.environment(
        IOBUF_PARAMS=f"*/data:size=16k:count=4:alone{',%process:threads=0' if leases else ''}",
        SONDE_IOBUF_LINES=str(memory_folder / "lines"),
    )
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "cwd": memory_folder,
        "env": environment,
    }
    with subprocess.Popen([python, "-S", "-c", APPENDER], **pipes) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with (memory_folder / "data").open("ab") as other:
            other.write(b"theirs\n" * 100)
        writer.communicate("\n")
    assert writer.returncode == 0
    lines = (memory_folder / "data").read_text("ascii").splitlines()
    assert lines.count("theirs") == 100
    assert [line.split() for line in lines if line != "theirs"] == [["mine", str(i)] for i in range(3000)]
    (report,) = [
        json.loads(line) for file in (memory_folder / "lines").iterdir() for line in file.read_text().splitlines()
    ]
    assert expected_reason in report["release_reason"]
    assert report["write"]["storage_calls"] < report["write"]["calls"]
