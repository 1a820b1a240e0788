# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of the S3 backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("moto")
from object_server import KEY, SECRET, ObjectServer, run_object_server


@pytest.fixture(scope="session")
def running_service() -> Iterator[ObjectServer]:
    with run_object_server() as service:
        yield service


@pytest.fixture
def object_server(running_service: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ObjectServer:
    """An empty service, and its key in the environment."""
    running_service.reset()
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CA_BUNDLE", "AWS_REGION", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", running_service.url)
    return running_service
