# SPDX-License-Identifier: Apache-2.0
"""Real parallel file systems, started for these tests on this machine and ended with them (`make test-storage`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # what its tests share


@pytest.fixture(scope="session")
def engine() -> Path:
    """$SONDE_ENGINE, else the newest program in build/*/engine."""
    named = os.environ.get("SONDE_ENGINE")
    built = sorted(ROOT.glob("build/*/engine/sonde-engine"), key=lambda path: path.stat().st_mtime)
    if not named and not built:
        pytest.skip("the engine is not built: cmake --preset dev && cmake --build --preset dev, or set SONDE_ENGINE")
    return Path(named) if named else built[-1]
