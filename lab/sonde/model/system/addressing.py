# SPDX-License-Identifier: Apache-2.0
"""Which address and which LNet id every host has on every network."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from sonde.model.addresses import AddressError, addresses, network
from sonde.model.errors import SystemFileError
from sonde.model.ranges import RangeError, expand
from sonde.model.system.index import Index, Item, Source
from sonde.model.system.network import Host, Interface, Network


class Address(NamedTuple):
    """One interface of one host."""

    host: str
    network: str
    device: str  # empty when nobody said
    address: str | None
    prefix: int | None  # bits of the network that holds the address
    nid: str | None  # LNet id


def network_of(index: Index, source: Source, interface: Interface) -> Network:
    """The network that an interface joins."""
    (name, *more) = index.resolve(source, "interfaces.network", interface.network, ("networks",)) or ("",)
    if more or not name:
        raise source.wrong("interfaces.network", "names several networks; give each an interface of its own.")
    table = index.item(name).table
    assert isinstance(table, Network)
    return table


def listed_addresses(source: Source, interface: Interface) -> tuple[str, ...]:
    """Addresses of an interface for all hosts of its table, in order."""
    if len(interface.addresses) == 1:  # kept by `addresses`, so that ten thousand hosts do not make it again
        return _read(source, "interfaces.addresses", interface.addresses[0], addresses)
    return tuple(one for text in interface.addresses for one in _read(source, "interfaces.addresses", text, addresses))


def listed_nids(source: Source, interface: Interface) -> tuple[str, ...]:
    """LNet ids that are written, for all hosts of its table, in order."""
    if len(interface.nids) == 1:
        return _read(source, "interfaces.nids", interface.nids[0], _expanded)
    return tuple(one for text in interface.nids for one in _read(source, "interfaces.nids", text, _expanded))


_expanded = cache(expand)


def _read(source: Source, member: str, text: str, reader: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    try:
        return reader(text)
    except (RangeError, AddressError) as reason:
        raise source.wrong(member, f"is wrong: {reason}") from None


def prefix_of(table: Network, address: str) -> int | None:
    """Bits of the range of the network that holds an address."""
    here = ipaddress.ip_address(address)
    return next((one.prefixlen for one in map(network, table.addresses) if here in one), None)


def addresses_of(index: Index, host: Item) -> Iterator[Address]:
    """Every interface of one host."""
    table = host.table
    if not isinstance(table, Host):
        raise SystemFileError(f'"{host.id}" is one of {host.kind}; only nodes, routers and servers have addresses.')
    source = index.source_of(table)
    for interface in table.interfaces:
        joined = network_of(index, source, interface)
        listed, nids = listed_addresses(source, interface), listed_nids(source, interface)
        address = listed[host.position] if listed else None
        prefix = (
            int(interface.prefix) if interface.prefix is not None else prefix_of(joined, address) if address else None
        )
        nid = nids[host.position] if nids else f"{address}@{joined.lnet}" if address and joined.lnet else None
        (name,) = index.resolve(source, "interfaces.network", interface.network, ())
        yield Address(host.id, name, interface.device, address, prefix, nid)
