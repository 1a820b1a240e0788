# SPDX-License-Identifier: Apache-2.0
"""Reads block devices from sysfs: members, starts of partitions, stripes of md and dm, queue settings.

`root` is /sys or a copy of it. This module only reads small files there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sonde.design.layout.live.observations import ObservedDisk, ObservedPath, ObservedStorage
from sonde.design.layout.live.sysfs_lines import read_array_attributes

SYS = Path("/sys")
_SECTOR = 512
_QUEUE = (
    *("scheduler", "read_ahead_kb", "max_sectors_kb", "max_hw_sectors_kb", "rotational", "nr_requests"),
    *("nomerges", "write_cache", "rq_affinity", "wbt_lat_usec", "io_timeout", "zoned"),
    *("logical_block_size", "physical_block_size", "minimum_io_size", "optimal_io_size"),
)
_MD = ("level", "raid_disks", "chunk_size", "degraded", "sync_action", "stripe_cache_size", "array_state",
       "group_thread_cnt", "sync_speed_max", "reshape_position", "mismatch_cnt", "bitmap/chunksize",
       "consistency_policy", "journal_mode")  # fmt: skip
_PARITY_BY_LEVEL = {"raid4": 1, "raid5": 1, "raid6": 2}


def read_block_device_tree(device_name: str, sysfs_root: Path = SYS) -> ObservedStorage:
    """The device of that name (sdb1, md0, dm-3) and everything below it."""
    disks: dict[str, ObservedDisk] = {}
    unknown: list[str] = []
    pending = [device_name]
    while pending:
        disk_name = pending.pop()
        if disk_name in disks:
            continue
        folder = sysfs_root / "class" / "block" / disk_name
        if not folder.exists():
            unknown.append(f"{disk_name}, which sysfs does not have")
            continue
        disk = _read_disk(disk_name, folder.resolve())
        disks[disk_name] = disk
        pending += [*disk.members, *([disk.on] if disk.on else []), *(path.name for path in disk.paths)]
    return ObservedStorage(disks=disks, unknown=tuple(unknown))


def _read_disk(device_name: str, sysfs_folder: Path) -> ObservedDisk:
    size, start = _read_sysfs_number(sysfs_folder / "size"), _read_sysfs_number(sysfs_folder / "start")
    queue = {setting: text for setting in _QUEUE if (text := _read_sysfs_text(sysfs_folder / "queue" / setting))}
    disk = ObservedDisk(
        device_name, size=None if size is None else size * _SECTOR, queue=queue, origin=str(sysfs_folder)
    )
    if (sysfs_folder / "partition").exists():
        return replace(disk, kind="part", on=sysfs_folder.parent.name, start=None if start is None else start * _SECTOR)
    slaves = sysfs_folder / "slaves"
    disk = replace(disk, members=tuple(sorted(path.name for path in slaves.iterdir())) if slaves.is_dir() else ())
    if (sysfs_folder / "md").is_dir():
        return _read_md_array(disk, sysfs_folder)
    if (sysfs_folder / "dm").is_dir():
        return _read_mapped_device(disk, sysfs_folder)
    settings = {"alignment": _read_sysfs_text(sysfs_folder / "alignment_offset")}
    settings |= {name: _read_sysfs_text(sysfs_folder / "device" / name) for name in ("timeout", "eh_timeout")}
    settings |= {"read_only": "1"} if _read_sysfs_text(sysfs_folder / "ro") == "1" else {}
    return replace(
        disk,
        settings={setting: text for setting, text in settings.items() if text},
        kind="loop" if device_name.startswith("loop") else "disk",
        state=_read_sysfs_text(sysfs_folder / "device" / "state"),
        flash=queue["rotational"] == "0" if "rotational" in queue else None,
        queue_depth=_read_sysfs_number(sysfs_folder / "device" / "queue_depth"),
    )


def _read_md_array(disk: ObservedDisk, sysfs_folder: Path) -> ObservedDisk:
    settings = {setting: text for setting in _MD if (text := _read_sysfs_text(sysfs_folder / "md" / setting))}
    level, disks = settings.get("level", ""), int(settings.get("raid_disks", "0") or 0)
    data = disks - _PARITY_BY_LEVEL[level] if level in _PARITY_BY_LEVEL else disks if level == "raid0" else None
    geometry = f"{data}+{_PARITY_BY_LEVEL.get(level, 0)}" if data else ""
    layout = _read_sysfs_text(sysfs_folder / "md" / "layout")
    states = {f"dev-{member}/state": _read_sysfs_text(sysfs_folder / "md" / f"dev-{member}" / "state")
              for member in disk.members}  # fmt: skip
    settings = read_array_attributes(settings | {"layout": layout} | states)
    if level == "raid10" and layout.isdigit():
        # near copies in the lowest byte, far copies in the next one
        copies = (int(layout) & 255) * (int(layout) >> 8 & 255) or 2
        data, geometry = disks // copies, f"{disks // copies}x{copies}"
    if level == "raid1":
        geometry = f"1x{disks}"
    sizes = tuple(
        size * _SECTOR
        for member in disk.members
        if (size := _read_sysfs_number(sysfs_folder / "slaves" / member / "size"))
    )
    sick = settings.get("degraded", "0") not in ("0", "")
    return replace(
        disk, kind="md", member_sizes=sizes, level=level, geometry=geometry, data=data or None, settings=settings,
        unit=int(settings.get("chunk_size", "0") or 0) or None, state="degraded" if sick else "optimal",
    )  # fmt: skip


def _read_mapped_device(disk: ObservedDisk, sysfs_folder: Path) -> ObservedDisk:
    """Reads a device-mapper device: its uuid states the kind, and its I/O sizes a stripe."""
    uuid = _read_sysfs_text(sysfs_folder / "dm" / "uuid")
    disk = replace(disk, settings={"name": _read_sysfs_text(sysfs_folder / "dm" / "name"), "uuid": uuid})
    if uuid.startswith("mpath-"):
        paths = tuple(
            ObservedPath(
                member,
                None,
                _read_sysfs_text(sysfs_folder / "slaves" / member / "device" / "state") in ("running", "live"),
                *_read_transferred_sectors(sysfs_folder / "slaves" / member),
            )
            for member in disk.members
        )  # fmt: skip
        return replace(disk, kind="multipath", members=(), paths=paths)
    least, best = (int(disk.queue.get(setting, 0) or 0) for setting in ("minimum_io_size", "optimal_io_size"))
    count = len(disk.members)
    unit = least if best and count > 1 and best == least * count else None
    sizes = tuple(
        size * _SECTOR
        for member in disk.members
        if (size := _read_sysfs_number(sysfs_folder / "slaves" / member / "size"))
    )
    return replace(
        disk, kind="lvm" if uuid.startswith("LVM-") else "other", unit=unit, data=count if unit else None,
        level="raid0" if unit else "linear", member_sizes=sizes,
    )  # fmt: skip


def _read_transferred_sectors(sysfs_folder: Path) -> tuple[int | None, int | None]:
    """Sectors read and written since the start, from `stat` (Documentation/block/stat)."""
    columns = _read_sysfs_text(sysfs_folder / "stat").split()
    return (int(columns[2]), int(columns[6])) if len(columns) > 6 else (None, None)


def _read_sysfs_text(sysfs_file: Path) -> str:
    try:
        return sysfs_file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _read_sysfs_number(sysfs_file: Path) -> int | None:
    text = _read_sysfs_text(sysfs_file)
    return int(text) if text.isdigit() else None
