# SPDX-License-Identifier: Apache-2.0
"""Temporary folders of simulations, and removal of those that a killed process left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

_FOLDER_PREFIX = "sonde-diagnose-"
# A younger folder may not be locked yet by the process that creates it.
_MIN_AGE_S = 1.0


@contextmanager
def create_scratch_folder() -> Iterator[Path]:
    """Yields an empty folder that is locked while this process lives and is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # a file system without locks
                flock(descriptor, LOCK_EX | LOCK_NB)
            yield Path(name)
        finally:
            os.close(descriptor)


def remove_abandoned_folders() -> int:
    """Removes this user's scratch folders that no process has locked. Returns their number."""
    removed = 0
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError):
            removed += _remove_if_abandoned(path)
    return removed


def _remove_if_abandoned(scratch_folder: Path) -> bool:
    descriptor = os.open(scratch_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _MIN_AGE_S:
            return False
        flock(descriptor, LOCK_EX | LOCK_NB)
        shutil.rmtree(scratch_folder)
    finally:
        os.close(descriptor)
    return True
