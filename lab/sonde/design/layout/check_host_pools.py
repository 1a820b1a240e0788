# SPDX-License-Identifier: Apache-2.0
"""Compares the ZFS pools of all hosts, and finds pools that two hosts can import at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_dataset_peers import find_dataset_differences
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage


def find_pool_differences(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Properties in which pools and datasets of several hosts differ that only numbers distinguish."""
    pools = _list_pools(storage_by_host)
    if len({host for host, _ in pools}) > 1:
        yield from find_dataset_differences([_add_host(host, pool) for host, pool in pools])


def find_unprotected_pools(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Pools without multihost whose drives other hosts see, which may import them at the same time."""
    unprotected: dict[tuple[str, str], list[str]] = {}
    for host, pool in _list_pools(storage_by_host):
        if multihost := pool.facts.get("multihost"):
            yield CheckedItem("protection of a pool against a second import", f"{host}: {pool.location}")
            others = ", ".join(_list_hosts_with_drives(storage_by_host, host, pool)) if multihost == "off" else ""
            if others:
                unprotected.setdefault((host, others), []).append(pool.location)
    for (host, others), names in unprotected.items():
        yield LayoutFault(
            "no protection against two imports", ", ".join(f"{host}: {name}" for name in names),
            f"multihost is off, and {others} sees the drives",
            "a second server that imports a pool while the first one uses it destroys it",
            f"zpool set multihost=on {names[0]}, with another /etc/hostid on each server (zgenhostid)",
            ("multihost",), tuple(f"{host}: {name}" for name in names),
        )  # fmt: skip


def _list_pools(storage_by_host: Mapping[str, ObservedStorage]) -> list[tuple[str, ObservedFileSystem]]:
    return [(host, each) for host, storage in storage_by_host.items() for each in storage.file_systems
            if each.kind == "zfs"]  # fmt: skip


def _add_host(host: str, pool: ObservedFileSystem) -> ObservedFileSystem:
    """A pool with the name of its host before its own and before those of its datasets."""
    facts = {}
    for key, value in pool.facts.items():
        name, separator, dataset = key.partition("@")
        facts[f"{name}@{host}: {dataset}" if separator else name] = value
    return replace(pool, location=f"{host}: {pool.location}", facts=facts)


def _list_hosts_with_drives(
    storage_by_host: Mapping[str, ObservedStorage], host: str, pool: ObservedFileSystem
) -> list[str]:
    """The other hosts that see drives of a pool."""
    storage = storage_by_host[host]
    drives = [find_vdev_disk(storage, vdev.name) for vdev in pool.vdevs if vdev.kind == "drive"]
    identities = {identity for disk in drives if (identity := read_identity(disk, storage.disks))}
    return [name for name, other in storage_by_host.items() if name != host
            and identities & {read_identity(disk, other.disks) for disk in other.disks.values()}]  # fmt: skip
