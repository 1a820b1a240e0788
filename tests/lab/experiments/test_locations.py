# SPDX-License-Identifier: Apache-2.0
"""The directory that a user names must be there and be a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.experiments.locations import require_existing_directory
from sonde.model.errors import UserError


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_empty_name_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="name the directory to measure"):
        require_existing_directory(name)


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"There is no directory {tmp_path}/absent"):
        require_existing_directory(f"{tmp_path}/absent")


def test_block_device_is_refused_with_the_command_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "nvme0n1"
    device.touch()
    monkeypatch.setattr(Path, "is_block_device", lambda path: path == device)
    with pytest.raises(UserError, match=f"is a block device.*sonde run PLAN --on {device}"):
        require_existing_directory(str(device))
    assert require_existing_directory(str(tmp_path)) == tmp_path
