# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: a test of a user passes and fails by the statistics of the gate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sonde

FAKE_ENGINE_FILE = Path(__file__).parents[1] / "fake_engine.py"
PLAN = {
    "id": "small",
    "data": {"access": {"transfer": "64KiB", "volume": "1MiB"}},
    "phases": [{"id": "write", "op": "write"}],
}
TEST = f"""
from sonde.findings.classification import Classification

# The fake engine takes no time, so its numbers would be too short to be judged.
Classification.is_judged = property(lambda self: True)
PLAN = {PLAN}


def test_write_rate(sonde_gate):
    run = sonde_gate(PLAN, baseline="nightly", retests=1)
    assert run.phase("write").op == "write"


def test_limit(sonde_gate):
    sonde_gate(PLAN, at_least=["write=1.5GB/s"], retests=0)


def test_missing_baseline(sonde_gate):
    sonde_gate(PLAN, baseline="missing")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test file of a user, a directory to measure, and a baseline of four runs at 2 GB/s."""
    monkeypatch.setenv("SONDE_ENGINE", str(FAKE_ENGINE_FILE))
    monkeypatch.setenv("FAKE_RATE", "2e9")
    (tmp_path / "test_storage.py").write_text(TEST, encoding="utf-8")
    (tmp_path / "target").mkdir()
    for _ in range(4):
        sonde.run(PLAN, on=tmp_path / "target", archive=tmp_path / "archive", tags=["baseline:nightly"])
    return tmp_path


def run_pytest(folder: Path, rate: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    lab = str(Path(sonde.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": lab,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
        "SONDE_ENGINE": str(FAKE_ENGINE_FILE),
        "FAKE_RATE": rate,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "sonde.public.pytest_plugin", "-c", os.devnull]
    command += ["--rootdir", str(folder), f"--sonde-archive={folder / 'archive'}", f"--sonde-on={folder / 'target'}"]
    command += [*arguments, str(folder)]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120)


def test_user_tests_pass_and_fail_by_the_gate(folder: Path) -> None:
    added = run_pytest(folder, "2e9", "-k", "write_rate", "--sonde-add-to-baseline")
    assert added.returncode == 0, added.stdout
    assert len(sonde.open(folder / "archive").runs(tag="baseline:nightly")) == 5
    good = run_pytest(folder, "1.95e9", "-k", "write_rate or limit")
    assert good.returncode == 0, good.stdout
    assert "2 passed" in good.stdout
    slow = run_pytest(folder, "1e9")
    assert slow.returncode == 1
    assert "3 failed" in slow.stdout
    assert "write: too slow: 1e+09, 1e+09, and the limit is 1.7e+09; the usual value is 2e+09." in slow.stdout
    assert "write: too slow: 1e+09, and the limit is 1.5e+09." in slow.stdout
    assert 'There is no baseline "missing"' in slow.stdout


def test_plugin_imports_nothing_of_the_lab() -> None:
    heavy = ("numpy", "pyarrow", "rich", "sonde.public.measuring")
    code = f"import sys, sonde.public.pytest_plugin; print([name for name in {heavy} if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(sonde.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
