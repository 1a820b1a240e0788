# SPDX-License-Identifier: Apache-2.0
"""Formats a plan as commands of the Cray X1: csmadd for LUNs, parts for slices, xlv_make for volumes, mkfs for XFS.

These commands no longer exist. The output serves as a reference and for comparing a plan with published listings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.layout.block_devices import BlockDevice
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import MIB, format_csm_size, parse_csm_layout
from sonde.model.errors import UserError
from sonde.model.shell import format_comment, quote_command, quote_word
from sonde.model.system import System
from sonde.model.system.storage import Enclosure, Slice

# Slice 0 holds system file systems; data is in slice 11, as in the published examples.
_DATA_SLICE = 11
# A slice or LUN with more than this fraction of its disk is written as the remainder.
_ALL = 0.95


def format_cray_x1_commands(
    system: System, layouts: Sequence[FileSystemLayout], *, in_powers_of_1024: bool = False
) -> str:
    """The commands for a system with LUNs, one block per tool; empty for other systems.

    With `in_powers_of_1024` sizes of LUNs are powers of 1024, and csmadd has its option -G.
    """
    devices = [
        device for layout in layouts for device in (*layout.devices, *([layout.log] if layout.log is not None else []))
    ]
    luns = list(
        dict.fromkeys(inner.id for device in devices for inner in device.iterate_top_down() if inner.kind == "luns")
    )
    if not luns:
        return ""
    blocks = [list(_make_csm_command(system, in_powers_of_1024)), *([*_make_parts_file(system, lun)] for lun in luns)]
    blocks += [list(_make_volume_commands(layout)) for layout in layouts]
    blocks += [[_make_mkfs_command(layout)] for layout in layouts if layout.table.kind == "xfs"]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _make_csm_command(system: System, in_powers_of_1024: bool) -> Iterator[str]:
    """csmadd CHASSIS SLOT LAYOUT SIZES...: for each group the sizes of its LUNs in GB; 0 is the remainder."""
    for item in system.list_parts("enclosures"):
        box = item.table
        assert isinstance(box, Enclosure)
        if not box.layout or box.chassis is None or box.slot is None:
            continue
        try:
            geometries = parse_csm_layout(box.layout)
        except UserError:
            continue
        groups = [
            group.id
            for group in system.list_parts("raid_groups")
            if item.id in _find_enclosures_of_group(system, group.id)
        ]
        sizes = [_describe_lun_sizes(system, group, in_powers_of_1024) for group in groups]
        if len(groups) == len(geometries):
            option = ["-G"] if in_powers_of_1024 else []
            yield quote_command(["csmadd", *option, int(box.chassis), int(box.slot), box.layout, *sizes])


def _find_enclosures_of_group(system: System, group_id: str) -> set[str | None]:
    return {system.find_first_reference(drive, "enclosure") for drive in system.find_references(group_id, "drives")}


def _describe_lun_sizes(system: System, group_id: str, in_powers_of_1024: bool) -> str:
    luns = [item.id for item in system.list_parts("luns") if group_id in system.find_references(item.id, "raid_group")]
    group_size, sizes = system.compute_capacity(group_id), [system.compute_capacity(lun) for lun in luns]
    if not luns or None in sizes or group_size is None:
        return "0"
    known_sizes = [size for size in sizes if size is not None]
    texts = [format_csm_size(size, in_powers_of_1024=in_powers_of_1024).removesuffix("GB") for size in known_sizes]
    if sum(known_sizes) > _ALL * group_size:
        texts[-1] = "0"
    return ":".join(texts)


def _make_parts_file(system: System, lun: str) -> Iterator[str]:
    """The configuration file of parts, and its command."""
    disk = quote_word(system.get_part(lun).read_ranged_text("device") or lun)
    slices = [item for item in system.list_parts("slices") if lun in system.find_references(item.id, "on")]
    if not slices:
        return
    yield f"# /etc/parts/{disk.rsplit('/', 1)[-1]}.cf"
    yield "# Partno type size"
    steps = [int(slice_item.table.alignment) for slice_item in slices
             if isinstance(slice_item.table, Slice) and slice_item.table.alignment is not None]  # fmt: skip
    if steps and max(steps) > MIB:
        yield f"modulo {max(steps) // MIB}M"
    for index, item in enumerate(slices):
        table = item.table
        assert isinstance(table, Slice)
        number = _choose_slice_number(table, item.position, index, is_only_slice=len(slices) == 1)
        if table.share is not None:
            size = f"{100 * float(table.share):g}%"
        else:
            size_bytes, lun_bytes = system.compute_capacity(item.id) or 0, system.compute_capacity(lun) or 0
            size = "100%" if size_bytes > _ALL * lun_bytes else f"{size_bytes // MIB}M"
        raw = "-t raw " if table.use in ("swap", "log") or table.use.endswith("-log") else ""
        yield f"part {number} {raw}{size}" + (f"  # {format_comment(table.use)}" if table.use else "")
    depth = getattr(system.get_part(lun).table, "queue_depth", None)
    queue = f"-q {int(depth)} " if depth is not None else ""
    yield f"/sbin/parts -w {queue}-v -c /etc/parts/{disk.rsplit('/', 1)[-1]}.cf {disk}"


def _choose_slice_number(slice_table: Slice, index_in_table: int, first_index: int, *, is_only_slice: bool) -> int:
    match = re.search(r"s(\d+)$", slice_table.device)
    if match:
        return int(match[1])
    if slice_table.number is not None:
        return int(slice_table.number) + index_in_table
    return _DATA_SLICE if is_only_slice else first_index


def _make_volume_commands(layout: FileSystemLayout) -> Iterator[str]:
    """xlv_make: the log first, then a stripe over all members with a unit in blocks of 512 B."""
    device = layout.first_device
    if device.kind != "volumes" or device.stripe_unit_bytes is None:
        return
    yield "/usr/sbin/xlv_make"
    yield f"vol {quote_word(device.id)}"
    if layout.log is not None:
        yield from ("log", "plex", f"ve {shorten_device_name(layout.log)}", "end")
    yield from (
        "data",
        "plex",
        f"ve -stripe -stripe_unit {device.stripe_unit_bytes // 512} "
        f"{' '.join(map(shorten_device_name, device.members))}",
    )
    yield "end"


def shorten_device_name(device: BlockDevice) -> str:
    """The name of a slice as XLV writes it: pm1d1L1s11."""
    if getattr(device.table, "device", ""):
        return quote_word(device.device_label.rsplit("/", 1)[-1])
    number = getattr(device.table, "number", None)
    disk = device.members[0].device_label.rsplit("/", 1)[-1] if device.members else device.id
    return quote_word(f"{disk}s{int(number) if number is not None else _DATA_SLICE}")


def _make_mkfs_command(layout: FileSystemLayout) -> str:
    arguments = ["/sbin/mkfs"]
    striped = layout.first_device.kind == "volumes"
    if layout.unit and not striped:
        # both are the full stripe in blocks of 512 B; mkfs queries a striped volume itself
        arguments.append(f"-d sunit={layout.unit // 512},swidth={layout.width // 512}")
    if layout.log is None and layout.log_size:
        arguments.append(f"-l size={layout.log_size // layout.block_bytes}b")
    name = f"/dev/xlv/{layout.first_device.id}" if striped else f"/dev/dsk/{shorten_device_name(layout.first_device)}"
    return " ".join([*arguments, name])
