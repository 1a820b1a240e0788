# SPDX-License-Identifier: Apache-2.0
"""Reads what ``lnetctl export`` prints: routes, network interfaces (NIs) and whether the host forwards messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonde.design.routes.host_tables import HostTables, LnetInterface, LnetRoute

# What `read_lnet_export` reads of an export and of each NI.
_SECTIONS = ("net", "route", "routing")
_INTERFACE_MEMBERS = ("nid", "status", "interfaces", "statistics")
_LOOPBACK = "lo"


def read_lnet_export(document: Mapping[str, Any], file_name: str) -> HostTables:
    """The LNet tables of an export; a section that is not printed is unknown. `lnetctl net show` prints the section net
    alone, and an export of a host without routes has no section route."""
    networks = document.get("net")
    routing_entries = document.get("routing")
    extras = [name for name in document if name not in _SECTIONS]
    routes = document.get("route")
    has_routes = isinstance(routes, list) or len(document) > 1
    is_routing = None
    if isinstance(routing_entries, list):
        values = [entry["enable"] for entry in routing_entries if isinstance(entry, Mapping) and "enable" in entry]
        is_routing = bool(int(values[0])) if values else None
        extras += ["routing buffers"] if len(routing_entries) > len(values) else []
    if isinstance(networks, list):
        extras += dict.fromkeys(
            str(member) for entry in networks for interface in entry.get("local NI(s)") or ()
            for member in interface if member not in _INTERFACE_MEMBERS
        )  # fmt: skip
    return HostTables(
        lnet_routes=tuple(_read_routes(routes if isinstance(routes, list) else (), file_name)) if has_routes else None,
        lnet_interfaces=tuple(_read_interfaces(networks, file_name)) if isinstance(networks, list) else None,
        is_lnet_routing=is_routing,
        lnet_extras=tuple(extras),
    )


def _read_routes(route_entries: Sequence[Mapping[str, Any]], file_name: str) -> Iterator[LnetRoute]:
    for number, entry in enumerate(route_entries, start=1):
        state = str(entry.get("state", "")).lower()
        hops, priority = entry.get("hop"), entry.get("priority")
        yield LnetRoute(
            network=str(entry["net"]),
            gateway=str(entry["gateway"]),
            hops=None if hops is None or int(hops) in (-1, 2**32 - 1) else int(hops),
            priority=None if priority is None else int(priority),
            is_up=None if state not in ("up", "down") else state == "up",
            origin=f"{file_name}, route {number}",
        )


def _read_interfaces(network_entries: Sequence[Mapping[str, Any]], file_name: str) -> Iterator[LnetInterface]:
    for entry in network_entries:
        if str(entry.get("net type", "")) == _LOOPBACK:
            continue
        for interface in entry.get("local NI(s)") or ():
            nid, devices = str(interface["nid"]), interface.get("interfaces") or {}
            status = str(interface.get("status", "")).lower()
            yield LnetInterface(
                nid,
                tuple(str(device) for device in (devices.values() if isinstance(devices, Mapping) else devices)),
                None if status not in ("up", "down") else status == "up",
                f"{file_name}, {nid}",
            )
