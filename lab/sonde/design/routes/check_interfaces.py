# SPDX-License-Identifier: Apache-2.0
"""Checks the interface of a host beyond its state: ports of bonds and VRFs, queues that slow down, ARP, addresses that
are not usable, and prefixes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_adapters import find_adapter_faults
from sonde.design.routes.check_bonds import find_bond_option_faults, find_bond_port_faults
from sonde.design.routes.check_counters import find_counter_faults
from sonde.design.routes.check_queues import find_queue_faults
from sonde.design.routes.fabric import FabricSide, is_address_in_ranges
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import LOOPBACK, HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.interface_details import AddressDetails, LinkDetails
from sonde.design.routes.link_usability import (
    is_prefix_too_long,
    list_bond_ports,
    list_devices_below,
    list_devices_of_host_class,
)
from sonde.design.routes.router_advertisements import describe_advertising_routers

TEMPORARY_ADDRESS = "temporary address"
_FEW_GSO_BYTES = 16384
_FEW_GSO_SEGMENTS = 8
# Leases last for longer than four minutes, and are renewed at half of that.
_SHORT_LEASE_S = 120
_NARROW_SCOPES = ("host", "link")
# The highest bit of a partition key of InfiniBand.
_FULL_MEMBER = 0x8000


def find_interface_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the planned interface of a host and of its addresses on this side."""
    device, side = host_view.host_class.device, host_view.own_side
    yield from find_device_faults(device, host_tables)
    details = host_tables.link_details.get(device)
    if host_view.fabric.version == 6 and details is not None and not details.has_multicast and details.kind != "dummy":
        yield RouteFault(
            "no multicast", device,
            f"{device} sends no multicast packets: neighbor discovery of IPv6 finds no router and no host",
            f"ip link set {device} multicast on",
        )  # fmt: skip
    if host_tables.links.get(LOOPBACK) == "down":
        yield RouteFault(
            "interface down", LOOPBACK, "lo is down: this host does not reach its own addresses",
            "ip link set lo up",
        )  # fmt: skip
    yield from find_port_faults(device, host_tables)
    yield from find_faults_below(device, host_tables)
    is_cut_off = is_prefix_too_long(host_view, host_tables)
    numbers = {str(router.table) for router in host_view.fabric.routers}
    has_rules = host_tables.rules is None or any(rule.table in numbers for rule in host_tables.rules)
    missing = "is missing" if has_rules else "and its rules are missing"
    for text in host_tables.addresses or ():
        address = ipaddress.ip_interface(text)
        if address.is_link_local and address.version == host_view.fabric.version == 6:
            yield from _check_link_local_address(device, str(address.ip), host_tables)
        if not is_address_in_ranges(side.ranges, str(address.ip)):
            continue
        yield from find_address_faults(str(address.ip), host_tables)
        is_planned = str(address.ip) in host_view.addresses
        yield from _check_further_devices(host_view, str(address.ip), host_tables)
        yield from _check_broadcast(address, side, host_tables)
        if is_planned and device in host_tables.address_devices.get(str(address.ip), (device,)):
            yield from _check_local_route(str(address.ip), host_tables)
        network = next(network for network in map(ipaddress.ip_network, side.ranges) if address.ip in network)
        yield CheckedItem("the prefix of an address", text)
        on_link = any(route.on_link and route.table == "main" and route.destination == str(network)
                      for route in host_tables.routes or ())  # fmt: skip
        # a single address has no network of its own: that it reaches no router is reported with the links
        if network.prefixlen < address.network.prefixlen < network.max_prefixlen and not on_link:
            yield RouteFault(
                "hosts out of reach", text,
                f"the prefix of {text} is longer than that of {side.network} ({network}): other hosts and routers of it"
                " are not on the link",
                f"give it the prefix /{network.prefixlen}"
                + (f", then apply the plan: its multipath route {missing}" if is_cut_off else ""),
            )  # fmt: skip
        yield from find_wide_prefix_faults(address, side)


def find_wide_prefix_faults(
    address: ipaddress.IPv4Interface | ipaddress.IPv6Interface, side: FabricSide
) -> Iterator[RouteFault]:
    """An address whose prefix is shorter than that of its network. Ranges that are neighbors may share one prefix."""
    ranges = [ipaddress.ip_network(text, strict=False) for text in side.ranges]
    network = next((item for item in ranges if address.ip in item), None)
    joined = ipaddress.collapse_addresses(item for item in ranges if item.version == address.version)  # type: ignore[type-var]
    if network is not None and address.network.prefixlen < network.prefixlen and address.network not in joined:
        yield RouteFault(
            "prefix too short", str(address),
            f"the prefix of {address} is shorter than that of {side.network} ({network}): this host asks for addresses"
            " outside of the network by ARP or neighbor discovery instead of a router",
            f"give it the prefix /{network.prefixlen}",
        )  # fmt: skip


def find_faults_below(device_name: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of what carries the packets of a device: the devices below a VLAN, its number, and the ports of bonds."""
    below = list_devices_below(device_name, host_tables)
    details, mtu = host_tables.link_details.get(device_name), host_tables.mtus.get(device_name)
    _, separator, number = device_name.rpartition(".")
    if details is not None and details.vlan is not None and separator and number.isdigit():
        yield CheckedItem("the number of a VLAN", device_name)
        if int(number) != details.vlan:
            yield RouteFault(
                "another VLAN", device_name,
                f"{device_name} has the VLAN {details.vlan}, not {number}: its packets reach another network",
                f"ip link del {device_name}, then make it with id {number}, or correct its name",
            )  # fmt: skip
    prefix = device_name.rpartition(".")[0]
    if details is not None and details.vlan is not None and prefix != details.parent and prefix in host_tables.links:
        parent = host_tables.link_details.get(details.parent)
        is_port = parent is not None and parent.master == prefix
        yield RouteFault(
            "VLAN on another device", device_name,
            f"{device_name} is on {details.parent}, not on {prefix}"
            + (f", of which {details.parent} is a port: its packets use this port only" if is_port else ""),
            f"ip link del {device_name}, then ip link add link {prefix} name {device_name} type vlan id {details.vlan}",
        )  # fmt: skip
    if details is not None and details.vlan_protocol == "802.1ad":
        yield RouteFault(
            "another VLAN", device_name,
            f"{device_name} tags its packets by 802.1ad (service tags): switches and hosts that expect 802.1Q drop"
            " them",
            f"ip link del {device_name}, then make it with protocol 802.1Q",
        )  # fmt: skip
    for lower in below:
        yield from find_device_faults(lower, host_tables)
        if mtu is not None and host_tables.mtus.get(lower, mtu) < mtu:
            yield RouteFault(
                "MTU mismatch", lower,
                f"{lower}, which carries {device_name}, takes packets of {host_tables.mtus[lower]} B, {device_name}"
                f" {mtu} B",
                f"ip link set {lower} mtu {mtu}",
            )  # fmt: skip
    for bond in (device_name, *below):
        items = [item for port in list_bond_ports(bond, host_tables) for item in find_device_faults(port, host_tables)]
        port_faults = {item.kind for item in items if isinstance(item, RouteFault)}
        yield from find_bond_port_faults(bond, host_tables, port_faults)
        yield from items


def _check_link_local_address(device: str, address: str, host_tables: HostTables) -> Iterator[RouteFault]:
    """A link-local address of the interface that another machine has too, as clones with one link address."""
    details = host_tables.address_details.get(address, AddressDetails())
    if device in host_tables.address_devices.get(address, ()) and details.is_duplicate:
        yield RouteFault(
            "address not usable", f"{device}: {address}",
            f"another machine on the link of {device} has {address} too (dadfailed), so probably the link address of"
            f" {device}: switches send the packets of both to one of them",
            "give one of both machines another link address",
        )  # fmt: skip


def _check_broadcast(
    address: ipaddress.IPv4Interface | ipaddress.IPv6Interface, side: FabricSide, host_tables: HostTables
) -> Iterator[RouteFault]:
    """A broadcast address that is one of a host of the network."""
    usual = {str(ipaddress.ip_network(text, strict=False).broadcast_address) for text in side.ranges}
    usual.add(str(address.network.broadcast_address))
    broadcast = host_tables.address_details.get(str(address.ip), AddressDetails()).broadcast
    if broadcast and broadcast not in usual and ipaddress.ip_address(broadcast) in address.network:
        yield RouteFault(
            "wrong broadcast address", str(address.ip),
            f"{broadcast} is the broadcast address of {address}: the host of this address cannot be reached",
            f"remove {address} and add it with brd +",
        )  # fmt: skip


def _check_further_devices(host_view: HostView, address: str, host_tables: HostTables) -> Iterator[RouteFault]:
    devices = host_tables.address_devices.get(address, ())
    if len(devices) > 1:
        planned = host_tables.list_devices_with_address(address, list_devices_of_host_class(host_view))
        first = (planned or devices)[0]
        others = [device for device in devices if device != first]
        yield RouteFault(
            "address on two interfaces", address,
            f"{', '.join(others)} {'has' if len(others) == 1 else 'have'} {address} too, besides {first}: packets to"
            " the network may leave by either",
            "; ".join(f"ip addr del {address} dev {device}" for device in others),
        )  # fmt: skip


def _check_local_route(address: str, tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """An address that the table of local addresses lacks, where that table was given."""
    local = [route.destination for route in tables.routes or () if route.kind == "local"]
    if not local:
        return
    yield CheckedItem("the local route of an address", address)
    if not is_address_in_ranges(local, address):
        yield RouteFault(
            "address not local", address,
            f"the table of local addresses lacks {address}: packets to this host are sent on, or dropped",
            "remove the address and add it again",
        )  # fmt: skip


def find_port_faults(device_name: str, host_tables: HostTables) -> Iterator[RouteFault]:
    """A device that is a port of another one."""
    details = host_tables.link_details.get(device_name)
    if details is not None and details.master:
        yield RouteFault(
            "interface is a port", device_name,
            f"{device_name} is a port of {details.master}, a bond, a bridge or a VRF: its addresses and routes"
            " belong to"
            f" {details.master}, and those of a VRF are not in the main table",
            f"name {details.master} in the system file, or take {device_name} out of it",
        )  # fmt: skip


def find_device_faults(device_name: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """A device whose queue or adapter slows it down, or that does not use ARP."""
    yield from find_adapter_faults(device_name, host_tables)
    yield from find_queue_faults(device_name, host_tables)
    details = host_tables.link_details.get(device_name)
    if details is None:
        return
    if details.is_switched_off:
        yield RouteFault(
            "interface down", device_name, f"a program has switched {device_name} off (protodown): it carries nothing",
            f"ask that program (a routing daemon, MLAG), then ip link set {device_name} protodown off",
        )  # fmt: skip
    is_few_bytes = details.gso_bytes is not None and 0 < details.gso_bytes < _FEW_GSO_BYTES
    is_few_segments = details.gso_segments is not None and 0 < details.gso_segments < _FEW_GSO_SEGMENTS
    if is_few_bytes or is_few_segments:
        yield RouteFault(
            "interface slowed down", device_name,
            f"the kernel hands {device_name} at most {details.gso_bytes} B in {details.gso_segments} segments at a time"
            " (gso_max_size, gso_max_segs): each costs the work of a large packet",
            f"ip link set {device_name} gso_max_size 65536 gso_max_segs 65535",
        )  # fmt: skip
    for address, devices in host_tables.address_devices.items():
        if device_name in devices and host_tables.address_details.get(address, AddressDetails()).is_temporary:
            yield RouteFault(
                TEMPORARY_ADDRESS, f"{device_name}: {address}",
                f"the kernel made up {address} for a while (temporary), and prefers it as source: exports and lists of"
                " this host's address do not match it",
                f"sysctl -w net.ipv6.conf.{device_name}.use_tempaddr=0; ip addr del {address} dev {device_name}"
                + describe_advertising_routers(device_name, host_tables),
                versions="last",  # the tables of IPv6 name the router that advertises
            )  # fmt: skip
    yield from find_counter_faults(device_name, host_tables)
    yield from _check_kind(device_name, details)
    yield from find_bond_option_faults(device_name, host_tables)
    if not details.uses_arp and details.kind != "dummy":
        yield RouteFault(
            "ARP not answered", device_name,
            f"{device_name} does not use ARP (NOARP): routers and hosts do not find each other",
            f"ip link set {device_name} arp on",
        )  # fmt: skip


def _check_kind(device_name: str, details: LinkDetails) -> Iterator[RouteFault | CheckedItem]:
    """A device without a port, and a partition of InfiniBand."""
    if details.kind == "dummy":
        yield RouteFault(
            "no network port", device_name,
            f"{device_name} is a dummy device: the kernel drops every packet that it is given",
            f"ip link del {device_name}, and give the port of the network this name",
        )  # fmt: skip
    if details.partition_key is not None:
        yield CheckedItem("the partition of an IPoIB interface", device_name)
        yield from _check_partition(device_name, details.partition_key)


def _check_partition(device_name: str, partition_key: int) -> Iterator[RouteFault]:
    """The key of an IPoIB device: limited members reach no other limited member; ib0.8001 is named by its key."""
    if not partition_key & _FULL_MEMBER:
        yield RouteFault(
            "limited partition member", device_name,
            f"{device_name} has the partition key 0x{partition_key:04x}, that of a limited member: it reaches full"
            " members only, no"
            " other limited one",
            f"make it a full member in the subnet manager (key 0x{partition_key | _FULL_MEMBER:04x}, =full)",
        )  # fmt: skip
    name_end = device_name.rpartition(".")[2] if "." in device_name else ""
    if re.fullmatch("[0-9a-f]{4}", name_end) and (int(name_end, 16) ^ partition_key) & ~_FULL_MEMBER:
        yield RouteFault(
            "another partition", device_name,
            f"{device_name} has the partition key 0x{partition_key:04x}, not 0x{name_end}: its packets reach another"
            " partition",
            f"ip link del {device_name}, then make it with pkey 0x{name_end}, or correct its name",
        )  # fmt: skip


def find_address_faults(address: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """An address that the kernel does not use."""
    details = host_tables.address_details.get(address, AddressDetails())
    if details.is_duplicate:
        reason = "dadfailed: another machine has this address too (duplicate): the kernel does not use it"
        remedy = "find the other machine, then give one of them another address"
    elif details.is_tentative:
        reason = "tentative: the kernel still asks whether another machine has it, and does not use it"
        remedy = "look again in some seconds; where it stays, look for a duplicate or a link without carrier"
    elif details.scope in _NARROW_SCOPES:
        part = "the host" if details.scope == "host" else "this link"
        reason = f"of scope {details.scope}: the kernel does not use it towards networks beyond {part}"
        remedy = "add it with scope global"
    elif details.is_leased and details.remaining_s is not None and details.remaining_s <= _SHORT_LEASE_S:
        yield RouteFault(
            "address expires", address,
            f"{address} ends in {details.remaining_s} s, with the routes by it (valid_lft): its lease has not been"
            " renewed, which is due at half of its time",
            "look at the DHCP client and server (journalctl), or give the interface this address without a lease",
        )  # fmt: skip
        return
    elif details.is_deprecated:
        reason, remedy = "deprecated: new connections take another source address", "give it a lifetime, or remove it"
    else:
        return
    yield RouteFault("address not usable", address, f"{address} is {reason}", remedy)
