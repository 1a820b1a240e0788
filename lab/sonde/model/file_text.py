# SPDX-License-Identifier: Apache-2.0
"""Reads a text file that the user named, or raises one sentence with the reason. No file is read without a limit."""

from __future__ import annotations

import errno
import io
from pathlib import Path

from sonde.model.errors import UserError

MAX_CONFIGURATION_BYTES = 1 << 20  # of a file that a person writes: sites, maps of columns
MAX_OUTPUT_BYTES = 64 << 20  # of saved output of a tool


def read_limited_text(
    text_file: Path, max_bytes: int, decode_errors: str = "strict", newline: str | None = None
) -> str:
    """The text of a file. Raises OSError, with EFBIG when there are more than `max_bytes` (a whole number of MiB), and
    UnicodeDecodeError unless `decode_errors` is "replace". `newline` is that of open(): "" leaves ends of lines."""
    with text_file.open("rb") as file:
        content = file.read(max_bytes + 1)  # a pipe or a device has no size to check before
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes >> 20} MiB", str(text_file))
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors=decode_errors, newline=newline).read()


def read_text_file(
    text_file: Path, file_kind: str, max_bytes: int, error_class: type[UserError], requires_regular_file: bool = False
) -> str:
    """Returns the text of `text_file`, a `file_kind` ("plan file") of at most `max_bytes` bytes (a whole number of
    MiB).

    Raises `error_class` when the file is missing, a directory, larger, not UTF-8 or unreadable; with
    `requires_regular_file` also when it is a pipe or a device."""
    try:
        if text_file.is_dir():
            raise error_class(f"{text_file} is a directory, not a {file_kind}.")
        if not text_file.exists():
            raise error_class(f"There is no {file_kind} {text_file}.")
        if requires_regular_file and not text_file.is_file():
            raise error_class(f"{text_file} is not a regular file, so it is no {file_kind}.")
        return read_limited_text(text_file, max_bytes)
    except UnicodeDecodeError as reason:
        raise error_class(f"{text_file} is not a text file: byte {reason.start} is not UTF-8.") from None
    except OSError as reason:
        if reason.errno == errno.EFBIG:
            raise error_class(
                f"{text_file} is larger than {max_bytes >> 20} MiB; that cannot be a {file_kind}."
            ) from None
        raise error_class(f"{text_file} cannot be read: {reason.strerror}.") from None
