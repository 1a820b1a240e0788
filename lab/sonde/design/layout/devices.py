# SPDX-License-Identifier: Apache-2.0
"""What parts are called on their host, for commands: the name of the system file, else a variable that is to be set."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sonde.design.layout.stores import Store, store_of
from sonde.model.ranges import RangeError, expand
from sonde.model.system import System
from sonde.model.system.storage import Volume

# Names that the Cray X1 had for disks and volumes.
_NOT_LINUX = re.compile("/hw/|/dev/(dsk|xlv)/")


@dataclass
class Devices:
    """Names of devices. `asked` collects variables for parts without a name: variable -> what it stands for."""

    system: System
    asked: dict[str, str] = field(default_factory=dict)

    def of(self, part: str) -> str:
        """The word for a part in a shell script, quoted as it needs."""
        told = told_device(self.system, part)
        if told:
            return told
        item = self.system.item(part)
        beneath = self.system.references(part, "on") if item.kind == "slices" else ()
        if beneath:
            number = getattr(item.table, "number", None)
            return f'"$(slice {self.of(beneath[0])} {int(number) + item.position if number is not None else 1})"'
        if item.kind in ("raid_groups", "volumes") and self._by_host(part):
            return f"/dev/md/{part}" if not lvm(store_of(self.system, part)) else f"/dev/{part}/{part}"
        variable = "DEV_" + re.sub(r"[^A-Z0-9]", "_", part.upper())
        kind = {"drives": "drive", "luns": "LUN", "raid_groups": "RAID group", "volumes": "volume"}[item.kind]
        self.asked[variable] = f"the device of {kind} {part}, like /dev/disk/by-id/..."
        return f'"${variable}"'

    def _by_host(self, part: str) -> bool:
        return self.system.item(part).kind == "volumes" or self.system.reference(part, "controller") is None

    def all(self, stores: tuple[Store, ...]) -> str:
        """The words for several, with blanks between."""
        return " ".join(self.of(one.id) for one in stores)


def told_device(system: System, part: str) -> str:
    """The name that the system file has for a part, or empty. A range of names is dealt out to the parts of a table."""
    item = system.item(part)
    told = str(getattr(item.table, "device", "") or "")
    if not told.startswith("/") or _NOT_LINUX.match(told):
        return ""
    try:
        names = expand(told)
    except RangeError:
        names = (told,)
    if len(names) == item.total:
        return names[item.position]
    return told if item.total == 1 else ""


def lvm(store: Store) -> bool:
    """Whether a volume is made with LVM: as the file says, and where XLV was used and the stripe unit allows it."""
    table = store.table
    if not isinstance(table, Volume) or table.kind != "stripe" or table.software not in ("LVM", "XLV"):
        return False
    return store.unit is not None and store.unit & (store.unit - 1) == 0
