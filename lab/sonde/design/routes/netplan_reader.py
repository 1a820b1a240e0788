# SPDX-License-Identifier: Apache-2.0
"""Reads files of netplan (/etc/netplan/*.yaml): addresses, routes, rules, MTUs, bonds, VLANs and the adapters that
definitions match.

Source: netplan-yaml(5), schema version 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from sonde.design.routes.bond_options import convert_netplan_options, make_bond_details, make_vlan_details
from sonde.design.routes.configuration_reader import make_observed_route
from sonde.design.routes.file_settings import BOND, IPV6_MTU, MASTER, MTU, PRIVACY, VLAN, FileSetting
from sonde.design.routes.host_tables import (
    HostTables,
    ObservedHop,
    ObservedRoute,
    ObservedRule,
    find_ip_version,
    get_routing_table_name,
)
from sonde.design.routes.inactive_profile import InactiveProfile
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.interface_profile import InterfaceProfile
from sonde.model.documents import parse_yaml
from sonde.model.errors import UserError

MANAGER = "netplan"
_NETPLAN_PATTERN = re.compile(r"^[\"']?network[\"']?:", re.MULTILINE)
_KINDS = ("ethernets", "bonds", "vlans", "bridges", "dummy-devices", "vrfs", "tunnels", "wifis", "modems", "nm-devices")
_OTHER_MEMBERS = ("version", "renderer", "openvswitch")
_TRUE = ("true", "yes", "on", "y", "1")
_MANUAL_MODES = ("manual", "off")


@dataclass
class _NetplanTables:
    """What the definitions of a file hold, collected so far."""

    routes: list[ObservedRoute] = field(default_factory=list)
    rules: list[ObservedRule] = field(default_factory=list)
    profiles: list[InterfaceProfile] = field(default_factory=list)
    settings: list[FileSetting] = field(default_factory=list)
    inactive_profiles: list[InactiveProfile] = field(default_factory=list)
    mtus: dict[str, int] = field(default_factory=dict)
    details: dict[str, LinkDetails] = field(default_factory=dict)


@dataclass(frozen=True)
class _Definition:
    """One interface of a file: `device` is its name on the host ("" or a pattern where the file matches adapters by
    other means), `lines` are the numbers of the lines of its members by their path."""

    file_name: str
    path: tuple[str, ...]
    device: str
    members: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def describe(self, *names: str) -> str:
        """The place of a member for a message: the file, the line and the path."""
        path = (*self.path, *names)
        return f"{self.file_name}, line {self.lines.get(path, 1)} ({'.'.join(path)})"


def get_netplan_order(tables: HostTables) -> str:
    """The key that sorts files of netplan by name, as netplan reads them; "" for other files, which keep their
    order."""
    return next((each.origin for each in tables.interface_profiles if each.manager == MANAGER), "")


def is_netplan_file(file_text: str) -> bool:
    """Whether a text has the member `network` of netplan's files."""
    return _NETPLAN_PATTERN.search(file_text) is not None


def parse_netplan_file(file_text: str, file_name: str) -> HostTables:
    """The tables of a file of netplan. Raises UserError."""
    base_name = file_name.rpartition("/")[2]
    lines: dict[tuple[str, ...], int] = {}
    try:
        parse_yaml(file_text)  # its limits
        node = yaml.compose(file_text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as reason:
        raise UserError(f"{file_name} is not YAML: {' '.join(str(reason).split())}.") from None
    document = _convert_node(node, (), lines) if node is not None else {}
    network = document.get("network") if isinstance(document, dict) else None
    if not isinstance(network, dict) or "config" in network:  # of version 1
        raise UserError(
            f"{file_name} has no interface of netplan (version 2: ethernets, bonds, vlans); give files of /etc/netplan."
        )
    tables = _NetplanTables()
    for kind in _KINDS:
        definitions = network.get(kind)
        for name, members in definitions.items() if isinstance(definitions, dict) else ():
            if isinstance(members, dict):
                path = ("network", kind, name)
                definition = _Definition(base_name, path, _find_device(name, members), members, lines)
                _read_definition(definition, tables)
    return HostTables(
        rules=tuple(tables.rules) or None,
        routes=tuple(tables.routes) or None,
        mtus=tables.mtus,
        link_details=tables.details,
        formats=(MANAGER,),
        inactive_profiles=tuple(tables.inactive_profiles),
        interface_profiles=tuple(tables.profiles),
        file_settings=tuple(tables.settings),
    )


def _convert_node(node: yaml.Node, path: tuple[str, ...], lines: dict[tuple[str, ...], int]) -> Any:
    """The value of a node with all scalars as texts, as netplan reads them: YAML takes an address such as 52:54:00 for
    a number. `lines` gets the line of each member."""
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        members = {}
        for key, value in node.value:
            lines[*path, str(key.value)] = key.start_mark.line + 1
            members[str(key.value)] = _convert_node(value, (*path, str(key.value)), lines)
        return members
    if isinstance(node, yaml.SequenceNode):
        return [_convert_node(item, (*path, str(number)), lines) for number, item in enumerate(node.value, start=1)]
    return str(node.value)


def _find_device(definition_name: str, members: Mapping[str, Any]) -> str:
    """The name of the interface. A definition with `match` is for all adapters that match, whatever its own name; one
    for a link address mostly has the name of the interface."""
    match = members.get("match")
    if not isinstance(match, dict):
        return definition_name
    return str(members.get("set-name") or match.get("name") or (definition_name if "macaddress" in match else ""))


def _read_definition(definition: _Definition, tables: _NetplanTables) -> None:
    members, device = definition.members, definition.device
    tables.profiles.append(_make_profile(definition))
    if (mode := members.get("activation-mode")) in _MANUAL_MODES:
        tables.inactive_profiles.append(
            InactiveProfile(
                definition.file_name, f"activation-mode: {mode}",
                "netplan does not bring this interface up at the start of the host, and then there are none of its"
                " routes", "remove activation-mode", (device,),
            )
        )  # fmt: skip
    tables.routes += _read_routes(definition)
    tables.rules += _read_rules(definition)
    if not re.fullmatch(r"[^\s*?\[\]!]+", device):
        return
    if (mtu := str(members.get("mtu", ""))).isdigit():
        tables.mtus[device] = int(mtu)
    if definition.path[1] == "bonds" and {"interfaces", "parameters"} & {*members}:  # else another file has its mode
        parameters = members.get("parameters") or {}
        texts = {name: " ".join(value) if isinstance(value, list) else str(value) for name, value in parameters.items()}
        options = convert_netplan_options(texts)
        tables.details[device] = make_bond_details(options)
        ports = members.get("interfaces") or ()
        tables.settings += [FileSetting(str(port), MASTER, device, definition.describe("interfaces")) for port in ports]
        for name in texts:
            for option, value in convert_netplan_options({name: texts[name]}).items():
                origin = definition.describe("parameters", name)
                tables.settings.append(FileSetting(device, f"{BOND} {option}", value, origin))
    if definition.path[1] == "vlans":
        vlan = make_vlan_details(str(members.get("link", "")), str(members.get("id", "")))
        tables.details |= {device: vlan} if vlan else {}
    is_vlan = definition.path[1] == "vlans"
    for name, option in (("mtu", MTU), ("ipv6-mtu", IPV6_MTU), *([("id", VLAN)] if is_vlan else [])):
        if name in members:
            tables.settings.append(FileSetting(device, option, str(members[name]), definition.describe(name)))
    if str(members.get("ipv6-privacy", "")).lower() in _TRUE:
        tables.settings.append(FileSetting(device, PRIVACY, "2", definition.describe("ipv6-privacy")))


def _make_profile(definition: _Definition) -> InterfaceProfile:
    members, match = definition.members, definition.members.get("match")
    address = str(match.get("macaddress", "")) if isinstance(match, dict) else ""
    return InterfaceProfile(
        definition.file_name,
        MANAGER,
        definition.device,
        "macaddress",
        address.lower(),
        has_other_link_address="macaddress" in members,
        addresses=tuple(_list_addresses(members)),
        gateways=tuple(str(members[name]) for name in ("gateway4", "gateway6") if members.get(name)),
        selectors=tuple(_list_selectors(members)),
    )


def _list_selectors(members: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The options of [Match] that choose the adapter of a definition whose name is not that of the interface."""
    match = members.get("match")
    if not isinstance(match, dict) or members.get("set-name") or match.get("name"):
        return
    for member, option in (("macaddress", "PermanentMACAddress"), ("driver", "Driver")):
        if value := match.get(member):
            yield option, " ".join(value) if isinstance(value, list) else str(value)


def _list_addresses(members: Mapping[str, Any]) -> Iterator[str]:
    if str(members.get("dhcp4", "")).lower() in _TRUE:
        yield "dhcp"
    for item in members.get("addresses") or ():
        text = next(iter(item), "") if isinstance(item, dict) else str(item)
        if find_ip_version(text) is not None:
            yield text


def _read_routes(definition: _Definition) -> Iterator[ObservedRoute]:
    device = definition.device
    for number, entry in enumerate(definition.members.get("routes") or (), start=1):
        if not isinstance(entry, dict) or "to" not in entry:
            continue
        gateway = str(entry.get("via", ""))
        origin = definition.describe("routes", str(number))
        hops = [ObservedHop(gateway, device, 1)] if gateway else []
        route = make_observed_route(
            _normalize_range(str(entry["to"])), entry.get("table"), hops, origin, entry.get("metric"),
            entry.get("mtu"), device, str(entry.get("type", "unicast")),
        )  # fmt: skip
        yield replace(route, source=str(entry.get("from", "")))
    for name in ("gateway4", "gateway6"):
        if gateway := str(definition.members.get(name, "")):
            hops = [ObservedHop(gateway, device, 1)]
            yield make_observed_route("default", None, hops, definition.describe(name), device=device)


def _normalize_range(range_text: str) -> str:
    """A destination with its prefix; netplan takes an address alone for one host."""
    if range_text == "default" or "/" in range_text:
        return range_text
    return f"{range_text}/{32 if find_ip_version(range_text) == 4 else 128}"


def _read_rules(definition: _Definition) -> Iterator[ObservedRule]:
    for number, entry in enumerate(definition.members.get("routing-policy") or (), start=1):
        if not isinstance(entry, dict):
            continue
        source, destination = str(entry.get("from", "all")), str(entry.get("to", "all"))
        mark, priority, service = entry.get("mark"), entry.get("priority"), entry.get("type-of-service")
        yield ObservedRule(
            int(priority) if priority is not None else None,
            source,
            int(str(mark), 0) if mark is not None else None,
            get_routing_table_name(str(entry.get("table", "main"))),
            definition.describe("routing-policy", str(number)),
            destination=destination,
            version=find_ip_version(source) or find_ip_version(destination) or 4,
            selectors=f"tos {service}" if service is not None else "",
        )
