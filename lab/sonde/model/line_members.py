# SPDX-License-Identifier: Apache-2.0
"""The objects inside record lines as types. ``schema/record/README.md`` defines each member.

An absent member is None wherever zero would have another meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FileSystemFacts:
    """The file system under the target, as one node sees it. Sizes in bytes."""

    type: str = ""
    mount_point: str = ""
    source: str = ""
    options: str = ""
    block_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    available_bytes: int | None = None
    inodes_total: int | None = None
    inodes_free: int | None = None
    direct_memory_align_bytes: int | None = None
    direct_offset_align_bytes: int | None = None
    read_only: bool | None = None
    network: bool | None = None
    memory_backed: bool | None = None
    block_device: dict[str, Any] = field(default_factory=dict)  # below a local file system: name, kind and sizes


@dataclass(frozen=True)
class TreeShape:
    """The tree of a metadata phase."""

    objects: str = "files"  # files or directories
    scope: str = ""
    directories: int = 0
    items_per_dir: int = 0


@dataclass(frozen=True)
class ByteCounts:
    """Bytes of a phase."""

    planned: int | None = None
    transferred: int = 0
    read: int = 0
    written: int = 0


@dataclass(frozen=True)
class OperationCounts:
    """Operations of a phase."""

    planned: int | None = None
    done: int = 0
    read: int = 0
    written: int = 0
    short: int = 0
    failed: int = 0
    retries: int = 0  # requests to an object store that were sent again


@dataclass(frozen=True)
class IntervalSeconds:
    """Seconds: wall intervals over all tasks, or sums over tasks."""

    elapsed: float | None = None
    open: float | None = None
    transfer: float | None = None
    fsync: float | None = None
    close: float | None = None
    verify: float | None = None


@dataclass(frozen=True)
class Rate:
    """A rate that names its numerator and its interval."""

    bytes: int = 0
    ops: int = 0
    seconds: float = 0.0
    bytes_per_s: float = 0.0
    ops_per_s: float = 0.0


@dataclass(frozen=True)
class PhaseRates:
    """The rates of a phase; absent ones do not apply. Definitions: docs/concepts/rates."""

    total: Rate | None = None
    transfer: Rate | None = None
    stonewall: Rate | None = None
    steady: Rate | None = None
    task_sum: Rate | None = None
    first_done: Rate | None = None


@dataclass(frozen=True)
class TrainingResult:
    """Emulated accelerators of a phase with op train. `utilization` is the mean over those with several batches."""

    accelerators: int = 0
    batches: int = 0
    samples: int = 0
    first_batch_s: float = 0.0
    utilization: float | None = None
    lowest_utilization: float | None = None
    samples_per_s: float | None = None
    cached_bytes: int | None = None
    storage_bytes: int | None = None


@dataclass(frozen=True)
class DirectionRates:
    """Reads and writes of a mixed phase over its transfer interval; None if it has no such operation."""

    read: Rate | None = None
    write: Rate | None = None


@dataclass(frozen=True)
class LatencySummary:
    """Percentiles of one kind of operation, nanoseconds."""

    count: int = 0
    min_ns: float | None = None
    mean_ns: float | None = None
    p50_ns: float | None = None
    p90_ns: float | None = None
    p95_ns: float | None = None
    p99_ns: float | None = None
    p999_ns: float | None = None
    max_ns: float | None = None


@dataclass(frozen=True)
class CpuTime:
    """CPU seconds of the task threads during the transfer."""

    user_s: float | None = None
    system_s: float | None = None
    bytes_per_system_s: float | None = None
    bytes_per_user_s: float | None = None


@dataclass(frozen=True)
class SlowTask:
    """One of the slowest tasks."""

    task: int = 0
    node: int | None = None
    host: str = ""
    bytes_per_s: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class TaskImbalance:
    """How unequal the durations of the tasks are."""

    max_over_mean: float | None = None
    slowest: tuple[SlowTask, ...] = ()
    tail_share: float | None = None


@dataclass(frozen=True)
class RateDroop:
    """Rates of the first and the last tenth of the operations that created or removed items."""

    first_ops_per_s: float = 0.0
    last_ops_per_s: float = 0.0
    ratio: float = 0.0


@dataclass(frozen=True)
class WalkCounts:
    """Entries that a walk of a tree visited."""

    directories: int = 0
    examined: int = 0
    matched: int | None = None  # None: the walk had no search condition


@dataclass(frozen=True)
class VerificationCounts:
    """Result of the payload verification."""

    checked_bytes: int = 0
    mismatches: int = 0


@dataclass(frozen=True)
class RateSpread:
    """Distribution over the active tasks (or nodes) in each slice, per second; None where none is active."""

    min: tuple[float | None, ...] = ()
    p25: tuple[float | None, ...] = ()
    p50: tuple[float | None, ...] = ()
    p75: tuple[float | None, ...] = ()
    max: tuple[float | None, ...] = ()
