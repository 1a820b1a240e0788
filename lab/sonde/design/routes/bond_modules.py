# SPDX-License-Identifier: Apache-2.0
"""Options of the module bonding (modprobe.d), which every bond gets whose own file has none.

Source: Linux Documentation/networking/bonding.rst, "Bonding Driver Options"; modprobe.d(5), "options", "alias".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.routes.bond_options import BOND_OPTION_NAMES, HASH_POLICIES, make_bond_details
from sonde.design.routes.file_settings import BOND, FileSetting
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.output_texts import split_shell_words

MODULE_FORMAT = "modprobe"
# The device of settings that are for all bonds.
_ALL_BONDS = "*"
_PREFIX = f"{BOND} "


def read_bonding_options(file_text: str, file_name: str) -> Iterator[FileSetting]:
    """The options of bonds in a file of modprobe.d: of the module, or of an alias of it, which names one bond."""
    lines = list(enumerate(file_text.replace("\\\n", "  ").splitlines(), start=1))
    devices = {"bonding": _ALL_BONDS}
    for _, line in lines:
        if match := re.fullmatch(r"\s*alias\s+(\S+)\s+bonding\s*", line):
            devices[match[1]] = match[1]
    for number, line in lines:
        tokens = split_shell_words(line, skips_comments=True)
        if len(tokens) < 3 or tokens[0] != "options" or tokens[1] not in devices:
            continue
        origin = f"{file_name.rpartition('/')[2]}, line {number} ({line.strip()})"
        for name, separator, value in (token.partition("=") for token in tokens[2:]):
            if separator and name in BOND_OPTION_NAMES:
                yield FileSetting(devices[tokens[1]], f"{_PREFIX}{name}", _name_value(name, value), origin)


def _name_value(option: str, value: str) -> str:
    """The value of an option; a policy by its name, which the module also takes as a number."""
    is_number = option == "xmit_hash_policy" and value.isdigit() and int(value) < len(HASH_POLICIES)
    return HASH_POLICIES[int(value)] if is_number else value


def apply_bonding_options(host_tables: HostTables, configured_tables: HostTables) -> HostTables:
    """The tables of configuration files, with the options of the module for those bonds of a host whose own files set
    none. What the module leaves open is taken as it is now."""
    settings = configured_tables.file_settings
    common = [each for each in settings if each.device == _ALL_BONDS]
    configured_bonds = {
        each.device for each in settings if each.option.startswith(_PREFIX) and each.device != _ALL_BONDS
    }
    configured_bonds |= {device for device, details in configured_tables.link_details.items() if details.bond_mode}
    modes = {
        device: details.bond_mode
        for device, details in host_tables.link_details.items()
        if details.bond_mode and device not in configured_bonds
    }
    if not common:
        return configured_tables
    details = {bond: _make_details({"mode": mode}, common) for bond, mode in modes.items()}
    return replace(
        configured_tables,
        file_settings=(*settings, *(replace(each, device=bond) for bond in modes for each in common)),
        link_details={**configured_tables.link_details, **details},
    )


def make_details_of_aliases(settings: Sequence[FileSetting]) -> dict[str, LinkDetails]:
    """The bonds that aliases of the module name, where their options have a mode."""
    aliases = {each.device for each in settings if each.device != _ALL_BONDS and each.option == f"{_PREFIX}mode"}
    return {alias: _make_details({}, [each for each in settings if each.device == alias]) for alias in aliases}


def _make_details(usual_options: Mapping[str, str], settings: Sequence[FileSetting]) -> LinkDetails:
    options = {each.option.removeprefix(_PREFIX): each.value for each in settings}
    return make_bond_details({"miimon": "100", **usual_options, **options})
