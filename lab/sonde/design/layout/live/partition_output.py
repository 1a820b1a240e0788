# SPDX-License-Identifier: Apache-2.0
"""Parses partition tables: parted, sgdisk --print and sfdisk --json."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.documents import parse_json
from sonde.model.errors import UserError

_SECTOR = 512
_UNITS = {"B": 1, "s": 0, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "kiB": 2**10, "KiB": 2**10,
          "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip


def make_partition_name(disk_name: str, partition_number: str) -> str:
    """The kernel's name of a partition: sdb1, nvme0n1p1, md5p1."""
    name = disk_name.rsplit("/", 1)[-1]
    return f"{name}p{partition_number}" if name[-1:].isdigit() else f"{name}{partition_number}"


def _make_observed_storage(
    disks: list[ObservedDisk], output_origin: str, tool_name: str, unread: tuple[str, ...] = ()
) -> ObservedStorage:
    if not disks:
        raise UserError(f"{output_origin} names no partition; it should be what {tool_name} prints.")
    return ObservedStorage(disks={disk.name: disk for disk in disks}, unread=unread)


def read_parted_print(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses parted DISK print. Starts are exact in units s and B only (parted -l rounds them): others are named."""
    disks, unread = list[ObservedDisk](), list[str]()
    for part in re.split(r"^(?=Disk /dev/)", output_text, flags=re.MULTILINE)[1:]:
        head = re.match(r"Disk (/dev/\S+): ", part)
        assert head is not None
        sector = re.search(r"^Sector size \(logical/physical\): (\d+)B/(\d+)B", part, re.MULTILINE)
        logical = int(sector[1]) if sector else _SECTOR
        queue = {"logical_block_size": sector[1], "physical_block_size": sector[2]} if sector else {}
        for number, start, start_unit, size, size_unit in re.findall(
            r"^ *(\d+) +([\d.]+)(\w+) +[\d.]+\w+ +([\d.]+)(\w+)", part, re.MULTILINE
        ):
            is_exact = start_unit in ("s", "B")
            begin = int(float(start) * (logical if start_unit == "s" else _UNITS.get(start_unit, 1)))
            length = int(float(size) * (logical if size_unit == "s" else _UNITS.get(size_unit, 1)))
            name = make_partition_name(head[1], number)
            if not is_exact:
                unread.append(
                    f"{output_origin}: the start of {name} is rounded; print it with parted -s DISK unit s print"
                )
            disks.append(
                ObservedDisk(name, "part", length if is_exact else None, begin if is_exact else None,
                             head[1].rsplit("/", 1)[-1], queue=queue, origin=output_origin)
            )  # fmt: skip
    return _make_observed_storage(disks, output_origin, "parted -s DISK unit s print", tuple(unread))


def read_sgdisk_print(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses sgdisk --print of one or several disks."""
    disks = []
    for part in re.split(r"^(?=Disk /dev/)", output_text, flags=re.MULTILINE)[1:]:
        head = re.match(r"Disk (/dev/\S+): ", part)
        assert head is not None
        sector = re.search(r"^Sector size \(logical(?:/physical)?\): (\d+)(?:/(\d+))? bytes", part, re.MULTILINE)
        logical = int(sector[1]) if sector else _SECTOR
        queue = {"physical_block_size": sector[2]} if sector and sector[2] else {}
        for number, first, last in re.findall(r"^ +(\d+) +(\d+) +(\d+) +[\d.]+ \w+", part, re.MULTILINE):
            disks.append(
                ObservedDisk(make_partition_name(head[1], number), "part", (int(last) - int(first) + 1) * logical,
                             int(first) * logical, head[1].rsplit("/", 1)[-1], queue=queue, origin=output_origin)
            )  # fmt: skip
    return _make_observed_storage(disks, output_origin, "sgdisk --print")


def read_sfdisk_json(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses sfdisk --json."""
    try:
        document = parse_json(output_text)
    except ValueError as reason:
        raise UserError(f"{output_origin} is not valid JSON: {reason}.") from None
    table = document["partitiontable"] if isinstance(document, dict) else {}
    return _make_observed_storage(list(_read_partition_table(table, output_origin)), output_origin, "sfdisk --json")


def _read_partition_table(partition_table: dict[str, object], output_origin: str) -> Iterator[ObservedDisk]:
    logical = int(str(partition_table.get("sectorsize", _SECTOR)))
    partitions = partition_table.get("partitions", [])
    for entry in partitions if isinstance(partitions, list) else []:
        yield ObservedDisk(
            str(entry["node"]).rsplit("/", 1)[-1], "part", int(entry["size"]) * logical, int(entry["start"]) * logical,
            str(partition_table.get("device", "")).rsplit("/", 1)[-1], origin=output_origin,
        )  # fmt: skip
