# SPDX-License-Identifier: Apache-2.0
"""The figures of a check: each a number, what it counts, and in plain words how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sonde.experiments.check.plans import QUEUE_DEPTH, Machine
from sonde.findings.best import NONE, OF_STORAGE, Kind, Number, best, best_words, kind_of
from sonde.findings.judgement import doubt_json, judgement_of
from sonde.findings.standing import Standing
from sonde.model.errors import sentence
from sonde.model.lines import Finding, Latency, Rate
from sonde.model.quantities import plain
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import Run, run_of

# All cores are faster than one task by more than this: the one task was the limit, not the storage.
_MORE = 1.3


@dataclass(frozen=True)
class Figure:
    """One line of the result of a check."""

    key: str
    section: str
    label: str
    unit: str  # bytes_per_s, ops_per_s or files_per_s
    standing: Standing
    words: str  # the clause on its standing
    value: float | None = None
    seconds: float | None = None
    bytes: int | None = None
    tasks: int = 1
    p50_ns: float | None = None
    p99_ns: float | None = None
    verdict: str = "good"  # good, doubtful, invalid
    doubts: tuple[Finding, ...] = ()  # what speaks against the number beyond its standing
    moved: str = (
        ""  # how the rate moved during the phase, and who was slow: sentences, empty when there is nothing to say
    )
    slow: str = ""
    run: str = ""
    phase: str = ""
    kind: Kind | None = None  # what it may be the best of

    def as_json(self) -> dict[str, Any]:
        """All that is known, absent members left out; the members of the judgement as everywhere."""
        document = asdict(self) | {"standing": self.standing.value, "sentence": sentence(self.words)}
        del document["words"], document["kind"]
        document["doubts"] = [doubt_json(one) for one in self.doubts]
        return {name: value for name, value in document.items() if value not in (None, "", [])}


@dataclass(frozen=True)
class Row:
    """Which phase of which part becomes which figure."""

    part: str
    phase: str
    key: str
    section: str
    label: str
    unit: str = "bytes_per_s"
    interval: str = "total"  # the rate that is shown
    latency: str = ""  # kind of operation whose latency belongs to it


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
        Row("small-files", "stat", "stat", _FILES, "stat", "files_per_s", latency="stat"),
        Row("small-files", "open-read-cached", "open-read-cached", label="open, read, close", **files),
        Row("small-files", "open-read", "open-read", label="the same, cache emptied", **files),
        Row("small-files", "remove", "remove", _FILES, "remove", "files_per_s", latency="remove"),
    ]


def _sequential_rows(suffix: str, crowd: str) -> list[Row]:
    part, section = f"sequential-{suffix}", f"Sequential, 1 MiB transfers, {crowd}"
    return [
        Row(part, "write", f"write-cached-{suffix}", section, "write, into page cache", interval="transfer"),
        Row(part, "write", f"write-storage-{suffix}", section, "write, until on storage"),
        Row(part, "write-direct", f"write-direct-{suffix}", section, "rewrite, direct"),
        Row(part, "read-cached", f"read-cached-{suffix}", section, "read, just written"),
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
    shown = []
    for row in rows(machine.cpus, queued, machine.memory_backed):
        if row.part not in records:
            continue
        name, record = records[row.part]
        phase = record.phases.get(row.phase)
        if phase is not None:
            shown.append(_figure(row, phase, run_of(record), name))
    return _compared(shown)


def _figure(row: Row, phase: PhaseRecord, run: Run, name: str) -> Figure:
    end, judgement = phase.end, judgement_of(run, phase, row.interval)
    figure = Figure(
        row.key,
        row.section,
        row.label,
        row.unit,
        judgement.standing,
        plain(judgement.because),
        run=name,
        phase=row.phase,
        verdict=judgement.verdict,
        doubts=judgement.doubts,
        moved=plain(judgement.moved),
        slow=plain(judgement.slow),
        # the same phase without its fsync is another number
        kind=kind_of(run, phase) if row.interval == "total" else None,
    )
    if end is None or not end.ops.done:
        return figure
    rate = getattr(end.rates, row.interval) or end.rates.total or end.rates.transfer or Rate()
    latency = end.latency.get(row.latency, Latency())
    return replace(
        figure,
        value=rate.bytes_per_s if row.unit == "bytes_per_s" else rate.ops_per_s,
        seconds=rate.seconds,
        bytes=end.bytes.moved,
        tasks=phase.begin.tasks or run.tasks,
        p50_ns=latency.p50_ns,
        p99_ns=latency.p99_ns,
    )


def _compared(shown: list[Figure]) -> list[Figure]:
    """Says of the figures of one task where the task itself was the limit."""
    by_key = {figure.key: figure for figure in shown}
    result = []
    for figure in shown:
        many = by_key.get(figure.key.removesuffix("-1") + "-all") if figure.key.endswith("-1") else None
        if many and figure.standing in OF_STORAGE and figure.value and (many.value or 0) > _MORE * figure.value:
            figure = replace(figure, words=f"{figure.words}; limited by one task")
        result.append(figure)
    return result


def best_of(shown: Sequence[Figure]) -> list[Number]:
    """The numbers that the headline quotes, by the rule of `findings.best`."""
    return best(Number(one.kind, one.value, one.standing, one.doubts, one.key) for one in shown)


def headline(shown: Sequence[Figure], machine: Machine) -> str:
    """The check in one sentence. What speaks against a number that it quotes stands before the number."""
    if machine.memory_backed:
        return f"Files here live in memory ({machine.file_system}). {NONE}"
    return best_words(best_of(shown))
