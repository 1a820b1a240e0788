# SPDX-License-Identifier: Apache-2.0
"""Makes one fault of findings that have one cause: the others become its consequences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_default_stripes import SIZE, join_default_stripe_faults
from sonde.design.layout.check_peer_attributes import drop_repeated_differences
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.merge_adapters import join_faults_of_adapters
from sonde.design.layout.merge_paths import SILENT_PATH, correct_faults_of_paths
from sonde.design.layout.merge_settings import SETTINGS, join_differences_of_parts, join_lost_settings
from sonde.design.layout.merge_spares import join_failed_drives, join_foreign_spares
from sonde.design.layout.observe_written import list_disks_below

_NOT_AS_PLANNED = "not as planned"
_DIFFERS_FROM_PEERS = "differs from its peers"
_PVMOVE_UNFINISHED, _SPARE_IN_USE = "pvmove not finished", "spare in the place of a drive"
_MAP_BYPASSED = "path used without its map"
_UNEQUAL_MEMBERS = "unequal members of a stripe"
_SHARED_DEVICE = "targets share a device"
_SIZES = frozenset({"capacity", "agcount", "agsize in blocks"})
_GEOMETRY = frozenset({"geometry", "unit"})
_FLIGHT = frozenset({"max_rpcs_in_flight", "max_pages_per_rpc", "max_dirty_mb"})
_SECTORS = frozenset({"logical_block_size", "physical_block_size"})
_OPTIONS_OF_PEERS = frozenset(
    f"mount option {name}" for name in ("ro", "rw", "norecovery", "noload", "nobarrier", "nouuid")
)
# Attributes that follow from the class of a drive: its rotation rate, and whether it speaks SAS or SATA.
_OF_THE_CLASS = frozenset({"negotiated_linkrate", "queue_depth", "error_recovery", "write_cache", "nr_requests"})
_ANY = frozenset[str]()


# Faults that also leave messages in the kernel log.
_LOGGED = (
    "drive about to fail", "bad sectors of a drive", "degraded", "failed drive in an array", "drive does not answer",
    "path failed", "errors of a cable", "slow link of a drive", "file system with errors", "file system stopped",
    "slow link of PCI Express", "write journal lost", "drive left its array", "errors of a drive",
)  # fmt: skip


@dataclass(frozen=True)
class CauseRule:
    """Findings of the kind `effect` that follow from one of the kind `cause`: of the same parts, or, where `is_above`,
    of devices and file systems that its parts lie below. Where `is_partial`, the effect may name other parts besides.
    Without attributes a rule is about all of a kind."""

    cause: str
    cause_attributes: frozenset[str]
    effect: str
    effect_attributes: frozenset[str]
    is_above: bool = False
    is_partial: bool = False


# The rules apply in this order; an effect has one cause.
RULES: Sequence[CauseRule] = (
    CauseRule(_MAP_BYPASSED, _ANY, _NOT_AS_PLANNED, frozenset({"physical volume"}), is_partial=True),
    CauseRule(_MAP_BYPASSED, _ANY, _NOT_AS_PLANNED, frozenset({"members", "device"}), is_above=True),
    CauseRule(_MAP_BYPASSED, _ANY, "fewer paths than others", _ANY, is_partial=True),
    CauseRule(_MAP_BYPASSED, _ANY, "single path", _ANY, is_partial=True),
    CauseRule(_MAP_BYPASSED, _ANY, "one drive twice", _ANY, is_partial=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"spares"}), "no spare", _ANY, is_partial=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"geometry"}), _NOT_AS_PLANNED, frozenset({"level", "devices"})),
    CauseRule(_NOT_AS_PLANNED, _GEOMETRY, _UNEQUAL_MEMBERS, frozenset({"geometry", "size"}), is_above=True),
    CauseRule(_NOT_AS_PLANNED, _GEOMETRY, "unit does not fit the stripe", _ANY, is_above=True),
    CauseRule(_NOT_AS_PLANNED, _GEOMETRY, "requests are cut", _ANY),
    CauseRule(_NOT_AS_PLANNED, _GEOMETRY, _DIFFERS_FROM_PEERS, frozenset({"minimum_io_size", "optimal_io_size"})),
    CauseRule(_NOT_AS_PLANNED, _GEOMETRY | {"size", "members"}, _NOT_AS_PLANNED, _SIZES, is_above=True),
    CauseRule(
        _NOT_AS_PLANNED,
        _GEOMETRY,
        _NOT_AS_PLANNED,
        frozenset({"unit", "width", "sunit", "swidth", "log_unit"}),
        is_above=True,
    ),
    CauseRule(_NOT_AS_PLANNED, frozenset({"size"}), _UNEQUAL_MEMBERS, frozenset({"size"}), is_above=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"flash"}), _NOT_AS_PLANNED, frozenset({"size", "physical_block_size"})),
    CauseRule(
        _NOT_AS_PLANNED, frozenset({"member"}), _NOT_AS_PLANNED, frozenset({"size", "flash", "physical_block_size"})
    ),
    CauseRule(_NOT_AS_PLANNED, frozenset({"member"}), _UNEQUAL_MEMBERS, frozenset({"size", "flash"})),
    CauseRule(_NOT_AS_PLANNED, frozenset({"member"}), "one disk in several arrays", _ANY, is_partial=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"members"}), _NOT_AS_PLANNED, frozenset({"stripes", "members"})),
    CauseRule(_NOT_AS_PLANNED, frozenset({"members"}), _NOT_AS_PLANNED, frozenset({"swidth"}), is_above=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"members"}), "groups begin on one drive", _ANY, is_above=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"physical volume"}), _NOT_AS_PLANNED, frozenset({"members"}), is_above=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"sunit"}), _NOT_AS_PLANNED, frozenset({"swidth", "log_unit"})),
    CauseRule(_NOT_AS_PLANNED, frozenset({"unit"}), _NOT_AS_PLANNED, frozenset({"width"})),
    CauseRule(_NOT_AS_PLANNED, frozenset({"sunit", "swidth"}), "groups begin on one drive", _ANY),
    CauseRule(_NOT_AS_PLANNED, frozenset({"sunit", "swidth"}), "mount option", frozenset({"stripe"})),
    CauseRule(
        _PVMOVE_UNFINISHED, _ANY, _NOT_AS_PLANNED, frozenset({"physical volume", "members", "layer"}), is_partial=True
    ),
    CauseRule(_PVMOVE_UNFINISHED, _ANY, _UNEQUAL_MEMBERS, frozenset({"size"}), is_partial=True),
    CauseRule(_PVMOVE_UNFINISHED, _ANY, "unequal segments of a volume", _ANY, is_partial=True),
    CauseRule("degraded", _ANY, _SPARE_IN_USE, _ANY, is_partial=True),
    CauseRule("failed drive in an array", _ANY, _SPARE_IN_USE, _ANY, is_partial=True),
    CauseRule(_SPARE_IN_USE, _ANY, _NOT_AS_PLANNED, frozenset({"spares"}), is_partial=True),
    CauseRule(_SPARE_IN_USE, _ANY, "no spare", _ANY, is_partial=True),
    CauseRule("not mounted", _ANY, "fstab names no device", _ANY, is_partial=True),
    CauseRule("not mounted", _ANY, "not mounted", frozenset({"mounted"}), is_partial=True),
    CauseRule("mount point twice", _ANY, "mounted over", _ANY, is_partial=True),
    CauseRule("mount point twice", _ANY, "not mounted", frozenset({"mounted"}), is_partial=True),
    CauseRule("one controller for all disks", _ANY, "no active path", _ANY, is_partial=True),
    CauseRule("one controller for all disks", _ANY, "on alternate paths", _ANY, is_partial=True),
    *(
        CauseRule(cause, _ANY, "one adapter for all disks", _ANY, is_partial=True)
        for cause in ("one controller owns all disks", "one controller for all disks")
    ),
    CauseRule("one controller owns all disks", _ANY, _NOT_AS_PLANNED, frozenset({"controller"}), is_partial=True),
    CauseRule("requests are cut", frozenset({"max_sectors_kb"}), "unequal paths", frozenset({"max_sectors_kb"})),
    CauseRule("adapter sees fewer ports", _ANY, "one adapter for all disks", _ANY, is_partial=True),
    CauseRule("adapter sees fewer ports", _ANY, "fewer paths than others", _ANY, is_partial=True),
    CauseRule("on alternate paths", _ANY, "fewer paths than others", _ANY),
    CauseRule("fewer paths than others", _ANY, "one adapter for all paths", _ANY),
    CauseRule("on alternate paths", _ANY, _DIFFERS_FROM_PEERS, frozenset({"path groups"})),
    CauseRule("no active path", _ANY, "path failed", _ANY, is_partial=True),
    CauseRule("path failed", _ANY, "one path for all", _ANY, is_partial=True),
    CauseRule("path failed", _ANY, "not optimal", _ANY, is_partial=True),
    CauseRule("path failed", _ANY, SILENT_PATH, _ANY, is_partial=True),
    CauseRule("path failed", _ANY, "one adapter for all disks", _ANY),
    CauseRule("no active path", _ANY, "drive does not answer", _ANY, is_partial=True),
    CauseRule("reshape not finished", _ANY, "rebuilding", _ANY),
    CauseRule("single path", _ANY, "multipath policy", frozenset({"features"})),
    CauseRule("target with another name", _ANY, "index used twice", _ANY, is_partial=True),
    CauseRule("target with another name", _ANY, "one label twice", frozenset({"index"}), is_partial=True),
    CauseRule("index used twice", _ANY, "one label twice", frozenset({"index"})),
    CauseRule("target with another name", _ANY, "targets differ", frozenset({"file_system"}), is_partial=True),
    CauseRule(_SHARED_DEVICE, _ANY, _NOT_AS_PLANNED, frozenset({"device"}), is_partial=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"device"}), _NOT_AS_PLANNED, frozenset({"controller"}), is_partial=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"vdev drives"}), _NOT_AS_PLANNED, frozenset({"vdevs"})),
    CauseRule("vdev not planned", _ANY, "vdev without redundancy", _ANY),
    CauseRule("vdev not planned", _ANY, _NOT_AS_PLANNED, frozenset({"spares"})),
    CauseRule(_DIFFERS_FROM_PEERS, frozenset({"rotation_rate"}), _DIFFERS_FROM_PEERS, _OF_THE_CLASS | {"tran"}),
    CauseRule(_DIFFERS_FROM_PEERS, frozenset({"rotation_rate"}), _UNEQUAL_MEMBERS, _SECTORS | {"write_cache"}),
    CauseRule(_DIFFERS_FROM_PEERS, frozenset({"tran"}), _DIFFERS_FROM_PEERS, _OF_THE_CLASS),
    CauseRule(_DIFFERS_FROM_PEERS, frozenset({"tran"}), _UNEQUAL_MEMBERS, _SECTORS | {"write_cache"}),
    CauseRule(
        _UNEQUAL_MEMBERS,
        frozenset({"write_cache"}),
        _DIFFERS_FROM_PEERS,
        frozenset({"write_cache"}),
        is_above=True,
        is_partial=True,
    ),
    CauseRule(
        _UNEQUAL_MEMBERS, frozenset({"logical_block_size"}), _UNEQUAL_MEMBERS, frozenset({"physical_block_size"})
    ),
    CauseRule(_UNEQUAL_MEMBERS, _SECTORS, "drive formatted with small sectors", _ANY, is_above=True, is_partial=True),
    CauseRule(_UNEQUAL_MEMBERS, _SECTORS, _DIFFERS_FROM_PEERS, _SECTORS | {"minimum_io_size"}, is_above=True),
    CauseRule(_UNEQUAL_MEMBERS, frozenset({"logical_block_size"}), _NOT_AS_PLANNED, frozenset({"physical_block_size"})),
    CauseRule("target inactive", _ANY, "no new objects", _ANY),
    CauseRule("degraded", _ANY, "errors of an adapter", _ANY, is_partial=True),
    CauseRule("degraded", _ANY, "errors of a vdev", _ANY, is_partial=True),
    CauseRule("device partly unused", _ANY, "targets differ", frozenset({"inodes", "kib"})),
    CauseRule("device partly unused", _ANY, _DIFFERS_FROM_PEERS, frozenset({"reserved space"})),
    CauseRule("target not mounted", _ANY, "target inactive", _ANY),
    CauseRule("degraded", _ANY, _NOT_AS_PLANNED, frozenset({"spares"}), is_partial=True),
    CauseRule("drive about to fail", _ANY, "bad sectors of a drive", _ANY),
    CauseRule("drive about to fail", _ANY, "worn flash", _ANY),
    CauseRule("errors of a cable", _ANY, "slow link of a drive", _ANY),
    *(CauseRule(cause, _ANY, "errors in the kernel log", _ANY, is_above=True, is_partial=True) for cause in _LOGGED),
    CauseRule("timeout too short", _ANY, "timeout below error recovery", _ANY),
    CauseRule("slice is not aligned", _ANY, "slice is not aligned", _ANY),
    CauseRule("slice is not aligned", _ANY, _NOT_AS_PLANNED, frozenset({"start"})),
    CauseRule("array not assembled", _ANY, "array inactive", _ANY, is_partial=True),
    CauseRule("array inactive", _ANY, "drive left its array", _ANY, is_partial=True),
    CauseRule("array not assembled", _ANY, "volume lacks a device", _ANY, is_partial=True),
    CauseRule("array not assembled", _ANY, "not mounted", _ANY, is_partial=True),
    CauseRule("array not assembled", _ANY, _NOT_AS_PLANNED, frozenset({"members", "stripes"}), is_partial=True),
    CauseRule("drive left its array", _ANY, "no spare", _ANY, is_partial=True),
    CauseRule("drives left out by mdadm.conf", _ANY, "unstable names in mdadm.conf", _ANY, is_partial=True),
    CauseRule("drive left its array", _ANY, _NOT_AS_PLANNED, frozenset({"spares"}), is_partial=True),
    CauseRule(_SPARE_IN_USE, _ANY, "spare not shared", _ANY, is_partial=True),
    CauseRule("failed drive in an array", _ANY, "no spare", _ANY, is_partial=True),
    CauseRule(_NOT_AS_PLANNED, frozenset({"mount option"}), "fstab differs from the mount", _ANY),
    CauseRule("failed drive in an array", _ANY, _NOT_AS_PLANNED, frozenset({"spares"}), is_partial=True),
    CauseRule("no failover server", _ANY, _NOT_AS_PLANNED, frozenset({"failover"})),
    CauseRule("failover servers differ", _ANY, _NOT_AS_PLANNED, frozenset({"failover"})),
    CauseRule("file system with errors", _ANY, "file system with errors", _ANY),
    CauseRule("file system with errors", _ANY, "mounted read-only", _ANY),
    CauseRule("errors in the kernel log", _ANY, "mounted read-only", _ANY, is_partial=True),
    CauseRule("file system stopped", _ANY, "mounted read-only", _ANY),
    CauseRule("write-protected", _ANY, "mounted read-only", _ANY, is_above=True),
    CauseRule("write-protected", _ANY, "write-protected", _ANY),
    CauseRule("thin pool failed", _ANY, "thin pool almost full", _ANY),
    CauseRule("no checksums", _ANY, "small inodes", _ANY),
    CauseRule("mount option", frozenset({"norecovery", "noload"}), "mounted read-only", _ANY),
    CauseRule(
        _DIFFERS_FROM_PEERS, frozenset({"unit"}), _DIFFERS_FROM_PEERS, frozenset({"unit", "width"}), is_above=True
    ),
    CauseRule("too full", frozenset({"inodes"}), "too full", frozenset({"inodes"})),
    CauseRule("array smaller than its members", _ANY, "larger than its device", _ANY, is_above=True),
    CauseRule("array read-only", _ANY, "write-protected", _ANY),
    CauseRule("write journal lost", _ANY, "write-protected", _ANY),
    CauseRule("write journal lost", _ANY, "mounted read-only", _ANY, is_above=True),
    CauseRule("write journal lost", _ANY, "file system stopped", _ANY, is_above=True),
    CauseRule("sectors too small", _ANY, _DIFFERS_FROM_PEERS, frozenset({"sector", "log_sector"})),
    CauseRule("invalid snapshot", _ANY, "snapshot almost full", _ANY),
    CauseRule("snapshot almost full", _ANY, "snapshot slows its origin", _ANY, is_partial=True),
    CauseRule("invalid snapshot", _ANY, "snapshot slows its origin", _ANY, is_partial=True),
    CauseRule("errors of a scrub", _ANY, "repaired by a scrub", _ANY),
    CauseRule("mounted read-only", _ANY, _DIFFERS_FROM_PEERS, _OPTIONS_OF_PEERS),
    CauseRule("mount option", _ANY, _DIFFERS_FROM_PEERS, _OPTIONS_OF_PEERS),
    CauseRule("fstab differs from the mount", _ANY, _DIFFERS_FROM_PEERS, frozenset({"mount option of access times"})),
    CauseRule("fewer paths than others", _ANY, _DIFFERS_FROM_PEERS, frozenset({"path groups"})),
    CauseRule("degraded", _ANY, "spare in use", _ANY),
    CauseRule("degraded", _ANY, "errors of a drive", _ANY),
    CauseRule("spare in other use", _ANY, "spare failed", _ANY),
    CauseRule("degraded", _ANY, "drive left its array", _ANY, is_partial=True),
    CauseRule("drive left its array", _ANY, "stale member", _ANY, is_partial=True),
    CauseRule("parameter too small", frozenset({"brw_size"}), "targets differ", frozenset({"brw_size"})),
    CauseRule("parameter too small", _FLIGHT, "targets differ", _FLIGHT),
    CauseRule("parameter too small", frozenset({"brw_size"}), "targets differ", frozenset({"max_pages_per_rpc"})),
    CauseRule("target with another name", _ANY, "target not mounted", _ANY),
    *(
        CauseRule(f"stripe does not fit {name}", _ANY, _NOT_AS_PLANNED, frozenset({SIZE}))
        for name in ("RPCs", "the RAID stripe")
    ),
)


def merge_faults(
    faults_and_checked_items: Iterable[LayoutFault | CheckedItem], observed_storage: ObservedStorage
) -> list[LayoutFault | CheckedItem]:
    """The results with one fault for each cause. Faults by a rule and by the plan about one attribute become one fault,
    as do equal faults of several parts."""
    remaining = drop_repeated_differences(faults_and_checked_items)
    items = [each for each in remaining if not isinstance(each, LayoutFault)]
    separate = [each for each in remaining if isinstance(each, LayoutFault)]
    separate = join_failed_drives(correct_faults_of_paths(separate, observed_storage), observed_storage)
    faults = _join_equal_faults(join_faults_of_adapters(separate, observed_storage))
    maps = {path.name: disk.name for disk in observed_storage.disks.values() for path in disk.paths}
    list_names_below = cache(partial(_list_names_below, observed_storage))
    faults = _move_effects_into_causes(faults, lambda part: {maps.get(part, "")}, partial(_is_about_paths, maps))
    faults = _move_effects_into_causes(faults, lambda part: {part}, _says_rule_and_plan)
    kinds = Counter(fault.kind for fault in faults)
    for rule in RULES:
        if kinds[rule.cause] and kinds[rule.effect]:
            follows = partial(_is_effect_of_cause, list_names_below, rule)
            faults = _move_effects_into_causes(
                faults, list_names_below if rule.is_above else lambda part: {part}, follows
            )
    faults = join_default_stripe_faults(faults)
    faults = join_lost_settings(join_foreign_spares(faults, observed_storage))
    return [*items, *join_differences_of_parts(faults)]


def list_fault_parts(fault: LayoutFault) -> tuple[str, ...]:
    """The parts that a fault is about; of a path its map too."""
    return fault.parts or tuple(name for name in re.split(r", | ", fault.location) if name)


def _join_equal_faults(faults: Sequence[LayoutFault]) -> list[LayoutFault]:
    groups: dict[tuple[object, ...], list[LayoutFault]] = {}
    for fault in faults:
        key = (fault.kind, fault.problem, fault.cost, fault.remedy, fault.attributes, fault.consequences)
        groups.setdefault(key, []).append(fault)
    joined = []
    for group in groups.values():
        parts = dict.fromkeys(part for fault in group for part in list_fault_parts(fault))
        location = ", ".join(dict.fromkeys(fault.location for fault in group))
        joined.append(replace(group[0], location=location, parts=tuple(parts)) if len(group) > 1 else group[0])
    return joined


def _move_effects_into_causes(
    faults: Sequence[LayoutFault],
    list_causing_parts: Callable[[str], Set[str]],
    follows: Callable[[LayoutFault, LayoutFault], bool],
) -> list[LayoutFault]:
    """The faults without those that follow from another one, which lists them as consequences. The cause of a fault of
    a part is about one of its `list_causing_parts`."""
    remaining = dict(enumerate(faults))
    numbers_by_part: dict[str, list[int]] = {}
    for number, fault in remaining.items():
        for part in dict.fromkeys(list_fault_parts(fault)):
            numbers_by_part.setdefault(part, []).append(number)
    for number, effect in enumerate(faults):
        parts = {part for affected in list_fault_parts(effect) for part in {affected} | list_causing_parts(affected)}
        candidates = {each for part in parts for each in numbers_by_part.get(part, ())} - {number}
        cause = next(
            (each for each in sorted(candidates) if each in remaining and follows(remaining[each], effect)), None
        )
        if cause is not None and remaining.get(number) is effect:
            remaining[cause] = _add_consequence(remaining[cause], effect)
            del remaining[number]
    return list(remaining.values())


def _add_consequence(cause: LayoutFault, effect: LayoutFault) -> LayoutFault:
    is_same = cause.kind == _DIFFERS_FROM_PEERS or set(list_fault_parts(cause)) == set(list_fault_parts(effect))
    consequences = (*cause.consequences, *effect.consequences)
    if effect.kind == _NOT_AS_PLANNED and effect.planned and _shares_attribute(cause, effect):
        if is_same:  # the same attribute of the same parts: only the planned value is new
            return replace(_add_planned_value(cause, effect), consequences=consequences)
        if cause.kind != _NOT_AS_PLANNED and cause.remedy == effect.remedy:  # planned for some of the parts
            return replace(cause, consequences=consequences)
    text = f"{effect.location}: {effect.problem}"
    return replace(cause, consequences=(*cause.consequences, text, *effect.consequences))


def _add_planned_value(cause: LayoutFault, effect: LayoutFault) -> LayoutFault:
    """The fault with the planned value, which the remedy sets where the attribute is a setting."""
    if cause.planned:
        return cause
    is_setting = set(effect.attributes) <= SETTINGS and cause.kind != _DIFFERS_FROM_PEERS
    return replace(
        cause, problem=f"{cause.problem}; planned is {effect.planned}", planned=effect.planned,
        remedy=effect.remedy if is_setting else cause.remedy,
    )  # fmt: skip


def _shares_attribute(cause: LayoutFault, effect: LayoutFault) -> bool:
    return bool(set(cause.attributes) & set(effect.attributes))


def _says_rule_and_plan(cause: LayoutFault, effect: LayoutFault) -> bool:
    return (
        effect.kind == _NOT_AS_PLANNED
        and cause.kind not in (_NOT_AS_PLANNED, _DIFFERS_FROM_PEERS, "no spare")
        and _shares_attribute(cause, effect)
        and (
            set(list_fault_parts(effect)) == set(list_fault_parts(cause))
            or (set(effect.attributes) <= SETTINGS and set(list_fault_parts(effect)) <= set(list_fault_parts(cause)))
        )
    )


def _is_about_paths(maps_by_path: dict[str, str], cause: LayoutFault, effect: LayoutFault) -> bool:
    """Whether an attribute of paths follows from, or is, that of their maps."""
    parts = list_fault_parts(effect)
    maps = {maps_by_path.get(part, "") for part in parts}
    if effect.kind != _DIFFERS_FROM_PEERS and cause.kind not in (_DIFFERS_FROM_PEERS, "zoned drive"):
        return False
    return _shares_attribute(cause, effect) and maps <= set(list_fault_parts(cause)) and "" not in maps


def _is_effect_of_cause(
    list_names_below: Callable[[str], Set[str]], rule: CauseRule, cause: LayoutFault, effect: LayoutFault
) -> bool:
    if (cause.kind, effect.kind) != (rule.cause, rule.effect):
        return False
    for fault, attributes in ((cause, rule.cause_attributes), (effect, rule.effect_attributes)):
        if attributes and not attributes & set(fault.attributes):
            return False
    causing, affected = set(list_fault_parts(cause)), set(list_fault_parts(effect))
    if affected <= causing or (rule.is_partial and affected & causing):
        return True
    is_below = [bool(causing & list_names_below(part)) for part in affected] if rule.is_above else []
    return any(is_below) if rule.is_partial else rule.is_above and all(is_below)


def _list_names_below(observed_storage: ObservedStorage, part: str) -> Set[str]:
    """The names of all devices that a device or file system consists of, with the paths of its maps."""
    tops = [part]
    for file_system in observed_storage.file_systems:
        if file_system.location == part:
            tops += [disk.name for disk in list_disks_below(observed_storage, (file_system,))]
    below = [disk for top in tops for disk in observed_storage.iterate_disks_below(top)]
    return {disk.name for disk in below} | {path.name for disk in below for path in disk.paths}
