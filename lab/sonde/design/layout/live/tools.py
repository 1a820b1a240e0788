# SPDX-License-Identifier: Apache-2.0
"""Outputs of today's tools, live or saved: lsblk, mdadm, lvs, multipathd, dumpe2fs, lfs getstripe, zpool and zfs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sonde.design.layout.live.seen import Seen, SeenDisk, SeenFileSystem, SeenPath
from sonde.model.errors import UserError

_KIB = 1024
_KINDS = {"disk": "disk", "part": "part", "lvm": "lvm", "mpath": "multipath", "loop": "loop"}
_PARITY = {"raid4": 1, "raid5": 1, "raid6": 2}


def _json(text: str, origin: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as reason:
        raise UserError(f"{origin} is not valid JSON: {reason}.") from None


def read_lsblk(text: str, origin: str) -> Seen:
    """lsblk --json --bytes --output-all: disks, what lies on them, queue settings."""
    disks: dict[str, SeenDisk] = {}
    for one in _json(text, origin).get("blockdevices", []):
        for disk in _lsblk(one, "", origin):
            known = disks.get(disk.name)
            members = tuple(dict.fromkeys((known.members if known else ()) + disk.members))
            disks[disk.name] = disk if known is None else _with_members(disk, members, disks)
    if not disks:
        raise UserError(f"{origin} names no block device; write it with lsblk --json --bytes --output-all.")
    return Seen(disks=disks)


def _with_members(disk: SeenDisk, members: tuple[str, ...], disks: dict[str, SeenDisk]) -> SeenDisk:
    sizes = tuple(size for one in members if one in disks and (size := disks[one].size) is not None)
    return replace(disk, members=members, member_sizes=sizes)


def _lsblk(entry: dict[str, Any], above: str, origin: str) -> Iterator[SeenDisk]:
    kind = str(entry.get("type", "disk"))
    queue = {
        name: str(entry[key]) for name, key in (
            ("read_ahead_kb", "ra"), ("scheduler", "sched"), ("nr_requests", "rq-size"), ("minimum_io_size", "min-io"),
            ("optimal_io_size", "opt-io"), ("logical_block_size", "log-sec"), ("physical_block_size", "phy-sec"),
        ) if entry.get(key) is not None
    }  # fmt: skip
    size, start = entry.get("size"), entry.get("start")
    raid = kind.startswith("raid")
    name = str(entry.get("kname") or entry.get("name"))
    least, best = (int(queue.get(one, 0) or 0) for one in ("minimum_io_size", "optimal_io_size"))
    striped = raid and best > least > 0
    yield SeenDisk(
        name, "md" if raid else _KINDS.get(kind, "other"), int(size) if size is not None else None,
        int(start) * 512 if start is not None and kind == "part" else None, above if kind == "part" else "",
        () if kind == "part" or not above else (above,), level=kind if raid else "",
        unit=least if striped else None, data=best // least if striped else None, queue=queue,
        flash=None if entry.get("rota") is None else not entry["rota"], origin=origin,
    )  # fmt: skip
    for child in entry.get("children", []):
        yield from _lsblk(child, name, origin)


def read_mdadm(text: str, origin: str) -> Seen:
    """mdadm --detail, also with --export."""
    told = dict(re.findall(r"^(MD_\w+)=(.*)$", text, re.MULTILINE))
    shown = {
        name.strip(): value.strip() for name, value in re.findall(r"^\s*([A-Z][\w ]+) : (.*)$", text, re.MULTILINE)
    }
    level = told.get("MD_LEVEL") or shown.get("Raid Level", "")
    disks = int(told.get("MD_DEVICES") or shown.get("Raid Devices", "0") or 0)
    if not level or not disks:
        raise UserError(f"{origin} names no RAID level and devices; it should be what mdadm --detail --export prints.")
    chunk = re.match(r"(\d+)K", shown.get("Chunk Size", "") or told.get("MD_CHUNK_SIZE", ""))
    data = disks - _PARITY[level] if level in _PARITY else disks if level == "raid0" else None
    copies = re.match(r"near=(\d+)", shown.get("Layout", ""))
    if level == "raid10":
        data = disks // (int(copies[1]) if copies else 2)
    head = re.match(r"(/dev/\S+):", text)
    name = (told.get("MD_DEVNAME") or told.get("MD_NAME") or (head[1] if head else origin)).rsplit("/", 1)[-1]
    devices = re.findall(r"^MD_DEVICE_\w+_DEV=(\S+)", text, re.MULTILINE)
    devices = devices or re.findall(r"^\s+\d+\s+\d+\s+\d+\s+\d+\s+.*?(/dev/\S+)$", text, re.MULTILINE)
    state = shown.get("State", "")
    settings = {"level": level, "degraded": "1" if "degraded" in state else "0"}
    if "recover" in state or "resync" in state:
        settings["sync_action"] = "recover"
    return Seen(disks={name: SeenDisk(
        name, "md", members=tuple(one.rsplit("/", 1)[-1] for one in devices), level=level,
        geometry=f"{data}+{_PARITY.get(level, 0)}" if data and level != "raid10" else f"{data}x2" if data else "",
        data=data, unit=int(chunk[1]) * _KIB if chunk else None, settings=settings, state=state, origin=origin,
    )})  # fmt: skip


def read_lvs(text: str, origin: str) -> Seen:
    """lvs --segments --units b --nosuffix --reportformat json -o +stripes,stripe_size,devices,seg_size."""
    disks: dict[str, SeenDisk] = {}
    for report in _json(text, origin).get("report", []):
        for one in report.get("seg", report.get("lv", [])):
            stripes, unit = int(one.get("stripes") or one.get("#Str") or 1), int(one.get("stripe_size") or 0)
            members = tuple(
                part.partition("(")[0].rsplit("/", 1)[-1] for part in str(one.get("devices", "")).split(",") if part
            )
            name = f"{one['vg_name']}-{one['lv_name']}"
            size = int(one.get("lv_size") or one.get("seg_size") or 0) or None
            disks[name] = SeenDisk(
                name, "lvm", size, members=members, level="raid0" if stripes > 1 else "linear",
                data=stripes if stripes > 1 else None, unit=unit or None, origin=origin,
            )  # fmt: skip
    if not disks:
        raise UserError(f"{origin} names no logical volume; write it with lvs --segments --reportformat json.")
    return Seen(disks=disks)


def read_multipath(text: str, origin: str) -> Seen:
    """multipathd show maps json."""
    disks: dict[str, SeenDisk] = {}
    for one in _json(text, origin).get("maps", []):
        groups = one.get("path_groups", [])
        best = max((int(group.get("pri", 0)) for group in groups), default=0)
        paths = [_path(path, group, best) for group in groups for path in group.get("paths", [])]
        name = str(one.get("sysfs") or one.get("name"))
        disks[name] = SeenDisk(
            name, "multipath", paths=tuple(paths), settings={"name": str(one.get("name", ""))}, origin=origin
        )
    if not disks:
        raise UserError(f"{origin} names no map; write it with multipathd show maps json.")
    return Seen(disks=disks)


def _path(path: dict[str, Any], group: dict[str, Any], best: int) -> SeenPath:
    active = group.get("dm_st") == "active" and path.get("dm_st") == "active"
    return SeenPath(
        str(path.get("dev")), int(group.get("pri", 0)) == best, active, errors=int(path.get("path_faults", 0) or 0),
        state=f"{path.get('dm_st', '')} {path.get('chk_st', '')}".strip(),
    )  # fmt: skip


def read_dumpe2fs(text: str, origin: str) -> Seen:
    """dumpe2fs -h."""
    told = {name.strip(): value.strip() for name, value in re.findall(r"^([A-Z][\w /]+?):\s+(.*)$", text, re.MULTILINE)}
    if "Block size" not in told or "Block count" not in told:
        raise UserError(f"{origin} names no block size and count; it should be what dumpe2fs -h prints.")
    block, blocks = int(told["Block size"]), int(told["Block count"])
    journal = re.match(r"(\d+)([kM])", told.get("Total journal size") or told.get("Journal size", ""))
    per_group = int(told.get("Blocks per group", 0)) or None
    external = "Journal device" in told
    name = told.get("Last mounted on") or told.get("Filesystem volume name") or origin
    log = int(journal[1]) * {"k": _KIB, "M": _KIB * _KIB}[journal[2]] if journal else None
    return Seen((SeenFileSystem(
        origin if name in ("<not available>", "<none>") else name, "ext4", "", block, blocks,
        int(told.get("RAID stride", 0)) * block, int(told.get("RAID stripe width", 0)) * block,
        -(-blocks // per_group) if per_group else None, per_group, log,
        told.get("Journal device") if external else "internal", origin=origin,
    ),))  # fmt: skip


def read_getstripe(text: str, origin: str) -> Seen:
    """lfs getstripe of a file or directory: stripe count, size, and the targets of its objects."""
    names = dict(re.findall(r"(lmm_stripe_count|lmm_stripe_size|stripe_count|stripe_size|lmm_pattern):\s+(\S+)", text))
    count, size = (names.get(f"lmm_{one}") or names.get(one) for one in ("stripe_count", "stripe_size"))
    if count is None or size is None:
        raise UserError(f"{origin} names no stripe count and size; it should be what lfs getstripe prints.")
    lines = [line.split() for line in text.splitlines()]
    targets = [one[0] for one in lines if len(one) == 4 and one[0].isdigit() and one[2].startswith("0x")]
    facts = {"stripe_count": count, "stripe_size": size, "targets": " ".join(targets)}
    path = next((line.strip() for line in text.splitlines() if line.startswith("/")), origin)
    return Seen(
        (SeenFileSystem(path, "lustre", unit=int(size) if size.isdigit() else None, facts=facts, origin=origin),)
    )


def read_zpool(text: str, origin: str) -> Seen:
    """zpool status, with zpool get or zfs get of ashift, recordsize and capacity behind it."""
    pool, state = (re.search(rf"^\s*{one}:\s+(\S+)", text, re.MULTILINE) for one in ("pool", "state"))
    if pool is None:
        raise UserError(f"{origin} names no pool; it should be what zpool status prints.")
    vdevs = re.findall(r"^\s+((?:raidz\d?|mirror)-\d+)\s+(\w+)", text, re.MULTILINE)
    widths, current = dict[str, int](), ""
    for line in text.splitlines():
        words = line.split()
        if words and re.match(r"(raidz\d?|mirror)-\d+$", words[0]):
            current = words[0]
            widths[current] = 0
        elif current and len(words) >= 5 and words[0] not in ("NAME", "logs", "cache", "spares"):
            widths[current] += 1
        else:
            current = ""
    wanted = rf"^{re.escape(pool[1])}\S*\s+(ashift|recordsize|capacity|fragmentation)\s+(\S+)"
    facts: dict[str, str] = dict(re.findall(wanted, text, re.MULTILINE))
    facts |= {"vdevs": " ".join(f"{name}={width}" for name, width in widths.items()),
              "sick": " ".join(f"{name}={word}" for name, word in vdevs if word != "ONLINE"),
              "state": state[1] if state else ""}  # fmt: skip
    return Seen((SeenFileSystem(pool[1], "zfs", facts=facts, origin=origin),))
