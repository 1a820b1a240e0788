# SPDX-License-Identifier: Apache-2.0
"""Names the line of a configuration file that sets a wrong value of an interface, in the remedy of its fault: who
changes the running host only gets the wrong value back at the next start."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sonde.design.routes.check_arp_monitor import SILENT_TARGET
from sonde.design.routes.check_interfaces import TEMPORARY_ADDRESS
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.file_settings import BOND, IPV6_MTU, MODE, MTU, PRIVACY, VLAN
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.setting_origins import IN_FILES

_IPV6_MTU_PATTERN = re.compile(r"net\.ipv6\.conf\.(.+)\.mtu = (\d+)")
# The options of a bond that each kind of fault is about.
_BOND_OPTIONS = {
    "bond mode": ("mode",), "bond hash by address": ("xmit_hash_policy",),
    "bond ports not watched": ("miimon", "arp_interval"), SILENT_TARGET: ("arp_ip_target", "arp_interval"),
    "dead ports are noticed late": ("miimon", "downdelay"), "bond needs more ports": ("min_links",),
    "packets received twice": ("all_slaves_active",), "bond change not announced": ("num_grat_arp", "num_unsol_na"),
}  # fmt: skip
_TEMPORARY_VALUES = ("1", "2")


def add_file_remedies(
    faults: Sequence[RouteFault], host_tables: HostTables, configured_tables: HostTables | None
) -> tuple[RouteFault, ...]:
    """The faults with the lines of files that set their values. `host_tables` have the settings of all files,
    `configured_tables` are those of the files alone."""
    return tuple(_add_lines(fault, host_tables, configured_tables or host_tables) for fault in faults)


def _add_lines(fault: RouteFault, live_tables: HostTables, configured_tables: HostTables) -> RouteFault:
    is_in_files = fault.location.endswith(IN_FILES)
    location = fault.location.removesuffix(IN_FILES)
    tables = configured_tables if is_in_files else live_tables
    values = _list_wrong_values(fault.kind, location, tables)
    settings = [each for each in live_tables.file_settings if (each.device, each.option, each.value) in values]
    lines = list(dict.fromkeys(each.origin for each in settings))
    if not lines:
        return fault
    text = " and ".join(lines)
    if not is_in_files:
        return replace(fault, remedy=f"{fault.remedy}; and correct {text}, which sets it again at the next start")
    return replace(
        fault,
        problem=f"after the next start {fault.problem}",
        remedy=f"correct {text}, which does not hold for the running host yet",
    )


def _list_wrong_values(fault_kind: str, location: str, tables: HostTables) -> set[tuple[str, str, str]]:
    """The device, the option and the value of settings that a fault is about."""
    if fault_kind == "MTU mismatch":
        if match := _IPV6_MTU_PATTERN.fullmatch(location):
            return {(match[1].replace("/", "."), IPV6_MTU, match[2])}
        return {(location, MTU, str(tables.mtus.get(location, "")))}
    if fault_kind == "datagram mode":
        return {(location, MODE, "datagram")}
    if fault_kind == "another VLAN" and location in tables.link_details:
        return {(location, VLAN, str(tables.link_details[location].vlan))}
    if fault_kind == TEMPORARY_ADDRESS:
        return {(location.partition(": ")[0], PRIVACY, value) for value in _TEMPORARY_VALUES}
    device = location.partition(":")[0]
    details = tables.link_details.get(device, LinkDetails())
    options = {**details.bond_options, "mode": details.bond_options.get("mode", details.bond_mode)}
    return {
        (device, f"{BOND} {name}", options[name]) for name in _BOND_OPTIONS.get(fault_kind, ()) if options.get(name)
    }
