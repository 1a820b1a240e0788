# SPDX-License-Identifier: Apache-2.0
"""Drops faults that follow from another fault of the same host, so that a user repairs the cause first."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Sequence

from sonde.design.routes.check_neighbors import UNANSWERED_STATES
from sonde.design.routes.check_next_hops import WRONG_DEVICE, is_on_wrong_device
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import DISCARDING_KINDS, HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.interface_details import LinkDetails

_Place = tuple[str, str]  # the kind and the location of a fault
_ANSWERING_STATES = ("reachable", "delay", "probe", "permanent", "noarp")


def drop_consequences(
    faults: Sequence[RouteFault], host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault]:
    """The faults without silent routers behind a wrong VLAN or sought on a wrong device, without the next hops of a
    table that a wrong rule selects, without the end of a route that diverts traffic anyway, without the route on the
    link of a short prefix, without the route behind one that discards, and without the IPoIB interface that no subnet
    manager configures."""
    locations = {(fault.kind, fault.location) for fault in faults}
    diverting = {location for kind, location in locations if kind == "traffic diverted"}
    tables = {rule.table for rule in host_tables.rules or () if rule.origin in diverting}
    devices = {location for kind, location in locations if kind == "another VLAN"}
    for fault in faults:
        if fault.kind == "route expires" and fault.location in diverting:
            continue
        if fault.kind == "unknown router" and _is_in_tables(fault.location, tables, host_tables):
            continue
        if fault.kind == "far network on link" and _is_route_of_prefix(fault.location, locations, host_tables):
            continue
        if fault.kind == "route never used" and _is_behind_discarding_route(fault.location, locations, host_tables):
            continue
        if fault.kind == "interface down" and _is_unconfigured_infiniband(fault.location, locations, host_tables):
            continue
        if fault.kind == "router does not answer" and (
            _is_behind_silent_device(fault.location, devices, host_tables)
            or _is_sought_on_wrong_device(fault.location, faults, host_views, host_tables)
        ):
            continue
        yield fault


def _is_route_of_prefix(route_origin: str, locations: Collection[_Place], host_tables: HostTables) -> bool:
    """Whether a route on the link is that of an address whose prefix is too short."""
    prefixes = {ipaddress.ip_interface(text).network for kind, text in locations if kind == "prefix too short"}
    destinations = [route.destination for route in host_tables.routes or () if route.origin == route_origin]
    return bool(destinations) and all(
        text != "default" and ipaddress.ip_network(text, strict=False) in prefixes for text in destinations
    )


def _is_behind_discarding_route(route_origin: str, locations: Collection[_Place], host_tables: HostTables) -> bool:
    """Whether the route that hides another one discards packets, and is reported for that."""
    routes = host_tables.routes or ()
    hidden = {route.destination for route in routes if route.origin == route_origin}
    return any(
        route.destination in hidden
        and route.kind in DISCARDING_KINDS
        and ("traffic discarded", route.origin) in locations
        for route in routes
    )


def _is_unconfigured_infiniband(device: str, locations: Collection[_Place], host_tables: HostTables) -> bool:
    """Whether an interface has no carrier because no subnet manager has configured its port."""
    details = host_tables.link_details.get(device, LinkDetails())
    return details.lacks_carrier and any(
        kind == "no subnet manager" and location == f"{port.adapter} port {port.number}"
        and port.guid and details.link_address.lower().endswith(port.guid)
        for kind, location in locations for port in host_tables.infiniband_ports
    )  # fmt: skip


def _is_in_tables(route_origin: str, tables: set[str], host_tables: HostTables) -> bool:
    """Whether all routes with an origin are in some routing tables other than the main one."""
    used = {route.table for route in host_tables.routes or () if route.origin == route_origin}
    return bool(used) and used <= tables - {"main"}


def _is_sought_on_wrong_device(
    address: str, faults: Sequence[RouteFault], host_views: Sequence[HostView], host_tables: HostTables
) -> bool:
    """Whether a neighbor lacks an answer only on devices on which routes seek it wrongly, and that is reported."""
    problems = [fault.problem for fault in faults if fault.kind == WRONG_DEVICE]
    devices = {
        hop.device
        for route in host_tables.routes or ()
        for hop in route.hops
        if hop.via == address and any(is_on_wrong_device(view, host_views, hop) for view in host_views)
    }
    silent = {
        each.device
        for each in host_tables.neighbors or ()
        if each.address == address and each.state in UNANSWERED_STATES
    }
    return bool(silent) and silent <= {
        device
        for device in devices
        if any(f" sought on {device}{end}" in problem for problem in problems for end in (";", " in "))
    }


def _is_behind_silent_device(address: str, devices: set[str], host_tables: HostTables) -> bool:
    """Whether a neighbor is on one of some devices, on which no neighbor answers."""
    entries = [each for each in host_tables.neighbors or () if each.device in devices]
    return any(each.address == address for each in entries) and not any(
        each.state in _ANSWERING_STATES for each in entries
    )
