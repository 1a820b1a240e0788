# SPDX-License-Identifier: Apache-2.0
"""Who reads ahead and writes behind: threads, a ring of the kernel, or nobody; and what the report says about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from preload_under_test import ROOT, Preload

Program = Callable[[str], Path]
SCHEMA = json.loads((ROOT / "schema/trace/trace.schema.json").read_text(encoding="utf-8"))
RECORDS = 20_000  #: of 1000 bytes: long enough that a thread of the library has its turn on a machine that is busy
WRITES = ("data", str(RECORDS))


def run(preload: Preload, command: list[str | Path], folder: Path, engine: str) -> tuple[dict[str, Any], str]:
    """The line of the report about the file, and the report for people."""
    params = f"*/data:size=16k:count=8:verbose:alone,%process:engine={engine}"
    (folder / "lines").mkdir()
    done = preload.run(command, folder, IOBUF_PARAMS=params, SONDE_IOBUF_LINES=str(folder / "lines"))
    assert done.returncode == 0, done.stderr
    assert (folder / "data").stat().st_size == RECORDS * 1000
    lines = [json.loads(line) for path in (folder / "lines").iterdir() for line in path.read_text("utf-8").splitlines()]
    (line,) = lines
    Draft202012Validator(SCHEMA).validate(line)
    return line, done.stderr


def ring_is_allowed() -> bool:
    setting = Path("/proc/sys/kernel/io_uring_disabled")
    return not setting.exists() or setting.read_text().strip() == "0"


@pytest.mark.parametrize("engine", ["threads", "uring", "sync"])
def test_the_report_names_who_worked(preload: Preload, program: Program, tmp_path: Path, engine: str) -> None:
    if engine == "uring" and not ring_is_allowed():
        pytest.skip("io_uring is switched off on this machine")
    line, report = run(preload, [program("journal"), *WRITES], tmp_path, engine)
    if engine == "uring" and "engine_refused" in line:
        pytest.skip(f"there is no io_uring here: {line['engine_refused']}")
    assert line["engine"] == engine
    assert "engine_refused" not in line
    assert "io_uring" not in report
    assert (line["behind_started"] > 0) == (engine != "sync")


def test_where_rings_are_not_allowed_threads_do_the_work_and_one_line_says_so(
    preload: Preload, program: Program, tmp_path: Path
) -> None:
    line, report = run(preload, [program("without_rings"), program("journal"), *WRITES], tmp_path, "uring")
    assert line["engine"] == "threads"
    assert line["engine_refused"].startswith("EPERM")
    assert line["behind_started"] > 0
    assert report.count("io_uring (EPERM: it is not allowed here): threads were used instead") == 1
