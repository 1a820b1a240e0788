# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the rules, routes and settings of a host, compared with the fabric that it belongs to.

Nothing here sends packets: `check_host` judges the tables that it gets, and lists the parts that it did not get.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sonde.design.routes.check_rules import find_rule_faults, find_table_faults
from sonde.design.routes.check_settings import check_router, find_setting_faults
from sonde.design.routes.fabric import (
    Fabric,
    FabricSide,
    HostClass,
    covers_range,
    index_gateways,
    is_covered,
    overlaps_range,
)
from sonde.design.routes.faults import RouteCheck, RouteFault, list_unknown
from sonde.design.routes.host_tables import HostTables, ObservedRoute
from sonde.design.routes.plan import find_smallest_mtu
from sonde.model.errors import UserError, suggest_name

_MAIN = "main"


def check_host(fabric: Fabric, name: str, host_tables: HostTables) -> RouteCheck:
    """Checks a host of the class `name` ("routers" for a router)."""
    if name == "routers":
        return check_router(fabric, host_tables)
    host_class, own_side, other_side = _find_sides(fabric, name)
    return RouteCheck(
        name,
        (
            *_find_route_faults(fabric, host_class, own_side, other_side, host_tables),
            *find_rule_faults(fabric, own_side, host_tables),
            *find_setting_faults(fabric, host_class, host_tables),
        ),
        list_unknown(host_tables),
    )


def _find_sides(fabric: Fabric, name: str) -> tuple[HostClass, FabricSide, FabricSide]:
    for own_side, other_side in ((fabric.near, fabric.far), (fabric.far, fabric.near)):
        if host_class := own_side.class_of(name):
            return host_class, own_side, other_side
    names = [*(host_class.name for side in (fabric.near, fabric.far) for host_class in side.classes), "routers"]
    raise UserError(f'There is no class of hosts "{name}"; there are {", ".join(names)}.{suggest_name(name, names)}')


def _find_route_faults(
    fabric: Fabric, host_class: HostClass, own_side: FabricSide, other_side: FabricSide, host_tables: HostTables
) -> Iterator[RouteFault]:
    if host_tables.addresses is not None and not any(
        is_covered(own_side.ranges, address.split("/")[0]) for address in host_tables.addresses
    ):
        yield RouteFault(
            "not on the network",
            "addresses",
            f"this host has no address on {own_side.network} ({', '.join(own_side.ranges)})",
            "ask another host, or give it its address",
        )
    if host_tables.routes is None:
        return
    main = [route for route in host_tables.routes if route.table == _MAIN]
    for far_range in other_side.ranges:
        matching = [route for route in main if covers_range(route.destination, far_range)]
        if not matching:
            yield RouteFault(
                "no route",
                "main table",
                f"nothing leads to {far_range} ({other_side.network}): this host cannot reach the other side",
                "add the multipath route of the plan",
            )
        for route in matching:
            yield from _find_multipath_faults(fabric, own_side, other_side, route)
    for route in host_tables.routes:
        yield from _find_faults_of_route(fabric, host_class, own_side, other_side, route)
    yield from _find_unknown_destinations(fabric, own_side, other_side, main)
    yield from find_table_faults(fabric, own_side, other_side, host_tables)


def _find_multipath_faults(
    fabric: Fabric, own_side: FabricSide, other_side: FabricSide, route: ObservedRoute
) -> Iterator[RouteFault]:
    gateways = index_gateways(fabric, own_side)
    hop_addresses = [hop.via for hop in route.hops]
    active = {
        router.near_address if own_side is fabric.near else router.far_address: router for router in fabric.active
    }
    if route.hops and not set(hop_addresses) & set(gateways):
        return  # reported as unknown next hops
    missing = [gateway for gateway in active if gateway not in hop_addresses]
    if missing and route.hops:
        names = ", ".join(active[gateway].name for gateway in missing)
        yield RouteFault(
            "router not used",
            route.origin,
            f"the route to {route.destination} leaves out {names} ({', '.join(missing)}): its share goes to the others",
            "name every router once",
        )
    for gateway in {gateway for gateway in hop_addresses if hop_addresses.count(gateway) > 1}:
        yield RouteFault(
            "router named twice",
            route.origin,
            f"the route to {route.destination} names {gateway}"
            f" {hop_addresses.count(gateway)} times: it gets that many shares",
            "name it once, and give it a weight where it should carry more",
        )
    expected_weights = {gateway: router.weight for gateway, router in active.items()}
    shares = {hop.via: hop.weight for hop in route.hops if hop.via in expected_weights}
    if len(shares) > 1 and _compute_proportions(shares) != _compute_proportions(
        {gateway: expected_weights[gateway] for gateway in shares}
    ):
        yield RouteFault(
            "weights differ",
            route.origin,
            f"the weights of the route to {route.destination} are {_format_weights(shares)}; the system file says"
            f" {_format_weights({gateway: expected_weights[gateway] for gateway in shares})}",
            "set the weights of the plan",
        )


def _compute_proportions(weights: dict[str, int]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: round(weight / total, 9) for name, weight in weights.items()}


def _format_weights(weights: dict[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in weights.items())


def _find_faults_of_route(
    fabric: Fabric, host_class: HostClass, own_side: FabricSide, other_side: FabricSide, route: ObservedRoute
) -> Iterator[RouteFault]:
    gateways = index_gateways(fabric, own_side)
    concerns_fabric = route.table != _MAIN or any(
        overlaps_range(route.destination, address_range) for address_range in other_side.ranges
    )
    for hop in route.hops:
        if not hop.via or not (concerns_fabric or (hop.device == host_class.device and len(route.hops) > 1)):
            continue  # routes to other networks do not concern this fabric
        if not is_covered(own_side.ranges, hop.via):
            yield RouteFault(
                "next hop out of reach",
                route.origin,
                f"next hop {hop.via} of the route to {route.destination} is not on {own_side.network}"
                f" ({', '.join(own_side.ranges)})",
                "name the router's address on this side",
            )
        elif hop.via not in gateways and any(
            covers_range(route.destination, address_range) or route.table != _MAIN
            for address_range in other_side.ranges
        ):
            yield RouteFault(
                "unknown router",
                route.origin,
                f"next hop {hop.via} of the route to {route.destination} is no router of {fabric.name}",
                f"the routers are {', '.join(gateways)}",
            )
        if hop.dead:
            yield RouteFault(
                "next hop dead", route.origin, f"the kernel marks next hop {hop.via} as dead", "look at its link"
            )
        if hop.device and hop.device != host_class.device and hop.via in gateways:
            yield RouteFault(
                "wrong device",
                route.origin,
                f"next hop {hop.via} is sought on {hop.device}; {own_side.network} is on {host_class.device}",
                f"name dev {host_class.device}",
            )
    if route.on_link and any(overlaps_range(route.destination, address_range) for address_range in other_side.ranges):
        yield RouteFault(
            "far network on link",
            route.origin,
            f"{route.destination} is declared to be on the link of {route.device or 'this host'}, but it is behind the"
            " routers: the host asks for its addresses by ARP, and gets no answer",
            f"put the network of this side there ({', '.join(own_side.ranges)})",
        )
    smallest_mtu = find_smallest_mtu(fabric)
    if route.mtu is not None and smallest_mtu is not None and route.mtu > smallest_mtu and route.hops:
        yield RouteFault(
            "MTU too large",
            route.origin,
            f"the route to {route.destination} allows packets of {route.mtu} B; the smaller network"
            f" takes {smallest_mtu} B",
            f"set mtu {smallest_mtu}",
        )


def _find_unknown_destinations(
    fabric: Fabric, own_side: FabricSide, other_side: FabricSide, main: Sequence[ObservedRoute]
) -> Iterator[RouteFault]:
    """Multipath routes to where this fabric has no hosts."""
    for route in main:
        if (
            len(route.hops) > 1
            and route.destination != "default"
            and not any(overlaps_range(route.destination, address_range) for address_range in other_side.ranges)
        ):
            yield RouteFault(
                "unknown destination",
                route.origin,
                f"{route.destination} is neither {other_side.network} ({', '.join(other_side.ranges)}) nor part of it",
                f"name {', '.join(other_side.ranges)}",
            )


def check_directions(fabric: Fabric, near: HostTables, far: HostTables) -> list[RouteFault]:
    """Whether a reply can come back by the router of its request: the next hops of both directions, router by router,
    and the hash settings of both sides."""
    return [
        *_compare_hash_settings(fabric, near.settings or {}, far.settings or {}),
        *_compare_routers(fabric, near, far),
    ]


def _compare_hash_settings(fabric: Fabric, near: Mapping[str, str], far: Mapping[str, str]) -> Iterator[RouteFault]:
    version = "ipv4" if fabric.version == 4 else "ipv6"
    # IPv6 uses the seed of IPv4
    for name in (f"net.{version}.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed"):
        if len(fabric.routers) > 1 and name in near and name in far and near[name] != far[name]:
            yield RouteFault(
                "hash differs",
                name,
                f"{near[name]} on {fabric.near.network} and {far[name]} on {fabric.far.network}: a flow and its replies"
                " take different routers",
                "give both sides the same value",
            )


def _compare_routers(fabric: Fabric, near: HostTables, far: HostTables) -> list[RouteFault]:
    if near.routes is None or far.routes is None:
        return []
    outbound = _list_used_routers(fabric, fabric.near, fabric.far, near.routes)
    inbound = _list_used_routers(fabric, fabric.far, fabric.near, far.routes)
    faults = []
    for router in fabric.routers:
        if (router.name in outbound) != (router.name in inbound):
            sending_side, other_side = (
                (fabric.near, fabric.far) if router.name in outbound else (fabric.far, fabric.near)
            )
            faults.append(
                RouteFault(
                    "one direction only",
                    router.name,
                    f"hosts of {sending_side.network} send through {router.name}, those of"
                    f" {other_side.network} never answer through it",
                    "name the same routers on both sides",
                )
            )
    if outbound and inbound and outbound != inbound and set(outbound) == set(inbound):
        faults.append(
            RouteFault(
                "order differs",
                "multipath routes",
                f"the routers have another order on {fabric.near.network} ({', '.join(outbound)}) than on"
                f" {fabric.far.network} ({', '.join(inbound)}): a flow and its replies take different routers",
                "name them in the same order, with the same hash seed and policy",
            )
        )
    return faults


def _list_used_routers(
    fabric: Fabric, own_side: FabricSide, other_side: FabricSide, routes: Iterable[ObservedRoute]
) -> list[str]:
    """Routers that the main table of a host names, in its order."""
    gateways = index_gateways(fabric, own_side)
    hop_addresses = [
        hop.via
        for route in routes
        if route.table == _MAIN
        and any(covers_range(route.destination, address_range) for address_range in other_side.ranges)
        for hop in route.hops
    ]
    return [
        fabric.routers[gateways[hop_address]].name
        for hop_address in dict.fromkeys(hop_addresses)
        if hop_address in gateways
    ]
