# SPDX-License-Identifier: Apache-2.0
"""The lines of a record as types. ``schema/record/README.md`` says what each member means.

A member that is absent from a line is None here wherever zero would be a different statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Line:
    """What every line has: seconds since the run began."""

    t: float = 0.0


@dataclass(frozen=True)
class RunLine(Line):
    """The first line: what was started."""

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
    overlay: int = 1  # rule by which the engine laid phases over the plan (sonde.model.sameness.OVERLAY)
    directory: str = ""  # where the run keeps its files
    simulated: dict[str, Any] = field(default_factory=dict)  # a model of a machine did it: system, mount, seed, faults


@dataclass(frozen=True)
class FileSystem:
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


@dataclass(frozen=True)
class NodeLine(Line):
    """One machine that took part."""

    node: int = 0
    host: str = ""
    kernel: str = ""
    cpus: int | None = None
    cpu_model: str = ""
    memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    page_bytes: int | None = None
    file_system: FileSystem = field(default_factory=FileSystem)
    clock_offset_ns: int | None = None
    clock_error_ns: int | None = None
    load_1m: float | None = None
    lustre: dict[str, Any] = field(default_factory=dict)  # versions and settings of its client


@dataclass(frozen=True)
class TreatmentLine(Line):
    """What was done before a phase, and whether it had the effect."""

    phase: str = ""
    kind: str = ""
    need: str = ""
    outcome: str = ""
    seconds: float | None = None
    text: str = ""
    forgot_names: bool | None = None  # the node's memory of names was emptied too; None in records of older engines
    resident_before: float | None = None
    resident_after: float | None = None
    locks_before: int | None = None
    locks_after: int | None = None
    user_s: float | None = None  # command: processor time of it and of the children that it waited for
    system_s: float | None = None


@dataclass(frozen=True)
class TreeShape:
    """What an operation on names works on."""

    objects: str = "files"  # files or directories
    scope: str = ""
    directories: int = 0
    items_per_dir: int = 0


@dataclass(frozen=True)
class PhaseBegin(Line):
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
class Progress(Line):
    """Where the phase stands; rates are since the last such line."""

    phase: str = ""
    phase_s: float = 0.0
    bytes: int = 0
    ops: int = 0
    bytes_per_s: float = 0.0
    ops_per_s: float = 0.0
    percent: float | None = None
    nodes_seen: int | None = None
    active: int | None = None  # tasks that move data now


@dataclass(frozen=True)
class Moved:
    """Bytes of a phase."""

    planned: int | None = None
    moved: int = 0
    read: int = 0
    written: int = 0


@dataclass(frozen=True)
class Operations:
    """Operations of a phase."""

    planned: int | None = None
    done: int = 0
    read: int = 0
    written: int = 0
    short: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Intervals:
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
class Rates:
    """The rates of a phase; absent ones do not apply. Definitions: docs/concepts/rates."""

    total: Rate | None = None
    transfer: Rate | None = None
    stonewall: Rate | None = None
    steady: Rate | None = None
    task_sum: Rate | None = None
    first_done: Rate | None = None


@dataclass(frozen=True)
class Latency:
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
class Cpu:
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
class Imbalance:
    """How unequal the tasks were."""

    max_over_mean: float | None = None
    slowest: tuple[SlowTask, ...] = ()
    tail_share: float | None = None


@dataclass(frozen=True)
class Droop:
    """Rates of the first and the last tenth of the operations that made or removed items."""

    first_ops_per_s: float = 0.0
    last_ops_per_s: float = 0.0
    ratio: float = 0.0


@dataclass(frozen=True)
class Walked:
    """What the names were that a walk found."""

    directories: int = 0
    looked_at: int = 0
    matched: int | None = None  # None: nothing was searched for


@dataclass(frozen=True)
class Verified:
    """What was compared with what should be there."""

    checked_bytes: int = 0
    mismatches: int = 0


@dataclass(frozen=True)
class PhaseEnd(Line):
    """The result of a phase."""

    phase: str = ""
    stopped_by: str = ""
    bytes: Moved = field(default_factory=Moved)
    ops: Operations = field(default_factory=Operations)
    seconds: Intervals = field(default_factory=Intervals)
    task_seconds: Intervals = field(default_factory=Intervals)
    rates: Rates = field(default_factory=Rates)
    wearout_ratio: float | None = None
    latency: dict[str, Latency] = field(default_factory=dict)
    cpu: Cpu = field(default_factory=Cpu)
    imbalance: Imbalance = field(default_factory=Imbalance)
    verify: Verified | None = None
    resident: float | None = None
    lanes: Any = None
    entries: int | None = None
    walk: Walked | None = None
    droop: Droop | None = None


@dataclass(frozen=True)
class TaskRate:
    """Spread over the active tasks (or nodes) in each slice, per second; None where none is active."""

    min: tuple[float | None, ...] = ()
    p25: tuple[float | None, ...] = ()
    p50: tuple[float | None, ...] = ()
    p75: tuple[float | None, ...] = ()
    max: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class SeriesLine(Line):
    """A phase in slices of `slice_s` seconds: of all tasks, of a node, spread over many nodes, or of one target.

    Up to 256 nodes each has a series; of more only the `extreme` ones do. That of a target is of one `kind` of
    operations; the single ones have all their bytes on it.
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
    task_rate: TaskRate = field(default_factory=TaskRate)
    node_rate: TaskRate = field(default_factory=TaskRate)  # bytes per second
    node_ops_rate: TaskRate = field(default_factory=TaskRate)  # operations per second
    target: str | None = None
    kind: str = ""  # read or write
    single_ops: tuple[int, ...] = ()
    single_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class HistogramLine(Line):
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
class TableLine(Line):
    """Rows under named columns: per-node or per-task totals."""

    phase: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    first_task: int = 0


@dataclass(frozen=True)
class TargetsLine(Line):
    """What each storage target served, a row for each target and kind of operation; files as streams opened them."""

    phase: str = ""
    files: int = 0
    known_files: int = 0
    bytes: int = 0
    known_bytes: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class LayoutLine(Line):
    """On which storage targets the files of a phase lie: a row for each file looked at, and for each target."""

    phase: str = ""
    kind: str = ""  # lustre, gluster, ceph, beegfs, gpfs, moosefs
    files: int = 0
    told: int = 0
    asked: dict[str, Any] = field(default_factory=dict)  # stripes that the plan asks for
    shapes: tuple[Any, ...] = ()  # each a list of components
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    target_columns: tuple[str, ...] = ()
    targets: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class Finding(Line):
    """A claim with its evidence."""

    id: str = ""
    phase: str | None = None
    severity: str = "info"
    text: str = ""
    advice: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ErrorLine(Line):
    """An operation that failed."""

    phase: str | None = None
    task: int | None = None
    node: int | None = None
    host: str = ""
    path: str = ""
    offset: int | None = None
    what: str = ""
    errno: int | None = None
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class End(Line):
    """The last line."""

    status: str = ""
    exit_code: int = 0
    seconds: float | None = None
    text: str = ""
    files_removed: int | None = None
    files_left: Any = None  # names of the first few, or how many


@dataclass(frozen=True)
class Other(Line):
    """A line of a type that this version does not know."""

    type: str = ""
