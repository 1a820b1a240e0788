# SPDX-License-Identifier: Apache-2.0
"""Observed storage: file systems, block devices, paths, and what could not be observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class ObservedPath:
    """One path to a disk. `blocks_read` and `blocks_written` count since the machine was started; None is unknown."""

    name: str
    preferred: bool | None
    active: bool | None
    blocks_read: int | None = None
    blocks_written: int | None = None
    errors: int | None = None
    state: str = ""
    group: int | None = None  # number of its path group
    priority: int | None = None  # of its path group
    adapter: str = ""  # number of the SCSI host
    port: str = ""  # host, channel and target as in 1:0:0: one port of the array, as the adapter sees it


@dataclass(frozen=True)
class ObservedVdev:
    """One vdev of a ZFS pool, or a drive in one. `use` is logs, cache, spares, special, dedup or "" for data."""

    name: str
    kind: str  # mirror, raidz2, drive, …
    use: str
    parent: str
    state: str
    read_errors: int = 0
    write_errors: int = 0
    checksum_errors: int = 0
    note: str = ""  # what zpool status prints after the counts
    group: str = ""  # the replacing or spare group of a drive inside of its parent: together they are one member


@dataclass(frozen=True)
class VolumeSegment:
    """One segment of a volume of LVM or of a mapped device. `kind` is linear, striped, snapshot, …; `unit` and `size`
    in bytes. None is unknown."""

    kind: str
    stripes: int | None
    unit: int | None
    members: tuple[str, ...]
    size: int | None = None


@dataclass(frozen=True)
class ObservedDisk:
    """A block device: disk, partition, md array, logical volume, multipath, or a LUN or slice of a listing.

    Sizes in bytes. `unit` is the size on one member before the next, `data` the number of members that hold data;
    `queue` holds values of /sys/block/…/queue by their names there.
    """

    name: str
    kind: str = "disk"  # disk, part, md, lvm, multipath, loop, other
    size: int | None = None
    start: int | None = None  # of a partition
    on: str = ""  # of a partition: its disk
    members: tuple[str, ...] = ()
    member_sizes: tuple[int, ...] = ()
    level: str = ""
    geometry: str = ""  # 8+1, 4x2, where it is known
    data: int | None = None
    unit: int | None = None
    state: str = ""
    queue: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)  # md: stripe_cache_size, sync_action, degraded
    paths: tuple[ObservedPath, ...] = ()
    segments: tuple[VolumeSegment, ...] = ()  # of a volume, in order
    flash: bool | None = None
    queue_depth: int | None = None
    origin: str = ""

    @property
    def full_stripe_bytes(self) -> int | None:
        """Bytes that use every data member once, or None."""
        return self.unit * self.data if self.unit and self.data else None


@dataclass(frozen=True)
class ObservedFileSystem:
    """The parameters of a file system. `unit`, `width` and `log` in bytes; 0 is "none", None is unknown."""

    location: str
    kind: str
    device: str = ""
    block: int | None = None
    blocks: int | None = None
    unit: int | None = None
    width: int | None = None
    group_count: int | None = None
    group_blocks: int | None = None
    log: int | None = None
    log_device: str | None = None  # "internal", a device, or None when unknown
    options: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)  # of Lustre and ZFS: stripe_count, ashift, …
    vdevs: tuple[ObservedVdev, ...] = ()
    uuid: str = ""
    origin: str = ""

    def list_vdev_members(self, vdev_name: str) -> list[ObservedVdev]:
        """The members of a vdev; a drive and the one that replaces it count once, as their group."""
        return [vdev for vdev in self.vdevs if vdev.parent == vdev_name and not vdev.group]

    @property
    def size_bytes(self) -> int | None:
        """Bytes of its data blocks."""
        return self.block * self.blocks if self.block and self.blocks else None


@dataclass(frozen=True)
class FileExtents:
    """The extents of a file: (offset in the file, offset on the device, length), in bytes."""

    path: str
    pieces: tuple[tuple[int, int, int], ...]
    origin: str = ""


@dataclass(frozen=True)
class ObservedSlices:
    """A table of slices: (number, fraction of the disk or None, bytes or None, purpose), and its alignment."""

    name: str
    rows: tuple[tuple[int, float | None, int | None, str], ...]
    alignment: int | None
    disk: str = ""
    origin: str = ""


@dataclass(frozen=True)
class FstabEntry:
    """A line of /etc/fstab. `source` is a device, or LABEL=, UUID= and the like."""

    source: str
    mount_point: str
    kind: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class ObservedComponent:
    """A part of a server that is no block device: adapter, enclosure, service, kernel errors, …, by its kind."""

    kind: str
    name: str
    attributes: Mapping[str, str]
    origin: str = ""


@dataclass(frozen=True)
class ObservedStorage:
    """All observations. `unread` holds lines that were not parsed, `unknown` what could not be observed."""

    file_systems: tuple[ObservedFileSystem, ...] = ()
    disks: Mapping[str, ObservedDisk] = field(default_factory=dict)
    files: tuple[FileExtents, ...] = ()
    slices: tuple[ObservedSlices, ...] = ()
    unread: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    fstab: tuple[FstabEntry, ...] = ()
    date: str = ""  # when they were made, in the format of ISO 8601
    components: tuple[ObservedComponent, ...] = ()

    def iterate_disks_below(
        self, top_disk: str, is_end: Callable[[ObservedDisk], bool] | None = None
    ) -> Iterator[ObservedDisk]:
        """The disk of that name and everything that it consists of, top down, each once; what is below disks for which
        `is_end` is true is left out."""
        pending, done = [top_disk], set[str]()
        while pending:
            disk_name = pending.pop(0)
            if disk_name in done or disk_name not in self.disks:
                continue
            done.add(disk_name)
            disk = self.disks[disk_name]
            yield disk
            if is_end is None or not is_end(disk):
                pending += [disk.on] * bool(disk.on)
                pending += disk.members


def merge_observations(first: ObservedStorage, second: ObservedStorage) -> ObservedStorage:
    """Merges two observations. For a disk in both, the second fills in what is unknown in the first."""
    disks = dict(first.disks)
    for name, disk in second.disks.items():
        disks[name] = merge_disks(disks[name], disk) if name in disks else disk
    return ObservedStorage(
        first.file_systems + second.file_systems, disks, first.files + second.files, first.slices + second.slices,
        first.unread + second.unread, tuple(dict.fromkeys(first.unknown + second.unknown)),
        first.fstab + second.fstab, first.date or second.date, first.components + second.components,
    )  # fmt: skip


def merge_disks(disk: ObservedDisk, other: ObservedDisk) -> ObservedDisk:
    """One disk from two observations of it; the first counts where both are known."""
    empty = ObservedDisk("")
    additions = {name: getattr(other, name) for name in disk.__dataclass_fields__
            if getattr(disk, name) == getattr(empty, name)}  # fmt: skip
    if disk.kind == "other" and other.kind != "disk":
        additions["kind"] = other.kind
    additions |= {
        "queue": {**other.queue, **disk.queue},
        "settings": {**other.settings, **disk.settings},
        "name": disk.name,
    }
    return replace(disk, **additions)
