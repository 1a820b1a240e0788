# SPDX-License-Identifier: Apache-2.0
"""Programs that a preload library has broken before: output, files and exit code are those of a bare run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from preload_under_test import RUNNER, Preload

Program = Callable[[str], Path]

MODES = {
    "none": "",
    "auto": "*:auto",
    "named": "*",
    "alone": "*:alone",
}
SCENARIOS = [
    "profiling_timer",
    "raw_handler",
    "small_signal_stack",
    "large_handler_without_stack",
    "repaired_fault_in_write",
    "repaired_fault_in_read",
    "lock_from_current_offset",
    "received_descriptor",
    "inherited_descriptor",
    "sealed_memory_file",
    "full_disk",
    "daemon_closes_standard_error",
    "open_without_waiting",
    "open_link_without_waiting",
    "ends_by_breakpoint",
    "ends_by_stack_overflow",
]
NEED_ROOT = {"full_disk"}


def make_variables(params: str) -> dict[str, str]:
    return {"IOBUF_PARAMS": params} if params else {"SONDE_NOTHING": "1"}


@pytest.mark.parametrize("params", MODES.values(), ids=MODES.keys())
@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name not in NEED_ROOT])
def test_defect_scenario_equals_bare_run(
    preload: Preload, compile_program: Program, tmp_path: Path, scenario: str, params: str
) -> None:
    command: list[str | Path] = [compile_program("defects/defects"), scenario]
    bare = preload.outcome(command, tmp_path / "without")
    assert preload.outcome(command, tmp_path / "with", **make_variables(params)) == bare


@pytest.fixture
def small_mount(tmp_path: Path) -> Iterator[Path]:
    """A file system of 80 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.root
@pytest.mark.parametrize("params", MODES.values(), ids=MODES.keys())
def test_full_disk_fails_at_the_same_call(
    preload: Preload, compile_program: Program, small_mount: Path, params: str
) -> None:
    command: list[str | Path] = [compile_program("defects/defects"), "full_disk"]

    def outcome(folder: Path, **settings: str) -> tuple[int, str, int]:
        under = preload.outcome(command, folder, **settings)
        shutil.rmtree(folder)
        return under.code, under.out, len(under.files["data"])

    bare = outcome(small_mount / "without")
    assert bare[0] == 1
    assert outcome(small_mount / "with", **make_variables(params)) == bare


@pytest.mark.parametrize("variable", ["SONDE_NOTHING", "IOBUF_PARAMS"])
def test_profiled_program_writes_its_complete_file(preload: Preload, tmp_path: Path, variable: str) -> None:
    """gcc -pg sets a handler for SIGPROF that blocks all signals."""
    source = tmp_path / "profiled.c"
    source.write_text(
        """#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    char record[100];
    const int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644);
    volatile double sum = 0;
    memset(record, 'x', sizeof(record));
    for (int i = 0; i < 100000; ++i) {
        if (write(fd, record, 100) != 100) return 1;
        for (int k = 0; k < 300; ++k) sum += k * 0.5;
    }
    return close(fd);
}
""",
        encoding="utf-8",
    )
    compiled = tmp_path / "profiled"
    if subprocess.run(["gcc", "-pg", "-o", compiled, source], capture_output=True, check=False).returncode != 0:
        pytest.skip("this compiler has no -pg")
    under = preload.outcome([compiled], tmp_path / "with", **{variable: "*"})
    assert (under.code, len(under.files["data"])) == (0, 10_000_000)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_program_under_valgrind_equals_bare_run(preload: Preload, compile_program: Program, tmp_path: Path) -> None:
    command: list[str | Path] = ["valgrind", "-q", compile_program("defects/defects"), "small_signal_stack"]
    bare = preload.outcome(command, tmp_path / "without")
    assert preload.outcome(command, tmp_path / "with", IOBUF_PARAMS="*") == bare


@pytest.mark.parametrize(
    "tool",
    [["gdb", "-batch", "-ex", "run", "--args"], ["faketime", "2020-01-01"], ["fakeroot"]],
    ids=lambda tool: tool[0],
)
def test_program_under_tool_equals_bare_run(
    preload: Preload, compile_program: Program, tmp_path: Path, tool: list[str]
) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed")
    command: list[str | Path] = [*tool, compile_program("defects/defects"), "lock_from_current_offset"]
    bare = preload.outcome(command, tmp_path / "without")
    under = preload.outcome(command, tmp_path / "with", IOBUF_PARAMS="*")
    assert (under.code, under.files) == (bare.code, bare.files)
    assert len(bare.files["data"]) == 100_000


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_sanitized_program_starts_and_ends(preload: Preload, tmp_path: Path, sanitizer: str) -> None:
    source = tmp_path / "writer.c"
    source.write_text(
        """#include <fcntl.h>
#include <unistd.h>
int main(void) {
    char record[100] = {0};
    const int fd = open("data", O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < 30000; ++i) if (write(fd, record, 100) != 100) return 1;
    return close(fd);
}
""",
        encoding="utf-8",
    )
    compile_command: list[str | Path] = ["cc", f"-fsanitize={sanitizer}", "-o", tmp_path / "writer", source]
    if subprocess.run(compile_command, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"this compiler has no sanitizer for {sanitizer}")
    summary = tmp_path / "summary.ndjson"
    done = preload.run([tmp_path / "writer"], tmp_path, IOBUF_PARAMS="*/data", SONDE_IOBUF_SUMMARY=str(summary))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(summary.read_text(encoding="utf-8"))["storage_calls"] < 100  # of 30,000
    assert (tmp_path / "data").stat().st_size == 3_000_000


def test_report_keeps_no_pipe_of_a_daemon_open(preload: Preload, compile_program: Program, tmp_path: Path) -> None:
    began = time.monotonic()
    done = preload.run(
        [compile_program("defects/defects"), "daemon_closes_standard_error"], tmp_path, IOBUF_PARAMS="*:auto:verbose"
    )
    assert done.returncode == 0
    assert time.monotonic() - began < 2.5  # the daemon lives for 3 s


def test_defect_scenarios_are_all_run(compile_program: Program) -> None:
    command: list[str | Path] = [*RUNNER, compile_program("defects/defects"), "--list"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.split() == SCENARIOS
