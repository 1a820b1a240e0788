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

    def __init__(self, part_index: PartIndex) -> None:
        self._index = part_index
        self._known: dict[str, int | None] = {}
        self._parts_of: dict[str, list[PartItem]] | None = None

    def compute_capacity(self, part_id: str) -> int | None:
        """Returns the bytes of the part with that id."""
        if part_id not in self._known:
            self._known[part_id] = None  # the reader rejects a volume that contains itself
            self._known[part_id] = self._compute_capacity_of_part(self._index.get_part(part_id))
        return self._known[part_id]

    def compute_full_stripe_bytes(self, part_table: SystemPart) -> int | None:
        """Returns the bytes of one full data stripe: segment size times data drives."""
        if not isinstance(part_table, RaidGroup) or part_table.segment is None or part_table.data is None:
            return None
        return int(part_table.segment) * int(part_table.data)

    def _compute_capacity_of_part(self, part: PartItem) -> int | None:
        table = part.table
        if isinstance(table, Drive):
            return None if table.capacity is None else int(table.capacity)
        if isinstance(table, RaidGroup):
            return self._compute_raid_group(part, table)
        if isinstance(table, Lun):
            return int(table.size) if table.size is not None else self._compute_remaining_capacity(part, "raid_group")
        if isinstance(table, Slice):
            return self._compute_slice(part, table)
        if isinstance(table, Volume):
            return self._compute_volume(part, table)
        if isinstance(table, Target):
            return int(table.capacity) if table.capacity is not None else self._sum_capacities_of_member(part, "on")
        if isinstance(table, FileSystem):
            return self._compute_file_system(part, table)
        return None

    def _compute_raid_group(self, part: PartItem, table: RaidGroup) -> int | None:
        if table.usable is not None:
            return int(table.usable)
        sizes = [self.compute_capacity(drive) for drive in self._index.find_part_references(part, "drives")]
        if not sizes or None in sizes:
            return None
        smallest = min(size for size in sizes if size is not None)
        if table.data is not None and table.level != "declustered":
            return int(table.data) * smallest
        if table.data is not None and table.parity is not None:
            spare = 1 - float(table.spare_share or 0)
            return int(len(sizes) * smallest * spare * int(table.data) / (int(table.data) + int(table.parity)))
        return len(sizes) * smallest if table.level in ("0", "none") else None

    def _compute_slice(self, part: PartItem, table: Slice) -> int | None:
        if table.size is not None:
            return int(table.size)
        if table.share is not None:
            capacity = self.compute_capacity(self._index.find_part_references(part, "on")[0])
            return None if capacity is None else int(capacity * float(table.share))
        return self._compute_remaining_capacity(part, "on")

    def _list_pieces_of_container(self, container_id: str, part_kind: str) -> list[PartItem]:
        if self._parts_of is None:
            self._parts_of = {}
            for piece_kind, member in (("luns", "raid_group"), ("slices", "on")):
                for piece in self._index.list_parts(piece_kind):
                    for name in self._index.find_part_references(piece, member):
                        self._parts_of.setdefault(f"{piece_kind} {name}", []).append(piece)
        return self._parts_of.get(f"{part_kind} {container_id}", [])

    def _compute_remaining_capacity(self, part: PartItem, container_member: str) -> int | None:
        containers = self._index.find_part_references(part, container_member)
        size = self.compute_capacity(containers[0]) if containers else None
        if size is None:
            return None
        piece_sizes = [
            self.compute_capacity(piece.id)
            for piece in self._list_pieces_of_container(containers[0], part.kind)
            if piece.id != part.id
        ]
        return None if None in piece_sizes else size - sum(piece for piece in piece_sizes if piece is not None)

    def _sum_capacities_of_member(self, part: PartItem, member_name: str) -> int | None:
        sizes = [self.compute_capacity(part_id) for part_id in self._index.find_part_references(part, member_name)]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)

    def _compute_volume(self, part: PartItem, table: Volume) -> int | None:
        if table.usable is not None:
            return int(table.usable)
        sizes = [self.compute_capacity(member) for member in self._index.find_part_references(part, "members")]
        known_sizes = [size for size in sizes if size is not None]
        if not known_sizes or len(known_sizes) != len(sizes):
            return None
        if table.kind == "stripe":
            return min(known_sizes) * len(known_sizes)
        return min(known_sizes) if table.kind == "mirror" else sum(known_sizes)

    def _compute_file_system(self, part: PartItem, table: FileSystem) -> int | None:
        if table.capacity is not None:
            return int(table.capacity)
        if table.device:
            return self.compute_capacity(self._index.find_part_references(part, "device")[0])
        sizes = [
            self.compute_capacity(target.id)
            for target in self._index.list_parts("targets")
            if part.id in self._index.find_part_references(target, "file_system")
            and target.table.kind not in ("mdt", "mgt")  # type: ignore[attr-defined]
        ]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)
