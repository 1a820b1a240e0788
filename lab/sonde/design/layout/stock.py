# SPDX-License-Identifier: Apache-2.0
"""What a planner can use: LUNs, RAID groups and drives that nothing lies on yet, by what they are good for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from sonde.design.layout.geometry import KIB, Geometry, class_of, parse_geometry
from sonde.design.layout.stores import Store, store_of, used_stores
from sonde.model.system import System
from sonde.model.system.storage import Drive, Lun, RaidGroup
from sonde.model.tables.quantity import Quantity

# From this size on a drive with platters takes so long to rebuild that a second parity drive is worth its price.
_LARGE_DISK = 2 * 10**12
SEGMENTS: Mapping[str, int] = {"transaction": 128 * KIB, "bandwidth": 256 * KIB, "capacity": 128 * KIB}
_WIDEST = 16  # drives in a group for capacity


@dataclass(frozen=True)
class Candidate:
    """A LUN or RAID group that may be used. `places` names what it shares with others, from the widest on: subsystem,
    controller; members of a stripe alternate over them. `new` is a group or LUN that is to be made."""

    store: Store
    good_for: str
    places: tuple[str, ...]
    new: bool = False

    @property
    def id(self) -> str:
        return self.store.id

    @property
    def alike(self) -> tuple[object, ...]:
        """Only candidates that are equal in this may share a stripe."""
        drive = next((one.table for one in self.store.walk() if one.kind == "drives"), None)
        kind = drive.kind if isinstance(drive, Drive) else ""
        rate = str(drive.rate) if isinstance(drive, Drive) else ""
        return (str(self.store.geometry), self.store.unit, self.store.capacity, kind, rate)


def free_stores(system: System) -> list[Candidate]:
    """LUNs and RAID groups that are described and not used, of known size."""
    used = used_stores(system)
    found = []
    for kind in ("luns", "raid_groups"):
        for item in system.items(kind):
            if item.id in used:
                continue
            store = store_of(system, item.id)
            if not store.capacity or store.geometry is None:
                continue
            cut = kind == "raid_groups" and bool(system.reference(item.id, "controller"))
            store = _as_lun(store) if cut else store
            found.append(Candidate(store, _good_for(store), _places(system, store), new=cut))
    return found


def _as_lun(group: Store) -> Store:
    """A group behind a controller is seen as a LUN: one over all of it, where none is described."""
    table = Lun(id=f"{group.id}-lun", raid_group=(group.id,))
    return Store(table.id, "luns", table, (group,), group.capacity)


def _good_for(store: Store) -> str:
    told = store.table.purpose if isinstance(store.table, Lun) else ""
    geometry = store.geometry
    assert geometry is not None
    return told or class_of(geometry, store.unit)


def _places(system: System, store: Store) -> tuple[str, ...]:
    """The outermost box, the controller, the box of the first drive."""
    owner = ""
    for one in store.walk():
        if one.kind in ("luns", "raid_groups") and one.id in system.index:
            owner = owner or system.reference(one.id, "controller") or ""
    drives = [one.id for one in store.walk() if one.kind == "drives"]
    box = (system.reference(drives[0], "enclosure") or system.reference(drives[0], "server") or "") if drives else ""
    controller_box = (system.reference(owner, "enclosure") or "") if owner else ""
    return (outermost(system, controller_box or box), owner, box)


def outermost(system: System, box: str) -> str:
    """The box that holds the box that holds it."""
    while box and system.item(box).kind == "enclosures":
        outer = system.reference(box, "inside")
        if not outer:
            break
        box = outer
    return box


def free_drives(system: System) -> dict[str, list[Store]]:
    """Drives that nothing lies on, by the box or server that holds them; of known size."""
    used = used_stores(system)
    found: dict[str, list[Store]] = {}
    for item in system.items("drives"):
        store = store_of(system, item.id)
        if item.id in used or not store.capacity or getattr(store.table, "kind", "") == "tape":
            continue
        holder = system.reference(item.id, "enclosure") or system.reference(item.id, "server") or ""
        found.setdefault(holder, []).append(store)
    return found


def drives_alike(boxes: Mapping[str, Sequence[Store]], good_for: str) -> list[dict[str, list[Store]]]:
    """Free drives divided by what they are, those first that suit a class: the fastest, or for capacity the largest."""
    found: dict[tuple[str, int, float], dict[str, list[Store]]] = {}
    for box, drives in boxes.items():
        for one in drives:
            table = one.table
            assert isinstance(table, Drive)
            rate = float(table.rate.write) if table.rate is not None and table.rate.write is not None else 0.0
            found.setdefault((table.kind, one.capacity or 0, rate), {}).setdefault(box, []).append(one)
    first = 1 if good_for == "capacity" else 2
    return [found[key] for key in sorted(found, key=lambda key: -float(key[first]))]


def geometries_for(good_for: str, drive: Drive, drives: int) -> list[Geometry]:
    """What may be made of up to `drives` drives in one box for a class, the usual choice first."""
    size = int(drive.capacity) if drive.capacity is not None else 0
    parity = 2 if drive.kind == "hdd" and size >= _LARGE_DISK else 1
    if good_for == "transaction":
        wanted = ["1x2", "2x2", "4x2"]
    elif good_for == "bandwidth":
        wanted = [f"{data}+{parity}" for data in (8, 4, 2)] + ["2x2", "1x2"]
    else:
        widest = min(_WIDEST, drives) - parity
        wanted = [f"{widest}+{parity}"] if widest >= 2 else ["1x2"]
    return [one for one in map(parse_geometry, wanted) if one.drives <= drives]


def formed(system: System, boxes: Mapping[str, Sequence[Store]], good_for: str, geometry: Geometry,
           prefix: str) -> list[Candidate]:  # fmt: skip
    """Groups of drives alike, each within one box, that could be made."""
    found: list[Candidate] = []
    segment = SEGMENTS[good_for]
    for box, drives in boxes.items():
        for at in range(len(drives) // geometry.drives):
            own = tuple(drives[at * geometry.drives : (at + 1) * geometry.drives])
            if len({one.capacity for one in own}) > 1:
                continue
            table = RaidGroup(
                id=f"{prefix}-g{len(found) + 1}",
                level=geometry.level,
                data=count(geometry.data),
                parity=count(geometry.parity if geometry.copies == 1 else geometry.data * (geometry.copies - 1)),
                segment=size(segment),
                drives=tuple(one.id for one in own),
            )
            capacity = geometry.usable(own[0].capacity or 0)
            store = Store(table.id, "raid_groups", table, own, capacity)
            found.append(Candidate(store, good_for, (outermost(system, box), "", box), new=True))
    return found


def alternating(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The same in an order in which neighbours share as little as possible: subsystem, then controller, then box."""
    return _alternating(list(candidates), 0)


def _alternating(candidates: list[Candidate], depth: int) -> list[Candidate]:
    if len(candidates) < 2 or depth >= max(len(one.places) for one in candidates):
        return candidates
    by_place: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_place.setdefault(one.places[depth] if depth < len(one.places) else "", []).append(one)
    rows = [_alternating(ones, depth + 1) for ones in by_place.values()]
    return [one for one in chain.from_iterable(zip_longest(*rows)) if one is not None]


def count(value: int) -> Quantity:
    """A count that the planner chose."""
    return Quantity(value, str(value))


def size(value: int) -> Quantity:
    """A size that the planner chose, in bytes."""
    return Quantity(value, f"{value} B")
