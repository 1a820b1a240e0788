# SPDX-License-Identifier: Apache-2.0
"""Who has to reach whom through which routers: the part of a system file that routes are made from."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sonde.model.addresses import Network as Range
from sonde.model.addresses import network as address_range
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.addressing import Address
from sonde.model.system.network import Network, Router, Server

Version = Literal[4, 6]


@dataclass(frozen=True)
class Way:
    """One router between the two networks: its address on each, and how much of the traffic it should take.

    `rate` is in bytes per second through the router in one direction, None when nobody said; `priority` 0 is used
    first.
    """

    router: str
    near: str
    far: str
    near_device: str
    far_device: str
    weight: int
    priority: int
    rate: float | None


@dataclass(frozen=True)
class Class:
    """Hosts of one kind that join one of the two networks with one device: they get the same routes."""

    name: str
    device: str
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]  # one for each host, in order
    rate: float | None  # of the interface of one host, bytes per second
    settings: Mapping[str, str] = field(default_factory=dict)  # sysctls that the site wants, from the system file
    options: Mapping[str, str] = field(default_factory=dict)  # kernel options that it is said to have: y or n


@dataclass(frozen=True)
class Side:
    """One of the two networks: its ranges, its hosts, its largest packet in bytes."""

    network: str
    ranges: tuple[str, ...]
    classes: tuple[Class, ...]
    mtu: int | None

    def class_of(self, name: str) -> Class | None:
        """The class of that name, or the one that a host of that name is in; None when neither is on this side."""
        return next((one for one in self.classes if name == one.name or name in one.hosts), None)


@dataclass(frozen=True)
class Fabric:
    """Two networks of one IP version and the routers between them. `near` is where the clients are."""

    name: str
    version: Version
    near: Side
    far: Side
    ways: tuple[Way, ...]

    @property
    def active(self) -> tuple[Way, ...]:
        """The routers that carry traffic while all live: those of the lowest priority number."""
        first = min(way.priority for way in self.ways)
        return tuple(way for way in self.ways if way.priority == first)


def fabrics(system: System) -> list[Fabric]:
    """Every pair of networks with IP routers between them, by IP version.

    Raises UserError when the system has no such routers, or when one lacks an address or hosts.
    """
    pairs = dict.fromkeys(_networks_of(system, router) for router in system.ids("routers") if _is_ip(system, router))
    found = [one for pair in pairs for one in _versions(system, *pair)]
    if not found:
        raise UserError(
            f"{system.id} has no router that forwards IP between two networks with hosts on both;"
            ' describe them under [[routers]] with protocol = "ip", between = […] and an interface on each network.'
        )
    return found


def _is_ip(system: System, router: str) -> bool:
    table = system.item(router).table
    return isinstance(table, Router) and table.protocol in ("ip", "")


def _networks_of(system: System, router: str) -> tuple[str, str]:
    """The two networks, that of the clients first."""
    named = system.references(router, "between") or tuple(
        dict.fromkeys(one.network for one in system.addresses_of(router))
    )
    if len(named) != 2:
        raise UserError(
            f"Router {router} joins {len(named)} networks ({', '.join(named) or 'none'}); say which two it is between:"
            ' between = ["CLIENTS", "STORAGE"].'
        )
    first, second = named
    return (second, first) if _serves(system, first) and not _serves(system, second) else (first, second)


def _serves(system: System, network: str) -> bool:
    return any(system.addresses_of(server, network) for server in system.ids("servers"))


def _versions(system: System, near: str, far: str) -> Iterator[Fabric]:
    for version in (4, 6):
        sides = [_side(system, name, version) for name in (near, far)]
        if not all(side.ranges and side.classes for side in sides):
            continue
        ways = tuple(_ways(system, near, far, version))
        if ways:
            name = f"{near} to {far}" + (" (IPv6)" if version == 6 else "")
            yield Fabric(name, 4 if version == 4 else 6, sides[0], sides[1], ways)


def _side(system: System, name: str, version: int) -> Side:
    table = system.item(name).table
    assert isinstance(table, Network)
    ranges = tuple(one for one in table.addresses if address_range(one).version == version)
    classes = tuple(_classes(system, name, version, table))
    return Side(name, ranges, classes, int(table.mtu) if table.mtu is not None else None)


def _classes(system: System, network: str, version: int, table: Network) -> Iterator[Class]:
    """Nodes and servers on the network, gathered by their table and device."""
    gathered: dict[tuple[str, str], list[Address]] = {}
    for kind in ("nodes", "servers"):
        for item in system.items(kind):
            for one in system.addresses_of(item.id, network):
                if one.address and ipaddress.ip_address(one.address).version == version:
                    gathered.setdefault((item.table.group or item.table.id, one.device), []).append(one)
    for (name, device), members in gathered.items():
        if not device:
            raise UserError(
                f"{system.id}: {name} joins {network} with an interface without a device name;"
                ' a route names it: device = "ib0".'
            )
        yield Class(
            name,
            device,
            tuple(one.host for one in members),
            tuple(one.address or "" for one in members),
            _interface_rate(system, members[0].host, network, table),
            *_settings_of(system, members[0].host),
        )


def _settings_of(system: System, host: str) -> tuple[dict[str, str], dict[str, str]]:
    """Sysctls and kernel options among the settings of a host."""
    said = getattr(system.item(host).table, "settings", None) or {}
    texts = {name: ("y" if value else "n") if isinstance(value, bool) else str(value) for name, value in said.items()}
    sysctls = {name: value for name, value in texts.items() if name.startswith(("net.", "kernel.", "vm."))}
    return sysctls, {name: value for name, value in texts.items() if name.startswith("CONFIG_")}


def _interface_rate(system: System, host: str, network: str, table: Network) -> float | None:
    """Bytes per second of one interface: its own rate, else that of the network; a server may be slower than both."""
    part = system.item(host).table
    interface = next(
        (one for one in getattr(part, "interfaces", ()) if system.index.resolve(
            system.index.source_of(part), "interfaces.network", one.network, ("networks",)) == (network,)), None
    )  # fmt: skip
    rates = [one for one in (getattr(interface, "rate", None) or table.rate,) if one is not None]
    if isinstance(part, Server) and part.rate is not None:
        rates.append(part.rate)
    known = [float(value) for one in rates for value in (one.read, one.write) if value is not None]
    return min(known) if known else None


def _ways(system: System, near: str, far: str, version: int) -> Iterator[Way]:
    for router in system.ids("routers"):
        if not _is_ip(system, router) or set(_networks_of(system, router)) != {near, far}:
            continue
        ends = [_end(system, router, name, version) for name in (near, far)]
        if None in ends:
            missing = near if ends[0] is None else far
            if any(one is not None for one in ends):
                raise UserError(
                    f"{system.id}: router {router} has no IPv{version} address on {missing}; a way needs one on each of"
                    f" {near} and {far}."
                )
            continue
        table = system.item(router).table
        assert isinstance(table, Router)
        near_end, far_end = ends
        assert near_end is not None
        assert far_end is not None
        yield Way(
            router=router,
            near=near_end.address or "",
            far=far_end.address or "",
            near_device=near_end.device,
            far_device=far_end.device,
            weight=int(table.weight) if table.weight is not None else 1,
            priority=int(table.priority) if table.priority is not None else 0,
            rate=_router_rate(system, router, (near, far)),
        )


def _end(system: System, router: str, network: str, version: int) -> Address | None:
    fitting = [
        one
        for one in system.addresses_of(router, network)
        if one.address and ipaddress.ip_address(one.address).version == version
    ]
    if len(fitting) > 1:
        raise UserError(
            f"{system.id}: router {router} has {len(fitting)} IPv{version} addresses on {network}; describe each as a"
            " router of its own, so that each can carry its share."
        )
    return fitting[0] if fitting else None


def _router_rate(system: System, router: str, networks: Sequence[str]) -> float | None:
    """Bytes per second through a router: said, else the slower of its two interfaces."""
    table = system.item(router).table
    assert isinstance(table, Router)
    said = [float(one) for one in (table.rate.read, table.rate.write) if one is not None] if table.rate else []
    if said:
        return min(said)
    both = []
    for name in networks:
        network = system.item(name).table
        assert isinstance(network, Network)
        both.append(_interface_rate(system, router, name, network))
    known = [one for one in both if one is not None]
    return min(known) if known else None


def covers(ranges: Sequence[str], address: str) -> bool:
    """Whether an address lies in one of the ranges."""
    here = ipaddress.ip_address(address)
    return any(here in _same_version(one, here.version) for one in ranges)


def _same_version(text: str, version: int) -> Range:
    found = address_range(text)
    empty: Range = ipaddress.ip_network("255.255.255.255/32") if version == 4 else ipaddress.ip_network("::/128")
    return found if found.version == version else empty
