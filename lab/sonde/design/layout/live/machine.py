# SPDX-License-Identifier: Apache-2.0
"""This machine: the file system at a mount point or on a device, and every block device beneath it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import replace

from sonde.design.layout.live.blocks import SYS, read_blocks
from sonde.design.layout.live.extents import extents_of
from sonde.design.layout.live.mounts import mount_of
from sonde.design.layout.live.seen import Seen, SeenFileSystem, SeenPath, merged
from sonde.design.layout.live.superblocks import read_superblock, xfs_geometry
from sonde.design.layout.live.tools import read_getstripe, read_multipath, read_zpool
from sonde.model.errors import MachineError, UserError

_TIMEOUT_S = 20
_KNOWN = ("xfs", "ext2", "ext3", "ext4")


def look_at(where: str) -> Seen:
    """A mount point, a directory or file in one, or a block device. Raises UserError, MachineError."""
    try:
        kind = os.stat(where).st_mode
    except OSError as reason:
        raise UserError(f"{where} cannot be looked at: {reason.strerror}; name a mount point or a device.") from None
    if stat.S_ISBLK(kind):
        return _device(where)
    mount = mount_of(where)
    if mount is None:
        raise MachineError(f"{where} is on no mount that /proc/self/mountinfo names.")
    seen = Seen()
    if stat.S_ISREG(kind):
        seen = Seen(files=(extents_of(where),))
    if mount.kind == "lustre":
        return merged(seen, _tool(("lfs", "getstripe", "-d" if os.path.isdir(where) else "-q", where), read_getstripe))
    if mount.kind == "zfs":
        return merged(seen, _tool(("zpool", "status", mount.device.partition("/")[0]), read_zpool))
    if not mount.device.startswith("/dev/"):
        return merged(seen, Seen(unknown=(f"{mount.kind} at {mount.where}, which has no block device",)))
    return merged(seen, _mounted(mount.where, mount.device, mount.kind, mount.options))


def _mounted(where: str, device: str, kind: str, options: tuple[str, ...]) -> Seen:
    one: SeenFileSystem | None = None
    unknown = []
    try:
        one = read_superblock(device)
    except OSError as reason:
        unknown.append(
            f"the superblock of {device} ({reason.strerror}{'' if os.geteuid() == 0 else '; it needs root'})"
        )
    if one is None and kind == "xfs":
        one = xfs_geometry(where)
    if one is None and kind not in _KNOWN:
        unknown.append(f"the geometry of {kind}")
    found = Seen(unknown=tuple(unknown))
    if one is not None:
        log = next((word.partition("=")[2] for word in options if word.startswith("logdev=")), "")
        one = replace(one, where=where, device=device, options=options, log_device=log or one.log_device)
        found = merged(found, Seen((one,)))
    return merged(found, _blocks(device))


def _device(device: str) -> Seen:
    found = _blocks(device)
    try:
        one = read_superblock(device)
    except OSError as reason:
        return merged(found, Seen(unknown=(f"the superblock of {device} ({reason.strerror})",)))
    return merged(Seen((one,)), found) if one is not None else found


def _blocks(device: str) -> Seen:
    """The devices beneath, and what multipathd knows of their paths."""
    try:
        number = os.stat(os.path.realpath(device)).st_rdev
    except OSError:  # a container names devices that only its host has
        return Seen(unknown=(f"{device}, which is not there (a container?)",))
    folder = SYS / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not folder.exists():
        return Seen(unknown=(f"{device}, which sysfs does not have",))
    found = read_blocks(folder.resolve().name)
    if any(disk.kind == "multipath" for disk in found.disks.values()):
        asked = _tool(("multipathd", "show", "maps", "json"), read_multipath)
        disks = dict(found.disks)
        for name, disk in asked.disks.items():
            if name in disks:
                disks[name] = replace(disks[name], paths=_counted(disk.paths, disks[name].paths))
        found = replace(found, disks=disks)
        found = replace(found, unknown=found.unknown + asked.unknown)
    return found


def _counted(told: tuple[SeenPath, ...], counted: tuple[SeenPath, ...]) -> tuple[SeenPath, ...]:
    """Paths of multipathd know groups and faults, those of sysfs how much each has moved."""
    moved = {path.name: path for path in counted}
    return tuple(
        replace(path, blocks_read=moved[path.name].blocks_read, blocks_written=moved[path.name].blocks_written)
        if path.name in moved else path
        for path in told
    )  # fmt: skip


def _tool(words: tuple[str, ...], reader: object) -> Seen:
    """What a tool says; that it is not there is told, not raised."""
    assert callable(reader)
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    program = shutil.which(words[0], path=path)
    if program is None:
        return Seen(unknown=(f"what {words[0]} would say; it is not installed",))
    try:
        said = subprocess.run(
            [program, *words[1:]], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=_plain()
        )
    except subprocess.TimeoutExpired:
        return Seen(unknown=(f"what {' '.join(words)} would say; it did not answer in {_TIMEOUT_S} s",))
    if said.returncode:
        return Seen(unknown=(f"what {' '.join(words)} would say: {said.stderr.strip()[:200]}",))
    found = reader(said.stdout, " ".join(words))
    assert isinstance(found, Seen)
    return found


def _plain() -> dict[str, str]:
    return dict(os.environ) | {"LC_ALL": "C"}
