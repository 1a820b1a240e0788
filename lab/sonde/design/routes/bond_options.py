# SPDX-License-Identifier: Apache-2.0
"""Options of bonds and VLANs in configuration files, by the kernel's names.

Source: Linux Documentation/networking/bonding.rst; systemd.netdev(5), "[Bond]"; netplan-yaml(5), "Properties for device
type bonds:".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sonde.design.routes.interface_details import LinkDetails

# Modes of bonds by their numbers.
BOND_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
# Values of xmit_hash_policy by their numbers.
HASH_POLICIES = ("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac")
# Modes of bonds that send packets of one connection by several ports.
SPREADING_MODES = ("balance-rr", "broadcast")
_NETWORKD_NAMES = {
    "Mode": "mode", "TransmitHashPolicy": "xmit_hash_policy", "LACPTransmitRate": "lacp_rate",
    "MIIMonitorSec": "miimon", "UpDelaySec": "updelay", "DownDelaySec": "downdelay", "MinLinks": "min_links",
    "ARPIntervalSec": "arp_interval", "ARPIPTargets": "arp_ip_target", "AllSlavesActive": "all_slaves_active",
    "GratuitousARP": "num_grat_arp",
}  # fmt: skip
_NETPLAN_NAMES = {
    "mode": "mode", "transmit-hash-policy": "xmit_hash_policy", "lacp-rate": "lacp_rate",
    "mii-monitor-interval": "miimon", "up-delay": "updelay", "down-delay": "downdelay", "min-links": "min_links",
    "arp-interval": "arp_interval", "arp-ip-targets": "arp_ip_target", "primary": "primary",
    "all-members-active": "all_slaves_active", "all-slaves-active": "all_slaves_active",
    "gratuitous-arp": "num_grat_arp", "gratuitious-arp": "num_grat_arp",
}  # fmt: skip
# The kernel's names of the options that files may set.
BOND_OPTION_NAMES = frozenset(_NETPLAN_NAMES.values())
_TIMES = ("miimon", "updelay", "downdelay", "arp_interval")
# Milliseconds of the units of systemd.time(7).
_UNITS_MS = {"us": 0.001, "ms": 1.0, "": 1000.0, "s": 1000.0, "sec": 1000.0, "min": 60_000.0, "m": 60_000.0}
_BOOLEANS = {"yes": "1", "true": "1", "no": "0", "false": "0"}


def convert_networkd_options(values: Mapping[str, str]) -> dict[str, str]:
    """The options in the section [Bond] of a .netdev file, whose times are in seconds without a unit."""
    options = {_NETWORKD_NAMES[name]: value for name, value in values.items() if name in _NETWORKD_NAMES}
    return _convert_values(options, "")


def convert_netplan_options(values: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a bond of netplan, whose times are in milliseconds without a unit."""
    options = {_NETPLAN_NAMES[name]: value for name, value in values.items() if name in _NETPLAN_NAMES}
    return _convert_values(options, "ms")


def _convert_values(options: Mapping[str, str], default_unit: str) -> dict[str, str]:
    return {
        name: _convert_time(value, default_unit)
        if name in _TIMES
        else ",".join(value.split())
        if name == "arp_ip_target"
        else _BOOLEANS.get(value.lower(), value)
        for name, value in options.items()
    }


def _convert_time(time_text: str, default_unit: str) -> str:
    """Milliseconds; a text that is no time of one unit is unchanged."""
    match = re.fullmatch(r"([\d.]+)\s*([a-z]*)", time_text)
    unit = (match[2] or default_unit) if match else ""
    return str(round(float(match[1]) * _UNITS_MS[unit])) if match and unit in _UNITS_MS else time_text


def make_bond_details(options: Mapping[str, str]) -> LinkDetails:
    """A bond by its options. LACP looks for dead ports by itself."""
    mode = name_bond_mode(options.get("mode", "0"))
    intervals = [options.get(name, "0") for name in ("miimon", "arp_interval")]
    is_watching = any(interval != "0" for interval in intervals) or mode == "802.3ad"
    return LinkDetails(kind="bond", bond_mode=mode, watches_ports=is_watching, bond_options=dict(options))


def name_bond_mode(mode_text: str) -> str:
    """The name of a mode that may be given by its number."""
    is_number = mode_text.isdigit() and int(mode_text) < len(BOND_MODES)
    return BOND_MODES[int(mode_text)] if is_number else mode_text


def make_vlan_details(parent: str, number_text: str) -> LinkDetails | None:
    """A VLAN by the device below it and its number; None for a number that is none."""
    if not number_text.isdigit():
        return None
    return LinkDetails(kind="vlan", parent=parent, vlan=int(number_text))
