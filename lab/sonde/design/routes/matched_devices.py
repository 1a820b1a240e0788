# SPDX-License-Identifier: Apache-2.0
"""Finds the interfaces of configuration files that choose their adapter by its link address, driver, path or type, not
by the name of the interface.

Source: netplan-yaml(5), "match"; systemd.network(5), "[Match]".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.routes.file_settings import MTU, FileSetting
from sonde.design.routes.host_tables import LOOPBACK, HostTables, ObservedRoute
from sonde.design.routes.inactive_profile import InactiveProfile
from sonde.design.routes.interface_names import ADDRESS_OPTIONS
from sonde.design.routes.interface_profile import InterfaceProfile
from sonde.design.routes.interface_selection import is_adapter_selected

_Devices = dict[tuple[str, str], str]  # the interfaces of this host by file and by the name of them in it


def name_matched_devices(tables: HostTables, host_tables: HostTables) -> HostTables:
    """The tables of files with the interfaces of a host that they choose; `host_tables` have its adapters. Routes of a
    file with several definitions of the same name keep that name, as they do not show which definition they are of."""
    profiles = tuple(_name_profile(profile, host_tables) for profile in tables.interface_profiles)
    if profiles == tables.interface_profiles:
        return tables
    counts = Counter((profile.origin, profile.device) for profile in tables.interface_profiles)
    devices: _Devices = {
        (old.origin, old.device): profile.device
        for profile, old in zip(profiles, tables.interface_profiles, strict=True)
        if old.selectors and counts[old.origin, old.device] == 1 and profile.device
    }
    settings = tuple(_name_setting(each, devices) for each in tables.file_settings)
    renamed = [each for each, old in zip(settings, tables.file_settings, strict=True) if each is not old]
    replaced = {name for _, name in devices} - {*devices.values()}
    return replace(
        tables,
        interface_profiles=profiles,
        inactive_profiles=tuple(_name_inactive_profile(each, devices) for each in tables.inactive_profiles),
        file_settings=settings,
        mtus={name: mtu for name, mtu in tables.mtus.items() if name not in replaced}
        | {each.device: int(each.value) for each in renamed if each.option == MTU and each.value.isdigit()},
        routes=tables.routes and tuple(_name_route(each, devices) for each in tables.routes),
    )


def list_unmatched_files(
    profiles: Sequence[InterfaceProfile], host_tables: HostTables, reported_files: Sequence[str]
) -> Iterator[str]:
    """Files whose interface the outputs do not show, and of which no fault is reported."""
    for profile in profiles:
        if not profile.selectors or profile.device in host_tables.link_details or profile.origin in reported_files:
            continue
        options = " ".join(f"{option}={value}" for option, value in profile.selectors)
        yield f"{profile.origin} (the outputs do not show exactly one interface that {options} chooses)"


def _find_device(profile: InterfaceProfile, host_tables: HostTables) -> str:
    """The only interface that a file chooses; "" where that is unknown, as where another adapter may have the same
    driver. A bond has no address from its maker."""
    results = {
        device: is_adapter_selected(profile.selectors, device, host_tables) for device in host_tables.link_details
    }
    chosen = [device for device, is_chosen in results.items() if is_chosen]
    if any(option in ADDRESS_OPTIONS for option, _ in profile.selectors):  # no two adapters have the same one
        results = {}
    if any(is_chosen is None and not _is_virtual(device, host_tables) for device, is_chosen in results.items()):
        return ""
    if not chosen and profile.link_address:
        chosen = [
            device
            for device, details in host_tables.link_details.items()
            if details.link_address.lower() == profile.link_address and not details.is_bond_port
        ][:1]
    return chosen[0] if len(chosen) == 1 else ""


def _is_virtual(device: str, host_tables: HostTables) -> bool:
    """Whether a device is no adapter: the loopback device, a bond, a bridge or a VLAN."""
    details = host_tables.link_details[device]
    has_ports = any(each.master == device for each in host_tables.link_details.values())
    return device == LOOPBACK or has_ports or details.kind not in ("", "ipoib") or bool(details.parent)


def _name_profile(profile: InterfaceProfile, host_tables: HostTables) -> InterfaceProfile:
    device = _find_device(profile, host_tables) if profile.selectors else ""
    return replace(profile, device=device) if device else profile


def _name_setting(setting: FileSetting, devices: _Devices) -> FileSetting:
    device = devices.get((_get_file_name(setting.origin), setting.device))
    return replace(setting, device=device) if device else setting


def _name_inactive_profile(profile: InactiveProfile, devices: _Devices) -> InactiveProfile:
    file_name = _get_file_name(profile.origin)
    return replace(profile, devices=tuple(devices.get((file_name, name), name) for name in profile.devices))


def _name_route(route: ObservedRoute, devices: _Devices) -> ObservedRoute:
    file_name = _get_file_name(route.origin)
    hops = tuple(replace(hop, device=devices.get((file_name, hop.device), hop.device)) for hop in route.hops)
    return replace(route, device=devices.get((file_name, route.device), route.device), hops=hops)


def _get_file_name(origin: str) -> str:
    return origin.partition(",")[0].rpartition("/")[2]
