# SPDX-License-Identifier: Apache-2.0
"""The verbs that start programs under the preload library, from the command to the file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Sonde = Callable[..., "subprocess.CompletedProcess[str]"]

WRITER = """
import os, sys
fd = os.open("result", os.O_WRONLY | os.O_CREAT)
for i in range(1000):
    os.write(fd, b"x" * 100)
os.close(fd)
sys.exit(7)
"""


def test_buffered_program_has_its_file_exit_code_and_report(tmp_path: Path, sonde_with_library: Sonde) -> None:
    arguments = [
        "iobuf",
        "--params",
        "*/result",
        "--report",
        "--json",
        "lines",
        "--",
        sys.executable,
        "-S",
        "-c",
        WRITER,
    ]
    done = sonde_with_library(*arguments)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "result").read_bytes() == b"x" * 100_000
    assert "program 1000 calls" in done.stderr
    reports = [json.loads(line) for file in (tmp_path / "lines").iterdir() for line in file.read_text().splitlines()]
    assert [report["write"]["calls"] for report in reports] == [1000]
    assert reports[0]["write"]["storage_calls"] < 40  # some before they are gathered, then one for all


def test_traced_program_is_counted_and_its_trace_can_be_displayed(tmp_path: Path, sonde_with_library: Sonde) -> None:
    done = sonde_with_library("trace", "--out", "traced", "--json", "--", sys.executable, "-S", "-c", WRITER)
    assert done.returncode == 7, done.stderr
    counted = {Path(file["path"]).name: file for file in json.loads(done.stdout)["files"]}
    assert counted["result"]["write"]["calls"] == 1000
    assert counted["result"]["write"]["bytes"] == 100_000
    result = sonde_with_library("show", "traced")
    assert "result" in result.stdout
    chosen = sonde_with_library("iobuf", "--from", "traced", "--dry-run")
    assert chosen.stdout.startswith(f"IOBUF_PARAMS={tmp_path}/result:size=")


@pytest.mark.parametrize(
    ("params", "expected_complaint"),
    [
        ("out*:size=1q", "this value is not a number: size=1q."),
        ("out*:sise=1m", 'there is no option "sise=1m"; known are'),
        ("4M:count=2", 'the pattern "4M" looks like a size'),
        (":size=1m", "an entry has no pattern"),
        ("%processor:maxmem=1M", 'there is no "%processor"; known are %process, '),
        ("%process:maxmem=lots", '%process does not know "maxmem=lots"'),
        ("*:direct=maybe", "this option takes on or off: direct=maybe."),
        ("*:only=", "this option needs the name of a program: only=."),
    ],
)
def test_invalid_settings_are_rejected(
    params: str, expected_complaint: str, tmp_path: Path, sonde_with_library: Sonde
) -> None:
    done = sonde_with_library("iobuf", "--params", params, "--", sys.executable, "-S", "-c", WRITER)
    assert done.returncode == 2
    assert done.stderr.startswith("sonde: IOBUF_PARAMS: ")
    assert expected_complaint in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "result").exists()


def test_long_settings_file_is_rejected(tmp_path: Path, sonde_with_library: Sonde) -> None:
    (tmp_path / "settings").write_text("#" + "x" * 65536, encoding="utf-8")
    done = sonde_with_library("iobuf", "--settings", "settings", "--", sys.executable, "-S", "-c", WRITER)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "longer than 64 KiB" in done.stderr
    assert not (tmp_path / "result").exists()


def test_traced_program_output_is_unchanged_with_advice_on_stderr(tmp_path: Path, sonde_with_library: Sonde) -> None:
    program = [sys.executable, "-S", "-c", f"print('mine')\n{WRITER}"]
    traced = sonde_with_library("trace", "--out", "traced", "--", *program)
    assert traced.stdout == "mine\n"
    assert "may help: one file has many" in traced.stderr
    assert "sonde iobuf --from" in traced.stderr
    assert len(re.findall(r"\(predicted: [^)]*\): sonde iobuf ", " ".join(traced.stderr.split()))) == 2
    assert "held traces before" not in traced.stderr
    again = sonde_with_library("trace", "--out", "traced", "--", *program)
    assert "traced held traces before; they are counted here too." in again.stderr
    few = sonde_with_library("trace", "--out", "few", "--", sys.executable, "-S", "-c", "open('one', 'w').write('x')")
    assert "would not help" in few.stderr


def test_the_starter_without_python_does_the_same(tmp_path: Path, sonde_with_library: Sonde) -> None:
    starter = sonde_with_library("iobuf", "--starter").stdout.strip()
    command = [starter, "--params", "*/result", "--report", "--json", ".", "--", sys.executable, "-S", "-c", WRITER]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "result").read_bytes() == b"x" * 100_000
    assert "program 1000 calls" in done.stderr
    for options in (["--params", "a:size=1m,%process:age=1"], []):
        result = subprocess.run(
            [starter, *options, "--alone", "--dry-run"], capture_output=True, text=True, check=False
        )
        assert result.stdout == sonde_with_library("iobuf", *options, "--alone", "--dry-run").stdout
    wrong = subprocess.run([starter, "--", "no-such-program-here"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_a_program_that_cannot_be_intercepted_is_not_started(tmp_path: Path, sonde_with_library: Sonde) -> None:
    done = sonde_with_library("iobuf", "--", "no-such-program-here")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
