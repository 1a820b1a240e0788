# SPDX-License-Identifier: Apache-2.0
"""The commands of a scheduler, as scripts on PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of PATH for a scheduler's commands, which log their arguments."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder
