# SPDX-License-Identifier: Apache-2.0
"""Whether a host can send packets to the routers at all: without a working interface the kernel has no routes through
them, and what follows from that is not reported as another fault."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator

from sonde.design.routes.fabric import is_address_in_ranges
from sonde.design.routes.host_tables import LOOPBACK, HostTables
from sonde.design.routes.host_view import HostView


def list_devices_of_host_class(host_view: HostView) -> tuple[str, ...]:
    """The devices by which hosts of the class are on this side."""
    return tuple(each.device for each in host_view.own_side.classes if each.name == host_view.host_class.name)


def list_devices_below(device_name: str, host_tables: HostTables) -> tuple[str, ...]:
    """The devices that carry the packets of a VLAN, from above: its parent and so on. Ports of bonds are not among
    them."""
    below: list[str] = []
    details = host_tables.link_details.get(device_name)
    while details is not None and details.parent and details.parent not in (device_name, *below):
        below.append(details.parent)
        details = host_tables.link_details.get(details.parent)
    return tuple(below)


def list_bond_ports(device_name: str, host_tables: HostTables) -> tuple[str, ...]:
    """Returns the devices that are ports of the bond `device_name`."""
    return tuple(port for port, details in host_tables.link_details.items()
                 if details.master == device_name and details.is_bond_port)  # fmt: skip


def is_bond_without_ports(device_name: str, host_tables: HostTables) -> bool:
    """Whether a device is a bond that carries nothing because it has no port, as far as its kind is known."""
    details = host_tables.link_details.get(device_name)
    is_bond = details is not None and bool(details.bond_mode) and device_name in host_tables.links
    return is_bond and not list_bond_ports(device_name, host_tables)


def is_device_up(device_name: str, host_tables: HostTables) -> bool:
    """Whether a device exists and is up, or no state of a device is known."""
    return not host_tables.links or host_tables.links.get(device_name) == "up"


def describe_link_remedy(device_name: str, host_tables: HostTables) -> str:
    """What to do about a device that is down; one without carrier is up already. Other ports of this name with a link
    and without an address may have its cable."""
    details = host_tables.link_details.get(device_name)
    if details is None or not details.lacks_carrier:
        return f"ip link set {device_name} up, or look at the cable"
    addressed = {
        device
        for address, devices in host_tables.address_devices.items()
        if not ipaddress.ip_address(address).is_link_local
        for device in devices
    }
    base_name = re.sub(r"\d+", "0", device_name)
    others = [
        other
        for other, other_details in host_tables.link_details.items()
        if re.sub(r"\d+", "0", other) == base_name and host_tables.links.get(other) == "up"
        and not other_details.master and other not in addressed and other != device_name
    ]  # fmt: skip
    guess = f"; {', '.join(others)} has a link and no address, the cable may be there" if others else ""
    return (
        f"look at the cable, the transceiver and the port of the switch: {device_name} is switched on, but has no"
        f" carrier{guess}"
    )


def has_usable_link(host_view: HostView, host_tables: HostTables) -> bool:
    """Whether the planned interface is up and has an address from which it reaches a router, as far as is known."""
    if not is_device_up(host_view.host_class.device, host_tables):
        return False
    if host_tables.addresses is None:
        return True
    devices = [*list_own_devices(host_view, host_tables), ""]
    networks = [*_iterate_own_networks(host_view, host_tables), *iterate_on_link_networks(host_tables, devices)]
    return any(ipaddress.ip_address(gateway) in network for gateway in host_view.routers_by_gateway
               for network in networks)  # fmt: skip


def has_route_through_fabric(host_view: HostView, host_tables: HostTables) -> bool:
    """Whether a route of any table leads through a router of the fabric, or no route is known."""
    return host_tables.routes is None or any(
        hop.via in host_view.routers_by_gateway for route in host_tables.routes for hop in route.hops
    )


def iterate_on_link_networks(
    host_tables: HostTables, devices: Collection[str] | None = None
) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The destinations of routes of the main table that have no next hop, on some devices or on all."""
    for route in host_tables.routes or ():
        is_on_device = devices is None or route.device in devices
        if route.on_link and route.destination != "default" and route.table == "main" and is_on_device:
            yield ipaddress.ip_network(route.destination)


def list_own_devices(host_view: HostView, host_tables: HostTables) -> list[str]:
    """The planned devices on this side, and the bonds, bridges or VRFs that they are ports of."""
    devices = list_devices_of_host_class(host_view)
    return [*devices, *(host_tables.link_details[name].master for name in devices if name in host_tables.link_details)]


def is_prefix_too_long(host_view: HostView, host_tables: HostTables) -> bool:
    """Whether the prefix of an address leaves routers off the link, so that the main table has no route through them:
    the script of the plan stops at that route, and its rules come after it."""
    lengths = [ipaddress.ip_network(text, strict=False).prefixlen for text in host_view.own_side.ranges]
    has_long_prefix = any(
        address.network.prefixlen > min(lengths)
        for address in map(ipaddress.ip_interface, host_tables.addresses or ())
        if is_address_in_ranges(host_view.own_side.ranges, str(address.ip))
    )
    return (
        has_long_prefix
        and host_tables.routes is not None
        and not has_usable_link(host_view, host_tables)
        and not any(
            hop.via in host_view.routers_by_gateway
            for route in host_tables.routes
            if route.table == "main"
            for hop in route.hops
        )
    )


def find_holding_device(host_view: HostView, host_tables: HostTables) -> str:
    """The interface that has an address of this side where no planned interface has one; "" for none."""
    devices = (*list_own_devices(host_view, host_tables), LOOPBACK)
    own_addresses = [
        address for address in host_tables.address_devices if is_address_in_ranges(host_view.own_side.ranges, address)
    ]
    if any(host_tables.list_devices_with_address(address, devices) for address in own_addresses):
        return ""
    holders = (device for address in own_addresses for device in host_tables.address_devices[address])
    return next((device for device in holders if device in host_tables.links), "")


def _iterate_own_networks(
    host_view: HostView, host_tables: HostTables
) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The networks of the addresses of this side on its devices."""
    devices = list_own_devices(host_view, host_tables)
    for text in host_tables.addresses or ():
        address = ipaddress.ip_interface(text)
        is_on_own_device = str(address.ip) not in host_tables.address_devices or host_tables.list_devices_with_address(
            str(address.ip), devices
        )
        if is_on_own_device and is_address_in_ranges(host_view.own_side.ranges, str(address.ip)):
            yield address.network
