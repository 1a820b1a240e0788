# SPDX-License-Identifier: Apache-2.0
"""Scratch folders of simulations: those of killed processes are removed, those in use are not."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from sonde.diagnose.scratch_folders import create_scratch_folder, remove_abandoned_folders


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(path: Path) -> None:
    os.utime(path, (time.time() - 5, time.time() - 5))


def test_folder_in_use_stays(temporary: Path) -> None:
    with create_scratch_folder() as folder:
        age(folder)
        assert remove_abandoned_folders() == 0
        assert folder.is_dir()
    assert list(temporary.iterdir()) == []


def test_folder_of_a_killed_process_is_removed(temporary: Path) -> None:
    writer = os.fork()
    if writer == 0:
        with create_scratch_folder() as folder:
            (folder / "plan.json").write_text("{}", encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(writer, 0)
    (folder,) = temporary.iterdir()
    assert remove_abandoned_folders() == 0  # it is young, and may not be locked yet
    age(folder)
    assert remove_abandoned_folders() == 1
    assert list(temporary.iterdir()) == []


def test_link_with_the_name_of_a_folder_is_not_followed(temporary: Path) -> None:
    (temporary / "data").mkdir()
    (temporary / "sonde-diagnose-link").symlink_to(temporary / "data")
    age(temporary / "data")
    assert remove_abandoned_folders() == 0
    assert (temporary / "data").is_dir()
