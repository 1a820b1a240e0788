# SPDX-License-Identifier: Apache-2.0
"""Checks bonds: their ports and what LACP says of them, how they spread packets, and how they notice failures.

Source: Linux Documentation/networking/bonding.rst; states of LACP: IEEE 802.1AX, actor state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.bond_options import BOND_MODES, SPREADING_MODES
from sonde.design.routes.check_adapters import find_differences_of_ports
from sonde.design.routes.check_arp_monitor import MANY_LINK_FAILURES, find_arp_target_faults, list_arp_targets
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.link_usability import describe_link_remedy, is_bond_without_ports, list_bond_ports

_HASHING_MODES = ("802.3ad", "balance-xor")
# Hash policies that no port of a connection counts for.
_LINK_ADDRESS_POLICIES = ("layer2", "vlan+srcmac")
_SLOW_INTERVAL_MS = 1000
_LONG_DELAY_MS = 5000
_DISTRIBUTING = 0x20  # of the LACP state of a port


def find_bond_port_faults(
    device_name: str, host_tables: HostTables, port_faults: Collection[str]
) -> Iterator[RouteFault | CheckedItem]:
    """Ports of a bond that are down or that it does not use, or that take shorter packets than the bond sends.
    `port_faults` are the kinds of faults that its ports have by themselves."""
    yield from _check_aggregators(device_name, host_tables)
    yield from find_differences_of_ports(
        device_name, list_bond_ports(device_name, host_tables), host_tables, port_faults
    )
    is_target_silent = any(find_arp_target_faults(device_name, host_tables))  # which explains the states of its ports
    for port in list_bond_ports(device_name, host_tables):
        yield CheckedItem("a port of a bond", port)
        yield from _check_port_state(device_name, port, host_tables, is_target_silent)
        mtu, bond_mtu = host_tables.mtus.get(port), host_tables.mtus.get(device_name)
        if mtu is not None and bond_mtu is not None and mtu < bond_mtu:
            yield RouteFault(
                "MTU mismatch", port,
                f"{port}, a port of {device_name}, takes packets of {mtu} B, {device_name} {bond_mtu} B",
                f"ip link set {port} mtu {bond_mtu}",
            )  # fmt: skip


def _check_port_state(bond: str, port: str, host_tables: HostTables, is_target_silent: bool) -> Iterator[RouteFault]:
    """A port that is down or that the bond lost often."""
    details, is_down = host_tables.link_details[port], host_tables.links.get(port) == "down"
    targets = ", ".join(list_arp_targets(bond, host_tables))
    if is_down:
        yield RouteFault(
            "bond port down", port, f"{port}, a port of {bond}, is down: the bond has lost this link",
            describe_link_remedy(port, host_tables),
        )  # fmt: skip
    elif details.has_port_failed and not is_target_silent:
        state = f"gets no answer of {targets} by ARP" if targets else "the bond calls it down (mii_status)"
        remedy = "look at the VLAN and the port channel of its switch port" if targets else (
            f"ip link set {port} up, or look at the cable and the switch")  # fmt: skip
        yield RouteFault(
            "bond port down", port,
            f"{port}, a port of {bond}, has a link, but {state}: the bond has lost this link", remedy,
        )  # fmt: skip
    failures = details.link_failures
    if failures is not None and failures >= MANY_LINK_FAILURES and not is_target_silent:
        remedy = "look at the cable, the transceiver and the port of the switch (ethtool -S, ethtool -m)"
        watched = f"look at {targets}, which the bond asks by ARP (arp_ip_target): it may be slow or away; else "
        yield RouteFault(
            "bond port unstable", port,
            f"{bond} has lost the link of {port} {failures} times (link_failure_count): connections stall"
            " each time until they use another port",
            (watched if targets else "") + remedy,
        )  # fmt: skip


def _check_aggregators(bond: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Ports that LACP has not joined to the links that the bond uses, and a bond whose switch does not speak LACP."""
    details = host_tables.link_details.get(bond)
    ports = {
        port: host_tables.link_details[port].aggregator
        for port in list_bond_ports(bond, host_tables)
        if host_tables.links.get(port) != "down" and not host_tables.link_details[port].has_port_failed
    }
    numbers = [number for number in ports.values() if number is not None]
    if details is None or not numbers:
        return
    yield CheckedItem("the aggregator of a bond", bond)
    if details.lacp_partner and not details.lacp_partner.strip("0:"):
        yield RouteFault(
            "bond without a partner", bond,
            f"no switch has answered {bond} by LACP (partner {details.lacp_partner}): it sends by one port only, or by"
            " none",
            "make the ports of the switch one port channel with LACP, or choose another mode of the bond",
        )  # fmt: skip
        return
    active = details.aggregator if details.aggregator is not None else max(set(numbers), key=numbers.count)
    idle = [
        port for port, number in ports.items()
        if number == active and (state := host_tables.link_details[port].lacp_state) is not None
        and not state & _DISTRIBUTING
    ]  # fmt: skip
    if idle and len(idle) < len(ports):
        yield RouteFault(
            "bond port not used", ", ".join(idle),
            f"LACP does not let {bond} send by {', '.join(idle)} (not distributing): its partner does not answer there"
            " or has other settings",
            "look at the port channel of the switch, and at the cable: it may lead to another switch",
        )  # fmt: skip
    unused = [port for port, number in ports.items() if number is not None and number != active]
    if unused:
        yield RouteFault(
            "bond port not used", ", ".join(unused),
            f"{', '.join(f'{port} is in aggregator {ports[port]}' for port in unused)}, and {bond} sends by aggregator"
            f" {active} only: the bond has lost {'this link' if len(unused) == 1 else 'these links'}",
            "look at the port channel of the switch: LACP joins ports of one channel with one speed",
        )  # fmt: skip


def find_bond_option_faults(device_name: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """How a bond uses and watches its ports."""
    details = host_tables.link_details.get(device_name)
    if details is None or not details.bond_mode:
        return
    yield CheckedItem("the mode of a bond", device_name)
    if details.bond_mode in SPREADING_MODES:
        yield RouteFault(
            "bond mode", device_name,
            f"{device_name} has the mode {details.bond_mode}: packets of one connection leave by several ports and"
            " arrive out of order or twice, which TCP takes for losses",
            f"ip link set {device_name} type bond mode 802.3ad with a port channel of the switch, or mode"
            " active-backup",
        )  # fmt: skip
    elif details.bond_mode not in BOND_MODES:
        yield RouteFault(
            "bond mode", device_name,
            f"{device_name} has the mode {details.bond_mode}, which the kernel does not know: it then has another"
            " mode, or no port",
            f"write one of {', '.join(BOND_MODES)}",
        )  # fmt: skip
    if details.watches_ports is False:
        yield RouteFault(
            "bond ports not watched", device_name,
            f"{device_name} looks for dead ports neither by their link nor by ARP (miimon 0, arp_interval 0): it"
            " sends to a port after its cable has failed",
            f"ip link set {device_name} type bond miimon 100",
        )  # fmt: skip
    yield from find_arp_target_faults(device_name, host_tables)
    ports = list_bond_ports(device_name, host_tables)
    yield from _check_port_count(device_name, details, ports, host_tables)
    yield from _check_options(device_name, details, len(ports))


def _check_port_count(
    bond: str, details: LinkDetails, ports: Sequence[str], host_tables: HostTables
) -> Iterator[RouteFault]:
    """A bond without ports, or with a single one although an interface of its kind is up and unused."""
    if is_bond_without_ports(bond, host_tables):
        yield RouteFault(
            "bond without ports", bond, f"{bond} has no port: nothing carries its packets",
            f"ip link set PORT master {bond} for each port of the network, and correct the files that make the bond",
        )  # fmt: skip
    if len(ports) != 1:
        return
    stem = ports[0].rstrip("0123456789")
    used = {*(host_tables.link_details[name].parent for name in host_tables.link_details), *host_tables.planned_devices}
    with_addresses = {device for devices in host_tables.address_devices.values() for device in devices}
    spare = next(
        (
            name
            for name, other in host_tables.link_details.items()
            if name != ports[0] and name.rstrip("0123456789") == stem and host_tables.links.get(name) == "up"
            and not (other.master or other.kind or name in used or name in with_addresses)
        ),
        "",
    )  # fmt: skip
    if spare:
        yield RouteFault(
            "bond with one port", bond,
            f"{bond} has the port {ports[0]} only, and {spare} is up without a bond or an address: the bond has lost"
            " this link",
            f"ip link set {spare} down; ip link set {spare} master {bond}; ip link set {spare} up, or take it down"
            " where it is a spare",
        )  # fmt: skip


def _check_options(bond: str, details: LinkDetails, port_count: int) -> Iterator[RouteFault]:
    options = details.bond_options
    policy = options.get("xmit_hash_policy", "")
    if policy in _LINK_ADDRESS_POLICIES and details.bond_mode in _HASHING_MODES and port_count > 1:
        yield RouteFault(
            "bond hash by address", bond,
            f"{bond} chooses a port by link addresses alone (xmit_hash_policy {policy}): all packets to one router or"
            " host leave by one port",
            f"ip link set {bond} type bond xmit_hash_policy layer3+4",
        )  # fmt: skip
    if details.bond_mode == "active-backup" and _read_option(options, "num_peer_notif", "num_grat_arp") == 0:
        yield RouteFault(
            "bond change not announced", bond,
            f"{bond} announces its address nowhere when it changes its port (num_grat_arp 0): switches send to the"
            " failed port until their entries end",
            f"ip link set {bond} type bond num_grat_arp 1",
        )  # fmt: skip
    for name, limit in (("miimon", _SLOW_INTERVAL_MS), ("downdelay", _LONG_DELAY_MS)):
        milliseconds = _read_option(options, name)
        if milliseconds is not None and milliseconds > limit:
            yield RouteFault(
                "dead ports are noticed late", bond,
                f"{bond} uses a port up to {milliseconds} ms after its link has failed ({name})",
                f"ip link set {bond} type bond {name} {100 if name == 'miimon' else 0}",
            )  # fmt: skip
    least = _read_option(options, "min_links")
    if least is not None and least > port_count > 0:
        yield RouteFault(
            "bond needs more ports", bond,
            f"{bond} carries packets only while {least} ports are up (min_links), and it has {port_count}",
            f"ip link set {bond} type bond min_links 1",
        )  # fmt: skip
    if _read_option(options, "all_slaves_active"):
        yield RouteFault(
            "packets received twice", bond,
            f"{bond} also takes the packets that reach its unused ports (all_slaves_active 1): broadcasts, as of ARP,"
            " arrive twice",
            f"ip link set {bond} type bond all_slaves_active 0",
        )  # fmt: skip


def _read_option(options: Mapping[str, str], *names: str) -> int | None:
    """The number of an option by the first of its names that is printed."""
    text = next((options[name] for name in names if name in options), "")
    return int(text) if text.isdigit() else None
