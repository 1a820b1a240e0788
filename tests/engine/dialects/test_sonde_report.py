# SPDX-License-Identifier: Apache-2.0
"""What Sonde adds to the output of other tools stands where no reader of that output meets it: public scripts take
numbers by the name of a row, often the last one, from a file into which output and errors went together."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

MDTEST_ROWS = (
    *(f"Directory {operation}" for operation in ("creation", "stat", "rename", "removal")),
    *(f"File {operation}" for operation in ("creation", "stat", "read", "removal")),
    *(f"Tree {operation}" for operation in ("creation", "removal")),
)


def run_with_joined_output(engine: Path, command_line: str, folder: Path) -> str:
    """Output and errors in one, as most job scripts keep them."""
    command = [str(engine), *command_line.split()]
    result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout
    return result.stdout


def find_matching_lines(text: str, pattern: str) -> list[str]:
    return [line for line in text.splitlines() if re.search(pattern, line)]


@pytest.mark.parametrize("row", MDTEST_ROWS)
def test_grep_for_an_mdtest_row_finds_exactly_that_row(row: str, mdtest_output: str, tmp_path: Path) -> None:
    """`grep "File creation" | awk '{print $3}' | tail -1`, and its kin."""
    matches = find_matching_lines(mdtest_output, re.escape(row))
    assert len(matches) == 1
    assert re.fullmatch(rf"   {row} +(\d+\.\d{{3}} +){{3}}\d+\.\d{{3}}", matches[0])


@pytest.fixture(scope="module")
def mdtest_output(engine_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return run_with_joined_output(engine_path, "mdtest -n 20 -d m", tmp_path_factory.mktemp("mdtest"))


def test_sonde_report_of_mdtest_is_on_standard_error_only(engine_path: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [str(engine_path), "mdtest", "-n", "20", "-d", "m"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "sonde" not in result.stdout.replace("4.1.0+sonde", "")
    assert all(line.startswith("sonde: ") for line in result.stderr.splitlines())
    assert re.search(r"^sonde: file-create +20 ", result.stderr, re.MULTILINE)


@pytest.mark.parametrize("operation", ["write", "read"])
def test_grep_for_an_operation_finds_only_rows_of_ior(operation: str, engine_path: Path, tmp_path: Path) -> None:
    """`grep -w write | tail -1` and its kin: rows begin with it, ours do not."""
    text = run_with_joined_output(engine_path, "ior -w -r -F -i 2 -t 4k -b 64k -o f --sonde-processes=2", tmp_path)
    assert len(find_matching_lines(text, rf"^\s*{operation}\b")) == 3  # two repetitions and the summary
    assert find_matching_lines(text, rf"^sonde: {operation.capitalize()} of test 0, iteration 1: transfers ")
    assert not [line for line in find_matching_lines(text, rf":\s*{operation}\b") if line.startswith("sonde")]


@pytest.mark.parametrize("layout", ["default", "JSON", "CSV"])
def test_ior_output_has_no_sonde_report_by_default(layout: str, engine_path: Path, tmp_path: Path) -> None:
    command_line = f"ior -w -r -t 4k -b 64k -D 30 -O stoneWallingWearOut=1,summaryFormat={layout} -o f"
    command = [str(engine_path), *command_line.split()]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "sonde" not in completed.stdout.replace("4.1.0+sonde", "").replace(str(engine_path), "")
    assert "sonde: Write of test 0, iteration 0: transfers" in completed.stderr


def test_sonde_report_can_be_moved_or_disabled(engine_path: Path, tmp_path: Path) -> None:
    for tool, command_line in (("ior", "-w -t 4k -b 64k -o f"), ("mdtest", "-n 3 -d m")):
        for where, in_output in (("output", True), ("none", False)):
            command = [str(engine_path), tool, *command_line.split(), f"--sonde-report={where}"]
            completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
            assert ("\nsonde: " in completed.stdout) is in_output
            assert completed.stderr == ""
    wrong = [str(engine_path), "ior", "--sonde-report=here"]
    completed = subprocess.run(wrong, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "must be stderr, output or none" in completed.stderr
