# SPDX-License-Identifier: Apache-2.0
"""Parsers written for the real tools read the output of `sonde ior`, `sonde mdtest` and `sonde iozone`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Sonde = Callable[..., "subprocess.CompletedProcess[str]"]

LINES = {
    "IOR's table": ("ior", ["-w", "-r", "-F", "-t", "4k", "-b", "64k", "-i", "2", "-o", "f"], {"write", "read"}),
    "IOR's JSON": (
        "ior",
        ["-w", "-r", "-F", "-t", "4k", "-b", "64k", "-i", "2", "-O", "summaryFormat=JSON", "-o", "f"],
        {"write", "read"},
    ),
    "mdtest's table": (
        "mdtest",
        ["-n", "20", "-i", "2", "-d", "d"],
        {"file_creation", "file_stat", "file_read", "file_removal", "directory_rename", "tree_creation"},
    ),
    "IOzone's table": ("iozone", ["-i", "0", "-i", "1", "-r", "4k", "-s", "64k", "-f", "f"], {"write", "read"}),
}


@pytest.mark.parametrize("name", LINES)
def test_output_of_dialects_is_imported_as_the_original_tool(name: str, sonde: Sonde, tmp_path: Path) -> None:
    tool, arguments, phases = LINES[name]
    printed = sonde(tool, "--quiet", *arguments)
    assert printed.returncode == 0, printed.stderr
    (tmp_path / "result").write_text(printed.stdout)
    done = sonde("import", "--archive", "imported", "result")
    assert done.returncode == 0, done.stderr
    runs = [json.loads(path.read_text()) for path in tmp_path.glob("imported/*/*/run.json")]
    phases_read = {phase["phase"] for run in runs for phase in run["phases"]}
    assert phases <= phases_read, phases_read
    assert all(run["source"]["tool"].lower().startswith(tool) for run in runs)
    assert all(phase["bytes_per_s"] or phase["ops_per_s"] for run in runs for phase in run["phases"])
