# SPDX-License-Identifier: Apache-2.0
"""Finds configuration files of interfaces that do not take effect at the next start: those for the link address of
another adapter, and those that compete for one interface.

Source: systemd.network(5); nm-settings-keyfile(5), "autoconnect-priority"; sysconfig.txt of initscripts, "HWADDR".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_next_hops import WRONG_DEVICE
from sonde.design.routes.debian_interfaces import MANAGER as MANAGER_OF_INTERFACES
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.interface_profile import InterfaceProfile
from sonde.design.routes.link_usability import list_bond_ports
from sonde.design.routes.netplan_reader import MANAGER as MANAGER_OF_NETPLAN
from sonde.design.routes.permanent_addresses import find_owner_of_address, get_permanent_address, shorten_link_address
from sonde.design.routes.setting_origins import IN_FILES

FILE_FOR_ANOTHER_INTERFACE = "file for another interface"
_OPTIONS_WITHOUT_DHCP = {
    "NetworkManager": "method=manual", "systemd-networkd": "DHCP=no", MANAGER_OF_NETPLAN: "dhcp4: false",
    MANAGER_OF_INTERFACES: "static in place of dhcp",
}  # fmt: skip
_FIRST_OF_CLASS_B, _FIRST_OF_CLASS_C = 128, 192


def find_profile_faults(
    profiles: Sequence[InterfaceProfile],
    planned_devices: Collection[str],
    host_tables: HostTables,
    planned_addresses: Mapping[str, Sequence[str]],
) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the files for the planned devices of a host, and for the ports of bonds and the devices below these;
    `host_tables` hold the link addresses. `planned_addresses` are those of the host by device, with prefix."""
    yield from _check_devices_of_addresses(profiles, host_tables, planned_addresses)
    for device in list_devices_with_ports(planned_devices, host_tables):
        candidates = [
            profile
            for profile in profiles
            if profile.is_started and any(fnmatchcase(device, name) for name in profile.device.split())
        ]
        for profile in candidates:
            yield from _check_link_address(profile, device, host_tables)
        yield from _check_competition(device, candidates)
        with_addresses = [profile for profile in candidates if profile.addresses]
        if len(with_addresses) == 1:
            yield from _check_addresses(with_addresses[0], device, planned_addresses.get(device, ()))
        for profile in candidates if device in planned_addresses else ():
            yield from _check_lease(profile, device, planned_addresses[device])
            yield from _check_gateways(profile, device, host_tables)


def list_devices_with_ports(devices: Collection[str], host_tables: HostTables) -> tuple[str, ...]:
    """Some devices, and the ports of those that are bonds."""
    ports = [port for device in devices for port in list_bond_ports(device, host_tables)]
    return tuple(dict.fromkeys((*devices, *ports)))


def _check_link_address(
    profile: InterfaceProfile, device: str, host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    details = host_tables.link_details.get(device, LinkDetails())
    is_known = bool(details.permanent_address) or device in host_tables.permanent_addresses
    observed = get_permanent_address(device, host_tables)
    if not is_known and not details.is_bond_port:
        observed = details.link_address.lower()  # also of a bond itself, as the address of a file for it
    if not profile.link_address or not observed or (profile.has_other_link_address and not is_known):
        return
    yield CheckedItem("the link address in a file of an interface", f"{profile.origin}, {device}")
    if shorten_link_address(profile.link_address) == shorten_link_address(observed):
        return
    owner = find_owner_of_address(profile.link_address, host_tables)
    reason = f"that of {owner}" if owner else "which no interface of this host has (an adapter that was replaced?)"
    yield RouteFault(
        "not applied at the start", f"{profile.origin}, {profile.address_option}",
        f"the file is for the link address {profile.link_address}, {reason}; {device} has {observed}:"
        f" {profile.manager} does not apply it to {device} at the next start, and then "
        + (f"{details.master} lacks this port" if details.master else "there are none of its addresses and routes"),
        f"write {profile.address_option}{': ' if profile.manager == MANAGER_OF_NETPLAN else '='}{observed}"
        + (", or remove the line" if profile.device and not profile.selectors else ""),
    )  # fmt: skip


def _check_addresses(
    profile: InterfaceProfile, device: str, planned_addresses: Sequence[str]
) -> Iterator[RouteFault | CheckedItem]:
    """The only file of a device that sets addresses of an IP version, but not the planned one, or another prefix."""
    for planned in map(ipaddress.ip_interface, planned_addresses):
        interfaces = {text: ipaddress.ip_interface(text) for text in profile.addresses if text != "dhcp"}
        written = [text for text, interface in interfaces.items() if interface.version == planned.version]
        if not written:
            continue
        yield CheckedItem("the address in a file of an interface", f"{profile.origin}, {planned}")
        same = next((text for text in written if interfaces[text].ip == planned.ip), None)
        assumed = _add_assumed_prefix(same, profile.manager) if same else ""
        if same is not None and ("/" not in assumed or ipaddress.ip_interface(assumed) == planned):
            continue
        effect = f"{device} has {assumed or written[0]} after the next start, not {planned} as in the system file"
        if same != (assumed or None):
            effect = f"{effect} (systemd-networkd takes this prefix where the file has none)"
        lost = "it then looks for other hosts on its link" if same else "no host and no router finds it there"
        yield RouteFault(
            "another prefix in a file" if same else "another address in a file", f"{profile.origin}, {device}",
            f"{effect}: {lost}", f"write {planned} in {profile.origin}",
        )  # fmt: skip


def drop_faults_of_routes_in_files(faults: Sequence[RouteFault]) -> tuple[RouteFault, ...]:
    """The faults without files for another interface whose routes are reported with that interface, and without routes
    by such an interface in further files, which the remedy then names."""
    misplaced = [fault for fault in faults if fault.kind == WRONG_DEVICE and fault.location.endswith(IN_FILES)]
    remaining = [
        fault for fault in faults
        if fault.kind != FILE_FOR_ANOTHER_INTERFACE
        or not any(fault.location.partition(",")[0] in other.location for other in faults if other.kind == WRONG_DEVICE)
    ]  # fmt: skip
    dropped: list[RouteFault] = []
    for number, fault in enumerate(remaining):
        if fault.kind != FILE_FOR_ANOTHER_INTERFACE:
            continue
        device = fault.location.rpartition(", ")[2]
        routes = [other for other in misplaced if f" sought on {device}" in other.problem]
        files = list(dict.fromkeys(other.location.partition(",")[0] for other in routes))
        if routes:
            remaining[number] = replace(fault, remedy=f"{fault.remedy}, and in {' and '.join(files)}")
            dropped += routes
    return tuple(fault for fault in remaining if fault not in dropped)


def _check_devices_of_addresses(
    profiles: Sequence[InterfaceProfile], host_tables: HostTables, planned_addresses: Mapping[str, Sequence[str]]
) -> Iterator[RouteFault | CheckedItem]:
    """Files that set an address of this host on another interface, where no file sets it on the right one."""
    for device, addresses in planned_addresses.items():
        hosts = {ipaddress.ip_interface(text).ip for text in addresses}
        setting = [
            profile
            for profile in profiles
            if profile.is_started and (profile.device or profile.link_address)
            and hosts & {ipaddress.ip_interface(text).ip for text in profile.addresses if text != "dhcp"}
        ]  # fmt: skip
        if any(fnmatchcase(device, name) for profile in setting for name in profile.device.split()):
            continue
        for profile in setting:
            if profile.selectors or not profile.device:  # chooses its adapter by other properties than its name
                yield from _check_link_address(profile, device, host_tables)
                continue
            is_missing = host_tables.links and profile.device not in host_tables.links
            yield RouteFault(
                FILE_FOR_ANOTHER_INTERFACE, f"{profile.origin}, {profile.device}",
                f"the file is for {profile.device}{', which this host lacks' if is_missing else ''}, and sets the"
                f" address of {device}: after the next start {device} has nothing of what is in it",
                f"write {device} in place of {profile.device} in {profile.origin}",
            )  # fmt: skip


def _check_lease(
    profile: InterfaceProfile, device: str, planned_addresses: Sequence[str]
) -> Iterator[RouteFault | CheckedItem]:
    """A file that asks for an address by DHCP besides the planned one."""
    hosts = {ipaddress.ip_interface(text).ip for text in planned_addresses}
    static = next((text for text in profile.addresses
                   if text != "dhcp" and ":" not in text and ipaddress.ip_interface(text).ip in hosts), "")  # fmt: skip
    if not static:
        return
    yield CheckedItem("DHCP in a file of an interface", f"{profile.origin}, {device}")
    if profile.asks_dhcp or "dhcp" in profile.addresses:
        yield RouteFault(
            "address by DHCP too", f"{profile.origin}, {device}",
            f"{profile.origin} asks for an address of {device} by DHCP besides {static}: an answer adds an address and"
            f" a default route by this network; without one {profile.manager} waits at the start, and"
            " NetworkManager takes the interface down again",
            f"write {_OPTIONS_WITHOUT_DHCP.get(profile.manager, 'BOOTPROTO=none')} in {profile.origin}",
        )  # fmt: skip


def _check_gateways(profile: InterfaceProfile, device: str, host_tables: HostTables) -> Iterator[RouteFault]:
    """A default route of a file by the planned interface, where that of the running host leaves by another one."""
    for gateway in profile.gateways:
        version = ipaddress.ip_address(gateway).version
        defaults = [
            route for route in host_tables.routes or ()
            if route.destination in ("default", "0.0.0.0/0", "::/0") and route.table == "main"
            and (route.version or 4) == version
        ]  # fmt: skip
        devices = {name for route in defaults for name in (route.device, *(hop.device for hop in route.hops)) if name}
        if devices and device not in devices:
            yield RouteFault(
                "second default route", f"{profile.origin}, {device}",
                f"{profile.origin} sets a default route by {gateway} on {device}, and that of this host leaves by"
                f" {', '.join(sorted(devices))}: after the next start packets to all other networks may take {gateway}",
                f"remove the gateway {gateway} from {profile.origin}; routes to single networks need none",
            )  # fmt: skip


def _add_assumed_prefix(address_text: str, manager: str) -> str:
    """An address with the prefix that systemd-networkd takes for one without: the length of its old class in IPv4."""
    if "/" in address_text or manager != "systemd-networkd":
        return address_text
    address = ipaddress.ip_address(address_text)
    if address.version == 6:
        return f"{address_text}/128"
    first = address.packed[0]
    return f"{address_text}/{8 if first < _FIRST_OF_CLASS_B else 16 if first < _FIRST_OF_CLASS_C else 24}"


def _check_competition(device: str, candidates: Sequence[InterfaceProfile]) -> Iterator[RouteFault]:
    """Several files for one interface, of which the manager uses one."""
    for manager in dict.fromkeys(profile.manager for profile in candidates):
        rivals = sorted((each for each in candidates if each.manager == manager), key=lambda each: each.origin)
        names = [profile.origin for profile in rivals]
        if len(names) < 2 or len({*names}) != len(names) or not _do_compete(device, rivals):
            continue
        if manager == "systemd-networkd":
            effect = f"systemd-networkd uses the first in the order of names, {names[0]}, and ignores the others"
            remedy = f"narrow the [Match] of {names[0]}, or give the right file the first name"
        elif manager == "NetworkManager":
            effect = "NetworkManager activates one of these profiles, that which was used last"
            remedy = "remove the wrong one, or set autoconnect=false in it"
        elif manager == MANAGER_OF_NETPLAN:
            effect = f"netplan joins their lists, so {device} gets the addresses of all"
            remedy = "remove the wrong one (cloud-init writes 50-cloud-init.yaml again, unless that is disabled)"
        else:
            effect = "the network service applies one after the other, NetworkManager only one of them"
            remedy = "remove the wrong one, or set ONBOOT=no in it"
        yield RouteFault(
            "several files for an interface", ", ".join(names),
            f"{' and '.join(names)} are all for {device}: {effect}, so its addresses and routes may be others after the"
            " next start",
            remedy,
        )  # fmt: skip


def _do_compete(device: str, rivals: Sequence[InterfaceProfile]) -> bool:
    """Whether several files of one manager set the same: of networkd a file for the device itself that does not come
    first, of others addresses of one IP version with one priority."""
    if rivals[0].manager == "systemd-networkd":
        return any(device in profile.device.split() for profile in rivals[1:])
    if rivals[0].manager == MANAGER_OF_NETPLAN and len({profile.addresses for profile in rivals}) == 1:
        return False
    versions = [version for profile in rivals for version in profile.versions]
    return len({*versions}) < len(versions) and len({profile.priority for profile in rivals}) == 1
