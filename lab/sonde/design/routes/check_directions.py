# SPDX-License-Identifier: Apache-2.0
"""Whether replies come back by the router of their request: the tables of a host on each side, compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.fabric import Fabric, FabricSide, covers_range, index_gateways
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedRoute
from sonde.design.routes.kernel_lookup import get_metric

_MAIN = "main"


def check_directions(fabric: Fabric, near: HostTables, far: HostTables) -> list[RouteFault | CheckedItem]:
    """Whether a reply can come back by the router of its request: the next hops of both directions, router by router,
    and the hash settings of both sides."""
    return [
        *_compare_hash_settings(fabric, near.settings or {}, far.settings or {}),
        *_compare_routers(fabric, near, far),
    ]


def _compare_hash_settings(
    fabric: Fabric, near: Mapping[str, str], far: Mapping[str, str]
) -> Iterator[RouteFault | CheckedItem]:
    version = "ipv4" if fabric.version == 4 else "ipv6"
    # IPv6 uses the seed of IPv4
    for name in (f"net.{version}.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed"):
        if len(fabric.routers) < 2 or name not in near or name not in far:
            continue
        yield CheckedItem("the same value on both sides", name)
        if near[name] != far[name]:
            yield RouteFault(
                "hash differs",
                name,
                f"{near[name]} on {fabric.near.network} and {far[name]} on {fabric.far.network}: a flow and its replies"
                " take different routers",
                "give both sides the same value",
            )


def _compare_routers(fabric: Fabric, near: HostTables, far: HostTables) -> list[RouteFault | CheckedItem]:
    if near.routes is None or far.routes is None:
        return []
    outbound = _list_used_routers(fabric, fabric.near, fabric.far, near.routes)
    inbound = _list_used_routers(fabric, fabric.far, fabric.near, far.routes)
    faults: list[RouteFault | CheckedItem] = [CheckedItem("the same routers on both sides", fabric.name)]
    for router in fabric.active:
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
    """Routers that the main table of a host uses first, in its order."""
    gateways = index_gateways(fabric, own_side)
    matching_routes = [
        route
        for route in routes
        if route.table == _MAIN
        and any(covers_range(route.destination, address_range) for address_range in other_side.ranges)
    ]
    lowest = min((get_metric(route, fabric.version) for route in matching_routes), default=0)
    hop_addresses = [
        hop.via for route in matching_routes if get_metric(route, fabric.version) == lowest for hop in route.hops
    ]
    return [
        fabric.routers[gateways[hop_address]].name
        for hop_address in dict.fromkeys(hop_addresses)
        if hop_address in gateways
    ]
