# SPDX-License-Identifier: Apache-2.0
"""Fills a file system and leaves free space in small pieces only, as on a nearly full file system that has aged."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_KEEP_SIZE_AND_PUNCH_HOLE = 0x01 | 0x02  # FALLOC_FL_* of linux/falloc.h
_FIRST_STEP_BYTES, _BLOCK_BYTES = 64 << 20, 4096
_FILLER_NAME = "filler"


@contextmanager
def scatter_free_space(directory: Path, piece_bytes: int, free_percent: int) -> Iterator[None]:
    """Fills the file system of `directory` with a file, and frees pieces of `piece_bytes` in it."""
    path = directory / _FILLER_NAME
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        filled_bytes = _allocate_all_space(descriptor)
        distance = piece_bytes * 100 // free_percent // _BLOCK_BYTES * _BLOCK_BYTES
        for position in range(0, filled_bytes - piece_bytes, distance):
            _free_range(descriptor, position, piece_bytes)
        os.fsync(descriptor)
        yield
    finally:
        os.close(descriptor)
        path.unlink()


def _allocate_all_space(descriptor: int) -> int:
    """Returns the size of the file after all space of its file system was allocated to it."""
    filled_bytes, step = 0, _FIRST_STEP_BYTES
    while step >= _BLOCK_BYTES:
        try:
            os.posix_fallocate(descriptor, filled_bytes, step)
            filled_bytes += step
        except OSError:
            step //= 2
    return filled_bytes


def _free_range(descriptor: int, position: int, size: int) -> None:
    offset, length = ctypes.c_int64(position), ctypes.c_int64(size)
    if _LIBC.fallocate64(descriptor, _KEEP_SIZE_AND_PUNCH_HOLE, offset, length) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
