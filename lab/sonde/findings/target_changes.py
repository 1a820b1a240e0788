# SPDX-License-Identifier: Apache-2.0
"""Storage targets, servers and units whose response times differ between two sides of a comparison.

In each run a target is compared with the median target, so that load on all targets is no change of one; over several
runs the median counts. The change of a target is then compared with the changes of the others, by the rule that finds
a slow target in one run (`target_operations.compute_deviations`): it needs four targets on both sides, and one run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sonde.findings.assessment import is_reported_in_operations
from sonde.findings.storage_units import compute_relative_unit_rates, list_storage_levels, sum_unit_operations
from sonde.findings.target_operations import (
    CONFIDENCE_LEVEL,
    MIN_OTHER_TARGETS,
    compute_deviations,
    compute_relative_target_rates,
    describe_unknown_bytes,
    find_busiest_kind,
    read_target_operations,
)
from sonde.findings.targets import MIN_SLOWNESS_FACTOR, TargetRates, collect_target_rates
from sonde.model import quantities
from sonde.model.escaping import escape_line
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.stats.ratio import CONFIDENCE, MIN_RUNS_PER_SIDE, compare_rates

TargetVerdict = Literal["slower", "faster", "no change seen", "not known"]
TARGET_LEVEL = "target"
_MAX_LISTED_PARTS = 3
# Why a target has no level: of operations, and of whole files.
_REASONS_WITHOUT_LEVEL = (
    "too few operations on one alone",
    f"fewer than {MIN_RUNS_PER_SIDE} files of tasks on one alone",
)
_TOO_FEW_PARTS_REASON = f"fewer than {MIN_OTHER_TARGETS + 1} with enough operations on both sides"


@dataclass(frozen=True)
class PartChange:
    """A target, server or unit on both sides.

    `relative_rate` is the ratio of its rates, after by before, divided by that of the median part; `low` to `high` is
    its interval at 99.5 % over all parts. `rate` is the same ratio of its mean latency alone, with an interval where
    both sides have five runs. None means unknown; `reason` explains why there is no verdict.
    """

    name: str
    verdict: TargetVerdict
    reason: str
    relative_rate: float | None
    low: float | None
    high: float | None
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    mean_ns_before: float | None  # of operations that lie on one target alone, the median of the runs
    mean_ns_after: float | None
    bytes_before: float | None  # the median of the runs
    bytes_after: float | None

    @property
    def has_changed(self) -> bool:
        """Whether the part changed."""
        return self.verdict in ("slower", "faster")


@dataclass(frozen=True)
class LevelChanges:
    """All targets of a phase, or all parts of a level ("OSS", "SSU"), in the order of the names."""

    level: str
    kind: str  # read, write, or "file" where only whole files on single targets are known
    parts: tuple[PartChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def changed_parts(self) -> list[PartChange]:
        """Parts that changed, the strongest change first."""
        return sorted(
            (part for part in self.parts if part.has_changed),
            key=lambda part: -abs(math.log(part.relative_rate or 1.0)),
        )

    @property
    def change_sentences(self) -> list[str]:
        """A sentence for each part that differs, and one for the parts without a verdict."""
        sentences = [_make_change_sentence(self, item) for item in self.changed_parts[:_MAX_LISTED_PARTS]]
        judged = [part for part in self.parts if part.verdict != "not known"]
        if judged and not sentences:
            sentences.append(_describe_no_change(self, judged))
        if (more := len(self.changed_parts) - _MAX_LISTED_PARTS) > 0:
            sentences.append(f"So {'does' if more == 1 else 'do'} {_format_part_count(more, self.level)} more.")
        silent = [part for part in self.parts if part.verdict == "not known"]
        for why in dict.fromkeys(item.reason for item in silent):
            count = sum(item.reason == why for item in silent)
            sentences.append(f"Not compared: {_format_part_count(count, self.level)} ({why}).")
        for side, names in (("before", self.only_before), ("after", self.only_after)):
            if names:
                displayed = ", ".join(escape_line(name, 40) for name in names[:_MAX_LISTED_PARTS])
                more_words = f" and {len(names) - _MAX_LISTED_PARTS} more" if len(names) > _MAX_LISTED_PARTS else ""
                sentences.append(
                    f"Only {side} served any: {_choose_noun_of_level(self.level)} {displayed}{more_words}."
                )
        return sentences

    def to_json(self) -> dict[str, Any]:
        """The machine form; of a part what is not known is absent."""
        return {
            "level": self.level,
            "kind": self.kind,
            "parts": [
                {name: value for name, value in vars(part).items() if value is not None and value != ""}
                for part in self.parts
            ],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }


@dataclass(frozen=True)
class PhaseChanges:
    """Changes of a phase's targets between two sides: `levels` begins with the targets themselves; `unknown` are
    sentences on what the records do not say."""

    levels: tuple[LevelChanges, ...]
    unknown: tuple[str, ...]


def compare_phase_targets(
    phases_before: Sequence[tuple[RecordedRun, PhaseRecord]], phases_after: Sequence[tuple[RecordedRun, PhaseRecord]]
) -> PhaseChanges:
    """Compares the targets of one phase on both sides. Empty where neither side recorded targets."""
    sides = (phases_before, phases_after)
    known_values = tuple([item for item in side if _has_target_lines(item[1])] for side in sides)
    if not any(known_values):
        return PhaseChanges((), ())
    if len({name for side in known_values for _, phase in side for name in _list_target_names(phase)}) < 2:
        return PhaseChanges((), ())  # one drive: what it did is what the phase did
    unknown = [
        *_describe_runs_without_target_figures(sides, known_values),
        *_describe_bytes_without_target(known_values),
    ]
    kinds = [_choose_operation_kind(side) for side in known_values]
    if not all(known_values):
        return PhaseChanges((), tuple(unknown))
    if kinds[0] != kinds[1]:
        text = " and ".join(_KIND_NOUNS.get(kind, kind) for kind in kinds)
        unknown.append(f"Targets cannot be compared: before and after are measured by {text}.")
        return PhaseChanges((), tuple(unknown))
    targets = _compare_parts_of_level(
        TARGET_LEVEL, kinds[0], [_measure_targets_of_side(side, kinds[0]) for side in known_values]
    )
    names = {item.name for item in targets.changed_parts}
    levels = [targets]
    if kinds[0] != _FILE_KIND:
        both = [
            dict.fromkeys(level for run, phase in side for level in list_storage_levels(run, phase))
            for side in known_values
        ]
        levels += [
            _compare_parts_of_level(
                level, kinds[0], [_measure_units_of_side(side, level, names) for side in known_values]
            )
            for level in both[0]
            if level in both[1]
        ]
    return PhaseChanges(tuple(levels), tuple(unknown))


_FILE_KIND = "file"
_KIND_NOUNS = {"read": "reads", "write": "writes", _FILE_KIND: "whole files on single targets"}


@dataclass(frozen=True)
class _PartMeasurement:
    """Figures of one part in one run: its level relative to the median part (logarithm), and absolute values."""

    level: float | None
    mean_ns: float | None
    bytes: float | None


def _has_target_lines(phase: PhaseRecord) -> bool:
    return bool(phase.targets and read_target_operations(phase.targets)) or bool(
        collect_target_rates(phase, is_reported_in_operations(phase))
    )


def _list_target_names(phase: PhaseRecord) -> set[str]:
    names = {operation.target for operation in read_target_operations(phase.targets)} if phase.targets else set()
    return names | {rate.name for rate in collect_target_rates(phase, is_reported_in_operations(phase))}


def _choose_operation_kind(phases_of_side: Sequence[tuple[RecordedRun, PhaseRecord]]) -> str:
    """Returns read or write, whichever moved more bytes in the latest run; `_FILE_KIND` if that run has no operations
    by target, and "" without runs."""
    return (find_busiest_kind(phases_of_side[-1][1]) or _FILE_KIND) if phases_of_side else ""


def _measure_targets_of_side(
    phases_of_side: Sequence[tuple[RecordedRun, PhaseRecord]], operation_kind: str
) -> list[dict[str, _PartMeasurement]]:
    return [
        _measure_targets_by_files(phase)
        if operation_kind == _FILE_KIND
        else _measure_targets_by_operations(phase, operation_kind)
        for _, phase in phases_of_side
    ]


def _measure_targets_by_operations(phase: PhaseRecord, operation_kind: str) -> dict[str, _PartMeasurement]:
    levels = (
        _compute_rate_levels(compute_relative_target_rates(phase)) if find_busiest_kind(phase) == operation_kind else {}
    )
    return {
        operation.target: _PartMeasurement(
            levels.get(operation.target),
            operation.single_ns / operation.single_ops if operation.single_ops else None,
            float(operation.bytes),
        )
        for operation in (read_target_operations(phase.targets) if phase.targets else ())
        if operation.kind == operation_kind
    }


def _measure_targets_by_files(phase: PhaseRecord) -> dict[str, _PartMeasurement]:
    rates = collect_target_rates(phase, is_reported_in_operations(phase))
    if not rates:
        return {}
    middle = statistics.median(statistics.median(rate.rates) for rate in rates)
    shares = [TargetRates(item.name, tuple(rate / middle for rate in item.rates)) for item in rates]
    levels = _compute_rate_levels(shares)
    return {share.name: _PartMeasurement(levels.get(share.name), None, None) for share in shares}


def _measure_units_of_side(
    phases_of_side: Sequence[tuple[RecordedRun, PhaseRecord]], unit_level: str, excluded_targets: Iterable[str]
) -> list[dict[str, _PartMeasurement]]:
    sentences = []
    for run, phase in phases_of_side:
        kind = find_busiest_kind(phase)
        levels = _compute_rate_levels(compute_relative_unit_rates(run, phase, unit_level, set(excluded_targets)))
        sentences.append(
            {
                operation.unit: _PartMeasurement(levels.get(operation.unit), operation.mean_ns, float(operation.bytes))
                for operation in sum_unit_operations(run, phase, unit_level)
                if operation.kind == kind
            }
        )
    return sentences


def _compute_rate_levels(target_rates: Sequence[TargetRates]) -> dict[str, float]:
    return {rate.name: math.log(float(np.median(rate.rates))) for rate in target_rates if rate.has_enough_rates}


def _compare_parts_of_level(
    unit_level: str, operation_kind: str, measurements_of_sides: Sequence[Sequence[Mapping[str, _PartMeasurement]]]
) -> LevelChanges:
    before, after = ({name for item in side for name in item} for side in measurements_of_sides)
    names = sorted(before & after)
    sentences = [[[item[name] for item in side if name in item] for side in measurements_of_sides] for name in names]
    moved = [_compute_level_change(*both) for both in sentences]
    position = [index for index, value in enumerate(moved) if value is not None]
    deviations = dict(
        zip(position, compute_deviations([moved[item_index] or 0.0 for item_index in position]), strict=True)
    )
    parts = []
    for index, name in enumerate(names):
        result = deviations.get(index)
        verdict: TargetVerdict = "not known" if result is None else "no change seen"
        if result is not None and result.is_different:
            verdict = "slower" if result.by < 0 else "faster"
        bounds = [None] * 3 if result is None else [math.exp(result.by + side * result.room) for side in (0, -1, 1)]
        why = (
            ""
            if result is not None
            else _TOO_FEW_PARTS_REASON
            if index in deviations
            else _REASONS_WITHOUT_LEVEL[operation_kind == _FILE_KIND]
        )
        parts.append(PartChange(name, verdict, why, *bounds, *_compute_change_figures(*sentences[index])))
    return LevelChanges(
        unit_level, operation_kind, tuple(parts), tuple(sorted(before - after)), tuple(sorted(after - before))
    )


def _compute_level_change(
    measurements_before: Sequence[_PartMeasurement], measurements_after: Sequence[_PartMeasurement]
) -> float | None:
    """Change of the level relative to the median part; None where a side did not record it."""
    sides = [
        [item.level for item in side if item.level is not None] for side in (measurements_before, measurements_after)
    ]
    return statistics.median(sides[1]) - statistics.median(sides[0]) if all(sides) else None


def _compute_change_figures(
    measurements_before: Sequence[_PartMeasurement], measurements_after: Sequence[_PartMeasurement]
) -> list[float | None]:
    """Ratio of the rates with its interval, mean latencies and bytes of both sides."""
    means = [[item.mean_ns for item in side if item.mean_ns] for side in (measurements_before, measurements_after)]
    moved = [
        [item.bytes for item in side if item.bytes is not None] for side in (measurements_before, measurements_after)
    ]
    change: list[float | None] = [None, None, None]
    if all(means):
        # Latencies by their inverse: the rate at which one operation after the other is answered.
        old, new = ([1 / ns for ns in side] for side in means)
        result = compare_rates(old, new, CONFIDENCE, with_p_value=False)
        change = [result.value, result.low, result.high]
    return [*change, *(statistics.median(side) if side else None for side in (*means, *moved))]


def _describe_runs_without_target_figures(
    phases_of_sides: Sequence[Sequence[tuple[RecordedRun, PhaseRecord]]],
    sides_known: Sequence[Sequence[tuple[RecordedRun, PhaseRecord]]],
) -> list[str]:
    sentences = []
    for name, side, reported in zip(("before", "after"), phases_of_sides, sides_known, strict=True):
        if missing := len(side) - len(reported):
            which = (
                "the run" if len(side) == 1 else f"{missing} of {quantities.display_count_with_noun(len(side), 'run')}"
            )
            sentences.append(f"Of {which} {name} no figures of targets are known.")
    return sentences


def _describe_bytes_without_target(sides_known: Sequence[Sequence[tuple[RecordedRun, PhaseRecord]]]) -> list[str]:
    """Sentences on bytes without a target, for the run of each side that has most of them."""
    sentences = []
    for name, side in zip(("Before", "After"), sides_known, strict=True):
        partly = [phase for _, phase in side if describe_unknown_bytes(phase)]
        if partly:
            sentences.append(f"{name}, {describe_unknown_bytes(min(partly, key=_get_share_of_bytes_with_target))}.")
    return sentences


def _describe_no_change(changes: LevelChanges, judged_changes: Sequence[PartChange]) -> str:
    """A sentence that no part differs, with the smallest change that would have been seen: the widest interval."""
    widest = max(MIN_SLOWNESS_FACTOR, *(math.sqrt((part.high or 1.0) / (part.low or 1.0)) for part in judged_changes))
    return (
        f"Of {_format_part_count(len(judged_changes), changes.level)} none answered otherwise than before, held "
        f"against the others (a change by less than a factor of {widest:.1f} would not show)."
    )


def _get_share_of_bytes_with_target(phase: PhaseRecord) -> float:
    return phase.targets.known_bytes / phase.targets.bytes if phase.targets and phase.targets.bytes else 1.0


def _choose_noun_of_level(unit_level: str) -> str:
    return unit_level if unit_level == TARGET_LEVEL else escape_line(unit_level, 40)


def _format_part_count(part_count: int, unit_level: str) -> str:
    """ "3 targets", "3 OSS": short names of levels have no plural."""
    noun = _choose_noun_of_level(unit_level)
    return quantities.display_count_with_noun(part_count, noun) if noun[-1:].islower() else f"{part_count:,} {noun}"


def _make_change_sentence(changes: LevelChanges, part_change: PartChange) -> str:
    verbs = {"read": "answered reads at", "write": "answered writes at", _FILE_KIND: "served its files at"}
    noun = _choose_noun_of_level(changes.level)
    name = f"{noun[:1].upper()}{noun[1:]} {escape_line(part_change.name, 60)}"
    others = "targets" if changes.level == TARGET_LEVEL else f"{noun}s" if noun[-1:].islower() else noun
    return (
        f"{name} {verbs.get(changes.kind, 'answered at')} {part_change.relative_rate or 0:.2f} of its rate before, held"
        f" against the other {others} ({100 * CONFIDENCE_LEVEL:g} % interval over all of them:"
        f" {part_change.low or 0:.2f} to {part_change.high or 0:.2f})."
    )
