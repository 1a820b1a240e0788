# SPDX-License-Identifier: Apache-2.0
"""A drawing of a fabric: hosts on both sides, the routers between them with their addresses, and rates where known."""

from __future__ import annotations

from sonde.charts.markup import Markup
from sonde.design.routes.fabric import Fabric, FabricSide
from sonde.model.units import format_count_with_noun, format_rate

_WIDTH, _ROW, _TOP, _BOX = 960, 44, 96, 250
_STYLE_SHEET = """
text { font: 13px system-ui, sans-serif; fill: #16191d; } .soft { fill: #5a626b; font-size: 12px; }
.title { font-size: 16px; font-weight: 600; } .box { fill: #f4f6f8; stroke: #9aa4ae; }
.router { fill: #e6f0f8; stroke: #005b8f; } .link { stroke: #9aa4ae; stroke-width: 1.5; fill: none; }
.standby { stroke-dasharray: 5 4; }
"""


def draw_fabric(fabric: Fabric) -> str:
    """An SVG document: near network on the left, routers in the middle, far network on the right."""
    height = _TOP + _ROW * max(len(fabric.routers), 3) + 40
    middle = _TOP + (height - _TOP - 20) / 2
    elements = [
        Markup('<text class="title" x="24" y="36">{}</text>').format(fabric.name),
        Markup('<text class="soft" x="24" y="58">{}; largest packet of both networks: {}</text>').format(
            format_count_with_noun(len(fabric.routers), "router"), _format_mtu(fabric)
        ),
        _draw_network(fabric.near, 24, height),
        _draw_network(fabric.far, _WIDTH - 24 - _BOX, height),
    ]
    active_routers = fabric.active_routers
    for index, router in enumerate(fabric.routers):
        y = _TOP + _ROW * index + 18
        css = "link" if router in active_routers else "link standby"
        elements.append(
            Markup('<path class="{}" d="M{} {:.0f} C{} {:.0f} {} {} {} {}"/>').format(
                css, 24 + _BOX, middle, 330, middle, 310, y, 365, y
            )
        )
        elements.append(
            Markup('<path class="{}" d="M{} {} C{} {} {} {:.0f} {} {:.0f}"/>').format(
                css, 595, y, 650, y, 630, middle, _WIDTH - 24 - _BOX, middle
            )
        )
        elements.append(Markup('<rect class="router" x="365" y="{}" width="230" height="36" rx="4"/>').format(y - 18))
        rate = f", {format_rate(router.rate)}" if router.rate is not None else ""
        weight = f", weight {router.weight}" if router.weight != 1 else ""
        elements.append(
            Markup('<text x="480" y="{}" text-anchor="middle">{}</text>').format(y - 3, f"{router.name}{rate}{weight}")
        )
        ends = Markup('<text class="soft" x="480" y="{}" text-anchor="middle">{}  |  {}</text>')
        elements.append(ends.format(y + 12, router.near_address, router.far_address))
    opening_tag = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" role="img">'
    )
    body = Markup("\n").join(elements)
    title_element = Markup("<title>{}</title>").format(f"Routes: {fabric.name}")
    svg_start = opening_tag.format(_WIDTH, height, _WIDTH, height)
    return f"{svg_start}\n{title_element}\n<style>{_STYLE_SHEET}</style>\n{body}\n</svg>\n"


def _format_mtu(fabric: Fabric) -> str:
    mtus = [side.mtu for side in (fabric.near, fabric.far)]
    known_mtus = [mtu for mtu in mtus if mtu is not None]
    return f"{min(known_mtus):,} B" if None not in mtus else "not described"


def _draw_network(fabric_side: FabricSide, x: int, height: int) -> Markup:
    """One network: its name and ranges, and its classes of hosts."""
    box = Markup('<rect class="box" x="{}" y="{}" width="{}" height="{}" rx="6"/>')
    elements = [box.format(x, _TOP - 8, _BOX, height - _TOP - 12)]
    elements.append(
        Markup('<text x="{}" y="{}" font-weight="600">{}</text>').format(x + 14, _TOP + 16, fabric_side.network)
    )
    elements.append(
        Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x + 14, _TOP + 34, ", ".join(fabric_side.ranges))
    )
    for index, host_class in enumerate(fabric_side.classes):
        y = _TOP + 64 + 38 * index
        rate = f", {format_rate(host_class.rate)} each" if host_class.rate is not None else ""
        elements.append(
            Markup('<text x="{}" y="{}">{}</text>').format(
                x + 14, y, f"{host_class.name}: {format_count_with_noun(len(host_class.hosts), 'host')}"
            )
        )
        elements.append(
            Markup('<text class="soft" x="{}" y="{}">{}</text>').format(x + 14, y + 16, f"on {host_class.device}{rate}")
        )
    return Markup("\n").join(elements)
