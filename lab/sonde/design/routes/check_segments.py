# SPDX-License-Identifier: Apache-2.0
"""Finds rules of firewalls that lower the maximum segment size (MSS) of TCP far below what fits into the MTU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.routes.check_host_firewall import make_packet_to_other_side
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_rules import Firewall, iterate_rules_on_path
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.packet_selectors import Packet

SMALL_SEGMENTS = "small segments"
# Segments smaller than this fraction of those that fit are too small: room for options of TCP and tunnels is usual.
_MIN_SEGMENT_FRACTION = 0.9
_HEADER_BYTES = {4: 40, 6: 60}  # of IP and TCP, without options


def find_segment_faults_of_host(host_views: Sequence[HostView], host_tables: HostTables) -> Iterator[RouteFault]:
    """Rules of a host for its connections with the other side, in either direction."""
    for view in host_views:
        firewalls = [firewall for firewall in host_tables.firewalls if firewall.version == view.fabric.version]
        sent = make_packet_to_other_side(view, host_tables)
        received = replace(
            sent, source=sent.destination, destination=sent.source, input_device=sent.output_device, output_device="",
            path="input",
        )  # fmt: skip
        yield from _find_segment_faults(view.fabric, firewalls, sent)
        yield from _find_segment_faults(view.fabric, firewalls, received)


def find_segment_faults_of_router(fabric: Fabric, firewall: Firewall, packet: Packet) -> Iterator[RouteFault]:
    """Rules of a router for the connections that it forwards in the direction of a packet."""
    yield from _find_segment_faults(fabric, [firewall], packet)


def _find_segment_faults(fabric: Fabric, firewalls: Sequence[Firewall], packet: Packet) -> Iterator[RouteFault]:
    mtu = min((side.mtu for side in (fabric.near, fabric.far) if side.mtu is not None), default=0)
    fitting_bytes = mtu - _HEADER_BYTES[fabric.version]
    rules = dict.fromkeys(rule for firewall in firewalls for rule in iterate_rules_on_path(firewall, packet))
    for rule in rules:
        segment_bytes = rule.segment_bytes
        if segment_bytes is None or rule.destination_ports or segment_bytes >= _MIN_SEGMENT_FRACTION * fitting_bytes:
            continue
        yield RouteFault(
            SMALL_SEGMENTS, rule.origin,
            f"the rule {rule.text} lowers the segments of connections between {fabric.near.network} and"
            f" {fabric.far.network} to {segment_bytes} B, where {fitting_bytes} B fit into the MTU of {mtu} B: the"
            f" hosts and routers handle {fitting_bytes / max(segment_bytes, 1):.1f} times as many packets",
            "remove the rule, or let it follow the MTU (iptables: --clamp-mss-to-pmtu; nft: tcp option maxseg size set"
            " rt mtu)",
            versions="first",
        )  # fmt: skip
