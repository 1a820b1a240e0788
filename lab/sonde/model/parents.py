# SPDX-License-Identifier: Apache-2.0
"""The server and the unit of each storage target, as stored in run.json (`parents`).

`model.system.parents` takes them from a system file when the run begins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

# Name of the server level by kind of target; every other level is a level of units.
SERVER_LEVELS = {"ost": "OSS", "mdt": "MDS", "nsd": "NSD server"}
GENERIC_SERVER_LEVEL = "server"


@dataclass(frozen=True)
class TargetParents:
    """Parts by level ("OSS", "SSU"), each with the names of its targets as records have them."""

    system: str = ""
    levels: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.levels)

    def map_targets_to_parts(self, part_level: str) -> dict[str, str]:
        """Returns the part of a level by target."""
        return {target: part for part, targets in self.levels.get(part_level, {}).items() for target in targets}

    def find_server_of_target(self, target_name: str) -> str | None:
        """Returns the server of a target."""
        return self._find_part_of_target(target_name, searches_servers=True)

    def find_unit_of_target(self, target_name: str) -> str | None:
        """Returns the unit of a target."""
        return self._find_part_of_target(target_name, searches_servers=False)

    def _find_part_of_target(self, target_name: str, searches_servers: bool) -> str | None:
        name = strip_host_suffix(target_name)
        for level, parts in self.levels.items():
            if (level in (GENERIC_SERVER_LEVEL, *SERVER_LEVELS.values())) == searches_servers:
                for part, targets in parts.items():
                    if name in targets:
                        return part
        return None

    def restrict_to_targets(self, target_names: Collection[str]) -> TargetParents:
        """Returns only these targets with their parents."""
        target_ids = {strip_host_suffix(name) for name in target_names}
        levels = {
            level: {
                part: remaining
                for part, targets in parts.items()
                if (remaining := tuple(target for target in targets if target in target_ids))
            }
            for level, parts in self.levels.items()
        }
        return TargetParents(self.system, {level: parts for level, parts in levels.items() if parts})

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        levels = {level: {part: list(names) for part, names in parts.items()} for level, parts in self.levels.items()}
        return {"system": self.system, "levels": levels}


def parse_parents(parents_member: Any) -> TargetParents:
    """Parses the `parents` member of run.json; malformed entries are skipped."""
    if not isinstance(parents_member, Mapping) or not isinstance(parents_member.get("levels"), Mapping):
        return TargetParents()
    levels = {
        str(level): {
            str(part): tuple(str(name) for name in names) for part, names in parts.items() if isinstance(names, list)
        }
        for level, parts in parents_member["levels"].items()
        if isinstance(parts, Mapping)
    }
    return TargetParents(str(parents_member.get("system") or ""), levels)


def strip_host_suffix(target_name: str) -> str:
    """Returns the target name without its host: "4201" for BeeGFS's "4201@oss-4"."""
    return target_name.partition("@")[0]
