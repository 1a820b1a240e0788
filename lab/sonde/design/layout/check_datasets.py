# SPDX-License-Identifier: Apache-2.0
"""Checks the datasets of ZFS pools against each other: two that are mounted at one mount point, and those that are not
mounted although their siblings are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem

# With fewer mounted siblings it is not known what is usual.
_MIN_MOUNTED = 2
_BOOT_PATTERN = re.compile(r"/(?:boot(?:/.*)?)?")  # boot environments are mounted one at a time


def find_dataset_faults(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """Datasets of all pools with one mount point, and those that are not mounted next to others that are. Those that
    are only parents of others (canmount=off) are not mounted."""
    for pool in file_systems:
        if pool.kind == "zfs":
            yield from _find_unmounted_siblings(pool)
    yield from _find_mount_points_used_twice(file_systems)


def _find_unmounted_siblings(pool: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    """Datasets with canmount=noauto that are not mounted, where most datasets of their parent are."""
    families: dict[str, dict[str, Mapping[str, str]]] = {}
    for name in pool.facts:
        stem, _, dataset = name.partition("@")
        if stem == "mounted" and dataset:
            values = {key: pool.facts.get(f"{key}@{dataset}", "") for key in ("mounted", "canmount", "mountpoint")}
            families.setdefault(dataset.rpartition("/")[0], {})[dataset] = values
    for parent, datasets in families.items():
        mounted = [name for name, values in datasets.items() if values["mounted"] == "yes"]
        waiting = [name for name, values in datasets.items() if values["mounted"] == "no"
                   and values["canmount"] == "noauto" and values["mountpoint"].startswith("/")
                   and not _BOOT_PATTERN.fullmatch(values["mountpoint"])]  # fmt: skip
        if len(mounted) < _MIN_MOUNTED:
            continue
        yield CheckedItem("mounts of datasets", parent)
        peers_text = f"{len(mounted)} of {len(datasets)} datasets of {parent} are"
        for name in waiting if 2 * len(waiting) <= len(mounted) else ():
            yield LayoutFault(
                "not mounted", name,
                f"canmount is noauto, and it is not mounted; {peers_text}",
                f"programs that use {datasets[name]['mountpoint']} use the file system below it",
                f"zfs set canmount=on {name}, then zfs mount {name}, unless a cluster or a unit of systemd mounts it",
                ("mounted",),
            )  # fmt: skip


def _find_mount_points_used_twice(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    datasets: dict[str, list[tuple[str, str]]] = {}
    for pool in file_systems:
        for name, value in pool.facts.items() if pool.kind == "zfs" else ():
            stem, _, dataset = name.partition("@")
            if stem == "mountpoint" and value.startswith("/"):
                suffix = f"@{dataset}" if dataset else ""
                can_mount, mounted = (pool.facts.get(f"{each}{suffix}", "") for each in ("canmount", "mounted"))
                if can_mount == "on" or (not can_mount and mounted in ("yes", "no")):
                    datasets.setdefault(value, []).append((dataset or pool.location, mounted))
    for mount_point, states in datasets.items():
        names = [name for name, _ in states]
        unmounted = [name for name, mounted in states if mounted == "no"]
        yield CheckedItem("the mount point of a dataset", names[0])
        if len(names) > 1 and len(unmounted) < len(names):
            # the last one where all are mounted
            moved = unmounted[0] if unmounted else names[-1]
            state_text = f"; {' and '.join(unmounted)} {'is' if len(unmounted) == 1 else 'are'} not mounted"
            yield LayoutFault(
                "mount point twice", ", ".join(names),
                f"they have the same mount point, {mount_point}{state_text * bool(unmounted)}",
                "the last one that is mounted hides the files of the others, and the order of a start decides which",
                f"zfs inherit mountpoint {moved} or zfs set mountpoint, and look in which of them the files are; do not"
                " zfs mount -a before", ("mountpoint",), (*names, mount_point),
            )  # fmt: skip
