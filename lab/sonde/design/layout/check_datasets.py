# SPDX-License-Identifier: Apache-2.0
"""Checks the datasets of ZFS pools against each other: two that are mounted at one mount point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem


def find_dataset_faults(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """Datasets of all pools with one mount point. Those that are only parents of others (canmount=off) are not
    mounted."""
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
