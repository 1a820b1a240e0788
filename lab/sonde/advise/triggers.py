# SPDX-License-Identifier: Apache-2.0
"""Patterns in the I/O of a job that are worth a sentence, each found by one small function.

The codes and the thresholds are those of Drishti 0.8 (Bez et al., "Drishti: Guiding End-Users in the I/O Optimization
Journey", PDSW 2022), so that results can be compared. Two triggers differ on purpose: `redundant_reads` and
`redundant_writes` compare the bytes with the extent of each file, where Drishti compares the highest offset of any file
with the bytes of all files, the wrong way around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sonde.advise.job_io import DirectionIo, FileIo, JobIo
from sonde.model.units import format_bytes, format_count_with_noun

# Smallest shares of calls, bytes or time, and counts; names begin as in Drishti's configuration.
IMBALANCE_OPERATIONS_SHARE = 0.1
SMALL_REQUESTS_SHARE, SMALL_REQUESTS_COUNT = 0.1, 1000
MISALIGNED_REQUESTS_SHARE = 0.1
RANDOM_OPERATIONS_SHARE, RANDOM_OPERATIONS_COUNT = 0.2, 1000
IMBALANCE_STRAGGLERS_SHARE = 0.15
IMBALANCE_SIZE_SHARE = 0.3
INTERFACE_STDIO_SHARE = 0.1
COLLECTIVE_OPERATIONS_COUNT = 1000
# Ours: bytes beyond the extent of the files, as a share of all bytes.
REDUNDANT_BYTES_SHARE = 0.1


class CostKind(Enum):
    """The kind of cost of a pattern, which selects how the cost is computed."""

    READS = "reads"  # the affected reads could be large and sequential
    WRITES = "writes"
    ALIGNMENT = "alignment"  # an unknown part of the affected calls
    REDUNDANT_READS = "redundant reads"
    REDUNDANT_WRITES = "redundant writes"
    METADATA = "metadata"
    BALANCE = "balance"  # ranks wait for the slowest one
    OVERLAP = "overlap"  # I/O could run while the program computes
    NONE = "none"  # a fact


@dataclass(frozen=True)
class IoPattern:
    """A trigger that fired. `files` are the affected ones, the most expensive first; `redundant` counts bytes."""

    key: str
    code: str
    effect: CostKind
    text: str
    files: Sequence[FileIo] = field(default_factory=tuple)
    redundant: int = 0


@dataclass(frozen=True)
class Trigger:
    """A rule that looks for one pattern. `find` returns the pattern or None."""

    key: str
    code: str  # Drishti's
    effect: CostKind
    find: Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]


def find_patterns(job: JobIo) -> list[IoPattern]:
    """Returns the patterns of a job in the order of TRIGGERS."""
    patterns = []
    for trigger in TRIGGERS:
        result = trigger.find(job)
        if result is not None:
            text, files = result
            redundant = 0
            if trigger.effect in (CostKind.REDUNDANT_READS, CostKind.REDUNDANT_WRITES):
                redundant = sum(_count_redundant_bytes(_get_direction_io(file, trigger.effect)) for file in files)
            ordered = sorted(files, key=lambda file: -file.call_seconds)
            patterns.append(IoPattern(trigger.key, trigger.code, trigger.effect, text, ordered, redundant))
    return patterns


def _get_direction_io(job_or_file: JobIo | FileIo, cost_kind: CostKind) -> DirectionIo:
    return job_or_file.read if cost_kind in (CostKind.READS, CostKind.REDUNDANT_READS) else job_or_file.write


def _choose_verb_of_direction(cost_kind: CostKind) -> str:
    return "read" if cost_kind in (CostKind.READS, CostKind.REDUNDANT_READS) else "write"


def _format_percent(numerator: float, denominator: float) -> str:
    return f"{100 * numerator / denominator:.0f} %" if denominator else "0 %"


def _find_stdio_use(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
    streams = sum(file.transferred_bytes for file in job.streams)
    mpi = job.mpi.read_bytes + job.mpi.written_bytes
    posix = job.read.bytes + job.write.bytes
    posix -= mpi if posix >= mpi else 0  # POSIX also sees what MPI-IO does
    total = streams + posix + mpi
    if not total or streams / total <= INTERFACE_STDIO_SHARE:
        return None
    return (
        f"{_format_percent(streams, total)} of the bytes ({format_bytes(streams)}) pass through streams"
        " of the C library.",
        job.streams,
    )


def _find_missing_mpi_io(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
    if "MPI-IO" in job.modules or not job.format.startswith("Darshan"):
        return None
    return "The job does not use MPI-IO.", ()


def _make_call_majority_trigger(is_write: bool) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        more, less = (job.write, job.read) if is_write else (job.read, job.write)
        total = job.read.calls + job.write.calls
        if not total or (more.calls - less.calls) / total <= IMBALANCE_OPERATIONS_SHARE:
            return None
        return f"{_format_percent(more.calls, total)} of the data calls are {'writes' if is_write else 'reads'}.", ()

    return find_affected_files


def _make_byte_majority_trigger(is_write: bool) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        more, less = (job.write, job.read) if is_write else (job.read, job.write)
        total = job.read.bytes + job.write.bytes
        if not total or (more.bytes - less.bytes) / total <= IMBALANCE_OPERATIONS_SHARE:
            return None
        return f"{_format_percent(more.bytes, total)} of the bytes are {'written' if is_write else 'read'}.", ()

    return find_affected_files


def _make_small_calls_trigger(
    cost_kind: CostKind, only_shared_files: bool
) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        files = [file for file in job.files if file.is_shared or not only_shared_files]
        moves = (
            [_get_direction_io(file, cost_kind) for file in files]
            if only_shared_files
            else [_get_direction_io(job, cost_kind)]
        )
        calls, small = sum(move.calls for move in moves), sum(move.small_calls for move in moves)
        if not calls or small / calls <= SMALL_REQUESTS_SHARE or small <= SMALL_REQUESTS_COUNT:
            return None
        affected = [
            file for file in files if _get_direction_io(file, cost_kind).small_calls > calls * SMALL_REQUESTS_SHARE / 2
        ]
        scope = " of shared files" if only_shared_files else ""
        return (
            f"{small:,} {_choose_verb_of_direction(cost_kind)} calls{scope} transfer less than 1 MiB: "
            f"{_format_percent(small, calls)} of {calls:,}.",
            affected or [file for file in files if _get_direction_io(file, cost_kind).small_calls],
        )

    return find_affected_files


def _find_unaligned_memory_buffers(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
    calls = job.read.calls + job.write.calls
    if not calls or job.memory_unaligned / calls <= MISALIGNED_REQUESTS_SHARE:
        return None
    return (
        f"{_format_percent(job.memory_unaligned, calls)} of the calls use buffers that are not aligned in memory.",
        (),
    )


def _find_unaligned_file_accesses(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
    calls = job.read.calls + job.write.calls
    if not calls or job.unaligned / calls <= MISALIGNED_REQUESTS_SHARE:
        return None
    text = f"{_format_percent(job.unaligned, calls)} of the calls do not begin at a block of the file system."
    return text, [file for file in job.files if file.unaligned]


def _count_redundant_bytes(direction_io: DirectionIo) -> int:
    return max(0, direction_io.bytes - (direction_io.end_offset + 1)) if direction_io.end_offset else 0


def _make_redundant_bytes_trigger(cost_kind: CostKind) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        # Of folded files the extent is not known.
        files = job.files[:-1] if job.folded_files else job.files
        redundant = sum(_count_redundant_bytes(_get_direction_io(file, cost_kind)) for file in files)
        if redundant <= REDUNDANT_BYTES_SHARE * _get_direction_io(job, cost_kind).bytes:
            return None
        past = "read" if cost_kind is CostKind.REDUNDANT_READS else "written"
        affected = [file for file in files if _count_redundant_bytes(_get_direction_io(file, cost_kind))]
        return f"{format_bytes(redundant)} are {past} more than once.", affected

    return find_affected_files


def _has_random_accesses(direction_io: DirectionIo) -> bool:
    return (
        direction_io.calls > 0
        and direction_io.random_calls / direction_io.calls > RANDOM_OPERATIONS_SHARE
        and direction_io.random_calls > RANDOM_OPERATIONS_COUNT
    )


def _make_random_access_trigger(cost_kind: CostKind) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        move = _get_direction_io(job, cost_kind)
        if not _has_random_accesses(move):
            return None
        share = _format_percent(move.random_calls, move.calls)
        text = f"{move.random_calls:,} {_choose_verb_of_direction(cost_kind)} calls are random: {share}."
        return text, [file for file in job.files if _get_direction_io(file, cost_kind).random_calls > 1]

    return find_affected_files


def _make_ordered_access_trigger(cost_kind: CostKind) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        move = _get_direction_io(job, cost_kind)
        if not move.calls or _has_random_accesses(move):
            return None
        consecutive = _format_percent(move.consecutive, move.calls)
        onward = _format_percent(move.sequential - move.consecutive, move.calls)
        return (
            f"The {_choose_verb_of_direction(cost_kind)} calls are mostly in order: {consecutive} consecutive, "
            f"{onward} sequential.",
            (),
        )

    return find_affected_files


def _find_long_metadata_time(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
    if not job.long_metadata_records:
        return None
    text = (
        f"Metadata calls take more than 30 s in {format_count_with_noun(job.long_metadata_records, 'record')} of a "
        "rank and file."
    )
    return text, [file for file in job.files if file.meta_s]


def _make_shared_imbalance_trigger(compares_time: bool) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        files = [
            file
            for file in job.files
            if file.is_shared and _compute_rank_difference_share(file, compares_time) > IMBALANCE_STRAGGLERS_SHARE
        ]
        if not files:
            return None
        difference = "take different time" if compares_time else "transfer different amounts"
        return f"Ranks {difference} in {format_count_with_noun(len(files), 'shared file')}.", files

    return find_affected_files


def _compute_rank_difference_share(file: FileIo, compares_time: bool) -> float:
    """Difference between the extreme ranks as a share of the total of the file."""
    total = file.call_seconds if compares_time else file.transferred_bytes
    difference = file.slowest_s - file.fastest_s if compares_time else file.slowest_bytes - file.fastest_bytes
    return abs(difference) / total if total > 0 else 0.0


def _make_rank_imbalance_trigger(is_write: bool) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        pairs = [(file, file.write_ranks if is_write else file.read_ranks) for file in job.files]
        files = [
            file for file, span in pairs if span.most and (span.most - span.least) / span.most > IMBALANCE_SIZE_SHARE
        ]
        if not files:
            return None
        return (
            f"Ranks {'write' if is_write else 'read'} different amounts of "
            f"{format_count_with_noun(len(files), 'file')}.",
            files,
        )

    return find_affected_files


def _count_independent_and_collective_calls(job: JobIo, cost_kind: CostKind) -> tuple[int, int]:
    """Independent and collective calls of one direction through MPI-IO."""
    if cost_kind is CostKind.READS:
        return job.mpi.independent_reads, job.mpi.collective_reads
    return job.mpi.independent_writes, job.mpi.collective_writes


def _make_independent_calls_trigger(cost_kind: CostKind) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        independent, collective = _count_independent_and_collective_calls(job, cost_kind)
        if collective or independent <= COLLECTIVE_OPERATIONS_COUNT:
            return None
        files = [file for file in job.files if file.is_mpi_io and _get_direction_io(file, cost_kind).calls]
        return (
            f"All {independent:,} {_choose_verb_of_direction(cost_kind)} calls through MPI-IO are independent.",
            files,
        )

    return find_affected_files


def _make_collective_calls_trigger(cost_kind: CostKind) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        independent, collective = _count_independent_and_collective_calls(job, cost_kind)
        if not collective:
            return None
        share = _format_percent(collective, collective + independent)
        return f"{share} of the {_choose_verb_of_direction(cost_kind)} calls through MPI-IO are collective.", ()

    return find_affected_files


def _make_blocking_calls_trigger(cost_kind: CostKind) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        calls = job.mpi.nonblocking_reads if cost_kind is CostKind.READS else job.mpi.nonblocking_writes
        if calls or not job.mpi_files:
            return None
        return f"No {_choose_verb_of_direction(cost_kind)} call through MPI-IO is non-blocking.", ()

    return find_affected_files


def _make_aggregator_count_trigger(
    is_pattern: Callable[[int, int], bool], sentence_template: str
) -> Callable[[JobIo], tuple[str, Sequence[FileIo]] | None]:
    def find_affected_files(job: JobIo) -> tuple[str, Sequence[FileIo]] | None:
        aggregators = job.hints.get("cb_nodes", "")
        if "MPI-IO" not in job.modules or not aggregators.isdecimal() or not job.hosts:
            return None
        if not is_pattern(int(aggregators), len(job.hosts)):
            return None
        return sentence_template.format(aggregators, format_count_with_noun(len(job.hosts), "node")), ()

    return find_affected_files


TRIGGERS: tuple[Trigger, ...] = (
    Trigger("streams", "S01", CostKind.NONE, _find_stdio_use),
    Trigger("no_mpi_io", "M01", CostKind.NONE, _find_missing_mpi_io),
    Trigger("mostly_write_calls", "P01", CostKind.NONE, _make_call_majority_trigger(is_write=True)),
    Trigger("mostly_read_calls", "P02", CostKind.NONE, _make_call_majority_trigger(is_write=False)),
    Trigger("mostly_written_bytes", "P03", CostKind.NONE, _make_byte_majority_trigger(is_write=True)),
    Trigger("mostly_read_bytes", "P04", CostKind.NONE, _make_byte_majority_trigger(is_write=False)),
    Trigger("small_reads", "P05", CostKind.READS, _make_small_calls_trigger(CostKind.READS, only_shared_files=False)),
    Trigger(
        "small_writes", "P06", CostKind.WRITES, _make_small_calls_trigger(CostKind.WRITES, only_shared_files=False)
    ),
    Trigger("unaligned_memory", "P07", CostKind.NONE, _find_unaligned_memory_buffers),
    Trigger("unaligned_calls", "P08", CostKind.ALIGNMENT, _find_unaligned_file_accesses),
    Trigger(
        "redundant_reads", "P09", CostKind.REDUNDANT_READS, _make_redundant_bytes_trigger(CostKind.REDUNDANT_READS)
    ),
    Trigger(
        "redundant_writes", "P10", CostKind.REDUNDANT_WRITES, _make_redundant_bytes_trigger(CostKind.REDUNDANT_WRITES)
    ),
    Trigger("random_reads", "P11", CostKind.READS, _make_random_access_trigger(CostKind.READS)),
    Trigger("ordered_reads", "P12", CostKind.NONE, _make_ordered_access_trigger(CostKind.READS)),
    Trigger("random_writes", "P13", CostKind.WRITES, _make_random_access_trigger(CostKind.WRITES)),
    Trigger("ordered_writes", "P14", CostKind.NONE, _make_ordered_access_trigger(CostKind.WRITES)),
    Trigger(
        "small_shared_reads", "P15", CostKind.READS, _make_small_calls_trigger(CostKind.READS, only_shared_files=True)
    ),
    Trigger(
        "small_shared_writes",
        "P16",
        CostKind.WRITES,
        _make_small_calls_trigger(CostKind.WRITES, only_shared_files=True),
    ),
    Trigger("long_metadata", "P17", CostKind.METADATA, _find_long_metadata_time),
    Trigger("uneven_shared_bytes", "P18", CostKind.BALANCE, _make_shared_imbalance_trigger(compares_time=False)),
    Trigger("uneven_shared_time", "P19", CostKind.BALANCE, _make_shared_imbalance_trigger(compares_time=True)),
    Trigger("uneven_writes", "P21", CostKind.BALANCE, _make_rank_imbalance_trigger(is_write=True)),
    Trigger("uneven_reads", "P22", CostKind.BALANCE, _make_rank_imbalance_trigger(is_write=False)),
    Trigger("independent_reads", "M02", CostKind.READS, _make_independent_calls_trigger(CostKind.READS)),
    Trigger("independent_writes", "M03", CostKind.WRITES, _make_independent_calls_trigger(CostKind.WRITES)),
    Trigger("collective_reads", "M04", CostKind.NONE, _make_collective_calls_trigger(CostKind.READS)),
    Trigger("collective_writes", "M05", CostKind.NONE, _make_collective_calls_trigger(CostKind.WRITES)),
    Trigger("blocking_reads", "M06", CostKind.OVERLAP, _make_blocking_calls_trigger(CostKind.READS)),
    Trigger("blocking_writes", "M07", CostKind.OVERLAP, _make_blocking_calls_trigger(CostKind.WRITES)),
    Trigger(
        *("fewer_aggregators", "M08", CostKind.NONE),
        _make_aggregator_count_trigger(lambda aggregators, nodes: aggregators < nodes, "{} aggregators serve {}."),
    ),
    Trigger(
        *("several_aggregators", "M09", CostKind.NONE),
        _make_aggregator_count_trigger(
            lambda aggregators, nodes: aggregators > nodes, "{} aggregators are set for {}."
        ),
    ),
    Trigger(
        *("matching_aggregators", "M10", CostKind.NONE),
        _make_aggregator_count_trigger(
            lambda aggregators, nodes: aggregators == nodes, "{} aggregators are set for {}: one each."
        ),
    ),
)
