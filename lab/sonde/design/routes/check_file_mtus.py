# SPDX-License-Identifier: Apache-2.0
"""Finds files of interfaces that leave the MTU out which the interface has now: it is lost at the next start.

Source: systemd.network(5), "MTUBytes"; netplan-yaml(5), "mtu": without it, the driver chooses, mostly 1500 B.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.file_settings import MTU
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_profile import InterfaceProfile
from sonde.design.routes.interface_selection import is_adapter_selected
from sonde.design.routes.link_usability import list_bond_ports, list_devices_below
from sonde.design.routes.setting_origins import IN_FILES

_USUAL_MTU = 1500
# What to write by the program that reads the file.
_REMEDIES = {"systemd-networkd": "write MTUBytes={} in the section [Link] of {}", "netplan": "write mtu: {} in {}"}


def find_lost_mtus(
    profiles: Sequence[InterfaceProfile], devices: Collection[str], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Files that set the addresses of some interfaces, where no file sets their large MTU. `host_tables` have the MTUs
    now, and the settings of all files."""
    for device in devices:
        mtu = host_tables.mtus.get(device, 0)
        # a VLAN has the MTU of the device below it, which another file may set
        if mtu <= _USUAL_MTU or device in host_tables.transport_modes or list_devices_below(device, host_tables):
            continue
        carriers = [device, *list_bond_ports(device, host_tables)]
        for profile in profiles:
            if profile.device != device or profile.manager not in _REMEDIES or not profile.addresses:
                continue
            if profile.asks_dhcp or "dhcp" in profile.addresses or not profile.is_started:
                continue
            yield CheckedItem("the MTU in a file of an interface", f"{profile.origin}, {device}")
            if not _is_mtu_stated(carriers, host_tables):
                yield RouteFault(
                    "MTU not in the files", f"{profile.origin}, {device}{IN_FILES}",
                    f"{device} takes packets of {mtu} B now, and no file says so: after the next start it has that"
                    f" of its driver, mostly {_USUAL_MTU} B",
                    _REMEDIES[profile.manager].format(mtu, profile.origin),
                )  # fmt: skip


def _is_mtu_stated(devices: Collection[str], host_tables: HostTables) -> bool:
    """Whether a file states the MTU of one of some devices, or may do so: a drop-in, or a .link file for it."""
    patterns = [each.device for each in host_tables.file_settings if each.option == MTU]
    return any(
        not pattern or any(fnmatchcase(device, name) for device in devices for name in pattern.split())
        for pattern in patterns
    ) or any(
        name.is_link_file and not name.device and is_adapter_selected(name.selectors, device, host_tables) is not False
        for name in host_tables.interface_names
        for device in devices
    )
