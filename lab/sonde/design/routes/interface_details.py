# SPDX-License-Identifier: Apache-2.0
"""Details of the interfaces of a host and of their addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

# Operational states (RFC 2863) of a link that carries nothing.
_IDLE_STATES = ("DOWN", "LOWERLAYERDOWN", "DORMANT", "NOTPRESENT")


@dataclass(frozen=True)
class LinkDetails:
    """More about one device: the bond, bridge or VRF that it is a port of, its queueing discipline and the length of
    its queue in packets, its link address, whether it uses ARP, whether a program switched it off (protodown), whether
    it is a port of a bond, whether it sends multicast, and the most bytes and segments of a packet that it is given
    (GSO; None: unknown). `parent` is the device below a VLAN, `vlan` its number and `vlan_protocol` its kind of tag.
    `aggregator` is the number of the links that a bond uses by LACP, or of those that a port belongs to (None: unknown
    or without LACP). `lacp_partner` is the link address of the switch that a bond agreed with ("": unknown).
    `has_port_failed`: the bond calls its port down (MII). `kind` is the kind of a virtual device ("": unknown),
    `bond_mode` the mode of a bond and `watches_ports` whether it looks for dead ports (None: unknown), `partition_key`
    the key of an IPoIB device and `link_failures` how often a bond has lost the link of the port (None: unknown).
    `bond_options` are options of a bond by the names of `ip -d link`, `lacp_state` the bits of a port's state in LACP
    (None: unknown), and `counters` packets and errors by the names of the kernel (`ip -s`). `permanent_address` is the
    link address of its maker ("": unknown, or the one in use); `lacks_carrier`: it is up, but its port has no link.
    `path` is that of its adapter as udev writes it, as "pci-0000:5e:00.0" ("": unknown), and `packet_program`
    the name or number of the program that gets each received packet first (XDP)."""

    master: str = ""
    queue: str = ""
    link_address: str = ""
    uses_arp: bool = True
    queue_length: int | None = None
    is_switched_off: bool = False
    is_bond_port: bool = False
    has_multicast: bool = True
    gso_bytes: int | None = None
    gso_segments: int | None = None
    parent: str = ""
    vlan: int | None = None
    vlan_protocol: str = ""
    aggregator: int | None = None
    lacp_partner: str = ""
    has_port_failed: bool = False
    kind: str = ""
    bond_mode: str = ""
    watches_ports: bool | None = None
    partition_key: int | None = None
    link_failures: int | None = None
    bond_options: Mapping[str, str] = field(default_factory=dict)
    lacp_state: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    permanent_address: str = ""
    lacks_carrier: bool = False
    path: str = ""
    packet_program: str = ""


@dataclass(frozen=True)
class AddressDetails:
    """More about one address: whether another machine has it too (dadfailed), whether the kernel still asks for that
    (tentative), whether new connections avoid it (deprecated), whether it has a lifetime (dynamic), whether the kernel
    made it up for a while (temporary, RFC 8981), the seconds until it ends (None: never, or unknown), its scope
    and its broadcast address ("": unknown)."""

    is_duplicate: bool = False
    is_tentative: bool = False
    is_deprecated: bool = False
    is_leased: bool = False
    is_temporary: bool = False
    remaining_s: int | None = None
    scope: str = ""
    broadcast: str = ""


def describe_link_state(link_flags: Collection[str], operational_state: str) -> str:
    """ "up" for a link with a carrier that may carry packets, else "down". `operational_state` is its operational
    state."""
    return "up" if "LOWER_UP" in link_flags and operational_state.upper() not in _IDLE_STATES else "down"


def make_adapter_path(bus: str, bus_address: str) -> str:
    """The path of an adapter of PCI as udev writes it (ID_PATH); "" for other buses."""
    return f"pci-{bus_address}" if bus == "pci" and bus_address else ""


def map_address_devices(addresses_and_devices: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The devices of each address, in the order of the pairs."""
    devices: dict[str, tuple[str, ...]] = {}
    for address, device in addresses_and_devices:
        if device not in devices.get(address, ()):
            devices[address] = (*devices.get(address, ()), device)
    return devices
