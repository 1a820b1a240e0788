# SPDX-License-Identifier: Apache-2.0
"""Which adapter a .link file or a rule of udev selects: by its link address, path, driver, type or first name.

Source: systemd.link(5), "[Match]"; udev(7).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.interface_names import ADDRESS_OPTIONS, LINK_ADDRESS_PATTERN, InterfaceName
from sonde.design.routes.permanent_addresses import get_permanent_address, is_infiniband_address, shorten_link_address

_PCI_PATTERN = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Names that the kernel gives.
_KERNEL_NAME_PATTERN = re.compile(r"(?:eth|ib|usb|wlan)\d+")


def find_naming_entry(
    device: str, names: Sequence[InterfaceName], host_tables: HostTables
) -> tuple[InterfaceName | None, bool]:
    """The entry that names the adapter of a device: the first rule of udev that selects it, else the first .link file
    by name. Also returns whether that is known."""
    for name in sorted(names, key=lambda name: (name.is_link_file, name.origin if name.is_link_file else "")):
        is_selected = is_adapter_selected(name.selectors, device, host_tables)
        if is_selected is not False:
            return (name, True) if is_selected else (None, False)
    return None, True


def is_adapter_selected(selectors: Sequence[tuple[str, str]], device: str, host_tables: HostTables) -> bool | None:
    """Whether options of [Match] select the adapter of a device; None where that of one option is unknown."""
    results = [
        _is_option_met(option, values, get_adapter_value(option, device, host_tables)) for option, values in selectors
    ]
    return False if False in results else None if None in results else True


def get_adapter_value(option: str, device: str, host_tables: HostTables) -> str:
    """What the adapter of a device has for an option of a selection; "" where that is unknown."""
    details = host_tables.link_details.get(device, LinkDetails())
    adapter = host_tables.adapters.get(device, {})
    if option == "Name":
        return device
    if option in ADDRESS_OPTIONS:
        return get_permanent_address(device, host_tables)
    if option == "Path":
        bus_address = adapter.get("bus-info", "")
        return details.path or (f"pci-{bus_address}" if _PCI_PATTERN.fullmatch(bus_address) else "")
    if option == "Driver":
        return adapter.get("driver", "")
    if option == "Type":
        return _find_type(details)
    return _find_original_name(device, host_tables) if option == "OriginalName" else ""


def _is_option_met(option: str, values_text: str, observed: str) -> bool | None:
    if not observed:
        return True if option == "OriginalName" and values_text == "*" else None
    is_inverted = values_text.startswith("!")
    values = values_text.removeprefix("!").split()
    if option not in ADDRESS_OPTIONS:
        return any(fnmatchcase(observed, value) for value in values) != is_inverted
    addresses = [value.lower().replace("-", ":") for value in values]
    if not all(LINK_ADDRESS_PATTERN.fullmatch(address) for address in addresses):
        return None
    return shorten_link_address(observed) in map(shorten_link_address, addresses)


def _find_type(link_details: LinkDetails) -> str:
    if link_details.kind and link_details.kind != "ipoib":
        return link_details.kind
    if is_infiniband_address(link_details.link_address):
        return "infiniband"
    return "ether" if link_details.path else ""  # of a bond, which `ip` without -d does not show, it is "bond"


def _find_original_name(device: str, host_tables: HostTables) -> str:
    """The name that the kernel gave; "" where a file may have given the present one."""
    is_named_by_file = any(name.device == device for name in host_tables.interface_names)
    return device if _KERNEL_NAME_PATTERN.fullmatch(device) and not is_named_by_file else ""
