# SPDX-License-Identifier: Apache-2.0
"""C++ streams are buffered without a visible difference; C streams, and a program's private libstdc++, are
unchanged."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from preload_under_test import RUNNER, Plain, Preload

Program = Callable[[str], Path]
PARAMS = {
    "tiny": "*:size=512:count=3:alone",
    "usual": "*",
    "auto": "*:auto",
    "alone": "*:alone",
    "large": "*:size=64k:count=4:prefetch=2:alone",
    "own": "*:size=16k:count=4:alone",
}
SCENARIOS = [
    "writes_and_reads",
    "both_ways",
    "large_pieces",
    "appends",
    "begins_at_end",
    "left_open",
    "empties_it",
    "beside_descriptors",
    "beside_c",
    "same_file_from_c",
    "forks",
    "moves",
    "limited",
    "closes_all_streams",
]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("mode", [*PARAMS, "trace"])
def test_cxx_streams_behave_the_same_with_the_library(
    preload: Preload, run_bare: Plain, compile_program: Program, tmp_path: Path, scenario: str, mode: str
) -> None:
    command: list[str | Path] = [compile_program("streams"), scenario]
    without = run_bare(command, tmp_path)
    assert without.code == 0
    traces = tmp_path / "traces"
    traces.mkdir()
    variables = {"SONDE_TRACE": str(traces)} if mode == "trace" else {"IOBUF_PARAMS": PARAMS[mode]}
    assert preload.outcome(command, tmp_path / "with", **variables) == without


def test_all_scenarios_are_run(compile_program: Program) -> None:
    output = subprocess.run(
        [*RUNNER, compile_program("streams"), "--list"], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == SCENARIOS


def reported(preload: Preload, command: list[str | Path], folder: Path) -> dict[str, Any]:
    """The library's report on the file "out"."""
    (folder / "lines").mkdir()
    params = "*/out:size=256k:count=4:alone"
    done = preload.run(command, folder, IOBUF_PARAMS=params, SONDE_IOBUF_LINES=str(folder / "lines"))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for file in (folder / "lines").iterdir() for line in file.read_text().splitlines()]
    written: dict[str, Any] = lines[0]
    return written


def test_writes_of_a_cxx_stream_are_coalesced(preload: Preload, compile_program: Program, tmp_path: Path) -> None:
    line = reported(preload, [compile_program("streams"), "left_open"], tmp_path)
    assert "release_reason" not in line
    assert line["write"]["bytes"] == (tmp_path / "out").stat().st_size
    assert line["write"]["calls"] > 5 * line["write"]["storage_calls"] > 0


def test_requesting_the_c_file_of_a_cxx_stream_disables_buffering(
    preload: Preload, compile_program: Program, tmp_path: Path
) -> None:
    line = reported(preload, [compile_program("streams"), "same_file_from_c"], tmp_path)
    assert line["release_reason"] == "the program asked for the FILE of a stream of C++"


def test_program_with_a_static_libstdcxx_is_not_buffered(preload: Preload, tmp_path: Path) -> None:
    """Nobody knows what is in it; its streams look like those of C."""
    compiler = shutil.which("c++")
    if compiler is None or RUNNER:
        pytest.skip("there is no C++ compiler here")
    source = Path(__file__).resolve().parent / "programs" / "streams.cpp"
    program_file = tmp_path / "alone"
    built = subprocess.run([compiler, "-std=c++20", "-w", "-static-libstdc++", "-o", program_file, source], check=False)
    if built.returncode != 0:
        pytest.skip("libstdc++ cannot be linked statically here")
    line = reported(preload, [program_file, "left_open"], tmp_path)
    assert line["release_reason"] == "opened by the C library's streams"
