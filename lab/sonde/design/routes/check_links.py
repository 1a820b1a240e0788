# SPDX-License-Identifier: Apache-2.0
"""Checks the interface, the addresses and the MTU of a host on its network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_interfaces import find_interface_faults
from sonde.design.routes.check_neighbors import find_gateway_faults
from sonde.design.routes.fabric import is_address_in_ranges
from sonde.design.routes.far_addresses import find_far_address_faults
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import LOOPBACK, HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import find_table_route
from sonde.design.routes.link_usability import (
    describe_link_remedy,
    find_holding_device,
    has_route_through_fabric,
    has_usable_link,
    is_bond_without_ports,
    is_device_up,
    iterate_on_link_networks,
    list_devices_of_host_class,
    list_own_devices,
)
from sonde.design.routes.moved_ports import MISSING_INTERFACE, describe_child_creation, find_renamed_port

# The largest MTU of IPoIB in datagram mode: an InfiniBand packet of 4096 B without the header of 4 B.
LARGEST_DATAGRAM_MTU = 4092
ADDRESS_OF_ANOTHER_HOST = "address of another host"
ANOTHER_ADDRESS = "another address"


def find_link_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the device, the addresses and the neighbors on the network of this side."""
    device, side = host_view.host_class.device, host_view.own_side
    has_routes = has_route_through_fabric(host_view, host_tables)
    routes = "" if has_routes else ", then apply the plan: its routes are gone too"
    if host_tables.links:
        yield CheckedItem("the state of the interface", device)
        yield from _check_interface_state(host_view, host_tables, routes)
    if host_tables.addresses is not None:
        yield CheckedItem("an address of the network", side.network)
        if not any(is_address_in_ranges(side.ranges, address.split("/")[0]) for address in host_tables.addresses):
            planned = f"; the system file says {host_view.addresses[0]}" if len(host_view.addresses) == 1 else ""
            if not _does_interface_explain_address(host_view, host_tables):
                yield RouteFault(
                    "not on the network", "addresses",
                    f"this host has no address on {side.network} ({', '.join(side.ranges)}){planned}",
                    f"ask another host, or give it its address{routes}",
                )  # fmt: skip
        else:
            yield from _check_addresses(host_view, host_tables)
            yield from _check_undescribed_interfaces(host_view, host_tables)
            yield from _check_own_network_route(host_view, host_tables)
            yield from _check_source_address(host_view, host_tables)
    yield from find_far_address_faults(host_view, host_tables)
    if not needs_connected_mode(device, side.mtu, host_tables):
        yield from find_mtu_faults({device: side.mtu}, host_tables.mtus)
    yield from find_interface_faults(host_view, host_tables)
    yield from find_ipoib_mode_faults(device, side.mtu, host_tables)
    if is_device_up(device, host_tables):
        yield from find_gateway_faults(host_view, host_tables)


def _check_interface_state(host_view: HostView, host_tables: HostTables, routes_remedy: str) -> Iterator[RouteFault]:
    device, side = host_view.host_class.device, host_view.own_side
    if device not in host_tables.links:
        holders = [f"{', '.join(others)} has {address}" for address, others in host_tables.address_devices.items()
                   if address in host_view.addresses]  # fmt: skip
        renamed = find_renamed_port(device, host_tables)
        if renamed and not holders:
            holders = [f"it has {renamed}, which is a name of the same port"]
        remedy = describe_child_creation(device, host_tables)
        if renamed:
            remedy = f"give {renamed} the name {device} again (a .link file with its link address)"
        yield RouteFault(
            MISSING_INTERFACE, device,
            f"this host has no {device}, which joins it to {side.network}"
            + (f" ({', '.join(holders)})" if holders else ""),
            f"{remedy or 'look at the driver and its name'}, or correct the"
            f" device in the system file{routes_remedy}",
            versions="first",
        )  # fmt: skip
    elif host_tables.links[device] == "down" and not is_bond_without_ports(device, host_tables):
        yield RouteFault(
            "interface down", device, f"{device} is down: nothing reaches {side.network}",
            f"{describe_link_remedy(device, host_tables)}{routes_remedy}",
        )  # fmt: skip


def _does_interface_explain_address(host_view: HostView, host_tables: HostTables) -> bool:
    """Whether the interface is missing, down with IPv6, or without IPv6: the kernel then removes its addresses."""
    device = host_view.host_class.device
    settings = host_tables.settings or {}
    if host_view.fabric.version == 6 and any(
        settings.get(f"net.ipv6.conf.{name}.disable_ipv6") == "1" for name in ("all", device)
    ):
        return True  # reported with the setting
    if not host_tables.links:
        return False
    return device not in host_tables.links or (host_tables.links[device] == "down" and host_view.fabric.version == 6)


def _check_own_network_route(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """The main table must send packets to the routers by the interface itself."""
    if host_tables.routes is None or not has_usable_link(host_view, host_tables):
        return
    side, devices = host_view.own_side, list_own_devices(host_view, host_tables)
    yield CheckedItem("the route to the own network", side.network)
    for gateway, router in host_view.routers_by_gateway.items():
        route = find_table_route(host_tables.routes, "main", ipaddress.ip_address(gateway))
        if route is None or route.kind != "unicast":
            fate = "have no route" if route is None else f"are discarded ({route.kind})"
        elif route.hops:
            fate = f"go to {', '.join(hop.via for hop in route.hops)} by the route to {route.destination}"
        elif route.device and route.device not in devices:
            yield RouteFault(
                "wrong device", route.origin,
                f"packets to {router.name} ({gateway}) leave by {route.device}; {side.network} is on"
                f" {host_view.host_class.device}",
                f"remove this route, or name dev {host_view.host_class.device}",
            )  # fmt: skip
            return
        else:
            continue
        is_single_router = route is not None and _covers_one_address(route.destination)
        if is_single_router and route is not None:
            yield RouteFault(
                "router by a detour" if route.hops else "traffic discarded", route.origin,
                f"packets to {router.name} ({gateway}) {fate}, although it is on the link of"
                f" {host_view.host_class.device}",
                "remove this route",
            )  # fmt: skip
            continue
        yield RouteFault(
            "own network missing", f"{', '.join(side.ranges)} in table main",
            f"packets to {router.name} ({gateway}) {fate}, although {host_view.host_class.device} is on"
            f" {side.network}: the route to the own network is missing or hidden",
            f"ip route add {side.ranges[0]} dev {host_view.host_class.device}, or remove the route that hides it",
        )  # fmt: skip
        return


def _check_undescribed_interfaces(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault]:
    """Further interfaces with an address of this side that the system file does not describe."""
    if find_holding_device(host_view, host_tables):
        return  # reported as a moved port
    planned = list_devices_of_host_class(host_view)
    masters = {host_tables.link_details[name].master for name in planned if name in host_tables.link_details}
    for address, devices in host_tables.address_devices.items():
        device = devices[0]
        if host_tables.list_devices_with_address(address, (*planned, *masters, LOOPBACK)):
            continue  # that further devices have it too is reported with the address
        if device not in host_tables.links:
            continue
        if host_view.host_class.device in host_tables.links and is_address_in_ranges(
            host_view.own_side.ranges, address
        ):
            yield RouteFault(
                "second interface on the network", device,
                f"{device} has {address} on {host_view.own_side.network} besides {host_view.host_class.device}: "
                "each answers ARP"
                " for both, and replies may leave by the other one",
                "remove the address, or describe the interface in the system file and set arp_ignore to 1",
            )  # fmt: skip


def _covers_one_address(destination_range: str) -> bool:
    return destination_range != "default" and ipaddress.ip_network(destination_range).num_addresses == 1


def _check_source_address(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """IPv4 sends from the first address of the interface that is on the network of the router."""
    devices = list_own_devices(host_view, host_tables)
    gateways = [ipaddress.ip_address(gateway) for gateway in host_view.routers_by_gateway]
    interfaces = [ipaddress.ip_interface(text) for text in host_tables.addresses or ()]
    own_addresses = [
        str(interface.ip) for interface in interfaces
        if host_tables.list_devices_with_address(str(interface.ip), devices)
        and any(gateway in interface.network for gateway in gateways)
    ]  # fmt: skip
    planned = [address for address in own_addresses if address in host_view.addresses]
    if host_view.fabric.version != 4 or not planned:
        return
    yield CheckedItem("the source address", planned[0])
    owners = {address for host_class in host_view.own_side.classes for address in host_class.addresses}
    is_reported = own_addresses[0] in owners or own_addresses[0] in host_view.routers_by_gateway
    is_stated = any(route.source == planned[0] and route.hops for route in host_tables.routes or ())
    if own_addresses[0] not in host_view.addresses and not (is_stated or is_reported):
        device = host_tables.list_devices_with_address(planned[0], devices)[0]
        yield RouteFault(
            "another source address", own_addresses[0],
            f"{own_addresses[0]} comes before {planned[0]} on {device}: packets"
            " through the routers are sent from it, which is not the address of this host in the system file",
            f"remove {own_addresses[0]} and add it again after {planned[0]}, or state src {planned[0]} in the routes",
        )  # fmt: skip


def _check_addresses(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault]:
    """Addresses that belong to a router, and a prefix that leaves routers out of reach."""
    addresses = [ipaddress.ip_interface(address) for address in host_tables.addresses or ()]
    routed = [str(address.ip) for address in addresses if str(address.ip) in host_view.routers_by_gateway]
    if routed:
        router = host_view.routers_by_gateway[routed[0]].name
        present = [str(address.ip) for address in addresses]
        absent = [
            address for address in host_view.addresses if len(host_view.addresses) == 1 and address not in present
        ]
        instead = f" and not its own, {absent[0]}" if absent else ""
        yield RouteFault(
            "address of a router", routed[0],
            f"this host has {routed[0]}, the address of {router}{instead}: hosts send their packets to one of both",
            f"replace it by {absent[0]}" if absent else "remove it here, or correct the system file",
        )  # fmt: skip
    yield from _check_addresses_of_hosts(host_view, [str(address.ip) for address in addresses])
    on_link = [address.network for address in addresses]
    on_link += iterate_on_link_networks(host_tables)
    unreachable = [
        gateway
        for gateway in host_view.routers_by_gateway
        if not any(ipaddress.ip_address(gateway) in network for network in on_link)
    ]
    own_interfaces = [
        address for address in addresses if is_address_in_ranges(host_view.own_side.ranges, str(address.ip))
    ]
    has_long_prefix = any(address.network.num_addresses > 1 for address in own_interfaces)  # reported with the address
    if unreachable and not has_long_prefix:
        yield RouteFault(
            "next hop out of reach", host_view.host_class.device,
            f"{', '.join(unreachable)} is on no network of this host ({', '.join(map(str, own_interfaces))})",
            f"give the address the prefix of {host_view.own_side.network} ({', '.join(host_view.own_side.ranges)})",
        )  # fmt: skip


def _check_addresses_of_hosts(host_view: HostView, host_addresses: Sequence[str]) -> Iterator[RouteFault]:
    """Addresses that the system file gives to another host, and the address of this host."""
    host_class = host_view.host_class
    owners = {address: host for each in (*host_view.own_side.classes, host_class)
              for address, host in zip(each.addresses, each.hosts, strict=True)}  # fmt: skip
    present = {address: owners[address] for address in host_addresses if address in owners}
    is_single = len(host_view.addresses) == 1
    own_host = owners[host_view.addresses[0]] if is_single else next(
        (host for address, host in present.items() if address in host_class.addresses), None)  # fmt: skip
    borrowed = [f"{address} of {host}" for address, host in present.items() if host != own_host]
    lacks_own = is_single and len(host_class.addresses) > 1 and host_view.addresses[0] not in host_addresses
    has_router_address = any(address in host_view.routers_by_gateway for address in host_addresses)
    if lacks_own and has_router_address and not borrowed:
        return  # reported with that address
    if lacks_own:
        yield RouteFault(
            ADDRESS_OF_ANOTHER_HOST if borrowed else ANOTHER_ADDRESS, host_class.device,
            f"this host has {', '.join(borrowed or host_addresses)}; its address in the system file is"
            f" {host_view.addresses[0]}",
            "two hosts with one address lose each other's packets: give it its own, or correct the system file",
            versions="joined",
        )  # fmt: skip
    elif borrowed:
        yield RouteFault(
            ADDRESS_OF_ANOTHER_HOST, ", ".join(text.partition(" ")[0] for text in borrowed),
            f"this host has {', '.join(borrowed)} besides the address of {own_host}",
            "two hosts with one address lose each other's packets: remove it here, or correct the system file",
            versions="joined",
        )  # fmt: skip


def find_mtu_faults(
    network_mtus: Mapping[str, int | None], mtu_by_device: Mapping[str, int]
) -> Iterator[RouteFault | CheckedItem]:
    """Devices whose MTU is not that of their network."""
    for device, network_mtu in network_mtus.items():
        if network_mtu is None or device not in mtu_by_device:
            continue
        yield CheckedItem("the MTU of the network", device)
        if mtu_by_device[device] != network_mtu:
            yield RouteFault(
                "MTU mismatch", device,
                f"{device} takes packets of {mtu_by_device[device]} B, the network {network_mtu} B",
                f"set mtu {network_mtu}",
            )  # fmt: skip


def needs_connected_mode(device_name: str, network_mtu: int | None, host_tables: HostTables) -> bool:
    """Whether an IPoIB device is in datagram mode, in which it cannot have the MTU of its network."""
    is_datagram = host_tables.transport_modes.get(device_name) == "datagram"
    return is_datagram and network_mtu is not None and network_mtu > LARGEST_DATAGRAM_MTU


def find_ipoib_mode_faults(
    device_name: str, network_mtu: int | None, host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """An IPoIB device in datagram mode on a network whose packets need connected mode."""
    if network_mtu is None or device_name not in host_tables.transport_modes:
        return
    yield CheckedItem("the mode of an IPoIB interface", device_name)
    if needs_connected_mode(device_name, network_mtu, host_tables):
        yield RouteFault(
            "datagram mode", device_name,
            f"{device_name} is in datagram mode, whose packets have at most {LARGEST_DATAGRAM_MTU} B; the network has"
            f" {network_mtu} B",
            f"echo connected > /sys/class/net/{device_name}/mode, then ip link set {device_name} mtu {network_mtu}",
        )  # fmt: skip
