# SPDX-License-Identifier: Apache-2.0
"""Checks the addresses that a bond asks by ARP to learn whether its ports work (arp_interval, arp_ip_target).

Source: Linux Documentation/networking/bonding.rst, arp_interval, arp_ip_target and arp_all_targets.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from sonde.design.routes.check_neighbors import UNANSWERED_STATES
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, find_ip_version
from sonde.design.routes.link_usability import list_bond_ports, list_devices_below

# A bond loses the link of a port when its switch starts again; one that loses it more often has another reason.
MANY_LINK_FAILURES = 10
SILENT_TARGET = "bond asks a silent address"
_ANSWERING_STATES = ("reachable", "stale", "delay", "probe")


def list_arp_targets(bond: str, host_tables: HostTables) -> tuple[str, ...]:
    """The addresses that a bond asks by ARP; none where it watches its ports by their link."""
    options = host_tables.link_details[bond].bond_options if bond in host_tables.link_details else {}
    if options.get("arp_interval", "0") in ("", "0") or options.get("miimon", "0") not in ("", "0"):
        return ()
    texts = options.get("arp_ip_target", "").split(",")
    return tuple(text for text in texts if find_ip_version(text) is not None)


def find_arp_target_faults(bond: str, host_tables: HostTables) -> Iterator[RouteFault]:
    """Targets that do not answer, where that takes ports out of use: the bond then calls ports with a link down."""
    options = host_tables.link_details[bond].bond_options if bond in host_tables.link_details else {}
    targets = list_arp_targets(bond, host_tables)
    if not targets:
        if "arp_ip_target" in options and options.get("arp_interval", "0") not in ("", "0"):
            yield from _describe_missing_targets(bond, options["arp_ip_target"], options.get("miimon", "0"))
        return
    reasons = {target: reason for target in targets if (reason := _explain_silence(bond, target, host_tables))}
    if not reasons or (len(reasons) < len(targets) and options.get("arp_all_targets") != "all"):
        return
    symptoms = "; ".join(_list_symptoms(bond, host_tables))
    planned = _choose_target(bond, host_tables)
    yield RouteFault(
        SILENT_TARGET, f"{bond}: arp_ip_target {', '.join(reasons)}",
        f"{bond} asks {', '.join(reasons)} by ARP whether its ports work (arp_interval {options['arp_interval']} ms),"
        f" and {next(iter(reasons.values()))}: without an answer it takes ports with a sound link out of use"
        + (f" ({symptoms})" if symptoms else ""),
        f"ip link set {bond} type bond arp_ip_target {planned}; or watch the link instead (arp_interval 0 miimon 100)",
        versions="first",
    )  # fmt: skip


def _describe_missing_targets(bond: str, target_text: str, link_interval: str) -> Iterator[RouteFault]:
    if link_interval in ("", "0") and target_text.strip("[]") in ("", "None"):
        yield RouteFault(
            "bond ports not watched", bond,
            f"{bond} is set to ask by ARP whether its ports work (arp_interval), and has no address to ask"
            " (arp_ip_target): it sends to a port after its cable has failed",
            f"ip link set {bond} type bond arp_interval 0 miimon 100",
        )  # fmt: skip


def _explain_silence(bond: str, target: str, host_tables: HostTables) -> str:
    """Why a target does not answer; "" where it may. An address that the system file lacks may be that of a switch, so
    it needs a port that is out of use besides."""
    version = ipaddress.ip_address(target).version
    if target in host_tables.address_devices:
        return f"{target} is an address of this host itself"
    networks = list_networks(bond, version, host_tables)
    if networks and not any(ipaddress.ip_address(target) in network for network in networks):
        return f"{target} is on no network of {bond} ({', '.join(map(str, networks))})"
    states = {neighbor.state for neighbor in host_tables.all_neighbors if neighbor.address == target}
    if states & {*_ANSWERING_STATES}:
        return ""
    if states & {*UNANSWERED_STATES}:
        return f"{target} does not answer (neighbor {min(states)})"
    if target in host_tables.planned_addresses or not host_tables.planned_addresses:
        return ""
    if any(_list_symptoms(bond, host_tables)):
        return f"the system file has no host and no router with {target}"
    return ""


def list_networks(
    bond: str, version: int, host_tables: HostTables
) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The networks of the addresses of a bond and of its VLANs."""
    devices = [device for device in host_tables.link_details
               if device == bond or bond in list_devices_below(device, host_tables)]  # fmt: skip
    interfaces = [ipaddress.ip_interface(text) for text in host_tables.addresses or ()]
    return [
        interface.network for interface in interfaces
        if interface.version == version and not interface.is_link_local
        and host_tables.list_devices_with_address(str(interface.ip), devices)
    ]  # fmt: skip


def _list_symptoms(bond: str, host_tables: HostTables) -> Iterator[str]:
    """What the ports of a bond show while its targets do not answer."""
    for port in list_bond_ports(bond, host_tables):
        details = host_tables.link_details[port]
        if host_tables.links.get(port) == "down":
            continue
        if details.link_failures is not None and details.link_failures >= MANY_LINK_FAILURES:
            yield f"{port} was lost {details.link_failures} times"
        elif details.has_port_failed:
            yield f"{port} is called down"


def _choose_target(bond: str, host_tables: HostTables) -> str:
    """A neighbor of the plan on a network of the bond that answers."""
    answering: Sequence[str] = [
        neighbor.address
        for neighbor in host_tables.all_neighbors
        if neighbor.state in _ANSWERING_STATES and neighbor.address in host_tables.planned_addresses
    ]
    networks = list_networks(bond, 4, host_tables)
    usable = [address for address in answering if any(ipaddress.ip_address(address) in each for each in networks)]
    return f"{usable[0]}, which answers" if usable else "ADDRESS, of a router or server of this network that answers"
