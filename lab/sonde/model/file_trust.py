# SPDX-License-Identifier: Apache-2.0
"""Refuses files that work like programs (watch files, sites files) where other users could have written them."""

from __future__ import annotations

import stat
from pathlib import Path

from sonde.model.confined_files import is_trusted
from sonde.model.errors import UserError
from sonde.model.escaping import escape_line


def require_own_file(path: Path, kind: str) -> None:
    """Raises UserError when the file belongs to a user other than the caller and root. An absent file is accepted."""
    _check_file(path, kind, may_others_write=True)


def require_unshared_file(path: Path, kind: str) -> None:
    """Like `require_own_file`, and raises UserError when other users may write the file."""
    _check_file(path, kind, may_others_write=False)


def _check_file(path: Path, kind: str, may_others_write: bool) -> None:
    try:
        status = path.stat()
    except OSError:
        return  # the reader reports it
    name = escape_line(str(path))
    if not is_trusted(status):
        raise UserError(
            f"The {kind} {name} belongs to user {status.st_uid}, and it makes Sonde run commands with your rights; read"
            " it, then use a copy of your own."
        )
    if not may_others_write and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UserError(
            f"The {kind} {name} can be written by other users, and it makes Sonde run commands with your rights; read"
            f" it, then: chmod go-w {name}."
        )
