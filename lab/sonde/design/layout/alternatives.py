# SPDX-License-Identifier: Apache-2.0
"""Compares alternatives for one required file system: 8+1 against 4+1, one volume of twelve against two of six."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sonde.design.layout.bandwidth import estimate_bandwidth
from sonde.design.layout.candidates import Candidate
from sonde.design.layout.failures import estimate_rebuild_seconds
from sonde.design.layout.geometry import Geometry, parse_geometry
from sonde.design.layout.placement import LayoutRequirement, join_members, list_member_options
from sonde.model.errors import UserError
from sonde.model.system import System


@dataclass(frozen=True)
class Alternative:
    """A requested alternative: a geometry (None is any) and the members of each volume (empty is as many as the
    requirement needs)."""

    text: str
    geometry: Geometry | None
    widths: tuple[int, ...]


@dataclass(frozen=True)
class AlternativeResult:
    """The properties of one alternative. Bytes and bytes/s; None is unknown.

    `single_write` is the rate of one file, which uses one volume. `degraded_write` is the rate with one failed drive.
    `at_risk` is the fraction of the capacity that is lost when more drives fail than the geometry tolerates.
    """

    name: str
    members: int
    drives: int
    capacity: int
    read: float | None
    write: float | None
    limit: str
    single_write: float | None
    degraded_write: float | None
    rebuild_s: float | None
    bears: int
    at_risk: float


def parse_alternative(alternative_text: str) -> Alternative:
    """Parses a geometry followed by the members of each volume: "8+1", "4x2", "*12", "*6,6", "8+1*6,6". Raises
    UserError."""
    match = re.fullmatch(r"\s*([0-9]+[+x][0-9]+)?\s*(?:\*\s*([0-9]+(?:\s*,\s*[0-9]+)*))?\s*", alternative_text)
    if match is None or not alternative_text.strip():
        raise UserError(
            f'"{alternative_text}" is no alternative; write a geometry, members of each volume, or both: 8+1, *12, '
            "*6,6, 4+1*6."
        )
    widths = tuple(int(width) for width in match[2].split(",")) if match[2] else ()
    if 0 in widths:
        raise UserError(f'"{alternative_text}" has a volume without members; write how many each has, like *6,6.')
    return Alternative(alternative_text.strip(), parse_geometry(match[1]) if match[1] else None, widths)


def compare_alternatives(
    system: System, requirement: LayoutRequirement, alternatives: list[Alternative]
) -> list[AlternativeResult]:
    """Evaluates every alternative for one requirement. Raises UserError when the machine lacks the groups or LUNs for
    one."""
    return [_evaluate_alternative(system, requirement, alternative) for alternative in alternatives]


def _evaluate_alternative(
    system: System, requirement: LayoutRequirement, alternative: Alternative
) -> AlternativeResult:
    options = list_member_options(system, requirement, alternative.geometry)
    if alternative.widths:
        widths = alternative.widths
        members = next((option[: sum(widths)] for option in options if len(option) >= sum(widths)), [])
        most = max(map(len, options), default=0)
    else:
        members = next(
            (enough for option in options if (enough := _find_fewest_members(system, requirement, option))),
            options[0] if options else [],
        )
        widths, most = (len(members),), len(members)
    if not members:
        needed = (
            f"{sum(widths)} equal groups or LUNs"
            if alternative.widths
            else "at least one group or LUN of this geometry"
        )
        raise UserError(f'"{alternative.text}" takes {needed} for {requirement.id}; {system.id} has {most} free.')
    volumes, position = [], 0
    for width in widths:
        # adjacent members of the alternating order share the fewest components, so each volume gets a run of them
        volumes.append(join_members(members[position : position + width]))
        position += width
    intact = estimate_bandwidth(system, "", volumes)
    first = members[0].device
    drive = next((device.id for device in first.iterate_top_down() if device.kind == "drives"), "")
    less = estimate_bandwidth(system, "", volumes, [drive]) if drive else intact
    geometry = first.raid_geometry
    return AlternativeResult(
        name=alternative.text, members=len(members),
        drives=sum(device.kind == "drives" for each in members for device in each.device.iterate_top_down()),
        capacity=sum(volume.capacity or 0 for volume in volumes), read=intact.read, write=intact.write,
        limit=intact.limits["write"] or intact.limits["read"],
        single_write=estimate_bandwidth(system, "", volumes[:1]).write,
        degraded_write=less.write, rebuild_s=estimate_rebuild_seconds(system, drive, [first]) if drive else None,
        bears=geometry.tolerated_failures if geometry is not None else 0, at_risk=max(widths) / sum(widths),
    )  # fmt: skip


def _find_fewest_members(
    system: System, requirement: LayoutRequirement, candidates: list[Candidate]
) -> list[Candidate]:
    """The fewest members that meet the requirement; empty when all of them do not."""
    for number in range(1, len(candidates) + 1):
        device = join_members(candidates[:number])
        rates = estimate_bandwidth(system, "", [device])
        requirements = ((requirement.read, rates.read), (requirement.write, rates.write))
        if (device.capacity or 0) >= (requirement.capacity or 0) and all(
            want is None or offered is None or offered >= want for want, offered in requirements
        ):
            return candidates[:number]
    return []
