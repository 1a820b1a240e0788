# SPDX-License-Identifier: Apache-2.0
"""Reads files of routes of SUSE (wicked): /etc/sysconfig/network/ifroute-DEVICE and routes.

Source: ifroute(5) of wicked: destination, gateway, netmask, interface, type; "-" for none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sonde.design.routes.host_tables import HostTables, ObservedRoute
from sonde.design.routes.ip_lines import parse_route_line

MANAGER = "wicked"
_PREFIX = "ifroute-"
_COLUMNS = 4


def is_suse_route_file(file_text: str, file_name: str) -> bool:
    """Whether a file has routes of wicked: by its name, or as `routes` with "-" for a netmask."""
    base_name = file_name.rpartition("/")[2]
    if base_name.startswith(_PREFIX):
        return True
    rows = [line.partition("#")[0].split() for line in file_text.splitlines()]
    return base_name == "routes" and any(len(row) >= _COLUMNS - 1 and row[2] == "-" for row in rows)


def parse_suse_routes(file_text: str, file_name: str) -> HostTables:
    """The routes of a file; those in ifroute-DEVICE are of this interface."""
    base_name = file_name.rpartition("/")[2]
    device = base_name.removeprefix(_PREFIX) if base_name.startswith(_PREFIX) else ""
    routes = tuple(_iterate_routes(file_text, base_name, device))
    return HostTables(routes=routes or None, formats=(MANAGER,))


def _iterate_routes(file_text: str, base_name: str, file_device: str) -> Iterator[ObservedRoute]:
    for number, line in enumerate(file_text.splitlines(), start=1):
        columns = line.partition("#")[0].split()
        if not columns:
            continue
        destination, gateway, mask, device = (*columns, "-", "-", "-", "-")[:_COLUMNS]
        if mask != "-" and "/" not in destination and destination != "default":
            destination = f"{destination}/{mask}"
        arguments = [destination]
        arguments += ["via", gateway] if gateway != "-" else []
        interface = device if device != "-" else file_device
        arguments += ["dev", interface] if interface else []
        route = parse_route_line(arguments, f"{base_name}, line {number}", 6 if ":" in gateway else None)
        if route is not None:
            hops = tuple(replace(hop, device=interface) for hop in route.hops)
            yield replace(route, hops=hops, origin=f"{base_name}, line {number}")
