# SPDX-License-Identifier: Apache-2.0
"""A second user, a shared directory, and a file of root that must survive."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

NOBODY = 65534


@pytest.fixture(scope="module")
def second_user() -> Iterator[int]:
    """User id of a user created for these tests, or of nobody when users cannot be created."""
    name = f"sonde-test-{os.getpid()}"
    command = ["useradd", "--no-create-home", "--no-log-init", name]
    is_created = False
    with suppress(OSError):  # no such program
        is_created = subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield pwd.getpwnam(name).pw_uid if is_created else NOBODY
    if is_created:
        subprocess.run(["userdel", name], capture_output=True, check=False)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that other users can reach; those of pytest are closed to them."""
    with tempfile.TemporaryDirectory(prefix="sonde-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def scratch_folder(shared_folder: Path) -> Path:
    """A directory in which everybody may write, as /tmp and the scratch directories of clusters."""
    folder = shared_folder / "scratch"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def victim_file(shared_folder: Path) -> Path:
    """A file of root that must survive."""
    file = shared_folder / "victim" / "etc" / "shadow"
    file.parent.mkdir(parents=True)
    file.write_text("secret", encoding="utf-8")
    return file
