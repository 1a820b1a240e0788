# SPDX-License-Identifier: Apache-2.0
"""A layout plan: the system with everything that wishes ask for in it, and the numbers of every file system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sonde.design.layout.cuts import Piece, cut
from sonde.design.layout.geometry import MIB, Geometry, modulo
from sonde.design.layout.laid import Laid, every_laid, laid
from sonde.design.layout.planner import WITH_TARGETS, Placed, Placement, place, wishes
from sonde.design.layout.stock import Candidate
from sonde.design.layout.stores import Store
from sonde.model.errors import UserError
from sonde.model.system import System, system_from_document
from sonde.model.system.description import KINDS
from sonde.model.system.index import Item
from sonde.model.system.storage import Lun, RaidGroup, Volume
from sonde.model.system.writing import document_of
from sonde.model.units import parse_bytes

# A drive is never filled to its last byte by md; what its metadata and a bitmap take at most.
MD_RESERVE = 128 * MIB
EXTENT = 4 * MIB  # of LVM, unless the stripe unit is larger
_RESERVE = {"LVM": MIB, "md": MD_RESERVE}


@dataclass(frozen=True)
class LayoutPlan:
    """`system` is laid out: it has the parts of `made` in it. `short` names wishes that cannot be met, `notes` what a
    reader must know."""

    system: System
    file_systems: tuple[Laid, ...]
    made: frozenset[str]
    short: tuple[str, ...]
    notes: tuple[str, ...]

    def of(self, name: str) -> Laid:
        """The file system of that id."""
        return next(one for one in self.file_systems if one.id == name)


def plan_layout(
    system: System, geometry: Geometry | None = None, members: int | None = None, software: str = "LVM",
    without: Sequence[str] = (),
) -> LayoutPlan:  # fmt: skip
    """The layout of a system: of what its file describes, and of what its wishes ask for. Raises UserError."""
    asked = wishes(system)
    for name in without:
        system.item(name)
    placement = place(system, asked, geometry, members)
    if not asked and not any(True for _ in every_laid(system)):
        raise UserError(
            f"{system.id} has no file system to lay out: none is on a device or target, and none says purpose and "
            "wanted (schema/system)."
        )
    if not asked:
        return LayoutPlan(system, tuple(every_laid(system, tuple(without))), frozenset(), (), ())
    document = document_of(system)
    writer = _Writer(document, placement, software)
    for placed in placement.placed:
        writer.add(placed)
    writer.cut_shared()
    grown = system_from_document(document, f"plan of {system.id}")
    for name in (wish.id for wish in asked):
        found = laid(grown, name)
        assert found is not None
        _numbers(_entry(document, "file_systems", name), found)
    grown = replace_id(system_from_document(document, f"plan of {system.id}"), system)
    return LayoutPlan(
        grown, tuple(every_laid(grown, tuple(without))), frozenset(writer.made), tuple(placement.short),
        tuple(dict.fromkeys(placement.notes)),
    )  # fmt: skip


def replace_id(grown: System, system: System) -> System:
    """The grown system under the names of the one that it was made from."""
    return replace(grown, files=system.files)


def _entry(document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in document[kind] if one["id"] == name)
    return found


def _numbers(entry: dict[str, Any], found: Laid) -> None:
    """What was worked out stands in the file, so that a check can hold a live file system against it."""
    if found.unit:
        entry["stripe_unit"], entry["stripe_width"] = f"{found.unit} B", f"{found.width} B"
    if found.groups is not None:
        entry["allocation_groups"] = found.groups.count
    if found.log_size is not None:
        entry["log_size"] = f"{found.log_size} B"
    if entry["kind"] in ("xfs", "ext4") and "block" not in entry:
        entry["block"] = "4096 B"


class _Writer:
    """Writes what was placed into the document."""

    def __init__(self, document: dict[str, Any], placement: Placement, software: str) -> None:
        self.document, self.placement, self.software = document, placement, software
        self.made: list[str] = []
        # parts that the file describes, as ranges of ids, are known by their entry; wishes are one part each
        for kind in KINDS:
            document.setdefault(kind, [])

    def _put(self, kind: str, entry: dict[str, Any]) -> str:
        self.document[kind].append(entry)
        self.made.append(entry["id"])
        return str(entry["id"])

    def add(self, placed: Placed) -> None:
        entry = _entry(self.document, "file_systems", placed.wish.id)
        for one in placed.members:
            self._group(one)
        if placed.wish.table.kind in WITH_TARGETS:
            self._targets(placed)
            return
        if placed.shared:
            entry["device"] = f"{placed.members[0].id}-{placed.wish.id}"
            return
        members = [self._slice(one, placed.wish.id) for one in placed.members]
        entry["device"] = members[0] if len(members) == 1 else self._volume(placed, members)
        if placed.log:
            self._group(self.placement.candidates[placed.log])
            entry["log"] = f"{placed.log}-{placed.wish.id}-log"

    def _group(self, one: Candidate) -> None:
        if not one.new or one.id in self.made:
            return
        table = one.store.table
        if isinstance(table, Lun):
            self._put("luns", {"id": one.id, "raid_group": list(table.raid_group), "purpose": one.good_for})
            return
        assert isinstance(table, RaidGroup)
        assert table.data is not None
        assert table.parity is not None
        whole = one.store.members[0].capacity
        usable = (one.store.capacity or 0) - int(table.data) * MD_RESERVE
        step = (one.store.unit or MIB) * int(table.data)
        spare = [drive.id for drive in self.placement.spares.get(one.places[2], ()) if drive.capacity == whole][:1]
        self._put("raid_groups", {
            "id": one.id, "level": table.level, "data": int(table.data), "parity": int(table.parity),
            "segment": f"{one.store.unit} B", "drives": list(table.drives), "device": f"/dev/md/{one.id}",
            "usable": {"value": f"{usable // step * step} B",
                       "note": "data drives less 128 MiB each for metadata, in whole stripes"},
        } | ({"spares": spare} if spare and table.level != "0" else {}))  # fmt: skip

    def _slice(self, one: Candidate, use: str) -> str:
        """A LUN gets one slice over all of it; an array that the host makes itself needs none."""
        if one.store.kind != "luns":
            return one.id
        step = modulo(one.store.stripe or MIB)
        (found,) = cut(one.store.capacity or 0, [Piece(f"{one.id}-{use}")], step)
        return self._cut(one, found.name, found.start, found.size, step, 1, use)

    def _cut(self, one: Candidate, name: str, start: int, size: int, step: int, number: int, use: str) -> str:
        device = slice_device(one.store.label, number, use) if one.store.label != one.id else ""
        entry = {"id": name, "on": one.id, "start": f"{start} B", "size": f"{size} B", "alignment": f"{step} B",
                 "number": number, "use": use}  # fmt: skip
        return self._put("slices", entry | ({"device": device} if device else {}))

    def cut_shared(self) -> None:
        """Slices of shared disks, all of a disk together."""
        for name, pieces in self.placement.bins.items():
            one = self.placement.candidates[name]
            self._group(one)
            step = modulo(one.store.stripe or MIB)
            whole = one.store.capacity or 0
            whole = (
                whole
                if not one.new or one.store.kind == "luns"
                else whole - MD_RESERVE * (one.store.geometry or Geometry(1)).data
            )
            for number, piece in enumerate(cut(whole, pieces, step), 1):
                self._cut(one, piece.name, piece.start, piece.size, step, number, piece.name[len(name) + 1 :])

    def _volume(self, placed: Placed, members: list[str]) -> str:
        stripe = placed.members[0].store.stripe
        legacy = placed.members[0].store.legacy
        name = f"{placed.wish.id}-vol"
        software = "XLV" if legacy else software_for(self.software, stripe)
        if software != self.software and not legacy:
            self.placement.notes.append(
                f"{name} is made with {software}: the stripe unit of LVM is a power of two, and {stripe} bytes are none"
            )
        device = {"XLV": f"/dev/xlv/{name}", "md": f"/dev/md/{name}"}.get(software, f"/dev/{name}/{placed.wish.id}")
        entry: dict[str, Any] = {"id": name, "kind": "stripe", "software": software, "members": members,
                                 "device": device}  # fmt: skip
        if placed.wish.table.kind == "zfs":
            return self._put("volumes", entry | {"kind": "zfs", "software": "ZFS", "device": name})
        if stripe and software in _RESERVE:
            sizes = [self._offered(one) for one in placed.members]
            reserve, step = _RESERVE[software], max(stripe, EXTENT)
            usable = len(members) * ((min(sizes) - max(reserve, modulo(stripe))) // step * step)
            entry["usable"] = {"value": f"{usable} B", "note": f"less what {software} keeps on each member"}
        return self._put("volumes", entry | ({"stripe_unit": f"{stripe} B"} if stripe else {}))

    def _offered(self, one: Candidate) -> int:
        """Bytes that a member offers, as they stand in the document."""
        for kind in ("slices", "raid_groups"):
            for entry in self.document[kind]:
                if entry["id"] == one.id and "usable" in entry:
                    return parse_bytes(_plain(entry["usable"]))
                if kind == "slices" and entry["on"] == one.id and entry["id"].startswith(f"{one.id}-"):
                    return parse_bytes(_plain(entry["size"]))
        return one.store.capacity or 0

    def _targets(self, placed: Placed) -> None:
        """One target on each group, dealt out to servers in order."""
        wish, system = placed.wish, self.document
        kind = {"lustre": "ost", "gpfs": "nsd"}.get(wish.table.kind, "target")
        role = {"lustre": "oss", "gpfs": "nsd"}.get(wish.table.kind, "")
        servers = [one["id"] for one in system["servers"] if not role or role in _listed(one.get("roles", []))]
        count = len(placed.members)
        name = f"{wish.id}-{kind}" + (f"[0-{count - 1}]" if count > 1 else "0")
        entry: dict[str, Any] = {"id": name, "kind": kind, "index": 0, "file_system": wish.id,
                                 "on": [one.id for one in placed.members]}  # fmt: skip
        names = _expanded(servers)
        if names:
            entry["server"] = [names[at % len(names)] for at in range(count)] if count > 1 else names[0]
        else:
            self.placement.notes.append(f"{wish.id}: no server is described, so nothing is known above its targets")
        self._put("targets", entry)


def _plain(value: Any) -> str:
    return str(value["value"] if isinstance(value, dict) else value)


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _expanded(names: list[str]) -> list[str]:
    from sonde.model.ranges import expand

    return [one for name in names for one in expand(name)]


def software_for(wanted: str, stripe: int | None) -> str:
    """LVM takes only powers of two as stripe unit; md takes any multiple of 4 KiB."""
    power = stripe is not None and stripe & (stripe - 1) == 0
    return wanted if power or wanted != "LVM" else "md"


def slice_device(disk: str, number: int, use: str) -> str:
    """The name of a slice on its host: pm1d1L10s11 on the Cray X1, sdb1, nvme0n1p1 or mpatha-part1 on Linux."""
    if re.match(r"pm\d", disk):
        return f"{disk}s{4 if use.endswith('log') else 11 if number == 1 else number}"
    if "/by-" in disk or "/mapper/" in disk:
        return f"{disk}-part{number}"
    return f"{disk}p{number}" if disk[-1:].isdigit() else f"{disk}{number}"


def parts_made(plan: LayoutPlan, kind: str) -> list[Item]:
    """Parts of a kind that are not in the system yet."""
    return [item for item in plan.system.items(kind) if item.id in plan.made]


def is_striped(store: Store) -> bool:
    """Whether a store is a volume striped over members."""
    return isinstance(store.table, Volume) and store.table.kind == "stripe"
