# SPDX-License-Identifier: Apache-2.0
"""Operations of servers and units of storage (OSS, SSU) in a phase, summed over their targets, where a described system
says which target belongs to which (`Run.parents`), and which of them answered slowly.

Sums of bytes and operations are exact. Latencies of several targets are joined as far as they can be: the mean is that
of all operations, the percentiles are those of the worst target.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonde.findings.target_operations import (
    CONFIDENCE_LEVEL,
    OperationTimes,
    TargetOperations,
    compute_busy_rate,
    compute_relative_median_latencies,
    compute_relative_rates,
    compute_target_series,
    find_slow_targets_by_latency,
    read_target_operations,
    select_slow_targets,
    select_target_series,
    select_text_for_busiest_kind,
)
from sonde.findings.targets import SlowTarget, TargetRates
from sonde.model.escaping import escape_line
from sonde.model.parents import TargetParents, strip_host_suffix
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.stats.bins import pad_with_zeros


@dataclass(frozen=True)
class StorageUnitOperations:
    """Reads or writes of the targets of one part; `bytes_per_s` while they were busy, latencies in ns or None."""

    unit: str
    kind: str
    targets: int  # of it that served any
    bytes: int
    ops: int  # an operation over two of its targets counts twice, as with targets
    bytes_per_s: float | None
    mean_ns: float | None  # of operations that lie on one target alone
    worst_p99_ns: float | None  # of the worst of its targets
    max_ns: float | None

    def to_json(self) -> dict[str, Any]:
        """The machine form; what is not known is absent."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class StorageUnitSeries:
    """Bytes of one part in each slice of `slice_s` seconds, of the busiest kind of operations."""

    unit: str
    bytes: tuple[float, ...]
    slice_s: float


def list_storage_levels(run: RecordedRun, phase: PhaseRecord) -> list[str]:
    """The levels at which targets of this phase have a part, in the order of the run: "OSS", "SSU"."""
    rows = read_target_operations(phase.targets) if phase.targets else []
    parents = run.parents.restrict_to_targets([row.target for row in rows])
    return list(parents.levels)


def sum_unit_operations(run: RecordedRun, phase: PhaseRecord, unit_level: str) -> list[StorageUnitOperations]:
    """A row for each part and kind of operations, in the order of the described system."""
    part_of = run.parents.map_targets_to_parts(unit_level)
    order = list(run.parents.levels.get(unit_level, ()))
    result: dict[tuple[int, str], list[TargetOperations]] = {}
    for operation in read_target_operations(phase.targets) if phase.targets else ():
        part = part_of.get(strip_host_suffix(operation.target))
        if part is not None:
            result.setdefault((order.index(part), operation.kind), []).append(operation)
    return [_sum_operations_of_unit(phase, order[index], kind, rows) for (index, kind), rows in sorted(result.items())]


def _sum_operations_of_unit(
    phase: PhaseRecord, unit_name: str, operation_kind: str, target_rows: Sequence[TargetOperations]
) -> StorageUnitOperations:
    moved, single = sum(row.bytes for row in target_rows), sum(row.single_ops for row in target_rows)
    return StorageUnitOperations(
        unit_name,
        operation_kind,
        len(target_rows),
        moved,
        sum(row.ops for row in target_rows),
        compute_busy_rate(select_target_series(phase, operation_kind, {row.target for row in target_rows})),
        sum(row.single_ns for row in target_rows) / single if single else None,
        max((row.p99_ns for row in target_rows if row.p99_ns is not None), default=None),
        max((row.max_ns for row in target_rows if row.max_ns is not None), default=None),
    )


def collect_unit_series(run: RecordedRun, phase: PhaseRecord, unit_level: str) -> list[StorageUnitSeries]:
    """Series of each part that served any bytes, in the order of the described system."""
    series = compute_target_series(phase)
    length = max((len(line.bytes) for line in series), default=0)
    sums = {
        part: np.sum([pad_with_zeros(series[position].bytes, length) for position in places], axis=0)
        for part, places in _find_target_positions_of_units(
            run.parents, unit_level, [str(line.target) for line in series]
        ).items()
    }
    return [StorageUnitSeries(part, tuple(moved.tolist()), series[0].slice_s) for part, moved in sums.items()]


def find_slow_units(run: RecordedRun, phase: PhaseRecord, unit_level: str) -> list[SlowTarget]:
    """Servers or units whose operations took longer than those of the others, by the same test as for targets; the
    slowest first.

    A slow target that is reported itself does not count for its server or unit, unless it is at least half of it: one
    slow drive makes no slow server."""
    excluded_targets = {item.name for item in find_slow_targets_by_latency(phase)}
    return select_slow_targets(compute_relative_unit_rates(run, phase, unit_level, excluded_targets))


def compute_relative_unit_rates(
    run: RecordedRun, phase: PhaseRecord, unit_level: str, excluded_targets: Collection[str]
) -> list[TargetRates]:
    """By part the rate at which its targets answered in each block, as a fraction of the median part's in that block;
    when some parts answered too few operations in too few blocks, one rate for the whole phase, as for targets.

    Targets of `excluded_targets` do not count for their part unless they are at least half of it."""
    by_blocks = compute_relative_rates(collect_operation_times_of_units(run, phase, unit_level, excluded_targets))
    judged = {rate.name for rate in by_blocks if rate.has_enough_rates}
    by_medians = _compute_unit_rates_by_medians(run, phase, unit_level, excluded_targets)
    return by_blocks if {rate.name for rate in by_medians} <= judged else by_medians


def _compute_unit_rates_by_medians(
    run: RecordedRun, phase: PhaseRecord, unit_level: str, excluded_targets: Collection[str]
) -> list[TargetRates]:
    """By part the median of the rates of its targets, each from the median of its operations."""
    rates = compute_relative_median_latencies(phase)
    names = [rate.name for rate in rates]
    units = []
    for part, places in _find_target_positions_of_units(run.parents, unit_level, names).items():
        counted = [rates[index] for index in _select_counted_targets(places, names, excluded_targets)]
        operations = sum(rate.operations or 0 for rate in counted)
        units.append(TargetRates(part, (float(np.median([rate.rates[0] for rate in counted])),), operations))
    return units


def _select_counted_targets(
    target_positions: Sequence[int], target_ids: Sequence[str], excluded_targets: Collection[str]
) -> Sequence[int]:
    """The positions of a part's targets without `excluded_targets`; all where these are at least half of it."""
    sound = [position for position in target_positions if target_ids[position] not in excluded_targets]
    return sound if 2 * len(sound) > len(target_positions) else target_positions


def collect_operation_times_of_units(
    run: RecordedRun, phase: PhaseRecord, unit_level: str, excluded_targets: Collection[str]
) -> list[OperationTimes]:
    """Times of operations of the targets of each part together, without `excluded_targets` unless these are at least
    half of it."""
    series = compute_target_series(phase)
    length = max((len(line.single_ops) for line in series), default=0)
    answers = []
    names = [str(line.target) for line in series]
    for part, places in _find_target_positions_of_units(run.parents, unit_level, names).items():
        counted = _select_counted_targets(places, names, excluded_targets)
        ops, ns = (
            np.sum([pad_with_zeros(row, length) for row in rows], axis=0)
            for rows in (
                [series[index].single_ops for index in counted],
                [series[index].single_ns for index in counted],
            )
        )
        answers.append(OperationTimes(part, tuple(ops.tolist()), tuple(ns.tolist())))
    return answers


def describe_slow_units(run: RecordedRun, phase: PhaseRecord) -> str:
    """A sentence about the slowest part of each level; empty if none is slow or the data are missing."""
    sentences = []
    for level in list_storage_levels(run, phase):
        for unit in find_slow_units(run, phase, level)[:1]:
            text = select_text_for_busiest_kind(phase, "reads", "writes", "operations")
            sentences.append(
                f"{escape_line(level, 40)} {escape_line(unit.name, 60)} answered {text} at {1 / unit.factor:.2f} of the"
                f" rate of"
                f" the others ({100 * CONFIDENCE_LEVEL:g} % interval over all of them:"
                f" {1 / unit.high:.2f} to {1 / unit.low:.2f})."
            )
    return " ".join(sentences)


def _find_target_positions_of_units(
    parents: TargetParents, unit_level: str, target_ids: Sequence[str]
) -> Mapping[str, list[int]]:
    """Positions in `target_ids` of the targets of each part; parts without targets are omitted."""
    part_of = parents.map_targets_to_parts(unit_level)
    result: dict[str, list[int]] = {part: [] for part in parents.levels.get(unit_level, ())}
    for index, name in enumerate(target_ids):
        if (part := part_of.get(strip_host_suffix(name))) is not None:
            result[part].append(index)
    return {part: places for part, places in result.items() if places}
