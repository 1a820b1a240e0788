# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity of RAID groups, LUNs, slices, volumes, targets and file systems."""

from __future__ import annotations

from sonde.model.system.index import PartIndex, PartItem
from sonde.model.system.network import SystemPart
from sonde.model.system.service import FileSystem, Target
from sonde.model.system.storage import Drive, Lun, RaidGroup, Slice, Volume

_MIRROR_LEVELS = ("1", "10")


def is_mirrored(group: RaidGroup) -> bool:
    """Returns whether `parity` counts mirror copies."""
    return group.level in _MIRROR_LEVELS


class CapacityCalculator:
    """Computes and caches the bytes that a part offers; None where the file does not give enough."""

    def __init__(self, index: PartIndex) -> None:
        self._index = index
        self._known: dict[str, int | None] = {}
        self._parts_of: dict[str, list[PartItem]] | None = None

    def compute(self, name: str) -> int | None:
        """Returns the bytes of the part with that id."""
        if name not in self._known:
            self._known[name] = None  # the reader rejects a volume that contains itself
            self._known[name] = self._compute_part(self._index.item(name))
        return self._known[name]

    def compute_full_stripe(self, table: SystemPart) -> int | None:
        """Returns the bytes of one full data stripe: segment size times data drives."""
        if not isinstance(table, RaidGroup) or table.segment is None or table.data is None:
            return None
        return int(table.segment) * int(table.data)

    def _compute_part(self, item: PartItem) -> int | None:
        table = item.table
        if isinstance(table, Drive):
            return None if table.capacity is None else int(table.capacity)
        if isinstance(table, RaidGroup):
            return self._compute_group(item, table)
        if isinstance(table, Lun):
            return int(table.size) if table.size is not None else self._compute_remainder(item, "raid_group")
        if isinstance(table, Slice):
            return self._compute_slice(item, table)
        if isinstance(table, Volume):
            return self._compute_volume(item, table)
        if isinstance(table, Target):
            return int(table.capacity) if table.capacity is not None else self._compute_sum(item, "on")
        if isinstance(table, FileSystem):
            return self._compute_file_system(item, table)
        return None

    def _compute_group(self, item: PartItem, table: RaidGroup) -> int | None:
        if table.usable is not None:
            return int(table.usable)
        sizes = [self.compute(drive) for drive in self._index.find_part_references(item, "drives")]
        if not sizes or None in sizes:
            return None
        smallest = min(size for size in sizes if size is not None)
        if table.data is not None and table.level != "declustered":
            return int(table.data) * smallest
        if table.data is not None and table.parity is not None:
            spare = 1 - float(table.spare_share or 0)
            return int(len(sizes) * smallest * spare * int(table.data) / (int(table.data) + int(table.parity)))
        return len(sizes) * smallest if table.level in ("0", "none") else None

    def _compute_slice(self, item: PartItem, table: Slice) -> int | None:
        if table.size is not None:
            return int(table.size)
        if table.share is not None:
            capacity = self.compute(self._index.find_part_references(item, "on")[0])
            return None if capacity is None else int(capacity * float(table.share))
        return self._compute_remainder(item, "on")

    def _cut_from(self, container: str, kind: str) -> list[PartItem]:
        if self._parts_of is None:
            self._parts_of = {}
            for piece_kind, member in (("luns", "raid_group"), ("slices", "on")):
                for piece in self._index.items(piece_kind):
                    for name in self._index.find_part_references(piece, member):
                        self._parts_of.setdefault(f"{piece_kind} {name}", []).append(piece)
        return self._parts_of.get(f"{kind} {container}", [])

    def _compute_remainder(self, item: PartItem, member: str) -> int | None:
        containers = self._index.find_part_references(item, member)
        size = self.compute(containers[0]) if containers else None
        if size is None:
            return None
        piece_sizes = [
            self.compute(piece.id) for piece in self._cut_from(containers[0], item.kind) if piece.id != item.id
        ]
        return None if None in piece_sizes else size - sum(piece for piece in piece_sizes if piece is not None)

    def _compute_sum(self, item: PartItem, member: str) -> int | None:
        sizes = [self.compute(part_id) for part_id in self._index.find_part_references(item, member)]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)

    def _compute_volume(self, item: PartItem, table: Volume) -> int | None:
        if table.usable is not None:
            return int(table.usable)
        sizes = [self.compute(member) for member in self._index.find_part_references(item, "members")]
        known_sizes = [size for size in sizes if size is not None]
        if not known_sizes or len(known_sizes) != len(sizes):
            return None
        if table.kind == "stripe":
            return min(known_sizes) * len(known_sizes)
        return min(known_sizes) if table.kind == "mirror" else sum(known_sizes)

    def _compute_file_system(self, item: PartItem, table: FileSystem) -> int | None:
        if table.capacity is not None:
            return int(table.capacity)
        if table.device:
            return self.compute(self._index.find_part_references(item, "device")[0])
        sizes = [
            self.compute(target.id)
            for target in self._index.items("targets")
            if item.id in self._index.find_part_references(target, "file_system")
            and target.table.kind not in ("mdt", "mgt")  # type: ignore[attr-defined]
        ]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)
