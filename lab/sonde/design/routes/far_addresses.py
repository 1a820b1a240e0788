# SPDX-License-Identifier: Apache-2.0
"""Addresses of the other side that a host has, as on a management port or a bridge of containers: one fault, with what
becomes of packets to the other side."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from sonde.design.routes.fabric import is_address_in_ranges
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedRoute
from sonde.design.routes.host_view import HostView
from sonde.design.routes.interface_details import AddressDetails
from sonde.design.routes.kernel_lookup import find_kernel_route, list_probe_addresses
from sonde.design.routes.router_advertisements import describe_prefix_removal, is_advertised_address

# The programs that make bridges, by the beginnings of their names, and where their ranges are set.
_BRIDGES = {
    "docker": "Docker: bip in daemon.json",
    "br-": "Docker: docker network create --subnet, default-address-pools in daemon.json",
    "podman": "Podman: podman network create --subnet",
    "cni": "CNI: subnet in /etc/cni/net.d",
    "virbr": "libvirt: virsh net-edit",
    "lxdbr": "LXD: lxc network set",
}


def list_far_addresses(host_view: HostView, host_tables: HostTables) -> tuple[str, ...]:
    """The addresses of the other side that this host has, with their prefixes."""
    return tuple(
        address
        for address in host_tables.addresses or ()
        if is_address_in_ranges(host_view.other_side.ranges, address.partition("/")[0])
    )


def is_route_of_far_address(host_view: HostView, route: ObservedRoute, host_tables: HostTables) -> bool:
    """Whether the kernel made a route for an address of the other side that this host has: it is reported with the
    address."""
    return route.on_link and any(
        route.device in host_tables.address_devices.get(address.partition("/")[0], ())
        and str(ipaddress.ip_interface(address).network) == route.destination
        for address in list_far_addresses(host_view, host_tables)
    )


def find_far_address_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault]:
    """One fault for each address of the other side."""
    network = host_view.other_side.network
    owners = {
        address: host
        for host_class in host_view.other_side.classes
        for address, host in zip(host_class.addresses, host_class.hosts, strict=True)
    } | {address: router.name for address, router in host_view.routers_by_far_address.items()}
    for text in list_far_addresses(host_view, host_tables):
        address = text.partition("/")[0]
        device = next(iter(host_tables.address_devices.get(address, ())), "")
        owner = f", that of {owners[address]}" if address in owners else ""
        fate = f"packets to {address} do not leave this host"
        if _is_network_on_link(host_view, device, host_tables):
            fate += f", and those to {ipaddress.ip_interface(text).network} stay on the link of {device}"
        range_setting = next((hint for beginning, hint in _BRIDGES.items() if device.startswith(beginning)), "")
        is_advertised = bool(device) and is_advertised_address(
            text, host_tables.address_details.get(address, AddressDetails())
        )
        cause = f" (a router advertises its prefix on {device})" if is_advertised else ""
        removal = f"ip addr del {text} dev {device}" if device else f"remove {address}"
        yield RouteFault(
            "address of the other side", f"{device}: {text}" if device else text,
            f"{device or 'this host'} has {text}, an address of {network}{owner}, which is behind the routers{cause}:"
            f" {fate}",
            describe_prefix_removal(device, str(ipaddress.ip_interface(text).network), text) if is_advertised
            else f"give the network of {device} another range ({range_setting})" if range_setting
            else f"{removal} (its routes go with it)",
        )  # fmt: skip


def _is_network_on_link(host_view: HostView, device: str, host_tables: HostTables) -> bool:
    """Whether packets to the other side leave by the device of an address, without a router."""
    lookups = (
        find_kernel_route(host_tables, address)
        for far_range in (host_view.other_side.ranges if host_tables.routes is not None else ())
        for address in list_probe_addresses(host_tables, far_range)
    )
    return any(
        lookup is not None and lookup.route is not None and lookup.route.on_link and lookup.route.device == device
        and lookup.route.kind == "unicast"
        for lookup in lookups
    )  # fmt: skip
