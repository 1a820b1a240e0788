# SPDX-License-Identifier: Apache-2.0
"""Parses live or saved output of Linux tools: lsblk, multipathd, dumpe2fs and lfs getstripe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sonde.design.layout.live.device_output import read_device_from_origin
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedPath, ObservedStorage
from sonde.design.layout.live.text_output import parse_rounded_size
from sonde.model.documents import parse_json
from sonde.model.errors import UserError

_KIB = 1024
# The label of a target of Lustre. Before its first start it has a colon, and an equals sign after writeconf.
TARGET_LABEL_PATTERN = re.compile(r"\w{1,8}[-:=](?:OST|MDT)[0-9a-f]{4}|MGS")
# Columns of lsblk that are stored under their names.
_COLUMNS = ("wwn", "alignment", "zoned", "tran", "model", "rev", "vendor", "partlabel", "hctl")
_KINDS = {"disk": "disk", "part": "part", "lvm": "lvm", "mpath": "multipath", "loop": "loop"}


def _parse_json(json_text: str, output_origin: str) -> Any:
    try:
        return parse_json(json_text)
    except ValueError as reason:
        raise UserError(f"{output_origin} is not valid JSON: {reason}.") from None


def read_lsblk_json(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lsblk --json --bytes --output-all: disks, what is on them, queue settings."""
    disks: dict[str, ObservedDisk] = {}
    for entry in _parse_json(output_text, output_origin).get("blockdevices", []):
        for disk in _parse_lsblk_entry(entry, "", output_origin):
            previous = disks.get(disk.name)
            members = tuple(dict.fromkeys((previous.members if previous else ()) + disk.members))
            disks[disk.name] = disk if previous is None else _replace_members(disk, members, disks)
    if not disks:
        raise UserError(f"{output_origin} names no block device; write it with lsblk --json --bytes --output-all.")
    return ObservedStorage(disks=disks)


def _replace_members(disk: ObservedDisk, members: tuple[str, ...], disks: dict[str, ObservedDisk]) -> ObservedDisk:
    sizes = tuple(size for member in members if member in disks and (size := disks[member].size) is not None)
    return replace(disk, members=members, member_sizes=sizes)


def _parse_lsblk_entry(lsblk_entry: dict[str, Any], parent_name: str, output_origin: str) -> Iterator[ObservedDisk]:
    kind = str(lsblk_entry.get("type", "disk"))
    queue = {
        name: str(lsblk_entry[key]) for name, key in (
            ("read_ahead_kb", "ra"), ("scheduler", "sched"), ("nr_requests", "rq-size"), ("minimum_io_size", "min-io"),
            ("optimal_io_size", "opt-io"), ("logical_block_size", "log-sec"), ("physical_block_size", "phy-sec"),
        ) if lsblk_entry.get(key) is not None
    }  # fmt: skip
    size, start = lsblk_entry.get("size"), lsblk_entry.get("start")
    raid = kind.startswith("raid")
    name = str(lsblk_entry.get("kname") or lsblk_entry.get("name"))
    least, best = (int(queue.get(name, 0) or 0) for name in ("minimum_io_size", "optimal_io_size"))
    striped = raid and best > least > 0
    mount_points = [point for point in (lsblk_entry.get("mountpoints") or [lsblk_entry.get("mountpoint")]) if point]
    settings = {
        member: str(value) for member, value in (
            ("fs_uuid", lsblk_entry.get("uuid")), ("fs_label", lsblk_entry.get("label")),
            ("fs_kind", lsblk_entry.get("fstype")), ("name", lsblk_entry.get("name")),
            ("mountpoint", mount_points[0] if mount_points else None), ("serial", lsblk_entry.get("serial")),
            *((column, lsblk_entry.get(column)) for column in _COLUMNS), ("number", lsblk_entry.get("maj:min")),
            ("used_percent", str(lsblk_entry.get("fsuse%") or "").rstrip("%")),
            ("read_only", "1" if str(lsblk_entry.get("ro")).lower() in ("true", "1") else None),
        ) if value
    }  # fmt: skip
    yield ObservedDisk(
        name, "md" if raid else _KINDS.get(kind, "other"),
        int(str(size)) if str(size).isdigit() else parse_rounded_size(size),
        int(start) * 512 if start is not None and kind == "part" else None, parent_name if kind == "part" else "",
        () if kind == "part" or not parent_name else (parent_name,), level=kind if raid else "",
        unit=least if striped else None, data=best // least if striped else None, queue=queue, settings=settings,
        flash=None if lsblk_entry.get("rota") is None else not lsblk_entry["rota"], origin=output_origin,
    )  # fmt: skip
    for child in lsblk_entry.get("children", []):
        yield from _parse_lsblk_entry(child, name, output_origin)


def read_multipathd_json(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses multipathd show maps json."""
    disks: dict[str, ObservedDisk] = {}
    for entry in _parse_json(output_text, output_origin).get("maps", []):
        groups = entry.get("path_groups", [])
        best = max((int(group.get("pri", 0)) for group in groups), default=0)
        paths = [
            _parse_multipath_path(path, group, best, number)
            for number, group in enumerate(groups)
            for path in group.get("paths", [])
        ]
        selectors = [str(group["selector"]) for group in groups if "selector" in group]
        name = str(entry.get("sysfs") or entry.get("name"))
        disks[name] = ObservedDisk(
            name, "multipath", paths=tuple(paths), origin=output_origin,
            settings={"name": str(entry.get("name", ""))} | ({"policy": selectors[0]} if selectors else {}),
        )  # fmt: skip
    if not disks:
        raise UserError(f"{output_origin} names no map; write it with multipathd show maps json.")
    return ObservedStorage(disks=disks)


def _parse_multipath_path(
    path_entry: dict[str, Any], group_entry: dict[str, Any], best_priority: int, group_number: int
) -> ObservedPath:
    active = group_entry.get("dm_st") == "active" and path_entry.get("dm_st") == "active"
    return ObservedPath(
        str(path_entry.get("dev")),
        int(group_entry.get("pri", 0)) == best_priority,
        active,
        errors=int(path_entry.get("path_faults", 0) or 0),
        state=f"{path_entry.get('dm_st', '')} {path_entry.get('chk_st', '')}".strip(),
        group=group_number,
        priority=int(group_entry.get("pri", 0)),
    )


def read_dumpe2fs(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses dumpe2fs -h."""
    members = {
        name.strip(): value.strip()
        for name, value in re.findall(r"^([A-Z][\w /]+?):\s+(.*)$", output_text, re.MULTILINE)
    }
    if "Block size" not in members or "Block count" not in members:
        raise UserError(f"{output_origin} names no block size and count; it should be what dumpe2fs -h prints.")
    block, blocks = int(members["Block size"]), int(members["Block count"])
    journal = re.match(r"(\d+)([kM])", members.get("Total journal size") or members.get("Journal size", ""))
    per_group = int(members.get("Blocks per group", 0)) or None
    external = "Journal device" in members
    name = members.get("Last mounted on") or members.get("Filesystem volume name") or output_origin
    log = int(journal[1]) * {"k": _KIB, "M": _KIB * _KIB}[journal[2]] if journal else None
    features = members.get("Filesystem features", "")
    facts = {"journal": "yes" if "has_journal" in features else "no"} if features else {}
    facts |= {"reserved": members["Reserved block count"]} if "Reserved block count" in members else {}
    facts |= {"state": state} if (state := members.get("Filesystem state")) else {}
    facts |= {"features": features} if features else {}
    label = members.get("Filesystem volume name", "")
    facts |= {"label": label} if label and label != "<none>" else {}
    facts |= {"inodes": members["Inode count"]} if "Inode count" in members else {}
    free = members.get("Free inodes", "")
    if free.isdigit() and "Inode count" in members:
        facts |= {"inodes_used": str(int(members["Inode count"]) - int(free))}
    facts |= {"error_count": members["FS Error count"]} if "FS Error count" in members else {}
    facts |= {"flex_groups": members["Flex block group size"]} if "Flex block group size" in members else {}
    facts |= {"inode_bytes": members["Inode size"]} if "Inode size" in members else {}
    for fact, title in (("check_interval", "Check interval"), ("max_mounts", "Maximum mount count")):
        number = re.match(r"-?\d+", members.get(title, ""))
        facts |= {fact: number[0]} if number else {}
    if target := TARGET_LABEL_PATTERN.fullmatch(label):
        # the backend of a target of Lustre: what is its last mount point is not where clients see it
        name, kind = re.sub(r"[:=]", "-", target[0]), "ldiskfs"
    else:
        name, kind = output_origin if name in ("<not available>", "<none>") else name, "ext4"
    return ObservedStorage((ObservedFileSystem(
        name, kind, read_device_from_origin(output_origin), block, blocks,
        int(members.get("RAID stride", 0)) * block, int(members.get("RAID stripe width", 0)) * block,
        -(-blocks // per_group) if per_group else None, per_group, log,
        members.get("Journal device") if external else "internal", facts=facts, origin=output_origin,
        uuid=members.get("Filesystem UUID", ""),
    ),))  # fmt: skip


def read_lfs_getstripe(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lfs getstripe of files or directories: stripe count, size, and the targets of the objects of each
    component."""
    starts = [match.start() for match in re.finditer(r"^/\S+.*$", output_text, re.MULTILINE)] or [0]
    files = [
        _read_striped_file(output_text[begin:end], output_origin)
        for begin, end in zip(starts, [*starts[1:], len(output_text)], strict=True)
    ]
    return ObservedStorage(tuple(files))


def _describe_component(component_text: str) -> str:
    """Mirror, begin, end, stripe count, pattern and flags of a component, divided by colons."""
    names = ("lcme_mirror_id", "lcme_extent.e_start", "lcme_extent.e_end", "stripe_count", "pattern", "lcme_flags")
    pairs = dict(re.findall(r"(?:lmm_)?([\w.]+):[ \t]+(\S+)", component_text))
    return ":".join(pairs.get(name, "").replace(":", "") for name in names)


def _read_mirrors_and_pools(components: Sequence[str], targets: Sequence[Sequence[str]]) -> dict[str, str]:
    """The targets of each mirror of a file, and of its objects in each pool."""
    mirrors, pools = dict[str, list[str]](), dict[str, list[str]]()
    for component, indexes in zip(components, targets, strict=True):
        for pattern, groups in ((r"lcme_mirror_id:\s+(\d+)", mirrors), (r"\b(?:lmm_)?pool:[ \t]+(\S+)", pools)):
            if match := re.search(pattern, component):
                groups.setdefault(match[1], []).extend(indexes)
    facts = {f"targets of {pool}": " ".join(indexes) for pool, indexes in pools.items()}
    facts["mirrors"] = " / ".join(" ".join(indexes) for indexes in mirrors.values()) if len(mirrors) > 1 else ""
    return {name: text for name, text in (facts | {"pools": " ".join(pools)}).items() if text}


def _read_striped_file(file_text: str, output_origin: str) -> ObservedFileSystem:
    components = re.split(r"^(?=[ \t]*(?:-[ \t]+)?lcme_id:)", file_text, flags=re.MULTILINE)
    components = components[1:] if len(components) > 1 else components
    members: list[dict[str, str]] = []
    targets: list[list[str]] = []
    for component in components:
        pairs = re.findall(r"(?:lmm_)?(stripe_count|stripe_size):\s+(\S+)", component)
        members.append(dict(pairs))
        lines = [line.split() for line in component.splitlines()]
        indexes = [line[0] for line in lines if len(line) == 4 and line[0].isdigit() and line[2].startswith("0x")]
        targets.append(indexes + re.findall(r"l_ost_idx:\s*(\d+)", component))
    last = members[-1]
    if "stripe_count" not in last or "stripe_size" not in last:
        raise UserError(f"{output_origin} names no stripe count and size; it should be what lfs getstripe prints.")
    sizes = [member["stripe_size"] for member in members if member.get("stripe_size", "").isdigit()]
    facts = {
        "stripe_count": last["stripe_count"] if len(members) == 1 else "",
        "stripe_size": last["stripe_size"],
        "stripe_sizes": " ".join(dict.fromkeys(sizes)),
        "targets": " ".join(targets[0]) if len(targets) == 1 else "",
        "components": " / ".join(" ".join(indexes) for indexes in targets) if len(targets) > 1 else "",
    }
    facts |= _read_mirrors_and_pools(components, targets)
    layout = " ".join(_describe_component(component) for component in components if "lcme_extent" in component)
    facts |= {"layout": layout} if layout else {}
    # of directories lfs prints the layout of new files without the prefix lmm_: its offset is where they begin
    default = re.findall(r"(?<!lmm_)\bstripe_offset:\s+(-?\d+)", file_text)
    facts |= {"default_offset": default[0]} if default else {}
    path = next((line.strip() for line in file_text.splitlines() if line.startswith("/")), "")
    # of a directory without further arguments lfs prints no name: the command has it
    argument = re.search(r"\blfs getstripe (?:-\S+ )*(/\S*)$", output_origin)
    path = path or (argument[1] if argument is not None else output_origin)
    unit = int(last["stripe_size"]) if last["stripe_size"].isdigit() else None
    return ObservedFileSystem(path, "lustre", unit=unit, facts=facts, origin=output_origin)
