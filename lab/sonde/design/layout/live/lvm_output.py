# SPDX-License-Identifier: Apache-2.0
"""Parses output of LVM and of device mapper: lvs, pvs and dmsetup table, with every segment of a volume."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage, VolumeSegment
from sonde.design.layout.live.text_output import parse_rounded_size
from sonde.model.documents import parse_json
from sonde.model.errors import UserError

_SECTOR = 512
# The form that identifies output of dmsetup table: name, start, length, target and its arguments.
DMSETUP_FORM = r"^\S+: \d+ \d+ [a-z][\w-]*( |$)"
_TABLE_ROW_PATTERN = re.compile(r"^(\S+): (\d+) (\d+) ([a-z][\w-]*) ?(.*)$", re.MULTILINE)
# Columns of the table of lvs, and their names in JSON.
_COLUMNS = {
    "LV": "lv_name", "VG": "vg_name", "Attr": "lv_attr", "LSize": "lv_size", "SSize": "seg_size", "#Str": "stripes",
    "Stripe": "stripe_size", "Devices": "devices", "Type": "segtype", "Origin": "origin", "Data%": "data_percent",
    "Meta%": "metadata_percent", "Pool": "pool_lv", "Cpy%Sync": "copy_percent",
}  # fmt: skip


def _parse_json(json_text: str, output_origin: str) -> Any:
    try:
        return parse_json(json_text)
    except ValueError as reason:
        raise UserError(f"{output_origin} is not valid JSON: {reason}.") from None


def read_lvs_json(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lvs --segments --units b --nosuffix --reportformat json -o +stripes,stripe_size,devices,seg_size."""
    rows = [
        {str(name): str(value) for name, value in row.items()}
        for report in _parse_json(output_text, output_origin).get("report", [])
        for row in report.get("seg", report.get("lv", []))
    ]
    return ObservedStorage(disks=_make_volumes(rows, output_origin))


def read_lvs_table(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses the table of lvs: names and sizes, and the stripes where its columns show them."""
    lines = [line for line in output_text.splitlines() if line.strip()]
    start = next(index for index, line in enumerate(lines) if re.match(r"\s*LV\s+VG\s+Attr", line))
    rows = [
        {_COLUMNS.get(name, name): value for name, value in _split_columns(lines[start], line).items()}
        for line in lines[start + 1 :]
    ]
    unread = (
        ()
        if "#Str" in lines[start].split()
        else (f"{output_origin}: its columns show no stripes; add -o +stripes,stripe_size,devices",)
    )
    disks = _make_volumes([row for row in rows if row.get("lv_name") and row.get("vg_name")], output_origin)
    return ObservedStorage(disks=disks, unread=unread)


def _split_columns(head_line: str, table_line: str) -> dict[str, str]:
    """The values of a line by the titles above them; a column may be empty."""
    titles = [(match[0], match.start(), match.end()) for match in re.finditer(r"\S+", head_line)]
    return {
        title: match[0]
        for match in re.finditer(r"\S+", table_line)
        for title, begin, end in titles
        if match.start() < end and begin < match.end()
    }


def _make_volumes(rows: Sequence[Mapping[str, str]], output_origin: str) -> dict[str, ObservedDisk]:
    """Volumes from the rows of their segments. Raises UserError where there is none."""
    segments: dict[str, list[VolumeSegment]] = {}
    first_rows: dict[str, Mapping[str, str]] = {}
    for row in rows:
        # device mapper doubles the hyphens of names
        name = "-".join(row[member].strip("[]").replace("-", "--") for member in ("vg_name", "lv_name"))
        first_rows.setdefault(name, row)
        segments.setdefault(name, []).append(_parse_segment(row))
    if not first_rows:
        raise UserError(f"{output_origin} names no logical volume; write it with lvs --segments --reportformat json.")
    return {name: _make_volume(name, row, tuple(segments[name]), output_origin) for name, row in first_rows.items()}


def _parse_segment(row: Mapping[str, str]) -> VolumeSegment:
    count = row.get("stripes") or row.get("#Str") or ""
    stripes = int(count) if count.isdigit() else None
    unit = parse_rounded_size(row.get("stripe_size", "")) or None
    members = tuple(
        part.partition("(")[0].rsplit("/", 1)[-1] for part in re.split("[ ,]", row.get("devices", "")) if part
    )
    kind = row.get("segtype") or ("" if stripes is None else "striped" if stripes > 1 else "linear")
    return VolumeSegment(kind, stripes, unit, members, parse_rounded_size(row.get("seg_size", "")))


def _make_volume(
    volume_name: str, row: Mapping[str, str], segments: tuple[VolumeSegment, ...], output_origin: str
) -> ObservedDisk:
    first, attributes = segments[0], row.get("lv_attr", "")
    is_striped = (first.stripes or 1) > 1
    settings = {
        "volume_type": attributes[:1], "permission": attributes[1:2], "state": attributes[4:5],
        "health": attributes[8:9],
        "origin": row.get("origin", "").strip("[]"), "data_percent": row.get("data_percent", ""),
        "metadata_percent": row.get("metadata_percent", ""), "pool": row.get("pool_lv", "").strip("[]"),
        "copy_percent": row.get("copy_percent", ""),
        "volume_group": row["vg_name"],
        "twice": _list_repeated(first.members) if is_striped else "",
    }  # fmt: skip
    total = sum(segment.size or 0 for segment in segments)
    return ObservedDisk(
        volume_name, "lvm", parse_rounded_size(row.get("lv_size", "")) or total or None,
        members=tuple(dict.fromkeys(member for segment in segments for member in segment.members)),
        level="" if first.stripes is None else "raid0" if is_striped else "linear",
        data=first.stripes if is_striped else None, unit=first.unit if is_striped else None, origin=output_origin,
        settings={member: text for member, text in settings.items() if text}, segments=segments,
    )  # fmt: skip


def _list_repeated(names: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(name for name in names if names.count(name) > 1))


def read_pvs_json(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses pvs --units b --nosuffix --reportformat json -o pv_name,vg_name,pe_start,vg_extent_size."""
    disks: dict[str, ObservedDisk] = {}
    for report in _parse_json(output_text, output_origin).get("report", []):
        for volume in report.get("pv", []):
            name = str(volume["pv_name"]).rsplit("/", 1)[-1]
            columns = (("data_start", "pe_start"), ("extent_bytes", "vg_extent_size"), ("group_of_pv", "vg_name"),
                       ("volume_bytes", "pv_size"), ("device_bytes", "dev_size"))  # fmt: skip
            settings = {member: str(volume[column]) for member, column in columns if volume.get(column)}
            disks[name] = ObservedDisk(name, settings=settings, origin=output_origin)
    if not disks:
        raise UserError(f"{output_origin} names no physical volume; write it with pvs --reportformat json.")
    return ObservedStorage(disks=disks)


# The forms that identify the file of devices of LVM and its filters, as lvmconfig prints them.
DEVICES_FILE_FORM = r"^IDTYPE=\w+ IDNAME="
FILTER_FORM = r"^[ \t]*(?:global_)?filter ?= ?\["
_KERNEL_NAME = r"/dev/((?:sd[a-z]+|vd[a-z]+|dm-|nvme\d+n)\d*(?:p\d+)?)"
_ACCEPTED_PATTERN = re.compile(r"\"a(\W)\^?" + _KERNEL_NAME + r"\$?\1\"")


def read_lvm_devices_file(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses /etc/lvm/devices/system.devices: devices that LVM knows by a name of the kernel alone."""
    if not re.search(r"^IDTYPE=\w+ IDNAME=\S", output_text, re.MULTILINE):
        raise UserError(f"{output_origin} names no device; it should be /etc/lvm/devices/system.devices.")
    names = re.findall(rf"^IDTYPE=devname IDNAME={_KERNEL_NAME} ", output_text, re.MULTILINE)
    return _make_named_devices(names, "/etc/lvm/devices/system.devices", output_origin)


def read_lvm_filters(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lvmconfig devices/filter devices/global_filter: devices that a filter accepts by a name of the kernel
    while it rejects others."""
    names: list[str] = []
    filters = re.findall(r"^[ \t]*(?:global_)?filter ?= ?\[(.*)\][ \t]*$", output_text, re.MULTILINE)
    if not filters:
        raise UserError(f"{output_origin} has no filter; it should be what lvmconfig devices/filter prints.")
    for filter_text in filters:
        if re.search(r'"r\W', filter_text):
            names += [match[2] for match in _ACCEPTED_PATTERN.finditer(filter_text)]
    return _make_named_devices(names, "the filter of lvm.conf", output_origin)


def _make_named_devices(kernel_names: Sequence[str], config_file: str, output_origin: str) -> ObservedStorage:
    settings = {"lvm_kernel_name": config_file}
    return ObservedStorage(
        disks={name: ObservedDisk(name, settings=settings, origin=output_origin) for name in kernel_names}
    )


_WARNING_PATTERN = re.compile(r"^[ \t]*WARNING: (\S.*)$", re.MULTILINE)
_UNUSED_PATTERN = re.compile(r"Not using device /dev/(?:\S+/)?(\S+) for PV (\S+?)\.?$")
_PREFERRED_PATTERN = re.compile(r"PV (\S+) prefers device /dev/(?:\S+/)?(\S+) because")


def read_lvm_warnings(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses what pvs and lvs print on standard error: which devices hold a physical volume that LVM uses on another
    device. Other warnings are lines that were not parsed."""
    disks: dict[str, ObservedDisk] = {}
    unread: list[str] = []
    for text in _WARNING_PATTERN.findall(output_text):
        if match := _UNUSED_PATTERN.match(text):
            name, settings = match[1], {"unused_volume": match[2]}
        elif match := _PREFERRED_PATTERN.match(text):
            name, settings = match[2], {"preferred_volume": match[1]}
        else:
            unread.append(f"WARNING: {text.strip()}")
            continue
        disks[name] = ObservedDisk(name, settings=settings, origin=output_origin)
    return ObservedStorage(disks=disks, unread=tuple(dict.fromkeys(unread)))


def _find_write_cache(target: str, arguments_text: str, members: Sequence[str]) -> tuple[str, ...]:
    """The numbers of the device of a write-back cache and of the one that it is for. A cache has the devices of its
    metadata, data and origin, in this order; a writecache its origin and the cache."""
    if target == "cache" and " writeback " in f"{arguments_text} " and len(members) == 3:
        return members[1], members[2]
    if target == "writecache" and len(members) == 2:
        return members[1], members[0]
    return ()


def read_dmsetup_table(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses dmsetup table: the targets of each mapped device, in the order of their start, and the devices below by
    their numbers, which `join_observations` replaces by names."""
    segments: dict[str, list[tuple[int, VolumeSegment]]] = {}
    written_caches: dict[str, dict[str, str]] = {}
    for name, start, length, target, arguments in _TABLE_ROW_PATTERN.findall(output_text):
        is_striped = re.match(r"(\d+) (\d+) ", arguments) if target == "striped" else None
        members = tuple(re.findall(r"(?<!\S)\d+:\d+(?!\S)", arguments))
        if target in ("linear", "striped") and not members:
            continue  # a line that is cut off
        segment = VolumeSegment(
            target, int(is_striped[1]) if is_striped else 1 if target == "linear" else None,
            int(is_striped[2]) * _SECTOR if is_striped else None, members, int(length) * _SECTOR,
        )  # fmt: skip
        segments.setdefault(name, []).append((int(start), segment))
        if cache := _find_write_cache(target, arguments, members):
            written_caches[name] = {"mapper_write_cache": " ".join(cache)}
    if not segments:
        raise UserError(f"{output_origin} names no mapped device; it should be what dmsetup table prints.")
    disks = {}
    for name, rows in segments.items():
        ordered = tuple(segment for _, segment in sorted(rows, key=lambda row: row[0]))
        targets = " ".join(dict.fromkeys(segment.kind for segment in ordered))
        units = {segment.unit for segment in ordered}
        settings = {"mapper_targets": targets, **written_caches.get(name, {})}
        settings |= {"mapper_unit": str(units.pop())} if len(units) == 1 else {}
        disks[name] = ObservedDisk(
            name, "other", segments=() if targets == "multipath" else ordered, settings=settings, origin=output_origin
        )
    return ObservedStorage(disks=disks)
