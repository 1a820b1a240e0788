# SPDX-License-Identifier: Apache-2.0
"""What the tests of the report share: records with known contents, and the pages made of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# The generator and the browser are modules beside the tests, not tests; pytest's import mode does not find them itself.
sys.path.insert(0, str(Path(__file__).parent))

from make_record import Scene, write_run

from sonde.report import write_report

Pages = Callable[..., str]


@pytest.fixture
def page(tmp_path: Path) -> Pages:
    """Makes the report of scenes (one or several) and returns its text; the file is report.html."""

    def make(*scenes: Scene, title: str | None = None, cut: int = 0) -> str:
        folders = [write_run(tmp_path / f"run-{at}", scene, cut) for at, scene in enumerate(scenes)]
        return write_report(folders, tmp_path / "report.html", title).read_text(encoding="utf-8")

    return make
