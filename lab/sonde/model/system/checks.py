# SPDX-License-Identifier: Apache-2.0
"""Checks of a system file beyond its schema: unknown names, impossible geometry, parts used twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

from sonde.model.errors import SystemFileError
from sonde.model.ranges import RangeError, expand_name_range, fold_names_into_ranges
from sonde.model.system.capacity import CapacityCalculator, is_mirrored
from sonde.model.system.index import RANGED_MEMBERS, PartIndex, PartItem, PartSource
from sonde.model.system.network import Server
from sonde.model.system.network_checks import check_interface_addresses, check_routers
from sonde.model.system.service import FileSystem, Mount, Pool, Target
from sonde.model.system.storage import RaidGroup, Slice, Volume
from sonde.model.tables.members import get_members
from sonde.model.units import format_bytes, format_count_with_noun

_BENEATH_FILE_SYSTEMS = ("drives", "raid_groups", "luns", "slices", "volumes")


def check_system(part_index: PartIndex) -> None:
    """Raises SystemFileError at the first problem."""
    for problem in find_system_problems(part_index):
        raise problem


def find_system_problems(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Yields every problem. A rule that cannot continue, because a name refers to no part, ends with that problem."""
    rules: list[Callable[[], Iterator[SystemFileError]]] = [
        *(partial(_check_references, part_index, source) for source in part_index.sources),
        *(partial(rule, part_index) for rule in _CHECKS),
    ]
    for rule in rules:
        try:
            yield from rule()
        except SystemFileError as problem:
            yield problem


def _check_references(part_index: PartIndex, part_source: PartSource) -> Iterator[SystemFileError]:
    """Checks that every name is a part, and that names can be distributed over the parts of the table."""
    names = part_index.get_ids(part_source.table)
    for member, declaration in get_members(type(part_source.table)).items():
        if declaration.kind == "ids" and (
            referenced_names := part_index.find_table_references(part_source.table, member)
        ):
            if not declaration.allows_several and len(names) == 1 and len(referenced_names) > 1:
                yield part_source.make_error(member, "names several parts; name one.")
            part_index.find_part_references(
                PartItem(part_source.kind, names[0], part_source.table, 0, len(names)), member
            )


def _list_sources(part_index: PartIndex, part_kind: str) -> Sequence[PartSource]:
    return [source for source in part_index.sources if source.kind == part_kind]


def _check_ranged_texts(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that a range of names, as that of devices, has one for each part of the table."""
    for source in part_index.sources:
        for member in RANGED_MEMBERS if source.kind in _BENEATH_FILE_SYSTEMS else ():
            text = getattr(source.table, member, "")
            try:
                names = expand_name_range(text)
            except RangeError as error:
                yield source.make_error(member, f"is not a range: {error}")
                continue
            part_count = len(part_index.get_ids(source.table))
            if len(names) not in (1, part_count):
                yield source.make_error(
                    member, f'"{text}" stands for {len(names)} names, but the table describes'
                    f" {format_count_with_noun(part_count, 'part')}; write as many names as parts."
                )  # fmt: skip


def _check_raid_geometry(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that RAID level, data and parity drives agree with each other and with the number of drives."""
    for source in _list_sources(part_index, "raid_groups"):
        table = cast(RaidGroup, source.table)
        data, parity = table.data, table.parity
        required_parity = {"0": 0, "none": 0, "4": 1, "5": 1, "6": 2, "7": 3}.get(table.level)
        if parity is not None and required_parity is not None and int(parity) != required_parity:
            yield source.make_error(
                "parity", f"is {int(parity)}, but RAID {table.level} has {required_parity}; change one of them."
            )
        if is_mirrored(table) and parity is not None and data is not None and int(parity) % int(data):
            yield source.make_error(
                "parity", f"is {int(parity)}; a mirror has as many drives of copies as of data, {int(data)}, or a "
                "multiple of that."
            )  # fmt: skip
        drives = len(part_index.find_table_references(table, "drives"))
        if not drives or data is None:
            continue
        total = int(data) + (int(parity) if parity is not None else required_parity or 0)
        drives_per_group = drives // len(part_index.get_ids(table))
        if (
            table.level != "declustered"
            and (parity is not None or required_parity is not None)
            and drives_per_group != total
        ):
            yield source.make_error(
                "drives", f"gives each group {drives_per_group}, but data and parity together are {total}."
            )
        if table.level == "declustered" and drives_per_group < total:
            yield source.make_error(
                "drives", f"gives each group {drives_per_group}, fewer than the {total} of one stripe."
            )


def _check_spares(part_index: PartIndex) -> Iterator[SystemFileError]:
    for source in _list_sources(part_index, "raid_groups"):
        data_drives, spare_drives = (
            set(part_index.find_table_references(source.table, "drives")),
            part_index.find_table_references(source.table, "spares"),
        )
        shared_names = [name for name in spare_drives if name in data_drives]
        if shared_names:
            yield source.make_error(
                "spares", f"and drives both name {fold_names_into_ranges(shared_names)}; a spare holds no data yet."
            )


def _check_exclusive_members(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that a drive is in one RAID group, a member in one volume, a target in one unit."""
    for kind, member in (("raid_groups", "drives"), ("volumes", "members"), ("units", "targets")):
        owner: dict[str, str] = {}
        for source in _list_sources(part_index, kind):
            for name in part_index.find_table_references(source.table, member):
                if name in owner:
                    yield source.make_error(
                        member, f'names "{name}", which {kind}.{owner[name]} names too; it can be in one only.'
                    )
                owner[name] = source.table.id


def _check_no_part_contains_itself(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that no part contains itself."""
    for kind, member in (("volumes", "members"), ("enclosures", "inside")):
        for item in part_index.list_parts(kind):
            visited, pending = set(), [item.id]
            while pending:
                for inner in part_index.find_part_references(part_index.get_part(pending.pop()), member):
                    if inner == item.id:
                        yield part_index.get_source(item.table).make_error(
                            member, f'leads back to "{item.id}"; nothing is inside itself.'
                        )
                    if inner not in visited and part_index.get_part(inner).kind == kind:
                        visited.add(inner)
                        pending.append(inner)


def _check_sizes_of_pieces(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that pieces fit into their container, and that only one piece has no size."""
    sizes = CapacityCalculator(part_index)
    for kind, member in (("luns", "raid_group"), ("slices", "on")):
        pieces: dict[str, list[PartItem]] = {}
        for item in part_index.list_parts(kind):
            for container in part_index.find_part_references(item, member):
                pieces.setdefault(container, []).append(item)
        for container, pieces_of_container in pieces.items():
            yield from _check_pieces_fit_container(part_index, sizes, container, pieces_of_container)


def _has_no_size(piece: PartItem) -> bool:
    return getattr(piece.table, "size", None) is None and getattr(piece.table, "share", None) is None


def _check_pieces_fit_container(
    part_index: PartIndex, capacities: CapacityCalculator, container_id: str, pieces: list[PartItem]
) -> Iterator[SystemFileError]:
    unsized_pieces = [piece for piece in pieces if _has_no_size(piece)]
    last_source = part_index.get_source(pieces[-1].table)
    if len(unsized_pieces) > 1:
        yield part_index.get_source(unsized_pieces[1].table).make_error(
            "size",
            (
                f'is missing, and of "{unsized_pieces[0].id}" on the same "{container_id}" too; only one of them can be'
                f" what is left."
            ),
        )
    capacity = capacities.compute_capacity(container_id)
    used_bytes = sum(capacities.compute_capacity(piece.id) or 0 for piece in pieces if piece not in unsized_pieces)
    if capacity is not None and used_bytes > capacity:
        yield last_source.make_error(
            "size", f'does not fit: the pieces of "{container_id}" are {format_bytes(used_bytes)} together, but it has '
            f"{format_bytes(capacity)}."
        )  # fmt: skip


def _check_slices(part_index: PartIndex) -> Iterator[SystemFileError]:
    for source in _list_sources(part_index, "slices"):
        table = cast(Slice, source.table)
        if table.size is not None and table.share is not None:
            yield source.make_error("share", "stands beside size; give one of them.")
        if table.start is not None and table.alignment is not None and int(table.start) % max(1, int(table.alignment)):
            yield source.make_error(
                "start", f"is {table.start.text}, which is no multiple of alignment, {table.alignment.text}."
            )


def _check_slices_do_not_overlap(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that slices with a start are within their disk and do not overlap."""
    sizes = CapacityCalculator(part_index)
    by_disk: dict[str, list[tuple[int, PartItem]]] = {}
    for item in part_index.list_parts("slices"):
        start_quantity = cast(Slice, item.table).start
        if start_quantity is not None:
            for container in part_index.find_part_references(item, "on"):
                by_disk.setdefault(container, []).append((int(start_quantity), item))
    for container, slices in by_disk.items():
        end, previous_id = 0, ""
        for start, item in sorted(slices, key=lambda entry: entry[0]):
            source = part_index.get_source(item.table)
            if start < end:
                yield source.make_error(
                    "start", f'lies within "{previous_id}", which ends at {end} B; begin it there or later.'
                )
            end, previous_id = start + (sizes.compute_capacity(item.id) or 0), item.id
            capacity = sizes.compute_capacity(container)
            if capacity is not None and end > capacity:
                yield source.make_error(
                    "start", f'and size lead to {end} B, but "{container}" has {capacity} B; make it smaller.'
                )


def _check_volumes(part_index: PartIndex) -> Iterator[SystemFileError]:
    for source in _list_sources(part_index, "volumes"):
        table = cast(Volume, source.table)
        if table.kind != "stripe" and table.stripe_unit is not None and table.kind != "zfs":
            yield source.make_error("stripe_unit", f'is of no use with kind = "{table.kind}"; only a stripe has one.')


def _check_targets(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that servers of targets have the right role, and that target indexes are unique per kind."""
    target_by_index: dict[tuple[str, str, int], str] = {}
    roles = {"ost": "oss", "mdt": "mds", "mgt": "mgs", "nsd": "nsd"}
    for item in part_index.list_parts("targets"):
        table, source = cast(Target, item.table), part_index.get_source(item.table)
        for server in part_index.find_part_references(item, "server"):
            host = part_index.get_part(server).table
            required_role = roles.get(table.kind)
            if isinstance(host, Server) and host.roles and required_role and required_role not in host.roles:
                yield source.make_error(
                    "server",
                    (
                        f'names "{server}", whose roles are {", ".join(host.roles)}; an {table.kind} needs'
                        f" {required_role}."
                    ),
                )
        if table.index is None:
            continue
        for file_system in part_index.find_part_references(item, "file_system"):
            key = (file_system, table.kind, int(table.index) + item.position)
            if key in target_by_index:
                yield source.make_error(
                    "index", f'{key[2]} of {file_system} is that of "{target_by_index[key]}" too; change one of them.'
                )
            target_by_index[key] = item.id


def _check_server_failover(part_index: PartIndex) -> Iterator[SystemFileError]:
    for source in _list_sources(part_index, "servers"):
        count = len(part_index.get_ids(source.table))
        if cast(Server, source.table).failover == "pairs" and cast(Server, source.table).partner:
            yield source.make_error("partner", "stands beside failover = pairs; give one of them.")
        if cast(Server, source.table).failover == "pairs" and count % 2:
            yield source.make_error(
                "failover", f"is pairs, but there are {count} servers in this table; pairs need an even number."
            )


def _check_pools(part_index: PartIndex) -> Iterator[SystemFileError]:
    units = {item.id: part_index.find_part_references(item, "targets") for item in part_index.list_parts("units")}
    for item in part_index.list_parts("pools"):
        table, source = cast(Pool, item.table), part_index.get_source(item.table)
        if not table.targets and not table.units:
            yield source.make_error("targets", "and units are both missing; a pool names at least one target or unit.")
        file_system = part_index.find_part_references(item, "file_system")[0]
        target_ids = [
            *part_index.find_part_references(item, "targets"),
            *(target_id for unit in part_index.find_part_references(item, "units") for target_id in units[unit]),
        ]
        for target in target_ids:
            target_file_systems = part_index.find_part_references(part_index.get_part(target), "file_system")
            if target_file_systems and target_file_systems[0] != file_system:
                yield source.make_error(
                    "targets", f'include "{target}", which is part of {target_file_systems[0]}, not of {file_system}.'
                )


def _check_file_systems(part_index: PartIndex) -> Iterator[SystemFileError]:
    with_targets = {
        name
        for item in part_index.list_parts("targets")
        for name in part_index.find_part_references(item, "file_system")
    }
    for source in _list_sources(part_index, "file_systems"):
        table = cast(FileSystem, source.table)
        for name in part_index.get_ids(table):
            if table.device and name in with_targets:
                yield source.make_error("device", "is given, but targets name this file system too; keep one of them.")
        count = table.stripe.count if table.stripe is not None else None
        if count is not None and (count.value != int(count.value) or not (count.value == -1 or count.value >= 1)):
            yield source.make_error(
                "stripe.count", f"is {count.text}; write -1 for all targets, or a whole number from 1."
            )


def _check_mounts(part_index: PartIndex) -> Iterator[SystemFileError]:
    for source in _list_sources(part_index, "mounts"):
        table = cast(Mount, source.table)
        if table.via and table.through in ("native", "local"):
            yield source.make_error(
                "via", f'names forwarders, but through is "{table.through}"; write through = "dvs" or "nfs".'
            )


_CHECKS: Sequence[Callable[[PartIndex], Iterator[SystemFileError]]] = (
    check_interface_addresses,
    check_routers,
    _check_ranged_texts,
    _check_raid_geometry,
    _check_spares,
    _check_exclusive_members,
    _check_no_part_contains_itself,
    _check_sizes_of_pieces,
    _check_slices,
    _check_slices_do_not_overlap,
    _check_volumes,
    _check_targets,
    _check_server_failover,
    _check_pools,
    _check_file_systems,
    _check_mounts,
)
