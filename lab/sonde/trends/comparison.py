# SPDX-License-Identifier: Apache-2.0
"""Two sides compared number by number: the ratio with its interval, what changed, what could not have been seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from sonde.model.errors import UserError
from sonde.model.series import SeriesKey
from sonde.stats.multiple import false_discovery
from sonde.stats.ratio import Ratio, ratio, smallest_visible
from sonde.stats.spread import Variation, variation
from sonde.trends.doubted import Doubted, doubted
from sonde.trends.environment import plan_differences
from sonde.trends.sides import Side, SideNumber, differences_of_key, numbers_of, pairs

Verdict = Literal["slower", "faster", "small change", "no change seen", "too few runs"]
SMALLEST_CHANGE = 0.10
# Of the changes that are told, a share of this may be chance.
LEVEL = 0.05


@dataclass(frozen=True)
class Compared:
    """One number on both sides. `visible` is the drop that would probably have been seen, as a share; None: unknown."""

    key: SeriesKey
    plan: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    ratio: Ratio
    visible: float | None
    verdict: Verdict
    p: float | None  # of the rank test, with how many were compared taken into account
    differs_in: tuple[tuple[str, str, str], ...]  # of the key, and members of the plan: name, before, after
    place: str  # where, as short as it tells this number from the others of its test
    scatter_before: Variation | None
    scatter_after: Variation | None
    runs_before: tuple[str, ...] = ()  # ids of the runs that the values are of
    runs_after: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.verdict in ("slower", "faster")


@dataclass(frozen=True)
class Comparison:
    """`alone` are numbers that only one side has, with the name of that side."""

    before: Side
    after: Side
    numbers: tuple[Compared, ...]
    alone: tuple[tuple[str, SideNumber], ...]
    doubts: tuple[Doubted, ...] = ()  # what speaks against runs of either side

    def doubts_of(self, number: Compared) -> list[Doubted]:
        """Those about the phase of a number."""
        return [one for one in self.doubts if one.phase == number.key.phase]

    @property
    def on_both_sides(self) -> int:
        """Runs that stand on both sides: they make the sides alike."""
        return len({run.id for run in self.before.runs} & {run.id for run in self.after.runs})

    @property
    def changed(self) -> list[Compared]:
        return [number for number in self.numbers if number.changed]


def compare(before: Side, after: Side, smallest: float = SMALLEST_CHANGE) -> Comparison:
    """Compares every number that both sides have. Raises UserError when there is none.

    Changed is what differs by `smallest` or more and by a rank test that knows how many numbers are looked at.
    """
    old, new = numbers_of(before.runs), numbers_of(after.runs)
    both = pairs(old, new)
    if not both:
        raise UserError(
            f"{before.name} and {after.name} have no number in common: they ran different phases or operations;"
            " `sonde show` shows what each of them did."
        )
    ratios = [ratio(one.values, other.values) for one, other in both]
    known = [at for at, one in enumerate(ratios) if one.p is not None]
    adjusted = dict(zip(known, false_discovery([ratios[at].p or 0.0 for at in known]).tolist(), strict=True))
    folders = {run.id: run.folder for side in (before, after) for run in side.runs}
    places = place_names([(other.plan, other.key) for _, other in both])
    compared = [
        _compared(one, other, ratios[at], adjusted.get(at), smallest, places[at], _in_plans(one, other, folders))
        for at, (one, other) in enumerate(both)
    ]
    paired = {id(number) for pair in both for number in pair}
    alone = [
        (side.name, number) for side, own in ((before, old), (after, new)) for number in own if id(number) not in paired
    ]
    phases = [other.key.phase for _, other in both]
    doubts = (*doubted("before", before.runs, phases), *doubted("after", after.runs, phases))
    return Comparison(before, after, tuple(sorted(compared, key=lambda number: number.key)), tuple(alone), doubts)


def _in_plans(before: SideNumber, after: SideNumber, folders: Mapping[str, Path]) -> list[tuple[str, str, str]]:
    """Members of the plans that differ, where the plans are not the same; of the latest run of each side."""
    if before.key.plan_hash == after.key.plan_hash:
        return []
    return plan_differences(folders[before.runs[-1]], folders[after.runs[-1]])


def _compared(
    before: SideNumber,
    after: SideNumber,
    change: Ratio,
    p: float | None,
    smallest: float,
    place: str,
    in_plans: Sequence[tuple[str, str, str]],
) -> Compared:
    in_key = [one for one in differences_of_key(before.key, after.key) if one[0] != "plan hash" or not in_plans]
    return Compared(
        key=after.key,
        plan=after.plan,
        before=before.values,
        after=after.values,
        ratio=change,
        visible=smallest_visible(before.values, after.values),
        verdict=_verdict(change, p, smallest),
        p=p,
        differs_in=(*in_plans, *in_key),
        place=place,
        scatter_before=_scatter(before.values),
        scatter_after=_scatter(after.values),
        runs_before=before.runs,
        runs_after=after.runs,
    )


def place_names(numbers: Sequence[tuple[str, SeriesKey]]) -> list[str]:
    """A name for the place of each number (its plan and key): the file system, and whatever else of the key is needed
    so that no two numbers of one test have the same. The system is told wherever there are several."""
    several = len({key.system for _, key in numbers}) > 1
    names = []
    for _, key in numbers:
        storage = key.file_system.partition("@")[0]
        names.append(" on ".join(part for part in (storage, key.system if several or not storage else "") if part))
    for member in ("file_system", "node_class", "cache", "definition", "plan_hash"):
        alike: dict[tuple[str, ...], list[int]] = {}
        for at, (plan, key) in enumerate(numbers):
            alike.setdefault((names[at], plan, key.phase, key.op), []).append(at)
        for group in alike.values():
            if len({getattr(numbers[at][1], member) for at in group}) > 1:
                for at in group:
                    names[at] = f"{names[at]}, {getattr(numbers[at][1], member) or 'unknown'}"
    return names


def _verdict(change: Ratio, p: float | None, smallest: float) -> Verdict:
    if p is None or change.low is None:
        return "too few runs"
    if p > LEVEL:
        return "no change seen"
    if 1 - smallest < change.value < 1 / (1 - smallest):
        return "small change"
    return "slower" if change.value < 1 else "faster"


def _scatter(values: Sequence[float]) -> Variation | None:
    return variation(values) if len(values) >= 2 else None


def median(values: Sequence[float]) -> float:
    """The middle one of a number's values."""
    return float(np.median(values))
