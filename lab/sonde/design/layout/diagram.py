# SPDX-License-Identifier: Apache-2.0
"""The picture of a layout: drives on the left, mount points on the right; under each, what every stage allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from sonde.design.layout.laid import Laid
from sonde.design.layout.stores import Store
from sonde.design.layout.words import UNKNOWN, rate_words
from sonde.model.system import System
from sonde.model.system.storage import RaidGroup
from sonde.model.units import format_bytes, format_rate

_WIDTH, _EDGE = 1160, 24
_DRIVE, _GAP, _ROW = 13, 3, 56
# Left edges of the columns: drives, LUN and slice, volume, file system.
_COLUMNS = (_EDGE, 408, 640, 868)
_BOX = (0, 196, 192, 268)
_SHOWN, _DRIVES_SHOWN = 6, 22
_STYLE = """
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


def diagram(system: System, laid: Sequence[Laid]) -> str:
    """An SVG of its own, as wide as its window."""
    parts: list[Markup] = []
    y = 92
    for one in laid:
        parts += _file_system(system, one, y)
        y += _height(one)
    title = system.title or system.id
    head = [
        Markup('<text class="title" x="{}" y="34">{}</text>').format(_EDGE, title),
        *_legend(62),
    ]
    opened = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img">'
    ).format(_WIDTH, y)
    name = Markup("<title>{}</title>").format(f"Layout of {title}")
    body = Markup("\n").join([*head, *parts])
    return f"{opened}\n{name}\n<style>{_STYLE}</style>\n{body}\n</svg>\n"


def _legend(y: int) -> Iterator[Markup]:
    x = _EDGE
    for css, words in (
        ("data", "drive with data"),
        ("parity", "drive's worth of parity"),
        ("copy", "drive with a copy"),
    ):
        yield _square(css, x, y - 11)
        yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x + 20, y, words)
        x += 40 + 7 * len(words)
    yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x, y, "the red bar is the limit")


def _square(css: str, x: float, y: float) -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(css, x, y, _DRIVE, _DRIVE)


def _rows(laid: Laid) -> list[Store]:
    """What stands in the column of drives: groups, one a row."""
    return [group for store in laid.stores for group in store.groups()]


def _height(laid: Laid) -> int:
    shown = min(len(_rows(laid)), _SHOWN)
    more = 24 if len(_rows(laid)) > _SHOWN else 0
    return 44 + max(_ROW * shown + more, 152) + 20 * len(laid.rates.stages) + 60


def _file_system(system: System, laid: Laid, top: int) -> Iterator[Markup]:
    yield Markup('<line class="rule" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        _EDGE, _WIDTH - _EDGE, top - 12, top - 12
    )
    words = f"{laid.id}: {laid.table.kind}{', ' + laid.table.purpose if laid.table.purpose else ''}"
    yield Markup('<text class="head" x="{}" y="{}">{}</text>').format(_EDGE, top + 12, words)
    rows, y = _rows(laid), top + 36
    tall = max(_ROW * min(len(rows), _SHOWN), 152)
    above = _above(laid)
    # one row without a volume goes straight to its file system
    alone = len(rows) == 1 and above is None
    middle = y + 20 if alone else y + tall / 2 - 8
    for at, group in enumerate(rows[:_SHOWN]):
        row = y + _ROW * at
        yield from _group(system, laid, group, row)
        yield from _lun(system, laid, at, group, row)
        target = _COLUMNS[2] if above is not None else _COLUMNS[3]
        yield _line(_COLUMNS[1] + _BOX[1], row + 20, target, middle)
    if len(rows) > _SHOWN:
        yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(
            _EDGE, y + _ROW * _SHOWN + 8, f"and {len(rows) - _SHOWN:,} more alike"
        )
        tall += 24
    if above is not None:
        yield from _box("volume", 2, middle - 34, 68, _volume_words(above))
        yield _line(_COLUMNS[2] + _BOX[2], middle, _COLUMNS[3], middle)
    yield from _box("fs", 3, middle - (22 if alone else 68), 136, list(_fs_words(system, laid)))
    yield from _stages(laid, int(y + tall + 8))


def _above(laid: Laid) -> Store | None:
    return laid.store if laid.stores and laid.store.kind == "volumes" else None


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    bend = (x1 + x2) / 2
    return Markup('<path class="link" d="M{:.0f} {:.0f} C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}"/>').format(
        x1, y1, bend, y1, bend, y2, x2, y2
    )


def _owner(system: System, laid: Laid, group: Store) -> str:
    """The controller of the LUN through which a group is reached, else that of the group."""
    for store in laid.stores:
        for one in store.walk():
            if one.kind == "luns" and any(inner.id == group.id for inner in one.groups()) and one.id in system.index:
                told = system.reference(one.id, "controller")
                if told:
                    return told
    return (system.reference(group.id, "controller") or "") if group.kind == "raid_groups" else ""


def _group(system: System, laid: Laid, group: Store, y: int) -> Iterator[Markup]:
    geometry = group.geometry
    drives = [one for one in group.walk() if one.kind == "drives"]
    owner = _owner(system, laid, group)
    if geometry is None or not isinstance(group.table, RaidGroup):
        words = group.id
        kinds = ["data"]
    else:
        segment = f", segment {format_bytes(group.unit)}" if group.unit and geometry.data > 1 else ""
        words = f"{group.id}: {geometry}{segment}"
        kinds = ["data"] * geometry.data + ["copy"] * (geometry.data * (geometry.copies - 1))
        kinds += ["parity"] * geometry.parity
    size = format_bytes(drives[0].capacity) + " each" if drives and drives[0].capacity else "drives not described"
    yield Markup('<text class="strong" x="{}" y="{}">{}</text>').format(_EDGE, y + 8, words)
    for at, css in enumerate(kinds[:_DRIVES_SHOWN]):
        yield _square(css, _EDGE + at * (_DRIVE + _GAP), y + 14)
    x = _EDGE + min(len(kinds), _DRIVES_SHOWN) * (_DRIVE + _GAP) + 6
    by = f", by {owner}" if owner else ""
    yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x, y + 25, size + by)


def _lun(system: System, laid: Laid, at: int, group: Store, y: int) -> Iterator[Markup]:
    """LUN and slice, or the target that lies on the group."""
    inner = next((one for store in laid.stores for one in _branch(store, group.id)), None)
    lines = []
    if laid.targets:
        server = system.reference(laid.targets[at], "server") or "no server"
        lines = [laid.targets[at], f"served by {server}"]
    elif inner is not None and inner.kind == "slices":
        start = f"from {format_bytes(inner.start)}" if inner.start is not None else ""
        lines = [inner.label, f"{format_bytes(inner.capacity)} {start}" if inner.capacity is not None else start]
    elif inner is not None and inner.kind == "luns":
        lines = [inner.label, format_bytes(inner.capacity or 0)]
    else:
        stripe = f"full stripe {format_bytes(group.stripe)}" if group.stripe and group.unit else "no stripe"
        lines = [format_bytes(group.capacity) if group.capacity else UNKNOWN, stripe]
    yield _line(_EDGE + 350, y + 20, _COLUMNS[1], y + 20)
    yield from _box("box", 1, y - 2, 44, lines)


def _branch(store: Store, group: str) -> Iterator[Store]:
    """The slice, else the LUN, through which a store reaches a group."""
    for one in store.walk():
        if one.kind in ("slices", "luns") and any(inner.id == group for inner in one.groups()):
            yield one


def _box(css: str, column: int, y: float, height: float, lines: Sequence[str]) -> Iterator[Markup]:
    x, width = _COLUMNS[column], _BOX[column]
    yield Markup('<rect class="{}" x="{}" y="{:.0f}" width="{}" height="{:.0f}" rx="4"/>').format(
        css, x, y, width, height
    )
    for at, line in enumerate(lines):
        kind = "strong" if at == 0 else "soft"
        # letters are 6.6 px wide on average; a longer line keeps its end, which tells names apart
        most = int((width - 20) / 6.6)
        shown = line if len(line) <= most else "…" + line[-(most - 1) :]
        yield Markup('<text class="{}" x="{}" y="{:.0f}">{}</text>').format(kind, x + 10, y + 18 + 17 * at, shown)


def _volume_words(store: Store) -> list[str]:
    unit = f"{len(store.members)} x {format_bytes(store.unit)}" if store.unit else f"{len(store.members)} members"
    return [store.label, unit, format_bytes(store.capacity) if store.capacity else UNKNOWN]


def _fs_words(system: System, laid: Laid) -> Iterator[str]:
    paths = [getattr(one.table, "path", "") for one in system.items("mounts")
             if laid.id in system.references(one.id, "file_system")]  # fmt: skip
    yield paths[0] if paths else f"/{laid.id}"
    yield f"capacity {format_bytes(laid.capacity)}" if laid.capacity is not None else "capacity unknown"
    if laid.unit:
        yield f"unit {format_bytes(laid.unit)}, width {format_bytes(laid.width)}"
    if laid.groups is not None:
        yield f"{laid.groups.count:,} allocation groups of {format_bytes(laid.groups.size * laid.block)}"
    if laid.log_size is not None:
        yield f"log {format_bytes(laid.log_size)}{' on ' + laid.log.label if laid.log is not None else ', inside'}"
    yield f"read {rate_words(laid.rates.read)}, write {rate_words(laid.rates.write)}"


def _stages(laid: Laid, y: int) -> Iterator[Markup]:
    """A bar for what each stage allows for writing, on one scale up to the widest."""
    known = [stage.write for stage in laid.rates.stages if stage.write is not None]
    widest = max(known, default=1.0)
    yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(_EDGE, y + 4, "what each stage allows, writing")
    for at, stage in enumerate(laid.rates.stages):
        row = y + 12 + 20 * at
        yield Markup('<text x="{}" y="{}">{}</text>').format(_EDGE, row + 12, f"{stage.name} ({stage.parts})")
        if stage.write is None:
            words = "unknown: no rate in the system file"
            yield Markup('<text class="soft" x="{}" y="{}">{}</text>').format(180, row + 12, words)
            continue
        width = max(2.0, 560 * stage.write / widest)
        css = "limit" if stage.name == laid.rates.limits["write"] else "bar"
        yield Markup('<rect class="{}" x="180" y="{}" width="{:.1f}" height="14" rx="2"/>').format(css, row, width)
        yield Markup('<text class="soft" x="{:.0f}" y="{}">{}</text>').format(
            188 + width, row + 12, format_rate(stage.write)
        )
