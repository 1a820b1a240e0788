# SPDX-License-Identifier: Apache-2.0
"""Draws a layout: drives on the left, mount points on the right, and the bandwidth of every stage below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.charts.markup import Markup
from sonde.design.layout.block_devices import BlockDevice
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.layout_tables import UNKNOWN, format_rate_or_unknown
from sonde.model.system import System
from sonde.model.system.storage import RaidGroup
from sonde.model.units import format_bytes, format_rate

_WIDTH, _EDGE = 1160, 24
_DRIVE, _GAP, _ROW = 13, 3, 56
# Left edges of the columns: drives, LUN and slice, volume, file system.
_COLUMNS = (_EDGE, 408, 640, 868)
_BOX = (0, 196, 192, 268)
_SHOWN, _DRIVES_SHOWN = 6, 22
_STYLE_SHEET = """
svg { width: 100%; height: auto; min-width: 960px; background: #fff; }
@media print { svg { min-width: 0; } @page { size: landscape; margin: 10mm; } }
text { font: 13px system-ui, sans-serif; fill: #16191d; } .soft { fill: #5a626b; font-size: 12px; }
.title { font-size: 18px; font-weight: 600; } .head { font-size: 15px; font-weight: 600; } .strong { font-weight: 600; }
.box { fill: #f4f6f8; stroke: #9aa4ae; } .volume { fill: #e6f0f8; stroke: #005b8f; }
.fs { fill: #fff7e0; stroke: #a67c00; }
.data { fill: #005b8f; } .parity { fill: #fff; stroke: #005b8f; stroke-width: 2; } .copy { fill: #7fb2d0; }
.link { stroke: #9aa4ae; stroke-width: 1.5; fill: none; } .rule { stroke: #d5dae0; }
.bar { fill: #9fb6c6; } .limit { fill: #b5482a; }
"""


def draw_layout(system: System, layouts: Sequence[FileSystemLayout]) -> str:
    """A standalone SVG that scales to the width of its window."""
    parts: list[Markup] = []
    y = 92
    for layout in layouts:
        parts += _draw_file_system(system, layout, y)
        y += _compute_height(layout)
    title = system.title or system.id
    head = [
        Markup('<text class="title" x="{}" y="34">{}</text>').format(_EDGE, title),
        *_draw_legend(62),
    ]
    opened = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img">'
    ).format(_WIDTH, y)
    name = Markup("<title>{}</title>").format(f"Layout of {title}")
    body = Markup("\n").join([*head, *parts])
    return f"{opened}\n{name}\n<style>{_STYLE_SHEET}</style>\n{body}\n</svg>\n"


def _draw_legend(y: int) -> Iterator[Markup]:
    x = _EDGE
    for css, text in (
        ("data", "drive with data"),
        ("parity", "drive's worth of parity"),
        ("copy", "drive with a copy"),
    ):
        yield _draw_square(css, x, y - 11)
        yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x + 20, y, text)
        x += 40 + 7 * len(text)
    yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x, y, "the red bar is the limit")


def _draw_square(css_class: str, x: float, y: float) -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(
        css_class, x, y, _DRIVE, _DRIVE
    )


def _list_rows(layout: FileSystemLayout) -> list[BlockDevice]:
    """The groups in the column of drives, one per row."""
    return [group for device in layout.devices for group in device.list_raid_groups()]


def _compute_height(layout: FileSystemLayout) -> int:
    row_count = min(len(_list_rows(layout)), _SHOWN)
    more = 24 if len(_list_rows(layout)) > _SHOWN else 0
    return 44 + max(_ROW * row_count + more, 152) + 20 * len(layout.rates.stages) + 60


def _draw_file_system(system: System, layout: FileSystemLayout, top_y: int) -> Iterator[Markup]:
    yield Markup('<line class="rule" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        _EDGE, _WIDTH - _EDGE, top_y - 12, top_y - 12
    )
    text = f"{layout.id}: {layout.table.kind}{', ' + layout.table.purpose if layout.table.purpose else ''}"
    yield Markup('<text class="head" x="{}" y="{}">{}</text>').format(_EDGE, top_y + 12, text)
    rows, y = _list_rows(layout), top_y + 36
    tall = max(_ROW * min(len(rows), _SHOWN), 152)
    above = _find_device_above(layout)
    # a single row without a volume is connected to its file system directly
    alone = len(rows) == 1 and above is None
    middle = y + 20 if alone else y + tall / 2 - 8
    for index, group in enumerate(rows[:_SHOWN]):
        row = y + _ROW * index
        yield from _draw_raid_group(system, layout, group, row)
        yield from _draw_lun_and_slice(system, layout, index, group, row)
        target = _COLUMNS[2] if above is not None else _COLUMNS[3]
        yield _draw_line(_COLUMNS[1] + _BOX[1], row + 20, target, middle)
    if len(rows) > _SHOWN:
        yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(
            _EDGE, y + _ROW * _SHOWN + 8, f"and {len(rows) - _SHOWN:,} more alike"
        )
        tall += 24
    if above is not None:
        yield from _draw_labeled_box("volume", 2, middle - 34, 68, _describe_volume(above))
        yield _draw_line(_COLUMNS[2] + _BOX[2], middle, _COLUMNS[3], middle)
    yield from _draw_labeled_box(
        "fs", 3, middle - (22 if alone else 68), 136, list(_describe_file_system(system, layout))
    )
    yield from _draw_bandwidth_stages(layout, int(y + tall + 8))


def _find_device_above(layout: FileSystemLayout) -> BlockDevice | None:
    return layout.first_device if layout.devices and layout.first_device.kind == "volumes" else None


def _draw_line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    bend = (x1 + x2) / 2
    return Markup('<path class="link" d="M{:.0f} {:.0f} C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}"/>').format(
        x1, y1, bend, y1, bend, y2, x2, y2
    )


def _find_controller_above_group(system: System, layout: FileSystemLayout, raid_group: BlockDevice) -> str:
    """The controller of the LUN above a group, else that of the group."""
    for base in layout.devices:
        for device in base.iterate_top_down():
            if (
                device.kind == "luns"
                and any(inner.id == raid_group.id for inner in device.list_raid_groups())
                and device.id in system.index
            ):
                controller = system.find_first_reference(device.id, "controller")
                if controller:
                    return controller
    return (system.find_first_reference(raid_group.id, "controller") or "") if raid_group.kind == "raid_groups" else ""


def _draw_raid_group(system: System, layout: FileSystemLayout, raid_group: BlockDevice, y: int) -> Iterator[Markup]:
    geometry = raid_group.raid_geometry
    drives = [device for device in raid_group.iterate_top_down() if device.kind == "drives"]
    owner = _find_controller_above_group(system, layout, raid_group)
    if geometry is None or not isinstance(raid_group.table, RaidGroup):
        text = raid_group.id
        kinds = ["data"]
    else:
        segment = (
            f", segment {format_bytes(raid_group.stripe_unit_bytes)}"
            if raid_group.stripe_unit_bytes and geometry.data > 1
            else ""
        )
        text = f"{raid_group.id}: {geometry}{segment}"
        kinds = ["data"] * geometry.data + ["copy"] * (geometry.data * (geometry.copies - 1))
        kinds += ["parity"] * geometry.parity
    size = format_bytes(drives[0].capacity) + " each" if drives and drives[0].capacity else "drives not described"
    yield Markup('<text class="strong" x="{}" y="{}">{}</text>').format(_EDGE, y + 8, text)
    for index, css in enumerate(kinds[:_DRIVES_SHOWN]):
        yield _draw_square(css, _EDGE + index * (_DRIVE + _GAP), y + 14)
    x = _EDGE + min(len(kinds), _DRIVES_SHOWN) * (_DRIVE + _GAP) + 6
    by = f", by {owner}" if owner else ""
    yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x, y + 25, size + by)


def _draw_lun_and_slice(
    system: System, layout: FileSystemLayout, group_index: int, raid_group: BlockDevice, y: int
) -> Iterator[Markup]:
    """Draws LUN and slice, or the target on the group."""
    inner = next(
        (branch for device in layout.devices for branch in _iterate_devices_above_group(device, raid_group.id)), None
    )
    lines = []
    if layout.targets:
        server = system.find_first_reference(layout.targets[group_index], "server") or "no server"
        lines = [layout.targets[group_index], f"served by {server}"]
    elif inner is not None and inner.kind == "slices":
        start = f"from {format_bytes(inner.start)}" if inner.start is not None else ""
        lines = [inner.device_label, f"{format_bytes(inner.capacity)} {start}" if inner.capacity is not None else start]
    elif inner is not None and inner.kind == "luns":
        lines = [inner.device_label, format_bytes(inner.capacity or 0)]
    else:
        stripe = (
            f"full stripe {format_bytes(raid_group.full_stripe_bytes)}"
            if raid_group.full_stripe_bytes and raid_group.stripe_unit_bytes
            else "no stripe"
        )
        lines = [format_bytes(raid_group.capacity) if raid_group.capacity else UNKNOWN, stripe]
    yield _draw_line(_EDGE + 350, y + 20, _COLUMNS[1], y + 20)
    yield from _draw_labeled_box("box", 1, y - 2, 44, lines)


def _iterate_devices_above_group(block_device: BlockDevice, group_id: str) -> Iterator[BlockDevice]:
    """The slices and LUNs through which a device reaches a group, top down."""
    for device in block_device.iterate_top_down():
        if device.kind in ("slices", "luns") and any(inner.id == group_id for inner in device.list_raid_groups()):
            yield device


def _draw_labeled_box(
    css_class: str, column_index: int, y: float, height: float, text_lines: Sequence[str]
) -> Iterator[Markup]:
    x, width = _COLUMNS[column_index], _BOX[column_index]
    yield Markup('<rect class="{}" x="{}" y="{:.0f}" width="{}" height="{:.0f}" rx="4"/>').format(
        css_class, x, y, width, height
    )
    for index, line in enumerate(text_lines):
        kind = "strong" if index == 0 else "soft"
        # letters are 6.6 px wide on average; a longer line keeps its end, which distinguishes names
        most = int((width - 20) / 6.6)
        label = line if len(line) <= most else "…" + line[-(most - 1) :]
        yield Markup('<text class="{}" x="{}" y="{:.0f}">{}</text>').format(kind, x + 10, y + 18 + 17 * index, label)


def _describe_volume(device: BlockDevice) -> list[str]:
    unit = (
        f"{len(device.members)} x {format_bytes(device.stripe_unit_bytes)}"
        if device.stripe_unit_bytes
        else f"{len(device.members)} members"
    )
    return [device.device_label, unit, format_bytes(device.capacity) if device.capacity else UNKNOWN]


def _describe_file_system(system: System, layout: FileSystemLayout) -> Iterator[str]:
    paths = [getattr(item.table, "path", "") for item in system.list_parts("mounts")
             if layout.id in system.find_references(item.id, "file_system")]  # fmt: skip
    yield paths[0] if paths else f"/{layout.id}"
    yield f"capacity {format_bytes(layout.capacity)}" if layout.capacity is not None else "capacity unknown"
    if layout.unit:
        yield f"unit {format_bytes(layout.unit)}, width {format_bytes(layout.width)}"
    if layout.groups is not None:
        yield f"{layout.groups.count:,} allocation groups of {format_bytes(layout.groups.size * layout.block_bytes)}"
    if layout.log_size is not None:
        suffix = f" on {layout.log.device_label}" if layout.log is not None else ", inside"
        yield f"log {format_bytes(layout.log_size)}{suffix}"
    yield f"read {format_rate_or_unknown(layout.rates.read)}, write {format_rate_or_unknown(layout.rates.write)}"


def _draw_bandwidth_stages(layout: FileSystemLayout, y: int) -> Iterator[Markup]:
    """Draws one bar per stage for its write bandwidth, on a common scale."""
    rates = [stage.write for stage in layout.rates.stages if stage.write is not None]
    widest = max(rates, default=1.0)
    yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(_EDGE, y + 4, "what each stage allows, writing")
    for index, stage in enumerate(layout.rates.stages):
        row = y + 12 + 20 * index
        yield Markup('<text x="{}" y="{}">{}</text>').format(_EDGE, row + 12, f"{stage.name} ({stage.parts})")
        if stage.write is None:
            text = "unknown: no rate in the system file"
            yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(180, row + 12, text)
            continue
        width = max(2.0, 560 * stage.write / widest)
        css = "limit" if stage.name == layout.rates.limits["write"] else "bar"
        yield Markup('<rect class="{}" x="180" y="{}" width="{:.1f}" height="14" rx="2"/>').format(css, row, width)
        yield Markup('<text class="soft" x="{:.0f}" y="{}">{}</text>').format(
            188 + width, row + 12, format_rate(stage.write)
        )
