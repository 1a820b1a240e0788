# SPDX-License-Identifier: Apache-2.0
"""Compares what hosts of a pair see without a plan: LUNs and drives that one of them lacks, and maps of one name that
are different LUNs on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_shared_arrays import compare_members
from sonde.design.layout.device_identity import describe_device
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

# Names that multipath gives by itself, in the order in which it finds LUNs.
_AUTOMATIC_NAME_PATTERN = re.compile(r"mpath[a-z]+|[0-9a-fA-F]{17,}")


def find_differences_of_luns(
    storage_by_host: Mapping[str, ObservedStorage],
    maps_by_host: Mapping[str, Mapping[str, ObservedDisk]],
    hosts: Sequence[str],
) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of the LUNs of hosts that mostly see the same ones; `maps_by_host` are their maps by WWID."""
    yield CheckedItem("the LUNs and names of maps of hosts with the same LUNs", ", ".join(hosts))
    shared = set.intersection(*(set(maps_by_host[host]) for host in hosts))
    sizes = {maps_by_host[hosts[0]][identity].size for identity in shared}
    for host in hosts:
        for other in hosts:
            lacking = [disk for identity, disk in maps_by_host[other].items() if identity not in maps_by_host[host]]
            names = [name for disk in lacking if _is_for_host(storage_by_host[host], disk, sizes)
                     for name in [disk.settings.get("name") or disk.name]]  # fmt: skip
            if names:
                yield _report_invisible_luns(host, other, names, len(shared))
    yield from _compare_names(maps_by_host, hosts, shared)


def _is_for_host(storage: ObservedStorage, disk: ObservedDisk, sizes: set[int | None]) -> bool:
    """Whether a host needs a LUN that it does not see: its fstab names it, or the LUN is like the common ones."""
    path = f"/dev/mapper/{disk.settings.get('name', '')}"
    return any(entry.source == path for entry in storage.fstab) or (disk.size is not None and disk.size in sizes)


def _report_invisible_luns(host: str, other: str, names: Sequence[str], shared_count: int) -> LayoutFault:
    paths = tuple(f"/dev/mapper/{name}" for name in names)
    return LayoutFault(
        "device not visible", host,
        f"it does not see {join_first_names(names)}, which {other} sees; both see {shared_count} other LUNs",
        "what is on it cannot be started there after a failure of its server",
        f"look at the host mapping of the array and at the zoning of {host}, then rescan",
        parts=tuple(f"{host}: {path}" for path in paths), devices=paths, hosts=(host,),
    )  # fmt: skip


def _compare_names(
    maps_by_host: Mapping[str, Mapping[str, ObservedDisk]], hosts: Sequence[str], shared: set[str]
) -> Iterator[LayoutFault]:
    """Names that two hosts give to different LUNs. Automatic names of multipath differ from host to host."""
    first = hosts[0]
    for host in hosts[1:]:
        names = {each: {identity: maps_by_host[each][identity].settings.get("name", "") for identity in sorted(shared)}
                 for each in (first, host)}  # fmt: skip
        moved = [identity for identity, name in names[host].items()
                 if name != names[first][identity] and name in names[first].values()
                 and not _AUTOMATIC_NAME_PATTERN.fullmatch(name)]  # fmt: skip
        if moved:
            texts = [f"{names[host][identity]} is the LUN {identity} on {host}, which is {names[first][identity]} on"
                     f" {first}" for identity in moved]  # fmt: skip
            yield LayoutFault(
                "names of maps differ", f"{first}, {host}", join_first_names(texts, 2),
                "a mount by this name starts another target or file system after a failover",
                "compare the WWIDs in multipath.conf (multipaths) of both with the array, correct the aliases on the"
                " host that has them wrong, and multipathd reconfigure while nothing of it is mounted there",
                ("device",), tuple(f"{host}: {maps_by_host[host][identity].name}" for identity in moved),
            )  # fmt: skip


def find_invisible_members(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault]:
    """Drives of an array that another host does not see, although it sees the other members."""
    for host, running in storage_by_host.items():
        for array in running.disks.values():
            for other, storage in storage_by_host.items():
                if other == host or array.kind != "md" or not array.members:
                    continue
                view = compare_members(storage, running, array, host)
                if view.visible_count > len(view.missing) > 0:
                    name = array.name
                    missing = join_first_names([describe_device(running.disks[each]) if each in running.disks else each
                                                for each in view.missing])  # fmt: skip
                    yield LayoutFault(
                        "device not visible", f"{other}: {name}",
                        f"{other} sees {view.visible_count} of the {view.visible_count + len(view.missing)} members of"
                        f" {name}, which {host} runs; it does not see {missing}",
                        "after a failure of its server it starts there degraded, or not at all",
                        "look at the cables of the enclosure and at zoning, then rescan the host",
                        parts=(f"{host}: {array.name}",), devices=tuple(view.missing), hosts=(other,),
                    )  # fmt: skip
