# SPDX-License-Identifier: Apache-2.0
"""Compares the networks of LNet in files, the option networks of its module or a configuration without NIDs, with the
planned networks and interfaces of a host.

Source: Lustre Operations Manual, "Setting the LNet Module networks Parameter": tcp0(eth0,eth1),o2ib(ib0[0]).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_lnet import (
    find_lnet_hosts,
    get_lnet_network,
    is_same_device,
    list_lnet_addresses,
    normalize_lnet_name,
)
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.model.system import System

_NETWORK_PATTERN = re.compile(r"([a-z][a-z0-9]*)(?:\(([^()]*)\))?(?:\[[^\]]*\])?")


def find_module_network_faults(
    system: System, network_or_host: str, host_tables: HostTables, moved_devices: Mapping[str, str]
) -> Iterator[RouteFault | CheckedItem]:
    """Networks that the option puts on another interface than the system file, or leaves out. `moved_devices` are the
    interfaces that a host uses in place of the planned ones."""
    planned: dict[str, tuple[str, str]] = {}
    for address in list_lnet_addresses(system, find_lnet_hosts(system, network_or_host)):
        if address.device:
            device = moved_devices.get(address.device, address.device)
            written_name = (address.nid or "").partition("@")[2]
            planned.setdefault(get_lnet_network(address.nid), (written_name, device))
    for (file, module, name), value in host_tables.lnet_module_options.items():
        if (module, name) == ("lnet", "networks") and planned:
            is_whole = host_tables.lnet_interfaces is None
            yield from _compare_networks(file, value, planned, is_whole=is_whole)


def _compare_networks(
    file: str, option_value: str, planned: Mapping[str, tuple[str, str]], *, is_whole: bool
) -> Iterator[RouteFault | CheckedItem]:
    """`is_whole`: no other file adds networks."""
    devices_by_network: dict[str, list[str]] = {}
    for network, devices_text in _NETWORK_PATTERN.findall(option_value):
        devices_of_part = re.findall(r"[^\s,\[\]]+", re.sub(r"\[[^\]]*\]", "", devices_text))
        devices_by_network.setdefault(normalize_lnet_name(network), []).extend(devices_of_part)
    location = f"{file}, networks={option_value}"
    for network, (written_name, device) in planned.items():
        yield CheckedItem("the interface of an LNet network in options of its module", f"{file}, {written_name}")
        devices = devices_by_network.get(network)
        if devices is None:
            if is_whole:
                yield RouteFault(
                    "LNet NI missing", location,
                    f"{file} names no network {written_name} of LNet; the system file says {written_name} on {device}:"
                    " after the next start of LNet this host reaches nobody on it",
                    f"write {written_name}({device}) in {file}",
                )  # fmt: skip
        elif devices and not any(is_same_device(each, device) for each in devices):
            yield RouteFault(
                "LNet interface differs", location,
                f"{file} puts {written_name} of LNet on {', '.join(devices)}; the system file says {device}",
                f"write {written_name}({device}) in {file}",
            )  # fmt: skip
