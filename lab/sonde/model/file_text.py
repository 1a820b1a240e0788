# SPDX-License-Identifier: Apache-2.0
"""The text of a file that a user names: read whole, or one sentence why it cannot be."""

from __future__ import annotations

from pathlib import Path

from sonde.model.errors import UserError


def text_of(path: Path, what: str, largest: int, error: type[UserError], only_regular: bool = False) -> str:
    """The text of `path`, which is to be a `what` ("plan file") of at most `largest` bytes (whole MiB).

    Raises `error` when there is none, when it is a directory, larger, not UTF-8 or cannot be read; with `only_regular`
    also when it is a pipe or a device.
    """
    try:
        if path.is_dir():
            raise error(f"{path} is a directory, not a {what}.")
        if not path.exists():
            raise error(f"There is no {what} {path}.")
        if only_regular and not path.is_file():
            raise error(f"{path} is not a regular file, so it is no {what}.")
        if path.stat().st_size > largest:
            raise error(f"{path} is larger than {largest >> 20} MiB; that cannot be a {what}.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as reason:
        raise error(f"{path} is not a text file: byte {reason.start} is not UTF-8.") from None
    except OSError as reason:
        raise error(f"{path} cannot be read: {reason.strerror}.") from None
