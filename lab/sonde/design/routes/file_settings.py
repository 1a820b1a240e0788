# SPDX-License-Identifier: Apache-2.0
"""Reads what configuration files set on an interface, with the line of each value: MTU, mode of IPoIB, temporary
addresses of IPv6 and options of bonds.

Source: systemd.network(5), systemd.netdev(5), nm-settings-keyfile(5); sysconfig.txt of initscripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sonde.design.routes.bond_options import convert_networkd_options
from sonde.design.routes.output_texts import split_shell_words

MTU, MODE, IPV6_MTU, PRIVACY, VLAN, MASTER, BOND = "mtu", "mode", "ipv6 mtu", "ipv6 privacy", "vlan", "master", "bond"
CHILD = "child"  # a VLAN that networkd creates on an interface
_TRUE = ("yes", "true", "1", "on")
# The options of files by format, section and name; of ifcfg- files without a section.
_OPTIONS = {
    ("networkd", "Link", "MTUBytes"): MTU, ("networkd", "NetDev", "MTUBytes"): MTU,
    ("networkd", "IPoIB", "Mode"): MODE, ("networkd", "Network", "IPv6MTUBytes"): IPV6_MTU,
    ("networkd", "Network", "IPv6PrivacyExtensions"): PRIVACY,
    ("networkd", "VLAN", "Id"): VLAN, ("networkmanager", "vlan", "id"): VLAN, ("network-scripts", "", "VLAN_ID"): VLAN,
    ("networkd", "Network", "Bond"): MASTER, ("networkmanager", "connection", "master"): MASTER,
    ("networkmanager", "connection", "controller"): MASTER, ("network-scripts", "", "MASTER"): MASTER,
    ("networkmanager", "ethernet", "mtu"): MTU, ("networkmanager", "infiniband", "mtu"): MTU,
    ("networkmanager", "infiniband", "transport-mode"): MODE, ("networkmanager", "ipv6", "mtu"): IPV6_MTU,
    ("networkmanager", "ipv6", "ip6-privacy"): PRIVACY,
    ("network-scripts", "", "MTU"): MTU, ("network-scripts", "", "CONNECTED_MODE"): MODE,
    ("network-scripts", "", "IPV6_MTU"): IPV6_MTU, ("network-scripts", "", "IPV6_PRIVACY"): PRIVACY,
}  # fmt: skip
# Values of options as the kernel names them; those of other options are taken as they are.
_MODES = {"yes": "connected", "no": "datagram"}
_PRIVACY = {"prefer-public": "1", "rfc3041": "2", **dict.fromkeys(_TRUE, "2"), "1": "1"}
_DEVICE_NAMES = (("Match", "Name"), ("NetDev", "Name"), ("connection", "interface-name"), ("Match", "OriginalName"))
_SIMPLE_NAME_PATTERN = re.compile(r"[^\s*?\[\]!]+")


@dataclass(frozen=True)
class FileSetting:
    """One value that a configuration file sets on an interface. `option` is a constant of this module, for bonds with
    the kernel's name of the option ("bond miimon"); `origin` is the file, the number of the line and its text."""

    device: str
    option: str
    value: str
    origin: str


def read_file_settings(file_text: str, file_name: str, file_format: str) -> Iterator[FileSetting]:
    """The settings in a configuration file of a format of `sonde route plan`; of those for several devices
    only VLANs and MTUs."""
    base_name = file_name.rpartition("/")[2]
    lines = list(_iterate_lines(file_text, file_format))
    device = next((value for _, section, name, value, _ in lines if (section, name) in _DEVICE_NAMES), "")
    if base_name.endswith(".link"):
        device = next((value for _, section, name, value, _ in lines if (section, name) == ("Link", "Name")), device)
    if file_format == "network-scripts":
        names = [value for _, _, name, value, _ in lines if name == "DEVICE"]
        device = names[-1] if names else base_name.rpartition("ifcfg-")[2]
    is_matched = base_name.endswith(".network") and not device  # chosen by its link address or other options
    for number, section, name, value, text in lines:
        # also of drop-ins, without a device, and of files for several
        if (file_format, section, name) == ("networkd", "Network", "VLAN"):
            yield FileSetting(device, CHILD, value, f"{base_name}, line {number} ({text})")
        elif is_matched:
            continue
        elif _OPTIONS.get((file_format, section, name)) == MTU and not _SIMPLE_NAME_PATTERN.fullmatch(device):
            yield FileSetting(device, MTU, value, f"{base_name}, line {number} ({text})")
    if not _SIMPLE_NAME_PATTERN.fullmatch(device) and not is_matched:
        return
    for number, section, name, value, text in lines:
        origin = f"{base_name}, line {number} ({text})"
        if name in ("BONDING_OPTS", "BONDING_MODULE_OPTS") and file_format == "network-scripts":
            for pair in value.split():
                bond_option, _, bond_value = pair.partition("=")
                yield FileSetting(device, f"{BOND} {bond_option}", bond_value, origin)
        elif (file_format, section) == ("networkmanager", "bond"):
            yield FileSetting(device, f"{BOND} {name}", value, origin)
        elif (file_format, section) == ("networkd", "Bond"):
            for bond_option, bond_value in convert_networkd_options({name: value}).items():
                yield FileSetting(device, f"{BOND} {bond_option}", bond_value, origin)
        elif option := _OPTIONS.get((file_format, section, name)):
            yield FileSetting(device, option, _convert_value(option, value), origin)


def _convert_value(option: str, value: str) -> str:
    if option == MODE:
        return _MODES.get(value.lower(), value)
    if option == PRIVACY:
        return _PRIVACY.get(value.lower(), value)
    return value


def _iterate_lines(file_text: str, file_format: str) -> Iterator[tuple[int, str, str, str, str]]:
    """The number, the section, the name, the value and the text of each assignment."""
    section = ""
    for number, line in enumerate(file_text.splitlines(), start=1):
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1]
        elif "=" in text and not text.startswith(("#", ";")):
            name, _, value = text.partition("=")
            if file_format == "network-scripts":
                value = " ".join(split_shell_words(value, skips_comments=True))
            yield number, section, name.strip(), value.strip(), text
