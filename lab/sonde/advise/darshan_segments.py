# SPDX-License-Identifier: Apache-2.0
"""Single calls in the DXT modules of a Darshan log: the versions of their records, and their bytes.

The C library of the `darshan` wheel refuses DXT records that are newer than itself. This module therefore reads the
bytes of all records from the file and parses them in blocks, because one record may be larger than memory.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# The newest version that is read, and the first one whose calls have the number of their thread.
_READABLE_VERSIONS = {"DXT_POSIX": (2, 2), "DXT_MPIIO": (3, 3)}
_FIRST_VERSION_WITH_OFFSETS = {"DXT_POSIX": 1, "DXT_MPIIO": 2}
_DXT_HEADER_DTYPE = np.dtype(
    [("file", "u8"), ("rank", "i8"), ("shared", "i8"), ("host", "S64"), ("writes", "i8"), ("reads", "i8")]
)
_DXT_SEGMENT_FIELDS = [("offset", "i8"), ("length", "i8"), ("start", "f8"), ("end", "f8")]
_SEGMENTS_PER_BLOCK = 1 << 16
# No call transfers so many bytes; a time that is read as a length is more.
_MAX_CALL_BYTES = 1 << 56
_DARSHAN_MAGIC = 6567223
# Of the header of format 3.41, which all logs with newer records have: type of compression, region and version of a
# module by its index. 0 is zlib.
_COMPRESSION_PLACE, _REGIONS_PLACE, _VERSIONS_PLACE = 16, 48, 48 + 16 * 64
_COMPRESSED_BLOCK_BYTES = 1 << 16


class UnknownRecordFormError(ValueError):
    """Records that have another form than Darshan's own: of another size, as modified builds of Darshan write."""


def check_record_owner(module_name: str, file: int, rank: int, process_count: int) -> None:
    """Raises UnknownRecordFormError when a job of `process_count` processes has no such rank, and -1 (all ranks) is
    not meant either, or when the file is 0, which no path has: then the bytes before it were no record."""
    if not -1 <= rank < process_count:
        raise UnknownRecordFormError(f"a record of {module_name} names rank {rank} of {process_count} processes")
    if file == 0:
        raise UnknownRecordFormError(f"a record of {module_name} belongs to no file")


@dataclass(frozen=True)
class CallRecord:
    """Single calls of one rank on one file (DXT). The arrays have offset, length, start and end. A long record comes
    in several parts."""

    file: int
    rank: int
    host: str
    read: NDArray[Any]
    write: NDArray[Any]


def has_readable_calls(module_name: str, record_version: int) -> bool:
    """Whether the records of this version of a DXT module are known."""
    return 1 <= record_version <= _READABLE_VERSIONS[module_name][0]


def describe_unread_module(module_name: str, record_version: int) -> str:
    """A sentence on a module whose records are not known."""
    return (
        f"The log has single calls in version {record_version} of {module_name};"
        f" versions up to {_READABLE_VERSIONS[module_name][0]} are"
        " read, so they are left out."
    )


def find_log_byte_order(log_path: Path) -> Literal["<", ">"]:
    """Byte order of a log, as NumPy names it. Darshan writes in the order of the machine that it runs on."""
    with log_path.open("rb") as stream:
        magic = stream.read(16)[8:]
    return ">" if magic == _DARSHAN_MAGIC.to_bytes(8, "big") else "<"


def read_newer_module(log_path: Path, module_index: int) -> Iterator[bytes]:
    """Bytes of a module that the library refuses, in blocks. Raises ValueError when they cannot be decompressed.

    Each rank compressed its own part, so the region holds several streams.
    """
    with log_path.open("rb") as stream:
        header = stream.read(_VERSIONS_PLACE)
        if len(header) < _VERSIONS_PLACE or not header.startswith(b"3.4") or header[_COMPRESSION_PLACE]:
            raise ValueError("its single calls are compressed in an unknown way")
        order = find_log_byte_order(log_path)
        offset, length = struct.unpack_from(f"{order}2Q", header, _REGIONS_PLACE + 16 * module_index)
        stream.seek(offset)
        decompressor, unread_bytes = zlib.decompressobj(), length
        while unread_bytes > 0 and (content := stream.read(min(unread_bytes, _COMPRESSED_BLOCK_BYTES))):
            unread_bytes -= len(content)
            while content:
                try:
                    yield decompressor.decompress(content, _SEGMENTS_PER_BLOCK)
                except zlib.error as reason:
                    raise ValueError(f"its single calls cannot be decompressed: {reason}") from None
                content = decompressor.unconsumed_tail
                if decompressor.eof:
                    content, decompressor = decompressor.unused_data, zlib.decompressobj()


def make_byte_reader(byte_blocks: Iterator[bytes]) -> Callable[[int], bytes]:
    """Returns a function that reads the next N bytes of the blocks, fewer at the end."""
    buffer = bytearray()

    def read_bytes(byte_count: int) -> bytes:
        while len(buffer) < byte_count and (block := next(byte_blocks, None)) is not None:
            buffer.extend(block)
        content = bytes(buffer[:byte_count])
        del buffer[:byte_count]
        return content

    return read_bytes


def parse_call_records(
    read_bytes: Callable[[int], bytes],
    module_name: str,
    record_version: int,
    byte_order: Literal["<", ">"],
    process_count: int,
) -> Iterator[CallRecord]:
    """Parses the records of a module. `read_bytes(N)` returns the next N bytes, fewer at the end. An incomplete record
    at the end gives the calls that it has. Raises UnknownRecordFormError."""
    header_type = _DXT_HEADER_DTYPE.newbyteorder(byte_order)
    with_threads = record_version >= _READABLE_VERSIONS[module_name][1]
    segment_type = np.dtype(
        [*_DXT_SEGMENT_FIELDS, ("thread", "u8")] if with_threads else _DXT_SEGMENT_FIELDS
    ).newbyteorder(byte_order)
    while len(content := read_bytes(header_type.itemsize)) == header_type.itemsize:
        header = np.frombuffer(content, header_type)[0]
        file, rank, host = int(header["file"]), int(header["rank"]), header["host"].decode("utf-8", "replace")
        counts = int(header["writes"]), int(header["reads"])
        check_record_owner(module_name, file, rank, process_count)
        if min(counts) < 0:
            raise ValueError(f"a record of {module_name} counts {min(counts)} calls")
        for is_write, count in ((True, counts[0]), (False, counts[1])):
            none = np.empty(0, np.dtype(_DXT_SEGMENT_FIELDS))
            for calls in _read_dxt_segments(read_bytes, count, segment_type):
                if record_version < _FIRST_VERSION_WITH_OFFSETS[module_name]:
                    calls["offset"] = -1
                yield CallRecord(file, rank, host, none if is_write else calls, calls if is_write else none)


def _read_dxt_segments(
    read_bytes: Callable[[int], bytes], segment_count: int, segment_type: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    """Blocks of calls, without their threads and in the byte order of this machine."""
    while segment_count > 0:
        size = min(segment_count, _SEGMENTS_PER_BLOCK)
        content = read_bytes(size * segment_type.itemsize)
        complete = len(content) // segment_type.itemsize
        calls = np.empty(complete, np.dtype(_DXT_SEGMENT_FIELDS))
        raw = np.frombuffer(content, segment_type, count=complete)
        for name, _ in _DXT_SEGMENT_FIELDS:
            calls[name] = raw[name]
        if (calls["length"] > _MAX_CALL_BYTES).any():
            raise UnknownRecordFormError(f"a call transfers {calls['length'].max()} bytes")
        if complete:
            yield calls
        if complete < size:
            return
        segment_count -= size
