# SPDX-License-Identifier: Apache-2.0
"""What the tests of the lab share: the command in this process, an archive of its own, the fake engine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Records, browser and archives for tests are modules beside the folders of tests; pytest's import mode finds none.
sys.path.insert(0, str(Path(__file__).parent))

from make_record import write_run
from record_scene import Pages, Scene

from sonde.cli.main import main
from sonde.launch.engine import Engine, find_engine
from sonde.model.errors import UserError

FAKE_ENGINE_FILE = Path(__file__).with_name("fake_engine.py")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "engine: runs the real engine; skipped where it is not built")


@dataclass
class CommandOutput:
    """Output and exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def sentences(self) -> list[str]:
        """Lines on standard error that speak to the user."""
        return [line for line in self.err.splitlines() if line.startswith("sonde: ")]


Sonde = Callable[..., CommandOutput]


@pytest.fixture
def sonde(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sonde:
    """Runs the command in this process."""
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: str | Path) -> CommandOutput:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return CommandOutput(code, captured.out, captured.err)

    return run


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A directory to measure."""
    path = tmp_path / "target"
    path.mkdir()
    return path


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive of the test, named in the environment."""
    path = tmp_path / "archive"
    monkeypatch.setenv("SONDE_ARCHIVE", str(path))
    return path


@pytest.fixture
def fake_engine(monkeypatch: pytest.MonkeyPatch, archive: Path, tmp_path: Path) -> Callable[..., Path]:
    """Sets how the fake engine behaves; returns the log of its command lines."""
    monkeypatch.setenv("SONDE_ENGINE", str(FAKE_ENGINE_FILE))
    log = tmp_path / "engine.log"
    monkeypatch.setenv("FAKE_LOG", str(log))

    def set_fake_behavior(mode: str = "ok", **settings: object) -> Path:
        monkeypatch.setenv("FAKE_MODE", mode)
        for name, value in settings.items():
            monkeypatch.setenv(f"FAKE_{name.upper()}", str(value))
        return log

    set_fake_behavior()
    return set_fake_behavior


@pytest.fixture
def page(tmp_path: Path) -> Pages:
    """Makes the report of scenes (one or several) and returns its text; the file is report.html."""
    from sonde.report import write_report

    def make(*scenes: Scene, title: str | None = None, cut: int = 0) -> str:
        folders = [write_run(tmp_path / f"run-{index}", scene, cut) for index, scene in enumerate(scenes)]
        return write_report(folders, tmp_path / "report.html", title).read_text(encoding="utf-8")

    return make


@pytest.fixture
def engine(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The real engine."""
    try:
        return find_engine()
    except UserError as reason:
        pytest.skip(f"the engine is not built: {reason}")
