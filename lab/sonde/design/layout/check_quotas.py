# SPDX-License-Identifier: Apache-2.0
"""Compares quotas in lines of /etc/fstab with those of mounted XFS, which a remount neither turns on nor off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import FstabEntry, ObservedFileSystem, ObservedStorage

# Options of mount(8) for XFS -> whose space is counted. The kernel prints usrquota or uqnoenforce and the like.
_OPTIONS = {
    **dict.fromkeys(("quota", "uquota", "usrquota", "uqnoenforce", "qnoenforce"), "users"),
    **dict.fromkeys(("gquota", "grpquota", "gqnoenforce"), "groups"),
    **dict.fromkeys(("pquota", "prjquota", "pqnoenforce"), "projects"),
}


def find_quota_differences(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Mounted XFS that counts the space of others than its line of fstab says. The kernel always prints quotas of XFS,
    as noquota where there are none; those of the root file system are set on the command line of the kernel."""
    mounts = {each.location: each for each in observed_storage.file_systems if each.options and each.kind == "xfs"}
    for entry in observed_storage.fstab:
        mount = mounts.get(entry.mount_point)
        if mount is None or entry.kind != "xfs" or entry.mount_point == "/":
            continue
        if "noquota" in mount.options or _list_owners(mount.options):
            yield CheckedItem("the quotas in fstab", entry.mount_point)
            yield from _compare_quotas(entry, mount)


def _list_owners(options: Sequence[str]) -> list[str]:
    return sorted({_OPTIONS[option] for option in options if option in _OPTIONS})


def _compare_quotas(entry: FstabEntry, mount: ObservedFileSystem) -> Iterator[LayoutFault]:
    planned, current = _list_owners(entry.options), _list_owners(mount.options)
    if absent := [owner for owner in planned if owner not in current]:
        yield LayoutFault(
            "mount differs from fstab", entry.mount_point,
            f"it is mounted without quotas of {' and '.join(absent)}; fstab has them",
            "their space is not counted, and no limit holds",
            f"umount {entry.mount_point}, then mount it: a remount does not turn quotas of XFS on", ("quota",),
        )  # fmt: skip
    elif lost := [owner for owner in current if owner not in planned]:
        yield LayoutFault(
            "fstab differs from the mount", entry.mount_point,
            f"it is mounted with quotas of {' and '.join(lost)}; fstab has none of them",
            "after the next start of the machine no limit holds",
            "write them into fstab (uquota, gquota, pquota)", ("quota",),
        )  # fmt: skip
