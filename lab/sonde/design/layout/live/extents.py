# SPDX-License-Identifier: Apache-2.0
"""Where a file lies on its device: the FIEMAP ioctl (Documentation/filesystems/fiemap.rst), as xfs_bmap shows it."""

from __future__ import annotations

import array
import fcntl
import struct
from collections.abc import Iterator

from sonde.design.layout.live.seen import Extents
from sonde.model.errors import MachineError

_FIEMAP = 0xC020660B  # _IOWR('f', 11, struct fiemap)
_SYNC, _LAST, _UNKNOWN, _DELALLOC = 1, 1, 2, 4
_HEAD, _EXTENT = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")
_AT_ONCE = 512


def extents_of(path: str) -> Extents:
    """All pieces of a file. Raises MachineError where the file system does not tell."""
    try:
        with open(path, "rb") as file:
            return Extents(path, tuple(_pieces(file.fileno())), "FIEMAP")
    except OSError as reason:
        raise MachineError(f"{path}: its extents cannot be read: {reason.strerror}.") from None


def _pieces(handle: int) -> Iterator[tuple[int, int, int]]:
    begin = 0
    while True:
        buffer = array.array("B", _HEAD.pack(begin, 2**64 - 1 - begin, _SYNC, 0, _AT_ONCE, 0))
        buffer.extend(bytes(_EXTENT.size * _AT_ONCE))
        fcntl.ioctl(handle, _FIEMAP, buffer)
        count = _HEAD.unpack_from(buffer)[3]
        for at in range(count):
            logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(buffer, _HEAD.size + at * _EXTENT.size)
            if not flags & (_UNKNOWN | _DELALLOC):
                yield logical, physical, length
            begin = logical + length
            if flags & _LAST:
                return
        if count < _AT_ONCE:
            return
