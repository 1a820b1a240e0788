# SPDX-License-Identifier: Apache-2.0
"""What follows from sizes that the file says: bytes of RAID groups, LUNs, slices, volumes and targets."""

from __future__ import annotations

from sonde.model.system.index import Index, Item
from sonde.model.system.network import Part
from sonde.model.system.service import FileSystem, Target
from sonde.model.system.storage import Drive, Lun, RaidGroup, Slice, Volume

_MIRRORS = ("1", "10")


def mirrored(group: RaidGroup) -> bool:
    """True when parity counts copies."""
    return group.level in _MIRRORS


class Capacities:
    """Bytes that a part offers; None where the file does not say enough. Every answer is kept."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: dict[str, int | None] = {}
        self._parts_of: dict[str, list[Item]] | None = None

    def of(self, name: str) -> int | None:
        """Bytes of the part of that id."""
        if name not in self._known:
            self._known[name] = None  # a volume inside itself is refused when the file is read
            self._known[name] = self._compute(self._index.item(name))
        return self._known[name]

    def stripe_of(self, table: Part) -> int | None:
        """Bytes of one full stripe of data: segment times data drives."""
        if not isinstance(table, RaidGroup) or table.segment is None or table.data is None:
            return None
        return int(table.segment) * int(table.data)

    def _compute(self, item: Item) -> int | None:
        table = item.table
        if isinstance(table, Drive):
            return None if table.capacity is None else int(table.capacity)
        if isinstance(table, RaidGroup):
            return self._group(item, table)
        if isinstance(table, Lun):
            return int(table.size) if table.size is not None else self._remainder(item, "raid_group")
        if isinstance(table, Slice):
            return self._slice(item, table)
        if isinstance(table, Volume):
            return self._volume(item, table)
        if isinstance(table, Target):
            return int(table.capacity) if table.capacity is not None else self._sum(item, "on")
        if isinstance(table, FileSystem):
            return self._file_system(item, table)
        return None

    def _group(self, item: Item, table: RaidGroup) -> int | None:
        if table.usable is not None:
            return int(table.usable)
        sizes = [self.of(drive) for drive in self._index.share(item, "drives")]
        if not sizes or None in sizes:
            return None
        smallest = min(size for size in sizes if size is not None)
        if table.data is not None and table.level != "declustered":
            return int(table.data) * smallest
        if table.data is not None and table.parity is not None:
            spare = 1 - float(table.spare_share or 0)
            return int(len(sizes) * smallest * spare * int(table.data) / (int(table.data) + int(table.parity)))
        return len(sizes) * smallest if table.level in ("0", "none") else None

    def _slice(self, item: Item, table: Slice) -> int | None:
        if table.size is not None:
            return int(table.size)
        if table.share is not None:
            whole = self.of(self._index.share(item, "on")[0])
            return None if whole is None else int(whole * float(table.share))
        return self._remainder(item, "on")

    def _cut_from(self, whole: str, kind: str) -> list[Item]:
        if self._parts_of is None:
            self._parts_of = {}
            for found, member in (("luns", "raid_group"), ("slices", "on")):
                for one in self._index.items(found):
                    for name in self._index.share(one, member):
                        self._parts_of.setdefault(f"{found} {name}", []).append(one)
        return self._parts_of.get(f"{kind} {whole}", [])

    def _remainder(self, item: Item, member: str) -> int | None:
        wholes = self._index.share(item, member)
        size = self.of(wholes[0]) if wholes else None
        if size is None:
            return None
        taken = [self.of(one.id) for one in self._cut_from(wholes[0], item.kind) if one.id != item.id]
        return None if None in taken else size - sum(one for one in taken if one is not None)

    def _sum(self, item: Item, member: str) -> int | None:
        sizes = [self.of(one) for one in self._index.share(item, member)]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)

    def _volume(self, item: Item, table: Volume) -> int | None:
        if table.usable is not None:
            return int(table.usable)
        sizes = [self.of(one) for one in self._index.share(item, "members")]
        known = [size for size in sizes if size is not None]
        if not known or len(known) != len(sizes):
            return None
        if table.kind == "stripe":
            return min(known) * len(known)
        return min(known) if table.kind == "mirror" else sum(known)

    def _file_system(self, item: Item, table: FileSystem) -> int | None:
        if table.capacity is not None:
            return int(table.capacity)
        if table.device:
            return self.of(self._index.share(item, "device")[0])
        sizes = [
            self.of(one.id)
            for one in self._index.items("targets")
            if item.id in self._index.share(one, "file_system") and one.table.kind not in ("mdt", "mgt")  # type: ignore[attr-defined]
        ]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)
