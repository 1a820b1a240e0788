# SPDX-License-Identifier: Apache-2.0
"""Finds files that give an interface its name by the link address of another adapter.

Source: systemd.link(5), "MACAddress", "Name"; udev(7), "NAME"; systemd.net-naming-scheme(7).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_names import InterfaceName
from sonde.design.routes.permanent_addresses import find_owner_of_address, get_permanent_address

# Names that systemd gives by the slot of an adapter: it has such a name without any file.
_SLOT_NAME_PATTERN = re.compile(r"(?:en|ib)(?:o\d|s\d|p\d|x[0-9a-f]{12}|P\d)\w*")


def find_naming_faults(devices: Collection[str], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the names of some interfaces, whose permanent link addresses are known. A name that two of them swap is
    a fault of the one that gets it."""
    for device in devices:
        observed = get_permanent_address(device, host_tables)
        if not observed:
            continue
        for name in host_tables.interface_names:
            if name.link_address == observed and name.device not in devices:
                yield _describe_rename(name, device)
        names = [name for name in host_tables.interface_names if name.device == device]
        if not names:
            continue
        yield CheckedItem("the name of an interface in a file", device)
        if any(name.link_address == observed for name in names):
            continue
        for name in names:
            owner = find_owner_of_address(name.link_address, host_tables)
            if owner or not _SLOT_NAME_PATTERN.fullmatch(device):
                yield _describe_other_adapter(name, device, owner, observed)


def _describe_rename(name: InterfaceName, device: str) -> RouteFault:
    return RouteFault(
        "interface renamed at the start", f"{name.origin}, {name.device}",
        f"the file gives the adapter with {name.link_address}, which is {device} now, the name {name.device}: there is"
        f" no {device} with this adapter after the next start",
        f"write {device} there, or remove the line",
    )  # fmt: skip


def _describe_other_adapter(name: InterfaceName, device: str, owner: str, observed: str) -> RouteFault:
    effect = f"that of {owner}, which then becomes {device}" if owner else (
        f"which no interface of this host has (an adapter that was replaced?): nothing then names its adapter {device}"
    )  # fmt: skip
    return RouteFault(
        "interface renamed at the start", f"{name.origin}, {device}",
        f"the file gives the name {device} to the link address {name.link_address}, {effect}; {device} has {observed}",
        f"write {observed} there, or remove the line",
    )  # fmt: skip
