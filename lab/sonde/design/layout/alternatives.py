# SPDX-License-Identifier: Apache-2.0
"""Other ways to lay out one wish, side by side: 8+1 against 4+1, one volume of twelve against two of six."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sonde.design.layout.bandwidth import roll_up
from sonde.design.layout.failures import rebuild_seconds
from sonde.design.layout.geometry import Geometry, parse_geometry
from sonde.design.layout.planner import Wish, as_one, options_for
from sonde.design.layout.stock import Candidate
from sonde.model.errors import UserError
from sonde.model.system import System


@dataclass(frozen=True)
class Alternative:
    """What was asked for: a geometry (None is any), and members of each volume (empty is what the wish takes)."""

    text: str
    geometry: Geometry | None
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """One alternative. Bytes and bytes/s; None is unknown.

    `single` is what one file can use: one volume. With one drive gone the rates are `degraded`; `at_risk` is the share
    of the capacity that is lost when more drives fail than the geometry bears.
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


def parse_alternative(text: str) -> Alternative:
    """ "8+1", "4x2", "*12", "*6,6", "8+1*6,6": a geometry, then members of each volume. Raises UserError."""
    match = re.fullmatch(r"\s*([0-9]+[+x][0-9]+)?\s*(?:\*\s*([0-9]+(?:\s*,\s*[0-9]+)*))?\s*", text)
    if match is None or not text.strip():
        raise UserError(
            f'"{text}" is no alternative; write a geometry, members of each volume, or both: 8+1, *12, *6,6, 4+1*6.'
        )
    widths = tuple(int(one) for one in match[2].split(",")) if match[2] else ()
    if 0 in widths:
        raise UserError(f'"{text}" has a volume without members; write how many each has, like *6,6.')
    return Alternative(text.strip(), parse_geometry(match[1]) if match[1] else None, widths)


def compare(system: System, wish: Wish, alternatives: list[Alternative]) -> list[Outcome]:
    """Every alternative for one wish. Raises UserError when the machine does not have what one asks for."""
    return [_outcome(system, wish, one) for one in alternatives]


def _outcome(system: System, wish: Wish, asked: Alternative) -> Outcome:
    options = options_for(system, wish, asked.geometry)
    if asked.widths:
        widths = asked.widths
        some = next((one[: sum(widths)] for one in options if len(one) >= sum(widths)), [])
        most = max(map(len, options), default=0)
    else:
        some = next(
            (one for option in options if (one := _enough(system, wish, option))), options[0] if options else []
        )
        widths, most = (len(some),), len(some)
    if not some:
        wanted = f"{sum(widths)} equal groups or LUNs" if asked.widths else "at least one group or LUN of this geometry"
        raise UserError(f'"{asked.text}" takes {wanted} for {wish.id}; {system.id} has {most} free.')
    volumes, at = [], 0
    for width in widths:
        # neighbours of the alternating order share least: each volume gets every so many of them
        volumes.append(as_one(some[at : at + width]))
        at += width
    whole = roll_up(system, "", volumes)
    first = some[0].store
    drive = next((one.id for one in first.walk() if one.kind == "drives"), "")
    less = roll_up(system, "", volumes, [drive]) if drive else whole
    geometry = first.geometry
    return Outcome(
        name=asked.text, members=len(some),
        drives=sum(one.kind == "drives" for each in some for one in each.store.walk()),
        capacity=sum(one.capacity or 0 for one in volumes), read=whole.read, write=whole.write,
        limit=whole.limits["write"] or whole.limits["read"], single_write=roll_up(system, "", volumes[:1]).write,
        degraded_write=less.write, rebuild_s=rebuild_seconds(system, drive, [first]) if drive else None,
        bears=geometry.failures if geometry is not None else 0, at_risk=max(widths) / sum(widths),
    )  # fmt: skip


def _enough(system: System, wish: Wish, option: list[Candidate]) -> list[Candidate]:
    """The fewest members that fulfil the wish; none when all of them do not."""
    for number in range(1, len(option) + 1):
        one = as_one(option[:number])
        rates = roll_up(system, "", [one])
        wanted = ((wish.read, rates.read), (wish.write, rates.write))
        if (one.capacity or 0) >= (wish.capacity or 0) and all(
            want is None or offered is None or offered >= want for want, offered in wanted
        ):
            return option[:number]
    return []
