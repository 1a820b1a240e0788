# SPDX-License-Identifier: Apache-2.0
"""Checks every route of a host by itself: its next hops, its devices, its MTU, its destination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_next_hops import (
    describe_dead_hops,
    describe_wrong_devices,
    find_next_hop_faults,
    is_hop_dead,
    is_on_wrong_device,
)
from sonde.design.routes.check_rules import do_routes_lead_into_fabric, is_table_of_other_device
from sonde.design.routes.fabric import FabricSide, covers_range, is_address_in_ranges, overlaps_range
from sonde.design.routes.far_addresses import is_route_of_far_address
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedHop, ObservedRoute
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import get_metric
from sonde.design.routes.plan import find_smallest_mtu
from sonde.design.routes.route_attributes import find_attribute_faults, list_harmless_attributes
from sonde.design.routes.router_advertisements import (
    describe_prefix_removal,
    is_advertised_route,
    list_advertised_defaults,
)

_MAIN = "main"
# IP and TCP headers by IP version, without options.
_HEADER_BYTES = {4: 40, 6: 60}


def find_route_faults(
    host_view: HostView, all_host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the routes to one fabric. `all_host_views` are all fabrics of the host of this IP version: the routers
    of these are no strangers."""
    by_table: dict[str, list[ObservedRoute]] = {}
    by_destination: dict[tuple[str, str], list[ObservedRoute]] = {}
    for route in host_tables.routes or ():
        by_table.setdefault(route.table, []).append(route)
        by_destination.setdefault((route.table, route.destination), []).append(route)
    own_tables = {
        name for name, routes in by_table.items() if name != _MAIN and do_routes_lead_into_fabric([host_view], routes)
    }
    site_tables = {name for name, routes in by_table.items() if is_table_of_other_device(all_host_views, name, routes)}
    misplaced: list[tuple[ObservedRoute, ObservedHop]] = []
    dead: list[tuple[ObservedRoute, ObservedHop]] = []
    for route in host_tables.routes or ():
        if route.table in ("local", "default", *site_tables):
            continue
        concerns = _leads_to_other_side(host_view, route) and not _is_covered(host_view, route, by_table[route.table])
        if concerns:
            yield CheckedItem("a route", f"{route.destination} in table {route.table}")
        is_diverting = any(
            is_diverting_route(host_view, route, other) for other in by_destination[route.table, route.destination]
        )
        for hop in route.hops if not is_diverting else ():
            if concerns or route.table in own_tables or _uses_fabric_device(host_view, route, hop):
                yield from find_next_hop_faults(
                    host_view, all_host_views, route, hop, host_tables, concerns_fabric=concerns
                )
                dead += [(route, hop)] if is_hop_dead(route, hop, host_tables) else []
                misplaced += [(route, hop)] if is_on_wrong_device(host_view, all_host_views, hop) else []
        if concerns:
            if not is_route_of_far_address(host_view, route, host_tables):
                yield from _check_link_and_mtu(host_view, route, host_tables)
                yield from _check_route_attributes(host_view, route, host_tables)
            if not _leads_by_few_routers(host_view, route):  # reported itself
                yield from find_attribute_faults(route, host_view.own_side.mtu)
            yield from _check_next_hop_group(host_view, route, host_tables)
        if is_own_network_route(route, host_view.own_side) and route.device in ("", host_view.host_class.device):
            yield from find_own_network_faults(route, host_view.own_side)
        yield from _check_foreign_destination(host_view, all_host_views, route)
    yield from describe_wrong_devices(host_view, misplaced)
    yield from describe_dead_hops(dead)
    yield from _check_advertised_defaults(host_view, host_tables)


def _check_advertised_defaults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault]:
    """Default routes that machines which are no routers of the fabric advertise on the network of this side."""
    device, gateways = host_view.host_class.device, host_view.routers_by_gateway
    link_addresses = {each.link_address for each in host_tables.neighbors or () if each.address in gateways}
    router_addresses = {each.address for each in host_tables.neighbors or () if each.link_address in link_addresses}
    for route in list_advertised_defaults(device, host_tables.routes or ()) if host_view.fabric.version == 6 else ():
        hops = [hop.via for hop in route.hops if hop.via not in (*gateways, *router_addresses)]
        if hops and host_tables.neighbors is not None:
            yield RouteFault(
                "routes of advertisements", route.origin,
                f"{', '.join(hops)}, no router of {host_view.fabric.name}, has given this host a default route by"
                f" {device} (router advertisement): packets to all other networks of IPv6 leave by"
                f" {host_view.own_side.network}",
                f"sysctl -w net.ipv6.conf.{device.replace('.', '/')}.accept_ra_defrtr=0; ip -6 route del default via"
                f" {hops[0]} dev {device}; and stop the advertisements of {hops[0]} on this network",
            )  # fmt: skip


def _leads_by_few_routers(host_view: HostView, route: ObservedRoute) -> bool:
    """Whether a route of the main table leads to a part of the other side, by some of the active routers only."""
    active = {router.name for router in host_view.fabric.active_routers}
    routers = {
        host_view.routers_by_gateway[hop.via].name for hop in route.hops if hop.via in host_view.routers_by_gateway
    }
    is_narrow = not any(covers_range(route.destination, each) for each in host_view.other_side.ranges)
    return route.table == _MAIN and is_narrow and bool(routers) and routers < active


def _check_next_hop_group(
    host_view: HostView, route: ObservedRoute, host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """A group of next hops that the kernel does not choose from by the hash of a flow alone."""
    group_type = host_tables.next_hop_types.get(route.next_hop_id)
    if group_type is None:
        return
    yield CheckedItem("the type of a next-hop group", route.next_hop_id)
    if group_type == "resilient" and len(host_view.fabric.routers) > 1:
        yield RouteFault(
            "resilient next hops", route.origin,
            f"the route to {route.destination} uses the next-hop group {route.next_hop_id} of type resilient: its table"
            " of next hops also depends on earlier traffic, so a flow and its replies take different routers",
            f"ip nexthop replace id {route.next_hop_id} group … without a type, or put the next hops into the route",
        )  # fmt: skip


def is_diverting_route(host_view: HostView, route: ObservedRoute, later_route: ObservedRoute) -> bool:
    """Whether a route comes before another one to the same hosts, and leads by none of the routers."""
    version = host_view.fabric.version
    return (
        route.table == later_route.table == _MAIN
        and (route.destination, route.service) == (later_route.destination, later_route.service)
        and get_metric(route, version) < get_metric(later_route, version)
        and bool(route.hops)
        and not any(hop.via in host_view.routers_by_gateway for hop in route.hops)
        and not any(hop.via in host_view.routers_by_far_address for hop in route.hops)  # reported as out of reach
        and any(hop.via in host_view.routers_by_gateway for hop in later_route.hops)
    )


def is_own_network_route(route: ObservedRoute, side: FabricSide) -> bool:
    """Whether a route leads to the hosts of a side, on their link."""
    return route.on_link and route.destination != "default" and any(
        covers_range(address_range, route.destination) for address_range in side.ranges
    )  # fmt: skip


def find_own_network_faults(route: ObservedRoute, side: FabricSide) -> Iterator[RouteFault]:
    """Attributes of a route on the link that limit connections and packets to the hosts of its network."""
    if side.mtu is not None and route.mtu is not None and route.mtu < side.mtu:
        yield RouteFault(
            "MTU too small", route.origin,
            f"the route to {route.destination} in table {route.table} allows packets of {route.mtu} B; {side.network}"
            f" takes {side.mtu} B",
            f"set mtu {side.mtu}",
        )  # fmt: skip
    if side.mtu is not None and route.largest_segment is not None and route.largest_segment < side.mtu - max(
        _HEADER_BYTES.values()
    ):  # fmt: skip
        yield RouteFault(
            "segments too small", route.origin,
            f"the route to {route.destination} asks for segments of {route.largest_segment} B (advmss); {side.network}"
            f" takes packets of {side.mtu} B",
            "remove advmss",
        )  # fmt: skip
    yield from find_attribute_faults(route, side.mtu)


def list_attributes_not_examined(host_view: HostView, host_tables: HostTables) -> list[str]:
    """Attributes of the routes to the other side that the plan does not set and no check reads."""
    routes = [route for route in host_tables.routes or () if _leads_to_other_side(host_view, route)]
    groups = [
        f"the type of the next-hop object {route.next_hop_id} of the route to {route.destination} (ip nexthop)"
        for route in routes
        if route.next_hop_id and len(route.hops) > 1 and route.next_hop_id not in host_tables.next_hop_types
    ]
    return [*list_harmless_attributes(routes, host_view.own_side.mtu), *groups]


def _leads_to_other_side(host_view: HostView, route: ObservedRoute) -> bool:
    """Whether a route leads to the other side, or to a part of it."""
    if route.destination == "default":
        return route.table != _MAIN and any(hop.via in host_view.routers_by_gateway for hop in route.hops)
    return any(overlaps_range(route.destination, address_range) for address_range in host_view.other_side.ranges)


def _is_covered(host_view: HostView, route: ObservedRoute, routes_of_table: Sequence[ObservedRoute]) -> bool:
    """Whether no packet to the other side takes a route, as 10.0.0.0/8 by a router of the management network: longer
    prefixes lead to all that it has of the other side, by the routers."""
    if not route.hops or any(hop.via in host_view.routers_by_gateway for hop in route.hops):
        return False
    planned = [
        other.destination
        for other in routes_of_table
        if other.destination != route.destination
        and covers_range(route.destination, other.destination)
        and any(hop.via in host_view.routers_by_gateway for hop in other.hops)
    ]
    ranges = [text for text in host_view.other_side.ranges if overlaps_range(route.destination, text)]
    return bool(ranges) and all(any(covers_range(each, text) for each in planned) for text in ranges)


def _uses_fabric_device(host_view: HostView, route: ObservedRoute, next_hop: ObservedHop) -> bool:
    """Whether a multipath route uses the device of this fabric; other routes elsewhere do not concern it."""
    return next_hop.device == host_view.host_class.device and len(route.hops) > 1 and route.destination != "default"


def _check_link_and_mtu(
    host_view: HostView, route: ObservedRoute, host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    if route.on_link and route.destination != "default":
        details = host_tables.link_details.get(route.device)
        effect = (
            f"the host asks for its addresses by {'ND' if host_view.fabric.version == 6 else 'ARP'}, and gets no answer"
            if details is None or details.uses_arp
            else f"{route.device} uses no ARP (NOARP), as tunnels do, and takes the packets instead of the routers"
        )
        is_advertised = is_advertised_route(route)
        cause = " by a router advertisement (the route has a lifetime)" if is_advertised else ""
        yield RouteFault(
            "far network on link", route.origin,
            f"{route.destination} is declared to be on the link of {route.device or 'this host'}{cause}, but it is"
            f" behind the routers: {effect}",
            describe_prefix_removal(route.device, route.destination)
            if is_advertised
            else f"put the network of this side there ({', '.join(host_view.own_side.ranges)})"
            if route.device in ("", host_view.host_class.device)
            else "remove this route",
        )  # fmt: skip
    smallest = find_smallest_mtu(host_view.fabric)
    if smallest is None or not route.hops:
        return
    yield CheckedItem("the MTU of both networks", f"{route.destination} in table {route.table}")
    device_mtu = host_tables.mtus.get(host_view.host_class.device, host_view.own_side.mtu or smallest)
    largest = route.mtu if route.mtu is not None else device_mtu
    if largest > smallest:
        limit = f"allows packets of {largest} B" if route.mtu is not None else f"has no mtu, so packets of {largest} B"
        yield RouteFault(
            "MTU too large", route.origin,
            f"the route to {route.destination} {limit}; the smaller network takes {smallest} B",
            f"set mtu {smallest}",
        )  # fmt: skip


def _check_route_attributes(host_view: HostView, route: ObservedRoute, host_tables: HostTables) -> Iterator[RouteFault]:
    """Attributes that limit a route: its source address, its type of service, its packets and segments."""
    if route.source and not is_address_in_ranges(host_view.own_side.ranges, route.source):
        yield RouteFault(
            "wrong source address", route.origin,
            f"packets to {route.destination} are sent from {route.source}, which is not on "
            f"{host_view.own_side.network}:"
            " replies take another network, or are dropped",
            f"remove src, or name the address on {host_view.own_side.network}",
        )  # fmt: skip
    elif route.source and host_tables.addresses and route.source not in {
        address.partition("/")[0] for address in host_tables.addresses
    }:  # fmt: skip
        yield RouteFault(
            "wrong source address", route.origin,
            f"packets to {route.destination} are to be sent from {route.source}, which this host does not have",
            "remove src, or name an address of this host",
        )  # fmt: skip
    if route.service:
        yield RouteFault(
            "traffic diverted", route.origin,
            f"packets to {route.destination} with the type of service {route.service} take this route, by"
            f" {', '.join(hop.via for hop in route.hops) or route.device} alone",
            "remove the route: the multipath route is for all packets",
        )  # fmt: skip
    smallest = find_smallest_mtu(host_view.fabric)
    if smallest is None or not route.hops:
        return
    device_mtu = host_tables.mtus.get(host_view.host_class.device)
    has_device_mtu = route.mtu == device_mtu != host_view.own_side.mtu  # reported with the interface
    setting = (host_tables.settings or {}).get(f"net.ipv6.conf.{host_view.host_class.device}.mtu")
    has_device_mtu |= host_view.fabric.version == 6 and str(route.mtu) == setting  # reported with the setting
    if route.mtu is not None and route.mtu < smallest and not has_device_mtu:
        yield RouteFault(
            "MTU too small", route.origin,
            f"the route to {route.destination} allows packets of {route.mtu} B; both networks take {smallest} B",
            f"set mtu {smallest}",
        )  # fmt: skip
    headers = _HEADER_BYTES[host_view.fabric.version]
    if route.largest_segment is not None and route.largest_segment < smallest - headers:
        yield RouteFault(
            "segments too small", route.origin,
            f"the route to {route.destination} asks for segments of {route.largest_segment} B (advmss), packets of"
            f" {route.largest_segment + headers} B; both networks take {smallest} B",
            "remove advmss",
        )  # fmt: skip


def _check_foreign_destination(
    host_view: HostView, all_host_views: Sequence[HostView], route: ObservedRoute
) -> Iterator[RouteFault]:
    """Multipath routes through routers, or by this side's network, to where no fabric of this host has hosts."""
    ranges = [address_range for each in all_host_views for address_range in each.other_side.ranges]
    if (
        route.table == _MAIN
        and len(route.hops) > 1
        and route.destination != "default"
        and any(_uses_fabric_device(host_view, route, hop) for hop in route.hops)
        and not any(overlaps_range(route.destination, address_range) for address_range in ranges)
    ):
        yield RouteFault(
            "unknown destination", route.origin,
            f"{route.destination} is neither {host_view.other_side.network} ({', '.join(host_view.other_side.ranges)})"
            " nor a part of it",
            f"name {', '.join(host_view.other_side.ranges)}",
        )  # fmt: skip
    wider = (address_range for address_range in ranges if covers_range(route.destination, address_range))
    if (
        len(all_host_views) == 1
        and route.table == _MAIN
        and len(route.hops) > 1
        and route.destination not in ("default", *ranges)
        and (address_range := next(wider, ""))
    ):
        yield RouteFault(
            "destination too wide", route.origin,
            f"{route.destination} is wider than {address_range}, the range of {host_view.other_side.network}: the "
            "routers"
            " also get packets to other networks",
            f"name {', '.join(ranges)}",
        )  # fmt: skip
