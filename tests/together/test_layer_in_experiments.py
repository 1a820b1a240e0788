# SPDX-License-Identifier: Apache-2.0
"""Variants of the experiments that come with Sonde and name a buffering layer do run under it: its own report counts
the calls of the program, and far fewer below. A variant that the layer left alone would compare a program with itself.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def told(sonde: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Runs an experiment once and gives the layer's line on each opening of a file."""

    def run(name: str, *words: str) -> list[Any]:
        lines, target = tmp_path / "lines", tmp_path / "target"
        lines.mkdir()
        target.mkdir()
        monkeypatch.setenv("SONDE_IOBUF_LINES", str(lines))
        monkeypatch.setenv("SONDE_PRELOAD", str(library))
        file = next(EXPERIMENTS.rglob(f"{name}.toml"))
        once = ("--set", "repeat.min=1", "--no-report", "--quiet")
        done = sonde("run", str(file), "--profile", "ci", "--on", str(target), *once, *words)
        assert done.returncode == 0, done.stderr
        assert not list(target.iterdir())
        found = [json.loads(line) for one in lines.iterdir() for line in one.read_text().splitlines()]
        return [one for one in found if one["type"] == "buffer"]

    return run


def test_the_fortran_program_writes_through_the_layer(told: Callable[..., list[Any]]) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not on PATH")
    found = told("cray-x1-fortran")
    # 1000 records for each loop of the program; the layer and the direct variant of the small and of the large file
    assert sorted(one["write"]["calls"] for one in found) == [1000, 1000, 2000, 2000]
    for one in found:
        assert Path(one["path"]).name == "fort.21"
        written = one["write"]
        assert written["bytes"] == written["calls"] * (10_001 * 4 + 8)
        assert written["below_bytes"] == written["bytes"]
        # pages of 2 MiB; the direct variant may write the end of the file by itself
        assert written["below_calls"] <= written["bytes"] // (2 << 20) + 2
        assert "let_go" not in one
        assert one["dormant"] == 0


def test_the_tasks_of_a_posix_test_read_and_write_through_the_layer(told: Callable[..., list[Any]]) -> None:
    found = told("edison-posix-10k")
    # two tasks write, read, read again, and read alone 16 MB in records of 10 kB
    assert sorted((one["write"]["calls"], one["read"]["calls"]) for one in found) == [(0, 1600)] * 6 + [(1600, 0)] * 2
    assert all(one["write"]["below_calls"] + one["read"]["below_calls"] <= 2 for one in found)
    assert not any("let_go" in one for one in found)


def test_small_reads_of_named_files_are_gathered_in_any_order(told: Callable[..., list[Any]]) -> None:
    found = [one["read"] for one in told("edison-qlua") if one["read"]["calls"]]
    small = [one for one in found if one["calls"] == 2000]
    assert len(small) == 2, "the 2,000 reads of 1 kB one after the other, and in random order"
    assert all(one["below_calls"] <= 200 and one["below_bytes"] == one["bytes"] for one in small)
