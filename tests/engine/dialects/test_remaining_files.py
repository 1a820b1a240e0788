# SPDX-License-Identifier: Apache-2.0
"""What runs of other tools' command lines leave in the user's directories, also when they fail or meet what is gone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_under_test import DONE, FAILED, list_tree


def run(engine: Path, command_line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(engine), *command_line.split()], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.fixture
def mdtest_folder(engine_path: Path, tmp_path: Path) -> Path:
    """A folder in which mdtest has created ten files, of which one is gone."""
    assert run(engine_path, "mdtest -C -F -n 10 -w 64 -d m", tmp_path).returncode == DONE
    next(tmp_path.rglob("file.mdtest.0.4")).unlink()
    return tmp_path


@pytest.mark.parametrize("operation", ["-T", "-E -e 64", "-T -E -e 64"])
def test_lost_file_is_reported_and_the_remaining_are_processed(
    operation: str, engine_path: Path, mdtest_folder: Path
) -> None:
    before = list_tree(mdtest_folder)
    result = run(engine_path, f"mdtest {operation} -F -n 10 -w 64 -d m", mdtest_folder)
    assert result.returncode == FAILED
    assert "file.mdtest.0.4 failed: No such file or directory" in result.stderr
    assert ("WARNING: unable to stat file" in result.stdout) is ("-T" in operation)
    assert "sonde: file-stat                 9 " in result.stderr or "-T" not in operation
    assert list_tree(mdtest_folder) == before  # no file is missing, and no file that we made remains


def test_removal_continues_after_a_lost_file(engine_path: Path, mdtest_folder: Path) -> None:
    result = run(engine_path, "mdtest -r -F -n 10 -d m", mdtest_folder)
    assert result.returncode == FAILED
    assert list_tree(mdtest_folder) == ["m"]


def test_run_that_fails_before_start_leaves_no_files(engine_path: Path, mdtest_folder: Path) -> None:
    """Directories stand where files should be: no file of that kind can be read."""
    for path in mdtest_folder.rglob("file.*"):
        path.unlink()
        path.mkdir()
    before = list_tree(mdtest_folder)
    assert run(engine_path, "mdtest -E -e 64 -w 64 -F -n 10 -d m", mdtest_folder).returncode == FAILED
    assert list_tree(mdtest_folder) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_file_that_is_replaced_needs_no_further_space(engine_path: Path, small_disk: Path) -> None:
    command_line = "ior -w -k -t 64k -b 5m -o f"
    assert run(engine_path, command_line, small_disk).returncode == DONE
    assert run(engine_path, command_line, small_disk).returncode == DONE
    assert run(engine_path, command_line + " -E", small_disk).returncode == DONE
    other = run(engine_path, "ior -w -k -t 64k -b 5m -o g", small_disk)
    assert other.returncode != DONE
    assert "free, but the plan needs 5 MiB" in other.stderr
    (small_disk / "kept").hardlink_to(small_disk / "f")  # then replacing it frees nothing
    assert run(engine_path, command_line, small_disk).returncode != DONE


@pytest.mark.parametrize("command_line", ["-r -o missing", "-r -F -i 2 -o missing"])
def test_ior_reports_a_missing_file_and_prints_no_result_row(
    command_line: str, engine_path: Path, tmp_path: Path
) -> None:
    """The real one ends in an abort, without a row, a summary or a time at which it finished."""
    result = run(engine_path, f"ior {command_line}", tmp_path)
    assert result.returncode == FAILED
    assert 'ERROR: open("missing' in result.stdout
    assert "failed: No such file or directory" in result.stdout
    assert "open of missing" in result.stderr
    assert "offset" not in result.stderr
    for word in ("\nread ", "Finished", "Max(MiB)"):
        assert word not in result.stdout
    assert "sonde: " not in result.stderr


def test_ior_prints_rows_of_tests_before_a_failed_test(engine_path: Path, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("IOR START\nwriteFile=1\nRUN\nwriteFile=0\nreadFile=1\nRUN\nIOR STOP\n")
    result = run(engine_path, "ior -t 4k -b 64k -f script -o f", tmp_path)
    assert result.returncode == FAILED
    assert result.stdout.count("\nwrite ") == 1
    assert "\nread " not in result.stdout
    result = run(engine_path, "ior -t 4k -b 64k -f script -o f -O summaryFormat=JSON", tmp_path)
    tests = json.loads(result.stdout)["tests"]
    assert [[row["access"] for row in test["Results"]] for test in tests] == [["write"], []]
