# SPDX-License-Identifier: Apache-2.0
"""Result of a check of routes: faults, comparisons, and subjects without data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.host_tables import HostTables


@dataclass(frozen=True)
class RouteFault:
    """One thing that is wrong: `kind` is for programs, the other three texts are for the user.

    `versions` tells how the fault of an interface or a file that both IP versions find is reported: by its place once,
    as the first or the last of them, or with the problems of all faults of its kind and place. A fault `is_implied` by
    others at all of its places.
    """

    kind: str
    location: str
    problem: str
    remedy: str
    versions: Literal["separate", "first", "last", "joined"] = "separate"
    is_implied: bool = False


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


def drop_repeated_faults(all_faults: Iterable[RouteFault]) -> Iterator[RouteFault]:
    """The faults without those that follow for the other IP version too (a missing interface), and without those that
    other faults explain: a setting that differs from the system file, a fixed link address that is wrong."""
    faults = _join_versions(all_faults)
    explained = {fault.location for fault in faults if not fault.is_implied}
    for fault in faults:
        if not fault.is_implied or not ({fault.location} <= explained or {*fault.location.split(", ")} <= explained):
            yield fault


def _join_versions(faults: Iterable[RouteFault]) -> list[RouteFault]:
    """The faults with those of both IP versions as one."""
    joined: dict[tuple[str, ...], RouteFault] = {}
    for fault in faults:
        texts = (fault.kind, fault.location, fault.problem, fault.remedy)
        key = texts if fault.versions == "separate" else texts[:2]
        first = joined.setdefault(key, fault)
        if fault.versions == "last":
            joined[key] = fault
        elif fault.versions == "joined" and fault.problem not in first.problem:
            joined[key] = replace(first, problem=f"{first.problem}; {fault.problem}")
    return list(joined.values())


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
