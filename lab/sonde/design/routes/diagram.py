# SPDX-License-Identifier: Apache-2.0
"""The picture of a fabric: hosts on both sides, the routers between them with their addresses, rates where known."""

from __future__ import annotations

from markupsafe import Markup

from sonde.design.routes.fabric import Fabric, Side
from sonde.model.units import counted, format_rate

_WIDTH, _ROW, _TOP, _BOX = 960, 44, 96, 250
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #16191d; } .soft { fill: #5a626b; font-size: 12px; }
.title { font-size: 16px; font-weight: 600; } .box { fill: #f4f6f8; stroke: #9aa4ae; }
.router { fill: #e6f0f8; stroke: #005b8f; } .link { stroke: #9aa4ae; stroke-width: 1.5; fill: none; }
.standby { stroke-dasharray: 5 4; }
"""


def diagram(fabric: Fabric) -> str:
    """An SVG of its own: near network on the left, routers in the middle, far network on the right."""
    height = _TOP + _ROW * max(len(fabric.ways), 3) + 40
    middle = _TOP + (height - _TOP - 20) / 2
    parts = [
        Markup('<text class="title" x="24" y="36">{}</text>').format(fabric.name),
        Markup('<text class="soft" x="24" y="58">{}; largest packet of both networks: {}</text>').format(
            counted(len(fabric.ways), "router"), _mtu_words(fabric)
        ),
        _side(fabric.near, 24, height),
        _side(fabric.far, _WIDTH - 24 - _BOX, height),
    ]
    first = fabric.active
    for at, way in enumerate(fabric.ways):
        y = _TOP + _ROW * at + 18
        css = "link" if way in first else "link standby"
        parts.append(
            Markup('<path class="{}" d="M{} {:.0f} C{} {:.0f} {} {} {} {}"/>').format(
                css, 24 + _BOX, middle, 330, middle, 310, y, 365, y
            )
        )
        parts.append(
            Markup('<path class="{}" d="M{} {} C{} {} {} {:.0f} {} {:.0f}"/>').format(
                css, 595, y, 650, y, 630, middle, _WIDTH - 24 - _BOX, middle
            )
        )
        parts.append(Markup('<rect class="router" x="365" y="{}" width="230" height="36" rx="4"/>').format(y - 18))
        rate = f", {format_rate(way.rate)}" if way.rate is not None else ""
        weight = f", weight {way.weight}" if way.weight != 1 else ""
        parts.append(
            Markup('<text x="480" y="{}" text-anchor="middle">{}</text>').format(y - 3, f"{way.router}{rate}{weight}")
        )
        ends = Markup('<text class="soft" x="480" y="{}" text-anchor="middle">{}  |  {}</text>')
        parts.append(ends.format(y + 12, way.near, way.far))
    head = Markup('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" role="img">')
    body = Markup("\n").join(parts)
    words = Markup("<title>{}</title>").format(f"Routes: {fabric.name}")
    opened = head.format(_WIDTH, height, _WIDTH, height)
    return f"{opened}\n{words}\n<style>{_STYLE}</style>\n{body}\n</svg>\n"


def _mtu_words(fabric: Fabric) -> str:
    both = [side.mtu for side in (fabric.near, fabric.far)]
    known = [one for one in both if one is not None]
    return f"{min(known):,} B" if None not in both else "not described"


def _side(side: Side, x: int, height: int) -> Markup:
    """One network: its name and ranges, and its classes of hosts."""
    box = Markup('<rect class="box" x="{}" y="{}" width="{}" height="{}" rx="6"/>')
    found = [box.format(x, _TOP - 8, _BOX, height - _TOP - 12)]
    found.append(Markup('<text x="{}" y="{}" font-weight="600">{}</text>').format(x + 14, _TOP + 16, side.network))
    found.append(Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x + 14, _TOP + 34, ", ".join(side.ranges)))
    for at, one in enumerate(side.classes):
        y = _TOP + 64 + 38 * at
        rate = f", {format_rate(one.rate)} each" if one.rate is not None else ""
        found.append(
            Markup('<text x="{}" y="{}">{}</text>').format(x + 14, y, f"{one.name}: {counted(len(one.hosts), 'host')}")
        )
        found.append(
            Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x + 14, y + 16, f"on {one.device}{rate}")
        )
    return Markup("\n").join(found)
