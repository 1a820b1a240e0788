# SPDX-License-Identifier: Apache-2.0
"""What a system file must not say of networks: addresses outside their network, used twice, too few or too many."""

from __future__ import annotations

import ipaddress
import re

from sonde.model.addresses import AddressError, network
from sonde.model.addresses import Network as AddressRange
from sonde.model.system.addressing import listed_addresses, listed_nids, network_of
from sonde.model.system.index import Index, Source
from sonde.model.system.network import Host, Interface, Network, Router


def check_addresses(index: Index) -> None:
    """Every interface has one address for each host, inside its network, and used once."""
    ranges: dict[str, list[AddressRange]] = {}
    for source in index.sources:
        if isinstance(source.table, Network):
            ranges[source.table.id] = _ranges(source, source.table)
    used: dict[tuple[str, str], str] = {}
    for source in index.sources:
        if isinstance(source.table, Host):
            for interface in source.table.interfaces:
                _check_interface(index, source, interface, ranges, used)


def _ranges(source: Source, table: Network) -> list[AddressRange]:
    try:
        return [network(text) for text in table.addresses]
    except AddressError as reason:
        raise source.wrong("addresses", f"is wrong: {reason}") from None


def _check_interface(
    index: Index, source: Source, interface: Interface, ranges: dict[str, list[AddressRange]],
    used: dict[tuple[str, str], str],
) -> None:  # fmt: skip
    joined = network_of(index, source, interface)
    names = index.ids_of(source.table)
    for member, listed in (
        ("addresses", listed_addresses(source, interface)),
        ("nids", listed_nids(source, interface)),
    ):
        if listed and len(listed) != len(names):
            raise source.wrong(
                f"interfaces.{member}",
                f"has {len(listed)} for {len(names)} hosts; give one for each, in the same order.",
            )
        for name, one in zip(names, listed, strict=False):
            other = used.setdefault((joined.id, one), name)
            if other != name:
                raise source.wrong(
                    f"interfaces.{member}", f'gives "{name}" {one}, which "{other}" has on {joined.id} too.'
                )
    for nid in listed_nids(source, interface):
        own, at, name = nid.partition("@")
        if not own or not at or (joined.lnet and _numbered(name) != _numbered(joined.lnet)):
            wanted = f"@{joined.lnet}" if joined.lnet else "@ and the LNet network"
            raise source.wrong("interfaces.nids", f'has "{nid}"; an LNet id on {joined.id} ends in {wanted}.')
    inside = ranges.get(joined.id, [])
    for one in listed_addresses(source, interface) if inside else ():
        here = ipaddress.ip_address(one)
        if not any(here in block for block in inside):
            allowed = " or ".join(str(block) for block in inside)
            raise source.wrong("interfaces.addresses", f"has {one}, which is outside {joined.id}, {allowed}.")


def _numbered(lnet: str) -> str:
    """LNet names the first network of a kind with or without its 0: o2ib is o2ib0."""
    return lnet if re.fullmatch(r".*[a-z][0-9]+", lnet) else f"{lnet}0"


def check_routers(index: Index) -> None:
    """A router joins two networks or more, and those that it is said to route between."""
    for source in index.sources:
        if not isinstance(source.table, Router):
            continue
        table = source.table
        joined = {network_of(index, source, one).id for one in table.interfaces}
        if table.interfaces and len(joined) < 2:
            raise source.wrong("interfaces", "join one network only; a router joins two or more.")
        for name in index.references(table, "between"):
            if table.interfaces and name not in joined:
                raise source.wrong(
                    "between", f'names "{name}", which no interface of it joins; add [[routers.interfaces]].'
                )
