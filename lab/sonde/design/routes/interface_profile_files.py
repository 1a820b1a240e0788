# SPDX-License-Identifier: Apache-2.0
"""Reads which interface each configuration file is for: ifcfg- files of network-scripts, keyfiles of NetworkManager,
and files of systemd-networkd."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.routes.configuration_reader import iterate_ini_sections
from sonde.design.routes.file_settings import read_file_settings
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_profile import InterfaceProfile
from sonde.design.routes.output_texts import split_shell_words

_FALSE = ("no", "false", "0", "off")
_TRUE = ("yes", "true", "1", "on")
# Copies that network-scripts and NetworkManager leave out.
_COPY_PATTERN = re.compile(r"(~|\.bak|\.old|\.orig|\.rpmnew|\.rpmorig|\.rpmsave)$")
_ADDRESS_PATTERN = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5,19}")


def add_interface_profile(tables: HostTables, file_text: str, file_name: str) -> HostTables:
    """The tables of a configuration file with the interface that it is for, and with what it sets on it."""
    profiles = [_read_interface_profile(file_text, file_name, each) for each in tables.formats]
    return replace(
        tables,
        interface_profiles=(*tables.interface_profiles, *(profile for profile in profiles if profile is not None)),
        file_settings=(
            *tables.file_settings,
            *(each for name in tables.formats for each in read_file_settings(file_text, file_name, name)),
        ),
    )


def _read_interface_profile(file_text: str, file_name: str, file_format: str) -> InterfaceProfile | None:
    """The profile in a configuration file of a format of `sonde route plan`; None for other files, as drop-ins."""
    base_name = file_name.rpartition("/")[2]
    if file_format == "network-scripts" and "ifcfg-" in base_name and not _COPY_PATTERN.search(base_name):
        return _read_network_script(file_text, base_name)
    sections = {name: dict(members) for name, members in iterate_ini_sections(file_text)}
    if file_format == "networkmanager" and "connection" in sections:
        return _read_keyfile(sections, base_name)
    if file_format == "networkd" and base_name.endswith(".network") and "Match" in sections:
        addresses = [
            value
            for section, members in iterate_ini_sections(file_text)
            for name, value in members
            if name == "Address" and section in ("Network", "Address")
        ]
        return _read_networkd_file(sections, base_name, addresses)
    return None


def _read_network_script(file_text: str, base_name: str) -> InterfaceProfile:
    values = {name: value for token in split_shell_words(file_text.replace("\n", " \n "), skips_comments=True)
              for name, separator, value in [token.partition("=")] if separator}  # fmt: skip
    return InterfaceProfile(
        base_name,
        "the network service",
        values.get("DEVICE", base_name.rpartition("ifcfg-")[2]),
        "HWADDR",
        _read_link_address(values.get("HWADDR", "")),
        values.get("ONBOOT", "yes").lower() not in _FALSE,
        "MACADDR" in values,
        tuple(_list_script_addresses(values)),
        gateways=()
        if values.get("DEFROUTE", "").lower() in _FALSE
        else tuple(_list_addresses([values.get("GATEWAY", "")])),
    )


def _read_keyfile(sections: dict[str, dict[str, str]], base_name: str) -> InterfaceProfile:
    connection = sections["connection"]
    link = {**sections.get("ethernet", {}), **sections.get("infiniband", {})}
    number = connection.get("autoconnect-priority", "0")
    address_sections = [sections.get(name, {}) for name in ("ipv4", "ipv6")]
    return InterfaceProfile(
        base_name,
        "NetworkManager",
        connection.get("interface-name", ""),
        "mac-address",
        _read_link_address(link.get("mac-address", "")),
        connection.get("autoconnect", "true").lower() not in _FALSE,
        "cloned-mac-address" in link,
        tuple(
            address
            for values in address_sections
            for name, value in values.items()
            if re.fullmatch(r"address\d+", name)
            for address in _list_addresses([value.partition(",")[0]])
        ),
        int(number) if number.lstrip("-").isdigit() else 0,
        asks_dhcp=sections.get("ipv4", {}).get("method") == "auto",
        gateways=tuple(gateway for values in address_sections for gateway in _list_keyfile_gateways(values)),
    )


def _list_keyfile_gateways(values: Mapping[str, str]) -> Iterator[str]:
    """The gateways of default routes in a section of addresses: gateway=, or behind an address (address1=A/P,G)."""
    if values.get("never-default", "").lower() not in _TRUE:
        texts = [value.partition(",")[2] for name, value in values.items() if re.fullmatch(r"address\d+", name)]
        yield from _list_addresses([values.get("gateway", ""), *texts])


def _read_networkd_file(
    sections: dict[str, dict[str, str]], base_name: str, networkd_addresses: Sequence[str]
) -> InterfaceProfile:
    match = sections["Match"]
    option = next((name for name in ("MACAddress", "PermanentMACAddress") if name in match), "MACAddress")
    is_simple = set(match) <= {"Name", "MACAddress", "PermanentMACAddress"}
    return InterfaceProfile(
        base_name,
        "systemd-networkd",
        match.get("Name", "") if is_simple else "",
        option,
        _read_link_address(match.get(option, "")),
        has_other_link_address="MACAddress" in sections.get("Link", {}),
        addresses=tuple(_list_addresses(networkd_addresses)),
        asks_dhcp=sections.get("Network", {}).get("DHCP", "").lower() in (*_TRUE, "ipv4", "both"),
        gateways=tuple(_list_addresses([sections.get("Network", {}).get("Gateway", "")])),
        selectors=() if is_simple and "Name" in match else tuple(match.items()),
    )


def _read_link_address(address_text: str) -> str:
    """A link address in lower case with colons; "" for lists, patterns and other texts."""
    address = address_text.strip().lower().replace("-", ":")
    return address if _ADDRESS_PATTERN.fullmatch(address) else ""


def _list_script_addresses(values: Mapping[str, str]) -> Iterator[str]:
    """The addresses in an ifcfg- file: IPADDR or IPADDR0, IPADDR1 … with PREFIX or NETMASK, and IPV6ADDR."""
    if values.get("BOOTPROTO", "").lower() == "dhcp":
        yield "dhcp"
    for name, address in values.items():
        if match := re.fullmatch(r"IPADDR(\d*)", name):
            prefix = values.get(f"PREFIX{match[1]}") or values.get(f"NETMASK{match[1]}") or ""
            yield from _list_addresses([f"{address}/{prefix}" if prefix else address])
    yield from _list_addresses([values.get("IPV6ADDR", "")])


def _list_addresses(texts: Sequence[str]) -> Iterator[str]:
    """Those texts that are addresses, with the length of their prefix if they have one."""
    for text in texts:
        try:
            interface = ipaddress.ip_interface(text)
            yield interface.with_prefixlen if "/" in text else str(interface.ip)
        except ValueError:
            continue
