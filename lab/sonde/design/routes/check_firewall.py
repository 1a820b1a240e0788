# SPDX-License-Identifier: Apache-2.0
"""Checks whether the firewall of a router lets connections between both networks pass, with their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_segments import find_segment_faults_of_router
from sonde.design.routes.check_translations import find_redirections
from sonde.design.routes.fabric import Fabric, FabricRouter, FabricSide
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_drops import (
    OPENING,
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
from sonde.design.routes.firewall_rules import (
    Decision,
    Firewall,
    FirewallRule,
    find_certain_drop,
    find_translation,
    list_drops,
    list_logging_rules,
)
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.packet_selectors import Packet
from sonde.design.routes.service_connections import USUAL_SERVICES, RoutedService

# Protocol, name and type of the error about the size of packets, by IP version.
_SIZE_ERRORS = {4: ("icmp", "ICMP", "3 (destination unreachable)"), 6: ("icmpv6", "ICMPv6", "2 (packet too big)")}
_Direction = tuple[FabricSide, FabricSide, str, str]


def find_firewall_faults(
    fabric: Fabric, routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem | UnjudgedRule]:
    """Faults of the firewall of one router, for all connections and for those of services between both networks, and
    rules of which no check says what they drop."""
    reported = set[tuple[str, str]]()
    for direction, _ in _iterate_directions(fabric, routers, host_tables):
        yield CheckedItem("the firewall of a router", f"{direction[0].network} to {direction[1].network}")
    for firewall in _list_firewalls(fabric, host_tables):
        faults = list[RouteFault]()
        for direction, _ in _iterate_directions(fabric, routers, replace(host_tables, firewalls=(firewall,))):
            planned = _list_planned_packets(fabric, firewall, direction)
            drops = list(find_drops(firewall, planned))
            yield from find_unjudged_rules(drops)
            yield from _find_drops_of_one_direction(firewall, direction, len(fabric.routers))
            faults += _check_direction(fabric, firewall, direction, planned, drops)
        # iptables and nft print one firewall
        joined = [((each.kind, each.problem.partition(" by ")[0]), each) for each in _join_directions(faults, fabric)]
        yield from (fault for key, fault in joined if key not in reported)
        reported |= {key for key, _ in joined}


def _find_drops_of_one_direction(
    firewall: Firewall, direction: _Direction, router_count: int
) -> Iterator[UnjudgedRule]:
    """A rule that drops packets of connections whose other direction takes another router, which one router alone does
    not show."""
    packet = replace(_list_packets(firewall, direction)[0], flags=frozenset({"ACK"}), states=frozenset({"INVALID"}))
    drop = find_certain_drop(firewall, packet) if router_count > 1 else None
    if drop is not None and not find_certain_drop(firewall, replace(packet, states=frozenset({"ESTABLISHED"}))):
        yield UnjudgedRule(
            "whether both directions of each connection take this router (--other-side compares two hosts):"
            f" {drop.description} drops packets of those of which it sees one direction (INVALID)"
        )


def _list_firewalls(fabric: Fabric, host_tables: HostTables) -> list[Firewall]:
    return [firewall for firewall in host_tables.firewalls if firewall.version == fabric.version]


def _iterate_directions(
    fabric: Fabric, routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[tuple[_Direction, Firewall]]:
    """Both directions through one router, for each of its firewalls."""
    if len(routers) != 1:
        return
    router = routers[0]
    for firewall in _list_firewalls(fabric, host_tables):
        yield (fabric.near, fabric.far, router.near_device, router.far_device), firewall
        yield (fabric.far, fabric.near, router.far_device, router.near_device), firewall


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
    fabric: Fabric,
    firewall: Firewall,
    direction: _Direction,
    planned_packets: Sequence[PlannedPacket],
    drops: Sequence[PacketDrop],
) -> Iterator[RouteFault]:
    """Faults for one direction; `drops` are what the firewall drops of the planned packets."""
    source, destination, _, _ = direction
    packet = _list_packets(firewall, direction)[0]
    yield from find_segment_faults_of_router(fabric, firewall, packet)
    drop = find_certain_drop(firewall, packet)
    connections = f"connections from {source.network} to {destination.network}"
    is_opening_side = any(each.opening_network == source.network for each in _list_services(fabric))
    if drop is not None and is_opening_side:
        established = replace(packet, flags=frozenset({"ACK"}), states=frozenset({"ESTABLISHED"}))
        is_new_only = find_certain_drop(firewall, established) is None
        yield RouteFault(
            "firewall drops", drop.origin,
            f"{connections} are dropped by {drop.description}: no"
            f" {'new connection' if is_new_only else 'packet'} of {packet.source} passes this router",
            _describe_remedy(drop, direction),
        )  # fmt: skip
        return
    yield from _check_services(fabric, direction, planned_packets, drops)
    yield from _check_logging(fabric, firewall, direction, planned_packets)
    if drop is None:
        yield from _check_moved_connections(firewall, packet, connections, len(fabric.routers))
    if not list_drops(firewall, packet):
        yield from _check_size_errors(fabric, firewall, direction, packet)
    yield from _check_translations(firewall, direction, packet, planned_packets)


def _check_size_errors(
    fabric: Fabric, firewall: Firewall, direction: _Direction, packet: Packet
) -> Iterator[RouteFault]:
    """Drops of the errors about the size of packets: those that hosts send, and those of this router itself."""
    source, destination, _, _ = direction
    router = fabric.routers[0]
    own_address = router.near_address if destination is fabric.near else router.far_address
    protocol, name, error_type = _SIZE_ERRORS[firewall.version]
    error = replace(packet, protocol=protocol)
    own_error = replace(error, source=own_address, input_device="", path="output", states=frozenset({"RELATED"}))
    for sender, sent in ((source.network, error), ("this router", own_error)):
        drop = find_certain_drop(firewall, sent)
        if drop is not None:
            yield RouteFault(
                "path MTU not discovered", drop.origin,
                f"{name} from {sender} to {destination.network} is dropped by {drop.description}:"
                " hosts do not hear that their packets are too large, and their connections stall",
                f"accept {name} of type {error_type}",
            )  # fmt: skip


def _check_translations(
    firewall: Firewall, direction: _Direction, packet: Packet, planned_packets: Sequence[PlannedPacket]
) -> Iterator[RouteFault]:
    """Rules that give forwarded packets another destination or source address."""
    source, destination, _, _ = direction
    openings = [each for each in planned_packets if each.stage == OPENING]
    yield from find_redirections(firewall, openings)
    translation = find_translation(firewall, packet)
    if translation is not None:
        yield RouteFault(
            "addresses translated", translation.origin,
            f"connections from {source.network} to {destination.network} get another source address"
            f" ({translation.target}): replies come back by this router only,"
            " exports do not match, and all of these connections end when it fails",
            f"take {source.network} out of the rule, as by ! -d {', '.join(destination.ranges)}",
        )  # fmt: skip


def _describe_remedy(decision: Decision, direction: _Direction) -> str:
    chain = decision.chain
    table = "" if chain.table in ("filter", "inet filter", "ip filter", "ip6 filter") else f" of table {chain.table}"
    return (
        f"accept packets from {direction[2]} to {direction[3]} before it (chain {chain.name}{table}), and in the files"
        " of the firewall"
    )


def _check_services(
    fabric: Fabric, direction: _Direction, planned_packets: Sequence[PlannedPacket], all_drops: Sequence[PacketDrop]
) -> Iterator[RouteFault]:
    """Packets of services that rules drop, always or above a limit: one fault for each rule and kind of packets."""
    groups: dict[tuple[str, str, bool], list[PacketDrop]] = {}
    for drop in all_drops:
        # a firewall that accepts some ports only is judged by the services of the system file
        if is_fault(drop) and (fabric.services or not drop.is_certain or _has_port_selector(drop.decision.rule)):
            groups.setdefault((drop.planned.stage, drop.decision.origin, drop.is_certain), []).append(drop)
    opening_origins = {origin for stage, origin, _ in groups if stage == OPENING}
    for (stage, origin, is_certain), drops in groups.items():
        if stage != OPENING and origin in opening_origins:
            continue
        decision = drops[0].decision
        affected = {(drop.planned.service, drop.planned.packet) for drop in drops}
        names = [f"{each.service} (TCP port {each.port})" for each in dict.fromkeys(
            replace(drop.planned, packet=planned_packets[0].packet) for drop in drops)]  # fmt: skip
        same_stage = {(each.service, each.packet) for each in planned_packets if each.stage == stage}
        is_for_all_services = {name for name, _ in affected} == {each.service for each in planned_packets}
        has_ports = any(map(_has_port_selector, (*decision.conditions, decision.rule)))
        of_services = "" if is_for_all_services and not has_ports else f" of {' and '.join(names)}"
        packet = drops[0].planned.packet
        example = "" if affected == same_stage else f", as from {packet.source} to {packet.destination}"
        yield RouteFault(
            drops[0].fault_kind, origin,
            f"{stage}{of_services} from {direction[0].network} to {direction[1].network} are"
            f" {drops[0].verb}{describe_limits(drops[0])} by {decision.description}{example}",
            _describe_remedy(decision, direction) if is_certain
            else f"remove the limit, or {_describe_remedy(decision, direction)}",
        )  # fmt: skip


def _check_logging(
    fabric: Fabric, firewall: Firewall, direction: _Direction, planned_packets: Sequence[PlannedPacket]
) -> Iterator[RouteFault]:
    """Rules that log each packet of established connections."""
    logged: dict[FirewallRule, Packet] = {}
    for planned in planned_packets:
        for rule in list_logging_rules(firewall, planned.packet) if planned.stage != OPENING else ():
            if fabric.services or not _has_port_selector(rule):
                logged.setdefault(rule, planned.packet)
    for rule, packet in logged.items():
        yield RouteFault(
            "every packet logged", rule.origin,
            f"packets from {direction[0].network} to {direction[1].network} are logged one by one by the rule"
            f" {rule.text}, as those from {packet.source} to {packet.destination}: this takes processor time from"
            " forwarding, and fills the disk",
            "remove the rule, log new connections only (state NEW), or set a limit (-m limit --limit 5/min, limit rate"
            " of nft before log)",
        )  # fmt: skip


def _has_port_selector(rule: FirewallRule | None) -> bool:
    return rule is not None and any(selector.member.endswith("ports") for selector in rule.selectors)


def _list_planned_packets(fabric: Fabric, firewall: Firewall, direction: _Direction) -> list[PlannedPacket]:
    """The packets of all services in one direction: of connections that the source opens, and replies to those that the
    destination opens."""
    source, destination, _, _ = direction
    mtu = min((side.mtu for side in (source, destination) if side.mtu is not None), default=None)
    planned = list[PlannedPacket]()
    for packet in _list_packets(firewall, direction):
        for service in _list_services(fabric):
            if service.opening_network == source.network:
                planned += make_planned_packets(packet, service.name, service.port, mtu)
            elif service.opening_network == destination.network:
                opening = replace(packet, source=packet.destination, destination=packet.source)
                planned.append(make_planned_reply(opening, service.name, service.port, mtu))
    return planned


def _list_services(fabric: Fabric) -> Sequence[RoutedService]:
    """The services of the file systems in the system file; without any, those of all usual ones in both directions."""
    return fabric.services or [
        RoutedService(name, port, side.network) for name, port in USUAL_SERVICES for side in (fabric.near, fabric.far)
    ]


def _list_packets(firewall: Firewall, direction: _Direction) -> list[Packet]:
    """First packets between hosts of two networks: each host that some rule tells apart, with the first one of the
    other network."""
    sources, destinations = (choose_representatives(_list_addresses(side), [firewall]) for side in direction[:2])
    pairs = [*((source, destination) for source in sources for destination in destinations[:1]),
             *((source, destination) for source in sources[:1] for destination in destinations)]  # fmt: skip
    return [Packet(source, destination, direction[2], direction[3]) for source, destination in dict.fromkeys(pairs)]


def _check_moved_connections(
    firewall: Firewall, packet: Packet, connections: str, router_count: int
) -> Iterator[RouteFault]:
    """A chain that accepts connections by their first packet only: those that another router carried before have none
    to show. Packets that no connection tracking sees may pass by a state of theirs."""
    drop = find_certain_drop(firewall, replace(packet, flags=frozenset({"ACK"})))
    if router_count < 2 or drop is None:
        return
    if any(
        "UNTRACKED" in selector.value.upper() and rule.target == "ACCEPT"
        for rule in firewall.rules
        for selector in rule.selectors
        if selector.member == "states"
    ):
        return
    yield RouteFault(
        "moved connections dropped", drop.origin,
        f"{connections} that another router carried before (fail-over) are dropped by {drop.description}: this"
        " router accepts new connections by their first packet (SYN) only, and has not seen it",
        f"accept TCP from {packet.input_device} to {packet.output_device} without regard to SYN and state, or share the"
        " states of connections among the routers (conntrackd)",
    )  # fmt: skip


def _list_addresses(side: FabricSide) -> list[str]:
    return [address for host_class in side.classes for address in host_class.addresses]
