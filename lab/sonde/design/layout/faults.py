# SPDX-License-Identifier: Apache-2.0
"""Results of checking a layout: faults with their cost and remedy, and what could not be checked."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem


@dataclass(frozen=True)
class LayoutFault:
    """One fault: `kind` for programs, its location, the problem, its cost and a remedy."""

    kind: str
    location: str
    problem: str
    cost: str
    remedy: str


@dataclass(frozen=True)
class LayoutCheck:
    """The faults that a check found, what it could not check, and what it compared. `not_compared` holds attributes
    that the scripts of the plan write and that were not compared, with the reasons."""

    faults: tuple[LayoutFault, ...]
    unknown: tuple[str, ...]
    checked_items: tuple[CheckedItem, ...]
    not_compared: tuple[str, ...] = ()
