# SPDX-License-Identifier: Apache-2.0
"""`sonde iobuf`: programs of known pattern get, while they run, the settings that a trace of them gets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.advise.buffers import choose_iobuf_params
from sonde.model.errors import UserError
from sonde.model.trace import read_trace

Sonde = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = "import os, random; fd = os.open('data', os.O_RDWR | os.O_CREAT); block = b'x' * 1000\n"
PROGRAMS = {
    "small records, one after the other": "for i in range(2000): os.write(fd, block)",
    "the same, read": "os.pwrite(fd, block * 1000, 0); os.lseek(fd, 0, 0)\nfor i in range(2000): os.read(fd, 500)",
    "from back to front": "for i in range(2000, 0, -1): os.pwrite(fd, block, i * 1000)",
    "from back to front, read": "os.truncate('data', 2000000)\n"
    "for i in range(1999, -1, -1): os.pread(fd, 1000, i * 1000)",
    "at a short distance": "for i in range(2000): os.pwrite(fd, block, i * 16000)",
    "two streams in turn": "for i in range(2000): os.pwrite(fd, block, i // 8 % 2 * 50_000_000 + i * 1000)",
}
UNSUITABLE_PROGRAMS = {
    "scattered": ("for i in range(2000): os.pwrite(fd, block, random.randrange(10**9))", "neither follow"),
    "large": ("for i in range(230): os.pwrite(fd, block * 2000, i % 10 * 2_000_000)", "large already"),
    "few": ("for i in range(150): os.write(fd, block)", "too few"),
}


def get_errors_of_success(sonde: Sonde, *arguments: str) -> str:
    """Its output on standard error."""
    done = sonde(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def chosen_while_running(sonde: Sonde, folder: Path, program: str) -> tuple[dict[str, Any], str]:
    """The line of the report about the file, and the report for people."""
    arguments = [
        "iobuf",
        "--report",
        "--json",
        "lines",
        "--",
        sys.executable,
        "-S",
        "-c",
        HEAD + program,
    ]
    output = get_errors_of_success(sonde, *arguments)
    lines = [json.loads(line) for file in (folder / "lines").iterdir() for line in file.read_text().splitlines()]
    (line,) = [line for line in lines if line["path"] == str(folder / "data")]
    return line, output


def chosen_from_a_trace(sonde: Sonde, folder: Path, program: str) -> str:
    get_errors_of_success(sonde, "trace", "--out", "traced", "--json", "--", sys.executable, "-S", "-c", HEAD + program)
    return choose_iobuf_params(read_trace(folder / "traced"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_auto_settings_equal_settings_derived_from_a_trace(
    tmp_path: Path, name: str, sonde_with_library: Sonde
) -> None:
    line, output = chosen_while_running(sonde_with_library, tmp_path, PROGRAMS[name])
    assert line["auto"]["buffered"], line
    file = (tmp_path / "data").read_bytes()
    (tmp_path / "data").unlink()
    settings = f"size={line['page_bytes']}:count={line['pages']}:prefetch={line['auto']['prefetch']}"
    assert chosen_from_a_trace(sonde_with_library, tmp_path, PROGRAMS[name]) == f"{tmp_path}/data:{settings}"
    assert (tmp_path / "data").read_bytes() == file
    assert "chosen by its first 200 calls" in output
    assert line["auto"]["why"] in output


@pytest.mark.parametrize("name", UNSUITABLE_PROGRAMS)
def test_auto_does_not_buffer_without_gain_and_reports_why(
    tmp_path: Path, name: str, sonde_with_library: Sonde
) -> None:
    program, why = UNSUITABLE_PROGRAMS[name]
    line, output = chosen_while_running(sonde_with_library, tmp_path, program)
    assert not line["auto"]["buffered"]
    assert why in line["auto"]["why"]
    assert f"not buffered: {line['auto']['why']}" in output
    assert line["write"]["storage_calls"] == line["write"]["calls"]
    assert line["ahead_started"] == line["behind_started"] == 0
    with pytest.raises(UserError, match="Nothing in this trace would gain"):
        chosen_from_a_trace(sonde_with_library, tmp_path, program)


def test_small_records_become_few_calls(tmp_path: Path, sonde_with_library: Sonde) -> None:
    line, _ = chosen_while_running(sonde_with_library, tmp_path, PROGRAMS["small records, one after the other"])
    assert line["write"]["calls"] == 2000
    assert line["write"]["storage_calls"] < 210
