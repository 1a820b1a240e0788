# SPDX-License-Identifier: Apache-2.0
"""Finds configuration files that take a port from its bond, or that name a primary port that the bond does not have.

Source: Linux Documentation/networking/bonding.rst, "primary".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.file_settings import BOND, MASTER
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.link_usability import list_bond_ports

# Other values of NetworkManager may be the name or the UUID of a profile.
_DEVICE_PATTERN = re.compile(r"(?:bond|team|br)\d+")


def find_port_file_faults(devices: Collection[str], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the files of some bonds and of their ports, of which `host_tables` have the state now."""
    for setting in host_tables.file_settings:
        if setting.device not in devices:
            continue
        if setting.option == MASTER:
            details = host_tables.link_details.get(setting.device, LinkDetails())
            is_device = _DEVICE_PATTERN.fullmatch(setting.value) is not None or setting.value in host_tables.links
            if not details.is_bond_port or not details.master or not is_device:
                continue
            yield CheckedItem("the bond of a port in a file", setting.device)
            if setting.value != details.master:
                yield RouteFault(
                    "port of another bond", setting.origin,
                    f"{setting.device} is a port of {details.master}; after the next start it is one of"
                    f" {setting.value}, and {details.master} lacks this port",
                    f"write {details.master} there",
                )  # fmt: skip
        elif setting.option == f"{BOND} primary":
            ports = list_bond_ports(setting.device, host_tables)
            if not ports:
                continue
            yield CheckedItem("the primary port of a bond in a file", setting.device)
            if setting.value not in ports:
                yield RouteFault(
                    "primary is no port", setting.origin,
                    f"{setting.device} is to prefer {setting.value} (primary), which is none of its ports"
                    f" ({', '.join(ports)}): it prefers none",
                    "write the port that it should prefer, or remove primary",
                )  # fmt: skip
