# SPDX-License-Identifier: Apache-2.0
"""A program sees no difference: results, errors, offsets, sizes and files equal those without the library."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import RUNNER, Plain, Preload

Program = Callable[[str], Path]

# From pages smaller than a record to one page for everything; with and without adaptive suspension.
PARAMS = {
    "tiny": "*:size=512:count=3:alone",
    "small": "*:size=4k:count=4:alone",
    "ahead": "*:size=64k:count=2:prefetch=1:alone",
    "usual": "*",
    "alone": "*:alone",
    "many": "*:size=16k:count=32:prefetch=4:alone",
    "direct": "*:size=16k:count=4:prefetch=2:direct:alone",
    "no threads": "*:size=8k:count=8:alone,%process:threads=0",
    "auto": "*:auto:alone",
}
# The programs in programs/hazards, and what each of them does.
SCENARIOS = {
    "processes": "left_open fast_exit quick raw_exit aborts at_exit_handler in_destructor forks borrows spawns"
    " asks_shell replaces_itself sends_descriptor",
    "descriptors": "closes_all to_stdout streams_too opens_again appends appends_with_child replaces_file maps refuses"
    " limited by_number tries_all_numbers closed_stderr",
    "threads": "threads threads_one_offset cancels interrupted asks_handlers locks",
}


@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS.keys())
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 104])
def test_a_random_list_of_calls(
    preload: Preload, run_bare: Plain, compile_program: Program, memory_folder: Path, params: str, seed: int
) -> None:
    command: list[str | Path] = [compile_program("operations"), ".", str(seed), "2000", "20000"]
    without = run_bare(command, memory_folder)
    assert without.code == 0
    assert len(without.out.splitlines()) > 3000
    assert preload.outcome(command, memory_folder / "with", IOBUF_PARAMS=params) == without


def test_random_calls_on_a_disk_have_the_same_outcome(
    preload: Preload, run_bare: Plain, compile_program: Program, tmp_path: Path
) -> None:
    command: list[str | Path] = [compile_program("operations"), ".", "5", "700", "20000"]
    without = run_bare(command, tmp_path)
    assert preload.outcome(command, tmp_path / "with", IOBUF_PARAMS=PARAMS["direct"]) == without


@pytest.mark.parametrize(
    ("program_name", "scenario"),
    [(name, scenario) for name, scenarios in SCENARIOS.items() for scenario in scenarios.split()],
)
@pytest.mark.parametrize("mode", ["small", "usual", "alone", "auto", "trace"])
def test_hazardous_programs_behave_the_same_with_the_library(
    preload: Preload,
    run_bare: Plain,
    compile_program: Program,
    tmp_path: Path,
    program_name: str,
    scenario: str,
    mode: str,
) -> None:
    command: list[str | Path] = [compile_program(f"hazards/{program_name}"), scenario]
    without = run_bare(command, tmp_path)
    traces = tmp_path / "traces"
    traces.mkdir()
    variables = {"SONDE_TRACE": str(traces)} if mode == "trace" else {"IOBUF_PARAMS": PARAMS[mode]}
    assert preload.outcome(command, tmp_path / "with", **variables) == without


@pytest.mark.parametrize("program_name", SCENARIOS)
def test_all_scenarios_are_run(compile_program: Program, program_name: str) -> None:
    command: list[str | Path] = [*RUNNER, compile_program(f"hazards/{program_name}"), "--list"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.split() == SCENARIOS[program_name].split()
