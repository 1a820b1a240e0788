# SPDX-License-Identifier: Apache-2.0
"""Groups of parts that should be alike, and the targets of Lustre as such groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.model.units import format_bytes

# Facts of targets that count something, identify a target or have a rule in another module.
_INDIVIDUAL_TARGET_FACT_PATTERN = re.compile(
    r"label_\w+|index|flags|file_system|backend|management|failover|parameters|mount_options|label|state|device_state"
    r"|used_\w+|kib_\w+|kib|inodes\w*|unreachable|active|degraded|prealloc\w*|cur_\w+|tot_\w+|kbytes\w*|files\w*|num_\w+"
    r"|last_\w+|.*uuid|.*grant\w*|.*stats|import|.*_usage|uptime|brw_size|max_pages_per_rpc|max_rpcs_in_flight"
    r"|max_dirty_mb|checksums|reserved|check_interval|max_mounts|stripe_\w+|targets|components|default_offset|journal"
    r"|max_create_count|create_count|destroys_in_flight|statfs_\w+|recovery_\w+|hash|instance|lwp_\w+|features|changelog_users|version"
    r"|nids|layout|mirrors|pools"
)
# Features of ldiskfs that the kernel sets, or that another rule is about.
_CHANGING_FEATURES = frozenset({"needs_recovery", "orphan_present", "mmp", "recovery", "has_journal"})


@dataclass(frozen=True)
class PeerGroup:
    """Parts that should be alike: their attributes by name. In an `is_strict` group all values must agree; in others
    only a few parts that differ from a clear majority are faults."""

    parts: str  # what they are, in the plural: members of md0
    peers: Mapping[str, Mapping[str, str]]
    is_strict: bool
    location: str = ""  # of the comparison; empty is each part itself
    key: object = None  # what parts of other hosts must have in common with these to be their peers


def group_targets(file_systems: Sequence[ObservedFileSystem]) -> Iterator[PeerGroup]:
    """Targets of one role in one file system of Lustre, their backends, and the clients of such targets."""
    groups: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    features: dict[tuple[str, str], dict[str, set[str]]] = {}
    for each in file_systems:
        role = re.sub(r"(OST|MDT)[0-9a-f]{4}", r"\1*", each.location)
        if each.kind not in ("lustre", "ldiskfs") or role == each.location:
            continue
        numbers = {"block": each.block, "unit": each.unit, "width": each.width, "log": each.log,
                   "group_blocks": each.group_blocks} if each.kind == "ldiskfs" else {}  # fmt: skip
        facts = {name: str(value) for name, value in numbers.items() if value is not None}
        facts |= {name: value for name, value in each.facts.items()
                  if value and not _INDIVIDUAL_TARGET_FACT_PATTERN.fullmatch(name)}  # fmt: skip
        if each.kind == "ldiskfs" and each.facts.get("reserved", "").isdigit() and each.blocks:
            facts["reserved space"] = f"{100 * int(each.facts['reserved']) / each.blocks:.0f} %"
        if each.kind == "ldiskfs" and each.size_bytes and int(each.facts.get("inodes", "0") or 0):
            # rounded to a power of two: targets of unequal size have nearly the same
            ratio = 2 ** round(log2(each.size_bytes / int(each.facts["inodes"])))
            facts["inodes"] = f"one for {format_bytes(ratio)}"
        groups.setdefault((each.kind, role), {})[each.location] = facts
        features.setdefault((each.kind, role), {})[each.location] = set(each.facts.get("features", "").split())
    for (kind, role), peers in groups.items():
        for name in sorted(set().union(*features[kind, role].values()) - _CHANGING_FEATURES):
            for location, values in features[kind, role].items():
                peers[location] |= {f"feature {name}": "on" if name in values else "off"} if values else {}
        yield PeerGroup(f"targets {role}", peers, False)
