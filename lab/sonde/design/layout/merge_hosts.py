# SPDX-License-Identifier: Apache-2.0
"""Makes one fault of findings about the same targets of Lustre that different hosts have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.merge_faults import RULES
from sonde.design.layout.planned_roles import TARGET_NAME_PATTERN

_INVISIBLE, _OTHER_NAMES = "device not visible", "names of maps differ"
_DIFFERENCES = ("differs from its peers", "targets differ")


def join_faults_of_targets(faults: Sequence[LayoutFault]) -> list[LayoutFault]:
    """The faults, where one that follows from another fault of the same targets, on the same or another host, is a
    consequence of it."""
    remaining = dict(enumerate(faults))
    targets = {number: _list_targets(fault) for number, fault in remaining.items()}
    for number, effect in enumerate(faults):
        cause = next((each for each in remaining if each != number and targets[number]
                      and targets[number] <= targets[each] and _follows(remaining[each], effect)), None)  # fmt: skip
        if cause is not None and remaining[number] is effect:
            text = f"{effect.location}: {effect.problem}"
            consequences = (*remaining[cause].consequences, text, *effect.consequences)
            remaining[cause] = replace(remaining[cause], consequences=consequences)
            del remaining[number]
    return list(remaining.values())


def _list_targets(fault: LayoutFault) -> set[str]:
    return {name for part in (fault.location, *fault.parts) for name in TARGET_NAME_PATTERN.findall(part)}


def _follows(cause: LayoutFault, effect: LayoutFault) -> bool:
    if (
        effect.kind in _DIFFERENCES
        and cause.kind not in _DIFFERENCES
        and set(cause.attributes) & set(effect.attributes)
    ):
        return True
    return any(
        (cause.kind, effect.kind) == (rule.cause, rule.effect)
        and (not rule.cause_attributes or rule.cause_attributes & set(cause.attributes))
        and (not rule.effect_attributes or rule.effect_attributes & set(effect.attributes))
        for rule in RULES
    )


def join_faults_of_shared_luns(faults: Sequence[LayoutFault], targets: Mapping[str, str]) -> list[LayoutFault]:
    """The faults, with one about a LUN or drive that a host lacks, or about names of maps, in the place of those that a
    plan, or a line of fstab on that host, gives besides. `targets` are the planned devices by labels."""
    remaining = list(faults)
    for fault in faults:
        if fault.kind in (_INVISIBLE, _OTHER_NAMES) and any(
            other is not fault and _covers(other, fault, targets) for other in remaining
        ):
            remaining = [each for each in remaining if each is not fault]
    for fault in [each for each in remaining if each.kind == _INVISIBLE]:
        lines = [each for each in remaining
                 if each.kind == "fstab names no device" and _names_device(each, fault, targets)]  # fmt: skip
        if lines:
            text = tuple(f"{each.location}: {each.problem}" for each in lines)
            joined = replace(fault, consequences=(*fault.consequences, *text))
            remaining = [joined if each is fault else each for each in remaining if each not in lines]
    return remaining


def _covers(planned: LayoutFault, fault: LayoutFault, targets: Mapping[str, str]) -> bool:
    """Whether a fault against the plan is about the same LUN, drives or maps."""
    if fault.kind == _OTHER_NAMES:
        return planned.kind == "not as planned" and bool(set(fault.parts) & set(planned.parts))
    if planned.kind != _INVISIBLE or planned.location not in targets:
        return False
    is_same = fault.devices in (planned.devices, (targets[planned.location],))
    return is_same and bool(fault.devices) and set(fault.hosts) <= set(planned.hosts)


def _names_device(line: LayoutFault, fault: LayoutFault, targets: Mapping[str, str]) -> bool:
    """Whether a line of fstab on a host names a LUN that this host does not see."""
    host = line.location.partition(": ")[0]
    paths = (*fault.devices, targets.get(fault.location, ""))
    return host in fault.hosts and any(device in paths for device in line.devices)
