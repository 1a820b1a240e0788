# SPDX-License-Identifier: Apache-2.0
"""Compares the addresses that /etc/hosts gives to hosts with those of the system file."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.fabric import Fabric, is_address_in_ranges
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables


def find_name_faults(fabrics: Sequence[Fabric], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Names of planned hosts with the address of another host, or with one of the loopback network."""
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
        elif entry.address not in planned[name] and is_address_in_ranges([*ranges], entry.address):
            owner = f", that of {owners[entry.address]}" if entry.address in owners else ""
            yield RouteFault(
                "name with another address", entry.origin,
                f"{entry.name} has the address {entry.address}{owner}; the system file says"
                f" {', '.join(fitting) or 'another one'}: connections by this name reach another host, or none",
                remedy,
            )  # fmt: skip
