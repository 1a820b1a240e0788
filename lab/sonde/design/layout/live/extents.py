# SPDX-License-Identifier: Apache-2.0
"""Reads the extents of a file on its device with the FIEMAP ioctl (Documentation/filesystems/fiemap.rst)."""

from __future__ import annotations

import array
import fcntl
import struct
from collections.abc import Iterator

from sonde.design.layout.live.observations import FileExtents
from sonde.model.errors import MachineError

_FIEMAP = 0xC020660B  # _IOWR('f', 11, struct fiemap)
_SYNC, _LAST, _UNKNOWN, _DELALLOC = 1, 1, 2, 4
_HEAD, _EXTENT = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")
_AT_ONCE = 512


def read_file_extents(file_path: str) -> FileExtents:
    """All extents of a file. Raises MachineError when the file system does not report them."""
    try:
        with open(file_path, "rb") as file:
            return FileExtents(file_path, tuple(_iterate_raw_extents(file.fileno())), "FIEMAP")
    except OSError as reason:
        raise MachineError(f"{file_path}: its extents cannot be read: {reason.strerror}.") from None


def _iterate_raw_extents(file_descriptor: int) -> Iterator[tuple[int, int, int]]:
    begin = 0
    while True:
        buffer = array.array("B", _HEAD.pack(begin, 2**64 - 1 - begin, _SYNC, 0, _AT_ONCE, 0))
        buffer.extend(bytes(_EXTENT.size * _AT_ONCE))
        fcntl.ioctl(file_descriptor, _FIEMAP, buffer)
        count = _HEAD.unpack_from(buffer)[3]
        for index in range(count):
            logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(buffer, _HEAD.size + index * _EXTENT.size)
            if not flags & (_UNKNOWN | _DELALLOC):
                yield logical, physical, length
            begin = logical + length
            if flags & _LAST:
                return
        if count < _AT_ONCE:
            return
