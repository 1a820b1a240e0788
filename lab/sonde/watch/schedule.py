# SPDX-License-Identifier: Apache-2.0
"""Determines which probes are due, and why a due probe must not run now. Pure functions of configuration, state and
time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from statistics import median

from sonde.model.event.times import parse_time_zone
from sonde.watch.configuration import parse_quiet_hours
from sonde.watch.description import ProbeEntry, WatchFile

DAY_S = 86400.0
# Duration that is assumed for a probe that never ran.
_ASSUMED_FIRST_DURATION_S = 60.0


@dataclass(frozen=True)
class ProbeDecision:
    """A due probe: its slot, and the reason when it does not run now."""

    probe: ProbeEntry
    slot: int
    skip_reason: str = ""


def compute_schedule_slot(probe: ProbeEntry, watch_settings: WatchFile, now_s: float, host_name: str) -> int:
    """The number of the current interval of the probe: it is due once in each slot."""
    hour, minute = (int(part) for part in (probe.start_time or "00:00").split(":"))
    anchor = datetime(1970, 1, 1, hour, minute, tzinfo=parse_time_zone(watch_settings.zone)).timestamp()
    digest = hashlib.sha256(f"{host_name}\0{probe.id}".encode()).digest()
    offset = int.from_bytes(digest[:4], "big") / 2**32 * probe.spread
    return int((now_s - anchor - offset) // probe.every)


def find_due_probes(
    watch_settings: WatchFile,
    finished_slot_by_probe: Mapping[str, int],
    start_and_seconds_by_probe: Mapping[str, Sequence[tuple[float, float]]],
    now_s: float,
    host_name: str,
    io_stall: float | None = None,
) -> list[ProbeDecision]:
    """The due probes in the order of the file.

    `finished_slot_by_probe` are the last finished slots, `start_and_seconds_by_probe` (start, seconds) of earlier runs
    by probe, `io_stall` the fraction of time in which tasks of this node wait for I/O."""
    decisions: list[ProbeDecision] = []
    planned_s: dict[str, float] = {}
    for probe in watch_settings.probes:
        slot = compute_schedule_slot(probe, watch_settings, now_s, host_name)
        if finished_slot_by_probe.get(probe.id) == slot:
            continue
        earlier = [seconds for _, seconds in start_and_seconds_by_probe.get(probe.id, ())]
        expected_s = median(earlier[-10:]) if earlier else _ASSUMED_FIRST_DURATION_S
        used_s = planned_s.get(probe.on, 0.0) + sum(
            seconds
            for other in watch_settings.probes
            if other.on == probe.on
            for start, seconds in start_and_seconds_by_probe.get(other.id, ())
            if start > now_s - DAY_S
        )
        reason = find_quiet_reason(watch_settings, now_s)
        if not reason and watch_settings.busy is not None and io_stall is not None and io_stall > watch_settings.busy:
            reason = (
                f"the node is busy: tasks wait for I/O {io_stall:.0%} of the time, more than {watch_settings.busy:.0%}"
            )
        if not reason and earlier and used_s + expected_s > watch_settings.budget * DAY_S:
            reason = (
                f"the budget is used: probes took {used_s:.0f} s of the last 24 hours on {probe.on}, this one takes"
                f" about {expected_s:.0f} s, and {watch_settings.budget * DAY_S:.0f} s are allowed"
            )
        if not reason:
            planned_s[probe.on] = planned_s.get(probe.on, 0.0) + expected_s
        decisions.append(ProbeDecision(probe, slot, reason))
    return decisions


def find_quiet_reason(watch_settings: WatchFile, now_s: float) -> str:
    """Why no probe may run at this time of day; empty when it may."""
    clock = datetime.fromtimestamp(now_s, UTC).astimezone(parse_time_zone(watch_settings.zone)).time()
    for text in watch_settings.quiet:
        begin, end = parse_quiet_hours(text)
        if _is_within_hours(clock, begin, end):
            return f"these are quiet hours ({text})"
    return ""


def _is_within_hours(time_of_day: time, begin_time: time, end_time: time) -> bool:
    return (
        begin_time <= time_of_day < end_time
        if begin_time <= end_time
        else time_of_day >= begin_time or time_of_day < end_time
    )
