# SPDX-License-Identifier: Apache-2.0
"""Removes the LUNs of an enclosure from a described system, as csmdelete does for an S-brick of the Cray X1.

Nothing is done to a device: the result is the smaller system, the command of the X1, and the list of what is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from sonde.model.errors import UserError, suggest_close_name
from sonde.model.shell import quote_command
from sonde.model.system import System
from sonde.model.system.changes import remove_parts
from sonde.model.system.dependencies import find_all_dependencies
from sonde.model.system.storage import Enclosure

# Kinds of parts that are lost with a LUN that they need, from the lowest up.
_DEPENDENT_KINDS = ("paths", "slices", "volumes", "targets", "file_systems", "mounts")


@dataclass(frozen=True)
class LunDeletion:
    """`removed`: the parts that are lost, by kind; `command`: csmdelete, empty without chassis and slot; `bytes_freed`:
    capacity of the LUNs, None if a size is unknown."""

    system: System
    removed: dict[str, tuple[str, ...]]
    command: str
    bytes_freed: int | None


def delete_enclosure_luns(system: System, enclosure: str) -> LunDeletion:
    """Removes all LUNs on drives of `enclosure`, and all that needs one of them. Raises UserError if it has none."""
    enclosures = system.list_part_ids("enclosures")
    if enclosure not in enclosures:
        raise UserError(
            f'{system.id} has no enclosure "{enclosure}"; it has {", ".join(enclosures) or "none"}.'
            + suggest_close_name(enclosure, enclosures)
        )
    drives = {
        name for name in system.list_part_ids("drives") if system.find_first_reference(name, "enclosure") == enclosure
    }
    groups = {
        name
        for name in system.list_part_ids("raid_groups")
        if drives.intersection(system.find_references(name, "drives"))
    }
    luns = tuple(
        name for name in system.list_part_ids("luns") if groups.intersection(system.find_references(name, "raid_group"))
    )
    if not luns:
        raise UserError(f"{enclosure} of {system.id} holds no LUN: nothing can be deleted.")
    removed = {"luns": luns}
    for kind in _DEPENDENT_KINDS:
        if lost := tuple(
            name for name in system.list_part_ids(kind) if find_all_dependencies(system, name).intersection(luns)
        ):
            removed[kind] = lost
    names = frozenset(name for lost in removed.values() for name in lost)
    sizes = [system.compute_capacity(lun) for lun in luns]
    known_sizes = [size for size in sizes if size is not None]
    return LunDeletion(
        remove_parts(system, names),
        removed,
        _format_command(system, enclosure),
        sum(known_sizes) if len(known_sizes) == len(sizes) else None,
    )


def _format_command(system: System, enclosure: str) -> str:
    box = system.get_part(enclosure).table
    if not isinstance(box, Enclosure) or box.chassis is None or box.slot is None:
        return ""
    return quote_command(["csmdelete", int(box.chassis), int(box.slot), "SBRICK"])
