# SPDX-License-Identifier: Apache-2.0
"""What holds the bytes of a file system: drives, RAID groups, LUNs, slices, volumes, each with what it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sonde.design.layout.geometry import Geometry, geometry_of
from sonde.model.system import System
from sonde.model.system.storage import Drive, Lun, RaidGroup, Slice, Volume

_LEGACY = re.compile(r"(/dev/dsk/|/hw/disk/)?pm\d")


@dataclass(frozen=True)
class Store:
    """One part that holds bytes. Sizes are bytes; None is unknown."""

    id: str
    kind: str  # drives, raid_groups, luns, slices, volumes
    table: Drive | RaidGroup | Lun | Slice | Volume
    members: tuple[Store, ...]
    capacity: int | None
    start: int | None = None  # of a slice, on what it is cut from

    @property
    def unit(self) -> int | None:
        """Bytes on one member before the next: the segment of a RAID group, the unit of a striped volume."""
        if isinstance(self.table, RaidGroup):
            return None if self.table.segment is None else int(self.table.segment)
        if isinstance(self.table, Volume) and self.table.kind == "stripe":
            return self.stripe if self.table.stripe_unit is None else int(self.table.stripe_unit)
        return self.members[0].unit if self.members and not isinstance(self.table, Drive) else None

    @property
    def stripe(self) -> int | None:
        """Bytes of one full stripe of data of the RAID group beneath; of a volume, that of its members."""
        if isinstance(self.table, RaidGroup):
            geometry = self.geometry
            return None if geometry is None or self.unit is None else geometry.stripe(self.unit)
        return self.members[0].stripe if self.members else None

    @property
    def width(self) -> int | None:
        """Bytes that use every data drive once: a volume's unit times its members, else the full stripe."""
        if isinstance(self.table, Volume) and self.table.kind == "stripe":
            return None if self.unit is None else self.unit * len(self.members)
        return self.members[0].width if isinstance(self.table, Slice | Lun | Volume) and self.members else self.stripe

    @property
    def geometry(self) -> Geometry | None:
        """Of the RAID group itself, or beneath (the first of several)."""
        if isinstance(self.table, RaidGroup):
            return geometry_of(self.table)
        return self.members[0].geometry if self.members else None

    @property
    def label(self) -> str:
        """The name that an administrator knows: its device, else its id."""
        return getattr(self.table, "device", "") or self.id

    @property
    def legacy(self) -> bool:
        """Whether it is one of the Cray X1, whose LUNs are named pm1d1L10 and whose volume manager was XLV."""
        return any(
            getattr(one.table, "software", "") == "XLV" or _LEGACY.match(one.label) is not None for one in self.walk()
        )

    def walk(self) -> Iterator[Store]:
        """This and everything beneath, from above."""
        yield self
        for member in self.members:
            yield from member.walk()

    def groups(self) -> tuple[Store, ...]:
        """The RAID groups beneath, or where there are none the drives."""
        if self.kind in ("raid_groups", "drives"):
            return (self,)
        return tuple(one for member in self.members for one in member.groups())


_BENEATH = {"raid_groups": "drives", "luns": "raid_group", "slices": "on", "volumes": "members", "drives": ""}


def store_of(system: System, name: str) -> Store:
    """The part of that id with everything beneath. Raises SystemFileError."""
    item = system.item(name)
    member = _BENEATH[item.kind]
    beneath = system.references(name, member) if member else ()
    table = item.table
    assert isinstance(table, Drive | RaidGroup | Lun | Slice | Volume)
    start = starts_on(system, beneath[0]).get(name) if item.kind == "slices" else None
    return Store(
        name, item.kind, table, tuple(store_of(system, one) for one in beneath), system.capacity_of(name), start
    )


def starts_on(system: System, whole: str) -> dict[str, int]:
    """Where each slice of a disk begins, in bytes: as the file says, else behind the one before, aligned as it says.

    Slices whose size nobody knows end the list: what follows is unknown.
    """
    found: dict[str, int] = {}
    at = 0
    for item in system.items("slices"):
        table = item.table
        assert isinstance(table, Slice)
        if whole not in system.references(item.id, "on"):
            continue
        step = int(table.alignment) if table.alignment is not None else 1
        begin = int(table.start) if table.start is not None else -(-max(at, step if step > 1 else 0) // step) * step
        found[item.id] = begin
        size = system.capacity_of(item.id)
        if size is None:
            break
        at = begin + size
    return found


def used_stores(system: System) -> frozenset[str]:
    """Ids that something else is made of already, or that a file system or target lies on."""
    found: set[str] = set()
    for kind, members in (
        ("raid_groups", ("drives", "spares")), ("luns", ("raid_group",)), ("slices", ("on",)),
        ("volumes", ("members", "log")), ("targets", ("on", "journal")), ("file_systems", ("device", "log")),
    ):  # fmt: skip
        for item in system.items(kind):
            for member in members:
                found.update(system.references(item.id, member))
    return frozenset(found)
