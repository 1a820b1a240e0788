# SPDX-License-Identifier: Apache-2.0
"""Fixtures of verbs: a run of the fake engine, and reports that are only requested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def short_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports contain only their title and the number of runs; the page has other tests."""

    def write_report(runs: Any, out: Path, title: str | None = None, before: Any = (), system: Any = None) -> Path:
        out.write_text(f"{title} {len(runs)}")
        return out

    monkeypatch.setattr("sonde.report.write_report", write_report)


@pytest.fixture
def quick_result(sonde: Any, fake_engine: Callable[..., Path], target: Path, short_report: None) -> Any:
    result = sonde("run", "quick", "--on", target)
    assert result.code == 0, result.err
    return result
