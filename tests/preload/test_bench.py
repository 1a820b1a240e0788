# SPDX-License-Identifier: Apache-2.0
"""The bench runs where it can, says why where it cannot, and its figures have names."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from preload_under_test import ROOT, Preload


def figures(preload: Preload, folder: Path, *options: str) -> tuple[dict[str, float], str]:
    command = [sys.executable, ROOT / "bench/preload.py", "--library", preload.library, "--json", "--rounds", "1"]
    done = subprocess.run(
        [str(word) for word in (*command, "--dir", folder, "--memory", folder, *options)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout), done.stderr


@pytest.fixture(autouse=True)
def _compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")


def test_what_single_calls_cost(preload: Preload, memory: Path) -> None:
    found, table = figures(preload, memory, "--only", "costs")
    for what in ("none", "not_buffered", "traced"):
        assert {f"cost.{what}.{mode}.added_ns" for mode in ("read", "write", "lseek")} <= found.keys()
    assert found["record.write.ratio"] > 0
    assert table.count("\n") >= 14


def test_each_way_of_a_program_has_a_time_and_a_ratio(preload: Preload, memory: Path) -> None:
    found, table = figures(preload, memory, "--only", "files", "--cells", "in_memory.write.100000")
    name = next(key for key in found if key.endswith(".as_is_s")).removesuffix(".as_is_s")
    assert {f"{name}.{way}" for way in ("layer", "direct", "layer_s", "direct_s")} <= found.keys()
    assert name in table
