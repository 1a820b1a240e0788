# SPDX-License-Identifier: Apache-2.0
"""Checks that a router sends forwarded packets to the hosts of both networks by its interface on each, as the kernel
chooses among all rules and routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.fabric import Fabric, FabricRouter, FabricSide, is_address_in_ranges, overlaps_range
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, describe_rule_selectors
from sonde.design.routes.kernel_lookup import IpAddress, RouteLookup, find_kernel_route, list_probe_addresses
from sonde.design.routes.link_usability import is_device_up


def find_forwarding_faults(
    fabric: Fabric, routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Packets of one side that this router discards, sends on or takes out of another interface. Nothing is compared
    where the tables may be of several routers with different devices, or without routes."""
    pairs = {(router.near_device, router.far_device) for router in routers}
    if host_tables.routes is None or len(pairs) != 1:
        return
    (near_device, far_device) = next(iter(pairs))
    own_addresses = host_tables.own_addresses | {
        address for router in routers for address in (router.near_address, router.far_address)
    }
    for incoming, outgoing, source_side, target_side in (
        (near_device, far_device, fabric.near, fabric.far),
        (far_device, near_device, fabric.far, fabric.near),
    ):
        if not outgoing or not is_device_up(outgoing, host_tables):
            continue
        if not _has_address(host_tables, target_side) or _is_on_other_device(host_tables, target_side, outgoing):
            continue  # reported with the address
        for target_range in target_side.ranges:
            yield CheckedItem("the way of forwarded packets", target_range)
            lookups = _list_lookups(host_tables, target_range, incoming, source_side, own_addresses)
            for address, lookup in lookups:
                yield from _check_lookup(target_side, outgoing, address, lookup)


def _has_address(host_tables: HostTables, side: FabricSide) -> bool:
    """Whether the router has an address of a side with its prefix, as far as is known: without it the kernel has no
    route."""
    networks = [ipaddress.ip_network(text, strict=False) for text in side.ranges]
    interfaces = [ipaddress.ip_interface(text) for text in host_tables.addresses or ()]
    return host_tables.addresses is None or any(
        interface.ip in network and interface.network.prefixlen <= network.prefixlen
        for interface in interfaces
        for network in networks
    )


def _is_on_other_device(host_tables: HostTables, side: FabricSide, outgoing: str) -> bool:
    """Whether the addresses of a side are known, and none is on its interface."""
    devices = [
        device
        for address, names in host_tables.address_devices.items()
        if is_address_in_ranges(side.ranges, address)
        for device in names
    ]
    return bool(devices) and outgoing not in devices


def _list_lookups(
    host_tables: HostTables, target_range: str, incoming: str, source_side: FabricSide, own_addresses: set[str]
) -> list[tuple[IpAddress, RouteLookup | None]]:
    """The different routes of forwarded packets to a range, each with the first address that takes it."""
    hosts = [address for host_class in source_side.classes for address in host_class.addresses][:1]
    selected = [rule.source.partition("/")[0] for rule in host_tables.rules or () if rule.source != "all" and any(
        overlaps_range(rule.source, text) for text in source_side.ranges)]  # fmt: skip
    cases = [None, *(rule for rule in host_tables.rules or () if rule.selectors and not rule.inverted)]
    outcomes: dict[object, tuple[IpAddress, RouteLookup | None]] = {}
    for address in list_probe_addresses(host_tables, target_range):
        for source in dict.fromkeys((*hosts, *selected)) if str(address) not in own_addresses else ():
            for rule in cases:
                lookup = find_kernel_route(
                    host_tables, address, source_address=ipaddress.ip_address(source), selecting_rule=rule,
                    incoming_device=incoming,
                )  # fmt: skip
                if rule is None or (lookup is not None and lookup.rule.origin == rule.origin):
                    outcomes.setdefault((lookup.route, lookup.rule) if lookup else None, (address, lookup))
    return list(outcomes.values())


def _check_lookup(
    side: FabricSide, outgoing: str, address: IpAddress, lookup: RouteLookup | None
) -> Iterator[RouteFault]:
    device_text = f"{side.network} is on {outgoing}"
    if lookup is None:
        yield RouteFault(
            "own network missing", f"{', '.join(side.ranges)} in table main",
            f"nothing leads to {address}, although {device_text}: this router drops packets to it",
            f"ip route add {side.ranges[0]} dev {outgoing}, or remove the route that hides it",
        )  # fmt: skip
        return
    selectors = describe_rule_selectors(lookup.rule)
    if lookup.is_discarded:
        kind = lookup.rule.action if lookup.route is None else lookup.route.kind
        yield RouteFault(
            "traffic discarded", lookup.origin,
            f"packets{selectors} to {address} ({side.network}) are discarded ({kind})",
            "remove this route or rule, or narrow it",
        )  # fmt: skip
        return
    route = lookup.route
    assert route is not None
    if route.kind == "local":
        yield RouteFault(
            "traffic discarded", lookup.origin,
            f"packets to {address} ({side.network}) do not leave this router: it takes them for its own (local)",
            "remove this route or address",
        )  # fmt: skip
    elif route.hops:
        is_by_rule = lookup.rule.table != "main"
        rule_text = f" by a rule{selectors} into table {lookup.rule.table}" if is_by_rule else ""
        is_missing = route.destination == "default" and not is_by_rule
        yield RouteFault(
            "own network missing" if is_missing else "sent to another router",
            lookup.rule.origin if is_by_rule else route.origin,
            f"packets to {address} ({side.network}) go on to {', '.join(hop.via for hop in route.hops)}{rule_text}, but"
            f" {device_text} of this router: they make a loop or a detour",
            f"ip route add {side.ranges[0]} dev {outgoing}" if is_missing else "remove this route or rule",
        )  # fmt: skip
    elif route.device not in ("", outgoing):
        yield RouteFault(
            "wrong device", lookup.rule.origin if lookup.rule.table != "main" else route.origin,
            f"packets to {address} ({side.network}) leave by {route.device}; {device_text}",
            f"remove this route, or name dev {outgoing}",
        )  # fmt: skip
