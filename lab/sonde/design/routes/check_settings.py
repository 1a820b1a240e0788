# SPDX-License-Identifier: Apache-2.0
"""Finds faults of the settings of a host (kernel options and sysctls), and missing settings of a router."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_limits import find_connection_limits, find_proxy_faults
from sonde.design.routes.check_links import LARGEST_DATAGRAM_MTU
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.file_settings import FileSetting
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import find_kernel_route
from sonde.design.routes.kernel_settings import (
    add_kernel_release,
    audit_settings,
    is_option_stated,
    list_audited_settings,
    list_missing_kernel_options,
)
from sonde.design.routes.router_advertisements import describe_mtu_remedy

_STRICT = 1
# The subject of the comparison of kernel options.
KERNEL_OPTIONS = "kernel options"
# fib_multipath_hash_policy: by addresses, and by addresses inside of tunnels.
_ADDRESS_POLICIES = ("0", "2")


def find_setting_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the settings of a host of one class."""
    if host_tables.options is not None:
        yield CheckedItem(KERNEL_OPTIONS, "kernel")
        mtu = host_view.own_side.mtu
        is_large = host_view.host_class.device.startswith("ib") and mtu is not None and mtu > LARGEST_DATAGRAM_MTU
        for name, feature in list_missing_kernel_options(host_tables.options, host_view.fabric.version, is_large):
            if is_option_stated(name, host_tables.options):
                yield RouteFault(
                    "kernel option missing", name, f"the kernel lacks it: {feature} will not work",
                    f"build with {name}=y",
                )  # fmt: skip
    if host_tables.settings is None:
        return
    yield from check_setting_names(host_tables)
    yield from audit_host_settings(
        add_kernel_release(host_tables.settings, host_view.host_class.operating_system),
        host_tables.options,
        host_view.host_class.settings,
    )
    fabric, device = host_view.fabric, host_view.host_class.device
    policy_name = f"net.{'ipv4' if fabric.version == 4 else 'ipv6'}.fib_multipath_hash_policy"
    policy = host_tables.settings.get(policy_name)
    if policy is not None and len(fabric.routers) > 1:
        yield CheckedItem("a setting", policy_name)
        if policy in _ADDRESS_POLICIES:
            yield RouteFault(
                "hash by address only", f"{policy_name} = {policy}",
                "all connections between two hosts take one router", "set it to 1: ports count too",
            )  # fmt: skip
    yield from _check_dead_neighbors(host_tables.settings, fabric)
    if fabric.version == 4:
        yield from check_reverse_path(host_tables.settings, device, len(fabric.routers) > 1)
        yield from _check_arp_settings(host_view, host_tables)
        yield from find_proxy_faults(host_tables.settings, (device,))
    else:
        has_mtu_fault = host_tables.mtus.get(device, host_view.own_side.mtu) != host_view.own_side.mtu
        yield from check_ipv6_settings(
            host_tables.settings,
            (device,),
            None if has_mtu_fault else host_view.own_side.mtu,
            host_tables.file_settings,
        )
    yield from find_connection_limits(host_view, host_tables.settings)
    yield from _check_accepted_redirects(host_tables.settings, device, fabric.version)


def check_ipv6_settings(
    settings: Mapping[str, str],
    devices: Sequence[str],
    network_mtu: int | None = None,
    file_settings: Sequence[FileSetting] = (),
) -> Iterator[RouteFault | CheckedItem]:
    for device in ("all", *devices):
        name = f"net.ipv6.conf.{device}.disable_ipv6"
        if name in settings:
            yield CheckedItem("a setting", name)
        if settings.get(name) == "1":
            yield RouteFault("IPv6 is off", f"{name} = 1", "the kernel uses no IPv6 there", "set it to 0")
        mtu = read_number_setting(settings, f"net.ipv6.conf.{device}.mtu")
        if mtu is not None and network_mtu is not None and mtu < network_mtu and device != "all":
            yield RouteFault(
                "MTU mismatch", f"net.ipv6.conf.{device}.mtu = {mtu}",
                f"IPv6 sends packets of {mtu} B by {device}; the network takes {network_mtu} B",
                describe_mtu_remedy(device, network_mtu, settings, file_settings),
            )  # fmt: skip


def _check_dead_neighbors(settings: Mapping[str, str], fabric: Fabric) -> Iterator[RouteFault | CheckedItem]:
    name = "net.ipv4.fib_multipath_use_neigh"
    value = settings.get(name)
    if value is None or fabric.version != 4 or len(fabric.routers) < 2:
        return
    yield CheckedItem("a setting", name)
    if value == "0":
        yield RouteFault(
            "dead routers are used", f"{name} = 0",
            "flows are also given to a router that the kernel knows to be dead", "set it to 1",
        )  # fmt: skip


def check_setting_names(host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    for written_name in host_tables.unapplied_settings:
        *levels, device, number, setting = written_name.split(".")
        yield CheckedItem("a setting", written_name)
        yield RouteFault(
            "setting not applied", written_name,
            f"sysctl takes the dot of {device}.{number} for a level, so there is no such setting",
            f"write {'.'.join([*levels, f'{device}/{number}', setting])}",
        )  # fmt: skip


def audit_host_settings(
    settings: Mapping[str, str],
    kernel_options: Mapping[str, str] | None = None,
    planned_settings: Mapping[str, object] | None = None,
) -> Iterator[RouteFault | CheckedItem]:
    """Faults among the sysctls of a host; those that the system file itself asks for have to be changed there too."""
    for name in list_audited_settings(settings):
        yield CheckedItem("a setting", name)
    for finding in audit_settings(settings, kernel_options):
        is_planned = str((planned_settings or {}).get(finding.name)) == finding.value
        remedy = f"{finding.remedy}, also in the system file, which asks for it" if is_planned else finding.remedy
        yield RouteFault(f"setting {finding.state}", f"{finding.name} = {finding.value}", finding.reason, remedy)


def read_number_setting(settings: Mapping[str, str], setting_name: str) -> int | None:
    value = settings.get(setting_name, "")
    return int(value) if value.isdigit() else None


def read_all_and_device_setting(
    settings: Mapping[str, str], device_name: str, setting_name: str
) -> tuple[int | None, int | None]:
    """The values of a setting in net.ipv4.conf: for all devices, and for one device."""
    return (
        read_number_setting(settings, f"net.ipv4.conf.all.{setting_name}"),
        read_number_setting(settings, f"net.ipv4.conf.{device_name}.{setting_name}"),
    )


def check_reverse_path(
    settings: Mapping[str, str], device_name: str, has_choice: bool
) -> Iterator[RouteFault | CheckedItem]:
    """The kernel uses the larger value of `all` and the device; 1 is strict, 2 is loose."""
    values = [value for value in read_all_and_device_setting(settings, device_name, "rp_filter") if value is not None]
    if not values:
        return
    yield CheckedItem("a setting", f"net.ipv4.conf.{device_name}.rp_filter")
    if max(values) == _STRICT and has_choice:
        setting = settings.get(f"net.ipv4.conf.{device_name}.rp_filter")
        name = device_name if setting == str(_STRICT) else "all"
        yield RouteFault(
            "strict reverse path", f"net.ipv4.conf.{name}.rp_filter = 1",
            "a packet is dropped when its reply would leave by another interface",
            "set it to 2 (loose) where a host has several networks",
        )  # fmt: skip


def _check_arp_settings(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    settings, device = host_tables.settings or {}, host_view.host_class.device
    ignored = [value for value in read_all_and_device_setting(settings, device, "arp_ignore") if value is not None]
    filtered = [value for value in read_all_and_device_setting(settings, device, "arp_filter") if value is not None]
    if ignored:
        yield CheckedItem("a setting", f"net.ipv4.conf.{device}.arp_ignore")
        if max(ignored) >= 3:
            answer = "never answers ARP requests"
            answer = answer if max(ignored) >= 8 else "does not answer ARP requests for addresses of this scope"
            yield RouteFault(
                "ARP not answered", f"net.ipv4.conf.{device}.arp_ignore = {max(ignored)}",
                f"this host {answer}: routers cannot send to it", "set it to 0 or 1",
            )  # fmt: skip
    if not filtered:
        return
    yield CheckedItem("a setting", f"net.ipv4.conf.{device}.arp_filter")
    if max(filtered) and host_tables.routes is not None:
        for gateway in host_view.routers_by_gateway:
            lookup = find_kernel_route(host_tables, ipaddress.ip_address(gateway))
            if lookup is not None and lookup.route is not None and lookup.route.device not in ("", device):
                yield RouteFault(
                    "ARP not answered", f"net.ipv4.conf.{device}.arp_filter = 1",
                    f"the route to {gateway} leaves by {lookup.route.device}, so requests of that router on {device}"
                    " get no answer",
                    f"set it to 0, or route {', '.join(host_view.own_side.ranges)} by {device}",
                )  # fmt: skip
                return
    same_network = [other for other in host_view.own_side.classes if other.name == host_view.host_class.name]
    if len(same_network) > 1 and not max(filtered) and not max(ignored or [0]):
        devices = ", ".join(other.device for other in same_network)
        yield RouteFault(
            "ARP of several interfaces", f"net.ipv4.conf.{device}.arp_filter = 0",
            f"{devices} are on {host_view.own_side.network}: each answers for the addresses of all, so one of them "
            "may carry"
            " everything",
            "set arp_ignore to 1 and arp_announce to 2",
        )  # fmt: skip


def _check_accepted_redirects(
    settings: Mapping[str, str], device_name: str, version: int
) -> Iterator[RouteFault | CheckedItem]:
    """Hosts that do not forward accept a redirect when `all` or the device allows it; IPv6 has the device only."""
    if version == 6:
        values = [read_number_setting(settings, f"net.ipv6.conf.{device_name}.accept_redirects")]
    else:
        values = list(read_all_and_device_setting(settings, device_name, "accept_redirects"))
    numbers: list[int] = [value for value in values if value is not None]
    if not numbers:
        return
    name = f"net.{'ipv4' if version == 4 else 'ipv6'}.conf.{device_name}.accept_redirects"
    yield CheckedItem("a setting", name)
    if max(numbers):
        yield RouteFault(
            "redirects accepted", f"{name} = 1",
            "one redirect message replaces the multipath route to a host by one router",
            "set it to 0, for all and for the device",
        )  # fmt: skip
