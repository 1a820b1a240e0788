# SPDX-License-Identifier: Apache-2.0
"""The whole chain as a user starts it: the lab of this checkout with an engine that was built from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # what its tests share


@pytest.fixture
def engine() -> Path:
    """$SONDE_ENGINE, else the newest program in build/*/engine."""
    named = os.environ.get("SONDE_ENGINE")
    built = sorted(ROOT.glob("build/*/engine/sonde-engine"), key=lambda path: path.stat().st_mtime)
    if not named and not built:
        pytest.skip("the engine is not built: cmake --preset dev && cmake --build --preset dev, or set SONDE_ENGINE")
    return Path(named) if named else built[-1]


@pytest.fixture
def sonde(engine: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `sonde WORDS…` in the folder of the test."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sonde", *words],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab")},
        )

    return run


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """Reads what the archive in the folder of the test knows of its runs, the oldest first."""

    def read() -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(tmp_path.glob("sonde-archive/*/*/run.json"))]

    return read


@pytest.fixture
def library() -> Path:
    """The preload library; the test is skipped where there is none."""
    from sonde.launch.preload import find_library
    from sonde.model.errors import MachineError

    try:
        return find_library()
    except MachineError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def sonde_with_library(library: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `sonde WORDS…` in the folder of the test, with no settings of the library but those of the words."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sonde", *words],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name != "IOBUF_PARAMS"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture
def short_io500() -> str:
    """An ini file of IO500 with little data and a stonewall of a second."""
    return """[global]
datadir = ./data
timestamp-resultdir = FALSE
[debug]
stonewall-time = 1
[ior-easy]
transferSize = 64k
blockSize = 1m
[ior-hard]
segmentCount = 20
[mdtest-easy]
n = 200
[mdtest-hard]
n = 150
[ior-rnd4K-easy-read]
run = FALSE
"""
