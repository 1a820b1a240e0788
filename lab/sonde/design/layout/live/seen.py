# SPDX-License-Identifier: Apache-2.0
"""What was seen of storage: file systems, block devices, paths, and what could not be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class SeenPath:
    """One way to a disk. `blocks_read` and `blocks_written` count since the machine was started; None is unknown."""

    name: str
    preferred: bool | None
    active: bool | None
    blocks_read: int | None = None
    blocks_written: int | None = None
    errors: int | None = None
    state: str = ""


@dataclass(frozen=True)
class SeenDisk:
    """A block device: disk, partition, md array, logical volume, multipath, or a LUN or slice of a listing.

    Sizes in bytes. `unit` is what lies on one member before the next, `data` how many members hold data; `queue` has
    numbers and words of /sys/block/…/queue by their names there.
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
    paths: tuple[SeenPath, ...] = ()
    flash: bool | None = None
    queue_depth: int | None = None
    origin: str = ""

    @property
    def stripe(self) -> int | None:
        """Bytes that use every data member once, or None."""
        return self.unit * self.data if self.unit and self.data else None


@dataclass(frozen=True)
class SeenFileSystem:
    """A file system as it was made. `unit`, `width` and `log` in bytes; 0 is "none", None is unknown."""

    where: str
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
    origin: str = ""

    @property
    def size(self) -> int | None:
        """Bytes of its data blocks."""
        return self.block * self.blocks if self.block and self.blocks else None


@dataclass(frozen=True)
class Extents:
    """Where a file lies: (offset in the file, place on the device, length) of each piece, in bytes."""

    path: str
    pieces: tuple[tuple[int, int, int], ...]
    origin: str = ""


@dataclass(frozen=True)
class Slices:
    """A table of slices: (number, share of the whole or None, bytes or None, what it is for), and its alignment."""

    name: str
    rows: tuple[tuple[int, float | None, int | None, str], ...]
    modulo: int | None
    disk: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Seen:
    """Everything that was seen. `unread` are lines that were not understood, `unknown` what could not be looked at."""

    file_systems: tuple[SeenFileSystem, ...] = ()
    disks: Mapping[str, SeenDisk] = field(default_factory=dict)
    files: tuple[Extents, ...] = ()
    slices: tuple[Slices, ...] = ()
    unread: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def beneath(self, name: str) -> Iterator[SeenDisk]:
        """The disk of that name and everything that it is made of, from above, each once."""
        left, found = [name], set[str]()
        while left:
            one = left.pop(0)
            if one in found or one not in self.disks:
                continue
            found.add(one)
            disk = self.disks[one]
            yield disk
            left += [disk.on] * bool(disk.on)
            left += disk.members


def merged(first: Seen, second: Seen) -> Seen:
    """Both together; what two say of one disk is joined, the later filling what the earlier did not know."""
    disks = dict(first.disks)
    for name, disk in second.disks.items():
        disks[name] = _joined(disks[name], disk) if name in disks else disk
    return Seen(
        first.file_systems + second.file_systems, disks, first.files + second.files, first.slices + second.slices,
        first.unread + second.unread, tuple(dict.fromkeys(first.unknown + second.unknown)),
    )  # fmt: skip


def _joined(one: SeenDisk, other: SeenDisk) -> SeenDisk:
    empty = SeenDisk("")
    told = {name: getattr(other, name) for name in one.__dataclass_fields__
            if getattr(one, name) == getattr(empty, name)}  # fmt: skip
    told |= {"queue": {**other.queue, **one.queue}, "settings": {**other.settings, **one.settings}, "name": one.name}
    return replace(one, **told)
