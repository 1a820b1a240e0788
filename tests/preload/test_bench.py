# SPDX-License-Identifier: Apache-2.0
"""The bench runs where it can, says why where it cannot, and its figures have names."""

from __future__ import annotations

import importlib
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


def test_bench_reports_the_cost_of_single_calls(preload: Preload, memory_folder: Path) -> None:
    numbers, table = figures(preload, memory_folder, "--only", "costs")
    for case in ("none", "not_buffered", "traced"):
        assert {f"cost.{case}.{mode}.added_ns" for mode in ("read", "write", "lseek")} <= numbers.keys()
    assert numbers["record.write.ratio"] > 0
    assert table.count("\n") >= 14


def test_bench_reports_time_and_ratio_per_variant(preload: Preload, memory_folder: Path) -> None:
    numbers, table = figures(preload, memory_folder, "--only", "files", "--cells", "in_memory.write.100000")
    name = next(key for key in numbers if key.endswith(".as_is_s")).removesuffix(".as_is_s")
    assert {f"{name}.{variant}" for variant in ("named", "direct", "named_s", "direct_s")} <= numbers.keys()
    assert name in table


def test_median_interval_excludes_improbable_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "bench")
    turns = importlib.import_module("buffering.turns")
    ratios = [1.5, 0.2, 1.3, 1.4, 1.6, 9.0, 1.7, 1.2, 1.1]
    result = turns.TurnResults(
        {"as is": [turns.Turn(ratio, 0, 0) for ratio in ratios], "layer": [turns.Turn(1, 0, 0)] * 9}
    )
    assert result.ratio("layer") == 1.4
    assert result.interval("layer") == (1.1, 1.7)  # one of nine at either end: 2 (1 + 9) / 512 is 4 %
    few = turns.TurnResults(
        {"as is": [turns.Turn(ratio, 0, 0) for ratio in ratios[:3]], "layer": [turns.Turn(1, 0, 0)] * 3}
    )
    assert few.interval("layer") == (0.2, 1.5)
