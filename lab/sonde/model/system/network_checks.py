# SPDX-License-Identifier: Apache-2.0
"""Checks of networks: addresses outside their network, used twice, too few or too many; routers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from sonde.model.addresses import AddressError, parse_network
from sonde.model.addresses import IpNetwork as AddressRange
from sonde.model.errors import SystemFileError
from sonde.model.system.addressing import expand_interface_addresses, expand_interface_nids, find_network_of_interface
from sonde.model.system.index import PartIndex, PartSource
from sonde.model.system.network import Host, Interface, Network, Router


def check_interface_addresses(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that every interface has one unique address for each host, inside its network."""
    ranges: dict[str, list[AddressRange]] = {}
    for source in part_index.sources:
        if isinstance(source.table, Network):
            try:
                ranges[source.table.id] = _parse_network_ranges(source, source.table)
            except SystemFileError as problem:
                yield problem
    host_by_address: dict[tuple[str, str], str] = {}
    for source in part_index.sources:
        if isinstance(source.table, Host):
            for interface in source.table.interfaces:
                try:
                    yield from _check_interface(part_index, source, interface, ranges, host_by_address)
                except SystemFileError as problem:
                    yield problem


def _parse_network_ranges(part_source: PartSource, network: Network) -> list[AddressRange]:
    try:
        return [parse_network(text) for text in network.addresses]
    except AddressError as error:
        raise part_source.make_error("addresses", f"is wrong: {error}") from None


def _check_interface(
    part_index: PartIndex,
    part_source: PartSource,
    interface: Interface,
    ranges_by_network: dict[str, list[AddressRange]],
    host_by_address: dict[tuple[str, str], str],
) -> Iterator[SystemFileError]:
    network = find_network_of_interface(part_index, part_source, interface)
    names = part_index.get_ids(part_source.table)
    for member, entries in (
        ("addresses", expand_interface_addresses(part_source, interface)),
        ("nids", expand_interface_nids(part_source, interface)),
    ):
        if entries and len(entries) != len(names):
            yield part_source.make_error(
                f"interfaces.{member}",
                f"has {len(entries)} for {len(names)} hosts; give one for each, in the same order.",
            )
        for name, entry in zip(names, entries, strict=False):
            other_host = host_by_address.setdefault((network.id, entry), name)
            if other_host != name:
                yield part_source.make_error(
                    f"interfaces.{member}", f'gives "{name}" {entry}, which "{other_host}" has on {network.id} too.'
                )
    for nid in expand_interface_nids(part_source, interface):
        host_part, separator, name = nid.partition("@")
        if not host_part or not separator or (network.lnet and _normalize_lnet(name) != _normalize_lnet(network.lnet)):
            expected_suffix = f"@{network.lnet}" if network.lnet else "@ and the LNet network"
            yield part_source.make_error(
                "interfaces.nids", f'has "{nid}"; an LNet id on {network.id} ends in {expected_suffix}.'
            )
    allowed_ranges = ranges_by_network.get(network.id, [])
    for entry in expand_interface_addresses(part_source, interface) if allowed_ranges else ():
        ip_address = ipaddress.ip_address(entry)
        if not any(ip_address in allowed_range for allowed_range in allowed_ranges):
            allowed = " or ".join(str(allowed_range) for allowed_range in allowed_ranges)
            yield part_source.make_error(
                "interfaces.addresses", f"has {entry}, which is outside {network.id}, {allowed}."
            )


def _normalize_lnet(lnet: str) -> str:
    """Adds the implied 0: LNet's o2ib is o2ib0."""
    return lnet if re.fullmatch(r".*[a-z][0-9]+", lnet) else f"{lnet}0"


def check_routers(part_index: PartIndex) -> Iterator[SystemFileError]:
    """Checks that a router joins at least two networks, including those named in `between`."""
    for source in part_index.sources:
        if not isinstance(source.table, Router):
            continue
        table = source.table
        joined_networks = {
            find_network_of_interface(part_index, source, interface).id for interface in table.interfaces
        }
        if table.interfaces and len(joined_networks) < 2:
            yield source.make_error("interfaces", "join one network only; a router joins two or more.")
        for name in part_index.find_table_references(table, "between"):
            if table.interfaces and name not in joined_networks:
                yield source.make_error(
                    "between", f'names "{name}", which no interface of it joins; add [[routers.interfaces]].'
                )
