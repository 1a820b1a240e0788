# SPDX-License-Identifier: Apache-2.0
"""Drops faults that follow from another fault of the same host, so that a user repairs the cause first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables

_ANSWERING_STATES = ("reachable", "delay", "probe", "permanent", "noarp")


def drop_consequences(faults: Sequence[RouteFault], host_tables: HostTables) -> Iterator[RouteFault]:
    """The faults without silent routers behind a wrong VLAN, without the next hops of a table that a wrong rule
    selects, and without the end of a route that diverts traffic anyway."""
    locations = {(fault.kind, fault.location) for fault in faults}
    diverting = {location for kind, location in locations if kind == "traffic diverted"}
    tables = {rule.table for rule in host_tables.rules or () if rule.origin in diverting}
    devices = {location for kind, location in locations if kind == "another VLAN"}
    for fault in faults:
        if fault.kind == "route expires" and fault.location in diverting:
            continue
        if fault.kind == "unknown router" and _is_in_tables(fault.location, tables, host_tables):
            continue
        if fault.kind == "router does not answer" and _is_behind_silent_device(fault.location, devices, host_tables):
            continue
        yield fault


def _is_in_tables(route_origin: str, tables: set[str], host_tables: HostTables) -> bool:
    """Whether all routes with an origin are in some routing tables other than the main one."""
    used = {route.table for route in host_tables.routes or () if route.origin == route_origin}
    return bool(used) and used <= tables - {"main"}


def _is_behind_silent_device(address: str, devices: set[str], host_tables: HostTables) -> bool:
    """Whether a neighbor is on one of some devices, on which no neighbor answers."""
    entries = [each for each in host_tables.neighbors or () if each.device in devices]
    return any(each.address == address for each in entries) and not any(
        each.state in _ANSWERING_STATES for each in entries
    )
