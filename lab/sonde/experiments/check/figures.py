# SPDX-License-Identifier: Apache-2.0
"""The figures of a check: each a number, what it counts, and in plain words how far it can be trusted."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sonde.experiments.check.plans import QUEUE_DEPTH, Machine
from sonde.model.limits import COLD, SHORTEST_FILES_S, SHORTEST_S, SUSTAINED_S
from sonde.model.lines import Latency, PhaseEnd, Rate, SeriesLine
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.units import counted, format_ops, format_rate, format_seconds
from sonde.stats.bins import rebin, trim
from sonde.stats.levels import Level, levels

_BINS = 60
# All cores are faster than one task by more than this: the one task was the limit, not the storage.
_MORE = 1.3

# How far a figure can be trusted, best first.
STORAGE, BURST, SHORT, CACHE, MEMORY, FAILED = "storage", "burst", "short", "cache", "memory", "failed"


@dataclass(frozen=True)
class Figure:
    """One line of the result of a check."""

    key: str
    section: str
    label: str
    unit: str  # bytes_per_s, ops_per_s or files_per_s
    trust: str
    verdict: str
    value: float | None = None
    seconds: float | None = None
    bytes: int | None = None
    tasks: int = 1
    p50_ns: float | None = None
    p99_ns: float | None = None
    moved: str = ""  # how the rate moved, empty when it did not
    run: str = ""
    phase: str = ""

    def as_json(self) -> dict[str, Any]:
        """All that is known, absent members left out."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != ""}


@dataclass(frozen=True)
class Row:
    """Which phase of which part becomes which figure."""

    part: str
    phase: str
    key: str
    section: str
    label: str
    unit: str = "bytes_per_s"
    cached: bool = False  # meant to be served by the page cache
    interval: str = "total"  # the rate that is shown
    latency: str = ""  # kind of operation whose latency belongs to it
    names: bool = False  # an operation on a name, not on data


_RANDOM, _FILES = "Random, 4 KiB transfers", "Small files, 4 KiB each"


def rows(cpus: int, queued: bool, memory_backed: bool = False) -> list[Row]:
    """All figures there may be, in the order they are shown; a phase that was not run has none."""
    sequential = _memory_rows if memory_backed else _sequential_rows
    found = sequential("1", "1 task") + sequential("all", f"{cpus} tasks")
    for op in ("read", "write"):
        for depth in (1, QUEUE_DEPTH):
            crowd = f"{depth} in flight" if queued or depth == 1 else f"{depth} tasks"
            key = f"{op}-{depth}"
            found.append(Row("random", key, f"random-{key}", _RANDOM, f"{op}, {crowd}", "ops_per_s", latency=op))
    files: dict[str, Any] = {"section": _FILES, "unit": "files_per_s", "latency": "open"}
    return [
        *found,
        Row("small-files", "create", "create", label="create, write, close", **files),
        Row("small-files-durable", "create", "create-durable", label="the same with fsync", **files),
        Row("small-files", "stat", "stat", _FILES, "stat", "files_per_s", latency="stat", names=True),
        Row("small-files", "open-read-cached", "open-read-cached", label="open, read, close", cached=True, **files),
        Row("small-files", "open-read", "open-read", label="the same, cache emptied", **files),
        Row("small-files", "remove", "remove", _FILES, "remove", "files_per_s", latency="remove", names=True),
    ]


def _sequential_rows(suffix: str, crowd: str) -> list[Row]:
    part, section = f"sequential-{suffix}", f"Sequential, 1 MiB transfers, {crowd}"
    return [
        Row(
            part, "write", f"write-cached-{suffix}", section, "write, into page cache", cached=True, interval="transfer"
        ),
        Row(part, "write", f"write-storage-{suffix}", section, "write, until on storage"),
        Row(part, "write-direct", f"write-direct-{suffix}", section, "rewrite, direct"),
        Row(part, "read-cached", f"read-cached-{suffix}", section, "read, just written", cached=True),
        Row(part, "read-storage", f"read-storage-{suffix}", section, "read, cache emptied"),
        Row(part, "read-direct", f"read-direct-{suffix}", section, "read, direct"),
    ]


def _memory_rows(suffix: str, crowd: str) -> list[Row]:
    """Where files live in memory there is nothing to tell apart."""
    part, section = f"sequential-{suffix}", f"Sequential, 1 MiB transfers, {crowd}"
    return [
        Row(part, "write", f"write-{suffix}", section, "write"),
        Row(part, "read-cached", f"read-{suffix}", section, "read"),
    ]


def figures(records: Mapping[str, tuple[str, RecordReader]], machine: Machine, queued: bool) -> list[Figure]:
    """The figures of all parts that were run: `records` maps the key of a part to the id and record of its run."""
    found = []
    for row in rows(machine.cpus, queued, machine.memory_backed):
        if row.part not in records:
            continue
        run, record = records[row.part]
        phase = record.phases.get(row.phase)
        if phase is not None:
            found.append(_figure(row, phase, machine, run))
    return _compared(found)


def _figure(row: Row, phase: PhaseRecord, machine: Machine, run: str) -> Figure:
    end = phase.end
    empty = Figure(row.key, row.section, row.label, row.unit, FAILED, "", run=run, phase=row.phase)
    if end is None or not end.ops.done:
        said = phase.errors[0].text if phase.errors else "the phase did not finish"
        return replace(empty, verdict=said)
    rate = getattr(end.rates, row.interval) or end.rates.total or end.rates.transfer or Rate()
    latency = end.latency.get(row.latency, Latency())
    trust, verdict = judge(row, phase, end, rate.seconds, machine)
    return replace(
        empty,
        trust=trust,
        verdict=verdict,
        value=rate.bytes_per_s if row.unit == "bytes_per_s" else rate.ops_per_s,
        seconds=rate.seconds,
        bytes=end.bytes.moved,
        p50_ns=latency.p50_ns,
        p99_ns=latency.p99_ns,
        moved=movement(phase.whole_series) if trust in (STORAGE, BURST, MEMORY) and row.unit == "bytes_per_s" else "",
    )


def judge(row: Row, phase: PhaseRecord, end: PhaseEnd, seconds: float, machine: Machine) -> tuple[str, str]:
    """How far the figure can be trusted, and that in plain words."""
    writes = bool(end.bytes.written)
    if end.stopped_by in ("error", "interrupt"):
        return (
            FAILED,
            f"{'ended by an error' if end.stopped_by == 'error' else 'interrupted'} after {format_seconds(seconds)}",
        )
    if machine.memory_backed:
        return MEMORY, f"{machine.file_system} keeps files in memory: not a storage number"
    if row.names and not machine.network:
        where = "may still be in memory" if phase.begin.op == "remove" else "names in the memory of this node"
        return CACHE, f"{where}: not a storage number"
    if row.cached:
        return CACHE, f"{'into' if writes else 'from'} page cache: not a storage number"
    if end.ops.failed:
        return FAILED, f"{counted(end.ops.failed, 'operation')} failed"
    if not phase.begin.direct and not row.names:
        said = _through_cache(row, phase, end, writes)
        if said:
            return CACHE, said
    place = "from the servers" if row.names else "to storage" if writes else "from storage"
    if seconds < (SHORTEST_FILES_S if row.section == _FILES else SHORTEST_S):
        return SHORT, f"{place}, but over in {format_seconds(seconds)}: too short to trust"
    if seconds < SUSTAINED_S:
        return BURST, f"{place}, a burst of {format_seconds(seconds)}"
    return STORAGE, f"{place}, sustained for {format_seconds(seconds)}"


def _through_cache(row: Row, phase: PhaseRecord, end: PhaseEnd, writes: bool) -> str:
    """Why a buffered figure is one of the page cache, or nothing when it is not."""
    if writes:
        durable = end.latency.get("fsync", Latency()).count > 0
        return "" if durable else "may still be in memory: not a storage number"
    if end.bytes.planned and end.bytes.moved > 1.05 * end.bytes.planned:
        return "read more than once, so partly from page cache: not a storage number"
    resident = phase.resident
    if resident is None:
        return "may be from page cache: how much was there is not known"
    if resident > COLD:
        return f"{resident:.0%} of it was in the page cache: not a storage number"
    return ""


def movement(series: SeriesLine | None) -> str:
    """One phrase about how the rate moved while all tasks were at work; empty when it did not, or nobody can say."""
    if series is None or not series.slice_s:
        return ""
    first, end = trim(series.bytes, series.active)
    inside = series.bytes[first:end]
    bins = rebin(inside, _BINS)
    if not bins:
        return ""
    width = len(inside) * series.slice_s / len(bins)
    found = levels([moved / width for moved in bins])
    return _movement_words(found, width, first * series.slice_s)


def _movement_words(found: list[Level], width: float, start: float) -> str:
    if len(found) < 2:
        return ""
    if len(found) > 3:
        low, high = min(one.median for one in found), max(one.median for one in found)
        return f"moved between {format_rate(low)} and {format_rate(high)}, {len(found) - 1} times"
    words: list[str] = []
    for before, after in itertools.pairwise(found):
        verb = "fell" if after.median < before.median else "rose"
        origin = f" from {format_rate(before.median)}" if not words else ""
        words.append(
            f"{verb}{origin} to {format_rate(after.median)} after {format_seconds(start + after.first * width)}"
        )
    return ", then ".join(words)


def _compared(found: list[Figure]) -> list[Figure]:
    """Says of the figures of one task where the task itself was the limit."""
    by_key = {figure.key: figure for figure in found}
    result = []
    for figure in found:
        many = by_key.get(figure.key.removesuffix("-1") + "-all") if figure.key.endswith("-1") else None
        if many and figure.trust in (STORAGE, BURST) and figure.value and (many.value or 0) > _MORE * figure.value:
            figure = replace(figure, verdict=f"{figure.verdict}; limited by one task")
        result.append(figure)
    return result


def headline(found: Sequence[Figure], machine: Machine) -> str:
    """The check in one sentence."""
    if machine.memory_backed:
        return f"Files here live in memory ({machine.file_system}): these are numbers of memory, not of storage."
    trusted = [figure for figure in found if figure.trust in (STORAGE, BURST) and figure.value]

    def best(beginning: str) -> Figure | None:
        fitting = [one for one in trusted if one.key.startswith(beginning)]
        return max(fitting, key=lambda one: one.value or 0, default=None)

    # New data first: writing over blocks that are there already can be much faster.
    write, read, iops = best("write-storage") or best("write-direct"), best("read-"), best("random-read")
    verb = "writes" if write and write.key.startswith("write-storage") else "rewrites"
    words = [f"{verb} {format_rate(write.value or 0)}"] if write else []
    words += [f"reads {format_rate(read.value or 0)}"] if read else []
    words += [f"{format_ops(iops.value or 0).replace(' op/s', '')} random 4 KiB reads a second"] if iops else []
    if not words:
        return "No number of this check is one of storage; the lines below say why."
    sustained = all(one.trust == STORAGE for one in (write, read, iops) if one)
    return f"Best from storage, {'sustained' if sustained else 'in bursts of seconds'}: {', '.join(words)}."
