# SPDX-License-Identifier: Apache-2.0
"""Result of a check of routes: faults, comparisons, and subjects without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.host_tables import HostTables


@dataclass(frozen=True)
class RouteFault:
    """One thing that is wrong: `kind` is for programs, the other three are texts for the user."""

    kind: str
    location: str
    problem: str
    remedy: str


@dataclass(frozen=True)
class RouteCheck:
    """The faults of one host, which of its tables and settings the check did not get, what it compared, and the options
    of the plan that it did not compare, with the reasons. `not_examined` names what no check reads or what was given in
    vain, `not_understood` the files of a folder that could not be read, with the reasons."""

    host: str
    faults: tuple[RouteFault, ...]
    unknown: tuple[str, ...]
    comparisons: tuple[CheckedItem, ...]
    not_compared: tuple[str, ...] = ()
    not_examined: tuple[str, ...] = ()
    not_understood: tuple[str, ...] = ()


def list_unknown(host_tables: HostTables, versions: Sequence[int] = ()) -> tuple[str, ...]:
    """The unknown parts of the tables, by the names that users know; of several IP versions also those of one."""
    parts = {
        "routes": host_tables.routes,
        "rules": host_tables.rules,
        "addresses": host_tables.addresses,
        "neighbors": host_tables.neighbors,
        "settings (sysctl)": host_tables.settings,
        "kernel options": host_tables.options,
    }
    by_version = [(version, host_tables.select_version(version)) for version in versions if len(versions) > 1]
    return (
        *(name for name, content in parts.items() if content is None),
        *(
            f"{member} of IPv{version}"
            for member in ("routes", "rules", "addresses")
            for version, tables in by_version
            if getattr(tables, member) is None and getattr(host_tables, member) is not None
        ),
    )
