# SPDX-License-Identifier: Apache-2.0
"""Numbers of each router in the configuration of hosts: its routing table, its firewall mark, the preference of its
rule.

They are those of the system file (`table`, `mark`, `preference` of routers: those of the first, the others count on),
else the next free ones. A host that belongs to several fabrics has the rules of all of them, so no two routers of a
system share a number. IPv4 and IPv6 have rules and tables of their own: a router has the same numbers in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.network import Router
from sonde.model.tables.quantity import Quantity

# Number of the first router's table and mark.
FIRST_TABLE = 1
# The rules come before that of the main table (32766), with room for rules of the site.
FIRST_PREFERENCE = 1000
_LAST_PREFERENCE = 32765
# default, main and local
_KERNEL_TABLES = (253, 254, 255)
_LAST_NUMBER = 2**32 - 1


@dataclass(frozen=True)
class RouterPolicyNumbers:
    """Numbers of one router."""

    table: int
    mark: int
    preference: int


def is_ip_router(system: System, router: str) -> bool:
    """Whether a router forwards IP."""
    table = system.get_part(router).table
    return isinstance(table, Router) and table.protocol in ("ip", "")


def assign_router_numbers(system: System) -> dict[str, RouterPolicyNumbers]:
    """The numbers of all IP routers of a system. Raises UserError when numbers of the file cannot be used."""
    names = [name for name in system.list_part_ids("routers") if is_ip_router(system, name)]
    tables = _assign_numbers(system, names, "table", FIRST_TABLE, _KERNEL_TABLES, _LAST_NUMBER)
    marks = _assign_numbers(system, names, "mark", FIRST_TABLE, (0,), _LAST_NUMBER)
    preferences = _assign_numbers(system, names, "preference", FIRST_PREFERENCE, (0,), _LAST_PREFERENCE)
    return {name: RouterPolicyNumbers(tables[name], marks[name], preferences[name]) for name in names}


def _assign_numbers(
    system: System,
    router_names: Iterable[str],
    member: str,
    first_number: int,
    reserved_numbers: Iterable[int],
    last_number: int,
) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name in router_names:
        item = system.get_part(name)
        start: Quantity | None = getattr(item.table, member)
        if start is not None:
            numbers[name] = int(start) + item.position
    owner: dict[int, str] = {}
    for name, number in numbers.items():
        if number in reserved_numbers or not 0 < number <= last_number:
            raise UserError(
                f"{system.id}: {member} of router {name} is {number}; allowed are 1 to {last_number}"
                f" without {', '.join(str(other) for other in reserved_numbers)}."
            )
        if number in owner:
            raise UserError(
                f"{system.id}: routers {owner[number]} and {name} both have {member} {number}; give each its own."
            )
        owner[number] = name
    used = {*owner, *reserved_numbers}
    candidate = first_number
    for name in router_names:
        if name in numbers:
            continue
        while candidate in used:
            candidate += 1
        if candidate > last_number:
            raise UserError(f"{system.id} has more routers than there are numbers for their {member}.")
        numbers[name] = candidate
        used.add(candidate)
    return numbers
