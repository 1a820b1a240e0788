# SPDX-License-Identifier: Apache-2.0
"""A directory to work on, and the reference beside the tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from engine_under_test import Engine

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def engine(engine_path: Path, tmp_path: Path) -> Engine:
    """The program under test, writing its plans and records beside the target."""
    return Engine(engine_path, tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """An empty directory to measure."""
    folder = tmp_path / "target"
    folder.mkdir()
    return folder
