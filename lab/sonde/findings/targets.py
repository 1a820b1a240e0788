# SPDX-License-Identifier: Apache-2.0
"""Finds slow storage targets from files that are on one target each and from the tasks that used them.

The rates of a target's files are compared with those of all other files by the Mann-Whitney test; the slowdown is the
ratio of Hodges and Lehmann with the interval that belongs to the test, at a level shared by all targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.findings.stragglers import read_task_rates
from sonde.model import quantities
from sonde.model.errors import format_as_sentence
from sonde.model.escaping import escape_line
from sonde.model.lines import LayoutLine
from sonde.model.record import PhaseRecord
from sonde.stats.ratio import CONFIDENCE, MIN_RUNS_PER_SIDE, compare_rates

# Less is no finding, however sure it is: targets of one file system differ by so much when nothing is wrong.
MIN_SLOWNESS_FACTOR = 1.3
_MAX_LISTED_TARGETS = 3
# The engine's finding if a file system with targets does not report them.
_UNREADABLE_LAYOUT_FINDINGS = ("layout_unreadable", "placement_unknown")


@dataclass(frozen=True)
class TargetRates:
    """A target and the rates of the files that lie on it alone: bytes or operations per second, one a task.

    `operations`: how many there are behind a single rate for the whole phase, which needs no others to be judged.
    """

    name: str
    rates: tuple[float, ...]
    operations: int | None = None

    @property
    def has_enough_rates(self) -> bool:
        """Whether there are enough rates for a verdict."""
        return self.operations is not None or len(self.rates) >= MIN_RUNS_PER_SIDE


@dataclass(frozen=True)
class SlowTarget:
    """A target whose files were `factor` times slower than those on the others; `low` to `high` is its interval."""

    name: str
    files: int
    factor: float
    low: float
    high: float


@dataclass(frozen=True)
class TargetUsage:
    """Use of a target: number of `files` on it, and their `bytes`."""

    name: str
    files: int
    bytes: int


def collect_target_usage(layout_line: LayoutLine) -> list[TargetUsage]:
    """Every target of the files that were looked at, in the order of the record."""
    return [
        TargetUsage(str(name), files, held)
        for name, files, held in _iterate_selected_columns(
            layout_line.target_columns, layout_line.targets, "target", "files", "bytes"
        )
        if isinstance(files, int) and isinstance(held, int)
    ]


@dataclass(frozen=True)
class FileFragmentation:
    """Placement of `files` local files on their device: `fragments` is their total number of extents; `unplaced` bytes
    are not allocated yet."""

    files: int
    fragments: int
    unplaced: int


def count_fragments(layout_line: LayoutLine) -> FileFragmentation | None:
    """Fragmentation of the files whose extents were counted; None where none were counted."""
    rows = _iterate_selected_columns(layout_line.columns, layout_line.rows, "fragments", "unplaced_bytes")
    known_values = [row for row in rows if all(isinstance(value, int) for value in row)]
    return (
        FileFragmentation(len(known_values), sum(row[0] for row in known_values), sum(row[1] for row in known_values))
        if known_values
        else None
    )


def describe_pool_disks(layout_line: LayoutLine) -> str:
    """The number of disks of a pool that is recorded as one target, and of its servers; empty without such a record."""
    reported: dict[str, list[str]] = {}
    for shape in layout_line.shapes:
        for part in shape if isinstance(shape, list | tuple) else ():
            if isinstance(part, dict) and part.get("pool") and isinstance(part.get("members"), list | tuple):
                reported[str(part["pool"])] = [str(item) for item in part["members"]]
    sentences = []
    for pool, disks in reported.items():
        servers = {name for disk in disks for name in disk.partition("@")[2].split(",") if name}
        served = f" of {quantities.display_count_with_noun(len(servers), 'server')}" if servers else ""
        sentences.append(
            f"pool {escape_line(pool, 40)} is {quantities.display_count_with_noun(len(disks), 'disk')}{served}"
        )
    return f"{'; '.join(sentences)}: which of them holds which byte nobody tells" if sentences else ""


def collect_target_rates(phase: PhaseRecord, counts_operations: bool) -> list[TargetRates]:
    """By name. Files that several tasks use or that are on several targets are skipped; empty if no other files
    exist."""
    if phase.layout is None:
        return []
    rows = list(_iterate_selected_columns(phase.layout.columns, phase.layout.rows, "task", "targets"))
    rates = read_task_rates(phase, counts_operations)
    # Of a task with many files only the sum of its time is known.
    files_of = Counter(task for task, _ in rows if isinstance(task, int))
    result: dict[str, list[float]] = {}
    for task, held in rows:
        alone = isinstance(held, list | tuple) and len(held) == 1 and isinstance(held[0], list | tuple) and held[0]
        if isinstance(task, int) and files_of[task] == 1 and alone and rates.get(task, 0.0) > 0:
            result.setdefault(str(held[0][0]), []).append(rates[task])
    return [TargetRates(name, tuple(rates)) for name, rates in sorted(result.items())]


def find_slow_targets(target_rates: Sequence[TargetRates]) -> list[SlowTarget]:
    """The slow targets, the slowest first. A target needs five files, and so do the others together."""
    judged = [target for target in target_rates if target.has_enough_rates]
    slow = []
    for item in judged:
        others = [rate for other in target_rates if other is not item for rate in other.rates]
        if len(others) < MIN_RUNS_PER_SIDE:
            continue
        # Each target is a chance to be wrong.
        observed = compare_rates(item.rates, others, 1 - (1 - CONFIDENCE) / len(judged))
        if (
            observed.low is not None
            and observed.high is not None
            and observed.low > 1
            and observed.value >= MIN_SLOWNESS_FACTOR
        ):
            slow.append(SlowTarget(item.name, len(item.rates), observed.value, observed.low, observed.high))
    return sorted(slow, key=lambda target: -target.factor)


def describe_slow_targets(phase: PhaseRecord, counts_operations: bool) -> str:
    """Sentences about the slow targets; empty if there are none or the data are missing."""
    slow = find_slow_targets(collect_target_rates(phase, counts_operations))
    sentences = [
        f"Files on target {escape_line(item.name, 60)} ({quantities.display_count_with_noun(item.files, 'file')}) were"
        f" {item.factor:.1f} times"
        f" slower than those on the others (95 % interval over all targets: {item.low:.1f} to {item.high:.1f})."
        for item in slow[:_MAX_LISTED_TARGETS]
    ]
    if len(slow) > _MAX_LISTED_TARGETS:
        sentences.append(
            f"So were those on {quantities.display_count_with_noun(len(slow) - _MAX_LISTED_TARGETS, 'other target')}."
        )
    return " ".join(sentences)


def describe_unknown_layout(phase: PhaseRecord) -> str:
    """Explains why the placement of bytes on targets is unknown, on file systems that have targets; otherwise empty."""
    reported = next((finding for finding in phase.findings if finding.id in _UNREADABLE_LAYOUT_FINDINGS), None)
    return format_as_sentence(escape_line(reported.text, 600)) if reported else ""


def _iterate_selected_columns(
    column_names: Sequence[str], rows: Sequence[Sequence[Any]], *wanted_names: str
) -> Iterator[list[Any]]:
    """Yields the named columns of each row; yields no row if a column is missing."""
    if set(wanted_names) <= set(column_names):
        places = [column_names.index(name) for name in wanted_names]
        yield from ([row[position] for position in places] for row in rows if len(row) == len(column_names))
