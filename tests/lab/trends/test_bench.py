# SPDX-License-Identifier: Apache-2.0
"""The bench of the detector runs on any folder of histories, and says what is wrong with others."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
COLUMNS = ("time_utc", "system", "file_system", "benchmark", "files", "operation", "rate_GiBps")


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / "trends.py"), "--data", str(folder), "--rows", "4", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lab")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


@pytest.mark.nightly
def test_bench_meets_its_goals_on_a_custom_site(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    rows = [
        dict(
            zip(
                COLUMNS,
                ((start + timedelta(days=day)).isoformat(), "s", system, "ior", "shared", op, rate),
                strict=True,
            )
        )
        for system in ("fs1", "")
        for op in ("read", "write")
        for day, rate in enumerate(np.round(10 * np.exp(random.normal(0, 0.1, 200)), 4))
    ]
    write(tmp_path / "site.csv", rows)
    done = bench(tmp_path, "--json", "--check")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["file systems found -20%"] >= 0.9
    assert figures["file systems false alarms"] <= 0.35
    assert figures["noise of the file systems alarms a year"] <= 1


def test_bench_rejects_an_unrelated_folder_in_one_sentence(tmp_path: Path) -> None:
    write(tmp_path / "other.csv", [{"a": 1}])
    done = bench(tmp_path)
    assert done.returncode == 2
    assert "has no column" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
