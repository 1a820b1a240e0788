# SPDX-License-Identifier: Apache-2.0
"""Whether replies come back by the router of their request: the tables of a host on each side, compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.fabric import Fabric, FabricSide, covers_range, map_gateways_to_router_index
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedHop, ObservedRoute
from sonde.design.routes.kernel_lookup import get_metric

_MAIN = "main"
_SHARE_ERROR = 0.005  # weights have few digits


def check_both_directions(
    fabric: Fabric, near_tables: HostTables, far_tables: HostTables
) -> list[RouteFault | CheckedItem]:
    """Whether a reply can come back by the router of its request: the next hops of both directions, router by router,
    and the hash settings of both sides."""
    return [
        *_compare_hash_settings(fabric, near_tables.settings or {}, far_tables.settings or {}),
        *_compare_routers_of_directions(fabric, near_tables, far_tables),
        *_compare_packet_sizes(fabric, near_tables, far_tables),
    ]


def is_host_of_side(fabric: Fabric, side: FabricSide, host_tables: HostTables) -> bool:
    """Whether the tables can be those of a host of a side: they have an address of it or, where no addresses are given,
    a route by one of its routers. Settings alone can be of any host."""
    tables = host_tables.select_version(fabric.version)
    if tables.addresses is not None:
        hosts = [address.partition("/")[0] for address in tables.addresses]
        return any(covers_range(address_range, host) for address_range in side.ranges for host in hosts)
    if host_tables.routes is None:
        return host_tables.addresses is None
    gateways = map_gateways_to_router_index(fabric, side)
    return any(hop.via in gateways for route in tables.routes or () for hop in route.hops)


def find_router_of_tables(fabrics: Iterable[Fabric], host_tables: HostTables) -> str:
    """The name of the router that has its addresses on both networks in the tables; "" for other machines."""
    present = host_tables.own_addresses
    names = (
        router.name
        for fabric in fabrics
        for router in fabric.routers
        if {router.near_address, router.far_address} <= present
    )
    return next(names, "")


def _compare_packet_sizes(
    fabric: Fabric, near_tables: HostTables, far_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Connections use the smaller packets of both hosts: the MTU of their interfaces, and of their routes to each
    other."""
    near = _find_packet_size(fabric, fabric.near, fabric.far, near_tables)
    far = _find_packet_size(fabric, fabric.far, fabric.near, far_tables)
    if near is None or far is None:
        return
    yield CheckedItem("the packets of both sides", fabric.name)
    if near[0] != far[0]:
        (small, cause), small_side, large = (
            (near, fabric.near, far[0]) if near[0] < far[0] else (far, fabric.far, near[0])
        )
        yield RouteFault(
            "MTU differs", f"{cause} on {small_side.network}",
            f"the host of {small_side.network} takes packets of {small} B, the other one {large} B: connections between"
            " them use the small ones",
            f"give {cause} the MTU {large}",
        )  # fmt: skip


def _find_packet_size(
    fabric: Fabric, own_side: FabricSide, other_side: FabricSide, host_tables: HostTables
) -> tuple[int, str] | None:
    """The largest packets, in bytes, that a host exchanges with the other side, and what limits them."""
    tables = host_tables.select_version(fabric.version)
    sizes = [(tables.mtus[item.device], item.device) for item in own_side.classes if item.device in tables.mtus]
    sizes += [
        (route.mtu, f"the route to {route.destination}")
        for route in _list_main_routes(other_side, tables.routes or ())
        if route.mtu is not None and route.destination != "default"
    ]
    return min(sizes, key=lambda item: item[0], default=None)


def _compare_hash_settings(
    fabric: Fabric, near_settings: Mapping[str, str], far_settings: Mapping[str, str]
) -> Iterator[RouteFault | CheckedItem]:
    version = "ipv4" if fabric.version == 4 else "ipv6"
    # IPv6 uses the seed of IPv4
    for name in (f"net.{version}.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed"):
        if len(fabric.routers) < 2 or name not in near_settings or name not in far_settings:
            continue
        yield CheckedItem("the same value on both sides", name)
        if near_settings[name] != far_settings[name]:
            yield RouteFault(
                "hash differs",
                name,
                f"{near_settings[name]} on {fabric.near.network} and {far_settings[name]} on {fabric.far.network}: "
                "a flow and its replies"
                " take different routers",
                "give both sides the same value",
            )


def _compare_routers_of_directions(
    fabric: Fabric, near_tables: HostTables, far_tables: HostTables
) -> list[RouteFault | CheckedItem]:
    if near_tables.routes is None or far_tables.routes is None:
        return []
    outbound = _list_used_routers(fabric, fabric.near, fabric.far, near_tables.routes)
    inbound = _list_used_routers(fabric, fabric.far, fabric.near, far_tables.routes)
    faults: list[RouteFault | CheckedItem] = [CheckedItem("the same routers on both sides", fabric.name)]
    for router in fabric.active_routers:
        if (router.name in outbound) != (router.name in inbound):
            sending_side, other_side = (
                (fabric.near, fabric.far) if router.name in outbound else (fabric.far, fabric.near)
            )
            faults.append(
                RouteFault(
                    "one direction only",
                    router.name,
                    f"hosts of {sending_side.network} send IPv{fabric.version} packets through {router.name}, those of"
                    f" {other_side.network} send none back through it",
                    "name the same routers on both sides",
                )
            )
    faults += _compare_weights(fabric, near_tables, far_tables)
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


def _compare_weights(fabric: Fabric, near_tables: HostTables, far_tables: HostTables) -> Iterator[RouteFault]:
    """Equal hashes choose equal routers only where both sides divide them alike."""
    near = _compute_router_shares(fabric, fabric.near, fabric.far, near_tables.routes or ())
    far = _compute_router_shares(fabric, fabric.far, fabric.near, far_tables.routes or ())
    if near.keys() == far.keys() and any(abs(near[name] - far[name]) > _SHARE_ERROR for name in near):
        names = ", ".join(f"{name} {100 * near[name]:.0f} % and {100 * far[name]:.0f} %" for name in near)
        yield RouteFault(
            "weights differ", "multipath routes",
            f"the routers have other shares on {fabric.near.network} than on {fabric.far.network} ({names}): a flow and"
            " its replies take different routers",
            "give both sides the same weights",
        )  # fmt: skip


def _compute_router_shares(
    fabric: Fabric, own_side: FabricSide, other_side: FabricSide, routes: Iterable[ObservedRoute]
) -> dict[str, float]:
    """The share of the flows of each router that the main table uses first, by its name."""
    gateways = map_gateways_to_router_index(fabric, own_side)
    weights: dict[str, int] = {}
    for hop in _list_first_hops(fabric, other_side, routes):
        if hop.via in gateways:
            name = fabric.routers[gateways[hop.via]].name
            weights[name] = weights.get(name, 0) + hop.weight
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def _list_used_routers(
    fabric: Fabric, own_side: FabricSide, other_side: FabricSide, routes: Iterable[ObservedRoute]
) -> list[str]:
    """Routers that the main table of a host uses first, in its order."""
    gateways = map_gateways_to_router_index(fabric, own_side)
    hop_addresses = [hop.via for hop in _list_first_hops(fabric, other_side, routes)]
    return [
        fabric.routers[gateways[hop_address]].name
        for hop_address in dict.fromkeys(hop_addresses)
        if hop_address in gateways
    ]


def _list_first_hops(fabric: Fabric, other_side: FabricSide, routes: Iterable[ObservedRoute]) -> list[ObservedHop]:
    """The next hops of the routes of the main table with the lowest metric to the other side."""
    matching_routes = _list_main_routes(other_side, routes)
    lowest = min((get_metric(route, fabric.version) for route in matching_routes), default=0)
    return [hop for route in matching_routes if get_metric(route, fabric.version) == lowest for hop in route.hops]


def _list_main_routes(other_side: FabricSide, routes: Iterable[ObservedRoute]) -> list[ObservedRoute]:
    """The routes of the main table to a whole range of the other side."""
    return [
        route
        for route in routes
        if route.table == _MAIN
        and any(covers_range(route.destination, address_range) for address_range in other_side.ranges)
    ]
