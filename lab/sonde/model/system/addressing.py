# SPDX-License-Identifier: Apache-2.0
"""Addresses and LNet ids of every host on every network."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from sonde.model.addresses import AddressError, expand_addresses, parse_network
from sonde.model.errors import SystemFileError
from sonde.model.ranges import RangeError, expand_names
from sonde.model.system.index import PartIndex, PartItem, PartSource
from sonde.model.system.network import Host, Interface, Network


class InterfaceAddress(NamedTuple):
    """One interface of one host."""

    host: str
    network: str
    device: str  # empty when nobody said
    address: str | None
    prefix: int | None  # bits of the network that holds the address
    nid: str | None  # LNet id


def find_network(index: PartIndex, source: PartSource, interface: Interface) -> Network:
    """Returns the network of an interface."""
    (name, *other_names) = index.resolve(source, "interfaces.network", interface.network, ("networks",)) or ("",)
    if other_names or not name:
        raise source.make_error("interfaces.network", "names several networks; give each an interface of its own.")
    table = index.item(name).table
    assert isinstance(table, Network)
    return table


def expand_interface_addresses(source: PartSource, interface: Interface) -> tuple[str, ...]:
    """Returns the addresses of an interface for all hosts of its table, in order."""
    if len(interface.addresses) == 1:  # cached by `expand_addresses`: ten thousand hosts share one expansion
        return _read_ranges(source, "interfaces.addresses", interface.addresses[0], expand_addresses)
    return tuple(
        address
        for text in interface.addresses
        for address in _read_ranges(source, "interfaces.addresses", text, expand_addresses)
    )


def expand_interface_nids(source: PartSource, interface: Interface) -> tuple[str, ...]:
    """Returns the explicit LNet ids of an interface for all hosts of its table, in order."""
    if len(interface.nids) == 1:
        return _read_ranges(source, "interfaces.nids", interface.nids[0], _expand_nids)
    return tuple(nid for text in interface.nids for nid in _read_ranges(source, "interfaces.nids", text, _expand_nids))


_expand_nids = cache(expand_names)


def _read_ranges(
    source: PartSource, member: str, text: str, expand: Callable[[str], tuple[str, ...]]
) -> tuple[str, ...]:
    try:
        return expand(text)
    except (RangeError, AddressError) as error:
        raise source.make_error(member, f"is wrong: {error}") from None


def find_prefix_bits(table: Network, address: str) -> int | None:
    """Returns the prefix length of the network range that contains an address."""
    ip_address = ipaddress.ip_address(address)
    return next(
        (ip_network.prefixlen for ip_network in map(parse_network, table.addresses) if ip_address in ip_network), None
    )


def find_host_addresses(index: PartIndex, host: PartItem) -> Iterator[InterfaceAddress]:
    """Yields the address of every interface of one host."""
    table = host.table
    if not isinstance(table, Host):
        raise SystemFileError(f'"{host.id}" is one of {host.kind}; only nodes, routers and servers have addresses.')
    source = index.get_source(table)
    for interface in table.interfaces:
        network = find_network(index, source, interface)
        addresses, nids = expand_interface_addresses(source, interface), expand_interface_nids(source, interface)
        address = addresses[host.position] if addresses else None
        prefix = (
            int(interface.prefix)
            if interface.prefix is not None
            else find_prefix_bits(network, address)
            if address
            else None
        )
        nid = nids[host.position] if nids else f"{address}@{network.lnet}" if address and network.lnet else None
        (name,) = index.resolve(source, "interfaces.network", interface.network, ())
        yield InterfaceAddress(host.id, name, interface.device, address, prefix, nid)
