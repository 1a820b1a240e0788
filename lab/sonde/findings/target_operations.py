# SPDX-License-Identifier: Apache-2.0
"""Operations of each storage target in a phase, and which targets answered slowly.

A target is judged by the operations that lie on it alone, because one over several targets waits for the slowest. Time
is divided into blocks. In each block the rate of a target is compared with that of the median target, so that a cause
that affects all targets blames none. The median of these shares is what targets are compared by."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.findings.targets import MIN_SLOWNESS_FACTOR, SlowTarget, TargetRates
from sonde.model import quantities
from sonde.model.escaping import escape_line
from sonde.model.lines import SeriesLine, TargetsLine
from sonde.model.record import PhaseRecord
from sonde.stats.bins import pad_with_zeros, sum_into_bins
from sonde.stats.ratio import MIN_RUNS_PER_SIDE
from sonde.stats.spread import compute_student_quantile

# Blocks are long, so that they depend little on one another and hold enough operations to be a number.
_MAX_BLOCKS, _OPERATIONS_A_BLOCK = 16, 8
_MAX_LISTED_TARGETS = 3
# Of a target, for its median over the whole phase: three of five operations in a tail of 1 % are rare enough.
_MIN_OPERATIONS = 5
_MIN_OPERATIONS_OF_MEDIAN_TARGET = 32  # of the median target; below that nothing is said
_MIN_SLOWNESS_OF_SINGLE_OPERATIONS = 10.0
_MANY_OPERATIONS = 256.0
_MANY_BLOCKS = 13
# By this two of 500 drawn phases without a slow target name one, by 95 % eleven: history asks every day.
CONFIDENCE_LEVEL = 0.995
MIN_OTHER_TARGETS = 3
# So many of all targets can differ without being what is usual.
_MAX_DEVIATING_TARGETS_DIVISOR = 6


@dataclass(frozen=True)
class TargetOperations:
    """Reads or writes of one target; latencies in ns are those of operations that lie on it alone, else None."""

    target: str
    kind: str
    bytes: int
    ops: int
    single_ops: int
    single_ns: int
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    max_ns: float | None


def read_target_operations(targets_line: TargetsLine) -> list[TargetOperations]:
    """Every row that can be read, in the order of the record."""
    result = []
    for row in targets_line.rows:
        item = dict(zip(targets_line.columns, row, strict=False))
        counts: list[Any] = [item.get(name) for name in ("bytes", "ops", "single_ops", "single_ns")]
        if not all(isinstance(count, int) for count in counts):
            continue
        times = [_convert_to_number_or_none(item.get(name)) for name in ("p50_ns", "p90_ns", "p99_ns", "max_ns")]
        result.append(TargetOperations(str(item.get("target", "?")), str(item.get("kind", "")), *counts, *times))
    return result


def find_busiest_kind(phase: PhaseRecord) -> str:
    """Read or write, whichever moved more bytes on known targets; empty when none is known."""
    moved: dict[str, int] = {}
    for operation in read_target_operations(phase.targets) if phase.targets else ():
        moved[operation.kind] = moved.get(operation.kind, 0) + operation.bytes
    return max(moved, key=lambda kind: moved[kind], default="")


def read_busiest_operations(phase: PhaseRecord) -> list[TargetOperations]:
    """The rows of that kind; empty when none is known."""
    kind = find_busiest_kind(phase)
    return [row for row in (read_target_operations(phase.targets) if phase.targets else ()) if row.kind == kind]


def compute_target_series(phase: PhaseRecord) -> list[SeriesLine]:
    """Series of each target for the busiest kind of operations."""
    kind = find_busiest_kind(phase)
    return [line for line in phase.series if line.scope == "target" and line.kind == kind and line.slice_s > 0]


def select_target_series(phase: PhaseRecord, operation_kind: str, target_ids: Collection[str]) -> list[SeriesLine]:
    """Series of one kind of operations for the given targets."""
    return [
        line
        for line in phase.series
        if line.scope == "target" and line.kind == operation_kind and str(line.target) in target_ids
    ]


def compute_busy_rate(series: Sequence[SeriesLine]) -> float | None:
    """Bytes per second of these series together, from the first to the last slice in which one of them has bytes.

    Over the whole phase, targets with equal amounts of data would have equal rates, whichever of them was slow.
    """
    busy = [index for line in series for index, moved in enumerate(line.bytes) if moved]
    if not busy or series[0].slice_s <= 0:
        return None
    return sum(sum(line.bytes) for line in series) / ((max(busy) - min(busy) + 1) * series[0].slice_s)


@dataclass(frozen=True)
class OperationTimes:
    """Operations of a target, or of several together, that lie on it alone: how many ended in each slice, and how long
    they took together (ns)."""

    name: str
    ops: tuple[float, ...]
    ns: tuple[float, ...]


def compute_relative_target_rates(phase: PhaseRecord) -> list[TargetRates]:
    """By target the rate at which it answered in each block, as a fraction of the median target's in that block.

    When some targets answered too few operations in too few blocks, each has one rate for the whole phase instead, from
    the median of its operations: a target that is ten times slower works long after the others have finished. Empty
    when too few operations lie on one target alone.
    """
    by_blocks = compute_relative_rates(
        [OperationTimes(str(line.target), line.single_ops, line.single_ns) for line in compute_target_series(phase)]
    )
    judged = {rate.name for rate in by_blocks if rate.has_enough_rates}
    by_medians = compute_relative_median_latencies(phase)
    return by_blocks if {rate.name for rate in by_medians} <= judged else by_medians


def compute_relative_median_latencies(phase: PhaseRecord) -> list[TargetRates]:
    """By target: the median latency of the median target divided by the median latency of this target.

    Fewer than `_MIN_OPERATIONS` are judged only when chance cannot explain them: three or four whose median exceeds
    nine tenths of the operations of every other target, two whose median exceeds all of them, or a single one that
    does so by `_MIN_SLOWNESS_OF_SINGLE_OPERATIONS`.
    """
    rows = [row for row in read_busiest_operations(phase) if row.p50_ns and row.single_ops]
    counted = [row for row in rows if row.single_ops >= _MIN_OPERATIONS]
    if (
        len(counted) <= MIN_OTHER_TARGETS
        or float(np.median([row.single_ops for row in rows])) < _MIN_OPERATIONS_OF_MEDIAN_TARGET
    ):
        return []
    middle = float(np.median([row.p50_ns or 0.0 for row in counted]))
    return [
        TargetRates(row.target, (middle / (row.p50_ns or middle),), row.single_ops)
        for row in rows
        if row.single_ops >= _MIN_OPERATIONS
        or _is_slower_than_by_chance(row, [other for other in rows if other is not row])
    ]


def _is_slower_than_by_chance(target_operations: TargetOperations, other_rows: Sequence[TargetOperations]) -> bool:
    median = target_operations.p50_ns or 0.0
    if target_operations.single_ops >= 3:
        counted = [other for other in other_rows if other.single_ops >= _MIN_OPERATIONS]
        return median > max(other.p90_ns or math.inf for other in counted)
    longest = max(other.max_ns or math.inf for other in other_rows)
    return median > longest * (_MIN_SLOWNESS_OF_SINGLE_OPERATIONS if target_operations.single_ops == 1 else 1.0)


def compute_relative_rates(operation_times: Sequence[OperationTimes]) -> list[TargetRates]:
    """Rates of targets, or of groups of targets, relative to their median in each block of time."""
    if len(operation_times) < 2:
        return []
    length = max(len(answer.ops) for answer in operation_times)
    counts = [sum(answer.ops) for answer in operation_times]
    blocks = min(length, _MAX_BLOCKS, int(float(np.median(counts)) / _OPERATIONS_A_BLOCK))
    if blocks < MIN_RUNS_PER_SIDE:
        return []
    ops = _sum_into_blocks([answer.ops for answer in operation_times], length, blocks)
    seconds = _sum_into_blocks([answer.ns for answer in operation_times], length, blocks) / 1e9
    enough = (ops >= _OPERATIONS_A_BLOCK / 2) & (seconds > 0)
    rates = np.where(enough, ops / np.where(enough, seconds, 1.0), np.nan)
    sentences = [index for index in range(blocks) if np.count_nonzero(enough[:, index]) >= 2]
    if not sentences:
        return []
    shares = rates[:, sentences] / np.nanmedian(rates[:, sentences], axis=0)
    return [
        TargetRates(answer.name, tuple(float(share) for share in row if np.isfinite(share)))
        for answer, row in zip(operation_times, shares, strict=True)
    ]


def find_slow_targets_by_latency(phase: PhaseRecord) -> list[SlowTarget]:
    """Targets whose operations took longer than those of the others, the slowest first.

    The median operation must be slower too. In a short phase a few very long operations can slow most blocks of a sound
    target: of 1,000 drawn phases of 100 operations without a slow target 20 named one by blocks alone, and 1 with this
    rule, which hid 3 of 176 targets that were 1.5 times slower and none of 200 that were twice as slow.
    """
    medians = {row.target: row.p50_ns for row in read_busiest_operations(phase) if row.p50_ns}
    limit = MIN_SLOWNESS_FACTOR * float(np.median(list(medians.values()))) if medians else 0.0
    slow = select_slow_targets(compute_relative_target_rates(phase))
    return [target for target in slow if medians.get(target.name, math.inf) >= limit]


def select_slow_targets(target_rates: Sequence[TargetRates]) -> list[SlowTarget]:
    """The slow targets, the slowest first; `files` is the number of blocks.

    Neighboring blocks of a target are alike, so they are no independent samples: each target counts as one value, the
    median of its blocks. It is slow when the other targets, as far as they differ among themselves, leave no room for
    one like it (a prediction interval by Student's t on logarithms, at a level shared by all targets). So a few targets
    can be told apart only by a large factor, and four are the fewest."""
    judged = [rate for rate in target_rates if rate.has_enough_rates]
    deviations = compute_deviations(
        [math.log(float(np.median(rate.rates))) for rate in judged], _estimate_level_noise(judged)
    )
    slow = []
    for item, result in zip(judged, deviations, strict=True):
        if result is not None and result.is_different and result.by < 0 and _is_slow_in_nearly_all_blocks(item):
            factor, low, high = (math.exp(-result.by + side) for side in (0.0, -result.room, result.room))
            slow.append(SlowTarget(item.name, len(item.rates), factor, low, high))
    return sorted(slow, key=lambda target: -target.factor)


def _estimate_level_noise(target_rates: Sequence[TargetRates]) -> list[float]:
    """By target the spread of its level against that of the median target: a median of fewer operations varies more.

    Beyond `_MANY_OPERATIONS` the spread is that between targets, which more operations do not lower: without this limit
    a target that hangs for a whole long phase had room for any factor.
    """
    counts = [rate.operations for rate in target_rates if rate.operations is not None]
    middle = min(float(np.median(counts)), _MANY_OPERATIONS) if counts else 1.0
    return [math.sqrt(max(1.0, middle / rate.operations)) if rate.operations else 1.0 for rate in target_rates]


def _is_slow_in_nearly_all_blocks(target_rates: TargetRates) -> bool:
    """Whether nearly all blocks are slow; in a sound target a few long operations slow half of them.

    With few blocks one of four may be fast: their few operations vary.
    """
    share = 0.75 if len(target_rates.rates) < _MANY_BLOCKS else 0.9
    return target_rates.operations is not None or float(np.quantile(target_rates.rates, share)) < 1 / math.sqrt(
        MIN_SLOWNESS_FACTOR
    )


@dataclass(frozen=True)
class LevelDeviation:
    """By how much one lies above the middle of the others, and the room that they leave it; natural logarithms."""

    by: float
    room: float

    @property
    def is_different(self) -> bool:
        """Whether it is another than the others: outside their room, and by the least factor that counts."""
        return abs(self.by) > self.room and abs(self.by) >= math.log(MIN_SLOWNESS_FACTOR)


def compute_deviations(
    target_levels: Sequence[float], level_spreads: Sequence[float] = ()
) -> list[LevelDeviation | None]:
    """The one rule of which of several targets differ: how far each is from the sound others, None where there are too
    few.

    `target_levels` are natural logarithms, one a target; `level_spreads` is the spread of each against that of the
    usual target, 1 if absent. Several deviating targets would hide each other, because each is among the peers of the
    others: so they are tested from the most extreme on, each without those before it (the generalized test of Rosner
    for many outliers), one in six at most."""
    values = np.asarray(target_levels, dtype=float)
    if values.size <= MIN_OTHER_TARGETS:
        return [None] * values.size
    spread = list(level_spreads) or [1.0] * values.size
    # By noise, so that a few operations do not count as extreme.
    order = np.argsort(-np.abs(values - np.median(values)) / spread, kind="stable")
    differing = 0
    for count in range(1, max(1, values.size // _MAX_DEVIATING_TARGETS_DIVISOR) + 1):
        item = order[count - 1]
        if _compute_deviation(
            float(values[item]), values[order[count:]], values.size - count + 1, spread[item]
        ).is_different:
            differing = count
    sound = np.ones(values.size, dtype=bool)
    sound[order[:differing]] = False
    index = np.arange(values.size)
    return [
        _compute_deviation(float(values[item]), values[sound & (index != item)], values.size, spread[item])
        for item in index
    ]


def _compute_deviation(
    target_level: float, other_levels: NDArray[np.float64], judged_count: int, relative_level_spread: float = 1.0
) -> LevelDeviation:
    """Against a prediction interval by Student's t, at a level shared by all that are judged."""
    quantile = compute_student_quantile(1 - (1 - CONFIDENCE_LEVEL) / 2 / judged_count, other_levels.size - 1)
    room = quantile * float(np.std(other_levels, ddof=1)) * math.sqrt(relative_level_spread**2 + 1 / other_levels.size)
    return LevelDeviation(target_level - float(np.median(other_levels)), room)


def describe_slow_operations(phase: PhaseRecord) -> str:
    """Sentences about the slow targets; empty if there are none or the data are missing."""
    slow = find_slow_targets_by_latency(phase)
    kind = select_text_for_busiest_kind(phase, "Reads from", "Writes to", "Operations on")
    sentences = [
        f"{kind} target {escape_line(item.name, 60)} took {item.factor:.1f} times as long as those on the others"
        f" ({100 * CONFIDENCE_LEVEL:g} % interval over all targets: {item.low:.1f} to {item.high:.1f})."
        for item in slow[:_MAX_LISTED_TARGETS]
    ]
    if len(slow) > _MAX_LISTED_TARGETS:
        sentences.append(
            f"So did those of {quantities.display_count_with_noun(len(slow) - _MAX_LISTED_TARGETS, 'other target')}."
        )
    return " ".join(sentences)


def select_text_for_busiest_kind(phase: PhaseRecord, read_text: str, write_text: str, other_text: str) -> str:
    """The word for the busiest kind of operations of the phase."""
    return {"read": read_text, "write": write_text}.get(find_busiest_kind(phase), other_text)


def describe_unknown_bytes(phase: PhaseRecord) -> str:
    """States how many bytes of the phase are assigned to no target, and why if that is known; empty if all bytes are
    assigned."""
    line = phase.targets
    if line is None or line.known_bytes >= line.bytes:
        return ""
    share = f"{100 * (1 - line.known_bytes / line.bytes):.3g} % of the bytes belong to no known target"
    if phase.layout is not None and phase.layout.kind == "local":
        return f"{share}: a local file system chooses places for new bytes only after they were written"
    unknown = line.files - line.known_files
    return f"{share}: the layout of {unknown:,} of {line.files:,} opened files is not known" if unknown > 0 else share


def _sum_into_blocks(series_rows: Sequence[Sequence[float]], slice_count: int, block_count: int) -> NDArray[np.float64]:
    return np.array([sum_into_bins(pad_with_zeros(row, slice_count), block_count) for row in series_rows])


def _convert_to_number_or_none(table_value: Any) -> float | None:
    return float(table_value) if isinstance(table_value, int | float) else None
