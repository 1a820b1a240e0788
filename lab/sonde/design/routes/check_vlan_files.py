# SPDX-License-Identifier: Apache-2.0
"""Finds VLANs that systemd-networkd does not create at the next start: it does so only where the file of the device
below names them.

Source: systemd.network(5), "VLAN="; systemd.netdev(5), "Kind=vlan".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.file_settings import CHILD, VLAN
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.interface_profile import InterfaceProfile


def find_vlan_file_faults(
    profiles: Sequence[InterfaceProfile], devices: Collection[str], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """VLANs of .netdev files that no file names, although the file of the device below was given."""
    named_vlans = {setting.value for setting in host_tables.file_settings if setting.option == CHILD}
    for setting in host_tables.file_settings:
        file_name, device = setting.origin.partition(",")[0], setting.device
        if setting.option != VLAN or device not in devices or not file_name.endswith(".netdev"):
            continue
        parent = host_tables.link_details.get(device, LinkDetails()).parent or device.rpartition(".")[0]
        parent_files = [
            profile.origin
            for profile in profiles
            if profile.manager == "systemd-networkd" and parent in profile.device.split()
        ]
        if not parent_files:
            continue
        yield CheckedItem("the VLAN in a file of the device below", device)
        if device not in named_vlans:
            yield RouteFault(
                "not applied at the start", f"{parent_files[0]}, VLAN",
                f"{parent_files[0]} does not name {device}, the VLAN of {file_name}: systemd-networkd does not create"
                f" it on {parent} at the next start, and then there are none of its addresses and routes",
                f"write VLAN={device} in section [Network] of {parent_files[0]}",
            )  # fmt: skip
