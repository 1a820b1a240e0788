# SPDX-License-Identifier: Apache-2.0
"""Finds configuration files that take a port from its bond, that name a primary port that the bond does not have,
another mode, or ARP targets outside of its networks.

Source: Linux Documentation/networking/bonding.rst, "primary".
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.bond_options import BOND_MODES, SPREADING_MODES, name_bond_mode
from sonde.design.routes.check_arp_monitor import SILENT_TARGET, list_networks
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.file_settings import BOND, MASTER, FileSetting
from sonde.design.routes.host_tables import HostTables, find_ip_version
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.link_usability import list_bond_ports

# Other values of NetworkManager may be the name or the UUID of a profile.
_DEVICE_PATTERN = re.compile(r"(?:bond|team|br)\d+")


def find_port_file_faults(devices: Collection[str], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the files of some bonds and of their ports, of which `host_tables` have the state now."""
    for setting in host_tables.file_settings:
        if setting.device not in devices:
            continue
        if setting.option == MASTER:
            details = host_tables.link_details.get(setting.device, LinkDetails())
            is_device = _DEVICE_PATTERN.fullmatch(setting.value) is not None or setting.value in host_tables.links
            if not details.is_bond_port or not details.master or not is_device:
                continue
            yield CheckedItem("the bond of a port in a file", setting.device)
            if setting.value != details.master:
                yield RouteFault(
                    "port of another bond", setting.origin,
                    f"{setting.device} is a port of {details.master}; after the next start it is one of"
                    f" {setting.value}, and {details.master} lacks this port",
                    f"write {details.master} there",
                )  # fmt: skip
        elif setting.option == f"{BOND} mode":
            yield from _check_mode(setting, host_tables)
        elif setting.option == f"{BOND} arp_ip_target":
            yield from _check_targets(setting, host_tables)
        elif setting.option == f"{BOND} primary":
            ports = list_bond_ports(setting.device, host_tables)
            if not ports:
                continue
            yield CheckedItem("the primary port of a bond in a file", setting.device)
            if setting.value not in ports:
                yield RouteFault(
                    "primary is no port", setting.origin,
                    f"{setting.device} is to prefer {setting.value} (primary), which is none of its ports"
                    f" ({', '.join(ports)}): it prefers none",
                    "write the port that it should prefer, or remove primary",
                )  # fmt: skip


def _check_mode(setting: FileSetting, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Another mode than the bond has now; modes that are a fault by themselves are reported as such."""
    observed = host_tables.link_details.get(setting.device, LinkDetails()).bond_mode
    mode = name_bond_mode(setting.value)
    sound_modes = [each for each in BOND_MODES if each not in SPREADING_MODES]
    if observed not in sound_modes:
        return
    yield CheckedItem("the mode of a bond in a file", setting.device)
    if mode in sound_modes and mode != observed:
        yield RouteFault(
            "another mode in a file", setting.origin,
            f"{setting.device} has the mode {observed}; after the next start it has {mode}, for which the switch has"
            " other settings",
            f"write {observed} there, or change the mode of the bond and its switch ports now",
        )  # fmt: skip


def _check_targets(setting: FileSetting, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Addresses that a bond is to ask by ARP, all outside of its networks."""
    targets = [text.lstrip("+-") for text in setting.value.split(",")]
    networks = list_networks(setting.device, 4, host_tables)
    if not networks or not all(find_ip_version(target) == 4 for target in targets):
        return
    yield CheckedItem("the ARP targets of a bond in a file", setting.device)
    if not any(ipaddress.ip_address(target) in network for target in targets for network in networks):
        yield RouteFault(
            SILENT_TARGET, setting.origin,
            f"{setting.device} is to ask {', '.join(targets)} by ARP whether its ports work, on no network of"
            f" {setting.device} ({', '.join(map(str, networks))}): without an answer it takes sound ports out of use",
            "write the address of a router or server of this network that answers, or watch the link (miimon=100)",
            versions="first",
        )  # fmt: skip
