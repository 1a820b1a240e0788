# SPDX-License-Identifier: Apache-2.0
"""Refuses files that work like programs (watch files, sites files) where other users could have written them."""

from __future__ import annotations

import stat
from pathlib import Path

from sonde.model.confined_files import is_owned_by_user_or_root
from sonde.model.errors import UserError
from sonde.model.escaping import escape_line


def require_file_owned_by_user_or_root(file_path: Path, file_kind: str) -> None:
    """Raises UserError when the file belongs to a user other than the caller and root. An absent file is accepted."""
    _check_file_owner(file_path, file_kind, may_others_write=True)


def require_file_not_writable_by_others(file_path: Path, file_kind: str) -> None:
    """Like `require_file_owned_by_user_or_root`, and raises UserError when other users may write the file."""
    _check_file_owner(file_path, file_kind, may_others_write=False)


def _check_file_owner(file_path: Path, file_kind: str, may_others_write: bool) -> None:
    try:
        status = file_path.stat()
    except OSError:
        return  # the reader reports it
    name = escape_line(str(file_path))
    if not is_owned_by_user_or_root(status):
        raise UserError(
            f"The {file_kind} {name} belongs to user {status.st_uid}, and it makes Sonde run commands with your "
            "rights; read"
            " it, then use a copy of your own."
        )
    if not may_others_write and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UserError(
            f"The {file_kind} {name} can be written by other users, and it makes Sonde run commands with your "
            "rights; read"
            f" it, then: chmod go-w {name}."
        )
