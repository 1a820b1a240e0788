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
def run_with_layer(
    sonde: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[Any]]:
    """Runs an experiment once and gives the layer's line on each opening of a file."""

    def run(name: str, *arguments: str) -> list[Any]:
        lines, target = tmp_path / "lines", tmp_path / "target"
        lines.mkdir()
        target.mkdir()
        monkeypatch.setenv("SONDE_IOBUF_LINES", str(lines))
        monkeypatch.setenv("SONDE_PRELOAD", str(library))
        file = next(EXPERIMENTS.rglob(f"{name}.toml"))
        once = ("--set", "repeat.min=1", "--no-report", "--quiet")
        done = sonde("run", str(file), "--profile", "ci", "--on", str(target), *once, *arguments)
        assert done.returncode == 0, done.stderr
        assert not list(target.iterdir())
        lines_read = [json.loads(line) for path in lines.iterdir() for line in path.read_text().splitlines()]
        return [line for line in lines_read if line["type"] == "buffer"]

    return run


def test_the_fortran_program_writes_through_the_layer(run_with_layer: Callable[..., list[Any]]) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not on PATH")
    reports = run_with_layer("cray-x1-fortran")
    # 1000 records for each loop of the program; the layer and the direct variant of the small and of the large file
    assert sorted(report["write"]["calls"] for report in reports) == [1000, 1000, 2000, 2000]
    for report in reports:
        assert Path(report["path"]).name == "fort.21"
        written = report["write"]
        assert written["bytes"] == written["calls"] * (10_001 * 4 + 8)
        assert written["storage_bytes"] == written["bytes"]
        # pages of 2 MiB; the direct variant may write the end of the file by itself
        assert written["storage_calls"] <= written["bytes"] // (2 << 20) + 2
        assert "release_reason" not in report
        assert report["suspensions"] == 0


def test_the_tasks_of_a_posix_test_read_and_write_through_the_layer(run_with_layer: Callable[..., list[Any]]) -> None:
    reports = run_with_layer("edison-posix-10k")
    # two tasks write, read, read again, and read alone 16 MB in records of 10 kB
    assert (
        sorted((report["write"]["calls"], report["read"]["calls"]) for report in reports)
        == [(0, 1600)] * 6 + [(1600, 0)] * 2
    )
    # A page of 16 MB holds all records; what waits longer than `age` is written meanwhile, which a busy machine causes.
    assert all(report["write"]["storage_calls"] + report["read"]["storage_calls"] <= 16 for report in reports)
    assert not any("release_reason" in report for report in reports)


def test_small_reads_of_selected_files_are_coalesced_in_any_order(run_with_layer: Callable[..., list[Any]]) -> None:
    reads = [report["read"] for report in run_with_layer("edison-qlua") if report["read"]["calls"]]
    small = [read for read in reads if read["calls"] == 2000]
    assert len(small) == 2, "the 2,000 reads of 1 kB one after the other, and in random order"
    assert all(read["storage_calls"] <= 200 and read["storage_bytes"] == read["bytes"] for read in small)
