# SPDX-License-Identifier: Apache-2.0
"""Lists what a planner can use: LUNs, RAID groups and drives that nothing uses yet, by the class they suit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from sonde.design.layout.block_devices import BlockDevice, list_used_devices, resolve_block_device
from sonde.design.layout.geometry import KIB, Geometry, classify_suited_workload, parse_geometry
from sonde.model.system import System
from sonde.model.system.storage import Drive, Lun, RaidGroup
from sonde.model.tables.quantity import Quantity

# A hard disk of at least this size takes so long to rebuild that a second parity drive is worth its price.
_MIN_LARGE_DISK_BYTES = 2 * 10**12
SEGMENTS: Mapping[str, int] = {"transaction": 128 * KIB, "bandwidth": 256 * KIB, "capacity": 128 * KIB}
_MAX_DRIVES = 16  # drives in a group for capacity


@dataclass(frozen=True)
class Candidate:
    """A LUN or RAID group that can be used. `sharing_path` lists what it shares with others, from the widest:
    subsystem, controller, enclosure; members of a stripe alternate over these. `new` is true for a group or LUN that
    does not exist yet."""

    device: BlockDevice
    suitable_class: str
    sharing_path: tuple[str, ...]
    new: bool = False

    @property
    def id(self) -> str:
        return self.device.id

    @property
    def equality_key(self) -> tuple[object, ...]:
        """Only candidates with equal keys can share a stripe."""
        drive = next((device.table for device in self.device.iterate_top_down() if device.kind == "drives"), None)
        kind = drive.kind if isinstance(drive, Drive) else ""
        rate = str(drive.rate) if isinstance(drive, Drive) else ""
        return (str(self.device.raid_geometry), self.device.stripe_unit_bytes, self.device.capacity, kind, rate)


def list_free_candidates(system: System) -> list[Candidate]:
    """Unused LUNs and RAID groups of known size."""
    used = list_used_devices(system)
    candidates = []
    for kind in ("luns", "raid_groups"):
        for item in system.list_parts(kind):
            if item.id in used:
                continue
            device = resolve_block_device(system, item.id)
            if not device.capacity or device.raid_geometry is None:
                continue
            cut = kind == "raid_groups" and bool(system.find_first_reference(item.id, "controller"))
            device = _convert_group_to_lun(device) if cut else device
            candidates.append(Candidate(device, _list_purposes(device), _find_sharing_path(system, device), new=cut))
    return candidates


def _convert_group_to_lun(raid_group: BlockDevice) -> BlockDevice:
    """A group behind a controller appears as a LUN: one over the whole group, unless the file describes LUNs."""
    table = Lun(id=f"{raid_group.id}-lun", raid_group=(raid_group.id,))
    return BlockDevice(table.id, "luns", table, (raid_group,), raid_group.capacity)


def _list_purposes(device: BlockDevice) -> str:
    purpose = device.table.purpose if isinstance(device.table, Lun) else ""
    geometry = device.raid_geometry
    assert geometry is not None
    return purpose or classify_suited_workload(geometry, device.stripe_unit_bytes)


def _find_sharing_path(system: System, block_device: BlockDevice) -> tuple[str, ...]:
    """The outermost enclosure, the controller, and the enclosure of the first drive."""
    owner = ""
    for device in block_device.iterate_top_down():
        if device.kind in ("luns", "raid_groups") and device.id in system.index:
            owner = owner or system.find_first_reference(device.id, "controller") or ""
    drives = [device.id for device in block_device.iterate_top_down() if device.kind == "drives"]
    box = (
        (system.find_first_reference(drives[0], "enclosure") or system.find_first_reference(drives[0], "server") or "")
        if drives
        else ""
    )
    controller_box = (system.find_first_reference(owner, "enclosure") or "") if owner else ""
    return (find_outermost_enclosure(system, controller_box or box), owner, box)


def find_outermost_enclosure(system: System, box: str) -> str:
    """Follows `inside` up to the outermost enclosure."""
    while box and system.get_part(box).kind == "enclosures":
        outer = system.find_first_reference(box, "inside")
        if not outer:
            break
        box = outer
    return box


def list_free_drives(system: System) -> dict[str, list[BlockDevice]]:
    """Unused drives of known size, by their enclosure or server."""
    used = list_used_devices(system)
    drives: dict[str, list[BlockDevice]] = {}
    for item in system.list_parts("drives"):
        device = resolve_block_device(system, item.id)
        if item.id in used or not device.capacity or getattr(device.table, "kind", "") == "tape":
            continue
        holder = (
            system.find_first_reference(item.id, "enclosure") or system.find_first_reference(item.id, "server") or ""
        )
        drives.setdefault(holder, []).append(device)
    return drives


def group_equal_drives(boxes: Mapping[str, Sequence[BlockDevice]], good_for: str) -> list[dict[str, list[BlockDevice]]]:
    """Divides free drives into equal ones. The best for a class come first: the fastest, or for capacity the
    largest."""
    classes: dict[tuple[str, int, float], dict[str, list[BlockDevice]]] = {}
    for box, drives in boxes.items():
        for drive in drives:
            table = drive.table
            assert isinstance(table, Drive)
            rate = float(table.rate.write) if table.rate is not None and table.rate.write is not None else 0.0
            classes.setdefault((table.kind, drive.capacity or 0, rate), {}).setdefault(box, []).append(drive)
    first = 1 if good_for == "capacity" else 2
    return [classes[key] for key in sorted(classes, key=lambda key: -float(key[first]))]


def list_geometries(good_for: str, drive: Drive, drive_count: int) -> list[Geometry]:
    """Geometries of up to `drive_count` drives in one enclosure for a class, the usual choice first."""
    size = int(drive.capacity) if drive.capacity is not None else 0
    parity = 2 if drive.kind == "hdd" and size >= _MIN_LARGE_DISK_BYTES else 1
    if good_for == "transaction":
        names = ["1x2", "2x2", "4x2"]
    elif good_for == "bandwidth":
        names = [f"{data}+{parity}" for data in (8, 4, 2)] + ["2x2", "1x2"]
    else:
        widest = min(_MAX_DRIVES, drive_count) - parity
        names = [f"{widest}+{parity}"] if widest >= 2 else ["1x2"]
    return [geometry for geometry in map(parse_geometry, names) if geometry.drive_count <= drive_count]


def propose_raid_groups(
    system: System,
    drives_by_enclosure: Mapping[str, Sequence[BlockDevice]],
    good_for: str,
    geometry: Geometry,
    id_prefix: str,
) -> list[Candidate]:
    """RAID groups of equal drives that could be created, each within one enclosure."""
    candidates: list[Candidate] = []
    segment = SEGMENTS[good_for]
    for box, drives in drives_by_enclosure.items():
        for index in range(len(drives) // geometry.drive_count):
            members = tuple(drives[index * geometry.drive_count : (index + 1) * geometry.drive_count])
            if len({drive.capacity for drive in members}) > 1:
                continue
            table = RaidGroup(
                id=f"{id_prefix}-g{len(candidates) + 1}",
                level=geometry.raid_level,
                data=make_planned_count(geometry.data),
                parity=make_planned_count(
                    geometry.parity if geometry.copies == 1 else geometry.data * (geometry.copies - 1)
                ),
                segment=make_planned_size(segment),
                drives=tuple(drive.id for drive in members),
            )
            capacity = geometry.compute_usable_bytes(members[0].capacity or 0)
            device = BlockDevice(table.id, "raid_groups", table, members, capacity)
            candidates.append(Candidate(device, good_for, (find_outermost_enclosure(system, box), "", box), new=True))
    return candidates


def sort_candidates_by_least_sharing(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates in an order in which neighbors share as little as possible: subsystem, then controller, then
    enclosure."""
    return _interleave_candidates(list(candidates), 0)


def _interleave_candidates(candidates: list[Candidate], path_depth: int) -> list[Candidate]:
    if len(candidates) < 2 or path_depth >= max(len(candidate.sharing_path) for candidate in candidates):
        return candidates
    by_place: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_place.setdefault(
            candidate.sharing_path[path_depth] if path_depth < len(candidate.sharing_path) else "", []
        ).append(candidate)
    rows = [_interleave_candidates(ones, path_depth + 1) for ones in by_place.values()]
    return [candidate for candidate in chain.from_iterable(zip_longest(*rows)) if candidate is not None]


def make_planned_count(count: int) -> Quantity:
    """A count chosen by the planner."""
    return Quantity(count, str(count))


def make_planned_size(size_bytes: int) -> Quantity:
    """A size chosen by the planner, in bytes."""
    return Quantity(size_bytes, f"{size_bytes} B")
