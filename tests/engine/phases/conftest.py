# SPDX-License-Identifier: Apache-2.0
"""A folder of layouts that the engine takes for those of its files, and how they are written, beside the tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def layout_folder(tmp_path: Path) -> Path:
    """For $SONDE_PRETEND_LAYOUTS: holds a layout for each file, by its name."""
    folder = tmp_path / "layouts"
    folder.mkdir()
    return folder
