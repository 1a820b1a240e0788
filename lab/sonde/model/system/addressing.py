# SPDX-License-Identifier: Apache-2.0
"""Addresses and LNet ids of every host on every network."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from sonde.model.addresses import AddressError, expand_address_range, parse_network
from sonde.model.errors import SystemFileError
from sonde.model.ranges import RangeError, expand_name_range
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


def find_network_of_interface(part_index: PartIndex, part_source: PartSource, interface: Interface) -> Network:
    """Returns the network of an interface."""
    (name, *other_names) = part_index.resolve_references(
        part_source, "interfaces.network", interface.network, ("networks",)
    ) or ("",)
    if other_names or not name:
        raise part_source.make_error("interfaces.network", "names several networks; give each an interface of its own.")
    table = part_index.get_part(name).table
    assert isinstance(table, Network)
    return table


def expand_interface_addresses(part_source: PartSource, interface: Interface) -> tuple[str, ...]:
    """Returns the addresses of an interface for all hosts of its table, in order."""
    if len(interface.addresses) == 1:  # cached by `expand_address_range`: ten thousand hosts share one expansion
        return _expand_member_range(part_source, "interfaces.addresses", interface.addresses[0], expand_address_range)
    return tuple(
        address
        for text in interface.addresses
        for address in _expand_member_range(part_source, "interfaces.addresses", text, expand_address_range)
    )


def expand_interface_nids(part_source: PartSource, interface: Interface) -> tuple[str, ...]:
    """Returns the explicit LNet ids of an interface for all hosts of its table, in order."""
    if len(interface.nids) == 1:
        return _expand_member_range(part_source, "interfaces.nids", interface.nids[0], _expand_nids)
    return tuple(
        nid
        for text in interface.nids
        for nid in _expand_member_range(part_source, "interfaces.nids", text, _expand_nids)
    )


_expand_nids = cache(expand_name_range)


def _expand_member_range(
    part_source: PartSource, member_name: str, range_text: str, expand_range: Callable[[str], tuple[str, ...]]
) -> tuple[str, ...]:
    try:
        return expand_range(range_text)
    except (RangeError, AddressError) as error:
        raise part_source.make_error(member_name, f"is wrong: {error}") from None


def find_prefix_bits(network: Network, address: str) -> int | None:
    """Returns the prefix length of the network range that contains an address."""
    ip_address = ipaddress.ip_address(address)
    return next(
        (ip_network.prefixlen for ip_network in map(parse_network, network.addresses) if ip_address in ip_network), None
    )


def iterate_host_addresses(part_index: PartIndex, host_part: PartItem) -> Iterator[InterfaceAddress]:
    """Yields the address of every interface of one host."""
    table = host_part.table
    if not isinstance(table, Host):
        raise SystemFileError(
            f'"{host_part.id}" is one of {host_part.kind}; only nodes, routers and servers have addresses.'
        )
    source = part_index.get_source(table)
    for interface in table.interfaces:
        network = find_network_of_interface(part_index, source, interface)
        addresses, nids = expand_interface_addresses(source, interface), expand_interface_nids(source, interface)
        address = addresses[host_part.position] if addresses else None
        prefix = (
            int(interface.prefix)
            if interface.prefix is not None
            else find_prefix_bits(network, address)
            if address
            else None
        )
        nid = nids[host_part.position] if nids else f"{address}@{network.lnet}" if address and network.lnet else None
        (name,) = part_index.resolve_references(source, "interfaces.network", interface.network, ())
        yield InterfaceAddress(host_part.id, name, interface.device, address, prefix, nid)
