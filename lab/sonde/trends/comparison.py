# SPDX-License-Identifier: Apache-2.0
"""Two sides compared number by number: the ratio with its interval, what changed, what could not have been seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sonde.model.errors import UserError
from sonde.model.history_key import HistoryKey
from sonde.stats.multiple import adjust_p_values_for_false_discovery_rate
from sonde.stats.ratio import RateRatio, compare_rates, estimate_detectable_drop, estimate_levels_of_ratio
from sonde.stats.spread import CoefficientOfVariation, estimate_coefficient_of_variation
from sonde.trends.environment import list_plan_differences
from sonde.trends.run_caveats import CaveatCount, count_caveats_of_numbers
from sonde.trends.sides import (
    ComparedSide,
    SideValues,
    collect_values_by_number,
    list_key_differences,
    pair_comparable_values,
)

ChangeVerdict = Literal["slower", "faster", "small change", "no change seen", "too few runs"]
MIN_CHANGE = 0.10
# Fraction of the reported changes that may be due to chance.
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True)
class NumberComparison:
    """One number on both sides. `visible` is the drop that would probably have been seen, as a share; None: unknown."""

    key: HistoryKey
    plan: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    ratio: RateRatio
    visible: float | None
    verdict: ChangeVerdict
    p: float | None  # of the rank test, with how many were compared taken into account
    differs_in: tuple[tuple[str, str, str], ...]  # of the key, and members of the plan: name, before, after
    location: str  # shortest name that distinguishes this number from the others of its test
    scatter_before: CoefficientOfVariation | None
    scatter_after: CoefficientOfVariation | None
    runs_before: tuple[str, ...] = ()  # ids of the runs that the values are of
    runs_after: tuple[str, ...] = ()
    about_before: str = ""  # what the values describe where that is not storage, like "cached"
    about_after: str = ""

    @property
    def levels_before_and_after(self) -> tuple[float, float]:
        """The values before and after that are shown: their ratio is `ratio.value`."""
        return estimate_levels_of_ratio(self.before, self.after, self.ratio.value)

    @property
    def classification_text(self) -> str:
        """Classification where it is not storage on both sides: "cached", "too short → cached"; else empty."""
        if self.about_before == self.about_after:
            return self.about_before
        return f"{self.about_before or 'storage'} → {self.about_after or 'storage'}"

    @property
    def has_changed(self) -> bool:
        return self.verdict in ("slower", "faster")


@dataclass(frozen=True)
class Comparison:
    """`alone` are numbers that only one side has, with the name of that side."""

    before: ComparedSide
    after: ComparedSide
    numbers: tuple[NumberComparison, ...]
    unpaired: tuple[tuple[str, SideValues], ...]
    caveats: tuple[CaveatCount, ...] = ()  # what speaks against runs of either side

    def list_caveats_of_number(self, number_comparison: NumberComparison) -> list[CaveatCount]:
        """Caveats about the phase of a number in its plan."""
        return [
            caveat
            for caveat in self.caveats
            if caveat.phase == number_comparison.key.phase and caveat.plan in ("", number_comparison.plan)
        ]

    @property
    def shared_run_count(self) -> int:
        """Runs that stand on both sides: they make the sides alike."""
        return len({run.id for run in self.before.runs} & {run.id for run in self.after.runs})

    @property
    def changed_numbers(self) -> list[NumberComparison]:
        return [number for number in self.numbers if number.has_changed]


def compare_sides(
    side_before: ComparedSide, side_after: ComparedSide, smallest_change: float = MIN_CHANGE
) -> Comparison:
    """Compares every number that both sides have. Raises UserError when there is none.

    A number has changed if it differs by `smallest_change` or more and the rank test is significant after adjustment
    for the number of compared numbers.
    """
    old, new = collect_values_by_number(side_before.runs), collect_values_by_number(side_after.runs)
    both = pair_comparable_values(old, new)
    if not both:
        raise UserError(
            f"{side_before.name} and {side_after.name} have no number in common: they ran different phases or "
            "operations;"
            " `sonde show` shows what each of them did."
        )
    ratios = [compare_rates(item.values, other.values) for item, other in both]
    indexes = [index for index, ratio in enumerate(ratios) if ratio.p is not None]
    adjusted = dict(
        zip(
            indexes,
            adjust_p_values_for_false_discovery_rate([ratios[index].p or 0.0 for index in indexes]).tolist(),
            strict=True,
        )
    )
    folders = {run.id: run.folder for side in (side_before, side_after) for run in side.runs}
    places = make_location_names([(other.plan, other.key) for _, other in both])
    compared = [
        _compare_number(
            item,
            other,
            ratios[index],
            adjusted.get(index),
            smallest_change,
            places[index],
            _list_plan_differences(item, other, folders),
        )
        for index, (item, other) in enumerate(both)
    ]
    paired = {id(number) for pair in both for number in pair}
    alone = [
        (side.name, number)
        for side, numbers_of_side in ((side_before, old), (side_after, new))
        for number in numbers_of_side
        if id(number) not in paired
    ]
    caveats = (
        *count_caveats_of_numbers(
            "before", side_before.runs, [(other.plan, item.key.phase, item.runs) for item, other in both]
        ),
        *count_caveats_of_numbers(
            "after", side_after.runs, [(other.plan, other.key.phase, other.runs) for _, other in both]
        ),
    )
    # within a file system in the order of the runs and their phases
    positions = {number.key: position for position, number in enumerate(new)}
    compared.sort(key=lambda number: (number.key.system, number.key.file_system, positions[number.key]))
    return Comparison(side_before, side_after, tuple(compared), tuple(alone), caveats)


def _list_plan_differences(
    values_before: SideValues, values_after: SideValues, run_folders: Mapping[str, Path]
) -> list[tuple[str, str, str]]:
    """Members of the plans that differ, where the plans are not the same; of the latest run of each side."""
    if values_before.key.plan_hash == values_after.key.plan_hash:
        return []
    return list_plan_differences(run_folders[values_before.runs[-1]], run_folders[values_after.runs[-1]])


def _compare_number(
    values_before: SideValues,
    values_after: SideValues,
    rate_ratio: RateRatio,
    p_value: float | None,
    smallest_change: float,
    location: str,
    plan_differences: Sequence[tuple[str, str, str]],
) -> NumberComparison:
    in_key = [
        difference
        for difference in list_key_differences(values_before.key, values_after.key)
        if difference[0] != "plan hash" or not plan_differences
    ]
    return NumberComparison(
        key=values_after.key,
        plan=values_after.plan,
        before=values_before.values,
        after=values_after.values,
        ratio=rate_ratio,
        visible=estimate_detectable_drop(values_before.values, values_after.values),
        verdict=_decide_change_verdict(rate_ratio, p_value, smallest_change),
        p=p_value,
        differs_in=(*plan_differences, *in_key),
        location=location,
        scatter_before=_compute_coefficient_of_variation(values_before.values),
        scatter_after=_compute_coefficient_of_variation(values_after.values),
        runs_before=values_before.runs,
        runs_after=values_after.runs,
        about_before=values_before.classification_text,
        about_after=values_after.classification_text,
    )


def make_location_names(plans_with_keys: Sequence[tuple[str, HistoryKey]]) -> list[str]:
    """A name for the place of each number (its plan and key): the file system, and whatever else of the key is needed
    so that no two numbers of one test have the same. The name includes the system if there are several."""
    several = len({key.system for _, key in plans_with_keys}) > 1
    names = []
    for _, key in plans_with_keys:
        storage = key.file_system.partition("@")[0]
        names.append(" on ".join(part for part in (storage, key.system if several or not storage else "") if part))
    for member in ("file_system", "node_class", "cache", "definition", "plan_hash"):
        alike: dict[tuple[str, ...], list[int]] = {}
        for index, (plan, key) in enumerate(plans_with_keys):
            alike.setdefault((names[index], plan, key.phase, key.op), []).append(index)
        for group in alike.values():
            if len({getattr(plans_with_keys[index][1], member) for index in group}) > 1:
                for index in group:
                    names[index] = f"{names[index]}, {getattr(plans_with_keys[index][1], member) or 'unknown'}"
    return names


def _decide_change_verdict(rate_ratio: RateRatio, p_value: float | None, smallest_change: float) -> ChangeVerdict:
    if p_value is None or rate_ratio.low is None:
        return "too few runs"
    if p_value > SIGNIFICANCE_LEVEL:
        return "no change seen"
    if 1 - smallest_change < rate_ratio.value < 1 / (1 - smallest_change):
        return "small change"
    return "slower" if rate_ratio.value < 1 else "faster"


def _compute_coefficient_of_variation(run_values: Sequence[float]) -> CoefficientOfVariation | None:
    return estimate_coefficient_of_variation(run_values) if len(run_values) >= 2 else None
