# SPDX-License-Identifier: Apache-2.0
"""A fabric: the hosts of two networks and the routers between them, from which routes are planned."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sonde.design.grammar import check_names
from sonde.design.routes.router_numbers import RouterPolicyNumbers, assign_router_numbers, is_ip_router
from sonde.design.routes.service_connections import RoutedService, list_routed_services
from sonde.model.addresses import parse_network
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.addressing import InterfaceAddress
from sonde.model.system.network import Network, Router, Server
from sonde.model.tables.quantity import ReadWriteRates

IpVersion = Literal[4, 6]


@dataclass(frozen=True)
class FabricRouter:
    """One router between the two networks: its address on each, and how much of the traffic it should take.

    `rate` is in bytes per second through the router in one direction, None when it is not described. Routers of
    priority 0 are used first. `table`, `mark` and `preference` are the numbers of its routing table, its firewall mark
    and its rule; no other router of the system has them.
    """

    name: str
    near_address: str
    far_address: str
    near_device: str
    far_device: str
    weight: int
    priority: int
    rate: float | None
    table: int = 1
    mark: int = 1
    preference: int = 1000


@dataclass(frozen=True)
class HostClass:
    """Hosts of one kind that are connected to one of the two networks by one device: they get the same routes."""

    name: str
    device: str
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]  # one for each host, in order
    rate: float | None  # bytes per second of the interface of one host; None: not described
    settings: Mapping[str, str] = field(default_factory=dict)  # sysctls that the system file asks for
    options: Mapping[str, str] = field(default_factory=dict)  # kernel options of the hosts by the system file: y or n
    operating_system: str = ""


@dataclass(frozen=True)
class FabricSide:
    """One of the two networks: its address ranges, its hosts, its MTU in bytes."""

    network: str
    ranges: tuple[str, ...]
    classes: tuple[HostClass, ...]
    mtu: int | None

    def find_host_class(self, class_or_host: str) -> HostClass | None:
        """The class of that name, or the class of the host of that name; None when neither is on this side."""
        return next(
            (
                host_class
                for host_class in self.classes
                if class_or_host == host_class.name or class_or_host in host_class.hosts
            ),
            None,
        )


@dataclass(frozen=True)
class Fabric:
    """Two networks of one IP version and the routers between them. The clients are on the `near` side."""

    name: str
    version: IpVersion
    near: FabricSide
    far: FabricSide
    routers: tuple[FabricRouter, ...]
    services: tuple[RoutedService, ...] = ()  # of the file systems in the system file, between both networks

    @property
    def active_routers(self) -> tuple[FabricRouter, ...]:
        """The routers that carry traffic while all of them work: those of the lowest priority number."""
        lowest_priority = min(router.priority for router in self.routers)
        return tuple(router for router in self.routers if router.priority == lowest_priority)


def find_fabrics(system: System) -> list[Fabric]:
    """Every pair of networks with IP routers between them, by IP version.

    Raises UserError when the system has no such routers, or when a router or host lacks what a route needs.
    """
    check_names(system)
    pairs = dict.fromkeys(
        _find_router_networks(system, router)
        for router in system.list_part_ids("routers")
        if is_ip_router(system, router)
    )
    numbers = assign_router_numbers(system)
    all_fabrics = [fabric for pair in pairs for fabric in _make_fabrics(system, *pair, numbers)]
    if not all_fabrics:
        raise UserError(
            f"{system.id} has no router that forwards IP between two networks with hosts on both;"
            ' describe them under [[routers]] with protocol = "ip", between = […] and an interface on each network.'
        )
    return all_fabrics


def _find_router_networks(system: System, router: str) -> tuple[str, str]:
    """The two networks that a router connects, that of the clients first."""
    networks = system.find_references(router, "between") or tuple(
        dict.fromkeys(address.network for address in system.find_addresses(router))
    )
    if len(networks) != 2:
        raise UserError(
            f"Router {router} joins {len(networks)} networks ({', '.join(networks) or 'none'}); say which two it"
            ' connects: between = ["CLIENTS", "STORAGE"].'
        )
    first, second = networks
    return (second, first) if _has_servers(system, first) and not _has_servers(system, second) else (first, second)


def _has_servers(system: System, network: str) -> bool:
    return any(system.find_addresses(server, network) for server in system.list_part_ids("servers"))


def _make_fabrics(
    system: System, near_network: str, far_network: str, router_numbers: Mapping[str, RouterPolicyNumbers]
) -> Iterator[Fabric]:
    for version in (4, 6):
        sides = [_make_fabric_side(system, name, version) for name in (near_network, far_network)]
        if not all(side.ranges and side.classes for side in sides):
            continue
        routers = tuple(_make_routers(system, near_network, far_network, version, router_numbers))
        if routers:
            name = f"{near_network} to {far_network}" + (" (IPv6)" if version == 6 else "")
            classes = [(item, side.network) for side in sides for item in side.classes]
            networks = {address: network for item, network in classes for address in item.addresses}
            services = list_routed_services(system, networks, [item.hosts[0] for item, _ in classes])
            yield Fabric(name, 4 if version == 4 else 6, sides[0], sides[1], routers, services)


def _make_fabric_side(system: System, network_name: str, ip_version: int) -> FabricSide:
    """One network with its hosts of one IP version."""
    table = system.get_part(network_name).table
    assert isinstance(table, Network)
    ranges = tuple(
        address_range for address_range in table.addresses if parse_network(address_range).version == ip_version
    )
    classes = tuple(_group_hosts_into_classes(system, network_name, ip_version, table))
    return FabricSide(network_name, ranges, classes, int(table.mtu) if table.mtu is not None else None)


def _group_hosts_into_classes(
    system: System, network: str, ip_version: int, network_record: Network
) -> Iterator[HostClass]:
    """Nodes and servers on the network, grouped by their table and device."""
    addresses_by_class: dict[tuple[str, str], list[InterfaceAddress]] = {}
    for kind in ("nodes", "servers"):
        for item in system.list_parts(kind):
            for address in system.find_addresses(item.id, network):
                if address.address and ipaddress.ip_address(address.address).version == ip_version:
                    addresses_by_class.setdefault((item.table.group or item.table.id, address.device), []).append(
                        address
                    )
    for (name, device), members in addresses_by_class.items():
        if not device:
            raise UserError(
                f"{system.id}: {name} joins {network} with an interface without a device name;"
                ' a route names it: device = "ib0".'
            )
        yield HostClass(
            name,
            device,
            tuple(address.host for address in members),
            tuple(address.address or "" for address in members),
            _find_interface_rate(system, members[0].host, network, network_record),
            *_read_settings(system, members[0].host),
            operating_system=getattr(system.get_part(members[0].host).table, "os", ""),
        )


def _read_settings(system: System, host_id: str) -> tuple[dict[str, str], dict[str, str]]:
    """Divides the settings of a host into sysctls and kernel options."""
    settings = getattr(system.get_part(host_id).table, "settings", None) or {}
    setting_texts = {
        name: ("y" if value else "n") if isinstance(value, bool) else str(value) for name, value in settings.items()
    }
    sysctls = {name: value for name, value in setting_texts.items() if name.startswith(("net.", "kernel.", "vm."))}
    return sysctls, {name: value for name, value in setting_texts.items() if name.startswith("CONFIG_")}


def _find_interface_rate(system: System, host_id: str, network_id: str, network_record: Network) -> float | None:
    """Bytes per second of one interface: its described rate, else that of the network; a server may be slower than
    both."""
    host_table = system.get_part(host_id).table
    link_rates = find_link_rates(system, host_id, network_id, network_record)
    rates = [link_rates] if link_rates is not None else []
    if isinstance(host_table, Server) and host_table.rate is not None:
        rates.append(host_table.rate)
    values = [float(value) for item in rates for value in (item.read, item.write) if value is not None]
    return min(values) if values else None


def find_link_rates(system: System, host_id: str, network_id: str, network_record: Network) -> ReadWriteRates | None:
    """The described rates of the interface of a host on a network, else those of the network."""
    host_table = system.get_part(host_id).table
    interface = next(
        (item for item in getattr(host_table, "interfaces", ()) if system.index.resolve_references(
            system.index.get_source(host_table), "interfaces.network", item.network, ("networks",)) == (network_id,)),
            None
    )  # fmt: skip
    return getattr(interface, "rate", None) or network_record.rate


def _make_routers(
    system: System,
    near_network: str,
    far_network: str,
    ip_version: int,
    router_numbers: Mapping[str, RouterPolicyNumbers],
) -> Iterator[FabricRouter]:
    for router in router_numbers:
        if set(_find_router_networks(system, router)) != {near_network, far_network}:
            continue
        addresses = [_find_router_address(system, router, name, ip_version) for name in (near_network, far_network)]
        if None in addresses:
            missing = near_network if addresses[0] is None else far_network
            if any(address is not None for address in addresses):
                raise UserError(
                    f"{system.id}: router {router} has no IPv{ip_version} address on {missing}; a route needs one on"
                    f" each of {near_network} and {far_network}."
                )
            continue
        table = system.get_part(router).table
        assert isinstance(table, Router)
        near_address, far_address = addresses
        assert near_address is not None
        assert far_address is not None
        yield FabricRouter(
            name=router,
            near_address=near_address.address or "",
            far_address=far_address.address or "",
            near_device=near_address.device,
            far_device=far_address.device,
            weight=int(table.weight) if table.weight is not None else 1,
            priority=int(table.priority) if table.priority is not None else 0,
            rate=_find_router_rate(system, router, (near_network, far_network)),
            table=router_numbers[router].table,
            mark=router_numbers[router].mark,
            preference=router_numbers[router].preference,
        )


def _find_router_address(system: System, router: str, network: str, version: int) -> InterfaceAddress | None:
    """The address of a router on a network; None when it has none."""
    matching = [
        address
        for address in system.find_addresses(router, network)
        if address.address and ipaddress.ip_address(address.address).version == version
    ]
    if len(matching) > 1:
        raise UserError(
            f"{system.id}: router {router} has {len(matching)} IPv{version} addresses on {network}; describe each as a"
            " router of its own, so that each can carry its share."
        )
    return matching[0] if matching else None


def _find_router_rate(system: System, router: str, networks: Sequence[str]) -> float | None:
    """Bytes per second through a router: its described rate, else that of the slower of its two interfaces."""
    table = system.get_part(router).table
    assert isinstance(table, Router)
    described_rates = (
        [float(rate) for rate in (table.rate.read, table.rate.write) if rate is not None] if table.rate else []
    )
    if described_rates:
        return min(described_rates)
    interface_rates = []
    for name in networks:
        network = system.get_part(name).table
        assert isinstance(network, Network)
        interface_rates.append(_find_interface_rate(system, router, name, network))
    known_rates = [rate for rate in interface_rates if rate is not None]
    return min(known_rates) if known_rates else None


def is_address_in_ranges(address_ranges: Sequence[str], address: str) -> bool:
    """Whether an address lies in one of the ranges; never in a range of the other IP version."""
    parsed_address = ipaddress.ip_address(address)
    return any(parsed_address in parse_network(address_range) for address_range in address_ranges)


def covers_range(destination_range: str, address_range: str) -> bool:
    """Whether a route to `destination_range` leads to the whole of `address_range`."""
    if destination_range == "default":
        return True
    try:
        outer, inner = ipaddress.ip_network(destination_range), ipaddress.ip_network(address_range)
    except ValueError:
        return False
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def overlaps_range(destination_range: str, address_range: str) -> bool:
    """Whether a route to `destination_range` concerns a part of `address_range`; a default route does not."""
    try:
        route_network, network = ipaddress.ip_network(destination_range), ipaddress.ip_network(address_range)
    except ValueError:
        return False
    return route_network.version == network.version and route_network.overlaps(network)


def map_gateways_to_router_index(fabric: Fabric, own_side: FabricSide) -> dict[str, int]:
    """Address of each router on this side -> index of the router."""
    near = own_side is fabric.near
    return {(router.near_address if near else router.far_address): index for index, router in enumerate(fabric.routers)}
