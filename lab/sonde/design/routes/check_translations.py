# SPDX-License-Identifier: Apache-2.0
"""Checks whether a firewall sends planned connections to another address or port, or gives those of a host another
source address.

Source: iptables-extensions(8), DNAT, REDIRECT, NETMAP, SNAT, TPROXY; nft(8), NAT statements.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.routes.check_host_firewall import (
    find_host_of_class,
    list_packets_of_connection,
    make_packet_to_other_side,
)
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_drops import OPENING, PlannedPacket, make_planned_packets
from sonde.design.routes.firewall_rules import Decision, Firewall, list_decisions
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.packet_selectors import Match
from sonde.design.routes.service_connections import USUAL_SERVICES, list_service_connections
from sonde.model.system import System

REDIRECTED = "connections redirected"
_REDIRECTING = ("DNAT", "REDIRECT", "NETMAP", "TPROXY")
_NEW_SOURCE_PATTERN = re.compile(r"(?:--to-source|\bsnat(?: ip6?)?(?: to)?) (\[?[\da-fA-F.:]+)")


def find_translation_faults_of_host(
    system: System, host_or_class: str, host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Rules that send connections of this host elsewhere, or give them a source address that this host does not
    have."""
    planned_packets = list(_list_openings(system, host_or_class, host_views, host_tables))
    if not host_tables.firewalls or not planned_packets:
        return
    yield CheckedItem("the translations of addresses by a firewall", host_or_class)
    for firewall in host_tables.firewalls:
        yield from find_redirections(firewall, planned_packets)
        yield from _find_foreign_sources(firewall, planned_packets, host_tables)


def _list_openings(
    system: System, host_or_class: str, host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[PlannedPacket]:
    """The first packets of the connections of the file systems; without any, those of usual ones between the
    networks."""
    host = find_host_of_class(system, host_or_class, host_tables)
    connections = list_service_connections(system, host, host_tables.has_lnet) if host else []
    for connection in connections:
        yield from (each for each in list_packets_of_connection(connection, host_tables) if each.stage == OPENING)
    for view in host_views if not connections else ():
        sent = make_packet_to_other_side(view, host_tables)
        received = replace(
            sent, source=sent.destination, destination=sent.source, input_device=sent.output_device, output_device="",
            path="input",
        )  # fmt: skip
        for packet in (sent, received):
            for name, port in USUAL_SERVICES:
                yield make_planned_packets(packet, name, port, None)[0]


def find_redirections(firewall: Firewall, planned_packets: Iterable[PlannedPacket]) -> Iterator[RouteFault]:
    """Rules that give the first packets of planned connections another destination: one fault for each."""
    groups: dict[str, list[tuple[PlannedPacket, Decision]]] = {}
    for planned, decision in _iterate_decisions(firewall, planned_packets):
        if decision.verdict in _REDIRECTING:
            groups.setdefault(decision.origin, []).append((planned, decision))
    for origin, members in groups.items():
        planned, decision = members[0]
        services = dict.fromkeys(f"{each.service} (TCP port {each.port})" for each, _ in members)
        yield RouteFault(
            REDIRECTED, origin,
            f"new connections of {join_first_names(list(services))} get another destination ({decision.verdict}) by"
            f" {decision.description}, as from {planned.packet.source} to {planned.packet.destination}: they do not"
            " reach the host that they are for",
            f"take {planned.packet.destination} and port {planned.port} out of the rule (! -d, ! --dport), or remove"
            " it, and in the files of the firewall",
        )  # fmt: skip


def _find_foreign_sources(
    firewall: Firewall, planned_packets: Iterable[PlannedPacket], host_tables: HostTables
) -> Iterator[RouteFault]:
    reported = set[str]()
    for planned, decision in _iterate_decisions(firewall, planned_packets):
        rule, source = decision.rule, planned.packet.source
        new_source = _NEW_SOURCE_PATTERN.search(rule.text) if rule is not None and decision.verdict == "SNAT" else None
        if new_source is None or planned.packet.path != "output" or decision.origin in reported:
            continue
        address = new_source[1].lstrip("[").rstrip(":")
        if address == source:
            continue
        reported.add(decision.origin)
        owner = "an address of another interface" if address in host_tables.own_addresses else "no address of this host"
        yield RouteFault(
            "addresses translated", decision.origin,
            f"connections of this host to {planned.packet.destination} get the source address {address}, {owner},"
            f" instead of {source} by {decision.description}: replies and exports are for {source}",
            f"take {planned.packet.destination} out of the rule (! -d), or remove it, and in the files of the firewall",
        )  # fmt: skip


def _iterate_decisions(
    firewall: Firewall, planned_packets: Iterable[PlannedPacket]
) -> Iterator[tuple[PlannedPacket, Decision]]:
    """The decisions by rules that match a planned packet, or some of its kind."""
    for planned in planned_packets:
        if ipaddress.ip_address(planned.packet.source).version != firewall.version:
            continue
        for decision in list_decisions(firewall, planned.packet):
            if decision.rule is not None and decision.match >= Match.SOMETIMES:
                yield planned, decision
