# SPDX-License-Identifier: Apache-2.0
"""Reads a text file that the user named, or raises one sentence with the reason."""

from __future__ import annotations

from pathlib import Path

from sonde.model.errors import UserError


def read_text_file(path: Path, kind: str, max_bytes: int, error: type[UserError], regular_only: bool = False) -> str:
    """Returns the text of `path`, a `kind` ("plan file") of at most `max_bytes` bytes (a whole number of MiB).

    Raises `error` when the file is missing, a directory, larger, not UTF-8 or unreadable; with `regular_only` also
    when it is a pipe or a device.
    """
    try:
        if path.is_dir():
            raise error(f"{path} is a directory, not a {kind}.")
        if not path.exists():
            raise error(f"There is no {kind} {path}.")
        if regular_only and not path.is_file():
            raise error(f"{path} is not a regular file, so it is no {kind}.")
        if path.stat().st_size > max_bytes:
            raise error(f"{path} is larger than {max_bytes >> 20} MiB; that cannot be a {kind}.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as reason:
        raise error(f"{path} is not a text file: byte {reason.start} is not UTF-8.") from None
    except OSError as reason:
        raise error(f"{path} cannot be read: {reason.strerror}.") from None
