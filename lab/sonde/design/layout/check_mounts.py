# SPDX-License-Identifier: Apache-2.0
"""Checks how a file system is mounted: its options, its stripe, and whether its device is one path of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import KIB
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.model.units import format_bytes

_SECTOR = 512
_TIB = 1 << 40
_COSTLY_OPTIONS = {
    "sync": ("every write waits for the disk", "mount it without sync"),
    "dirsync": ("every change of a directory waits for the disk", "mount it without dirsync"),
    "wsync": ("every create and removal waits for the disk", "mount it without wsync"),
    "noalign": ("allocations ignore the stripe", "mount it without noalign"),
    "nobarrier": ("a power failure may lose acknowledged writes; new kernels refuse it", "mount it without it"),
    "data=journal": ("everything is written twice", "mount it with data=ordered"),
    "data=writeback": ("after a crash files may hold old data of others", "mount it with data=ordered"),
    "norecovery": ("its journal is not replayed: files may be damaged or missing", "mount it without norecovery"),
    "journal_async_commit": ("a crash may leave files damaged: the commit is not ordered", "mount it without it"),
    "noload": ("its journal is not replayed: files may be damaged or missing", "mount it without noload"),
    "localflock": ("locks hold on one node only: programs on other nodes do not see them", "mount it with flock"),
    "nodelalloc": ("every small write allocates by itself", "mount it without nodelalloc"),
    "discard": ("every delete sends a command that drives answer slowly", "use fstrim.timer instead"),
    "nouuid": (
        "XFS no longer notices that a copy with the same UUID is mounted",
        "mount it without nouuid, and give the copy another UUID (xfs_admin -U generate)",
    ),
    "noauto_da_alloc": ("after a crash files that were replaced may be empty", "mount it without noauto_da_alloc"),
    "errors=continue": ("damage spreads after an error of the file system", "mount it with errors=remount-ro"),
    "strictatime": ("every read writes", "mount it with noatime or relatime"),
}
_OPTION_SYNONYMS = {"barrier=0": "nobarrier"}
# The default of XFS.
_LOG_BUFFER = 32 * KIB
_LOG_BUFFERS = 8
_SHORTEST_COMMIT_S, _LONGEST_COMMIT_S = 5, 60
_FULL_PERCENT = 90
_SMALL_LOG_BUFFER = 64 * KIB


def find_mount_faults(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem
) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of how one file system is mounted."""
    if not file_system.options:
        return
    yield CheckedItem("mount options", file_system.location)
    for option in file_system.options:
        name = _OPTION_SYNONYMS.get(option, option)
        if name in _COSTLY_OPTIONS:
            cost, remedy = _COSTLY_OPTIONS[name]
            yield LayoutFault(
                "mount option", file_system.location, f"it is mounted with {option}", cost, remedy, (name,)
            )
    if "ro" in file_system.options and not (
        _is_mount_of_target(file_system) or _is_read_only_dataset(observed_storage, file_system)
    ):
        yield LayoutFault(
            "mounted read-only", file_system.location, "it is mounted read-only",
            "nothing can be written; after an error kernels mount a file system so",
            "look for errors of the file system and its disks in the log of the kernel, then mount it again",
        )  # fmt: skip
    if "inode32" in file_system.options and (file_system.size_bytes or 0) > _TIB:
        yield LayoutFault(
            "mount option", file_system.location,
            f"it is mounted with inode32, and has {format_bytes(file_system.size_bytes or 0)}",
            "all inodes are in the first TiB: creates wait for few groups, and it is full before the rest",
            "mount it with inode64",
        )  # fmt: skip
    yield from _check_stop(file_system)
    yield from _check_mounted_stripe(file_system)
    yield from _check_preallocation(file_system)
    yield from _check_log_buffers(file_system)
    yield from _check_log_buffer_count(file_system)
    interval = read_mount_option_number(file_system, "commit")
    if interval is not None and interval > _LONGEST_COMMIT_S:
        yield LayoutFault(
            "mount option", file_system.location, f"it is mounted with commit={interval}",
            f"a crash loses the changes of up to {interval} s, which programs did not synchronize",
            "mount it without commit=, or with at most 30",
        )  # fmt: skip
    if interval is not None and 0 < interval < _SHORTEST_COMMIT_S:
        yield LayoutFault(
            "mount option", file_system.location, f"it is mounted with commit={interval}",
            f"the journal is written every {interval} s, and gathers few changes", "mount it without commit=",
        )  # fmt: skip
    yield from _check_device(observed_storage, file_system)
    yield from _check_fill_level(observed_storage, file_system)


def _is_mount_of_target(file_system: ObservedFileSystem) -> bool:
    """Whether a server of Lustre mounts one of its targets there: the kernel shows such a mount as read-only."""
    return file_system.kind == "lustre" and any(option.startswith("svname=") for option in file_system.options)


def _is_read_only_dataset(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> bool:
    """Whether a property of ZFS makes the dataset read-only, which is a fault by itself."""
    return file_system.kind == "zfs" and any(
        pool.facts.get("readonly" if pool.location == file_system.device else f"readonly@{file_system.device}") == "on"
        for pool in observed_storage.file_systems if pool.kind == "zfs"
    )  # fmt: skip


def find_covered_mounts(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault]:
    """File systems that are hidden by another one at the same place."""
    devices: dict[str, list[str]] = {}
    for file_system in file_systems:
        if file_system.options and file_system.device:
            devices.setdefault(file_system.location, []).append(f"{file_system.device} ({file_system.kind})")
    for location, names in devices.items():
        if len(set(names)) > 1:
            yield LayoutFault(
                "mounted over", location, f"{len(names)} file systems are mounted here: {', '.join(names)}",
                "the last one hides the others, and what is written goes to it",
                "umount the one that does not belong here",
            )  # fmt: skip


def read_mount_option_number(file_system: ObservedFileSystem, option_name: str) -> int | None:
    """The number of a mount option, with k as 1024, or None."""
    for option in file_system.options:
        key, _, value = option.partition("=")
        digits = value.removesuffix("k")
        if key == option_name and digits.isdigit():
            return int(digits) * (KIB if value.endswith("k") else 1)
    return None


def _check_mounted_stripe(file_system: ObservedFileSystem) -> Iterator[LayoutFault]:
    """A stripe of the mount that is not the one in the superblock."""
    if file_system.kind == "xfs":
        sizes = [("sunit", _SECTOR, file_system.unit), ("swidth", _SECTOR, file_system.width)]
    else:
        sizes = [("stripe", file_system.block or 0, file_system.width)]
    wrong = [(name, value, value * step, stored_size, step) for name, step, stored_size in sizes
             if (value := read_mount_option_number(file_system, name)) is not None
             and stored_size and step and value * step != stored_size]  # fmt: skip
    if wrong:
        options = ",".join(f"{name}={value}" for name, value, *_ in wrong)
        stored_options = ",".join(f"{name}={stored_size // step}" for name, _, _, stored_size, step in wrong)
        yield LayoutFault(
            "mount option", file_system.location,
            f"it is mounted with {options}, a stripe of {' and '.join(format_bytes(size) for _, _, size, *_ in wrong)};"
            f" it was made with {' and '.join(format_bytes(stored_size) for *_, stored_size, _ in wrong)}",
            "allocations do not begin at stripes",
            f"mount it without {' and '.join(f'{name}=' for name, *_ in wrong)}, or with {stored_options}", ("stripe",),
        )  # fmt: skip


def _check_stop(file_system: ObservedFileSystem) -> Iterator[LayoutFault]:
    """A file system that stopped after an error, by its mount options or by what df reports of it."""
    stops = [f"mount option {option}" for option in ("shutdown", "emergency_ro") if option in file_system.options]
    stops += [f"df: {error}" for error in [file_system.facts.get("df_error", "")] if error]
    if stops:
        yield LayoutFault(
            "file system stopped", file_system.location, f"it has stopped after an error ({stops[0]})",
            "every write fails" if "emergency_ro" in stops[0] else "every request fails",
            f"look at the log of the kernel and at its disks; umount {file_system.location}, check it"
            f" ({'xfs_repair' if file_system.kind == 'xfs' else 'e2fsck'}), then mount it again",
        )  # fmt: skip


def _check_preallocation(file_system: ObservedFileSystem) -> Iterator[LayoutFault]:
    size = read_mount_option_number(file_system, "allocsize")
    if file_system.kind == "xfs" and size is not None and file_system.width and size < file_system.width:
        yield LayoutFault(
            "mount option", file_system.location,
            f"it is mounted with allocsize={format_bytes(size)}, less than a stripe of"
            f" {format_bytes(file_system.width)}",
            "files that grow at the same time are cut into short pieces in turn", "mount it without allocsize",
        )  # fmt: skip


def _check_log_buffers(file_system: ObservedFileSystem) -> Iterator[LayoutFault]:
    size = read_mount_option_number(file_system, "logbsize")
    if file_system.kind == "xfs" and size is not None and size < _LOG_BUFFER:
        yield LayoutFault(
            "mount option", file_system.location,
            f"it is mounted with logbsize={size // KIB}k: a log buffer takes {format_bytes(size)}",
            "creates and removals fill the log by small writes", "mount it with logbsize=256k",
            ("mount option logbsize",),
        )  # fmt: skip


def _check_log_buffer_count(file_system: ObservedFileSystem) -> Iterator[LayoutFault]:
    count = read_mount_option_number(file_system, "logbufs")
    if file_system.kind == "xfs" and count is not None and count < _LOG_BUFFERS:
        yield LayoutFault(
            "mount option", file_system.location, f"it is mounted with logbufs={count}; the default is {_LOG_BUFFERS}",
            "creates and removals wait until one of few log buffers is written", "mount it without logbufs",
        )  # fmt: skip


def _check_fill_level(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem
) -> Iterator[LayoutFault | CheckedItem]:
    """How full a file system is, as lsblk prints it for its device."""
    name = file_system.device.rsplit("/", 1)[-1]
    for disk in observed_storage.disks.values():
        used = disk.settings.get("used_percent", "")
        if not name or name not in (disk.name, disk.settings.get("name")) or not used.isdigit():
            continue
        yield CheckedItem("the used part of a file system", file_system.location)
        if int(used) > _FULL_PERCENT:
            yield LayoutFault(
                "too full", file_system.location, f"{used} % of it are used",
                "files are written in pieces, and soon writes fail", "remove or move files, or grow it",
            )  # fmt: skip


def _check_device(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> Iterator[LayoutFault]:
    name = file_system.device.rsplit("/", 1)[-1]
    for disk in observed_storage.disks.values():
        if name and disk.kind == "multipath" and name in {path.name for path in disk.paths}:
            device = disk.settings.get("name") or disk.name
            yield LayoutFault(
                "mounted on one path", file_system.location,
                f"its device {name} is one path of {device}, which has {len(disk.paths)}",
                "it stops when this path fails, and the other paths carry nothing",
                f"mount /dev/mapper/{device}, and filter its paths in lvm.conf where LVM is used",
            )  # fmt: skip
