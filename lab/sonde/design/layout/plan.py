# SPDX-License-Identifier: Apache-2.0
"""Plans a layout: adds everything that requirements need to the system, and computes the parameters of every file
system."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tomli_w

from sonde.design.grammar import check_names
from sonde.design.layout.block_devices import MD_RESERVE
from sonde.design.layout.candidates import Candidate
from sonde.design.layout.file_system_layout import FileSystemLayout, compute_all_layouts, compute_layout
from sonde.design.layout.geometry import MIB, Geometry, compute_slice_alignment
from sonde.design.layout.placement import (
    WITH_TARGETS,
    PlacedFileSystem,
    Placement,
    list_requirements,
    place_file_systems,
)
from sonde.design.layout.segments import add_segments
from sonde.design.layout.slicing import SliceRequest, cut_slices
from sonde.model.errors import UserError
from sonde.model.ranges import expand_name_range
from sonde.model.shell import format_comment
from sonde.model.system import System, make_system
from sonde.model.system.description import PART_KINDS
from sonde.model.system.storage import Lun, RaidGroup
from sonde.model.system.system_document import convert_system_to_document
from sonde.model.units import parse_bytes

EXTENT_BYTES = 4 * MIB  # of LVM, unless the stripe unit is larger
_SYSTEM_FILE_HEAD = "# Written by sonde layout plan; sonde layout check reads it with --plan.\n"
_RESERVE = {"LVM": MIB, "md": MD_RESERVE}


@dataclass(frozen=True)
class LayoutPlan:
    """A planned layout. `system` includes the parts in `new_parts`. `unmet` describes requirements that cannot be met;
    `notes` are remarks for the reader."""

    system: System
    file_systems: tuple[FileSystemLayout, ...]
    new_parts: frozenset[str]
    unmet: tuple[str, ...]
    notes: tuple[str, ...]

    def get_layout(self, file_system_id: str) -> FileSystemLayout:
        """The layout of the file system of that id."""
        return next(layout for layout in self.file_systems if layout.id == file_system_id)


def plan_layout(
    system: System, geometry: Geometry | None = None, member_count: int | None = None, software_name: str = "LVM",
    failed_parts: Sequence[str] = (),
) -> LayoutPlan:  # fmt: skip
    """The layout of a system: of the described file systems and of the required ones. Raises UserError."""
    check_names(system)
    system, segment_notes = add_segments(system)
    requirements = list_requirements(system)
    for name in failed_parts:
        system.get_part(name)
    placement = place_file_systems(system, requirements, geometry, member_count)
    if not requirements and not any(True for _ in compute_all_layouts(system)):
        raise UserError(
            f"{system.id} has no file system to lay out: none is on a device or target, and none says purpose and "
            "requirement (schema/system)."
        )
    if not requirements:
        return LayoutPlan(
            system, tuple(compute_all_layouts(system, tuple(failed_parts))), frozenset(), (), segment_notes
        )
    document = convert_system_to_document(system)
    document["file_systems"] = [
        {**entry, "id": name}  # each copy of a required file system gets its own device
        for entry in document["file_systems"]
        for name in (expand_name_range(entry["id"]) if "requirement" in entry else (entry["id"],))
    ]
    writer = _PlanWriter(document, placement, software_name)
    for placed in placement.placed:
        writer.add_file_system(placed)
    writer.cut_slices_of_shared_disks()
    grown = make_system(document, f"plan of {system.id}")
    for name in (requirement.id for requirement in requirements):
        layout = compute_layout(grown, name)
        assert layout is not None
        _store_computed_parameters(_find_document_entry(document, "file_systems", name), layout)
    grown = replace_id(make_system(document, f"plan of {system.id}"), system)
    return LayoutPlan(
        grown,
        tuple(compute_all_layouts(grown, tuple(failed_parts))),
        frozenset(writer.new_parts),
        tuple(placement.unmet),
        tuple(dict.fromkeys((*segment_notes, *placement.notes))),
    )


def replace_id(grown_system: System, system: System) -> System:
    """The grown system under the names of the one that it was made from."""
    return replace(grown_system, files=system.files)


def _find_document_entry(system_document: dict[str, Any], part_kind: str, part_id: str) -> dict[str, Any]:
    entry: dict[str, Any] = next(candidate for candidate in system_document[part_kind] if candidate["id"] == part_id)
    return entry


def _store_computed_parameters(document_entry: dict[str, Any], layout: FileSystemLayout) -> None:
    """Stores the computed parameters in the document, so that a check can compare a live file system with them."""
    if layout.unit:
        document_entry["stripe_unit"], document_entry["stripe_width"] = f"{layout.unit} B", f"{layout.width} B"
    if layout.groups is not None:
        document_entry["allocation_groups"] = layout.groups.count
    if layout.log_size is not None:
        document_entry["log_size"] = f"{layout.log_size} B"
    if document_entry["kind"] in ("xfs", "ext4") and "block" not in document_entry:
        document_entry["block"] = "4096 B"


class _PlanWriter:
    """Writes placed file systems into the document."""

    def __init__(self, document: dict[str, Any], placement: Placement, software: str) -> None:
        self.document, self.placement, self.software = document, placement, software
        self.new_parts: list[str] = []
        # every list must exist before entries are added
        for kind in PART_KINDS:
            document.setdefault(kind, [])

        self.spare_uses: Counter[str] = Counter()

    def _add_entry(self, part_kind: str, document_entry: dict[str, Any]) -> str:
        self.document[part_kind].append(document_entry)
        self.new_parts.append(document_entry["id"])
        return str(document_entry["id"])

    def add_file_system(self, placed_file_system: PlacedFileSystem) -> None:
        entry = _find_document_entry(self.document, "file_systems", placed_file_system.requirement.id)
        for member in placed_file_system.members:
            self._add_group(member)
        if placed_file_system.requirement.table.kind in WITH_TARGETS:
            self._add_targets(placed_file_system)
            return
        if placed_file_system.shared:
            entry["device"] = f"{placed_file_system.members[0].id}-{placed_file_system.requirement.id}"
            return
        members = [self._add_slice(member, placed_file_system.requirement.id) for member in placed_file_system.members]
        entry["device"] = members[0] if len(members) == 1 else self._add_volume(placed_file_system, members)
        if placed_file_system.log:
            self._add_group(self.placement.candidates[placed_file_system.log])
            entry["log"] = f"{placed_file_system.log}-{placed_file_system.requirement.id}-log"

    def _add_group(self, candidate: Candidate) -> None:
        if not candidate.new or candidate.id in self.new_parts:
            return
        table = candidate.device.table
        if isinstance(table, Lun):
            self._add_entry(
                "luns", {"id": candidate.id, "raid_group": list(table.raid_group), "purpose": candidate.suitable_class}
            )
            return
        assert isinstance(table, RaidGroup)
        assert table.data is not None
        assert table.parity is not None
        drive_size = candidate.device.members[0].capacity
        usable = (candidate.device.capacity or 0) - int(table.data) * MD_RESERVE
        step = (candidate.device.stripe_unit_bytes or MIB) * int(table.data)
        free = [
            drive.id
            for drive in self.placement.spares.get(candidate.sharing_path[2], ())
            if drive.capacity == drive_size
        ]
        # a spare of its own while there are free drives, then the one that the fewest groups share
        spare = sorted(free, key=lambda drive: self.spare_uses[drive])[:1]
        self._add_entry("raid_groups", {
            "id": candidate.id, "level": table.level, "data": int(table.data), "parity": int(table.parity),
            "segment": f"{candidate.device.stripe_unit_bytes} "
            "B", "drives": list(table.drives), "device": f"/dev/md/{candidate.id}",
            "usable": {"value": f"{usable // step * step} B",
                       "note": "data drives less 129 MiB each for metadata, in whole stripes"},
        } | ({"spares": spare} if spare and table.level != "0" else {}))  # fmt: skip

        self.spare_uses.update(spare)

    def _add_slice(self, candidate: Candidate, slice_use: str) -> str:
        """Adds one slice over a whole LUN. An array that the host creates needs no slice."""
        if candidate.device.kind != "luns":
            return candidate.id
        step = compute_slice_alignment(candidate.device.full_stripe_bytes or MIB)
        (extent,) = cut_slices(candidate.device.capacity or 0, [SliceRequest(f"{candidate.id}-{slice_use}")], step)
        return self._cut_slice(candidate, extent.name, extent.start, extent.size, step, 1, slice_use)

    def _cut_slice(
        self,
        candidate: Candidate,
        slice_name: str,
        start_byte: int,
        size_bytes: int,
        alignment: int,
        slice_number: int,
        slice_use: str,
    ) -> str:
        device = (
            make_slice_name(candidate.device.device_label, slice_number, slice_use)
            if candidate.device.device_label != candidate.id
            else ""
        )
        entry = {
            "id": slice_name,
            "on": candidate.id,
            "start": f"{start_byte} B",
            "size": f"{size_bytes} B",
            "alignment": f"{alignment} B",
            "number": slice_number,
            "use": slice_use,
        }
        return self._add_entry("slices", entry | ({"device": device} if device else {}))

    def cut_slices_of_shared_disks(self) -> None:
        """Adds the slices of shared disks, disk by disk."""
        for name, pieces in self.placement.bins.items():
            candidate = self.placement.candidates[name]
            self._add_group(candidate)
            step = compute_slice_alignment(candidate.device.full_stripe_bytes or MIB)
            disk_size = candidate.device.capacity or 0
            disk_size = (
                disk_size
                if not candidate.new or candidate.device.kind == "luns"
                else disk_size - MD_RESERVE * (candidate.device.raid_geometry or Geometry(1)).data
            )
            for number, piece in enumerate(cut_slices(disk_size, pieces, step), 1):
                self._cut_slice(
                    candidate, piece.name, piece.start, piece.size, step, number, piece.name[len(name) + 1 :]
                )

    def _add_volume(self, placed_file_system: PlacedFileSystem, member_ids: list[str]) -> str:
        stripe = placed_file_system.members[0].device.full_stripe_bytes
        legacy = placed_file_system.members[0].device.is_cray_x1
        name = f"{placed_file_system.requirement.id}-vol"
        software = "XLV" if legacy else choose_volume_software(self.software, stripe)
        if software != self.software and not legacy:
            self.placement.notes.append(
                f"{name} uses {software}: the stripe unit of LVM is a power of two, and {stripe} bytes are not"
            )
        device = {"XLV": f"/dev/xlv/{name}", "md": f"/dev/md/{name}"}.get(
            software, f"/dev/{name}/{placed_file_system.requirement.id}"
        )
        entry: dict[str, Any] = {"id": name, "kind": "stripe", "software": software, "members": member_ids,
                                 "device": device}  # fmt: skip
        if placed_file_system.requirement.table.kind == "zfs":
            return self._add_entry("volumes", entry | {"kind": "zfs", "software": "ZFS", "device": name})
        if stripe and software in _RESERVE:
            sizes = [self._get_offered_bytes(member) for member in placed_file_system.members]
            reserve, step = _RESERVE[software], max(stripe, EXTENT_BYTES)
            usable = len(member_ids) * ((min(sizes) - max(reserve, compute_slice_alignment(stripe))) // step * step)
            entry["usable"] = {"value": f"{usable} B", "note": f"less what {software} keeps on each member"}
        return self._add_entry("volumes", entry | ({"stripe_unit": f"{stripe} B"} if stripe else {}))

    def _get_offered_bytes(self, candidate: Candidate) -> int:
        """Bytes that a member offers, as stated in the document."""
        for kind in ("slices", "raid_groups"):
            for entry in self.document[kind]:
                if entry["id"] == candidate.id and "usable" in entry:
                    return parse_bytes(_get_plain_value(entry["usable"]))
                if kind == "slices" and entry["on"] == candidate.id and entry["id"].startswith(f"{candidate.id}-"):
                    return parse_bytes(_get_plain_value(entry["size"]))
        return candidate.device.capacity or 0

    def _add_targets(self, placed_file_system: PlacedFileSystem) -> None:
        """Adds one target per group, divided among the servers in order."""
        requirement, system = placed_file_system.requirement, self.document
        kind = {"lustre": "ost", "gpfs": "nsd"}.get(requirement.table.kind, "target")
        role = {"lustre": "oss", "gpfs": "nsd"}.get(requirement.table.kind, "")
        servers = [
            server["id"]
            for server in system["servers"]
            if not role or role in _convert_to_list(server.get("roles", []))
        ]
        count = len(placed_file_system.members)
        name = f"{requirement.id}-{kind}" + (f"[0-{count - 1}]" if count > 1 else "0")
        entry: dict[str, Any] = {"id": name, "kind": kind, "index": 0, "file_system": requirement.id,
                                 "on": [member.id for member in placed_file_system.members]}  # fmt: skip
        names = _expand_name_ranges(servers)
        if names:
            entry["server"] = [names[index % len(names)] for index in range(count)] if count > 1 else names[0]
        else:
            self.placement.notes.append(
                f"{requirement.id}: no server is described, so the bandwidth above its targets is unknown"
            )
        self._add_entry("targets", entry)


def _get_plain_value(value_or_table: Any) -> str:
    return str(value_or_table["value"] if isinstance(value_or_table, dict) else value_or_table)


def _convert_to_list(text_or_list: Any) -> list[str]:
    return [text_or_list] if isinstance(text_or_list, str) else list(text_or_list)


def _expand_name_ranges(name_ranges: list[str]) -> list[str]:
    from sonde.model.ranges import expand_name_range

    return [expanded for name in name_ranges for expanded in expand_name_range(name)]


def choose_volume_software(requested_software: str, stripe_unit_bytes: int | None) -> str:
    """LVM accepts only powers of two as stripe unit; md accepts every multiple of 4 KiB."""
    power = stripe_unit_bytes is not None and stripe_unit_bytes & (stripe_unit_bytes - 1) == 0
    return requested_software if power or requested_software != "LVM" else "md"


def make_slice_name(disk_name: str, slice_number: int, slice_use: str) -> str:
    """The device name of a slice: pm1d1L10s11 on the Cray X1, sdb1, nvme0n1p1 or mpatha-part1 on Linux."""
    if re.match(r"pm\d", disk_name):
        return f"{disk_name}s{4 if slice_use.endswith('log') else 11 if slice_number == 1 else slice_number}"
    if "/by-" in disk_name or "/mapper/" in disk_name:
        return f"{disk_name}-part{slice_number}"
    return f"{disk_name}p{slice_number}" if disk_name[-1:].isdigit() else f"{disk_name}{slice_number}"


def make_system_file(plan: LayoutPlan) -> dict[str, str]:
    """The system file with everything that was planned, by its name: for simulators, checks and the site."""
    return {"system.toml": format_system_file(plan.system, "the system with the plan of its storage")}


def format_system_file(system: System, title_line: str) -> str:
    """Returns a system as the text of a system file, with `title_line` in its first line."""
    head = f"# {format_comment(system.title or system.id)}: {title_line}.\n{_SYSTEM_FILE_HEAD}"
    return head + tomli_w.dumps(convert_system_to_document(system))
