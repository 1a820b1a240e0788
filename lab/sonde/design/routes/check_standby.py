# SPDX-License-Identifier: Apache-2.0
"""Checks the routes of higher metrics: those of standby routers, and those that no packet takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.routes.check_next_hops import compare_next_hops
from sonde.design.routes.check_routes import is_diverting_route
from sonde.design.routes.fabric import covers_range
from sonde.design.routes.far_addresses import is_route_of_far_address
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedRoute
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import get_metric
from sonde.design.routes.router_advertisements import is_advertised_route

_MAIN = "main"


def is_standby_gateway(host_view: HostView, gateway: str) -> bool:
    """Whether an address is that of a router which carries traffic only when others fail."""
    return host_view.routers_by_gateway[gateway] not in host_view.fabric.active_routers


def _lacks_active_routers(host_view: HostView, route: ObservedRoute) -> bool:
    """Whether a route leads by some of the active routers, and leaves out others."""
    gateways = {hop.via for hop in route.hops if hop.via in host_view.routers_by_gateway}
    used = [router for router in host_view.fabric.active_routers
            if any(host_view.routers_by_gateway[gateway] is router for gateway in gateways)]  # fmt: skip
    return 0 < len(used) < len(host_view.fabric.active_routers)


def _find_missing_standby(host_view: HostView, routes: Sequence[ObservedRoute]) -> Iterator[RouteFault]:
    """Standby routers that no route to a range of the other side names."""
    for far_range in host_view.other_side.ranges:
        hops = {
            hop.via
            for route in routes
            if route.table == _MAIN and covers_range(route.destination, far_range)
            for hop in route.hops
        }
        absent = [
            gateway
            for gateway in host_view.routers_by_gateway
            if is_standby_gateway(host_view, gateway) and gateway not in hops
        ]
        if absent and hops & set(host_view.routers_by_gateway):
            names = ", ".join(host_view.routers_by_gateway[gateway].name for gateway in absent)
            yield RouteFault(
                "standby missing", "main table",
                f"no route to {far_range} names the standby routers {names} ({', '.join(absent)}):"
                " nothing takes over when the active ones fail",
                "add their route with a higher metric",
            )  # fmt: skip


def _describe_diverting_route(host_view: HostView, diverting: ObservedRoute, route: ObservedRoute) -> RouteFault:
    """A route by strangers that comes before one by routers."""
    version = host_view.fabric.version
    gateways = ", ".join(f"{hop.via} on {hop.device or diverting.device}" for hop in diverting.hops)
    routers = [
        host_view.routers_by_gateway[hop.via].name for hop in route.hops if hop.via in host_view.routers_by_gateway
    ]
    strangers = "an unknown router" if len(diverting.hops) == 1 else "unknown routers"
    return RouteFault(
        "traffic diverted", diverting.origin,
        f"all packets to {route.destination} go to {strangers}, {gateways}: its metric {get_metric(diverting, version)}"
        f" comes before {get_metric(route, version)} of the route by {', '.join(routers)}",
        "remove it, and what adds it (a router advertisement, a DHCP client, another file)",
    )  # fmt: skip


def find_standby_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault]:
    """Routes of higher metrics: standby routers belong there, active ones are never used there."""
    version = host_view.fabric.version
    yield from _find_missing_standby(host_view, host_tables.routes or ())
    reported_origins: set[str] = set()
    by_destination: dict[tuple[str, str], list[ObservedRoute]] = {}
    for route in host_tables.routes or ():
        if route.table == _MAIN and not is_route_of_far_address(host_view, route, host_tables):
            by_destination.setdefault((route.destination, route.service), []).append(route)
    for route in host_tables.routes or ():
        others = [
            other
            for other in by_destination.get((route.destination, route.service), ())
            if other is not route and route.table == _MAIN and get_metric(other, version) <= get_metric(route, version)
        ]
        routers = [
            host_view.routers_by_gateway[hop.via] for hop in route.hops if hop.via in host_view.routers_by_gateway
        ]
        if not others or not routers or route.destination == "default":
            continue
        if all(get_metric(other, version) == get_metric(route, version) for other in others):
            if not any(hop.via in host_view.routers_by_gateway for other in others for hop in other.hops):
                continue  # that other route is reported by itself
            if by_destination[route.destination, route.service][0] is route:
                continue  # reported with the later routes
            yield RouteFault(
                "equal metrics", route.origin,
                f"another route to {route.destination} has the same metric, {get_metric(route, version)}: IPv4 uses the"
                " first of them, IPv6 all their next hops",
                "give the route of the standby routers a higher metric, and name the others in one route",
            )  # fmt: skip
            continue
        priorities = {router.priority for router in routers}
        is_standby = len(priorities) == 1 and routers[0] not in host_view.fabric.active_routers
        if is_standby:
            same = [router for router in host_view.fabric.routers if router.priority == routers[0].priority]
            yield from compare_next_hops(host_view, route, same)
        if diverting := next((other for other in others if is_diverting_route(host_view, other, route)), None):
            if diverting.origin not in reported_origins:
                yield _describe_diverting_route(host_view, diverting, route)
            reported_origins.add(diverting.origin)
        elif any(_lacks_active_routers(host_view, other) or is_advertised_route(other) for other in others):
            continue  # reported with the routers that this route leaves out, or as a network on the link
        elif not is_standby and any(router in host_view.fabric.active_routers for router in routers):
            yield RouteFault(
                "route never used", route.origin,
                f"another route to {route.destination} has a lower metric than"
                f" {get_metric(route, version)}: this one carries nothing",
                "keep one of them",
            )  # fmt: skip
