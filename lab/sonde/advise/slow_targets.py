# SPDX-License-Identifier: Apache-2.0
"""Storage targets whose files take longer per byte than the files of other targets, over one or several logs.

The idea is that of pytokio's `darshan_bad_ost` (Lockwood et al., "TOKIO on ClusterStor", CUG 2018), which correlates
the rate of each file with its targets. A correlation of the real log with one bad target also marks 14 healthy ones,
so this uses a rank test, adjusts for the number of targets, and requires a large effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.advise.job_io import FileIo, JobIo
from sonde.model.units import format_count_with_noun
from sonde.stats.multiple import adjust_p_values_for_false_discovery_rate
from sonde.stats.ranks import compute_rank_sum_p

# Chance that any target of a healthy system is named, over all targets and both directions.
FALSE_ALARM_RATE = 0.01
# A target is named only if its files take this many times as long per byte: less is normal in production.
MIN_SLOWNESS_FACTOR = 1.5
_MIN_FILES_PER_TARGET = 4  # on the target; fewer cannot reach the required significance among dozens of targets
_MIN_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class SlowStorageTarget:
    """`factor`: median seconds per byte of its files, relative to files of other targets. `p` is adjusted."""

    target: int
    direction: str
    factor: float
    p: float
    files: int
    other_files: int

    def describe_in_sentence(self) -> str:
        """Describes the slow target and the evidence in one sentence."""
        return (
            f"Storage target {self.target} is slow: {format_count_with_noun(self.files, 'file')} on it take "
            f"{self.factor:.3g} times as"
            f" long per byte ({self.direction}) as {format_count_with_noun(self.other_files, 'file')} on others. "
            "Such a statement is"
            f" wrong for at most {FALSE_ALARM_RATE:.0%} of healthy systems (adjusted p = {max(self.p, 1e-300):.2g})."
        )


@dataclass(frozen=True)
class SlowTargetResult:
    """Slow targets, and how many targets and files the logs allowed to compare."""

    slow: Sequence[SlowStorageTarget]
    compared: int
    files: int


def find_slow_storage_targets(jobs: Iterable[JobIo]) -> SlowTargetResult:
    """Compares all targets that the logs name. A file counts for each of its targets."""
    slowness: dict[str, list[tuple[float, frozenset[int]]]] = defaultdict(list)
    for job in jobs:
        for direction in ("read", "write"):
            slowness[direction].extend(_compute_slowness_of_files(job.files, direction))
    candidates = []
    for direction, items in slowness.items():
        values = np.array([value for value, _ in items])
        for target in sorted({target for _, targets in items for target in targets}):
            uses = np.array([target in targets for _, targets in items])
            on, others = values[uses], values[~uses]
            if on.size >= _MIN_FILES_PER_TARGET and others.size >= _MIN_FILES_PER_TARGET:
                factor = float(np.median(on) / np.median(others))
                p = float(compute_rank_sum_p(others, on))
                candidates.append(SlowStorageTarget(target, direction, factor, p, on.size, others.size))
    adjusted = adjust_p_values_for_false_discovery_rate([candidate.p for candidate in candidates])
    slow = [
        SlowStorageTarget(item.target, item.direction, item.factor, float(p), item.files, item.other_files)
        for item, p in zip(candidates, adjusted, strict=True)
        if p < FALSE_ALARM_RATE and item.factor >= MIN_SLOWNESS_FACTOR
    ]
    return SlowTargetResult(
        sorted(slow, key=lambda item: -item.factor),
        len({item.target for item in candidates}),
        sum(map(len, slowness.values())),
    )


def _compute_slowness_of_files(files: Sequence[FileIo], direction_name: str) -> list[tuple[float, frozenset[int]]]:
    """Seconds per byte of each file relative to the median of its job, and its targets."""
    result = []
    for file in files:
        move = file.read if direction_name == "read" else file.write
        if file.targets and move.bytes >= _MIN_FILE_BYTES and move.seconds > 0:
            result.append((move.seconds / move.bytes, frozenset(file.targets)))
    if not result:
        return []
    usual = float(np.median([value for value, _ in result]))
    return [(value / usual, targets) for value, targets in result]
