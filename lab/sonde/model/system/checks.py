# SPDX-License-Identifier: Apache-2.0
"""What a system file must not say: names that mean nothing, geometry that cannot be, parts used twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from sonde.model.ranges import fold
from sonde.model.system.capacity import Capacities, mirrored
from sonde.model.system.check_networks import check_addresses, check_routers
from sonde.model.system.index import Index, Item, Source
from sonde.model.system.network import Server
from sonde.model.system.service import FileSystem, Mount, Pool, Target
from sonde.model.system.storage import RaidGroup, Slice, Volume
from sonde.model.tables.members import members
from sonde.model.units import format_bytes


def check(index: Index) -> None:
    """Raises SystemFileError at the first thing that is wrong."""
    for source in index.sources:
        _references(index, source)
    for rule in _RULES:
        rule(index)


def _references(index: Index, source: Source) -> None:
    """Every name means a part, and names can be dealt out to the parts of the table."""
    names = index.ids_of(source.table)
    for member, declared in members(type(source.table)).items():
        if declared.kind == "ids" and (named := index.references(source.table, member)):
            if not declared.many and len(names) == 1 and len(named) > 1:
                raise source.wrong(member, "names several parts; name one.")
            index.share(Item(source.kind, names[0], source.table, 0, len(names)), member)


def _tables(index: Index, kind: str) -> Sequence[Source]:
    return [source for source in index.sources if source.kind == kind]


def _geometry(index: Index) -> None:
    """Levels, data and parity drives agree with each other and with the drives that are named."""
    for source in _tables(index, "raid_groups"):
        table = cast(RaidGroup, source.table)
        data, parity = table.data, table.parity
        wanted = {"0": 0, "none": 0, "4": 1, "5": 1, "6": 2, "7": 3}.get(table.level)
        if parity is not None and wanted is not None and int(parity) != wanted:
            raise source.wrong("parity", f"is {int(parity)}, but RAID {table.level} has {wanted}; change one of them.")
        if mirrored(table) and parity is not None and data is not None and int(parity) % int(data):
            raise source.wrong(
                "parity", f"is {int(parity)}; a mirror has as many drives of copies as of data, {int(data)}, or a "
                "multiple of that."
            )  # fmt: skip
        drives = len(index.references(table, "drives"))
        if not drives or data is None:
            continue
        total = int(data) + (int(parity) if parity is not None else wanted or 0)
        each = drives // len(index.ids_of(table))
        if table.level != "declustered" and (parity is not None or wanted is not None) and each != total:
            raise source.wrong("drives", f"gives each group {each}, but data and parity together are {total}.")
        if table.level == "declustered" and each < total:
            raise source.wrong("drives", f"gives each group {each}, fewer than the {total} of one stripe.")


def _spares(index: Index) -> None:
    for source in _tables(index, "raid_groups"):
        used, spare = set(index.references(source.table, "drives")), index.references(source.table, "spares")
        both = [name for name in spare if name in used]
        if both:
            raise source.wrong("spares", f"and drives both name {fold(both)}; a spare holds no data yet.")


def _once(index: Index) -> None:
    """A drive is in one RAID group, a member in one volume."""
    for kind, member in (("raid_groups", "drives"), ("volumes", "members"), ("units", "targets")):
        owner: dict[str, str] = {}
        for source in _tables(index, kind):
            for name in index.references(source.table, member):
                if name in owner:
                    raise source.wrong(
                        member, f'names "{name}", which {kind}.{owner[name]} names too; it can be in one only.'
                    )
                owner[name] = source.table.id


def _circles(index: Index) -> None:
    """Nothing is inside itself."""
    for kind, member in (("volumes", "members"), ("enclosures", "inside")):
        for item in index.items(kind):
            seen, left = set(), [item.id]
            while left:
                for inner in index.share(index.item(left.pop()), member):
                    if inner == item.id:
                        raise index.source_of(item.table).wrong(
                            member, f'leads back to "{item.id}"; nothing is inside itself.'
                        )
                    if inner not in seen and index.item(inner).kind == kind:
                        seen.add(inner)
                        left.append(inner)


def _sizes(index: Index) -> None:
    """What is cut from a whole fits into it, and only one piece is 'what is left'."""
    sizes = Capacities(index)
    for kind, member in (("luns", "raid_group"), ("slices", "on")):
        pieces: dict[str, list[Item]] = {}
        for item in index.items(kind):
            for whole in index.share(item, member):
                pieces.setdefault(whole, []).append(item)
        for whole, cut in pieces.items():
            _fits(index, sizes, whole, cut)


def _fits(index: Index, sizes: Capacities, whole: str, cut: list[Item]) -> None:
    rest = [one for one in cut if one.table.size is None and getattr(one.table, "share", None) is None]  # type: ignore[attr-defined]
    last = index.source_of(cut[-1].table)
    if len(rest) > 1:
        raise index.source_of(rest[1].table).wrong(
            "size",
            f'is missing, and of "{rest[0].id}" on the same "{whole}" too; only one of them can be what is left.',
        )
    offered = sizes.of(whole)
    taken = sum(sizes.of(one.id) or 0 for one in cut if one not in rest)
    if offered is not None and taken > offered:
        raise last.wrong(
            "size", f'does not fit: the pieces of "{whole}" are {format_bytes(taken)} together, but it has '
            f"{format_bytes(offered)}."
        )  # fmt: skip


def _slices(index: Index) -> None:
    for source in _tables(index, "slices"):
        table = cast(Slice, source.table)
        if table.size is not None and table.share is not None:
            raise source.wrong("share", "stands beside size; give one of them.")
        if table.start is not None and table.alignment is not None and int(table.start) % max(1, int(table.alignment)):
            raise source.wrong(
                "start", f"is {table.start.text}, which is no multiple of alignment, {table.alignment.text}."
            )


def _overlaps(index: Index) -> None:
    """Slices that say where they begin lie within their disk, and none over another."""
    sizes = Capacities(index)
    by_disk: dict[str, list[tuple[int, Item]]] = {}
    for item in index.items("slices"):
        told = cast(Slice, item.table).start
        if told is not None:
            for whole in index.share(item, "on"):
                by_disk.setdefault(whole, []).append((int(told), item))
    for whole, placed in by_disk.items():
        end, before = 0, ""
        for start, item in sorted(placed, key=lambda one: one[0]):
            source = index.source_of(item.table)
            if start < end:
                raise source.wrong("start", f'lies within "{before}", which ends at {end} B; begin it there or later.')
            end, before = start + (sizes.of(item.id) or 0), item.id
            offered = sizes.of(whole)
            if offered is not None and end > offered:
                raise source.wrong(
                    "start", f'and size lead to {end} B, but "{whole}" has {offered} B; make it smaller.'
                )


def _volumes(index: Index) -> None:
    for source in _tables(index, "volumes"):
        table = cast(Volume, source.table)
        if table.kind != "stripe" and table.stripe_unit is not None and table.kind != "zfs":
            raise source.wrong("stripe_unit", f'is of no use with kind = "{table.kind}"; only a stripe has one.')


def _targets(index: Index) -> None:
    """Targets name servers that serve their kind, and no two of a kind have one index."""
    seen: dict[tuple[str, str, int], str] = {}
    roles = {"ost": "oss", "mdt": "mds", "mgt": "mgs", "nsd": "nsd"}
    for item in index.items("targets"):
        table, source = cast(Target, item.table), index.source_of(item.table)
        for server in index.share(item, "server"):
            host = index.item(server).table
            wanted = roles.get(table.kind)
            if isinstance(host, Server) and host.roles and wanted and wanted not in host.roles:
                raise source.wrong(
                    "server",
                    f'names "{server}", whose roles are {", ".join(host.roles)}; an {table.kind} needs {wanted}.',
                )
        if table.index is None:
            continue
        for file_system in index.share(item, "file_system"):
            key = (file_system, table.kind, int(table.index) + item.position)
            if key in seen:
                raise source.wrong(
                    "index", f'{key[2]} of {file_system} is that of "{seen[key]}" too; change one of them.'
                )
            seen[key] = item.id


def _servers(index: Index) -> None:
    for source in _tables(index, "servers"):
        count = len(index.ids_of(source.table))
        if cast(Server, source.table).failover == "pairs" and cast(Server, source.table).partner:
            raise source.wrong("partner", "stands beside failover = pairs; give one of them.")
        if cast(Server, source.table).failover == "pairs" and count % 2:
            raise source.wrong(
                "failover", f"is pairs, but there are {count} servers in this table; pairs need an even number."
            )


def _pools(index: Index) -> None:
    units = {item.id: index.share(item, "targets") for item in index.items("units")}
    for item in index.items("pools"):
        table, source = cast(Pool, item.table), index.source_of(item.table)
        if not table.targets and not table.units:
            raise source.wrong("targets", "and units are both missing; a pool names at least one target or unit.")
        home = index.share(item, "file_system")[0]
        named = [*index.share(item, "targets"), *(one for unit in index.share(item, "units") for one in units[unit])]
        for target in named:
            where = index.share(index.item(target), "file_system")
            if where and where[0] != home:
                raise source.wrong("targets", f'include "{target}", which is part of {where[0]}, not of {home}.')


def _file_systems(index: Index) -> None:
    with_targets = {name for item in index.items("targets") for name in index.share(item, "file_system")}
    for source in _tables(index, "file_systems"):
        table = cast(FileSystem, source.table)
        for name in index.ids_of(table):
            if table.device and name in with_targets:
                raise source.wrong("device", "is given, but targets name this file system too; keep one of them.")
        count = table.stripe.count if table.stripe is not None else None
        if count is not None and (count.value != int(count.value) or not (count.value == -1 or count.value >= 1)):
            raise source.wrong("stripe.count", f"is {count.text}; write -1 for all targets, or a whole number from 1.")


def _mounts(index: Index) -> None:
    for source in _tables(index, "mounts"):
        table = cast(Mount, source.table)
        if table.via and table.through in ("native", "local"):
            raise source.wrong(
                "via", f'names forwarders, but through is "{table.through}"; write through = "dvs" or "nfs".'
            )


_RULES: Sequence[Callable[[Index], None]] = (
    check_addresses, check_routers, _geometry, _spares, _once, _circles, _sizes, _slices, _overlaps, _volumes, _targets,
    _servers, _pools, _file_systems, _mounts,
)  # fmt: skip
