# SPDX-License-Identifier: Apache-2.0
"""Checks whether rules for ARP (arptables, the family arp of nft) let a host and its routers find each other.

Source: arptables-nft(8); nft(8), "ARP header expression".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.routes.check_host_firewall import find_device, make_packet_to_other_side
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_drops import choose_representatives
from sonde.design.routes.firewall_rules import ARP, Decision, Firewall, find_certain_drop
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.packet_selectors import Packet


def find_arp_rule_faults(
    fabrics: Sequence[Fabric], host_or_class: str, host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Rules that drop requests or answers of ARP between a host and the routers, or a router and the hosts, of its
    networks: one fault for each."""
    for firewall in (each for each in host_tables.firewalls if each.version == ARP):
        dropped: dict[str, tuple[Decision, list[str]]] = {}
        pairs = [*_pair_host(host_views, host_tables), *_pair_router(fabrics, host_or_class, firewall, host_tables)]
        for own_address, device, peer_address in pairs:
            yield CheckedItem("the rules for ARP", peer_address)
            for packet in _make_arp_packets(own_address, device, peer_address):
                drop = find_certain_drop(firewall, packet)
                if drop is not None:
                    peers = dropped.setdefault(drop.origin, (drop, []))[1]
                    peers += [peer_address] if peer_address not in peers else []
        for origin, (drop, peers) in dropped.items():
            yield RouteFault(
                "ARP dropped", origin,
                f"requests or answers of ARP with {join_first_names(peers)} are dropped by {drop.description}: this"
                " host and these addresses do not find each other once their entries end",
                f"accept ARP of these addresses before it (chain {drop.chain.name}), and in the files of the firewall",
            )  # fmt: skip


def _pair_host(host_views: Sequence[HostView], host_tables: HostTables) -> Iterator[tuple[str, str, str]]:
    """The address of a host, its device and the address of each router."""
    for view in (view for view in host_views if view.fabric.version == 4):
        packet = make_packet_to_other_side(view, host_tables)
        yield from ((packet.source, packet.output_device, gateway) for gateway in view.routers_by_gateway)


def _pair_router(
    fabrics: Sequence[Fabric], router_name: str, firewall: Firewall, host_tables: HostTables
) -> Iterator[tuple[str, str, str]]:
    """Each address of a router, its device and the addresses of hosts that some rule tells apart."""
    for fabric in (fabric for fabric in fabrics if fabric.version == 4):
        for router in (router for router in fabric.routers if router.name == router_name):
            for side, address, device in (
                (fabric.near, router.near_address, router.near_device),
                (fabric.far, router.far_address, router.far_device),
            ):
                hosts = [host for each in side.classes for host in each.addresses]
                for host in choose_representatives(hosts, [firewall]):
                    yield address, find_device(address, device, host_tables), host


def _make_arp_packets(own_address: str, device: str, peer_address: str) -> Iterator[Packet]:
    """Requests and answers in both directions."""
    for is_reply in (False, True):
        yield Packet(own_address, peer_address, "", device, "output", is_reply=is_reply)
        yield Packet(peer_address, own_address, device, "", "input", is_reply=is_reply)
