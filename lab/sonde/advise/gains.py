# SPDX-License-Identifier: Apache-2.0
"""Seconds that a pattern costs a job on a storage, with an interval.

The log says how long the affected calls took. The storage says how long the same bytes take in large sequential
transfers. The difference is the gain. Seconds in calls are sums over ranks; the job waits for its slowest rank, so a
share of these seconds counts as the same share of the slowest rank's time, and the lower bound uses the mean rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sonde.advise.job_io import DirectionIo, FileIo, JobIo
from sonde.advise.storage_rates import RateRange, StorageRates
from sonde.advise.triggers import CostKind, IoPattern


@dataclass(frozen=True)
class GainEstimate:
    """Seconds of the job. `is_bound`: the gain is anywhere between `low` and `high`; `value` is the middle."""

    low: float
    value: float
    high: float
    is_bound: bool = False


def estimate_gain(job: JobIo, patterns: Sequence[IoPattern], storage_rates: StorageRates) -> GainEstimate | None:
    """Returns the gain of removing patterns of the same effect; None where it is a fact without cost."""
    effect = patterns[0].effect
    files = list({id(file): file for pattern in patterns for file in pattern.files}.values())
    if effect in (CostKind.READS, CostKind.WRITES):
        is_write = effect is CostKind.WRITES
        return _estimate_gain_of_large_transfers(
            job, [file.write if is_write else file.read for file in files], storage_rates, is_write
        )
    if effect is CostKind.ALIGNMENT:
        both = (
            _estimate_gain_of_large_transfers(
                job, [_estimate_unaligned_io(file, is_write) for file in files], storage_rates, is_write
            )
            for is_write in (False, True)
        )
        return _make_upper_bound_gain(sum(gain.high for gain in both if gain is not None))
    estimator = _ESTIMATORS.get(effect)
    return estimator(job, patterns, files, storage_rates) if estimator else None


def _estimate_gain_of_large_transfers(
    job: JobIo, directions: Iterable[DirectionIo], storage_rates: StorageRates, is_write: bool
) -> GainEstimate | None:
    """Gain of large sequential transfers of the same bytes."""
    directions = list(directions)
    seconds, amount = sum(move.seconds for move in directions), sum(move.bytes for move in directions)
    if seconds <= 0:
        return GainEstimate(0.0, 0.0, 0.0)
    rate = compute_process_rate(job, storage_rates, is_write)
    low_s, high_s = _convert_rank_to_job_seconds(job, seconds)
    if rate is None:
        return _make_upper_bound_gain(high_s)
    fractions = [max(0.0, 1 - amount / speed / seconds) for speed in (rate.low, rate.value, rate.high)]
    return GainEstimate(low_s * fractions[0], high_s * fractions[1], high_s * fractions[2])


def compute_process_rate(job: JobIo, storage_rates: StorageRates, is_write: bool) -> RateRange | None:
    """Rate of large transfers of one process while all processes of the job transfer; None when it is not known.

    Where the log does not name nodes, the lowest value is that of all processes on one node.
    """
    single = storage_rates.write if is_write else storage_rates.read
    node = storage_rates.node_write if is_write else storage_rates.node_read
    every = storage_rates.all_write if is_write else storage_rates.all_read
    limits: list[RateRange] = [single] if single else []
    if node:
        share = node * max(1, len(job.hosts)) / job.processes
        limits.append(RateRange(share, share if job.hosts else max(share, node), node))
    if every:
        limits.append(RateRange(*(value / job.processes for value in (every.low, every.value, every.high))))
    if not limits:
        return None
    return RateRange(
        min(limit.low for limit in limits), min(limit.value for limit in limits), min(limit.high for limit in limits)
    )


def _convert_rank_to_job_seconds(job: JobIo, rank_seconds: float) -> tuple[float, float]:
    """Seconds summed over ranks as seconds of the mean rank and of the slowest one, at most the run time."""
    total = float(job.rank_seconds.sum())
    if total <= 0:
        return 0.0, 0.0
    share = min(1.0, rank_seconds / total)
    # Calls of several threads overlap, and old logs have whole seconds as run time.
    limit = job.seconds if job.seconds >= 1 else job.io_seconds
    return share * min(job.mean_io_seconds, limit), share * min(job.io_seconds, limit)


def _make_upper_bound_gain(max_seconds: float) -> GainEstimate:
    return GainEstimate(0.0, max_seconds / 2, max_seconds, is_bound=True)


def _estimate_unaligned_io(file: FileIo, is_write: bool) -> DirectionIo:
    """The unaligned calls of a file, by their share of all calls, because the log does not time them separately."""
    move = file.write if is_write else file.read
    share = min(1.0, file.unaligned / max(1, file.read.calls + file.write.calls))
    return DirectionIo(calls=round(move.calls * share), bytes=round(move.bytes * share), seconds=move.seconds * share)


def _estimate_gain_without_rereads(
    job: JobIo, patterns: Sequence[IoPattern], files: Sequence[FileIo], storage_rates: StorageRates
) -> GainEstimate:
    """Bytes that are transferred again, at the rate of the other bytes. A cache may have served them: bound below."""
    is_write = patterns[0].effect is CostKind.REDUNDANT_WRITES
    moves = [file.write if is_write else file.read for file in files]
    seconds, amount = sum(move.seconds for move in moves), sum(move.bytes for move in moves)
    redundant = sum(pattern.redundant for pattern in patterns)
    _, high = _convert_rank_to_job_seconds(job, seconds * min(1.0, redundant / amount) if amount else 0.0)
    return _make_upper_bound_gain(high)


def _estimate_gain_without_metadata(
    job: JobIo, patterns: Sequence[IoPattern], files: Sequence[FileIo], storage_rates: StorageRates
) -> GainEstimate:
    """All metadata time, less what the opens need at the measured rate of one node."""
    seconds = sum(file.meta_s for file in files)
    low, high = _convert_rank_to_job_seconds(job, seconds)
    if storage_rates.files_per_s is None:
        return _make_upper_bound_gain(high)
    needed = min(seconds, sum(file.opens for file in files) / storage_rates.files_per_s)
    fraction = 1 - needed / seconds if seconds else 0.0
    return GainEstimate(low * fraction, high * fraction, high)


def _estimate_gain_of_balanced_ranks(
    job: JobIo, patterns: Sequence[IoPattern], files: Sequence[FileIo], storage_rates: StorageRates
) -> GainEstimate:
    """The slowest rank as fast as the mean one, by the share of the affected files."""
    total = float(job.rank_seconds.sum())
    limit = job.seconds if job.seconds >= 1 else job.io_seconds
    excess = min(job.io_seconds, limit) - min(job.mean_io_seconds, limit)
    differences = sum(max(0.0, file.slowest_s - file.fastest_s) for file in files)
    # Shared records hold the times of the fastest and the slowest rank. For other files their share of the I/O time
    # estimates the difference; the larger estimate counts.
    share = min(1.0, sum(file.call_seconds for file in files) / total) if total > 0 else 0.0
    return _make_upper_bound_gain(min(excess, max(differences, share * excess)))


def _estimate_gain_of_overlapped_io(
    job: JobIo, patterns: Sequence[IoPattern], files: Sequence[FileIo], storage_rates: StorageRates
) -> GainEstimate:
    """At most the shorter of I/O and everything else can be hidden."""
    moves = [file for file in job.files if file.is_mpi_io]
    is_write = any("write" in pattern.key for pattern in patterns)
    is_read = any("read" in pattern.key for pattern in patterns)
    seconds = sum(is_write * file.write.seconds + is_read * file.read.seconds for file in moves)
    _, high = _convert_rank_to_job_seconds(job, seconds)
    return _make_upper_bound_gain(max(0.0, min(high, job.seconds - high)))


_GainEstimator = Callable[[JobIo, Sequence[IoPattern], Sequence[FileIo], StorageRates], GainEstimate]
_ESTIMATORS: dict[CostKind, _GainEstimator] = {
    CostKind.REDUNDANT_READS: _estimate_gain_without_rereads,
    CostKind.REDUNDANT_WRITES: _estimate_gain_without_rereads,
    CostKind.METADATA: _estimate_gain_without_metadata,
    CostKind.BALANCE: _estimate_gain_of_balanced_ranks,
    CostKind.OVERLAP: _estimate_gain_of_overlapped_io,
}
