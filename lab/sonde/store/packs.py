# SPDX-License-Identifier: Apache-2.0
"""Members of a pack of runs, a tar or a zip that anybody may have made: regular files only, and within limits."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from sonde.model.units import format_bytes

MAX_MEMBERS = 2_000_000
MAX_UNPACKED_BYTES = 256 << 30  # of all members together, decompressed
MAX_COMPRESSION_RATIO = 250  # decompressed to compressed size
MAX_TAR_HEADER_BYTES = 1 << 20  # of one member of a tar: its name and attributes, which are held in memory
MAX_ZIP_DIRECTORY_BYTES = 32 << 20  # of the list of members in a zip; each member takes 0.5 KB of memory
_MIN_BYTES_FOR_RATIO_CHECK = (
    256 << 20
)  # decompressed bytes from which the ratio counts: small files of zeros compress better
_DECOMPRESSORS_BY_MAGIC = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\x00", lzma.open), (b"BZh", bz2.open))
# What a damaged pack or one of another kind makes the readers raise.
UNREADABLE_PACK_ERRORS = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, ValueError, OSError, RuntimeError, NotImplementedError, OverflowError, IndexError, struct.error),
)


class PackLimitError(ValueError):
    """A pack holds more than a limit allows."""


@dataclass(frozen=True)
class PackMember:
    """A file of a pack; one with a `problem`, a part of a sentence, has no content."""

    name: str
    content: IO[bytes]
    problem: str = ""


class UnpackLimitCounter:
    """Counts what comes out of a pack. Methods raise PackLimitError."""

    def __init__(self, pack_file: Path) -> None:
        self._packed = max(1, pack_file.stat().st_size)
        self._members = 0
        self._bytes = 0
        self._bytes_of_headers = MAX_TAR_HEADER_BYTES  # until the next member is due

    def add_member(self, member_bytes: int) -> None:
        """A member begins whose content has `member_bytes` bytes."""
        self._members += 1
        self._bytes_of_headers = self._bytes + member_bytes + MAX_TAR_HEADER_BYTES
        if self._members > MAX_MEMBERS:
            raise PackLimitError(f"it has more than {MAX_MEMBERS:,} members")

    def add_bytes(self, byte_count: int) -> None:
        self._bytes += byte_count
        if self._bytes > self._bytes_of_headers:
            raise PackLimitError(
                f"the name or attributes of a member have more than {format_bytes(MAX_TAR_HEADER_BYTES)}"
            )
        if self._bytes > MAX_UNPACKED_BYTES:
            raise PackLimitError(f"it holds more than {format_bytes(MAX_UNPACKED_BYTES)}")
        if self._bytes > _MIN_BYTES_FOR_RATIO_CHECK and self._bytes > MAX_COMPRESSION_RATIO * self._packed:
            raise PackLimitError(f"it decompresses to more than {MAX_COMPRESSION_RATIO} times its size")


class _CountedFile(io.RawIOBase):
    """A stream that counts its bytes while they are read."""

    def __init__(self, unpacked_stream: Any, unpack_limit_counter: UnpackLimitCounter) -> None:
        self._source = unpacked_stream
        self._meter = unpack_limit_counter

    def readable(self) -> bool:
        return True

    def read(self, byte_count: int = -1) -> bytes:
        piece: bytes = self._source.read(byte_count)
        self._meter.add_bytes(len(piece))
        return piece


class _ZipReader(io.BufferedReader):
    """A zip as zipfile reads it, which takes the list of members in one call."""

    def read(self, byte_count: int | None = -1, /) -> bytes:
        if byte_count is not None and byte_count > MAX_ZIP_DIRECTORY_BYTES:
            raise PackLimitError(
                f"its list of members has more than {format_bytes(MAX_ZIP_DIRECTORY_BYTES)}; pack them as .tar.gz"
            )
        return super().read(byte_count)


def iterate_pack_members(pack_file: Path) -> Iterator[PackMember]:
    """The files of a pack in their order. Raises one of UNREADABLE."""
    return _iterate_zip_members(pack_file) if zipfile.is_zipfile(pack_file) else _iterate_tar_members(pack_file)


def _iterate_tar_members(pack_file: Path) -> Iterator[PackMember]:
    with pack_file.open("rb") as file:
        head = file.read(8)
        file.seek(0)
        # Decompressed here, not by tarfile: headers, which tarfile holds in memory, then count too.
        opener = next((opener for magic, opener in _DECOMPRESSORS_BY_MAGIC if head.startswith(magic)), None)
        meter = UnpackLimitCounter(pack_file)
        stream: Any = _CountedFile(opener(file) if opener else file, meter)
        with tarfile.open(fileobj=stream, mode="r|") as tape:
            for member in tape:
                meter.add_member(member.size)
                tape.members = []  # type: ignore[attr-defined]  # tarfile would hold all of them
                if member.isdir():
                    continue
                content = tape.extractfile(member) if member.isreg() and not member.issparse() else None
                if content is None:
                    yield PackMember(
                        member.name, io.BytesIO(), f"is {_describe_special_member(member)}, not a regular file"
                    )
                else:
                    yield PackMember(member.name, content, _explain_unsafe_name(member.name))


def _describe_special_member(tar_member: tarfile.TarInfo) -> str:
    if tar_member.issym() or tar_member.islnk():
        return "a link"
    return "a sparse file" if tar_member.isreg() else "a device"


def _iterate_zip_members(pack_file: Path) -> Iterator[PackMember]:
    meter = UnpackLimitCounter(pack_file)
    with _ZipReader(io.FileIO(pack_file)) as file, zipfile.ZipFile(file) as packed:
        for member in packed.infolist():
            meter.add_member(member.file_size)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.filename.endswith("/"):
                continue
            if kind not in (0, stat.S_IFREG):
                yield PackMember(member.filename, io.BytesIO(), "is a link or a device, not a regular file")
                continue
            with packed.open(member) as content:
                metered: Any = _CountedFile(content, meter)
                yield PackMember(member.filename, metered, _explain_unsafe_name(member.filename))


def _explain_unsafe_name(member_name: str) -> str:
    path = PurePosixPath(member_name)
    return "leads outside" if path.is_absolute() or ".." in path.parts or "\0" in member_name else ""
