# SPDX-License-Identifier: Apache-2.0
"""Checks whether the firewall of a host lets the connections of its file systems pass, and leaves their packets to the
planned routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_drops import (
    OPENING,
    REPLY,
    PacketDrop,
    PlannedPacket,
    UnjudgedRule,
    choose_representatives,
    describe_limits,
    find_drops,
    find_unjudged_rules,
    is_fault,
    make_planned_packets,
    make_planned_reply,
)
from sonde.design.routes.firewall_rules import iterate_rules_on_path
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.packet_selectors import Packet
from sonde.design.routes.service_connections import ServiceConnection, list_service_connections
from sonde.model.system import System

FOREIGN_MARK = "mark set by firewall"
FIREWALL_OF_HOST = "the firewall of a host"


def find_host_firewall_faults(
    system: System, host_or_class: str, host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem | UnjudgedRule]:
    """Connections of file systems that the rules or the policy of INPUT or OUTPUT drop or reject, and rules of which no
    check says what they drop."""
    host = find_host_of_class(system, host_or_class, host_tables)
    if not host or not host_tables.firewalls:
        return
    for connection in list_service_connections(system, host, host_tables.has_lnet):
        if any(
            firewall.version == ipaddress.ip_address(connection.own_address).version
            for firewall in host_tables.firewalls
        ):
            direction = "from" if connection.is_incoming else "to"
            yield CheckedItem(FIREWALL_OF_HOST, f"{connection.service} {direction} {connection.peer_group}")
    groups: dict[tuple[str, bool, str, bool], list[tuple[ServiceConnection, PacketDrop]]] = {}
    drops = list(_iterate_drops(system, host, host_tables))
    yield from find_unjudged_rules(drop for _, drop in drops)
    for connection, drop in drops:
        if is_fault(drop):
            key = (drop.planned.stage, connection.is_incoming, drop.decision.origin, drop.is_certain)
            groups.setdefault(key, []).append((connection, drop))
    yield from _describe_dropped(groups)


def _iterate_drops(
    system: System, host: str, host_tables: HostTables
) -> Iterator[tuple[ServiceConnection, PacketDrop]]:
    """What the firewalls of a host drop of each connection."""
    choose_peers = partial(_choose_peers, system, host_tables)
    connections = list_service_connections(system, host, host_tables.has_lnet, choose_peers)
    for firewall in host_tables.firewalls:
        for connection in connections:
            if firewall.version == ipaddress.ip_address(connection.own_address).version:
                planned = list_packets_of_connection(connection, host_tables)
                yield from ((connection, drop) for drop in find_drops(firewall, planned))


def _choose_peers(system: System, host_tables: HostTables, hosts: Sequence[str]) -> Sequence[str]:
    """The first and the last host of a group, and those that some rule of a firewall tells apart."""
    hosts_by_address = {each.address: host for host in hosts for each in system.find_addresses(host) if each.address}
    chosen = choose_representatives(tuple(hosts_by_address), host_tables.firewalls)
    return tuple(dict.fromkeys((hosts[0], *(hosts_by_address[address] for address in chosen), hosts[-1])))


def _describe_dropped(
    groups: Mapping[tuple[str, bool, str, bool], Sequence[tuple[ServiceConnection, PacketDrop]]],
) -> Iterator[RouteFault]:
    """One fault for the connections of one direction that several listings of one firewall drop."""
    reported: dict[tuple[str, tuple[ServiceConnection, ...]], str] = {}
    opening_origins = {origin for stage, _, origin, _ in groups if stage == OPENING}
    for (stage, is_incoming, origin, is_certain), members in groups.items():
        if stage != OPENING and origin in opening_origins:
            continue  # the connections of this rule or policy are reported with their first packets
        connections, drop = [connection for connection, _ in members], members[0][1]
        if reported.setdefault((stage, tuple(connections)), origin) != origin:
            continue
        services = list(dict.fromkeys(f"{each.service} (TCP port {each.port})" for each in connections))
        groups_of_peers = list(dict.fromkeys(each.peer_group for each in connections))
        direction, peer = ("from", "-s") if is_incoming else ("to", "-d")
        ports = ", ".join(dict.fromkeys(str(each.port) for each in connections))
        addresses = list(dict.fromkeys(each.peer_address for each in connections))
        accept = (
            f"accept TCP {'from' if stage == REPLY else 'to'} port {ports} {direction} the networks of"
            f" {join_first_names(groups_of_peers)} ({peer}) before it (chain {drop.decision.chain.name}), and in the"
            " files of the firewall"
        )
        yield RouteFault(
            drop.fault_kind, origin,
            f"{stage} of {' and '.join(services)} {direction} {join_first_names(groups_of_peers)} are"
            f" {drop.verb}{describe_limits(drop)} by {drop.decision.description}, as {direction} {addresses[0]}",
            accept if is_certain else f"remove the limit, or {accept}",
        )  # fmt: skip


def find_mark_faults(host_views: Sequence[HostView], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Rules that give the packets of this host the mark of one router. Rules that set the marks of several routers are
    meant to spread packets."""
    for view in host_views:
        marks = {router.mark: router for router in view.fabric.routers}
        packet = make_packet_to_other_side(view, host_tables)
        setting = [
            rule
            for firewall in host_tables.firewalls
            if firewall.version == view.fabric.version
            for rule in iterate_rules_on_path(firewall, packet, "route")
            if rule.mark in marks
        ]
        if any(firewall.version == view.fabric.version for firewall in host_tables.firewalls):
            yield CheckedItem("the marks that the firewall of a host sets", f"IPv{view.fabric.version}")
        if not setting or len({rule.mark for rule in setting}) > 1:
            continue
        rule, mark = setting[0], setting[0].mark or 0
        router = marks[mark]
        port = f"packets to port {rule.destination_ports}" if rule.destination_ports else "packets"
        yield RouteFault(
            FOREIGN_MARK, ", ".join(dict.fromkeys(each.origin for each in setting)),
            f"the rule {rule.text} gives {port} of this host mark {mark}, which in the plan is that of {router.name}:"
            f" rules of routing lead all of them to {view.other_side.network} through {router.name} alone",
            "use another mark in this rule, or another one in the plan (mark of the router in the system file)",
            versions="first",
        )  # fmt: skip


def make_packet_to_other_side(host_view: HostView, host_tables: HostTables) -> Packet:
    """A packet of this host, with its observed address where the view is of a class, to the first host of the other
    side."""
    observed = [address for address in host_view.addresses if address in host_tables.address_devices]
    source = (observed or host_view.addresses)[0]
    others = [address for host_class in host_view.other_side.classes for address in host_class.addresses]
    device = find_device(source, host_view.host_class.device, host_tables)
    return Packet(source, others[0], "", device, "output")


def find_host_of_class(system: System, host_or_class: str, host_tables: HostTables) -> str:
    """The host of a class that has one of the observed addresses, else its first one; "" for other names."""
    if host_or_class not in system.index and host_or_class not in system.index.groups:
        return ""
    hosts = [
        host for host in system.resolve_names(host_or_class)
        if system.get_part(host).kind in ("nodes", "servers", "routers")
    ]  # fmt: skip
    observed = host_tables.own_addresses
    owners = [host for host in hosts if observed & {address.address for address in system.find_addresses(host)}]
    return (owners or hosts or [""])[0]


def list_observed_devices(system: System, host_or_class: str, host_tables: HostTables) -> tuple[str, ...]:
    """The devices that have the planned addresses of a host, the planned ones where none has."""
    host = find_host_of_class(system, host_or_class, host_tables)
    addresses = system.find_addresses(host) if host else ()
    return tuple(
        dict.fromkeys(find_device(address.address or "", address.device, host_tables) for address in addresses)
    )


def list_addresses_by_device(system: System, host_or_class: str, host_tables: HostTables) -> dict[str, list[str]]:
    """The planned addresses of a host with prefix, by device; none where neither the name nor an address tells which
    host of a class it is."""
    host = find_host_of_class(system, host_or_class, host_tables)
    addresses = system.find_addresses(host) if host else ()
    if host != host_or_class and not host_tables.own_addresses & {each.address for each in addresses}:
        return {}
    by_device: dict[str, list[str]] = {}
    for each in addresses:
        if each.address and each.prefix is not None:
            device = find_device(each.address, each.device, host_tables)
            by_device.setdefault(device, []).append(f"{each.address}/{each.prefix}")
    return by_device


def list_packets_of_connection(connection: ServiceConnection, host_tables: HostTables) -> list[PlannedPacket]:
    """The packets of a connection that this host sends and receives."""
    device = find_device(connection.own_address, connection.own_device, host_tables)
    mtu = host_tables.mtus.get(device)
    received = Packet(connection.peer_address, connection.own_address, device, "", "input")
    sent = Packet(connection.own_address, connection.peer_address, "", device, "output")
    opening, answering = (received, sent) if connection.is_incoming else (sent, received)
    reply = replace(answering, source=opening.source, destination=opening.destination)
    return [
        *make_planned_packets(opening, connection.service, connection.port, mtu),
        make_planned_reply(reply, connection.service, connection.port, mtu),
    ]


def find_device(address: str, planned_device: str, host_tables: HostTables) -> str:
    """The device that has an address, else the planned one."""
    return next(iter(host_tables.address_devices.get(address, ())), planned_device)
