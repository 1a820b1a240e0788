# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests that run the engine as a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

for folder in (Path(__file__).parent, Path(__file__).parent / "truth"):
    sys.path.insert(0, str(folder))

from engine_under_test import Engine, find_engine  # noqa: E402  (found through the path above)


@pytest.fixture(scope="session")
def engine_path() -> Path:
    path = find_engine()
    if path is None:
        pytest.skip("the engine is not built: cmake --preset dev && cmake --build --preset dev, or set SONDE_ENGINE")
    return path


@pytest.fixture
def engine(engine_path: Path, tmp_path: Path) -> Engine:
    """The engine, with a folder of its own for plans and records."""
    folder = tmp_path / "run"
    folder.mkdir()
    return Engine(engine_path, folder)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """An empty directory to measure."""
    folder = tmp_path / "target"
    folder.mkdir()
    return folder
