# SPDX-License-Identifier: Apache-2.0
"""Reads files that configure interfaces and modules without routes: ifcfg- files of network-scripts, files of
systemd-networkd and netplan, and options of modules of LNet and of bonds in modprobe.d."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sonde.design.routes.bond_modules import MODULE_FORMAT, make_details_of_aliases, read_bonding_options
from sonde.design.routes.bond_options import convert_networkd_options, make_bond_details, make_vlan_details
from sonde.design.routes.configuration_reader import iterate_ini_sections, list_inactive_profiles
from sonde.design.routes.debian_interfaces import is_interfaces_file, parse_interfaces_file
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.inactive_profile import InactiveProfile
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.interface_names import InterfaceName, parse_link_file
from sonde.design.routes.lnet_module_routes import parse_module_routes
from sonde.design.routes.netplan_reader import is_netplan_file, parse_netplan_file
from sonde.design.routes.output_texts import split_shell_words

_NETWORK_SCRIPT_PATTERN = re.compile(r"^(?:DEVICE|ONBOOT|BOOTPROTO)=", re.MULTILINE)
_NETWORKD_PATTERN = re.compile(r"^\[(?:Match|NetDev|Network|Link|Address)\]\s*$", re.MULTILINE)
_MODULE_PATTERN = re.compile(r"^(?:options|alias|blacklist|install|softdep)\s+\w", re.MULTILINE)
# Sections of .network files that systemd.network(5) has, of those that hosts of storage networks use.
_NETWORKD_SECTIONS = (
    "Match", "Link", "Network", "Address", "Neighbor", "IPv6AddressLabel", "RoutingPolicyRule", "NextHop", "Route",
    "DHCP", "DHCPv4", "DHCPv6", "DHCPPrefixDelegation", "IPv6PrefixDelegation", "IPv6AcceptRA", "DHCPServer",
    "IPv6SendRA", "IPv6Prefix", "IPv6RoutePrefix", "IPv6PREF64Prefix", "Bridge", "BridgeFDB", "BridgeMDB", "BridgeVLAN",
    "LLDP", "CAN", "IPoIB", "QDisc", "NetworkEmulator", "TokenBucketFilter", "FairQueueing", "SR-IOV", "FlowQueuePIE",
    "FairQueueingControlledDelay", "ControlledDelay", "CAKE", "PIE", "BFIFO", "PFIFO", "PFIFOHeadDrop", "PFIFOFast",
    "DHCPServerStaticLease", "StochasticFairBlue", "StochasticFairnessQueueing", "DeficitRoundRobinScheduler",
    "DeficitRoundRobinSchedulerClass", "EnhancedTransmissionSelection", "GenericRandomEarlyDetection", "ModemManager",
    "HeavyHitterFilter", "HierarchyTokenBucket", "HierarchyTokenBucketClass", "QuickFairQueueing", "MobileNetwork",
    "QuickFairQueueingClass", "TrivialLinkEqualizer", "LLDPSend",
)  # fmt: skip
_LNET_MODULES = ("lnet", "ko2iblnd", "ksocklnd", "kfilnd", "ptlrpc")
_FALSE = ("no", "false", "0", "off")


def is_interface_file(file_text: str) -> bool:
    """Whether a text is one of the files that `parse_interface_file` reads."""
    return (
        any(form.search(file_text) for form in (_NETWORK_SCRIPT_PATTERN, _NETWORKD_PATTERN))
        or is_module_file(file_text)
        or is_netplan_file(file_text)
        or is_interfaces_file(file_text)
    )


def is_module_file(file_text: str) -> bool:
    """Whether all lines of a text are of modprobe.d."""
    lines = [line for line in re.sub(r"\\\n", " ", file_text).splitlines() if line.strip() and line[0] != "#"]
    return bool(lines) and all(_MODULE_PATTERN.match(line) for line in lines)


def parse_interface_file(file_text: str, file_name: str) -> HostTables:
    """The MTU, the mode and the bond of an interface, whether it is brought up at the start, or options of modules."""
    if is_netplan_file(file_text):
        return parse_netplan_file(file_text, file_name)
    if is_interfaces_file(file_text):
        return parse_interfaces_file(file_text, file_name)
    if is_module_file(file_text):
        options = dict(_read_module_options(file_text, file_name))
        routes = [
            route
            for (_, module, name), value in options.items()
            if (module, name) == ("lnet", "routes")
            for route in parse_module_routes(value, file_name)
        ]
        bond_settings = tuple(read_bonding_options(file_text, file_name))
        return HostTables(
            lnet_module_options=options,
            lnet_routes=tuple(routes) or None,
            file_settings=bond_settings,
            link_details=make_details_of_aliases(bond_settings),
            formats=(MODULE_FORMAT,) if bond_settings else (),
        )
    if _NETWORK_SCRIPT_PATTERN.search(file_text):
        return _parse_network_script(file_text, file_name)
    names = re.findall(r"^Name=([^\s*?\[\]!]+)\s*$", file_text, re.MULTILINE)
    if file_name.endswith(".link"):  # a link that keeps its name is matched by it
        names += re.findall(r"^OriginalName=([^\s*?\[\]!]+)\s*$", file_text, re.MULTILINE)
    mtu = re.search(r"^MTUBytes=(\d+)\s*$", file_text, re.MULTILINE)
    return HostTables(
        mtus=dict.fromkeys(names[:1], int(mtu[1])) if mtu else {},
        link_details=_read_netdev_details(file_text, names[0]) if names else {},
        inactive_profiles=tuple(_list_unmanaged_links(file_text, file_name)),
        interface_names=tuple(_read_link_names(file_text, file_name)),
        formats=("networkd",),
    )


def _read_link_names(file_text: str, file_name: str) -> Iterator[InterfaceName]:
    """The name in a .link file of systemd."""
    if file_name.endswith(".link"):
        sections = {section: dict(members) for section, members in iterate_ini_sections(file_text)}
        yield from parse_link_file(sections, file_name.rpartition("/")[2])


def _list_unmanaged_links(file_text: str, file_name: str) -> Iterator[InactiveProfile]:
    """Reasons why networkd does not bring up the interfaces that a file of it names."""
    sections = {section: dict(members) for section, members in iterate_ini_sections(file_text)}
    match = sections.get("Match", {})
    devices = tuple(match.get("Name", "").split()) or (("",) if match else ())  # "": chosen by other options
    for profile in list_inactive_profiles(sections.get("Link", {}), file_name) if devices else ():
        yield replace(profile, devices=devices)
    for section in sections:
        close = difflib.get_close_matches(section, _NETWORKD_SECTIONS, n=1, cutoff=0.75)
        if file_name.endswith(".network") and section not in _NETWORKD_SECTIONS and close and devices:
            yield InactiveProfile(
                file_name, f"[{section}]", "systemd-networkd does not know this section and ignores its lines",
                f"write [{close[0]}]", devices,
            )  # fmt: skip


def _read_module_options(file_text: str, file_name: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    """The options of the modules of LNet: the file, the module and the name of each, and its value."""
    for line in re.sub(r"\\\n", " ", file_text).splitlines():
        tokens = split_shell_words(line, skips_comments=True)
        if len(tokens) > 2 and tokens[0] == "options" and tokens[1] in _LNET_MODULES:
            for token in tokens[2:]:
                name, _, value = token.partition("=")
                yield (file_name, tokens[1], name), value


def _parse_network_script(file_text: str, file_name: str) -> HostTables:
    values = {name: value for token in split_shell_words(file_text.replace("\n", " \n "), skips_comments=True)
              for name, separator, value in [token.partition("=")] if separator}  # fmt: skip
    device = values.get("DEVICE", file_name.rpartition("ifcfg-")[2])
    profiles = [
        InactiveProfile(
            file_name, f"ONBOOT={values['ONBOOT']}", f"the network service does not bring {device} up at the start",
            "write ONBOOT=yes", (device,),
        )
    ] if values.get("ONBOOT", "").lower() in _FALSE else []  # fmt: skip
    modes = {"yes": "connected", "no": "datagram"}
    mode = modes.get(values.get("CONNECTED_MODE", "").lower(), "")
    return HostTables(
        mtus={device: int(values["MTU"])} if values.get("MTU", "").isdigit() else {},
        transport_modes={device: mode} if mode else {},
        link_details=_read_script_details(values, device),
        inactive_profiles=tuple(profiles),
        formats=("network-scripts",),
    )


def _read_script_details(values: Mapping[str, str], device: str) -> dict[str, LinkDetails]:
    """The bond or the VLAN of an ifcfg- file. A VLAN without a device below it has that in its name."""
    options = dict(
        token.split("=", 1)
        for token in values.get("BONDING_OPTS", values.get("BONDING_MODULE_OPTS", "")).split()
        if "=" in token
    )
    if options:
        return {device: make_bond_details(options)}
    number = values.get("VLAN_ID", "")
    if not number and values.get("VLAN", "").lower() == "yes":
        number = re.sub(r"^\D*", "", device.rpartition(".")[2])
    vlan = make_vlan_details(values.get("PHYSDEV", device.rpartition(".")[0]), number)
    return {device: vlan} if vlan else {}


def _read_netdev_details(file_text: str, device: str) -> dict[str, LinkDetails]:
    """The bond or the VLAN of a .netdev file; the device below a VLAN is in other files."""
    sections = {section: dict(members) for section, members in iterate_ini_sections(file_text)}
    kind = sections.get("NetDev", {}).get("Kind", "")
    if kind == "bond" and "Bond" in sections:
        return {device: make_bond_details(convert_networkd_options(sections.get("Bond", {})))}
    vlan = make_vlan_details("", sections.get("VLAN", {}).get("Id", "")) if kind == "vlan" else None
    return {device: vlan} if vlan else {}
