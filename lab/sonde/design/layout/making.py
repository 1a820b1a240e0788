# SPDX-License-Identifier: Apache-2.0
"""The commands that make what is planned: arrays, partitions, volumes, file systems, and how they are mounted."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sonde.design.layout import xfs
from sonde.design.layout.devices import Devices, lvm
from sonde.design.layout.geometry import KIB, MIB
from sonde.design.layout.laid import Laid
from sonde.design.layout.stores import Store, starts_on
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.storage import Drive, RaidGroup, Slice, Volume

# Read-ahead covers this many full widths, at least this many bytes.
_WIDTHS_AHEAD, _LEAST_AHEAD = 2, 4 * MIB
# Largest request that is worth it: one full stripe, but no more than Linux takes without a special driver.
_LARGEST_REQUEST = 16 * MIB


def array(group: Store, devices: Devices, spares: tuple[str, ...]) -> str:
    """mdadm for one RAID group of drives. Raises UserError for a geometry that md does not have."""
    table, geometry = group.table, group.geometry
    assert isinstance(table, RaidGroup)
    assert geometry is not None
    if geometry.parity > 2:
        raise UserError(f"{group.id} has {geometry.parity} parity drives; md has two at most: write a RAID of level 6.")
    name = devices.of(group.id)
    short = name.rsplit("/", 1)[-1]
    words = [f"mdadm --create {name} --name={short} --metadata=1.2 --run --level={geometry.level}"]
    words.append(f"--raid-devices={geometry.drives}")
    if group.unit and geometry.level != "1":
        words.append(f"--chunk={group.unit // KIB}K")
    if geometry.level == "10":
        words.append(f"--layout=n{geometry.copies}")
    if geometry.failures:
        words.append("--bitmap=internal")
    if spares:
        words.append(f"--spare-devices={len(spares)}")
    ends = " ".join(devices.of(one) for one in spares)
    return " ".join([*words, devices.all(group.members), *([ends] if ends else [])])


def partitions(system: System, disk: str, devices: Devices) -> Iterator[str]:
    """sgdisk for all slices of one disk, in KiB, which is right for any size of sector. Raises UserError."""
    name = devices.of(disk)
    slices = [item for item in system.items("slices") if disk in system.references(item.id, "on")]
    starts = starts_on(system, disk)
    tables = [one.table for one in slices if isinstance(one.table, Slice)]
    step = math.lcm(*(int(one.alignment) for one in tables if one.alignment is not None))
    words = [f"sgdisk --clear --set-alignment={max(MIB, step) // 512}"]
    for item in slices:
        table, size = item.table, system.capacity_of(item.id)
        assert isinstance(table, Slice)
        if item.id not in starts or size is None:
            raise UserError(f"{item.id} has no size and no place that follows from the file; give size or share.")
        number = int(table.number) + item.position if table.number is not None else slices.index(item) + 1
        words.append(f"--new={number}:{starts[item.id] // KIB}K:+{size // KIB}K --change-name={number}:{item.id}")
    yield " ".join([*words, name])
    yield f"partx --update {name} && {{ udevadm settle 2>/dev/null || true; }}"


def volume(store: Store, devices: Devices) -> Iterator[str]:
    """LVM or md for one striped volume."""
    table = store.table
    assert isinstance(table, Volume)
    name, members = devices.of(store.id), devices.all(store.members)
    unit = store.unit or MIB
    if table.kind == "zfs":
        return
    if lvm(store):
        group, _, logical = name.removeprefix("/dev/").partition("/")
        extent = max(4 * MIB, unit) // KIB
        yield f"pvcreate --dataalignment {math.lcm(unit, MIB) // KIB}k {members}"
        yield f"vgcreate --physicalextentsize {extent}k {group} {members}"
        yield (
            f"lvcreate --name {logical or store.id} --stripes {len(store.members)} --stripesize {unit // KIB}k "
            f"--extents 100%FREE {group}"
        )
    else:
        level = {"stripe": "0", "mirror": "1", "concat": "linear"}.get(table.kind, "0")
        chunk = f"--chunk={unit // KIB}K " if level == "0" else ""
        yield (
            f"mdadm --create {name} --name={name.rsplit('/', 1)[-1]} --metadata=1.2 --run --level={level} "
            f"--raid-devices={len(store.members)} {chunk}{members}"
        )


def make_file_system(laid: Laid, devices: Devices) -> str:
    """mkfs.xfs, mke2fs, mkfs.btrfs or zpool for a local file system."""
    name = devices.of(laid.store.id)
    if laid.table.kind == "xfs":
        return f"mkfs.xfs {' '.join(xfs_options(laid, devices))} {name}"
    if laid.table.kind == "ext4":
        return f"mke2fs {' '.join(ext4_options(laid))} {name}"
    if laid.table.kind == "btrfs":
        return f"mkfs.btrfs --label {laid.id} {name}"
    if laid.table.kind == "zfs":
        return _pool(laid, devices)
    return f"# {laid.id}: make a file system of kind {laid.table.kind} on {name} with its own tool"


def xfs_options(laid: Laid, devices: Devices | None = None) -> list[str]:
    """Options of mkfs.xfs, without the device."""
    data = []
    if laid.groups is not None:
        data.append(f"agsize={laid.groups.size}b")
        if getattr(laid.store.table, "usable", None) is not None:
            data.append(f"size={laid.groups.blocks}b")
    data.append(f"sunit={laid.unit // 512},swidth={laid.width // 512}" if laid.unit else "noalign")
    log = []
    if laid.log is not None and devices is not None:
        log.append(f"logdev={devices.of(laid.log.id)}")
    if laid.log_size is not None:
        log.append(f"size={laid.log_size // laid.block}b")
    unit = xfs.log_unit(laid.unit, laid.block) if laid.log is None else 0
    if unit:
        log.append(f"su={unit}")
    words = [f"-L {laid.id[:12]}", f"-b size={laid.block}", f"-d {','.join(data)}"]
    return [*words, f"-l {','.join(log)}"] if log else words


def ext4_options(laid: Laid) -> list[str]:
    """Options of mke2fs, without the device."""
    words = ["-t ext4", f"-L {laid.id[:16]}", f"-b {laid.block}"]
    if laid.unit:
        words.append(f"-E stride={laid.unit // laid.block},stripe_width={laid.width // laid.block}")
    if laid.log_size:
        words.append(f"-J size={laid.log_size // MIB}")
    if laid.table.purpose in ("scratch", "checkpoint", "archive"):
        words.append("-T largefile")
    return words


def _pool(laid: Laid, devices: Devices) -> str:
    """A pool of one vdev for each RAID group; the record is the smallest that writes full stripes of 1 MiB."""
    vdevs = []
    for group in laid.store.groups():
        geometry = group.geometry
        kind = "" if geometry is None else "mirror" if geometry.copies > 1 else f"raidz{geometry.parity}"
        kind = "" if kind == "raidz0" else kind
        if geometry is not None and geometry.copies > 1 and geometry.data > 1:
            pairs = [group.members[at :: geometry.data] for at in range(geometry.data)]
            vdevs.append(" ".join(f"mirror {devices.all(pair)}" for pair in pairs))
        else:
            vdevs.append(f"{kind} {devices.all(group.members)}".strip())
    record = "16K" if laid.table.purpose in ("root", "home", "spool", "tmp") else "1M"
    return (
        f"zpool create -o ashift=12 -O recordsize={record} -O atime=off -O xattr=sa -O compression=lz4 "
        f"-O mountpoint=none {laid.id} {' '.join(vdevs)}"
    )


def mount_options(laid: Laid, devices: Devices) -> str:
    """Options of mount(8), with commas."""
    words = ["noatime"]
    if laid.table.kind == "xfs":
        words.append("logbsize=256k")
        if laid.log is not None:
            words.append(f"logdev={devices.of(laid.log.id)}")
        if laid.unit and laid.table.purpose in ("scratch", "checkpoint", "archive"):
            words += ["largeio", "swalloc"]
    if laid.table.kind == "ext4" and laid.unit:
        words.append(f"stripe={laid.width // laid.block}")
    return ",".join(words)


def queue_settings(laid: Laid, devices: Devices) -> Iterator[tuple[str, dict[str, str]]]:
    """Device -> settings under /sys/block/…/queue/ for what a file system lies on; md has its own beside."""
    ahead = max(_LEAST_AHEAD, _WIDTHS_AHEAD * laid.width)
    top = {"queue/read_ahead_kb": str(ahead // KIB)}
    seen: set[str] = set()
    for at, one in enumerate(laid.store.walk()):
        settings: dict[str, str] = dict(top) if at == 0 else {}
        if one.kind in ("luns", "drives") and (one.kind == "luns" or not _under_controller(laid.store)):
            flash = isinstance(one.table, Drive) and one.table.kind in ("nvme", "ssd")
            settings["queue/scheduler"] = "none" if flash or one.kind == "luns" else "mq-deadline"
            request = min(_LARGEST_REQUEST, one.stripe or MIB) if one.kind == "luns" else MIB
            settings["queue/max_sectors_kb"] = str(request // KIB)
        geometry = one.geometry
        if one.kind == "raid_groups" and geometry is not None and geometry.parity and not _under_controller(one):
            settings["md/stripe_cache_size"] = "8192"
        if settings and one.kind != "slices" and one.id not in seen:
            seen.add(one.id)
            yield devices.of(one.id), settings


def _under_controller(store: Store) -> bool:
    """Whether a controller runs the RAID groups beneath, so that the host sees LUNs and no drives."""
    return any(
        one.kind == "luns" or (isinstance(one.table, RaidGroup) and bool(one.table.controller)) for one in store.walk()
    )


def made_by_host(store: Store) -> list[Store]:
    """RAID groups beneath that the host makes itself, from drives."""
    return [one for one in store.walk() if one.kind == "raid_groups" and one.members and not _under_controller(store)]


def lustre_target(system: System, laid: Laid, target: str, store: Store, devices: Devices, nids: str) -> str:
    """mkfs.lustre for one target on ldiskfs."""
    item = system.item(target)
    index = int(getattr(item.table, "index", None) or 0) + item.position
    options = ["-b 4096"]
    if store.unit and store.stripe:
        options.append(f"-E stride={store.unit // 4096},stripe_width={store.stripe // 4096}")
    journal = system.reference(target, "journal")
    shared = sum(journal == system.reference(one.id, "journal") for one in system.items("targets")) > 1
    own = journal if not shared else None  # one device holds one journal: a shared one has to be cut into slices first
    options.append("-J size=4096" if own is None else "-J device=" + devices.of(own).strip('"'))
    return (
        f"mkfs.lustre --ost --fsname={laid.id[:8]} --index={index} --mgsnode={nids} --backfstype=ldiskfs "
        f'--mkfsoptions="{" ".join(options)}" {devices.of(store.id)}'
    )
