# SPDX-License-Identifier: Apache-2.0
"""Commands that create what is planned: arrays, partitions, volumes, file systems, mounts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sonde.design.layout import xfs
from sonde.design.layout.block_devices import (
    BlockDevice,
    assign_partition_numbers,
    compute_partition_size,
    compute_slice_starts,
)
from sonde.design.layout.device_names import DeviceNames, find_bitmap_file, uses_lvm
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import KIB, MIB, Geometry
from sonde.model.errors import UserError
from sonde.model.shell import Argument, ShellWord, concatenate_into_word
from sonde.model.system import System
from sonde.model.system.service import SYSTEM_PURPOSES
from sonde.model.system.storage import Drive, Lun, RaidGroup, Volume

# Read-ahead covers this many full widths, and at least this many bytes.
_WIDTHS_AHEAD, _LEAST_AHEAD = 2, 4 * MIB
# Largest useful request: one full stripe, up to what Linux accepts without a special driver.
_MAX_REQUEST_BYTES = 16 * MIB
# Requests that wait in the queue of a rotating drive or a LUN, where the scheduler can sort and merge them.
_QUEUE_REQUESTS = "256"
# Orders of parity of mdadm; the first is what mdadm chooses itself: a sequential read uses all drives.
_PARITY_ORDERS = ("left-symmetric", "left-asymmetric", "right-symmetric", "right-asymmetric", "ddf-zero-restart",
                  "ddf-N-restart", "ddf-N-continue")  # fmt: skip
# Threads of md that compute parity and copy stripes; without them one thread limits an array of fast drives.
_PARITY_THREADS = "4"


def make_mdadm_command(
    raid_group: BlockDevice, device_names: DeviceNames, spare_drives: tuple[str, ...]
) -> list[Argument]:
    """mdadm for one RAID group of drives. Raises UserError for a geometry that md does not support."""
    table, geometry = raid_group.table, raid_group.raid_geometry
    assert isinstance(table, RaidGroup)
    assert geometry is not None
    if geometry.parity > 2:
        raise UserError(
            f"{raid_group.id} has {geometry.parity} parity drives; md has two at most: write a RAID of level 6."
        )
    path = device_names.choose_device_name(raid_group.id)
    arguments: list[Argument] = [
        "mdadm",
        "--create",
        path,
        f"--name={path.rsplit('/', 1)[-1]}",
        "--metadata=1.2",
        "--run",
    ]
    arguments += [f"--level={geometry.raid_level}", f"--raid-devices={geometry.drive_count}"]
    if raid_group.stripe_unit_bytes and geometry.raid_level != "1":
        arguments.append(f"--chunk={raid_group.stripe_unit_bytes // KIB}K")
    if geometry.raid_level == "10":
        arguments.append(f"--layout=n{geometry.copies}")
    elif geometry.raid_level in ("5", "6"):
        arguments.append(f"--layout={_choose_parity_order(raid_group.id, table)}")
    if geometry.tolerated_failures:
        arguments.append(f"--bitmap={find_bitmap_file(device_names.system, raid_group.id) or 'internal'}")
    if spare_drives:
        arguments.append(f"--spare-devices={len(spare_drives)}")
    return [
        *arguments,
        *device_names.make_device_arguments(raid_group.members),
        *(device_names.make_device_argument(spare) for spare in spare_drives),
    ]


def _choose_parity_order(group_id: str, table: RaidGroup) -> str:
    """The described order of parity, else that of mdadm. Raises UserError for another text."""
    if table.layout and table.layout not in _PARITY_ORDERS:
        raise UserError(
            f"{group_id} has the layout {table.layout!r}; mdadm has {', '.join(_PARITY_ORDERS)}: write one."
        )
    return table.layout or _PARITY_ORDERS[0]


def make_sgdisk_command(system: System, disk_id: str, device_names: DeviceNames) -> list[Argument]:
    """sgdisk for all slices of one disk. Starts and sizes are in KiB, which is correct for every sector size; the
    alignment of one sector leaves the starts as they are. Raises UserError."""
    starts = compute_slice_starts(system, disk_id)
    arguments: list[Argument] = ["sgdisk", "--clear", "--set-alignment=1"]
    for slice_id, number in assign_partition_numbers(system, disk_id).items():
        size = compute_partition_size(system, disk_id, slice_id)
        if size is None:
            raise UserError(f"{slice_id} has no size and no place that follows from the file; give size or share.")
        arguments.append(f"--new={number}:{starts[slice_id] // KIB}K:+{size // KIB}K")
        arguments.append(f"--change-name={number}:{slice_id}")
    return [*arguments, device_names.make_device_argument(disk_id)]


def make_volume_commands(device: BlockDevice, device_names: DeviceNames) -> Iterator[list[Argument]]:
    """Commands of LVM or md for one striped volume."""
    table = device.table
    assert isinstance(table, Volume)
    if table.kind == "zfs":
        return
    path, members = device_names.choose_device_name(device.id), device_names.make_device_arguments(device.members)
    unit = device.stripe_unit_bytes or MIB
    if uses_lvm(device):
        group, _, logical = path.removeprefix("/dev/").partition("/")
        extent = max(4 * MIB, unit) // KIB
        yield ["pvcreate", "--dataalignment", f"{math.lcm(unit, MIB) // KIB}k", *members]
        yield ["vgcreate", "--physicalextentsize", f"{extent}k", group, *members]
        yield ["lvcreate", "--name", logical or device.id, "--stripes", len(device.members), "--stripesize",
               f"{unit // KIB}k", "--extents", "100%FREE", group]  # fmt: skip
    else:
        level = {"stripe": "0", "mirror": "1", "concat": "linear"}.get(table.kind, "0")
        chunk = [f"--chunk={unit // KIB}K"] if level == "0" else []
        yield ["mdadm", "--create", path, f"--name={path.rsplit('/', 1)[-1]}", "--metadata=1.2", "--run",
               f"--level={level}", f"--raid-devices={len(device.members)}", *chunk, *members]  # fmt: skip


def make_mkfs_command(layout: FileSystemLayout, device_names: DeviceNames) -> list[Argument]:
    """mkfs.xfs, mke2fs, mkfs.btrfs or zpool for a local file system; empty for a kind that has none of these."""
    device = device_names.make_device_argument(layout.first_device.id)
    if layout.table.kind == "xfs":
        return ["mkfs.xfs", *make_xfs_options(layout, device_names), device]
    if layout.table.kind == "ext4":
        return ["mke2fs", *make_ext4_options(layout), device]
    if layout.table.kind == "btrfs":
        return ["mkfs.btrfs", "--label", layout.id, device]
    if layout.table.kind == "zfs":
        return _make_pool_command(layout, device_names)
    if layout.table.kind == "swap":
        return ["mkswap", "--label", layout.id[:15], device]
    return []


def make_xfs_options(layout: FileSystemLayout, device_names: DeviceNames) -> list[Argument]:
    """Options of mkfs.xfs, without the device."""
    data = []
    if layout.groups is not None:
        data.append(f"agsize={layout.groups.size}b")
        if getattr(layout.first_device.table, "usable", None) is not None:
            data.append(f"size={layout.groups.blocks}b")
    data.append(f"sunit={layout.unit // 512},swidth={layout.width // 512}" if layout.unit else "noalign")
    log: list[Argument] = []
    if layout.log is not None:
        log.append(concatenate_into_word("logdev=", device_names.make_device_argument(layout.log.id)))
    if layout.log_size is not None:
        log.append(f"size={layout.log_size // layout.block_bytes}b")
    unit = xfs.compute_log_unit(layout.unit, layout.block_bytes) if layout.log is None else 0
    if unit:
        log.append(f"su={unit}")
    arguments: list[Argument] = ["-L", layout.id[:12], "-b", f"size={layout.block_bytes}", "-d", ",".join(data)]
    return [*arguments, "-l", _join_with_commas(log)] if log else arguments


def _join_with_commas(options: list[Argument]) -> ShellWord:
    separated = [part for option in options for part in (",", option)]
    return concatenate_into_word(*separated[1:])


def make_ext4_options(layout: FileSystemLayout) -> list[Argument]:
    """Options of mke2fs, without the device."""
    arguments: list[Argument] = ["-t", "ext4", "-L", layout.id[:16], "-b", layout.block_bytes]
    if layout.unit:
        arguments += [
            "-E",
            f"stride={layout.unit // layout.block_bytes},stripe_width={layout.width // layout.block_bytes}",
        ]
    if layout.log_size:
        arguments += ["-J", f"size={layout.log_size // MIB}"]
    if layout.table.purpose in ("scratch", "checkpoint", "archive"):
        arguments += ["-T", "largefile"]
    if layout.table.purpose == "home" or layout.table.purpose not in SYSTEM_PURPOSES:
        arguments += ["-m", "0"]  # root writes nothing there, and mke2fs reserves 5 %
    return arguments


def _make_pool_command(layout: FileSystemLayout, device_names: DeviceNames) -> list[Argument]:
    """Creates a pool with one vdev per RAID group; the record size is the smallest that writes full stripes of 1
    MiB."""
    groups, system = layout.first_device.list_raid_groups(), device_names.system
    spares = dict.fromkeys(spare for group in groups for spare in system.find_references(group.id, "spares"))
    vdevs = [argument for group in groups for argument in _make_vdevs(group, device_names)]
    if layout.log is not None:
        vdevs += ["log", *_make_log_vdevs(layout.log, device_names)]
    if spares:
        vdevs += ["spare", *(device_names.make_device_argument(spare) for spare in spares)]
    record = "16K" if layout.table.purpose in SYSTEM_PURPOSES else "1M"
    properties = (f"recordsize={record}", "atime=off", "xattr=sa", "compression=lz4", "mountpoint=none")
    options = [argument for value in properties for argument in ("-O", value)]
    return ["zpool", "create", "-o", "ashift=12", *options, layout.id, *vdevs]


def _make_log_vdevs(device: BlockDevice, device_names: DeviceNames) -> list[Argument]:
    """The vdevs of the log of a pool: of a volume those of its members, which a mirror combines."""
    if not isinstance(device.table, Volume):
        return _make_vdevs(device, device_names)
    vdevs = [argument for member in device.members for argument in _make_log_vdevs(member, device_names)]
    return ["mirror", *vdevs] if device.table.kind == "mirror" else vdevs


def _make_vdevs(group: BlockDevice, device_names: DeviceNames) -> list[Argument]:
    """The vdevs of one RAID group: several mirrors for RAID 10. Another device is a vdev itself."""
    geometry = group.raid_geometry
    if geometry is None or group.kind != "raid_groups" or not group.members:
        return [device_names.make_device_argument(group.id)]
    if geometry.copies > 1 and geometry.data > 1:
        pairs = [group.members[first :: geometry.data] for first in range(geometry.data)]
        return [argument for pair in pairs for argument in ("mirror", *device_names.make_device_arguments(pair))]
    kind = "mirror" if geometry.copies > 1 else f"raidz{geometry.parity}" if geometry.parity else ""
    if list_declustered_pools(group):
        kind = _format_draid(group, geometry)
    return [*([kind] if kind else []), *device_names.make_device_arguments(group.members)]


def _format_draid(pool: BlockDevice, geometry: Geometry) -> str:
    """The vdev of a declustered pool: parity, data drives of a stripe, all drives, and distributed spares."""
    share = getattr(pool.table, "spare_share", None)
    spares = math.ceil(float(share or 0) * len(pool.members))
    return f"draid{geometry.parity}:{geometry.data}d:{len(pool.members)}c:{spares}s"


def make_mount_options(layout: FileSystemLayout, device_names: DeviceNames) -> ShellWord:
    """Options of mount(8), separated by commas."""
    options: list[Argument] = [*list_mount_options(layout)]
    if layout.table.kind == "xfs" and layout.log is not None:
        options.append(concatenate_into_word("logdev=", device_names.make_device_argument(layout.log.id)))
    return _join_with_commas(options)


def list_mount_options(layout: FileSystemLayout) -> list[str]:
    """Options of mount(8) that name no device."""
    options = ["noatime"]
    if layout.table.kind == "xfs":
        options.append("logbsize=256k")
        if layout.unit and layout.table.purpose in ("scratch", "checkpoint", "archive"):
            options += ["largeio", "swalloc"]
    if layout.table.kind == "ext4" and layout.unit:
        options.append(f"stripe={layout.width // layout.block_bytes}")
    return options


def list_queue_settings(
    layout: FileSystemLayout, block_device: BlockDevice, device_names: DeviceNames
) -> Iterator[tuple[Argument, dict[str, str]]]:
    """Device and its settings below /sys/block/… for one device of a layout and all below it."""
    for device, settings in list_device_settings(layout, block_device):
        yield device_names.make_device_argument(device.id), settings


def list_device_settings(
    layout: FileSystemLayout, block_device: BlockDevice
) -> Iterator[tuple[BlockDevice, dict[str, str]]]:
    """Settings of queues for one device of a layout and all below it; md arrays also get settings of md, LUNs the depth
    of their queue. ZFS opens drives itself: only they get settings."""
    is_pool = layout.table.kind == "zfs" or is_zfs_volume(block_device)
    ahead = max(_LEAST_AHEAD, _WIDTHS_AHEAD * (layout.width or block_device.stripe_width_bytes or 0))
    top = {} if is_pool else {"queue/read_ahead_kb": str(ahead // KIB)}
    done: set[str] = set()
    parts_of_luns = {part.id for lun in block_device.iterate_top_down() if lun.kind == "luns"
                     for part in lun.iterate_top_down()}  # fmt: skip
    for device in block_device.iterate_top_down():
        if device.kind == "slices":
            continue  # a partition has the queue of its disk
        settings, top = dict(top), {}
        hides_drives = _is_under_controller(block_device) or (not is_pool and list_declustered_pools(block_device))
        if device.kind == "luns" or (device.kind == "drives" and not hides_drives):
            flash = isinstance(device.table, Drive) and device.table.kind in ("nvme", "ssd")
            settings["queue/scheduler"] = "none" if flash or device.kind == "luns" or is_pool else "mq-deadline"
            request = min(_MAX_REQUEST_BYTES, device.full_stripe_bytes or MIB) if device.kind == "luns" else MIB
            settings["queue/max_sectors_kb"] = str(request // KIB)
            if not flash:
                settings["queue/nr_requests"] = _QUEUE_REQUESTS
        if isinstance(device.table, Lun) and device.table.queue_depth is not None:
            settings["device/queue_depth"] = str(int(device.table.queue_depth))
        geometry = device.raid_geometry
        is_array = device.kind == "raid_groups" and geometry is not None and geometry.parity
        is_array = is_array and device.id not in parts_of_luns and not _is_under_controller(device)
        if is_array and not is_pool and not list_declustered_pools(device):
            settings["md/stripe_cache_size"] = "8192"
            settings["md/group_thread_cnt"] = _PARITY_THREADS
        if settings and device.id not in done:
            done.add(device.id)
            yield device, settings


def _is_under_controller(block_device: BlockDevice) -> bool:
    """Whether a controller runs the RAID groups below, so that the host sees LUNs and no drives."""
    return any(
        device.kind == "luns" or (isinstance(device.table, RaidGroup) and bool(device.table.controller))
        for device in block_device.iterate_top_down()
    )


def is_zfs_volume(block_device: BlockDevice) -> bool:
    """Whether a device is a pool of ZFS, which combines the drives below itself."""
    return isinstance(block_device.table, Volume) and block_device.table.kind == "zfs"


def list_declustered_pools(block_device: BlockDevice) -> list[BlockDevice]:
    """The declustered pools below a device, which the tool of their controller or software creates."""
    return [
        device
        for device in block_device.iterate_top_down()
        if isinstance(device.table, RaidGroup) and device.table.level == "declustered"
    ]


def list_host_raid_groups(block_device: BlockDevice) -> list[BlockDevice]:
    """RAID groups below that the host creates itself, from drives."""
    return [
        device
        for device in block_device.iterate_top_down()
        if device.kind == "raid_groups"
        and device.members
        and not _is_under_controller(block_device)
        and not list_declustered_pools(device)
    ]


def list_overwritten_devices(device: BlockDevice, *, opens_drives: bool = False) -> list[str]:
    """The devices that a script overwrites: drives, or what a controller makes of them (LUNs, RAID groups, declustered
    pools), whose drives the host does not see. `opens_drives` is for ZFS, which opens the drives of pools itself."""
    pools = [] if opens_drives else list_declustered_pools(device)
    if pools:
        return [pool.id for pool in pools]
    is_of_controller = device.kind == "luns" or (bool(device.controller) and not opens_drives)
    if is_of_controller or not device.members:
        return [device.id]
    return [part_id for member in device.members
            for part_id in list_overwritten_devices(member, opens_drives=opens_drives)]  # fmt: skip
