# SPDX-License-Identifier: Apache-2.0
"""Listings of the Cray X1, and what mkfs, xfs_growfs and xfs_info print, then as now: csmreport, pm, parts, xlv_mgr.

Lines that are not understood are kept, so that nobody takes silence for "all is well".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.layout.geometry import MIB, csm_size
from sonde.design.layout.live.seen import Seen, SeenDisk, SeenFileSystem, SeenPath, Slices
from sonde.model.errors import UserError

_WORD = re.compile(r"([a-z_]+)=([^\s,]+)")


def read_xfs(text: str, origin: str) -> Seen:
    """mkfs.xfs, xfs_growfs -n, xfs_info. Units of sunit and swidth are file system blocks in all of them."""
    section, found, unread = "", dict[str, dict[str, str]](), list[str]()
    for line in text.splitlines():
        head = re.match(r"\s*(meta-data|data|naming|log|realtime)\s*=", line)
        section = head[1] if head else section
        if not section or line.lstrip().startswith(("#", "$")) or "# " in line.split("=")[0]:
            continue
        rest = line[head.end() :] if head else line
        if head and section in ("meta-data", "log"):
            found.setdefault(section, {})["name"] = rest.split()[0] if rest.split() else ""
        pairs = _WORD.findall(rest)
        lines = found.setdefault(section, {})
        lines |= {name: value for name, value in pairs if name not in lines}
        if re.search(r"sun|swid|uni t", rest) and not {"sunit", "swidth"} <= lines.keys():
            unread.append(f"{origin}: {line.strip()}")
    if "data" not in found:
        raise UserError(f"{origin} has no line that begins with data; it should be what xfs_info prints.")
    meta, data, log = (found.get(one, {}) for one in ("meta-data", "data", "log"))
    block = _number(data, "bsize")
    name = meta.get("name", "") or origin
    log_block = _number(log, "bsize") or block
    log_blocks = _number(log, "blocks")
    unit, width = (_times(_number(data, one), block) for one in ("sunit", "swidth"))
    one = SeenFileSystem(
        name, "xfs", name if name.startswith("/dev") else "", block, _number(data, "blocks"), unit, width,
        _number(meta, "agcount"), _number(meta, "agsize"), _times(log_blocks, log_block), log.get("name") or None,
        origin=origin,
    )  # fmt: skip
    return Seen((one,), unread=tuple(unread))


def _number(words: dict[str, str], name: str) -> int | None:
    match = re.match(r"\d+", words.get(name, ""))
    return int(match[0]) if match else None


def _times(count: int | None, block: int | None) -> int | None:
    return None if count is None or block is None else count * block


# ---- csmreport

_LUN = re.compile(
    r"LUNs?\s*[:;]?\s*(?:LUN)?\s*[:;]?\s*(\d+)\s+(\S+)\s+(\w+)\s+RAID-(\d+)/([0-9]+[+x][0-9]+)/([0-9]+[KM]B)\s+(\d+[KMGT]B)",
    re.IGNORECASE,
)


def read_csmreport(text: str, origin: str) -> Seen:
    """LUNs with geometry, segment, size (powers of 1000) and state; the states of controllers and channels."""
    disks: dict[str, SeenDisk] = {}
    unread = []
    controller, sick = "", list[SeenDisk]()
    for line in text.splitlines():
        words = line.strip()
        head = re.match(r"(CTLR-\w+)\s+\(?(\w*)\)?\s*(\S+)?\s+(\w+)\s+(\w+)$", words)
        if head:
            controller = head[1]
            sick.append(SeenDisk(controller, "controller", state=f"{head[4]} {head[5]}", origin=origin))
            continue
        channel = re.search(r"alpa:\s*\S+\s+(\w+)\s+Label:\s*(\S+)", words)
        if channel:
            sick.append(SeenDisk(channel[2], "channel", state=channel[1], origin=origin))
            continue
        lun = _LUN.match(words)
        if lun:
            number, label, state, level, geometry, segment, size = lun.groups()
            data = int(re.split("[+x]", geometry)[0])
            disks[label] = SeenDisk(
                label, "lun", csm_size(size), level=f"raid{level}", geometry=geometry, data=data,
                unit=csm_size(segment, binary=True), state=state, origin=f"{origin}, LUN {number}",
                settings={"number": number, "controller": controller},
            )  # fmt: skip
        elif "RAID-" in words or (re.match(r"LUN", words, re.IGNORECASE) and "UTM" not in words):
            unread.append(f"{origin}: {words}")
    if not disks:
        raise UserError(f'{origin} has no line like "LUN: 10 01d04_A2_L10 Optimal RAID-5/8+1/256KB 583GB".')
    return Seen(disks=disks | {one.name: one for one in sick}, unread=tuple(unread))


# ---- pm, pm -v ustat

_PATH = re.compile(r"(fc\w+)\s+(pri|alt)\s+(act\w*|st\w*by|standby|fail\w*)\s+(\d+)\s+(\d+)(?:\s+(\d+))?")


def read_pm(text: str, origin: str) -> Seen:
    """Paths of each device: preferred or alternate, active or standby, blocks read and written, errors."""
    found: dict[str, list[SeenPath]] = {}
    facts: dict[str, dict[str, str]] = {}
    device, unread, columns = "", list[str](), list[str]()
    for line in text.splitlines():
        words = line.strip()
        head = re.match(r"(pm\w+)(?:\s+(%rd.*))?$", words)
        if head:
            device = head[1]
            found.setdefault(device, [])
            columns = re.findall(r"%rd|maxor|nor|wait|avg rd|avg wrt|sz/GBs", head[2] or "")
            continue
        path = _PATH.match(words)
        if path and device:
            name, port, state, read, written, errors = path.groups()
            found[device].append(SeenPath(name, port == "pri", state.startswith("act"), int(read), int(written),
                                          None if errors is None else int(errors), state))  # fmt: skip
        elif columns and re.fullmatch(r"[0-9. ]+", words) and len(words.split()) == len(columns):
            facts[device] = dict(zip(columns, words.split(), strict=True))
        elif words.startswith("fc"):
            unread.append(f"{origin}: {words}")
    if not any(found.values()):
        raise UserError(f'{origin} has no path like "fc2d0L0 pri active 866071 812707 0".')
    disks = {}
    for name, paths in found.items():
        told = facts.get(name, {})
        size = round(float(told["sz/GBs"]) * 1e9) if "sz/GBs" in told else None
        depth = int(told["maxor"]) if told.get("maxor", "").isdigit() else None
        disks[name] = SeenDisk(
            name, "multipath", size, paths=tuple(paths), queue_depth=depth, settings=told, origin=origin
        )
    return Seen(disks=disks, unread=tuple(unread))


# ---- parts

_PART = re.compile(r"part\s+(\d+)\s+(?:-t\s+(\w+)\s+)?(\d+(?:\.\d+)?)\s*(%|[KMGT])", re.IGNORECASE)
_FACTOR = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def read_parts(text: str, origin: str) -> Seen:
    """A configuration file of parts, and the disk where its command is there too."""
    rows: list[tuple[int, float | None, int | None, str]] = []
    step, disk, unread = None, "", list[str]()
    for line in text.splitlines():
        words = line.strip()
        told = re.match(r"modulo\s+(\d+)\s*([KMG])", words, re.IGNORECASE)
        part = _PART.match(words)
        command = re.search(r"/sbin/parts.*\s(\S+)$", words)
        if told:
            step = int(told[1]) * {"K": 1 << 10, "M": MIB, "G": 1 << 30}[told[2].upper()]
        elif part:
            number, kind, amount, unit = part.groups()
            share = float(amount) / 100 if unit == "%" else None
            size = None if share is not None else round(float(amount) * _FACTOR[unit.upper()])
            rows.append((int(number), share, size, kind or (words.partition("#")[2].strip())))
        elif command:
            disk = command[1]
        elif words and not words.startswith("#"):
            unread.append(f"{origin}: {words}")
    if not rows:
        raise UserError(f'{origin} has no line like "part 11 100%".')
    return Seen(slices=(Slices(disk or origin, tuple(rows), step, disk, origin),), unread=tuple(unread))


# ---- xlv_mgr show -long

_VE = re.compile(r"VE\s+(\S+)\s+\[(\w+)\]")
_SPAN = re.compile(r"start=(\d+),\s*end=(\d+),\s*\((\w+)\)\s*grp size=(\w+)(?:,\s*stripe unit size=(\d+))?")
_MEMBER = re.compile(r"(/hw/disk/\S+)\s+\((\d+) blks\)")


def read_xlv(text: str, origin: str) -> Seen:
    """Volumes: each VE is a disk of members in blocks of 512 B."""
    disks: dict[str, SeenDisk] = {}
    for name, state, start, end, kind, unit, members in _elements(text):
        sizes = tuple(size * 512 for _, size in members)
        disks[name] = SeenDisk(
            name, "xlv", (end - start + 1) * 512, members=tuple(one for one, _ in members), member_sizes=sizes,
            level="raid0" if kind == "stripe" else "linear", unit=unit * 512 if unit else None,
            data=len(members) if kind == "stripe" else None, state=state, origin=origin,
        )  # fmt: skip
        disks |= {one: SeenDisk(one, "slice", size * 512, origin=origin) for one, size in members}
    if not disks:
        raise UserError(f'{origin} has no volume element like "VE xlv0.data.0.0 [active]".')
    return Seen(disks=disks)


def _elements(text: str) -> Iterator[tuple[str, str, int, int, str, int, list[tuple[str, int]]]]:
    parts = _VE.split(text)
    for name, state, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        span = _SPAN.search(body)
        if span:
            members = [(one, int(size)) for one, size in _MEMBER.findall(body)]
            yield name, state, int(span[1]), int(span[2]), span[3], int(span[5] or 0), members
