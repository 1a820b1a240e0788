# SPDX-License-Identifier: Apache-2.0
"""Parses output of the Cray X1 (csmreport, pm, parts, xlv_mgr) and of mkfs.xfs, xfs_growfs and xfs_info, old and new.

Lines that cannot be parsed are reported, so that a missing fault does not pass for a good layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.layout.geometry import MIB, parse_csm_size
from sonde.design.layout.live.observations import (
    ObservedDisk,
    ObservedFileSystem,
    ObservedPath,
    ObservedSlices,
    ObservedStorage,
)
from sonde.model.errors import UserError

_WORD_PATTERN = re.compile(r"([a-z_-]+)=([^\s,]+)")


def read_xfs_info(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses mkfs.xfs, xfs_growfs -n or xfs_info. All of them state sunit and swidth in file-system blocks."""
    section, sections, unread = "", dict[str, dict[str, str]](), list[str]()
    for line in output_text.splitlines():
        head = re.match(r"\s*(meta-data|data|naming|log|realtime)\s*=", line)
        section = head[1] if head else section
        if not section or line.lstrip().startswith(("#", "$")) or "# " in line.split("=")[0]:
            continue
        pairs_text = line[head.end() :] if head else line
        if head and section in ("meta-data", "log", "realtime"):
            sections.setdefault(section, {})["name"] = pairs_text.split()[0] if pairs_text.split() else ""
        pairs = _WORD_PATTERN.findall(pairs_text)
        lines = sections.setdefault(section, {})
        lines |= {name: value for name, value in pairs if name not in lines}
        # the log has a unit and no width
        expected = {"sunit"} if section == "log" else {"sunit", "swidth"}
        if re.search(r"sun|swid|uni t", pairs_text) and not expected <= lines.keys():
            unread.append(f"{output_origin}: {line.strip()}")
    if "data" not in sections:
        raise UserError(f"{output_origin} has no line that begins with data; it should be what xfs_info prints.")
    meta, data, naming, log = (
        sections.get(section_name, {}) for section_name in ("meta-data", "data", "naming", "log")
    )
    block = _parse_member_number(data, "bsize")
    name = meta.get("name", "") or output_origin
    log_block = _parse_member_number(log, "bsize") or block
    log_blocks = _parse_member_number(log, "blocks")
    unit, width = (_multiply_if_known(_parse_member_number(data, member), block) for member in ("sunit", "swidth"))
    file_system = ObservedFileSystem(
        name, "xfs", name if name.startswith("/dev") else "", block, _parse_member_number(data, "blocks"), unit, width,
        _parse_member_number(meta, "agcount"),
        _parse_member_number(meta, "agsize"),
        _multiply_if_known(log_blocks, log_block),
        log.get("name") or None,
        origin=output_origin,
        facts=_read_xfs_facts(meta, naming, log, log_block) | _read_realtime_device(sections.get("realtime", {})),
    )  # fmt: skip
    return ObservedStorage((file_system,), unread=tuple(unread))


def _read_realtime_device(realtime: dict[str, str]) -> dict[str, str]:
    return {"realtime": realtime["name"]} if realtime.get("name") else {}


def _read_xfs_facts(
    meta_fields: dict[str, str], naming_fields: dict[str, str], log_fields: dict[str, str], log_block_bytes: int | None
) -> dict[str, str]:
    log_unit = _multiply_if_known(_parse_member_number(log_fields, "sunit"), log_block_bytes)
    values = {"sector": meta_fields.get("sectsz", ""), "crc": meta_fields.get("crc", ""),
    "lazy-count": log_fields.get("lazy-count", ""),
              "log-version": log_fields.get("version", ""), "finobt": meta_fields.get("finobt", ""),
              "ftype": naming_fields.get("ftype", ""), "isize": meta_fields.get("isize", ""),
              "sparse": meta_fields.get("sparse", ""), "rmapbt": meta_fields.get("rmapbt", ""),
              "log_sector": log_fields.get("sectsz", ""),
              "log_unit": "" if log_unit is None else str(log_unit)}  # fmt: skip
    return {name: value for name, value in values.items() if value.isdigit()}


def _parse_member_number(members_by_name: dict[str, str], member_name: str) -> int | None:
    match = re.match(r"\d+", members_by_name.get(member_name, ""))
    return int(match[0]) if match else None


def _multiply_if_known(block_count: int | None, block_bytes: int | None) -> int | None:
    return None if block_count is None or block_bytes is None else block_count * block_bytes


# ---- csmreport

_LUN_PATTERN = re.compile(
    r"LUNs?\s*[:;]?\s*(?:LUN)?\s*[:;]?\s*(\d+)\s+(\S+)\s+(\w+)\s+RAID-(\d+)/([0-9]+[+x][0-9]+)/([0-9]+[KM]B)\s+(\d+[KMGT]B)",
    re.IGNORECASE,
)


def read_csmreport(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses LUNs with geometry, segment, size (powers of 1000) and state, and the states of controllers and
    channels."""
    disks: dict[str, ObservedDisk] = {}
    unread = []
    controller, sick = "", list[ObservedDisk]()
    for line in output_text.splitlines():
        stripped = line.strip()
        head = re.match(r"(CTLR-\w+)\s+\(?(\w*)\)?\s*(\S+)?\s+(\w+)\s+(\w+)$", stripped)
        if head:
            controller = head[1]
            sick.append(ObservedDisk(controller, "controller", state=f"{head[4]} {head[5]}", origin=output_origin))
            continue
        channel = re.search(r"alpa:\s*\S+\s+(\w+)\s+Label:\s*(\S+)", stripped)
        if channel:
            sick.append(ObservedDisk(channel[2], "channel", state=channel[1], origin=output_origin))
            continue
        lun = _LUN_PATTERN.match(stripped)
        if lun:
            number, label, state, level, geometry, segment, size = lun.groups()
            data = int(re.split("[+x]", geometry)[0])
            disks[label] = ObservedDisk(
                label,
                "lun",
                parse_csm_size(size),
                level=f"raid{level}",
                geometry=geometry,
                data=data,
                unit=parse_csm_size(segment, in_powers_of_1024=True),
                state=state,
                origin=f"{output_origin}, LUN {number}",
                settings={"number": number, "controller": controller},
            )
        elif "RAID-" in stripped or (re.match(r"LUN", stripped, re.IGNORECASE) and "UTM" not in stripped):
            unread.append(f"{output_origin}: {stripped}")
    if not disks:
        raise UserError(f'{output_origin} has no line like "LUN: 10 01d04_A2_L10 Optimal RAID-5/8+1/256KB 583GB".')
    return ObservedStorage(disks=disks | {component.name: component for component in sick}, unread=tuple(unread))


# ---- pm, pm -v ustat

_PATH_PATTERN = re.compile(r"(fc\w+)\s+(pri|alt)\s+(act\w*|st\w*by|standby|fail\w*)\s+(\d+)\s+(\d+)(?:\s+(\d+))?")


def read_path_manager_output(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses the paths of each device: preferred or alternate, active or standby, blocks read and written, errors."""
    paths_by_device: dict[str, list[ObservedPath]] = {}
    facts: dict[str, dict[str, str]] = {}
    device, unread, columns = "", list[str](), list[str]()
    for line in output_text.splitlines():
        stripped = line.strip()
        head = re.match(r"(pm\w+)(?:\s+(%rd.*))?$", stripped)
        if head:
            device = head[1]
            paths_by_device.setdefault(device, [])
            columns = re.findall(r"%rd|maxor|nor|wait|avg rd|avg wrt|sz/GBs", head[2] or "")
            continue
        path = _PATH_PATTERN.match(stripped)
        if path and device:
            name, port, state, read, written, errors = path.groups()
            error_count = None if errors is None else int(errors)
            paths_by_device[device].append(
                ObservedPath(name, port == "pri", state.startswith("act"), int(read), int(written), error_count, state)
            )
        elif columns and re.fullmatch(r"[0-9. ]+", stripped) and len(stripped.split()) == len(columns):
            facts[device] = dict(zip(columns, stripped.split(), strict=True))
        elif stripped.startswith("fc"):
            unread.append(f"{output_origin}: {stripped}")
    if not any(paths_by_device.values()):
        raise UserError(f'{output_origin} has no path like "fc2d0L0 pri active 866071 812707 0".')
    disks = {}
    for name, paths in paths_by_device.items():
        settings = facts.get(name, {})
        size = round(float(settings["sz/GBs"]) * 1e9) if "sz/GBs" in settings else None
        depth = int(settings["maxor"]) if settings.get("maxor", "").isdigit() else None
        disks[name] = ObservedDisk(
            name, "multipath", size, paths=tuple(paths), queue_depth=depth, settings=settings, origin=output_origin
        )
    return ObservedStorage(disks=disks, unread=tuple(unread))


# ---- parts

_PART_PATTERN = re.compile(r"part\s+(\d+)\s+(?:-t\s+(\w+)\s+)?(\d+(?:\.\d+)?)\s*(%|[KMGT])", re.IGNORECASE)
_FACTOR = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def read_parts_file(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses a configuration file of parts, and the disk if the file includes the command."""
    rows: list[tuple[int, float | None, int | None, str]] = []
    step, disk, unread = None, "", list[str]()
    for line in output_text.splitlines():
        stripped = line.strip()
        alignment = re.match(r"modulo\s+(\d+)\s*([KMG])", stripped, re.IGNORECASE)
        part = _PART_PATTERN.match(stripped)
        command = re.search(r"/sbin/parts.*\s(\S+)$", stripped)
        if alignment:
            step = int(alignment[1]) * {"K": 1 << 10, "M": MIB, "G": 1 << 30}[alignment[2].upper()]
        elif part:
            number, kind, amount, unit = part.groups()
            share = float(amount) / 100 if unit == "%" else None
            size = None if share is not None else round(float(amount) * _FACTOR[unit.upper()])
            rows.append((int(number), share, size, kind or (stripped.partition("#")[2].strip())))
        elif command:
            disk = command[1]
        elif stripped and not stripped.startswith("#"):
            unread.append(f"{output_origin}: {stripped}")
    if not rows:
        raise UserError(f'{output_origin} has no line like "part 11 100%".')
    return ObservedStorage(
        slices=(ObservedSlices(disk or output_origin, tuple(rows), step, disk, output_origin),), unread=tuple(unread)
    )


# ---- xlv_mgr show -long

_VE_PATTERN = re.compile(r"VE\s+(\S+)\s+\[(\w+)\]")
_SPAN_PATTERN = re.compile(r"start=(\d+),\s*end=(\d+),\s*\((\w+)\)\s*grp size=(\w+)(?:,\s*stripe unit size=(\d+))?")
_MEMBER_PATTERN = re.compile(r"(/hw/disk/\S+)\s+\((\d+) blks\)")


def read_xlv_output(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses volumes: each volume element is a disk with members, in blocks of 512 B."""
    disks: dict[str, ObservedDisk] = {}
    for name, state, start, end, kind, unit, members in _iterate_volume_elements(output_text):
        sizes, names = tuple(size * 512 for _, size in members), [member for member, _ in members]
        twice = list(dict.fromkeys(name for name in names if names.count(name) > 1))
        disks[name] = ObservedDisk(
            name, "xlv", (end - start + 1) * 512, members=tuple(member for member, _ in members), member_sizes=sizes,
            level="raid0" if kind == "stripe" else "linear", unit=unit * 512 if unit else None,
            data=len(members) if kind == "stripe" else None, state=state, origin=output_origin,
            settings={"twice": " ".join(twice)} if twice else {},
        )  # fmt: skip
        disks |= {member: ObservedDisk(member, "slice", size * 512, on=re.sub(r"s\d+$", "", member),
                                       origin=output_origin) for member, size in members}  # fmt: skip
    if not disks:
        raise UserError(f'{output_origin} has no volume element like "VE xlv0.data.0.0 [active]".')
    return ObservedStorage(disks=disks)


def _iterate_volume_elements(output_text: str) -> Iterator[tuple[str, str, int, int, str, int, list[tuple[str, int]]]]:
    parts = _VE_PATTERN.split(output_text)
    for name, state, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        span = _SPAN_PATTERN.search(body)
        if span:
            members = [(member, int(size)) for member, size in _MEMBER_PATTERN.findall(body)]
            yield name, state, int(span[1]), int(span[2]), span[3], int(span[5] or 0), members
