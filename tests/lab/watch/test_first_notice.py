# SPDX-License-Identifier: Apache-2.0
"""From the watch file of the documentation to the first notice and its end, by the commands of the page Watch."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import EXIT_FAILED, EXIT_OK

ROOT = Path(__file__).resolve().parents[3]
LEARNING_ROUNDS = 5
Sonde = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: the watch file of the page, with the storage and the log below it."""
    text = (ROOT / "docs" / "tasks" / "watch.toml").read_text(encoding="utf-8")
    text = text.replace("/scratch", f"{tmp_path}/scratch").replace("/var/log/messages", f"{tmp_path}/messages")
    (tmp_path / "watch.toml").write_text(text, encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "messages").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SONDE_ENGINE", str(ROOT / "tests" / "lab" / "fake_engine.py"))
    return tmp_path


def read_notices(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "notices.ndjson").read_text(encoding="utf-8").splitlines()]


def test_slow_storage_is_one_notice_and_its_repair_another(
    sonde: Sonde, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sonde("watch", "test", "watch.toml").code == EXIT_OK
    for _ in range(LEARNING_ROUNDS):
        assert sonde("watch", "once", "watch.toml", "--now").code == EXIT_OK
    with (folder / "messages").open("a", encoding="utf-8") as log:
        log.write("Nov 17 08:40:00 oss3 kernel: md/raid:md3: Disk failure on sdq1, disabling device.\n")
    monkeypatch.setenv("FAKE_RATE", "4e8")
    for _ in range(2):
        assert sonde("watch", "once", "watch.toml", "--now").code == EXIT_FAILED
    monkeypatch.setenv("FAKE_RATE", "1e9")
    assert sonde("watch", "once", "watch.toml", "--now").code == EXIT_OK
    notices = read_notices(folder)
    assert [notice["kind"] for notice in notices] == ["test", "log", "slower", "fixed"]
    assert "sdq1 failed in md3 of oss3" in notices[1]["text"]
    assert "60%" in notices[2]["text"]
    assert "usual" in sonde("watch", "status").out
    if shutil.which("promtool"):
        metrics = (folder / "sonde.prom").read_bytes()
        checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, check=False)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
        assert b"sonde_watch_limit_rate{" in metrics


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(sonde: Sonde, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    assert sonde("watch", "install", "watch.toml", "--to", "units").code == EXIT_OK
    units = [str(folder / "units" / name) for name in ("sonde-watch.service", "sonde-watch.timer")]
    checked = subprocess.run(
        ["systemd-analyze", "--user", "verify", *units], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
