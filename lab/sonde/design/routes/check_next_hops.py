# SPDX-License-Identifier: Apache-2.0
"""Checks the next hops of routes: whether they are routers, on which device they are sought, and which routers a route
leaves out, names twice, weighs differently or orders differently."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.routes.fabric import FabricRouter, is_address_in_ranges
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedHop, ObservedRoute
from sonde.design.routes.host_view import HostView
from sonde.design.routes.link_usability import is_device_up, list_own_devices

# The kind of a fault that a check of both sides replaces.
WRONG_DEVICE = "wrong device"
OTHER_ORDER = "order not as planned"
# How many weights are written out; of more only those that differ are.
_MAX_LISTED_WEIGHTS = 6


def find_next_hop_faults(
    host_view: HostView,
    all_host_views: Sequence[HostView],
    route: ObservedRoute,
    next_hop: ObservedHop,
    host_tables: HostTables,
    *,
    concerns_fabric: bool,
) -> Iterator[RouteFault]:
    """A next hop that is no router of this side."""
    side = host_view.own_side
    if not next_hop.via:
        return
    all_gateways = {address for each in all_host_views for address in each.routers_by_gateway}
    own_ranges = [address_range for each in all_host_views for address_range in each.own_side.ranges]
    instead = _describe_replaced_routers(host_view, route) if concerns_fabric else ""
    far_hops = [hop.via for hop in route.hops if hop.via in host_view.routers_by_far_address]
    far_router = host_view.routers_by_far_address.get(next_hop.via)
    far_text = f": it is the address of {far_router.name} on {host_view.other_side.network}" if far_router else ""
    if len(far_hops) > 1 and next_hop.via in far_hops:
        if next_hop.via == far_hops[0]:
            yield RouteFault(
                "next hop out of reach", route.origin,
                f"the next hops {', '.join(far_hops[:3])}{', …' if len(far_hops) > 3 else ''} of the route to"
                f" {route.destination} are the addresses of routers on {host_view.other_side.network}, not on"
                f" {side.network}{instead}",
                "name the addresses of the routers on this side",
            )  # fmt: skip
    elif concerns_fabric and (other_device := _find_other_device(host_view, next_hop, host_tables)) and not far_router:
        yield RouteFault(
            "unknown router", route.origin,
            f"the route to {route.destination} leads past the routers: its next hop {next_hop.via} is on the network of"
            f" {other_device} and no router of {host_view.fabric.name}{instead}",
            "remove this route" if len(route.hops) == 1 else "name the routers on this side",
        )  # fmt: skip
    elif not is_address_in_ranges(side.ranges if concerns_fabric else own_ranges, next_hop.via):
        yield RouteFault(
            "next hop out of reach", route.origin,
            f"next hop {next_hop.via} of the route to {route.destination} is not on {side.network}"
            f" ({', '.join(side.ranges)}){far_text}{instead}",
            "name the router's address on this side",
        )  # fmt: skip
    elif next_hop.via not in (host_view.routers_by_gateway if concerns_fabric else all_gateways):
        yield RouteFault(
            "unknown router", route.origin,
            f"next hop {next_hop.via} of the route to {route.destination} is no router of {host_view.fabric.name}"
            f"{instead}",
            f"the routers are {', '.join(host_view.routers_by_gateway)}",
        )  # fmt: skip


def _find_other_device(host_view: HostView, next_hop: ObservedHop, host_tables: HostTables) -> str:
    """The interface on another network that reaches a next hop; "" for none."""
    if is_address_in_ranges(host_view.own_side.ranges, next_hop.via):
        return ""
    devices = list_own_devices(host_view, host_tables)
    return next(
        (
            next_hop.device
            for text in host_tables.addresses or ()
            if next_hop.device not in ("", *devices)
            and next_hop.device in host_tables.address_devices.get(text.partition("/")[0], ())
            and ipaddress.ip_address(next_hop.via) in ipaddress.ip_interface(text).network
        ),
        "",
    )


def _describe_replaced_routers(host_view: HostView, route: ObservedRoute) -> str:
    """The active routers that a route names strangers instead of, as the end of a sentence."""
    strangers = [hop for hop in route.hops if hop.via and hop.via not in host_view.routers_by_gateway]
    if len(route.hops) < 2 or len(strangers) == len(route.hops):
        return ""
    missing = _list_missing_gateways(host_view, route, host_view.fabric.active_routers)
    return (
        f", instead of {_list_router_names(host_view, missing)}" if missing and len(missing) == len(strangers) else ""
    )


def is_hop_dead(route: ObservedRoute, next_hop: ObservedHop, host_tables: HostTables) -> bool:
    """Whether a next hop is dead and its interface is not reported as down or missing."""
    return bool(next_hop.via) and next_hop.dead and is_device_up(next_hop.device or route.device, host_tables)


def describe_dead_hops(dead_hops: Sequence[tuple[ObservedRoute, ObservedHop]]) -> Iterator[RouteFault]:
    """One fault for all dead next hops of an interface: it has lost its link, or had lost it."""
    for device, hops in _group_by_device(dead_hops).items():
        origins = list(dict.fromkeys(route.origin for route, _ in hops))
        gateways = list(dict.fromkeys(hop.via for _, hop in hops))
        yield RouteFault(
            "next hop dead", f"{origins[0]} to {origins[-1]}" if len(origins) > 1 else origins[0],
            f"the kernel marks next hop{'s' if len(gateways) > 1 else ''} {', '.join(gateways)} on {device} as dead",
            f"look at the link of {device}",
        )  # fmt: skip


def _group_by_device(
    hops: Sequence[tuple[ObservedRoute, ObservedHop]],
) -> dict[str, list[tuple[ObservedRoute, ObservedHop]]]:
    by_device: dict[str, list[tuple[ObservedRoute, ObservedHop]]] = {}
    for route, hop in hops:
        by_device.setdefault(hop.device or route.device, []).append((route, hop))
    return by_device


def is_on_wrong_device(host_view: HostView, all_host_views: Sequence[HostView], next_hop: ObservedHop) -> bool:
    """Whether a router is sought on a device by which no fabric reaches it."""
    return (
        next_hop.device not in ("", host_view.host_class.device)
        and next_hop.via in host_view.routers_by_gateway
        and not any(
            next_hop.device == view.host_class.device and next_hop.via in view.routers_by_gateway
            for view in all_host_views
        )
    )


def describe_wrong_devices(
    host_view: HostView, misplaced_hops: Sequence[tuple[ObservedRoute, ObservedHop]]
) -> Iterator[RouteFault]:
    """One fault for each wrong device: a profile that names another interface has all its routes there."""
    device = host_view.host_class.device
    for wrong_device, hops in _group_by_device(misplaced_hops).items():
        origins = list(dict.fromkeys(route.origin for route, _ in hops))
        gateways = list(dict.fromkeys(hop.via for _, hop in hops))
        subject = (
            f"next hop {gateways[0]} is" if len(gateways) == 1 else f"{len(gateways)} next hops ({gateways[0]}, …) are"
        )
        routes = f" in {len(origins)} routes" if len(origins) > 1 else ""
        yield RouteFault(
            WRONG_DEVICE, f"{origins[0]} to {origins[-1]}" if len(origins) > 1 else origins[0],
            f"{subject} sought on {wrong_device}{routes}; {host_view.own_side.network} is on {device}",
            f"name dev {device}",
        )  # fmt: skip


def compare_next_hops(
    host_view: HostView,
    route: ObservedRoute,
    expected_routers: Sequence[FabricRouter],
    wider_route: ObservedRoute | None = None,
) -> Iterator[RouteFault]:
    """Routers that a route leaves out, names twice, weighs differently or in another order. `wider_route` leads to all
    hosts of the other side, of a route to a part of them."""
    hop_addresses = [hop.via for hop in route.hops]
    planned = _map_expected_gateways(host_view, expected_routers)
    missing = _list_missing_gateways(host_view, route, expected_routers)
    strangers = [address for address in hop_addresses if address and address not in host_view.routers_by_gateway]
    repeated = Counter(address for address in hop_addresses if address in host_view.routers_by_gateway)
    surplus = len(strangers) + sum(count - 1 for count in repeated.values())
    if missing and wider_route is not None:
        yield _describe_narrow_route(host_view, route, wider_route)
    elif missing and len(missing) != surplus:  # else they are reported with what is there instead
        yield RouteFault(
            "router not used", route.origin,
            f"the route to {route.destination} leaves out {_list_router_names(host_view, missing)}: its share goes"
            " to the"
            " others",
            "name every router once",
        )  # fmt: skip
    extra = [address for address in hop_addresses if address in host_view.routers_by_gateway and address not in planned]
    if extra:
        names = ", ".join(host_view.routers_by_gateway[address].name for address in extra)
        yield RouteFault(
            "wrong priority", route.origin,
            f"the route to {route.destination} names {names}, which the system file gives another priority",
            "name routers of one priority in one route",
        )  # fmt: skip
    for address, count in sorted(repeated.items()):
        if count < 2:
            continue
        instead = f" and not {_list_router_names(host_view, missing)}" if len(missing) == surplus else ""
        yield RouteFault(
            "router named twice", route.origin,
            f"the route to {route.destination} names {address} {count} times{instead}: it gets that many shares",
            "name it once, and give it a weight where it should carry more",
        )  # fmt: skip
    yield from _compare_weights_and_order(route, planned, is_complete=sorted(hop_addresses) == sorted(planned))


def _compare_weights_and_order(
    route: ObservedRoute, planned_routers: Mapping[str, FabricRouter], *, is_complete: bool
) -> Iterator[RouteFault]:
    """Weights that differ from those of the plan; of a route with exactly the planned routers, also their order."""
    weights = {hop.via: hop.weight for hop in route.hops if hop.via in planned_routers}
    planned = {address: planned_routers[address].weight for address in weights}
    if len(weights) > 1 and _compute_proportions(weights) != _compute_proportions(planned):
        yield RouteFault(
            "weights differ", route.origin,
            f"the weights of the route to {route.destination} are {_format_weights(weights, planned)}; the system file"
            f" says {_format_weights(planned, weights)}",
            "set the weights of the plan",
        )  # fmt: skip
    order = [planned_routers[address].name for address in weights]
    planned_order = [router.name for router in planned_routers.values()]
    if is_complete and order != planned_order:
        index = next(
            number for number, names in enumerate(zip(order, planned_order, strict=True)) if len(set(names)) > 1
        )
        yield RouteFault(
            OTHER_ORDER, route.origin,
            f"the route to {route.destination} names {order[index]} as number {index + 1}, the plan"
            f" {planned_order[index]}: replies of hosts with the order of the plan take other routers than requests",
            "name the routers in the order of the plan",
        )  # fmt: skip


def _describe_narrow_route(host_view: HostView, route: ObservedRoute, wider_route: ObservedRoute) -> RouteFault:
    used = [hop.via for hop in route.hops if hop.via in host_view.routers_by_gateway]
    return RouteFault(
        "router not used", route.origin,
        f"the route to {route.destination} is narrower than that to {wider_route.destination} and leads by"
        f" {_list_router_names(host_view, used)} alone: its packets do not use the other routers",
        "remove this route",
    )  # fmt: skip


def _map_expected_gateways(host_view: HostView, expected_routers: Sequence[FabricRouter]) -> dict[str, FabricRouter]:
    return {address: router for address, router in host_view.routers_by_gateway.items() if router in expected_routers}


def _list_missing_gateways(
    host_view: HostView, route: ObservedRoute, expected_routers: Sequence[FabricRouter]
) -> list[str]:
    hop_addresses = [hop.via for hop in route.hops]
    return [address for address in _map_expected_gateways(host_view, expected_routers) if address not in hop_addresses]


def _list_router_names(host_view: HostView, gateways: Sequence[str]) -> str:
    names = ", ".join(host_view.routers_by_gateway[address].name for address in gateways)
    return f"{names} ({', '.join(gateways)})"


def _compute_proportions(weights_by_router: Mapping[str, int]) -> dict[str, float]:
    total = sum(weights_by_router.values())
    return {name: round(weight / total, 9) for name, weight in weights_by_router.items()}


def _format_weights(weights_by_router: Mapping[str, int], other_weights: Mapping[str, int]) -> str:
    """The weights of few routers, or those of many that differ from other weights."""
    written = {
        name: value
        for name, value in weights_by_router.items()
        if len(weights_by_router) <= _MAX_LISTED_WEIGHTS or value != other_weights[name]
    }
    end = ", …" if len(written) < len(weights_by_router) else ""
    return ", ".join(f"{name} {value}" for name, value in (written or weights_by_router).items()) + end
