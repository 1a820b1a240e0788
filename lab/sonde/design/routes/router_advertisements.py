# SPDX-License-Identifier: Apache-2.0
"""Addresses, routes and MTUs that IPv6 router advertisements (RA) set: how to recognize and how to remove them.

Source: RFC 4861, section 4.6.2, RFC 4862, section 5.5, and ip-sysctl.rst of Linux.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.design.routes.file_settings import IPV6_MTU, FileSetting
from sonde.design.routes.host_tables import HostTables, ObservedRoute, find_ip_version
from sonde.design.routes.interface_details import AddressDetails

# The prefix of addresses that hosts make of advertised prefixes; DHCPv6 leases are of single addresses.
_ADVERTISED_LENGTH = "64"


def is_advertised_address(address: str, details: AddressDetails) -> bool:
    """Whether a host made an address (with its prefix) of an advertised prefix."""
    is_leased = details.is_leased or details.is_temporary
    return is_leased and find_ip_version(address) == 6 and address.partition("/")[2] == _ADVERTISED_LENGTH


def is_advertised_route(route: ObservedRoute) -> bool:
    """Whether a route on the link is of an advertised prefix: it has a lifetime."""
    has_lifetime = any(name == "expires" for name, _ in route.attributes)
    return has_lifetime and route.on_link and not route.hops and find_ip_version(route.destination) == 6


def list_advertised_defaults(device: str, routes: Sequence[ObservedRoute]) -> list[ObservedRoute]:
    """The default routes by a device that router advertisements gave: they have a lifetime."""
    return [
        route
        for route in routes
        if route.destination == "default"
        and "expires" in dict(route.attributes)
        and any(hop.device == device for hop in route.hops)
    ]


def describe_prefix_removal(device: str, prefix: str, address: str = "") -> str:
    """The remedy for a prefix of the other side that is advertised on a device. The kernel keeps the route of the
    prefix when the address is removed."""
    commands = [
        f"sysctl -w {_get_setting_name(device, 'accept_ra')}=0",
        f"ip -6 route del {prefix} dev {device}",
        *([f"ip addr del {address} dev {device}"] if address else []),
    ]
    return (
        f"{'; '.join(commands)}; and stop the router that advertises {prefix} on this network (rdisc6 {device} names"
        " it)"
    )


def describe_mtu_remedy(
    device: str, network_mtu: int, settings: Mapping[str, str], file_settings: Sequence[FileSetting] = ()
) -> str:
    """The remedy for an MTU of IPv6 below that of the device. Where the host takes router advertisements and no file
    sets it, an advertisement is the usual cause, and sets it again after each change."""
    command = f"sysctl -w {_get_setting_name(device, 'mtu')}={network_mtu}"
    is_in_file = any((each.device, each.option) == (device, IPV6_MTU) for each in file_settings)
    if is_in_file or not _takes_advertised_mtu(device, settings):
        return command
    return (
        f"correct the MTU option of the router that advertises it, the usual cause (rdisc6 {device} names it), or"
        f" sysctl -w {_get_setting_name(device, 'accept_ra_mtu')}=0; then {command}"
    )


def _takes_advertised_mtu(device: str, settings: Mapping[str, str]) -> bool:
    """Whether the kernel uses the MTU of router advertisements on a device; a router needs accept_ra 2 for that."""
    accepting = settings.get(f"net.ipv6.conf.{device}.accept_ra", "1")
    is_router = settings.get(f"net.ipv6.conf.{device}.forwarding", "0") != "0"
    return accepting == "2" or (
        accepting != "0" and not is_router and settings.get(f"net.ipv6.conf.{device}.accept_ra_mtu", "1") != "0"
    )


def describe_advertising_routers(device: str, host_tables: HostTables) -> str:
    """The routers whose advertisements gave a device default routes, with the other addresses of their link address:
    the end of a remedy; "" where no such route is known."""
    routes = list_advertised_defaults(device, host_tables.routes or ())
    gateways = {hop.via for route in routes for hop in route.hops}
    if not gateways:
        return ""
    neighbors = [each for each in host_tables.all_neighbors if each.device == device and each.link_address]
    link_addresses = {each.link_address for each in neighbors if each.address in gateways}
    planned = sorted({each.address for each in neighbors if each.link_address in link_addresses} - gateways)
    names = ", ".join(sorted(gateways)) + (f" ({', '.join(planned)})" if planned else "")
    return f"; router advertisements come from {names}: stop them there, or leave the prefix out"


def _get_setting_name(device: str, setting: str) -> str:
    return f"net.ipv6.conf.{device.replace('.', '/')}.{setting}"
