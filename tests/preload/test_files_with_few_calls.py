# SPDX-License-Identifier: Apache-2.0
"""Files with few calls cost no system call of the library's own: on slow storage each one takes as
long as a read.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from preload_under_test import ROOT, Preload

CALLS_ON_FILES = re.compile(
    r"^(?:\d+ +)?(open|openat|read|write|pread64|close|lseek|access|fstat|newfstatat|fstatfs)\("
)
CALLS_TO_ADOPT_A_FILE = 5  #: threads, status, type of file system, position at the first look and at close


@pytest.fixture(scope="module")
def few_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the bench that opens files for a few calls each, and its 40 files."""
    if shutil.which("strace") is None or shutil.which("cc") is None:
        pytest.skip("strace or a C compiler is not on PATH")
    folder = tmp_path_factory.mktemp("few_calls")
    subprocess.run(["cc", "-O1", "-o", folder / "few", ROOT / "bench/buffering/few_calls.c"], check=True)
    subprocess.run(["./few", "fill", "data", "40", "30", "1"], cwd=folder, check=True)
    return folder / "few"


def count_calls(program: Path, arguments: list[str], environment: dict[str, str]) -> Counter[str]:
    """System calls that concern files, by name, of the whole process."""
    variables = [f"-E{name}={environment[name]}" for name in ("LD_PRELOAD", "IOBUF_PARAMS") if name in environment]
    command: list[str | Path] = ["strace", "-f", "-o", "calls", *variables, program, *arguments]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr:
        pytest.skip("strace is not allowed here")
    assert done.returncode == 0, done.stderr
    lines = (program.parent / "calls").read_text(errors="replace").splitlines()
    return Counter(match[1] for match in map(CALLS_ON_FILES.match, lines) if match)


@pytest.mark.parametrize("params", ["", "*:auto"], ids=["no_setting", "auto"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("read", "40", "5"),
        ("read", "40", "30"),
        ("read_access", "40", "5"),
        ("write", "40", "20"),
        ("random", "1", "200"),
    ],
    ids=lambda arguments: "-".join(arguments),
)
def test_files_with_few_calls_cost_no_system_call(
    preload: Preload, few_calls: Path, arguments: tuple[str, str, str], params: str
) -> None:
    mode, files, calls = arguments
    settings = {"IOBUF_PARAMS": params} if params else {}
    environment = preload.environment(**settings)
    start = count_calls(few_calls, ["read", "data", "0", "0", "1"], environment)
    start.subtract(count_calls(few_calls, ["read", "data", "0", "0", "1"], {}))
    added = count_calls(few_calls, [mode, "data", files, calls, "1"], environment)
    added.subtract(count_calls(few_calls, [mode, "data", files, calls, "1"], {}))
    added.subtract(start)
    assert added["read"] == added["write"] == added["pread64"] == added["close"] == 0
    assert sum(added.values()) <= CALLS_TO_ADOPT_A_FILE
