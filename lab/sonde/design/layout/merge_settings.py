# SPDX-License-Identifier: Apache-2.0
"""Makes one fault of several settings that the same devices lack: one udev rule, profile or script sets them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sonde.design.layout.faults import LayoutFault

# What a udev rule, a profile of tuned or a script at the start of a machine writes into /sys.
SETTINGS = frozenset({
    "read_ahead_kb", "scheduler", "max_sectors_kb", "nr_requests", "nomerges", "rq_affinity", "wbt_lat_usec",
    "io_timeout", "queue_depth", "timeout", "eh_timeout", "stripe_cache_size", "group_thread_cnt", "sync_speed_max",
})  # fmt: skip
_LOST = "settings lost"
_MOST_COSTS = 3
_COMPARISONS = ("differs from its peers", "hosts differ", "unequal paths")


def join_lost_settings(faults: Sequence[LayoutFault]) -> list[LayoutFault]:
    """The faults, with one in the place of those about several settings of the same devices, and with one for all
    devices where each of them lacks several planned settings."""
    groups: dict[tuple[str, ...], list[LayoutFault]] = {}
    for fault in faults:
        if fault.attributes and set(fault.attributes) <= SETTINGS:
            groups.setdefault(tuple(sorted(fault.parts or (fault.location,))), []).append(fault)
    joined = [group for group in groups.values() if len(_list_settings(group)) > 1 and _has_known_values(group)]
    if len(joined) > 1 and all(_has_planned_values(group) for group in joined):
        joined = [[fault for group in joined for fault in group]]
    remaining = list(faults)
    for group in joined:
        first = next(index for index, fault in enumerate(remaining) if fault is group[0])
        remaining[first] = _join_group(group)
        remaining = [fault for fault in remaining if not any(fault is each for each in group)]
    return remaining


def join_differences_of_parts(faults: Sequence[LayoutFault]) -> list[LayoutFault]:
    """The faults, with one in the place of several attributes in which the same parts differ from their peers."""
    groups: dict[object, list[LayoutFault]] = {}
    for fault in faults:
        is_difference = fault.kind == "differs from its peers" and not fault.planned
        key = (fault.location, fault.parts, fault.cost, fault.remedy) if is_difference else id(fault)
        groups.setdefault(key, []).append(fault)
    return [replace(
        group[0], problem="; ".join(fault.problem for fault in group),
        attributes=tuple(name for fault in group for name in fault.attributes),
        consequences=tuple(text for fault in group for text in fault.consequences),
    ) for group in groups.values()]  # fmt: skip


def _list_settings(group: Sequence[LayoutFault]) -> list[str]:
    return list(dict.fromkeys(name for fault in group for name in fault.attributes))


def _has_known_values(group: Sequence[LayoutFault]) -> bool:
    """Whether peers, another host or a plan show the values that were lost."""
    return any(fault.kind in _COMPARISONS or fault.planned for fault in group)


def _has_planned_values(group: Sequence[LayoutFault]) -> bool:
    return sum(bool(fault.planned) for fault in group) > 1


def _join_group(group: Sequence[LayoutFault]) -> LayoutFault:
    problems: dict[str, list[str]] = {}
    for fault in group:
        problems.setdefault(fault.location, []).append(fault.problem)
    texts = [f"{location}: " * (len(problems) > 1) + "; ".join(each) for location, each in problems.items()]
    commands = [fault.remedy for fault in group if fault.remedy.startswith("echo ")]
    names = _list_settings(group)
    return replace(
        group[0], kind=_LOST, location=", ".join(problems),
        problem=f"{len(names)} settings ({', '.join(names)}) are not those that they should have: {'; '.join(texts)}",
        cost="; ".join(list(dict.fromkeys(fault.cost for fault in group))[:_MOST_COSTS]),
        remedy="look for what sets them at a start (a udev rule, a profile of tuned, a script) and why it leaves out"
        " these devices; then udevadm control --reload and udevadm trigger"
        + f"; for now: {'; '.join(dict.fromkeys(commands))}" * bool(commands),
        attributes=tuple(names),
        parts=tuple(dict.fromkeys(part for fault in group for part in fault.parts or (fault.location,))),
        consequences=tuple(text for fault in group for text in fault.consequences),
    )  # fmt: skip
