# SPDX-License-Identifier: Apache-2.0
"""Compares the addresses that /etc/hosts gives to hosts with those of the system file."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence, Set

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.fabric import Fabric, is_address_in_ranges
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostName, HostTables


def find_name_faults(fabrics: Sequence[Fabric], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Names of planned hosts with the address of another host, with one of the loopback network, or outside of all
    networks of the system file."""
    planned: dict[str, set[str]] = {}
    ranges: set[str] = set()
    for fabric in fabrics:
        for side in (fabric.near, fabric.far):
            ranges |= {*side.ranges}
            for host_class in side.classes:
                for host, address in zip(host_class.hosts, host_class.addresses, strict=True):
                    planned.setdefault(host, set()).add(address)
        for router in fabric.routers:
            planned.setdefault(router.name, set()).update((router.near_address, router.far_address))
    owners = {address: host for host, addresses in planned.items() for address in addresses}
    for entry in host_tables.host_names:
        name = entry.name.partition(".")[0]
        if name not in planned:
            continue
        yield CheckedItem("the address of a name", entry.name)
        fitting = sorted(address for address in planned[name] if (":" in address) == (":" in entry.address))
        remedy = f"write {' or '.join(fitting)}" if fitting else "remove the line"
        if ipaddress.ip_address(entry.address).is_loopback:
            yield RouteFault(
                "name on loopback", entry.origin,
                f"{entry.name} has the address {entry.address}: services that look up this name listen or announce"
                " themselves where no other host reaches them",
                remedy,
            )  # fmt: skip
        elif entry.address in planned[name]:
            continue
        elif is_address_in_ranges([*ranges], entry.address):
            owner = f", that of {owners[entry.address]}" if entry.address in owners else ""
            yield RouteFault(
                "name with another address", entry.origin,
                f"{entry.name} has the address {entry.address}{owner}; the system file says"
                f" {', '.join(fitting) or 'another one'}: connections by this name reach another host, or none",
                remedy,
            )  # fmt: skip
        elif fitting and _is_only_way(entry, planned[name], host_tables.host_names):
            yield RouteFault(
                "name outside of the networks", entry.origin,
                f"{entry.name} has the address {entry.address}, which is on no network of the system file, and no other"
                f" name has {' or '.join(fitting)}: connections by this name go past the routers, by another interface",
                f"{remedy}, and give {entry.address} another name",
            )  # fmt: skip


def _is_only_way(entry: HostName, planned_addresses: Set[str], host_names: Sequence[HostName]) -> bool:
    """Whether a line is the first one of its name and IP version, and no other name of the host, as NAME-ib, has a
    planned address of it."""
    name, is_ipv6 = entry.name.partition(".")[0], ":" in entry.address
    same = [each for each in host_names if each.name.partition(".")[0] == name and (":" in each.address) == is_ipv6]
    return same[0] == entry and not any(
        each.name.partition(".")[0] != name and each.address in planned_addresses for each in host_names
    )
