# SPDX-License-Identifier: Apache-2.0
"""Cost of opening, writing and closing a small file, counted in system calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import Preload

Program = Callable[[str], Path]


def count_system_calls(preload: Preload, program: Path, folder: Path, file_count: int) -> int:
    folder.mkdir()
    log = folder.parent / f"{folder.name}.log"
    strace_command = ["strace", "-c", "-U", "calls,name", "-o", str(log), "-E", f"LD_PRELOAD={preload.library}"]
    done = subprocess.run(
        [*strace_command, "-E", "IOBUF_PARAMS=*:auto", str(program), str(file_count)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip("strace is not allowed here")
    assert done.returncode == 0, done.stderr
    match = re.search(r"^ *(\d+) total$", log.read_text(), re.MULTILINE)
    assert match is not None, log.read_text()
    return int(match[1])


def test_small_file_under_auto_costs_no_system_call(preload: Preload, compile_program: Program, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    many_files_program = compile_program("many_files")
    few, calls_many = (
        count_system_calls(preload, many_files_program, tmp_path / str(files), files) for files in (10, 110)
    )
    assert calls_many - few <= 100 * 5 + 20  # open, three writes, close; and now and then memory


def test_locks_of_unshared_files_are_merged(preload: Preload, compile_program: Program, memory_folder: Path) -> None:
    """The kernel goes through all locks of a file with each call: neighbors must be one."""
    table = Path("/proc/locks")
    ours = Path(f"/dev/shm/sonde-preload-{os.geteuid()}")
    if not os.access(table, os.R_OK) or not os.access("/dev/shm", os.W_OK):
        pytest.skip("locks cannot be seen here")
    started = subprocess.Popen(
        [compile_program("many_files"), "400", "wait"],
        cwd=memory_folder,
        env=preload.environment(IOBUF_PARAMS="*:alone,%process:threads=0"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "open\n"
    inode = ours.stat().st_ino
    held = [line for line in table.read_text().splitlines() if f":{inode} " in line]
    started.communicate()
    assert started.returncode == 0
    assert 0 < len(held) < 200, held


@pytest.mark.parametrize("descriptor_limit", [64, 256, 1024])
@pytest.mark.parametrize("params", ["*:direct:alone", "*:auto", "*:alone", "*"])
def test_program_can_use_all_of_its_descriptors(
    preload: Preload, compile_program: Program, tmp_path: Path, params: str, descriptor_limit: int
) -> None:
    command: list[str | Path] = ["sh", "-c", f"ulimit -n {descriptor_limit}; exec {compile_program('many_files')} all"]
    without = preload.outcome(command, tmp_path / "without")
    assert without.out.startswith(f"{descriptor_limit - 3} files, {descriptor_limit - 3} good"), without.out
    under = preload.outcome(command, tmp_path / "with", IOBUF_PARAMS=params)
    assert (under.code, under.out) == (without.code, without.out)
    assert under.files == without.files
