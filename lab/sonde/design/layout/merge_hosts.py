# SPDX-License-Identifier: Apache-2.0
"""Makes one fault of findings about the same targets of Lustre that different hosts have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.merge_faults import RULES

_TARGET_PATTERN = re.compile(r"\w+-(?:OST|MDT)[0-9a-f]{4}")
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
    return {name for part in (fault.location, *fault.parts) for name in _TARGET_PATTERN.findall(part)}


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
