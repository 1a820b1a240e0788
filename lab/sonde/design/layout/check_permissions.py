# SPDX-License-Identifier: Apache-2.0
"""Checks the permission bits that a batch system requires of a directory for checkpoints.

PBS requires 0700 of the checkpoint directory and 0755 of its parents: Cray X1 System Performance, Cray User Group 2004.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault

_OWN, _PARENT = 0o700, 0o755


def find_permission_faults(directory: Path) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of a checkpoint directory and of its parents; nothing for a path that cannot be looked at."""
    resolved = directory.resolve()
    for path in (resolved, *resolved.parents):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError:
            continue
        required = _OWN if path == resolved else _PARENT
        yield CheckedItem("the permissions for checkpoints", str(path))
        if path == resolved and mode & 0o777 != _OWN:
            yield LayoutFault(
                "checkpoint directory open to others", str(path),
                f"its mode is {mode:04o}; PBS requires {required:04o}",
                "the batch system refuses to write checkpoints there", f"chmod {required:04o} {path}",
            )  # fmt: skip
        elif path != resolved and (mode & _PARENT != _PARENT or (mode & 0o022 and not mode & stat.S_ISVTX)):
            yield LayoutFault(
                "parent of checkpoints", str(path), f"its mode is {mode:04o}; PBS requires {required:04o}",
                "the batch system refuses a directory that others can replace or cannot pass",
                f"chmod {required:04o} {path}",
            )  # fmt: skip
