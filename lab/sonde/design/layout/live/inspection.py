# SPDX-License-Identifier: Apache-2.0
"""Inspects this machine: the file system at a mount point or on a device, and every block device below it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sonde.design.layout.live.extents import read_file_extents
from sonde.design.layout.live.linux_tool_output import read_lfs_getstripe, read_multipathd_json
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedPath, ObservedStorage, merge_observations
from sonde.design.layout.live.superblocks import query_xfs_geometry, read_superblock
from sonde.design.layout.live.sysfs_disks import SYS, read_block_device_tree
from sonde.design.layout.live.zpool_output import read_zpool_status
from sonde.model.errors import MachineError, UserError
from sonde.model.mounts import find_mount_of_path

_TIMEOUT_S = 20
_LINK_PATTERNS = ("disk/by-id/*", "disk/by-path/*", "disk/by-vdev/*", "md/*", "mapper/*")
_KNOWN = ("xfs", "ext2", "ext3", "ext4")


def inspect_storage(path_or_device: str) -> ObservedStorage:
    """Observes a mount point, a directory or file in one, or a block device. Raises UserError, MachineError."""
    try:
        kind = os.stat(path_or_device).st_mode
    except OSError as reason:
        raise UserError(
            f"{path_or_device} cannot be looked at: {reason.strerror}; name a mount point or a device."
        ) from None
    if stat.S_ISBLK(kind):
        return _inspect_device(path_or_device)
    mount = find_mount_of_path(path_or_device)
    if mount is None:
        raise MachineError(f"{path_or_device} is on no mount that /proc/self/mountinfo names.")
    storage = ObservedStorage()
    if stat.S_ISREG(kind):
        storage = ObservedStorage(files=(read_file_extents(path_or_device),))
    if mount.kind == "lustre":
        return merge_observations(
            storage,
            _run_tool(
                ("lfs", "getstripe", "-d" if os.path.isdir(path_or_device) else "-q", path_or_device),
                read_lfs_getstripe,
            ),
        )
    if mount.kind == "zfs":
        return merge_observations(
            replace(storage, date=datetime.now().astimezone().isoformat()),
            _run_tool(("zpool", "status", mount.device.partition("/")[0]), read_zpool_status),
        )
    if not mount.device.startswith("/dev/"):
        return merge_observations(
            storage, ObservedStorage(unknown=(f"{mount.kind} at {mount.location}, which has no block device",))
        )
    return merge_observations(
        storage, _inspect_mounted_file_system(mount.location, mount.device, mount.kind, mount.options)
    )


def _inspect_mounted_file_system(
    mount_point: str, device_path: str, file_system_type: str, mount_options: tuple[str, ...]
) -> ObservedStorage:
    file_system: ObservedFileSystem | None = None
    unknown = []
    try:
        file_system = read_superblock(device_path)
    except OSError as reason:
        unknown.append(
            f"the superblock of {device_path} ({reason.strerror}{'' if os.geteuid() == 0 else '; it needs root'})"
        )
    if file_system is None and file_system_type == "xfs":
        file_system = query_xfs_geometry(mount_point)
    if file_system is None and file_system_type not in _KNOWN:
        unknown.append(f"the geometry of {file_system_type}")
    storage = ObservedStorage(unknown=tuple(unknown))
    if file_system is None:
        # its kind and its options are known
        file_system = ObservedFileSystem(
            mount_point, file_system_type, device_path, options=mount_options, origin="mountinfo"
        )
        storage = merge_observations(storage, ObservedStorage((file_system,)))
    else:
        log = next((option.partition("=")[2] for option in mount_options if option.startswith("logdev=")), "")
        file_system = replace(
            file_system,
            location=mount_point,
            device=device_path,
            options=mount_options,
            log_device=log or file_system.log_device,
        )
        storage = merge_observations(storage, ObservedStorage((file_system,)))
    return merge_observations(storage, _inspect_block_devices(device_path))


def _inspect_device(device_path: str) -> ObservedStorage:
    storage = _inspect_block_devices(device_path)
    try:
        file_system = read_superblock(device_path)
    except OSError as reason:
        return merge_observations(
            storage, ObservedStorage(unknown=(f"the superblock of {device_path} ({reason.strerror})",))
        )
    return merge_observations(ObservedStorage((file_system,)), storage) if file_system is not None else storage


def _inspect_block_devices(device_path: str) -> ObservedStorage:
    """The block devices below, with the paths that multipathd reports."""
    try:
        number = os.stat(os.path.realpath(device_path)).st_rdev
    except OSError:  # a container can name devices that exist only on its host
        return ObservedStorage(unknown=(f"{device_path}, which is not there (a container?)",))
    folder = SYS / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not folder.exists():
        return ObservedStorage(unknown=(f"{device_path}, which sysfs does not have",))
    storage = _add_device_links(read_block_device_tree(folder.resolve().name))
    if any(disk.kind == "multipath" for disk in storage.disks.values()):
        multipath = _run_tool(("multipathd", "show", "maps", "json"), read_multipathd_json)
        disks = dict(storage.disks)
        for name, disk in multipath.disks.items():
            if name in disks:
                disks[name] = replace(disks[name], paths=_combine_paths_of_sources(disk.paths, disks[name].paths))
        storage = replace(storage, disks=disks)
        storage = replace(storage, unknown=storage.unknown + multipath.unknown)
    return storage


def _add_device_links(observed_storage: ObservedStorage, dev_folder: Path = Path("/dev")) -> ObservedStorage:
    """Adds to each device the symbolic links below /dev that lead to it: by-id, by-path, names of arrays and maps."""
    links: dict[str, list[str]] = {}
    for pattern in _LINK_PATTERNS:
        for link in sorted(dev_folder.glob(pattern)):
            if link.is_symlink():
                links.setdefault(os.path.basename(os.readlink(link)), []).append(f"/dev/{link.relative_to(dev_folder)}")
    disks = {
        name: replace(disk, settings={**disk.settings, "links": " ".join(links[name])}) if name in links else disk
        for name, disk in observed_storage.disks.items()
    }
    return replace(observed_storage, disks=disks)


def _combine_paths_of_sources(
    from_multipathd: tuple[ObservedPath, ...], from_sysfs: tuple[ObservedPath, ...]
) -> tuple[ObservedPath, ...]:
    """Combines paths: groups and faults from multipathd, counters from sysfs."""
    moved = {path.name: path for path in from_sysfs}
    return tuple(
        replace(path, blocks_read=moved[path.name].blocks_read, blocks_written=moved[path.name].blocks_written)
        if path.name in moved else path
        for path in from_multipathd
    )  # fmt: skip


def _run_tool(tool_command: tuple[str, ...], parse_output: object) -> ObservedStorage:
    """The parsed output of a tool. A missing or failing tool is reported as unknown."""
    assert callable(parse_output)
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    program = shutil.which(tool_command[0], path=path)
    if program is None:
        return ObservedStorage(unknown=(f"what {tool_command[0]} would say; it is not installed",))
    try:
        answer = subprocess.run(
            [program, *tool_command[1:]],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=_make_plain_environment(),
        )
    except subprocess.TimeoutExpired:
        return ObservedStorage(
            unknown=(f"what {' '.join(tool_command)} would say; it did not answer in {_TIMEOUT_S} s",)
        )
    if answer.returncode:
        return ObservedStorage(unknown=(f"what {' '.join(tool_command)} would say: {answer.stderr.strip()[:200]}",))
    storage = parse_output(answer.stdout, " ".join(tool_command))
    assert isinstance(storage, ObservedStorage)
    return storage


def _make_plain_environment() -> dict[str, str]:
    return dict(os.environ) | {"LC_ALL": "C"}
