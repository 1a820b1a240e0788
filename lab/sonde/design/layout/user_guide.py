# SPDX-License-Identifier: Apache-2.0
"""Tells the users of planned file systems the sizes and methods that suit them, and administrators what to watch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.model.system.service import SYSTEM_PURPOSES
from sonde.model.units import format_bytes, format_rate

# A single file of this fraction of a file system deserves a look.
_LARGE_FILE_FRACTION = 0.01
_GB = 10**9


def make_user_guide(layouts: Sequence[FileSystemLayout]) -> str:
    """Returns one paragraph for users for each file system for bandwidth; empty without one."""
    paragraphs = ["\n".join(_describe_use(layout)) for layout in layouts if layout.table.purpose not in SYSTEM_PURPOSES]
    return "\n\n".join(paragraphs) + "\n" if paragraphs else ""


def _describe_use(layout: FileSystemLayout) -> Iterator[str]:
    yield f"{layout.id} ({layout.table.purpose or 'data'})"
    if layout.width:
        yield (
            f"  Calls: multiples of {format_bytes(layout.width)} from offsets that are multiples of it fill every"
            f" member; {format_bytes(layout.unit)} is the smallest size that a member writes without reading first."
        )
    else:
        yield "  Calls: 1 MiB or more, from offsets that are multiples of 1 MiB."
    yield (
        "  Files larger than the free memory: direct I/O with several calls in flight, and space preallocated. Smaller"
        " ones: buffered I/O."
    )
    for direction, rate in (("read", layout.rates.read), ("write", layout.rates.write)):
        if rate is not None:
            limit = layout.rates.limits[direction]
            yield f"  All programs together {direction} at most {format_rate(rate)} (limit: {limit})."
    if layout.table.purpose == "dump":
        yield "  Dumps: 8 MB buffers. It may share the file system for checkpoints."
    if layout.capacity is not None:
        size = max(1, round(layout.capacity * _LARGE_FILE_FRACTION / _GB))
        yield f"  Administrators: large files are listed by find DIRECTORY -xdev -type f -size +{size}G"
