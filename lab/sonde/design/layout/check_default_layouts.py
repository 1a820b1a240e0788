# SPDX-License-Identifier: Apache-2.0
"""Checks layouts of Lustre of several components: where they begin and end, and what large files get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_objects import ALL_TARGETS
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import GIB, MIB
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.model.units import format_bytes

# More than small files need; the metadata server stores it.
_MOST_METADATA_BYTES = 8 * MIB
_LARGE_FILE = GIB
_END = "EOF"


@dataclass(frozen=True)
class _LayoutComponent:
    mirror: str
    begin: int
    end: int | None  # None is the end of the file
    count: str
    pattern: str
    is_stale: bool


def find_layout_faults(file_system: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of the components of a file, or of the default layout of a directory."""
    components = [component for text in file_system.facts.get("layout", "").split()
                  if (component := _parse_component(text)) is not None]  # fmt: skip
    if not components:
        return
    yield CheckedItem("the components of a layout", file_system.location)
    stale = sorted({component.mirror for component in components if component.is_stale})
    if stale:
        yield LayoutFault(
            "mirror out of date", file_system.location, f"mirror {', '.join(stale)} is stale",
            "its data is older than that of the other mirror, and does not replace it after a failure",
            f"lfs mirror resync {file_system.location}",
        )  # fmt: skip
    for mirror in dict.fromkeys(component.mirror for component in components):
        yield from _check_mirror(file_system, [each for each in components if each.mirror == mirror])


def _parse_component(text: str) -> _LayoutComponent | None:
    mirror, begin, end, count, pattern, flags = text.split(":")
    if not begin.isdigit() or not (end.isdigit() or end == _END):
        return None
    return _LayoutComponent(mirror, int(begin), int(end) if end != _END else None, count, pattern, "stale" in flags)


def _check_mirror(file_system: ObservedFileSystem, components: Sequence[_LayoutComponent]) -> Iterator[LayoutFault]:
    ordered = sorted(components, key=lambda component: component.begin)
    first, last = ordered[0], ordered[-1]
    for component, following in pairwise(ordered):
        if component.end is not None and component.end < following.begin:
            yield LayoutFault(
                "hole in a layout", file_system.location,
                f"no component holds what is between {format_bytes(component.end)} and {format_bytes(following.begin)}",
                "writes there fail (no data available)",
                "lfs setstripe it anew, each component from the end of the last",
            )  # fmt: skip
    if last.end is not None:
        yield LayoutFault(
            "layout ends", file_system.location,
            f"its last component ends at {format_bytes(last.end)}, not at the end of the file (EOF)",
            "writes behind it fail (no data available)", "lfs setstripe --component-add -E -1, or set the layout anew",
        )  # fmt: skip
    elif last.begin >= _LARGE_FILE and last.count == "1":
        yield LayoutFault(
            "large files on one target", file_system.location,
            f"its last component, from {format_bytes(last.begin)} to the end, has the stripe count 1",
            "large files have the bandwidth of one target, and fill it before the others",
            "lfs setstripe with a larger -c for the last component (-E -1 -c 8, or -c -1)",
        )  # fmt: skip
    if "mdt" in first.pattern and (first.end is None or first.end > _MOST_METADATA_BYTES):
        size = "the whole file" if first.end is None else f"the first {format_bytes(first.end)} of a file"
        yield LayoutFault(
            "large data on metadata target", file_system.location, f"{size} is on the metadata target (DoM)",
            "the metadata target gets data that object targets should have, and fills",
            "lfs setstripe -E 64K or 1M -L mdt for it, and migrate the files", ("dom",),
        )  # fmt: skip
    elif first.count == "-1" and first.end is not None:
        yield LayoutFault(
            "all files on all targets", file_system.location,
            f"its first component, up to {format_bytes(first.end)}, has the stripe count -1", *ALL_TARGETS,
            ("stripecount",),
        )  # fmt: skip
