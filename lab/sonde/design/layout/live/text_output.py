# SPDX-License-Identifier: Apache-2.0
"""Parses plain text of tools: lsblk, multipath -ll, findmnt, blkid and lctl."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedPath, ObservedStorage
from sonde.model.documents import parse_json
from sonde.model.errors import UserError

_POWERS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_KINDS = {"disk": "disk", "part": "part", "lvm": "lvm", "mpath": "multipath", "loop": "loop"}

# The form of multipathd show maps status, and the least number of cells of its rows.
MAPS_STATUS_FORM = r"^name +failback +queueing +paths\b"
_MIN_STATUS_CELLS = 6


def parse_rounded_size(size_text: object) -> int | None:
    """A size as lsblk and lvs print it for people, rounded: 1.8T, <7.28t, 512M. None for other texts."""
    match = re.fullmatch(r"<?([\d.]+)([BKMGTP]?)(?:i?B)?", str(size_text).strip(), re.IGNORECASE)
    return int(float(match[1]) * 1024 ** _POWERS[match[2].upper()]) if match else None


def read_lsblk_tree(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses the tree of lsblk without --json: names, sizes (rounded), kinds and mount points."""
    lines = output_text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("NAME"))
    disks: dict[str, ObservedDisk] = {}
    parents: list[tuple[int, str]] = []
    pattern = re.compile(r"^([ │|`├└─-]*)(\S+)\s+\d+:\d+\s+\d\s+(\S+)\s+\d\s+(\S+)\s*(\S*)")
    for line in lines[start + 1 :]:
        match = pattern.match(line)
        if match is None:
            continue
        depth, name, size, kind, mount_point = len(match[1]), match[2], match[3], match[4], match[5]
        parents = [parent for parent in parents if parent[0] < depth]
        above = parents[-1][1] if parents else ""
        parents.append((depth, name))
        raid = kind.startswith("raid")
        if name in disks:
            disks[name] = _add_member(disks[name], above)
            continue
        settings = {"mountpoint": mount_point} if mount_point.startswith("/") else {}
        disks[name] = ObservedDisk(
            name, "md" if raid else _KINDS.get(kind, "other"), parse_rounded_size(size),
            on=above if kind == "part" else "", members=(above,) if above and kind != "part" else (),
            level=kind if raid else "", settings=settings, origin=output_origin,
        )  # fmt: skip
    if not disks:
        raise UserError(f"{output_origin} names no block device; write it with lsblk --json --bytes --output-all.")
    return ObservedStorage(disks=disks)


def _add_member(disk: ObservedDisk, member_name: str) -> ObservedDisk:
    return replace(disk, members=tuple(dict.fromkeys((*disk.members, member_name))) if member_name else disk.members)


# The form that identifies output of date.
DATE_FORM = r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}\s*\Z"


def read_date(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses the time at which the other outputs were made."""
    try:
        return ObservedStorage(date=datetime.strptime(output_text.strip(), "%Y-%m-%dT%H:%M:%S%z").isoformat())
    except ValueError:
        raise UserError(f"{output_origin} is no time; it should be what date +%Y-%m-%dT%H:%M:%S%z prints.") from None


_PATH_ROW_PATTERN = re.compile(
    r"^[ |`]*[|`]- +(\d+:\d+:\d+:\d+) +(\S+) +\S+ +(\w+) +(\w+|i/o pending|i/o timeout) +(\w+)", re.MULTILINE
)


# What multipath without -ll did to a map, before its name.
_MAP_ACTION_PATTERN = re.compile(r"^\w+: (?=\S+ (?:\(\S+\) )?dm-\d)", re.MULTILINE)


def read_multipath_list(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses multipath -ll: path groups with their policy and priority, and the state of every path."""
    disks = {}
    output_text = _MAP_ACTION_PATTERN.sub("", output_text)
    for part in re.split(r"^(?=\S+ (?:\(\S+\) )?dm-\d+)", output_text, flags=re.MULTILINE)[1:]:
        head = re.match(r"(\S+) (?:\((\S+)\) )?(dm-\d+)", part)
        if head is None or "size=" not in part:
            continue
        groups = re.split(r"^(?=[ |`]*[|`]-\+- policy=)", part, flags=re.MULTILINE)[1:]
        priorities = [int(match[1]) if (match := re.search(r"prio=(-?\d+)", group)) else 0 for group in groups]
        best = max(priorities, default=0)
        paths: list[ObservedPath] = []
        for number, (group, priority) in enumerate(zip(groups, priorities, strict=True)):
            status = re.search(r"status=(\w+)", group)
            for address, device, dm_state, checker, _ in _PATH_ROW_PATTERN.findall(group):
                is_active = status is not None and status[1] == "active" and dm_state == "active"
                paths.append(ObservedPath(device, priority == best, is_active, state=f"{dm_state} {checker}",
                                          group=number, priority=priority,
                                          adapter=address.partition(":")[0],
                                          port=address.rpartition(":")[0]))  # fmt: skip
        policy = re.search(r"policy='([^']+)'", part)
        features = re.search(r"features='([^']*)'", part)
        settings = {"name": head[1], "uuid": head[2] or head[1]}
        product = re.match(r"\S+ (?:\(\S+\) )?dm-\d+ +(\S.*)", part)
        settings |= {"product": product[1].strip()} if product else {}
        settings |= {"map_size": size[1]} if (size := re.search(r"^size=(\S+)", part, re.MULTILINE)) else {}
        settings |= {"policy": policy[1]} if policy else {}
        settings |= {"features": features[1]} if features else {}
        settings |= {"protection": protection[1]} if (protection := re.search(r"\bwp=(\w+)", part)) else {}
        handler = re.search(r"hwhandler='([^']*)'", part)
        settings |= {"handler": handler[1]} if handler else {}
        disks[head[3]] = ObservedDisk(head[3], "multipath", paths=tuple(paths), settings=settings, origin=output_origin)
    if not disks:
        raise UserError(f"{output_origin} names no map; it should be what multipath -ll prints.")
    return ObservedStorage(disks=disks)


def read_multipath_status(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses multipathd show maps status: how long each map queues requests after its last path has failed."""
    disks = {}
    for line in output_text.splitlines():
        cells = line.split()
        if len(cells) < _MIN_STATUS_CELLS or not cells[-3].isdigit():
            continue
        queueing = f"{cells[-5]} {cells[-4]}" if cells[-4] in ("chk", "sec") else cells[-4]
        settings = {"name": cells[0], "queueing": queueing}
        disks[cells[0]] = ObservedDisk(cells[0], "multipath", settings=settings, origin=output_origin)
    if not disks:
        raise UserError(f"{output_origin} names no map; it should be what multipathd show maps status prints.")
    return ObservedStorage(disks=disks)


def read_findmnt(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses findmnt, as a table or with --json: where what is mounted, with its options."""
    rows = (
        list(_read_findmnt_json(parse_json(output_text)))
        if output_text.lstrip().startswith("{")
        else _read_findmnt_table(output_text)
    )
    complete = {source for _, source, _, _ in rows if "[" not in source}
    mounts = tuple(
        ObservedFileSystem(
            target, kind, source.partition("[")[0], options=tuple(options.split(",")), origin=output_origin
        )
        for target, source, kind, options in rows
        if kind in ("xfs", "ext2", "ext3", "ext4", "lustre", "zfs", "btrfs")
        and not _is_mount_of_directory(source, kind, complete)
    )
    if not rows:
        raise UserError(f"{output_origin} names no mount; it should be what findmnt --json prints.")
    return ObservedStorage(mounts)


def _is_mount_of_directory(source: str, kind: str, complete_sources: Set[str]) -> bool:
    """Whether a bind mount shows a directory of a file system that is also mounted completely. Such a mount is no place
    of a file system. Subvolumes of Btrfs have a directory in brackets too."""
    return kind != "btrfs" and "[" in source and source.partition("[")[0] in complete_sources


def _read_findmnt_json(document: Any) -> Iterator[tuple[str, str, str, str]]:
    for entry in document.get("filesystems", []) if isinstance(document, dict) else []:
        yield tuple(str(entry.get(name, "")) for name in ("target", "source", "fstype", "options"))  # type: ignore[misc]
        yield from _read_findmnt_json({"filesystems": entry.get("children", [])})


def _read_findmnt_table(output_text: str) -> list[tuple[str, str, str, str]]:
    rows = []
    for line in output_text.splitlines():
        columns = re.sub(r"^[ │|`├└─-]+", "", line).split()
        if len(columns) >= 4 and columns[0].startswith("/"):
            rows.append((columns[0], columns[1], columns[2], columns[3]))
    return rows


def read_blkid(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses blkid: the UUID and kind of what is on each device."""
    disks = {}
    for device, members in re.findall(r"^(/dev/\S+): (.*)$", output_text, re.MULTILINE):
        values = dict(re.findall(r'(\w+)="([^"]*)"', members))
        name = device.rsplit("/", 1)[-1]
        settings = {"fs_uuid": values.get("UUID", ""), "fs_kind": values.get("TYPE", "")}
        settings |= {"fs_label": values["LABEL"]} if values.get("LABEL") else {}
        disks[name] = ObservedDisk(name, settings=settings, origin=output_origin)
    if not disks:
        raise UserError(f"{output_origin} names no device; it should be what blkid prints.")
    return ObservedStorage(disks=disks)


_LCTL_PATTERN = re.compile(
    r"^(obdfilter|osd-\w+|osc|mdc|osp|llite|lov|lod|mdt|mdd|ost|mds|ofd)\.([^.=\s]+)\.(\S+?)=(.*)$", re.MULTILINE
)
# Parameters of all of a node.
_LCTL_NODE_PATTERN = re.compile(r"^(debug|timeout|at_min|at_max|jobid_var|version)=(.*)$", re.MULTILINE)
# The form that identifies output of lctl.
LCTL_FORM = (
    r"^(obdfilter|osd-\w+|osc|mdc|osp|llite|lov|lod|mdt|mdd|ost|mds|ofd)\.[^.=\s]+\.\S+?="
    r"|^[ \t]*\d+ (UP|IN|AT|ST) \w+ \S+ \S+ \d+$"
    r"|^version=\S"
    r"|^error: get_param: param_path '"  # a server or client without targets
)
_LCTL_DEVICE_PATTERN = re.compile(r"^[ \t]*\d+ (UP|IN|AT|ST|\w+) (\w+) (\S+) \S+ \d+$", re.MULTILINE)


def _read_recovery_status(text: str) -> str:
    status = re.search(r"^status: (\w+)", text, re.MULTILINE)
    return status[1] if status else ""


def _read_changelog_users(text: str) -> str:
    """The consumers of a changelog, each with the number of unread records and the seconds since it read."""
    current = re.search(r"^current[ _]index: (\d+)", text, re.MULTILINE)
    users = re.findall(r"^((?:\S+-)?cl\d\S*)[ \t]+(\d+)(?:[ \t]+\((\d+)\))?", text, re.MULTILINE)
    return " ".join(f"{name}:{int(current[1]) - int(index)}:{idle}" for name, index, idle in users if current)


# Parameters of several lines, and what is read of them.
_LCTL_BLOCK_PATTERN = re.compile(
    r"^(?:obdfilter|mdt|mdd)\.([^.=\s]+)\.(recovery_status|changelog_users)=\n?((?:[^=\n]*\n|[^\n.]*mask=.*\n?)*[^=\n]*)",
    re.MULTILINE,
)
_BLOCK_READERS = {"recovery_status": _read_recovery_status, "changelog_users": _read_changelog_users}


def read_lctl_parameters(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lctl get_param and lctl dl: parameters of targets and clients, and devices that are not up."""
    systems: dict[str, dict[str, str]] = {}
    for _, name, parameter, value in _LCTL_PATTERN.findall(output_text):
        if value.strip():
            systems.setdefault(name, {})[parameter] = value.strip()
    if node := {
        parameter: value.strip() for parameter, value in _LCTL_NODE_PATTERN.findall(output_text) if value.strip()
    }:
        systems["parameters of the node"] = node
    for name, parameter, text in _LCTL_BLOCK_PATTERN.findall(output_text):
        systems.setdefault(name, {})[parameter] = _BLOCK_READERS[parameter](text)
    for state, kind, name in _LCTL_DEVICE_PATTERN.findall(output_text):
        if kind in ("osc", "mdc", "obdfilter", "mdt", "mgs", "osp"):
            systems.setdefault(name, {})["device_state"] = state
    if not systems:
        raise UserError(
            f"{output_origin} names no parameter and no device; it should be what lctl get_param or dl prints."
        )
    return ObservedStorage(
        tuple(ObservedFileSystem(name, "lustre", facts=facts, origin=output_origin) for name, facts in systems.items())
    )
