# SPDX-License-Identifier: Apache-2.0
"""Checks the link addresses of neighbors: of routers as a host has them, of hosts and routers as a router has them, and
against the interfaces of a host of the other side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.fabric import Fabric, FabricRouter, FabricSide, is_address_in_ranges
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedNeighbor
from sonde.design.routes.host_view import HostView
from sonde.design.routes.link_usability import list_devices_of_host_class
from sonde.model.units import format_count_with_noun

FIXED_NEIGHBOR = "fixed neighbor"
WRONG_LINK_ADDRESS = "wrong link address"
UNANSWERED_STATES = ("failed", "incomplete")
_ANSWERED_STATES = ("reachable", "stale", "delay", "probe")
_FIXED_STATES = ("permanent", "noarp")
# How many fixed entries are written out.
_MAX_LISTED_ENTRIES = 3


def find_gateway_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Routers that do not answer, entries that never change, and link addresses that two routers or this host have."""
    names = {address: router.name for address, router in host_view.routers_by_gateway.items()}
    entries = [neighbor for neighbor in host_tables.neighbors or () if neighbor.address in names]
    devices = list_devices_of_host_class(host_view)
    for neighbor in entries:
        router = names[neighbor.address]
        yield CheckedItem("the link address of a router", neighbor.address)
        if neighbor.state in UNANSWERED_STATES:
            yield RouteFault(
                "router does not answer", neighbor.address,
                f"{router} ({neighbor.address}) does not answer on {neighbor.device} (neighbor {neighbor.state}):"
                " packets that are sent to it wait and are dropped",
                "look at the router and its link",
            )  # fmt: skip
        elif neighbor.state in _FIXED_STATES:
            yield RouteFault(
                FIXED_NEIGHBOR, neighbor.address,
                f"the link address of {router} ({neighbor.address}) is fixed to {neighbor.link_address or 'no address'}"
                f" ({neighbor.state}): after its interface is replaced, packets go to the old one",
                f"ip neigh del {neighbor.address} dev {neighbor.device}",
                is_implied=True,
            )  # fmt: skip
    # an interface with an address of this network is reported itself
    explained = {
        device
        for address, holders in host_tables.address_devices.items()
        if is_address_in_ranges(host_view.own_side.ranges, address)
        for device in holders
    }
    displaced = [each for each in entries if each.device not in ("", *devices, *explained)]
    yield from _describe_wrong_devices(displaced, names, host_view.own_side.network, host_view.host_class.device)
    yield from _find_shared_link_addresses(entries, names, host_tables, "routers")
    yield from _find_neighbors_that_do_not_forward(entries, names)


def _find_neighbors_that_do_not_forward(
    entries: Sequence[ObservedNeighbor], names: Mapping[str, str]
) -> Iterator[RouteFault]:
    """Routers of IPv6 whose advertisements of their link address do not call them routers, where others do."""
    answering = [each for each in entries if ":" in each.address and each.state in _ANSWERED_STATES]
    forwarding = [each for each in answering if each.is_router]
    for neighbor in answering:
        if not neighbor.is_router and len(forwarding) > len(answering) / 2:
            yield RouteFault(
                "router does not forward", neighbor.address,
                f"{names[neighbor.address]} ({neighbor.address}) answers without the router flag, which"
                f" {len(forwarding)} of {len(answering)} routers of the plan set: it does not forward IPv6 on that"
                " interface",
                f"on {names[neighbor.address]}: sysctl net.ipv6.conf.all.forwarding and that of its interface must be"
                " 1",
            )  # fmt: skip


def find_neighbor_faults_of_router(
    fabric: Fabric, router: FabricRouter, host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Hosts and other routers of both networks whose link addresses never change, are those of this router or of each
    other, or that answered on the interface of the other network."""
    for side, device, other_device in (
        (fabric.near, router.near_device, router.far_device),
        (fabric.far, router.far_device, router.near_device),
    ):
        names = _map_names_of_side(fabric, side)
        entries = [
            neighbor
            for neighbor in host_tables.neighbors or ()
            if neighbor.address in names and neighbor.state not in UNANSWERED_STATES
        ]
        if not entries:
            continue
        yield CheckedItem("the link addresses of neighbors", side.network)
        displaced = [each for each in entries if device != other_device and each.device == other_device != ""]
        yield from _describe_wrong_devices(displaced, names, side.network, device)
        yield from _describe_fixed_entries([each for each in entries if each.state in _FIXED_STATES], names)
        yield from _find_shared_link_addresses(entries, names, host_tables, "hosts")


def _map_names_of_side(fabric: Fabric, side: FabricSide) -> dict[str, str]:
    """The hosts and routers of one network by their addresses."""
    names = {
        address: host
        for host_class in side.classes
        for address, host in zip(host_class.addresses, host_class.hosts, strict=True)
    }
    is_near = side is fabric.near
    return names | {(router.near_address if is_near else router.far_address): router.name for router in fabric.routers}


def _describe_wrong_devices(
    neighbor_entries: Sequence[ObservedNeighbor], name_by_address: Mapping[str, str], network: str, device_name: str
) -> Iterator[RouteFault]:
    """One fault for all neighbors that answered on one other interface."""
    by_device: dict[str, list[ObservedNeighbor]] = {}
    for entry in neighbor_entries:
        if entry.state not in UNANSWERED_STATES:
            by_device.setdefault(entry.device, []).append(entry)
    for other_device, displaced in by_device.items():
        written = [f"{name_by_address[each.address]} ({each.address})" for each in displaced[:_MAX_LISTED_ENTRIES]]
        further = len(displaced) - len(written)
        more = f" and {format_count_with_noun(further, 'further neighbor')}" if further else ""
        yield RouteFault(
            "wrong device",
            ", ".join(each.address for each in displaced[:_MAX_LISTED_ENTRIES]) + (", …" if more else ""),
            f"{', '.join(written)}{more} answered on {other_device}; {network} is on {device_name}",
            f"look for a bridge or proxy ARP between both networks, then ip neigh flush dev {other_device}",
        )  # fmt: skip


def _describe_fixed_entries(
    neighbor_entries: Sequence[ObservedNeighbor], name_by_address: Mapping[str, str]
) -> Iterator[RouteFault]:
    """One fault for all fixed entries of a network: a script sets them together."""
    if not neighbor_entries:
        return
    texts = [
        f"{name_by_address[each.address]} ({each.address}) to {each.link_address} ({each.state})"
        for each in neighbor_entries[:_MAX_LISTED_ENTRIES]
    ]
    further = len(neighbor_entries) - len(texts)
    more = f" and {format_count_with_noun(further, 'further entry')}" if further else ""
    yield RouteFault(
        FIXED_NEIGHBOR,
        ", ".join(each.address for each in neighbor_entries[:_MAX_LISTED_ENTRIES]) + (", …" if further else ""),
        f"this router has fixed {', '.join(texts)}{more}: after an interface is replaced, packets go to the old one",
        "; ".join(f"ip neigh del {each.address} dev {each.device}" for each in neighbor_entries[:_MAX_LISTED_ENTRIES]),
        is_implied=True,
    )  # fmt: skip


def _find_shared_link_addresses(
    neighbor_entries: Sequence[ObservedNeighbor], name_by_address: Mapping[str, str], host_tables: HostTables, noun: str
) -> Iterator[RouteFault]:
    """Link addresses that two neighbors have, or that are of this host itself. `noun` is what the neighbors are."""
    own_devices = {details.link_address.lower(): device for device, details in host_tables.link_details.items()
                   if details.link_address.strip("0:")}  # fmt: skip
    by_link_address: dict[str, dict[str, str]] = {}
    for neighbor in neighbor_entries:
        link_address = neighbor.link_address.lower()
        if link_address in own_devices:
            yield RouteFault(
                f"{noun.removesuffix('s')} with the own link address", neighbor.address,
                f"{name_by_address[neighbor.address]} ({neighbor.address}) has the link address of"
                f" {own_devices[link_address]} of"
                f" this host, {neighbor.link_address}: packets to it do not leave the host",
                f"look for proxy ARP and copied addresses, then ip neigh del {neighbor.address} dev {neighbor.device}",
            )  # fmt: skip
        if link_address and not link_address.strip("0:") and neighbor.state not in UNANSWERED_STATES:
            yield RouteFault(
                "no link address", neighbor.address,
                f"the entry of {name_by_address[neighbor.address]} ({neighbor.address}) on {neighbor.device} has the"
                " link address"
                f" {link_address} ({neighbor.state}): packets to it reach no machine",
                f"ip neigh del {neighbor.address} dev {neighbor.device}, and look for what set it",
            )  # fmt: skip
        elif link_address and neighbor.state not in UNANSWERED_STATES:
            by_link_address.setdefault(link_address, {})[neighbor.address] = name_by_address[neighbor.address]
    for link_address, owners in by_link_address.items():
        if len(set(owners.values())) > 1:
            yield RouteFault(
                f"two {noun}, one link address", ", ".join(owners),
                f"{' and '.join(owners)} both have {link_address}: one machine gets the traffic of all of them",
                "look for a stale entry, a doubled address or proxy ARP: ip neigh flush, then ask again",
            )  # fmt: skip


def compare_link_addresses(host_tables: HostTables, other_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """The link addresses that two hosts have of each other, and those of their interfaces."""
    for tables, owner, text in (
        (host_tables, other_tables, "this host has"),
        (other_tables, host_tables, "the host of the other side has"),
    ):
        for neighbor in tables.neighbors or ():
            devices = owner.address_devices.get(neighbor.address, ())
            link_addresses = {
                device: owner.link_details[device].link_address
                for device in devices
                if device in owner.link_details and owner.link_details[device].link_address
            }
            if not link_addresses or not neighbor.link_address or neighbor.state in UNANSWERED_STATES:
                continue
            yield CheckedItem("the link address of the other side", neighbor.address)
            if neighbor.link_address.lower() not in {each.lower() for each in link_addresses.values()}:
                actual = ", ".join(f"{address} on {device}" for device, address in link_addresses.items())
                yield RouteFault(
                    WRONG_LINK_ADDRESS, neighbor.address,
                    f"{text} {neighbor.address} at {neighbor.link_address} ({neighbor.state}), but it is at {actual}:"
                    " packets to it go to another machine, or to none",
                    f"ip neigh del {neighbor.address} dev {neighbor.device}; look for a second machine with this"
                    " address",
                )  # fmt: skip
