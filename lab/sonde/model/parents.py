# SPDX-License-Identifier: Apache-2.0
"""To which server and which unit each storage target belongs, as run.json keeps it (`parents`).

It is taken from a described system when the run begins (`model.system.parents`), and of it what the record names stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

# What servers are called, by what they serve; every other level is one of units.
SERVERS = {"ost": "OSS", "mdt": "MDS", "nsd": "NSD server"}
SERVER = "server"


@dataclass(frozen=True)
class Parents:
    """By the name of a level ("OSS", "SSU") its parts, each with the names that records have for its targets."""

    system: str = ""
    levels: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.levels)

    def by_target(self, level: str) -> dict[str, str]:
        """The part of a level that each target belongs to."""
        return {target: part for part, targets in self.levels.get(level, {}).items() for target in targets}

    def server_of(self, target: str) -> str | None:
        """Who serves a target."""
        return self._part_of(target, servers=True)

    def unit_of(self, target: str) -> str | None:
        """The unit that a target is part of."""
        return self._part_of(target, servers=False)

    def _part_of(self, target: str, servers: bool) -> str | None:
        name = plain_name(target)
        for level, parts in self.levels.items():
            if (level in (SERVER, *SERVERS.values())) == servers:
                for part, targets in parts.items():
                    if name in targets:
                        return part
        return None

    def only(self, names: Collection[str]) -> Parents:
        """What is known about these targets, as records name them."""
        wanted = {plain_name(name) for name in names}
        levels = {
            level: {part: kept for part, targets in parts.items() if (kept := tuple(t for t in targets if t in wanted))}
            for level, parts in self.levels.items()
        }
        return Parents(self.system, {level: parts for level, parts in levels.items() if parts})

    def as_json(self) -> dict[str, Any]:
        """The machine form."""
        levels = {level: {part: list(names) for part, names in parts.items()} for level, parts in self.levels.items()}
        return {"system": self.system, "levels": levels}


def parents_from(document: Any) -> Parents:
    """What run.json says, as far as it makes sense."""
    if not isinstance(document, Mapping) or not isinstance(document.get("levels"), Mapping):
        return Parents()
    levels = {
        str(level): {
            str(part): tuple(str(name) for name in names) for part, names in parts.items() if isinstance(names, list)
        }
        for level, parts in document["levels"].items()
        if isinstance(parts, Mapping)
    }
    return Parents(str(document.get("system") or ""), levels)


def plain_name(target: str) -> str:
    """The part of a record's name of a target that a described system knows: of BeeGFS ("4201@oss-4") the number."""
    return target.partition("@")[0]
