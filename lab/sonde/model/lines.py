# SPDX-License-Identifier: Apache-2.0
"""The record lines as types. ``schema/record/README.md`` defines each member.

An absent member is None wherever zero would have another meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sonde.model.line_members import (
    ByteCounts,
    CpuTime,
    DirectionRates,
    FileSystemFacts,
    IntervalSeconds,
    LatencySummary,
    OperationCounts,
    PhaseRates,
    RateDroop,
    RateSpread,
    TaskImbalance,
    TrainingResult,
    TreeShape,
    VerificationCounts,
    WalkCounts,
)


@dataclass(frozen=True)
class RecordLine:
    """The member of every line: seconds since the start of the run."""

    t: float = 0.0


@dataclass(frozen=True)
class RunLine(RecordLine):
    """The first line: the run as it was started."""

    schema: str = ""
    id: str = ""
    engine: Any = None  # version, as text or as an object with build details
    started: str = ""  # UTC, ISO 8601
    command: Any = None
    launch: str = ""
    tasks: int | None = None
    processes: int | None = None
    threads: int | None = None
    nodes: int | None = None
    clock: Any = None
    plan: dict[str, Any] = field(default_factory=dict)
    directory: str = ""  # where the run stores its files
    store: dict[str, Any] = field(default_factory=dict)  # of a bucket: kind, bucket, endpoints, client, server
    simulated: dict[str, Any] = field(default_factory=dict)  # for simulated runs: system, mount, seed, faults


@dataclass(frozen=True)
class NodeLine(RecordLine):
    """One node of the run."""

    node: int = 0
    host: str = ""
    kernel: str = ""
    cpus: int | None = None
    cpu_model: str = ""
    memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    page_bytes: int | None = None
    file_system: FileSystemFacts = field(default_factory=FileSystemFacts)
    clock_offset_ns: int | None = None
    clock_error_ns: int | None = None
    load_1m: float | None = None
    lustre: dict[str, Any] = field(default_factory=dict)  # client versions and settings


@dataclass(frozen=True)
class TreatmentLine(RecordLine):
    """A treatment before a phase, with its outcome."""

    phase: str = ""
    kind: str = ""
    need: str = ""
    outcome: str = ""
    seconds: float | None = None
    text: str = ""
    metadata_cache_dropped: bool | None = None  # whether the dentry and inode caches were dropped too
    residency_before: float | None = None
    residency_after: float | None = None
    locks_before: int | None = None
    locks_after: int | None = None
    user_s: float | None = None  # command: CPU time, including children that it waited for
    system_s: float | None = None


@dataclass(frozen=True)
class PhaseBeginLine(RecordLine):
    """A phase starts."""

    phase: str = ""
    index: int = 0
    op: str = ""
    backend: str = ""
    direct: bool | None = None
    measured: bool = True
    cache: str = "unknown"  # cold, warm, direct, unknown
    planned_bytes: int | None = None
    planned_ops: int | None = None
    files: int | None = None
    tasks: int | None = None
    transfer_bytes: int | None = None
    order: str = ""
    queue_depth: int | None = None
    labels: tuple[str, ...] = ()
    tree: TreeShape | None = None


@dataclass(frozen=True)
class ProgressLine(RecordLine):
    """Progress of a phase; rates are since the previous progress line."""

    phase: str = ""
    phase_s: float = 0.0
    bytes: int = 0
    ops: int = 0
    bytes_per_s: float = 0.0
    ops_per_s: float = 0.0
    percent: float | None = None
    nodes_seen: int | None = None
    active: int | None = None  # tasks that transfer data at this moment


@dataclass(frozen=True)
class PhaseEndLine(RecordLine):
    """The result of a phase."""

    phase: str = ""
    stopped_by: str = ""
    bytes: ByteCounts = field(default_factory=ByteCounts)
    ops: OperationCounts = field(default_factory=OperationCounts)
    seconds: IntervalSeconds = field(default_factory=IntervalSeconds)
    task_seconds: IntervalSeconds = field(default_factory=IntervalSeconds)
    rates: PhaseRates = field(default_factory=PhaseRates)
    wearout_ratio: float | None = None
    latency: dict[str, LatencySummary] = field(default_factory=dict)
    cpu: CpuTime = field(default_factory=CpuTime)
    imbalance: TaskImbalance = field(default_factory=TaskImbalance)
    verify: VerificationCounts | None = None
    residency: float | None = None
    directions: DirectionRates | None = None  # mixed phases only
    streams: Any = None
    training: TrainingResult | None = None  # op train only
    entries: int | None = None
    walk: WalkCounts | None = None
    droop: RateDroop | None = None


@dataclass(frozen=True)
class SeriesLine(RecordLine):
    """A phase in slices of `slice_s` seconds: all tasks, one node, the distribution over many nodes, or one target.

    With up to 256 nodes, each node has a series; with more, only the `extreme` ones. The series of a target covers one
    `kind` of operation; `single_ops` counts operations whose bytes all are on this target.
    """

    phase: str = ""
    scope: str = "all"  # all, node, nodes or target
    node: int | None = None
    extreme: str | None = None  # slowest or fastest
    nodes: int | None = None
    slice_s: float = 0.0
    bytes: tuple[int, ...] = ()
    ops: tuple[int, ...] = ()
    active: tuple[int, ...] = ()
    task_rate: RateSpread = field(default_factory=RateSpread)
    node_rate: RateSpread = field(default_factory=RateSpread)  # bytes per second
    node_ops_rate: RateSpread = field(default_factory=RateSpread)  # operations per second
    target: str | None = None
    kind: str = ""  # read or write
    single_ops: tuple[int, ...] = ()
    single_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class HistogramLine(RecordLine):
    """Latencies of one kind; buckets are (low_ns, high_ns, count)."""

    phase: str = ""
    kind: str = ""
    count: int = 0
    min_ns: float | None = None
    max_ns: float | None = None
    sum_ns: float | None = None
    overflow: int = 0
    buckets: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class TableLine(RecordLine):
    """Rows under named columns: per-node or per-task totals."""

    phase: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    first_task: int = 0


@dataclass(frozen=True)
class TargetsLine(RecordLine):
    """I/O of each storage target: one row for each target and kind of operation."""

    phase: str = ""
    files: int = 0
    known_files: int = 0
    bytes: int = 0
    known_bytes: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class LayoutLine(RecordLine):
    """The storage targets that hold the files of a phase: one row for each inspected file and for each target."""

    phase: str = ""
    kind: str = ""  # file system, by one of the names in `schema/record/record.schema.json`
    files: int = 0
    reported: int = 0
    requested: dict[str, Any] = field(default_factory=dict)  # the layout that the plan requests
    shapes: tuple[Any, ...] = ()  # each a list of components
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    target_columns: tuple[str, ...] = ()
    targets: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class Finding(RecordLine):
    """Something that the engine noticed: claim, evidence, severity, advice."""

    id: str = ""
    phase: str | None = None
    severity: str = "info"
    text: str = ""
    advice: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ErrorLine(RecordLine):
    """An operation that failed."""

    phase: str | None = None
    task: int | None = None
    node: int | None = None
    host: str = ""
    path: str = ""
    offset: int | None = None
    operation: str = ""
    errno: int | None = None
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class EndLine(RecordLine):
    """The last line."""

    status: str = ""
    exit_code: int = 0
    seconds: float | None = None
    text: str = ""
    files_removed: int | None = None
    files_left: Any = None  # names of the first few, or their count


@dataclass(frozen=True)
class UnknownLine(RecordLine):
    """A line of an unknown type."""

    type: str = ""
