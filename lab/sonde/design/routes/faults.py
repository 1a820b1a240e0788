# SPDX-License-Identifier: Apache-2.0
"""What a check of routes says: faults, and what it could not look at."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.design.routes.tables import HostTables


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: `kind` for programs, where, what, and what to do."""

    kind: str
    where: str
    what: str
    remedy: str


@dataclass(frozen=True)
class Verdict:
    """What a check found, and what it could not look at."""

    host: str
    faults: tuple[Fault, ...]
    unknown: tuple[str, ...]


def unknown(seen: HostTables) -> tuple[str, ...]:
    parts = {
        "routes": seen.routes, "rules": seen.rules, "addresses": seen.addresses, "settings (sysctl)": seen.settings,
        "kernel options": seen.options,
    }  # fmt: skip
    return tuple(name for name, given in parts.items() if given is None)
