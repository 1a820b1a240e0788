# SPDX-License-Identifier: Apache-2.0
"""Finds files that give an adapter another name than it has now, or its name to another adapter.

Source: systemd.link(5), "[Match]", "Name"; udev(7), "NAME"; systemd.net-naming-scheme(7).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_names import ADDRESS_OPTIONS, InterfaceName
from sonde.design.routes.interface_selection import find_naming_entry, get_adapter_value, is_adapter_selected

# Names that systemd gives by the slot of an adapter: it has such a name without any file.
_SLOT_NAME_PATTERN = re.compile(r"(?:en|ib)(?:o\d|s\d|p\d|x[0-9a-f]{12}|P\d)\w*")


def find_naming_faults(devices: Collection[str], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the names of some interfaces. A name that two of them swap is a fault of the one that gets it; an entry
    that renames several is one fault."""
    names = host_tables.interface_names
    renaming: list[InterfaceName] = []
    for device in devices:
        entry, is_known = find_naming_entry(device, names, host_tables)
        if entry is not None and entry.device not in ("", *devices) and entry not in renaming:
            renaming.append(entry)
            yield _describe_rename(entry, device)
        entries_of_device = [name for name in names if name.device == device]
        if not entries_of_device or not is_known:
            continue
        yield CheckedItem("the name of an interface in a file", device)
        if any(is_adapter_selected(name.selectors, device, host_tables) is not False for name in entries_of_device):
            continue
        for name in entries_of_device:
            owner = _find_selected_device(name, host_tables)
            if owner or not _SLOT_NAME_PATTERN.fullmatch(device):
                yield _describe_other_adapter(name, device, owner, host_tables)


def _find_selected_device(name: InterfaceName, host_tables: HostTables) -> str:
    """The interface whose adapter an entry selects; "" for none."""
    devices = dict.fromkeys((*host_tables.link_details, *host_tables.permanent_addresses))
    return next((each for each in devices if is_adapter_selected(name.selectors, each, host_tables)), "")


def _describe_rename(name: InterfaceName, device: str) -> RouteFault:
    return RouteFault(
        "interface renamed at the start", f"{name.origin}, {name.device}",
        f"the file gives the adapter with {_describe_values(name.selectors)}, which is {device} now, the name"
        f" {name.device}: there is no {device} with this adapter after the next start",
        f"write {device} there, or remove the line",
    )  # fmt: skip


def _describe_other_adapter(name: InterfaceName, device: str, owner: str, host_tables: HostTables) -> RouteFault:
    effect = f"that of {owner}, which then becomes {device}" if owner else (
        f"which no interface of this host has (an adapter that was replaced?): nothing then names its adapter {device}"
    )  # fmt: skip
    observed = [(option, get_adapter_value(option, device, host_tables)) for option, _ in name.selectors]
    observed_text = _describe_values([(option, value) for option, value in observed if value])
    return RouteFault(
        "interface renamed at the start", f"{name.origin}, {device}",
        f"the file gives the name {device} to the adapter with {_describe_values(name.selectors)}, {effect};"
        f" {device} has {observed_text}",
        f"write {observed_text} there, or remove the line",
    )  # fmt: skip


def _describe_values(options: Iterable[tuple[str, str]]) -> str:
    """Options of a selection; a link address without its option, which differs between formats."""
    return ", ".join(
        f"the link address {value.lower()}" if option in ADDRESS_OPTIONS else f"{option}={value}"
        for option, value in options
    )
