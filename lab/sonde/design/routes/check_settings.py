# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the settings of a host: kernel options, sysctls; and everything that a router needs."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_interfaces import (
    find_address_faults,
    find_device_faults,
    find_faults_below,
    find_port_faults,
    find_wide_prefix_faults,
)
from sonde.design.routes.check_limits import find_connection_limits, find_proxy_faults, find_router_limits
from sonde.design.routes.check_links import LARGEST_DATAGRAM_MTU, find_mtu_faults
from sonde.design.routes.check_router_paths import find_forwarding_faults
from sonde.design.routes.check_routes import find_own_network_faults, is_own_network_route
from sonde.design.routes.fabric import Fabric, FabricRouter
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import find_kernel_route
from sonde.design.routes.kernel_settings import (
    add_kernel_release,
    audit_settings,
    list_audited_settings,
    list_missing_kernel_options,
)
from sonde.design.routes.link_usability import is_device_up

_STRICT = 1
# fib_multipath_hash_policy: by addresses, and by addresses inside of tunnels.
_ADDRESS_POLICIES = ("0", "2")


def find_setting_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the settings of a host of one class."""
    if host_tables.options is not None:
        yield CheckedItem("kernel options", "kernel")
        mtu = host_view.own_side.mtu
        is_large = host_view.host_class.device.startswith("ib") and mtu is not None and mtu > LARGEST_DATAGRAM_MTU
        for name, feature in list_missing_kernel_options(host_tables.options, host_view.fabric.version, is_large):
            yield RouteFault(
                "kernel option missing", name, f"the kernel lacks it: {feature} will not work", f"build with {name}=y"
            )
    if host_tables.settings is None:
        return
    yield from _check_setting_names(host_tables)
    yield from _audit_host(add_kernel_release(host_tables.settings, host_view.host_class.operating_system))
    fabric, device = host_view.fabric, host_view.host_class.device
    policy_name = f"net.{'ipv4' if fabric.version == 4 else 'ipv6'}.fib_multipath_hash_policy"
    policy = host_tables.settings.get(policy_name)
    if policy is not None and len(fabric.routers) > 1:
        yield CheckedItem("a setting", policy_name)
        if policy in _ADDRESS_POLICIES:
            yield RouteFault(
                "hash by address only", f"{policy_name} = {policy}",
                "all connections between two hosts take one router", "set it to 1: ports count too",
            )  # fmt: skip
    yield from _check_dead_neighbors(host_tables.settings, fabric)
    if fabric.version == 4:
        yield from _check_reverse_path(host_tables.settings, device, len(fabric.routers) > 1)
        yield from _check_arp_settings(host_view, host_tables)
        yield from find_proxy_faults(host_tables.settings, (device,))
    else:
        has_mtu_fault = host_tables.mtus.get(device, host_view.own_side.mtu) != host_view.own_side.mtu
        yield from _check_ipv6(host_tables.settings, (device,), None if has_mtu_fault else host_view.own_side.mtu)
    yield from find_connection_limits(host_view, host_tables.settings)
    yield from _check_accepted_redirects(host_tables.settings, device, fabric.version)


def _check_ipv6(
    settings: Mapping[str, str], devices: Sequence[str], network_mtu: int | None = None
) -> Iterator[RouteFault | CheckedItem]:
    for device in ("all", *devices):
        name = f"net.ipv6.conf.{device}.disable_ipv6"
        if name in settings:
            yield CheckedItem("a setting", name)
        if settings.get(name) == "1":
            yield RouteFault("IPv6 is off", f"{name} = 1", "the kernel uses no IPv6 there", "set it to 0")
        mtu = _read_number_setting(settings, f"net.ipv6.conf.{device}.mtu")
        if mtu is not None and network_mtu is not None and mtu < network_mtu and device != "all":
            yield RouteFault(
                "MTU mismatch", f"net.ipv6.conf.{device}.mtu = {mtu}",
                f"IPv6 sends packets of {mtu} B by {device}; the network takes {network_mtu} B",
                f"set mtu {network_mtu}",
            )  # fmt: skip


def _check_dead_neighbors(settings: Mapping[str, str], fabric: Fabric) -> Iterator[RouteFault | CheckedItem]:
    name = "net.ipv4.fib_multipath_use_neigh"
    value = settings.get(name)
    if value is None or fabric.version != 4 or len(fabric.routers) < 2:
        return
    yield CheckedItem("a setting", name)
    if value == "0":
        yield RouteFault(
            "dead routers are used", f"{name} = 0",
            "flows are also given to a router that the kernel knows to be dead", "set it to 1",
        )  # fmt: skip


def _check_setting_names(host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    for written_name in host_tables.unapplied_settings:
        *levels, device, number, setting = written_name.split(".")
        yield CheckedItem("a setting", written_name)
        yield RouteFault(
            "setting not applied", written_name,
            f"sysctl takes the dot of {device}.{number} for a level, so there is no such setting",
            f"write {'.'.join([*levels, f'{device}/{number}', setting])}",
        )  # fmt: skip


def _audit_host(settings: Mapping[str, str]) -> Iterator[RouteFault | CheckedItem]:
    for name in list_audited_settings(settings):
        yield CheckedItem("a setting", name)
    for finding in audit_settings(settings):
        yield RouteFault(
            f"setting {finding.state}", f"{finding.name} = {finding.value}", finding.reason, finding.remedy
        )


def _read_number_setting(settings: Mapping[str, str], setting_name: str) -> int | None:
    value = settings.get(setting_name, "")
    return int(value) if value.isdigit() else None


def _read_interface_setting(
    settings: Mapping[str, str], device: str, setting_name: str
) -> tuple[int | None, int | None]:
    """The value of net.ipv4.conf for all devices and for one."""
    return (
        _read_number_setting(settings, f"net.ipv4.conf.all.{setting_name}"),
        _read_number_setting(settings, f"net.ipv4.conf.{device}.{setting_name}"),
    )


def _check_reverse_path(
    settings: Mapping[str, str], device: str, has_choice: bool
) -> Iterator[RouteFault | CheckedItem]:
    """The kernel uses the larger value of `all` and the device; 1 is strict, 2 is loose."""
    values = [value for value in _read_interface_setting(settings, device, "rp_filter") if value is not None]
    if not values:
        return
    yield CheckedItem("a setting", f"net.ipv4.conf.{device}.rp_filter")
    if max(values) == _STRICT and has_choice:
        setting = settings.get(f"net.ipv4.conf.{device}.rp_filter")
        name = device if setting == str(_STRICT) else "all"
        yield RouteFault(
            "strict reverse path", f"net.ipv4.conf.{name}.rp_filter = 1",
            "a packet is dropped when its reply would leave by another interface",
            "set it to 2 (loose) where a host has several networks",
        )  # fmt: skip


def _check_arp_settings(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    settings, device = host_tables.settings or {}, host_view.host_class.device
    ignored = [value for value in _read_interface_setting(settings, device, "arp_ignore") if value is not None]
    filtered = [value for value in _read_interface_setting(settings, device, "arp_filter") if value is not None]
    if ignored:
        yield CheckedItem("a setting", f"net.ipv4.conf.{device}.arp_ignore")
        if max(ignored) >= 3:
            answer = "never" if max(ignored) >= 8 else "not for addresses of this scope"
            yield RouteFault(
                "ARP not answered", f"net.ipv4.conf.{device}.arp_ignore = {max(ignored)}",
                f"this host answers ARP requests {answer}: routers cannot send to it", "set it to 0 or 1",
            )  # fmt: skip
    if not filtered:
        return
    yield CheckedItem("a setting", f"net.ipv4.conf.{device}.arp_filter")
    if max(filtered) and host_tables.routes is not None:
        for gateway in host_view.routers_by_gateway:
            lookup = find_kernel_route(host_tables, ipaddress.ip_address(gateway))
            if lookup is not None and lookup.route is not None and lookup.route.device not in ("", device):
                yield RouteFault(
                    "ARP not answered", f"net.ipv4.conf.{device}.arp_filter = 1",
                    f"the route to {gateway} leaves by {lookup.route.device}, so requests of that router on {device}"
                    " get no answer",
                    f"set it to 0, or route {', '.join(host_view.own_side.ranges)} by {device}",
                )  # fmt: skip
                return
    same_network = [other for other in host_view.own_side.classes if other.name == host_view.host_class.name]
    if len(same_network) > 1 and not max(filtered) and not max(ignored or [0]):
        devices = ", ".join(other.device for other in same_network)
        yield RouteFault(
            "ARP of several interfaces", f"net.ipv4.conf.{device}.arp_filter = 0",
            f"{devices} are on {host_view.own_side.network}: each answers for the addresses of all, so one of them "
            "may carry"
            " everything",
            "set arp_ignore to 1 and arp_announce to 2",
        )  # fmt: skip


def _check_accepted_redirects(
    settings: Mapping[str, str], device: str, version: int
) -> Iterator[RouteFault | CheckedItem]:
    """Hosts that do not forward accept a redirect when `all` or the device allows it; IPv6 has the device only."""
    if version == 6:
        values = [_read_number_setting(settings, f"net.ipv6.conf.{device}.accept_redirects")]
    else:
        values = list(_read_interface_setting(settings, device, "accept_redirects"))
    numbers: list[int] = [value for value in values if value is not None]
    if not numbers:
        return
    name = f"net.{'ipv4' if version == 4 else 'ipv6'}.conf.{device}.accept_redirects"
    yield CheckedItem("a setting", name)
    if max(numbers):
        yield RouteFault(
            "redirects accepted", f"{name} = 1",
            "one redirect message replaces the multipath route to a host by one router",
            "set it to 0, for all and for the device",
        )  # fmt: skip


def check_router_tables(fabrics: Sequence[Fabric], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of a router: its forwarding, its settings, its addresses, its interfaces."""
    matching = _find_possible_routers(fabrics, host_tables)
    if host_tables.addresses is not None and not any(
        True for fabric in fabrics for _ in _find_routers_of_tables(fabric, host_tables)
    ):
        names = ", ".join(fabric.name for fabric in fabrics)
        yield CheckedItem("the addresses of a router", names)
        yield RouteFault("not a router", "addresses", f"no router of {names} has one of these", "ask a router")
    for fabric, routers in matching:
        tables = host_tables.select_version(fabric.version)
        if tables.addresses is not None:
            yield from _check_addresses(fabric, routers, tables)
        yield from _check_interfaces(fabric, routers, tables)
        if host_tables.settings is not None:
            yield from _check_forwarding(fabric, routers, host_tables.settings)
            yield from find_router_limits(fabric, host_tables.settings)
    if host_tables.settings is not None:
        yield from _check_setting_names(host_tables)
        yield from _audit_host(host_tables.settings)


def _find_routers_of_tables(fabric: Fabric, host_tables: HostTables) -> Iterator[FabricRouter]:
    addresses = {address.split("/")[0] for address in host_tables.addresses or ()}
    for router in fabric.routers:
        if addresses & {router.near_address, router.far_address}:
            yield router


def _find_possible_routers(
    fabrics: Sequence[Fabric], host_tables: HostTables
) -> list[tuple[Fabric, tuple[FabricRouter, ...]]]:
    """The routers that these tables may be of: by their addresses, of any IP version, else all."""
    by_address = [list(_find_routers_of_tables(fabric, host_tables)) for fabric in fabrics]
    names = {router.name for routers in by_address for router in routers}
    by_name = [(fabric, tuple(router for router in fabric.routers if router.name in names)) for fabric in fabrics]
    known_fabrics = [(fabric, routers) for fabric, routers in by_name if routers]
    return known_fabrics or [(fabric, fabric.routers) for fabric in fabrics]


def _check_addresses(
    fabric: Fabric, own_routers: Sequence[FabricRouter], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    own_addresses = {address.split("/")[0] for address in host_tables.addresses or ()}
    if len(own_routers) == len(fabric.routers) and not list(_find_routers_of_tables(fabric, host_tables)):
        return  # the tables are of no known router
    complete = [router for router in own_routers if {router.near_address, router.far_address} <= own_addresses]
    yield from _check_prefixes(fabric, complete, host_tables)
    for router in own_routers:
        planned = {router.near_address, router.far_address}
        yield CheckedItem("the addresses of a router", router.name)
        if complete and router not in complete and own_addresses & planned:
            doubled = ", ".join(sorted(own_addresses & planned))
            yield RouteFault(
                "address of a router", doubled,
                f"{complete[0].name} has {doubled} of {router.name}: hosts send its packets to one of both",
                "remove it here, or correct the system file",
            )  # fmt: skip
            continue
        devices = {router.near_address: router.near_device, router.far_address: router.far_device}
        # without a device the system file states, or with one that is up: the kernel removes addresses with the device
        missing = sorted(address for address in planned - own_addresses if is_device_up(devices[address], host_tables)
                         or devices[address] == "")  # fmt: skip
        if missing and not (complete and router not in complete):
            present = ", ".join(sorted(own_addresses & planned))
            yield RouteFault(
                "address missing", router.name,
                f"{router.name} has {present} but not {', '.join(missing)}" if present
                else f"{router.name} has no address of both networks; the system file says {', '.join(missing)}",
                "give it its address on both networks",
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
    yield from find_mtu_faults({device: mtu for device, mtu in devices.items() if device}, host_tables.mtus)
    for device in devices:
        if not host_tables.links or not device:
            continue
        yield CheckedItem("the state of the interface", device)
        if host_tables.links.get(device, "missing") != "up":
            state = host_tables.links.get(device, "missing")
            yield RouteFault(
                f"interface {state}", device, f"{device} is {state}: this router carries nothing",
                f"ip link set {device} up, or look at the cable",
            )  # fmt: skip
    for device in devices:
        yield from find_device_faults(device, host_tables)
        yield from find_port_faults(device, host_tables)
        yield from find_faults_below(device, host_tables)
    for router in routers:
        for address in (router.near_address, router.far_address):
            yield from find_address_faults(address, host_tables)
    for route in host_tables.routes or ():
        for side in (fabric.near, fabric.far):
            if is_own_network_route(route, side):
                yield from find_own_network_faults(route, side)
    yield from find_forwarding_faults(fabric, routers, host_tables)


def _check_forwarding(
    fabric: Fabric, routers: Sequence[FabricRouter], settings: Mapping[str, str]
) -> Iterator[RouteFault | CheckedItem]:
    name = "net.ipv4.ip_forward" if fabric.version == 4 else "net.ipv6.conf.all.forwarding"
    yield CheckedItem("a setting", name)
    if settings.get(name, "0") != "1":
        yield RouteFault(
            "forwarding off", f"{name} = {settings.get(name, 'not set')}", "nothing passes this router", "set it to 1"
        )
    if fabric.version == 6:
        devices = sorted({device for router in routers for device in (router.near_device, router.far_device) if device})
        yield from _check_ipv6(settings, devices)
        return
    if settings.get(name) == "1" and settings.get("net.ipv4.conf.all.forwarding") == "0":
        yield RouteFault(
            "forwarding off", "net.ipv4.conf.all.forwarding = 0", "nothing passes this router", "set it to 1"
        )
    yield from find_proxy_faults(settings, tuple(
        sorted({device for router in routers for device in (router.near_device, router.far_device) if device})
    ))  # fmt: skip
    devices = sorted({device for router in routers for device in (router.near_device, router.far_device) if device})
    for device in devices:
        if _read_number_setting(settings, f"net.ipv4.conf.{device}.forwarding") == 0 and settings.get(name) == "1":
            yield RouteFault(
                "forwarding off", f"net.ipv4.conf.{device}.forwarding = 0",
                f"packets that arrive on {device} are not forwarded", "set it to 1",
            )  # fmt: skip
        yield from _check_reverse_path(settings, device, has_choice=True)
        all_redirects, own_redirects = _read_interface_setting(settings, device, "send_redirects")
        redirect_values = [value for value in (all_redirects, own_redirects) if value is not None]
        if redirect_values:
            yield CheckedItem("a setting", f"net.ipv4.conf.{device}.send_redirects")
        if any(redirect_values):
            yield RouteFault(
                "redirects sent", f"net.ipv4.conf.{device if own_redirects else 'all'}.send_redirects = 1",
                "a host that sends to this router may be told to go past it", "set it to 0, for all and for the device",
            )  # fmt: skip
        ignored = [value for value in _read_interface_setting(settings, device, "arp_ignore") if value is not None]
        if ignored and max(ignored) >= 3:
            yield RouteFault(
                "ARP not answered", f"net.ipv4.conf.{device}.arp_ignore = {max(ignored)}",
                "this router does not answer ARP requests: hosts cannot send to it", "set it to 0 or 1",
            )  # fmt: skip
