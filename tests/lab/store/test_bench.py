# SPDX-License-Identifier: Apache-2.0
"""The bench of the archive still runs, on a small one: what it makes up is an archive that every command accepts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.nightly
def test_the_bench_runs_on_a_small_archive(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "bench" / "archive.py"), "--runs", "600", "--real", "10", "--times", "1"]
    done = subprocess.run([*command, "--dir", str(tmp_path), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document.pop("runs") == 600
    assert document.pop("index_bytes") > 0
    assert {"list", "filter", "one_series", "all_series", "query", "after_a_run"} <= set(document)
    assert all(seconds >= 0 for seconds in document.values())
    assert list(tmp_path.iterdir()) == [], "it takes away what it made"
