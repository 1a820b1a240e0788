# SPDX-License-Identifier: Apache-2.0
"""Compares lines of /etc/fstab with mounts: those of clients of Lustre, and the devices that options name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_fstab_sources import find_lasting_name, list_named_devices
from sonde.design.layout.check_quotas import find_quota_differences
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import FstabEntry, ObservedDisk, ObservedFileSystem, ObservedStorage

# Options of a client of Lustre that exclude each other, with the cost of a mount that has one instead of that in fstab.
# Mounts with localflock and ro are faults by themselves.
_CLIENT_OPTIONS = (
    {
        "flock": "after the next mount flock() fails, or holds on one node only",
        "noflock": "flock() fails: MPI-IO, databases and builds end with an error",
    },
    {
        "user_xattr": "after the next mount programs cannot use attributes of users",
        "nouser_xattr": "programs cannot use attributes of users",
    },
    {"rw": "programs can change what fstab protects"},
)
_LOCAL_KINDS = ("xfs", "ext2", "ext3", "ext4", "btrfs")
_NID_PATTERN = re.compile(r"[0-9a-fx.]+@\w+")
_OTHER_CLIENT_OPTIONS = {"flock": ("localflock",), "rw": ("ro",)}
_DEVICE_OPTIONS = ("logdev", "rtdev", "journal_path")
_MD_PATTERN = re.compile(r"/dev/(md(\d+))(?:p\d+)?")
_FIRST_AUTOMATIC_NUMBER = 100  # mdadm counts down from 127 for arrays that no line of mdadm.conf numbers


def find_mount_differences(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Clients of Lustre that are mounted in another way than by fstab, and devices in options of fstab that are other
    ones or have names that change."""
    yield from _compare_target_lines(observed_storage)
    yield from find_quota_differences(observed_storage)
    yield from _find_unmounted_lines(observed_storage)
    mounts = {each.location: each for each in observed_storage.file_systems if each.options}
    for entry in observed_storage.fstab if mounts else ():
        mount = mounts.get(entry.mount_point)
        if entry.kind == "lustre" and ":/" in entry.source:
            yield from _compare_client(entry, mount)
        for option in entry.options:
            name, _, path = option.partition("=")
            if name in _DEVICE_OPTIONS and path.startswith("/dev/"):
                yield CheckedItem("the devices in options of fstab", entry.mount_point)
                yield from _check_device(observed_storage, entry.mount_point, option, mount)


def _find_unmounted_lines(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Lines of local file systems whose device is there, and that are not mounted, where all mounts are shown."""
    mounts = {each.location: each for each in observed_storage.file_systems if each.options}
    for entry in observed_storage.fstab if "/" in mounts else ():
        devices = list_named_devices(observed_storage, entry.source)
        is_automatic = not {"noauto", "user", "users"} & set(entry.options) and not any(
            "automount" in option for option in entry.options
        )
        if entry.kind not in _LOCAL_KINDS or not entry.mount_point.startswith("/") or not devices or not is_automatic:
            continue
        yield CheckedItem("the mount of a line of fstab", entry.mount_point)
        names = {disk.name for disk in devices} | {disk.settings.get("name", "") for disk in devices}
        elsewhere = [each.location for each in mounts.values() if each.device.rpartition("/")[2] in names - {""}]
        if entry.mount_point not in mounts:
            suffix = f"; it is mounted at {', '.join(elsewhere)}" if elsewhere else ""
            yield LayoutFault(
                "not mounted", entry.mount_point,
                f"fstab mounts {entry.source} there, which is {devices[0].name}, but nothing is mounted there{suffix}",
                f"programs that write to {entry.mount_point} write to the file system below it",
                f"look at the log of the kernel, move away what was written to {entry.mount_point}, then mount it",
                ("mounted",),
            )  # fmt: skip


def is_target_line(entry: FstabEntry) -> bool:
    """Whether a line of fstab mounts a target of Lustre, not a client."""
    return entry.kind == "lustre" and ":/" not in entry.source


def _compare_target_lines(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Targets that a start of the server mounts, while the lines of most others like them have noauto."""
    groups: dict[str, list[FstabEntry]] = {}
    for entry in observed_storage.fstab:
        if is_target_line(entry):
            groups.setdefault(re.sub(r"\d+", "*", entry.mount_point), []).append(entry)
    for entries in groups.values():
        automatic = [entry for entry in entries if "noauto" not in entry.options]
        yield CheckedItem("the lines of targets in fstab", ", ".join(entry.mount_point for entry in entries))
        for entry in automatic if 2 * len(automatic) <= len(entries) else ():
            others = len(entries) - len(automatic)
            yield LayoutFault(
                "target mounted at a start", entry.mount_point,
                f"its line of fstab has no noauto; {others} of {len(entries)} targets of this server have it",
                "the start of the server mounts it, also while its failover server has it mounted: two servers that"
                " write to one target destroy it, if mmp does not prevent it",
                f"write noauto into the line of {entry.source}, so that the cluster manager or an administrator mounts"
                " it", ("noauto",),
            )  # fmt: skip


def _compare_client(entry: FstabEntry, mount: ObservedFileSystem | None) -> Iterator[LayoutFault | CheckedItem]:
    yield CheckedItem("the client in fstab", entry.mount_point)
    is_automatic = "noauto" in entry.options or any("automount" in option for option in entry.options)
    if mount is None or mount.kind != "lustre":
        if not is_automatic:
            yield LayoutFault(
                "not mounted", entry.mount_point, f"fstab mounts {entry.source} there, but it is not mounted",
                f"programs that write to {entry.mount_point} write to the file system below it",
                f"look at the log of the kernel and lctl ping, then mount {entry.mount_point}",
            )  # fmt: skip
        return
    sources = [re.split(r"[,:]", source.rpartition(":/")[0]) for source in (entry.source, mount.device)]
    are_numbers = all(_NID_PATTERN.fullmatch(address) for addresses in sources for address in addresses)
    if are_numbers and set(sources[0]) != set(sources[1]):
        yield LayoutFault(
            "fstab differs from the mount", entry.mount_point,
            f"fstab mounts it from {entry.source}; it is mounted from {mount.device}",
            "after the next start of the machine it knows other management servers: it cannot mount, or does not learn"
            " of changes, while those are down",
            f"write {mount.device} into fstab, if all of its addresses are those of management servers",
            ("management",),
        )  # fmt: skip
    for group in _CLIENT_OPTIONS:
        planned = [option for option in entry.options if option in group or option in _OTHER_CLIENT_OPTIONS.get(
            next(iter(group)), ())]  # fmt: skip
        current = [option for option in mount.options if option in group]
        if planned and current and planned[-1] != current[-1]:
            yield LayoutFault(
                "mount differs from fstab", entry.mount_point,
                f"it is mounted with {current[-1]}; fstab says {planned[-1]}",
                group[current[-1]],
                f"umount {entry.mount_point}, then mount {entry.mount_point} without further options", (planned[-1],),
            )  # fmt: skip


def _check_device(
    observed_storage: ObservedStorage, mount_point: str, option: str, mount: ObservedFileSystem | None
) -> Iterator[LayoutFault]:
    """The device of an option of fstab against that of the mount, and whether its name lasts."""
    name, _, path = option.partition("=")
    disk = _find_disk(observed_storage, path)
    mounted = next((each.partition("=")[2] for each in (mount.options if mount else ()) if each.startswith(f"{name}=")),
                   "")  # fmt: skip
    mounted_disk = _find_disk(observed_storage, mounted) if mounted else None
    if disk is not None and mounted_disk is not None and disk.name != mounted_disk.name:
        yield LayoutFault(
            "fstab differs from the mount", mount_point,
            f"fstab has {option}, which is {disk.name}; it is mounted with {mounted} ({mounted_disk.name})",
            "after the next start of the machine it is not mounted: its log is elsewhere",
            f"write {name}={find_lasting_name(mounted_disk) or mounted} into fstab", (name,),
        )  # fmt: skip
    elif _has_passing_name(observed_storage, path, disk):
        lasting = find_lasting_name(disk) if disk is not None else ""
        yield LayoutFault(
            "name of a device may change", mount_point,
            f"fstab has {option}: the kernel numbers devices in the order in which it meets them",
            "after a start of the machine it may be another device, and the file system is not mounted",
            f"write {name}={lasting or 'a link below /dev/disk/by-id'} into fstab", (name,),
        )  # fmt: skip


def _find_disk(observed_storage: ObservedStorage, path: str) -> ObservedDisk | None:
    return next(iter(list_named_devices(observed_storage, path)), None)


def _has_passing_name(observed_storage: ObservedStorage, path: str, disk: ObservedDisk | None) -> bool:
    """Whether the kernel may give a path to another device at the next start. A line of mdadm.conf may fix the number
    of an array, and the only NVMe drive has the first number."""
    if match := _MD_PATTERN.fullmatch(path):
        array = observed_storage.disks.get(match[1])
        configured = array.settings.get("configured_device", "") if array is not None else ""
        return configured not in ("", f"/dev/{match[1]}") or (
            not configured and int(match[2]) >= _FIRST_AUTOMATIC_NUMBER
        )
    if re.fullmatch(r"/dev/nvme\d+n\d+(?:p\d+)?", path):
        return len({name for name in observed_storage.disks if re.fullmatch(r"nvme\d+n\d+", name)}) > 1
    return re.fullmatch(r"/dev/(?:sd[a-z]+\d*|dm-\d+)", path) is not None
