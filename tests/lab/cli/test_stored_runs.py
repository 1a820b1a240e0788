# SPDX-License-Identifier: Apache-2.0
"""Verbs that print stored runs: list, show, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fake = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("short_report")


def test_failed_run_appears_in_list_and_show(sonde: Any, fake_engine: Fake, target: Path) -> None:
    fake_engine("enospc")
    sonde("run", "quick", "--on", target)
    assert "failed" in sonde("list").out
    result = sonde("show", "last")
    assert result.code == 0
    assert "write" in result.out
    assert "no space left on device" in result.out


def test_list_prints_runs(sonde: Any, quick_result: Any, fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine("enospc")
    sonde("run", "known-answer", "--on", target)
    assert len(sonde("list", "--json").json) == 2
    assert [run["plan"]["id"] for run in sonde("list", "--json", "--plan", "QUICK").json] == ["quick"]
    assert [run["status"] for run in sonde("list", "--json", "--status", "failed").json] == ["failed"]
    assert len(sonde("list", "--json", "-n", "1").json) == 1
    assert len(sonde("list", "--json", "--on", str(target)).json) == 2
    assert sonde("list", "--json", "--on", "elsewhere").json == []
    assert len(sonde("list", "--json", "--since", "2000-01-01").json) == 2
    assert sonde("list", "--json", "--since", "2999-01-01").json == []
    assert "no run like that" in sonde("list", "--status", "lost").out
    (archive / "junk").mkdir()
    result = sonde("list")
    assert "junk" in result.err
    assert "quick" in result.out


def test_empty_archive_prints_advice(sonde: Any, archive: Path) -> None:
    result = sonde("list")
    assert result.code == 0
    assert "sonde check DIR" in result.out


def test_show_prints_run(sonde: Any, quick_result: Any, archive: Path) -> None:
    (folder,) = archive.glob("*/2*Z-*")
    for name in ("last", folder.name, folder.name[:20], str(folder)):
        result = sonde("show", name)
        assert result.code == 0
        for text in ("write", "read", "500 MB/s", "99 %", "1.20 µs", str(folder)):
            assert text in result.out
    document = sonde("show", "--json").json[0]
    assert document["phases"][0]["rates"]["total"]["bytes_per_s"] == pytest.approx(5e8)


def test_report_covers_one_run_or_several(
    sonde: Any, quick_result: Any, archive: Path, target: Path, tmp_path: Path
) -> None:
    result = sonde("report")
    (folder,) = archive.glob("*/2*Z-*")
    assert result.out.strip() == str(folder / "report.html")
    sonde("run", "quick", "--on", target)
    both = [path.name for path in archive.glob("*/2*Z-*")]
    page = tmp_path / "both.html"
    assert sonde("report", *both, "-o", page, "--title", "Two").code == 0
    assert page.read_text() == "Two 2"
