# SPDX-License-Identifier: Apache-2.0
"""Reads a text file that the user named, or raises one sentence with the reason. No file is read without a limit."""

from __future__ import annotations

import errno
import io
from pathlib import Path

from sonde.model.errors import UserError

MAX_CONFIGURATION_BYTES = 1 << 20  # of a file that a person writes: sites, maps of columns
MAX_OUTPUT_BYTES = 64 << 20  # of saved output of a tool


def read_limited_text(path: Path, max_bytes: int, errors: str = "strict") -> str:
    """The text of a file. Raises OSError, with EFBIG when there are more than `max_bytes` (a whole number of MiB), and
    UnicodeDecodeError unless `errors` is "replace"."""
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)  # a pipe or a device has no size to check before
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes >> 20} MiB", str(path))
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors=errors).read()


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
        return read_limited_text(path, max_bytes)
    except UnicodeDecodeError as reason:
        raise error(f"{path} is not a text file: byte {reason.start} is not UTF-8.") from None
    except OSError as reason:
        if reason.errno == errno.EFBIG:
            raise error(f"{path} is larger than {max_bytes >> 20} MiB; that cannot be a {kind}.") from None
        raise error(f"{path} cannot be read: {reason.strerror}.") from None
