# SPDX-License-Identifier: Apache-2.0
"""Checks a router: its addresses, its interfaces, its forwarding and its settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_adapters import find_forwarding_offload_faults
from sonde.design.routes.check_firewall import find_firewall_faults
from sonde.design.routes.check_interfaces import (
    find_address_faults,
    find_device_faults,
    find_faults_below,
    find_port_faults,
    find_wide_prefix_faults,
)
from sonde.design.routes.check_limits import find_proxy_faults, find_router_limits
from sonde.design.routes.check_links import find_ipoib_mode_faults, find_mtu_faults, needs_connected_mode
from sonde.design.routes.check_neighbors import find_neighbor_faults_of_router
from sonde.design.routes.check_policies import find_policy_faults_of_router
from sonde.design.routes.check_router_paths import find_forwarding_faults
from sonde.design.routes.check_routes import find_own_network_faults, is_own_network_route
from sonde.design.routes.check_settings import (
    audit_host_settings,
    check_ipv6_settings,
    check_reverse_path,
    check_setting_names,
    read_all_and_device_setting,
    read_number_setting,
)
from sonde.design.routes.fabric import Fabric, FabricRouter
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_drops import UnjudgedRule
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.link_usability import describe_link_remedy, is_device_up, list_bond_ports, list_devices_below
from sonde.design.routes.moved_ports import (
    describe_child_creation,
    describe_moved_ports_of_routers,
    find_moved_ports_of_routers,
    name_used_devices_of_routers,
)

NOT_SET = "not set"


def check_router_tables(
    fabrics: Sequence[Fabric], host_tables: HostTables, router_name: str = ""
) -> Iterator[RouteFault | CheckedItem | UnjudgedRule]:
    """Faults of a router: its forwarding, its settings, its addresses, its interfaces. Without `router_name`, the
    router is the one with most of the observed addresses. Rules of its firewall that no check evaluates are among the
    results."""
    owners = (router_name,) if router_name else _find_owners(fabrics, host_tables)
    if host_tables.addresses is not None and not (set(owners) & set(_count_addresses(fabrics, host_tables))):
        names = router_name or f"no router of {', '.join(fabric.name for fabric in fabrics)}"
        yield CheckedItem("the addresses of a router", names)
        others = ", ".join(_find_owners(fabrics, host_tables))
        yield RouteFault(
            "not a router", "addresses",
            f"{names} has {'none' if router_name else 'one'} of these" + (f"; {others} has some" if others else ""),
            f"check it as {others}" if others else "ask a router",
        )  # fmt: skip
        if router_name:
            return
    if router_name == "" and _is_undecided(fabrics, owners, host_tables):
        yield _describe_undecided(fabrics, owners, host_tables)
        owners = ()
    moved = find_moved_ports_of_routers(fabrics, owners, host_tables)
    yield from describe_moved_ports_of_routers(owners, moved, host_tables)
    for fabric in name_used_devices_of_routers(fabrics, moved):
        tables = host_tables.select_version(fabric.version)
        routers = tuple(router for router in fabric.routers if router.name in owners)
        if tables.addresses is not None and owners:
            yield from _check_addresses(fabric, routers, tables)
        if not routers:
            if owners:
                continue
            routers = fabric.routers
        yield from _check_interfaces(fabric, routers, tables)
        yield from find_firewall_faults(fabric, routers, host_tables)
        if host_tables.settings is not None:
            yield from _check_forwarding(fabric, routers, host_tables.settings)
            yield from find_router_limits(fabric, host_tables.settings)
    if host_tables.settings is not None:
        yield from check_setting_names(host_tables)
        yield from audit_host_settings(host_tables.settings, host_tables.options)


def _count_addresses(fabrics: Sequence[Fabric], host_tables: HostTables) -> dict[str, int]:
    """How many addresses of each router the tables have; without routers that have none."""
    present, counts = host_tables.own_addresses, dict[str, int]()
    for fabric in fabrics:
        for router in fabric.routers:
            if number := len(present & {router.near_address, router.far_address}):
                counts[router.name] = counts.get(router.name, 0) + number
    return counts


def _find_owners(fabrics: Sequence[Fabric], host_tables: HostTables) -> tuple[str, ...]:
    """The routers with the most addresses; all where no address is of a router."""
    counts = _count_addresses(fabrics, host_tables)
    most = max(counts.values(), default=0)
    return tuple(name for name, count in counts.items() if count == most)


def _is_undecided(fabrics: Sequence[Fabric], owner_names: Sequence[str], host_tables: HostTables) -> bool:
    """Whether the addresses are of several routers, all of none."""
    present = host_tables.own_addresses
    return len(owner_names) > 1 and not any(
        {router.near_address, router.far_address} <= present
        for fabric in fabrics for router in fabric.routers if router.name in owner_names
    )  # fmt: skip


def _describe_undecided(fabrics: Sequence[Fabric], owner_names: Sequence[str], host_tables: HostTables) -> RouteFault:
    present = host_tables.own_addresses
    texts = [
        f"{address} of {router.name}"
        for fabric in fabrics for router in fabric.routers
        for address in (router.near_address, router.far_address) if address in present and router.name in owner_names
    ]  # fmt: skip
    return RouteFault(
        "addresses of several routers", ", ".join(owner_names),
        f"this machine has {' and '.join(texts)}, and all addresses of no router: two machines with one address lose"
        " each other's packets",
        f"give it the addresses of one router; name it to hear which are missing: --as {owner_names[0]}",
    )  # fmt: skip


def _check_addresses(
    fabric: Fabric, own_routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    present = host_tables.own_addresses
    complete = [router for router in own_routers if {router.near_address, router.far_address} <= present]
    yield from _check_prefixes(fabric, complete, host_tables)
    borrowed = {
        address: router.name
        for router in fabric.routers if router not in own_routers
        for address in (router.near_address, router.far_address) if address in present
    }  # fmt: skip
    names = ", ".join(router.name for router in own_routers) or "this router"
    yield from _find_addresses_of_hosts(fabric, names, present)
    replaced = dict[str, str]()
    for address, owner in borrowed.items():
        is_near = address in {router.near_address for router in fabric.routers}
        planned = [router.near_address if is_near else router.far_address for router in own_routers]
        absent = [own_address for own_address in planned if own_address not in present]
        replaced |= dict.fromkeys(absent, address)
        instead = f" and not its own, {', '.join(absent)}" if absent else ""
        yield RouteFault(
            "address of a router", address,
            f"{names} has {address} of {owner}{instead}: hosts send the packets of {owner} to one of both",
            f"replace it by {', '.join(absent)}" if absent else "remove it here, or correct the system file",
        )  # fmt: skip
    for router in own_routers:
        yield CheckedItem("the addresses of a router", router.name)
        devices = {router.near_address: router.near_device, router.far_address: router.far_device}
        # without a device the system file states, or with one that is up: the kernel removes addresses with the device
        missing = sorted(address for address in {*devices} - present - {*replaced}
                         if (is_device_up(devices[address], host_tables) or devices[address] == "")
                         and not _is_ipv6_off(fabric, devices[address], host_tables))  # fmt: skip
        if missing:
            held = ", ".join(sorted(present & {*devices}))
            yield RouteFault(
                "address missing", router.name,
                f"{router.name} has {held} but not {', '.join(missing)}" if held
                else f"{router.name} has no address of both networks; the system file says {', '.join(missing)}",
                "give it its address on both networks",
            )  # fmt: skip


def _is_ipv6_off(fabric: Fabric, device: str, host_tables: HostTables) -> bool:
    """Whether a setting, which is reported itself, has removed the addresses of a fabric from a device."""
    settings = host_tables.settings or {}
    names = [f"net.ipv6.conf.{name}.disable_ipv6" for name in ("all", device)]
    return fabric.version == 6 and any(settings.get(name) == "1" for name in names)


def _find_addresses_of_hosts(fabric: Fabric, network_names: str, present_addresses: set[str]) -> Iterator[RouteFault]:
    """Addresses of hosts of either network that a router has."""
    owners = {
        address: host
        for side in (fabric.near, fabric.far)
        for host_class in side.classes
        for address, host in zip(host_class.addresses, host_class.hosts, strict=True)
    }
    for address in sorted(present_addresses & owners.keys()):
        yield RouteFault(
            "address of another host", address,
            f"{network_names} has {address} of {owners[address]}: two machines with one address lose each other's"
            " packets",
            "remove it here, or correct the system file",
        )  # fmt: skip


def _check_prefixes(
    fabric: Fabric, routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Prefixes of a router's addresses that leave hosts of a network out of reach."""
    interfaces = {address.split("/")[0]: ipaddress.ip_interface(address) for address in host_tables.addresses or ()}
    for router in routers:
        for address, side in ((router.near_address, fabric.near), (router.far_address, fabric.far)):
            networks = [ipaddress.ip_network(text, strict=False) for text in side.ranges]
            network = next((network for network in networks if ipaddress.ip_address(address) in network), None)
            yield CheckedItem("the prefix of an address", address)
            yield from find_wide_prefix_faults(interfaces[address], side)
            if network is not None and interfaces[address].network.prefixlen > network.prefixlen:
                yield RouteFault(
                    "hosts out of reach", str(interfaces[address]),
                    f"{router.name} has {interfaces[address]}, but {side.network} is {network}: other hosts of it are"
                    " not on its link",
                    f"give it the prefix /{network.prefixlen}",
                )  # fmt: skip


def _check_interfaces(
    fabric: Fabric, routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    devices: dict[str, int | None] = {}
    for router in routers:
        devices |= {router.near_device: fabric.near.mtu, router.far_device: fabric.far.mtu}
    mtus = {
        device: mtu for device, mtu in devices.items() if device and not needs_connected_mode(device, mtu, host_tables)
    }
    yield from find_mtu_faults(mtus, host_tables.mtus)
    for device, network_mtu in devices.items():
        yield from find_ipoib_mode_faults(device, network_mtu, host_tables)
    for device in devices:
        if not host_tables.links or not device:
            continue
        yield CheckedItem("the state of the interface", device)
        if host_tables.links.get(device, "missing") != "up":
            state = host_tables.links.get(device, "missing")
            is_missing = device not in host_tables.links
            name_remedy = describe_child_creation(device, host_tables) or "look at the driver and its name"
            yield RouteFault(
                f"interface {state}", device, f"{device} is {state}: this router carries nothing",
                name_remedy if is_missing else describe_link_remedy(device, host_tables),
            )  # fmt: skip
    for device in devices:
        yield from find_device_faults(device, host_tables)
        yield from find_port_faults(device, host_tables)
        yield from find_faults_below(device, host_tables)
        below = (device, *list_devices_below(device, host_tables))
        for carrier in dict.fromkeys(
            (*below, *(port for each in below for port in list_bond_ports(each, host_tables)))
        ):
            yield from find_forwarding_offload_faults(carrier, host_tables)
    for router in routers:
        for address in (router.near_address, router.far_address):
            yield from find_address_faults(address, host_tables)
    for route in host_tables.routes or ():
        for side in (fabric.near, fabric.far):
            if is_own_network_route(route, side):
                yield from find_own_network_faults(route, side)
    yield from find_forwarding_faults(fabric, routers, host_tables)
    yield from find_policy_faults_of_router(fabric, host_tables)
    if len(routers) == 1:
        yield from find_neighbor_faults_of_router(fabric, routers[0], host_tables)


def _check_forwarding(
    fabric: Fabric, routers: Sequence[FabricRouter], settings: Mapping[str, str]
) -> Iterator[RouteFault | CheckedItem]:
    name = "net.ipv4.ip_forward" if fabric.version == 4 else "net.ipv6.conf.all.forwarding"
    if name in settings:
        yield CheckedItem("a setting", name)
    if settings.get(name, "0") != "1":
        yield RouteFault(
            "forwarding off",
            f"{name} = {settings.get(name, NOT_SET)}",
            f"no IPv{fabric.version} packet passes this router",
            "set it to 1",
        )
    devices = sorted({device for router in routers for device in (router.near_device, router.far_device) if device})
    if fabric.version == 6:
        yield from check_ipv6_settings(settings, devices)
        return
    if settings.get(name) == "1" and settings.get("net.ipv4.conf.all.forwarding") == "0":
        yield RouteFault(
            "forwarding off", "net.ipv4.conf.all.forwarding = 0", "no IPv4 packet passes this router", "set it to 1"
        )
    yield from find_proxy_faults(settings, tuple(devices))
    for device in devices:
        if read_number_setting(settings, f"net.ipv4.conf.{device}.forwarding") == 0 and settings.get(name) == "1":
            yield RouteFault(
                "forwarding off", f"net.ipv4.conf.{device}.forwarding = 0",
                f"packets that arrive on {device} are not forwarded", "set it to 1",
            )  # fmt: skip
        yield from check_reverse_path(settings, device, has_choice=True)
        all_redirects, own_redirects = read_all_and_device_setting(settings, device, "send_redirects")
        redirect_values = [value for value in (all_redirects, own_redirects) if value is not None]
        if redirect_values:
            yield CheckedItem("a setting", f"net.ipv4.conf.{device}.send_redirects")
        if any(redirect_values):
            yield RouteFault(
                "redirects sent", f"net.ipv4.conf.{device if own_redirects else 'all'}.send_redirects = 1",
                "a host that sends to this router may be told to go past it", "set it to 0, for all and for the device",
            )  # fmt: skip
        ignored = [value for value in read_all_and_device_setting(settings, device, "arp_ignore") if value is not None]
        if ignored:
            yield CheckedItem("a setting", f"net.ipv4.conf.{device}.arp_ignore")
        if ignored and max(ignored) >= 3:
            yield RouteFault(
                "ARP not answered", f"net.ipv4.conf.{device}.arp_ignore = {max(ignored)}",
                "this router does not answer ARP requests: hosts cannot send to it", "set it to 0 or 1",
            )  # fmt: skip
