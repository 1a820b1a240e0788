# SPDX-License-Identifier: Apache-2.0
"""Checks whether the firewall of a router lets connections between both networks pass, with their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_segments import find_segment_faults_of_router
from sonde.design.routes.fabric import Fabric, FabricRouter, FabricSide
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_rules import (
    Firewall,
    FirewallRule,
    ForwardedPacket,
    find_packet_fate,
    find_translation,
    list_packets,
)
from sonde.design.routes.host_tables import HostTables


def find_firewall_faults(
    fabric: Fabric, routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the firewall of one router. Rules that also select by ports or marks decide nothing."""
    firewalls = [firewall for firewall in host_tables.firewalls if firewall.version == fabric.version]
    if len(routers) != 1 or not firewalls:
        return
    router = routers[0]
    directions = (
        (fabric.near, fabric.far, router.near_device, router.far_device),
        (fabric.far, fabric.near, router.far_device, router.near_device),
    )
    for firewall in firewalls:
        faults = list[RouteFault]()
        for source, destination, input_device, output_device in directions:
            yield CheckedItem("the firewall of a router", f"{source.network} to {destination.network}")
            faults += _check_direction(fabric, firewall, source, destination, (input_device, output_device))
        yield from _join_directions(faults, fabric)


def _join_directions(faults: Sequence[RouteFault], fabric: Fabric) -> Iterator[RouteFault]:
    """The faults, with those of both directions by one rule or policy as one."""
    locations = [(fault.kind, fault.location) for fault in faults]
    for number, fault in enumerate(faults):
        first = locations.index((fault.kind, fault.location))
        if first == number:
            is_both = locations.count(locations[number]) > 1
            text = f"from {fabric.near.network} to {fabric.far.network}"
            both = f"between {fabric.near.network} and {fabric.far.network}"
            yield replace(fault, problem=fault.problem.replace(text, both, 1)) if is_both else fault


def _check_direction(
    fabric: Fabric, firewall: Firewall, source: FabricSide, destination: FabricSide, devices: tuple[str, str]
) -> Iterator[RouteFault]:
    input_device, output_device = devices
    packets = list_packets(_list_addresses(source), _list_addresses(destination), input_device, output_device)
    for packet in packets:
        yield from find_segment_faults_of_router(fabric, firewall, packet)
        fate = find_packet_fate(firewall, packet)
        connections = f"connections from {source.network} to {destination.network}"
        accept = f"accept packets from {input_device} to {output_device} before it"
        if fate.is_accepted is False and not fate.may_be_accepted:
            yield RouteFault(
                "firewall drops", _get_origin(fate.rule),
                f"{connections} are dropped by {_describe_rule(fate.rule)}: no packet of {packet.source} passes this"
                " router",
                f"{accept} (chain FORWARD), and in the files of the firewall",
            )  # fmt: skip
            continue
        yield from _check_moved_connections(firewall, packet, connections, len(fabric.routers))
        errors = find_packet_fate(firewall, replace(packet, protocol="icmp"))
        is_dropped = errors.is_accepted is False and not errors.may_be_accepted
        if fate.is_accepted and is_dropped and firewall.version == 4:
            yield RouteFault(
                "path MTU not discovered", _get_origin(errors.rule),
                f"ICMP from {source.network} to {destination.network} is dropped by {_describe_rule(errors.rule)}:"
                " hosts do not hear that their packets are too large, and their connections stall",
                "accept ICMP of type 3 (destination unreachable)",
            )  # fmt: skip
        translation = find_translation(firewall, packet)
        if translation is not None:
            yield RouteFault(
                "addresses translated", translation.origin,
                f"{connections} get another source address ({translation.target}): replies come back by this router"
                " only, exports do not match, and all of these connections end when it fails",
                f"take {source.network} out of the rule, as by ! -d {', '.join(destination.ranges)}",
            )  # fmt: skip


def _check_moved_connections(
    firewall: Firewall, packet: ForwardedPacket, connections: str, router_count: int
) -> Iterator[RouteFault]:
    """A chain that accepts connections by their first packet only: those that another router carried before have none
    to show. Packets that no connection tracking sees may pass by a state of theirs."""
    fate = find_packet_fate(firewall, replace(packet, is_opening=False))
    if router_count < 2 or fate.is_accepted is not False or fate.may_be_accepted:
        return
    if any("UNTRACKED" in rule.states.upper() and rule.target == "ACCEPT" for rule in firewall.rules):
        return
    yield RouteFault(
        "moved connections dropped", _get_origin(fate.rule),
        f"{connections} that another router carried before (fail-over) are dropped by {_describe_rule(fate.rule)}: this"
        " router accepts new connections by their first packet (SYN) only, and has not seen it",
        f"accept TCP from {packet.input_device} to {packet.output_device} without regard to SYN and state, or share the"
        " states of connections among the routers (conntrackd)",
    )  # fmt: skip


def _list_addresses(side: FabricSide) -> list[str]:
    return [address for host_class in side.classes for address in host_class.addresses]


def _get_origin(rule: FirewallRule | None) -> str:
    return rule.origin if rule is not None else "chain FORWARD"


def _describe_rule(rule: FirewallRule | None) -> str:
    return f"the rule {rule.text}" if rule is not None else "the policy of the chain FORWARD"
