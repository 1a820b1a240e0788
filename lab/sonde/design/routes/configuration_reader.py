# SPDX-License-Identifier: Apache-2.0
"""Reads routes and rules from files of networkd, NetworkManager, nmstate, LNet and Ansible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from sonde.design.routes.bond_options import make_bond_details, make_vlan_details
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
from sonde.design.routes.ip_lines import parse_rule_line
from sonde.design.routes.lnet_export import read_lnet_export
from sonde.design.routes.lnet_records import LnetRoute
from sonde.model.documents import parse_yaml
from sonde.model.errors import UserError

_YAML_PATTERN = re.compile(
    r"^(routes?|route-rules|interfaces|net|peer|global|routing):|^- (name|hosts):|^[ \t]*- net:", re.MULTILINE
)
_NETWORKD_PATTERN = re.compile(r"^\[(Route|RoutingPolicyRule)\]", re.MULTILINE)
_KEYFILE_PATTERN = re.compile(r"^\[(ipv4|ipv6|connection)\]", re.MULTILINE)
# Families of rules; other values, as "both", are for all versions.
_RULE_FAMILIES = {"ipv4": 4, "ipv6": 6}
_NETWORKD_SELECTORS = {"TypeOfService": "tos", "OutgoingInterface": "oif", "SourcePort": "sport",
                       "DestinationPort": "dport", "IPProtocol": "ipproto", "User": "uidrange"}  # fmt: skip
_NETWORKD_ATTRIBUTES = {"InitialCongestionWindow": "initcwnd", "InitialAdvertisedReceiveWindow": "initrwnd",
                        "QuickAck": "quickack", "TCPCongestionControlAlgorithm": "congctl",
                        "TCPRetransmissionTimeoutSec": "rto_min", "HopLimit": "hoplimit"}  # fmt: skip
# Options of routes in keyfiles that `make_observed_route` reads, or on which no packet depends.
_KEYFILE_OPTIONS = ("weight", "table", "mtu", "type", "scope", "onlink", "src")
_TRUE, _FALSE = ("yes", "true", "1", "on"), ("no", "false", "0", "off")
_LINK_SECTIONS = ("Link", "ethernet", "infiniband", "bond", "vlan")
_UNCONFIGURED = ("disabled", "ignore")
_MANUAL_POLICIES = ("manual", "down", "always-down")
_LNET_LINE_PATTERN = re.compile(r"^[ \t]*net\s+(\S+)\s+hops\s+(-?\d+)\s+gw\s+(\S+)\s+(up|down)", re.MULTILINE)


def is_network_configuration(file_text: str) -> bool:
    """Whether a text is one of the files that `parse_network_configuration` reads."""
    return any(
        form.search(file_text) for form in (_YAML_PATTERN, _NETWORKD_PATTERN, _KEYFILE_PATTERN, _LNET_LINE_PATTERN)
    )


def parse_network_configuration(file_text: str, file_name: str) -> HostTables:
    """The tables in a file; `file_name` is for messages. Raises UserError."""
    try:
        if _NETWORKD_PATTERN.search(file_text):
            return _add_link_settings(_parse_networkd_file(file_text, file_name), file_text)
        if _KEYFILE_PATTERN.search(file_text):
            return _add_link_settings(_parse_keyfile(file_text, file_name), file_text)
        if _LNET_LINE_PATTERN.search(file_text):
            return HostTables(lnet_routes=tuple(_parse_lnet_lines(file_text, file_name)))
        return _parse_yaml_file(file_text, file_name)
    except (ValueError, KeyError, TypeError, AttributeError) as reason:
        raise UserError(
            f"{file_name} has a route or rule that cannot be read ({reason}); write it as its tool does."
        ) from (None)


def iterate_ini_sections(file_text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Sections of an INI file with their members; sections and members may occur several times."""
    section, members = "", list[tuple[str, str]]()
    for line in file_text.splitlines():
        if line.startswith("[") and line.rstrip().endswith("]"):
            yield section, members
            section, members = line.strip()[1:-1], []
        elif "=" in line and not line.lstrip().startswith(("#", ";")):
            name, _, value = line.partition("=")
            members.append((name.strip(), value.strip()))
    yield section, members


def _parse_networkd_file(file_text: str, file_name: str) -> HostTables:
    rules, routes, matched_device = [], [], ""
    inactive_profiles: list[InactiveProfile] = []
    for number, (section, members) in enumerate(iterate_ini_sections(file_text)):
        origin, values = f"{file_name}, section {number}", dict(members)
        if section == "Link":
            inactive_profiles += list_inactive_profiles(values, file_name)
        if section == "Match" and re.fullmatch(r"[^\s*?\[\]!]+", values.get("Name", "")):
            matched_device = values["Name"]
        if section == "RoutingPolicyRule":
            mark, _, mask = values.get("FirewallMark", "").partition("/")
            rules.append(
                ObservedRule(
                    int(values["Priority"]) if "Priority" in values else None,
                    values.get("From", "all"),
                    int(mark, 0) if mark else None,
                    get_routing_table_name(values.get("Table", "main")),
                    origin,
                    destination=values.get("To", "all"),
                    action=values.get("Type", "lookup"),
                    mask=int(mask, 0) if mask else 0xFFFFFFFF,
                    version=_find_networkd_version(values),
                    interface=values.get("IncomingInterface", ""),
                    inverted=values.get("InvertRule", "").lower() in _TRUE,
                    suppressed_prefix=int(values["SuppressPrefixLength"]) if "SuppressPrefixLength" in values else None,
                    selectors=" ".join(
                        f"{name} {values[member]}" for member, name in _NETWORKD_SELECTORS.items() if member in values
                    ),
                )
            )
        elif section == "Route":
            hops = [ObservedHop(values["Gateway"], matched_device, 1)] if "Gateway" in values else []
            for value in (value for member, value in members if member == "MultiPathRoute"):
                address, _, weight = value.partition(" ")
                via, _, device = address.partition("@")
                hops.append(ObservedHop(via, device or matched_device, int(weight or 1)))
            kind = values.get("Type", "unicast")
            mtu, metric, table = (values.get(member) for member in ("MTUBytes", "Metric", "Table"))
            route = make_observed_route(
                values.get("Destination", "default"), table, hops, origin, metric, mtu, matched_device, kind
            )
            attributes = tuple(
                (name, values[member]) for member, name in _NETWORKD_ATTRIBUTES.items() if member in values
            )
            routes.append(replace(route, attributes=attributes, source=_read_source(values.get("PreferredSource", ""))))
    return HostTables(
        rules=tuple(rules) or None,
        routes=tuple(routes) or None,
        formats=("networkd",),
        inactive_profiles=tuple(inactive_profiles),
    )


def _read_source(source_text: str) -> str:
    """The source address of a route; "" for one that networkd chooses, as that of a lease (_dhcp4)."""
    return source_text if find_ip_version(source_text) is not None else ""


def _add_link_settings(host_tables: HostTables, file_text: str) -> HostTables:
    """The tables with the MTU and the mode (IPoIB) that a file gives to its interface."""
    device, mtu, mode = "", "", ""
    details: LinkDetails | None = None
    for section, members in iterate_ini_sections(file_text):
        values = dict(members)
        if section in ("Match", "connection"):
            device = values.get("Name", values.get("interface-name", ""))
        elif section in _LINK_SECTIONS:
            mtu = values.get("MTUBytes", values.get("mtu", mtu))
            mode = values.get("transport-mode", mode)
        if section == "bond":
            details = make_bond_details(values if "arp_interval" in values else {"miimon": "100", **values})
        elif section == "vlan":
            details = make_vlan_details(values.get("parent", ""), values.get("id", ""))
    if not re.fullmatch(r"[^\s*?\[\]!]+", device):
        return host_tables
    return replace(
        host_tables,
        mtus={device: int(mtu)} if mtu.isdigit() and int(mtu) else {},  # 0: automatic
        link_details={device: details} if details else {},
        transport_modes={device: mode} if mode in ("datagram", "connected") else {},
    )


def _find_networkd_version(rule_values: Mapping[str, str]) -> int | None:
    """The IP version of a rule: without Family= that of its addresses, and without these IPv4 (systemd.network(5));
    None for both."""
    if family := rule_values.get("Family", ""):
        return _RULE_FAMILIES.get(family)
    addresses = (rule_values[member] for member in ("To", "From") if member in rule_values)
    return next((version for address in addresses if (version := find_ip_version(address))), 4)


def list_inactive_profiles(link_values: Mapping[str, str], file_name: str) -> Iterator[InactiveProfile]:
    """Reasons in the section Link why the file is not used at the start."""
    effect = "systemd-networkd does not {} at the start of the host, and then there are none of its routes"
    if (text := link_values.get("Unmanaged", "no")).lower() in _TRUE:
        yield InactiveProfile(
            file_name, f"Unmanaged={text}", effect.format("use this interface"), "remove Unmanaged, or set it to no"
        )
    if (text := link_values.get("ActivationPolicy", "up")).lower() in _MANUAL_POLICIES:
        yield InactiveProfile(
            file_name, f"ActivationPolicy={text}", effect.format("bring this interface up"),
            "remove ActivationPolicy, or set it to up",
        )  # fmt: skip


def make_observed_route(
    destination_range: str,
    table_name: object,
    next_hops: Sequence[ObservedHop],
    output_origin: str,
    route_metric: object = None,
    route_mtu: object = None,
    device: str = "",
    route_kind: str = "unicast",
) -> ObservedRoute:
    destination_range = "default" if destination_range in ("0.0.0.0/0", "::/0") else destination_range
    return ObservedRoute(
        destination=destination_range,
        table=get_routing_table_name(str(table_name or "main")),
        device=device,
        hops=tuple(next_hops),
        on_link=not next_hops and route_kind == "unicast",
        mtu=int(str(route_mtu)) if route_mtu else None,
        origin=output_origin,
        kind=route_kind,
        metric=int(str(route_metric)) if route_metric is not None else None,
        version=find_ip_version(
            next_hops[0].via if destination_range == "default" and next_hops else destination_range
        ),
    )


def _parse_keyfile(file_text: str, file_name: str) -> HostTables:
    """A profile of NetworkManager: routes that differ in their next hops only form one multipath route."""
    rules, parts = [], []
    device = ""
    inactive_profiles: list[InactiveProfile] = []
    for section, members in iterate_ini_sections(file_text):
        values = dict(members)
        inactive_profiles += _list_inactive_parts(section, values, file_name)
        if section == "connection":
            device = values.get("interface-name", "")
        if section not in ("ipv4", "ipv6"):
            continue
        for member, value in members:
            origin = f"{file_name}, {member}"
            if re.fullmatch(r"route\d+", member):
                destination, gateway, metric = (*value.split(","), "", "")[:3]
                options = dict(option.split("=") for option in values.get(f"{member}_options", "").split(",") if option)
                hops = [ObservedHop(gateway, device, int(options.get("weight", 1)))] if gateway else []
                table = options.get("table") or values.get("route-table")
                mtu, kind = options.get("mtu"), options.get("type", "unicast")
                route = make_observed_route(destination, table, hops, origin, metric or None, mtu, device, kind)
                attributes = tuple(pair for pair in options.items() if pair[0] not in _KEYFILE_OPTIONS)
                parts.append(replace(route, attributes=attributes, source=_read_source(options.get("src", ""))))
            elif re.fullmatch(r"routing-rule\d+", member):
                rules.append(_parse_keyfile_rule(value, origin, _RULE_FAMILIES[section]))
    if not (rules or parts):
        devices = (device,) if device else ()
        inactive_profiles = [replace(profile, devices=devices) for profile in inactive_profiles]
    routes = tuple(_join_routes_into_multipath(parts)) or None
    return HostTables(
        rules=tuple(rules) or None,
        routes=routes,
        formats=("networkmanager",),
        inactive_profiles=tuple(inactive_profiles),
    )


def _list_inactive_parts(section_name: str, values: Mapping[str, str], file_name: str) -> Iterator[InactiveProfile]:
    """Reasons in a section of a keyfile why its profile, or its routes of one IP version, are not applied at the
    start."""
    effect = "NetworkManager does not {} at the start of the host, and then there are none of its routes"
    if section_name == "connection" and (text := values.get("autoconnect", "true")).lower() in _FALSE:
        yield InactiveProfile(
            file_name, f"autoconnect={text}", effect.format("apply this profile"),
            "remove autoconnect, which is true without it",
        )  # fmt: skip
    is_version = section_name in _RULE_FAMILIES
    if is_version and values.get("method") in _UNCONFIGURED and any(name.startswith("route") for name in values):
        yield InactiveProfile(
            file_name, f"[{section_name}] method={values['method']}", effect.format("configure this IP version"),
            "set method to manual, or to auto",
        )  # fmt: skip


def _parse_keyfile_rule(rule_text: str, output_origin: str, version: int) -> ObservedRule:
    return replace(parse_rule_line(rule_text.split(), "", output_origin), version=version)


def _join_routes_into_multipath(single_hop_routes: Sequence[ObservedRoute]) -> Iterator[ObservedRoute]:
    """Routes that differ in their next hops only as one route with all of these."""
    groups: dict[tuple[object, ...], list[ObservedRoute]] = {}
    for number, route in enumerate(single_hop_routes):
        key: tuple[object, ...] = (route.destination, route.table, route.metric, route.version, route.mtu)
        groups.setdefault(key if route.hops else (number,), []).append(route)
    for first, *others in groups.values():
        hops = (*first.hops, *(hop for route in others for hop in route.hops))
        attributes = dict(pair for route in (first, *others) for pair in route.attributes)
        yield replace(
            first, hops=hops, on_link=not hops and first.kind == "unicast", attributes=tuple(attributes.items())
        )


def _parse_yaml_file(file_text: str, file_name: str) -> HostTables:
    try:
        document = parse_yaml(file_text)
    except yaml.YAMLError as reason:
        raise UserError(f"{file_name} is not YAML: {' '.join(str(reason).split())}.") from None
    if isinstance(document, list):
        if document and all(isinstance(play, Mapping) and "tasks" in play for play in document):
            return HostTables(formats=("ansible",))  # the routes of a play are in the scripts that it copies
        raise UserError(f"{file_name} is a YAML list, but no Ansible play; give the routes of nmstate or LNet.")
    if not isinstance(document, Mapping):
        raise UserError(f"{file_name} is YAML without routes; give the routes of nmstate or LNet.")
    if isinstance(document.get("route"), list) or "net" in document or "routing" in document:
        return read_lnet_export(document, file_name)
    if "routes" in document or "route-rules" in document:
        return _read_nmstate(document, file_name)
    if "interfaces" in document:
        raise UserError(f"{file_name} is a state of nmstate without routes and route-rules, which alone are read.")
    raise UserError(f"{file_name} is YAML without routes; give the routes of nmstate or LNet.")


def _parse_lnet_lines(file_text: str, file_name: str) -> Iterator[LnetRoute]:
    """The lines of `lctl route_list`: net o2ib1 hops 4294967295 gw 10.1.0.1@tcp up pri 0."""
    for number, (network, hops, gateway, state) in enumerate(_LNET_LINE_PATTERN.findall(file_text), start=1):
        hop_count = None if int(hops) in (-1, 2**32 - 1) else int(hops)
        yield LnetRoute(network, gateway, hop_count, None, state == "up", f"{file_name}, route {number}")


def _read_nmstate(nmstate_document: Mapping[str, Any], file_name: str) -> HostTables:
    parts = []
    for number, entry in enumerate(nmstate_document.get("routes", {}).get("config", ()), start=1):
        device = str(entry.get("next-hop-interface", ""))
        gateway = entry.get("next-hop-address")
        hops = [ObservedHop(str(gateway), device, int(entry.get("weight", 1)))] if gateway else []
        table = entry.get("table-id")
        kind = str(entry.get("route-type", "unicast"))
        origin = f"{file_name}, route {number}"
        mtu, metric = entry.get("mtu"), entry.get("metric")
        parts.append(make_observed_route(str(entry["destination"]), table, hops, origin, metric, mtu, device, kind))
    rules = [
        ObservedRule(
            int(entry["priority"]),
            str(entry.get("ip-from", "all")),
            int(str(entry["fwmark"]), 0) if "fwmark" in entry else None,
            get_routing_table_name(str(entry.get("route-table", "main"))),
            f"{file_name}, rule {number}",
            destination=str(entry.get("ip-to", "all")),
            action=str(entry.get("action", "lookup")),
            mask=int(str(entry.get("fwmask", 0xFFFFFFFF)), 0),
            version=_RULE_FAMILIES.get(str(entry.get("family", ""))),
            interface=str(entry.get("iif", "")),
            suppressed_prefix=int(entry["suppress-prefix-length"]) if "suppress-prefix-length" in entry else None,
        )
        for number, entry in enumerate(nmstate_document.get("route-rules", {}).get("config", ()), start=1)
    ]
    routes = tuple(_join_routes_into_multipath(parts)) or None
    return HostTables(rules=tuple(rules) or None, routes=routes, formats=("nmstate",))
