# SPDX-License-Identifier: Apache-2.0
"""Reads /etc/network/interfaces and files below interfaces.d of ifupdown: addresses, MTUs, bonds, VLANs, and the
routes and rules that its commands add.

Source: interfaces(5); ifenslave(8) and vlan-interfaces(5) for the options of bonds and VLANs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sonde.design.routes.bond_options import make_bond_details, make_vlan_details
from sonde.design.routes.configuration_reader import make_observed_route
from sonde.design.routes.file_settings import BOND, MTU, PRIVACY, FileSetting
from sonde.design.routes.host_tables import HostTables, ObservedHop, ObservedRoute, ObservedRule, find_ip_version
from sonde.design.routes.inactive_profile import InactiveProfile
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.interface_profile import InterfaceProfile
from sonde.design.routes.ip_lines import parse_route_line, parse_rule_line

MANAGER = "ifupdown"
_STANZA_PATTERN = re.compile(
    r"^[ \t]*(?:iface[ \t]+\S+[ \t]+inet6?[ \t]+\w|source(?:-directory)?[ \t]+\S*interfaces)", re.MULTILINE
)
_HEADS = ("iface", "auto", "mapping", "source", "source-directory", "rename", "no-auto-down", "no-scripts")
_COMMANDS = ("up", "post-up", "pre-up")
_PROGRAMS = ("ip", "/sbin/ip", "/usr/sbin/ip", "/bin/ip")
_COMMAND_WORDS = 3  # a verb of ip, what it does, and its first argument


@dataclass
class _Stanza:
    """The options of an interface for one IP version, each with the number of its line and its text."""

    device: str
    version: int
    method: str
    options: list[tuple[str, str, int, str]] = field(default_factory=list)

    def get(self, name: str) -> str:
        """The value of an option, by its name with hyphens; "" without it."""
        return next((value for option, value, _, _ in self.options if option == name), "")


def is_interfaces_file(file_text: str) -> bool:
    """Whether a text has stanzas of interfaces(5)."""
    return _STANZA_PATTERN.search(file_text) is not None


def parse_interfaces_file(file_text: str, file_name: str) -> HostTables:
    """The tables of a file. An interface without `auto` or `allow-hotplug` is not brought up at the start."""
    base_name = file_name.rpartition("/")[2]
    stanzas, started = _split_stanzas(file_text)
    tables = HostTables(formats=(MANAGER,))
    for stanza in stanzas:
        if stanza.method != "loopback":
            tables = tables.merge_tables(_read_stanza(stanza, base_name))
    devices = dict.fromkeys(stanza.device for stanza in stanzas if stanza.method != "loopback")
    inactive = [
        InactiveProfile(
            base_name, f"iface {device} without auto", f"ifupdown does not bring {device} up at the start",
            f"write auto {device}", (device,),
        )
        for device in devices if device not in started
    ]  # fmt: skip
    profiles = [
        InterfaceProfile(
            base_name, MANAGER, device,
            addresses=tuple(text for each in stanzas if each.device == device for text in _list_addresses(each)),
        )
        for device in devices
    ]  # fmt: skip
    return replace(tables, inactive_profiles=tuple(inactive), interface_profiles=tuple(profiles))


def _split_stanzas(file_text: str) -> tuple[list[_Stanza], set[str]]:
    """The stanzas of interfaces, and the interfaces that are brought up at the start."""
    stanzas: list[_Stanza] = []
    started: set[str] = set()
    is_inside = False
    for number, line in enumerate(file_text.splitlines(), start=1):
        tokens = line.split()
        if not tokens or tokens[0].startswith("#"):
            continue
        if tokens[0] in _HEADS or tokens[0].startswith("allow-"):
            is_inside = tokens[0] == "iface" and len(tokens) > _COMMAND_WORDS
            if is_inside:
                stanzas.append(_Stanza(tokens[1], 6 if tokens[2] == "inet6" else 4, tokens[3]))
            elif tokens[0] in ("auto", "allow-auto", "allow-hotplug"):
                started |= {*tokens[1:]}
        elif is_inside:
            value = " ".join(tokens[1:])
            stanzas[-1].options.append((tokens[0].replace("_", "-"), value, number, line.strip()))
    return stanzas, started


def _read_stanza(stanza: _Stanza, base_name: str) -> HostTables:
    device, mtu = stanza.device, stanza.get("mtu")
    settings = [
        FileSetting(device, option, value, f"{base_name}, line {number} ({text})")
        for name, value, number, text in stanza.options
        for option in (
            MTU if name == "mtu" else PRIVACY if name == "privext"
            else f"{BOND} {name.removeprefix('bond-').replace('-', '_')}" if name.startswith("bond-") else "",
        )
        if option
    ]  # fmt: skip
    rules, routes = _read_commands(stanza, base_name)
    return HostTables(
        rules=tuple(rules) or None,
        routes=tuple(routes) or None,
        mtus={device: int(mtu)} if mtu.isdigit() else {},
        link_details=_read_details(stanza),
        file_settings=tuple(settings),
    )  # fmt: skip


def _list_addresses(stanza: _Stanza) -> Iterator[str]:
    if stanza.method == "dhcp":
        yield "dhcp"
    address, mask = stanza.get("address"), stanza.get("netmask")
    text = f"{address}/{mask}" if mask and "/" not in address else address
    if address and find_ip_version(text) == stanza.version:
        yield text


def _read_details(stanza: _Stanza) -> dict[str, LinkDetails]:
    """The bond or the VLAN of a stanza."""
    options = {name.removeprefix("bond-").replace("-", "_"): value for name, value, _, _ in stanza.options
               if name.startswith("bond-")}  # fmt: skip
    if "mode" in options:
        return {stanza.device: make_bond_details(options)}
    if parent := stanza.get("vlan-raw-device"):
        number = stanza.get("vlan-id") or re.sub(r"^\D*", "", stanza.device.rpartition(".")[2])
        vlan = make_vlan_details(parent, number)
        return {stanza.device: vlan} if vlan else {}
    return {}


def _read_commands(stanza: _Stanza, base_name: str) -> tuple[list[ObservedRule], list[ObservedRoute]]:
    """The rules and routes that the commands of a stanza add, and its default route."""
    rules, routes = [], []
    for name, value, number, _ in stanza.options:
        origin, tokens = f"{base_name}, line {number}", value.split()
        if name == "gateway":
            hops = [ObservedHop(value, stanza.device, 1)]
            routes.append(make_observed_route("default", None, hops, origin, device=stanza.device))
        if name not in _COMMANDS or not tokens or tokens[0] not in _PROGRAMS:
            continue
        version = 6 if "-6" in tokens[:2] else None
        arguments = [token for token in tokens[1:] if token not in ("-6", "-4")]
        end = next((index for index, token in enumerate(arguments) if token in ("||", "&&", ";")), len(arguments))
        arguments = [token.replace("$IFACE", stanza.device) for token in arguments[:end]]
        if len(arguments) < _COMMAND_WORDS or arguments[1] not in ("add", "replace", "append"):
            continue
        if arguments[0] in ("route", "ro", "r"):
            route = parse_route_line(arguments[2:], origin, version)
            routes += [route] if route is not None else []
        elif arguments[0] in ("rule", "ru"):
            rules.append(replace(parse_rule_line(arguments[2:], value, origin), version=version or 4))
    return rules, routes
