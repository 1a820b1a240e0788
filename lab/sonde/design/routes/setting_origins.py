# SPDX-License-Identifier: Apache-2.0
"""Names the configuration files that set a wrong setting, in the order in which the host reads them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.setting_names import parse_setting_name

# The end of the location of a fault in what configuration files set beside live outputs.
IN_FILES = " in the configuration files"
# The setting and its value at the beginning of the location of a fault.
_LOCATION_PATTERN = re.compile(rf"([a-z]\S*) = (.*?)(?:{IN_FILES})?")


def add_setting_files(faults: Sequence[RouteFault], host_tables: Sequence[HostTables]) -> tuple[RouteFault, ...]:
    """The faults of settings with the files that set these values, in their remedies; others are unchanged."""
    values_by_name: dict[str, str] = {}
    files_by_name: dict[str, Sequence[str]] = {}
    for tables in host_tables:
        files_by_name |= tables.setting_files
        values_by_name |= {name: (tables.settings or {})[name] for name in tables.setting_files}
    return tuple(_add_files(fault, values_by_name, files_by_name) for fault in faults)


def _add_files(
    fault: RouteFault, values_by_name: Mapping[str, str], files_by_name: Mapping[str, Sequence[str]]
) -> RouteFault:
    match = _LOCATION_PATTERN.fullmatch(fault.location)
    name = _find_written_name(parse_setting_name(match[1]), files_by_name) if match else ""
    if match is None or not name or values_by_name[name] != match[2]:
        return fault
    *earlier, last = files_by_name[name]
    text = f"{last} sets it" + (f", after {', '.join(earlier)}" if earlier else "")
    return replace(fault, remedy=f"{fault.remedy} ({text})")


def _find_written_name(setting_name: str, written_names: Collection[str]) -> str:
    """The name under which files set a setting: its own, or a pattern; "" for none."""
    if setting_name in written_names:
        return setting_name
    return next((name for name in written_names if "*" in name and fnmatchcase(setting_name, name)), "")
