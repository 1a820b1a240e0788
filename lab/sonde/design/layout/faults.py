# SPDX-License-Identifier: Apache-2.0
"""Results of checking a layout: faults with their cost and remedy, and what could not be checked."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem

# The remedy of what can only be made anew.
MAKE_AS_PLANNED = "save the data, then make it with the script of sonde layout plan, or correct the system file"


@dataclass(frozen=True)
class LayoutFault:
    """One fault: `kind` for programs, its location, the problem, its cost and a remedy. `attributes` are those that it
    is about, by their names in observations, and `parts` the parts that have them; empty is its location.
    `consequences` are further findings that follow from it. `planned` is the planned value of its attributes, `devices`
    are the devices that a line of fstab names, that `hosts` do not see, or the source of the mount that it is about."""

    kind: str
    location: str
    problem: str
    cost: str
    remedy: str
    attributes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    planned: str = ""
    devices: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def observation(self) -> str:
        """The problem without the planned value at its end."""
        text = self.problem.removesuffix(self.planned) if self.planned else self.problem
        return text.removesuffix("; planned is ").removesuffix("; planned are ")

    @property
    def fact_count(self) -> tuple[int, bool]:
        """How much it reports next to the problem: its consequences, then the planned value."""
        return len(self.consequences), bool(self.planned)

    def covers(self, part_name: str, attribute_name: str) -> bool:
        """Whether the fault is about an attribute of a part."""
        return attribute_name in self.attributes and part_name in (self.parts or (self.location,))


@dataclass(frozen=True)
class LayoutCheck:
    """The faults that a check found, what it could not check, and what it compared. `not_compared` holds attributes
    that the scripts of the plan write and that were not compared, with the reasons."""

    faults: tuple[LayoutFault, ...]
    unknown: tuple[str, ...]
    checked_items: tuple[CheckedItem, ...]
    not_compared: tuple[str, ...] = ()
