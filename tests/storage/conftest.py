# SPDX-License-Identifier: Apache-2.0
"""Real parallel file systems, started for these tests on this machine and ended with them (`make test-storage`)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # what its tests share

from daemon_namespace import NotStartedError, Room, lacking  # noqa: E402
from real_systems import SYSTEMS, Storage  # noqa: E402  (found through the path above)
from user import User  # noqa: E402


@pytest.fixture(scope="session")
def engine() -> Path:
    """$SONDE_ENGINE, else the newest program in build/*/engine."""
    engine_path = os.environ.get("SONDE_ENGINE")
    built = sorted(ROOT.glob("build/*/engine/sonde-engine"), key=lambda path: path.stat().st_mtime)
    if not engine_path and not built:
        pytest.skip("the engine is not built: cmake --preset dev && cmake --build --preset dev, or set SONDE_ENGINE")
    return Path(engine_path) if engine_path else built[-1]


@pytest.fixture(scope="session", params=SYSTEMS)
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """One after the other: of the session, so that pytest orders all tests by it and each is started once."""
    start_system, programs = SYSTEMS[request.param]
    if reason := lacking(*programs):
        pytest.skip(reason)
    try:
        room = Room(tmp_path_factory.mktemp(request.param))
    except NotStartedError as why:
        pytest.skip(f"no namespaces here: {why}")
    try:
        began = time.monotonic()
        system = start_system(room)
        print(f"{request.param} came up in {time.monotonic() - began:.1f} s")
        yield system
    finally:
        room.close()


@pytest.fixture
def user(storage: Storage, engine: Path, tmp_path: Path) -> User:
    return User(storage.room, engine, tmp_path)
