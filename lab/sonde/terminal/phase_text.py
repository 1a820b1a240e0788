# SPDX-License-Identifier: Apache-2.0
"""One phase in one line, for progress and for results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonde.findings.sample_source import describe_sample_source
from sonde.model.lines import PhaseEndLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.units import format_bytes, format_count_with_noun, format_ops, format_rate, format_seconds

# Below this transfer size people think in operations, not in bytes.
_SMALL_TRANSFER_BYTES = 64 << 10

_TREATMENT_PHRASES = {
    "sync": "writing dirty data out",
    "drop_page_cache": "emptying the page cache",
    "fadvise": "emptying the page cache of our files",
    "remount": "mounting the file system anew",
    "memory_hog": "filling memory",
    "sleep": "waiting as planned",
    "command": "running a command",
    "cancel_locks": "giving back locks",
}
_STOP_REASON_PHRASES = {
    "time": "",
    "volume": "",
    "stonewall": "stopped at the stonewall",
    "first_done": "stopped when the first task was done",
    "error": "stopped by an error",
    "interrupt": "interrupted",
    "time_limit": "stopped by the time limit of the plan",
}


def format_headline_rate(phase_end: PhaseEndLine) -> str:
    """The rate that matters most for a phase of this transfer size."""
    rate = phase_end.rates.total or phase_end.rates.transfer
    if rate is None:
        return "-"
    return format_rate_by_transfer(rate.bytes_per_s, rate.ops_per_s)


def format_rate_by_transfer(bytes_per_s: float, ops_per_s: float) -> str:
    """Operations a second for small transfers, bytes a second for the others."""
    if ops_per_s > 0 and bytes_per_s / ops_per_s < _SMALL_TRANSFER_BYTES:
        return format_ops(ops_per_s)
    return format_rate(bytes_per_s)


def describe_phase_end(phase_end: PhaseEndLine, is_measured: bool = True) -> str:
    """One line on a finished phase: amount, time, rate, and notable deviations."""
    elapsed = phase_end.seconds.elapsed
    moved = (
        format_count_with_noun(phase_end.ops.done, "operation")
        if phase_end.ops.done and not phase_end.bytes.transferred
        else format_bytes(phase_end.bytes.transferred)
    )
    sentences = [f"{moved} in {format_seconds(elapsed)}" if elapsed is not None else "-"]
    if phase_end.walk is not None and phase_end.walk.matched is not None:
        sentences.append(f"{phase_end.walk.matched:,} found")
    fsync = phase_end.seconds.fsync
    if fsync and elapsed and fsync > 0.05 * elapsed:
        sentences.append(f"of which {format_seconds(fsync)} fsync")
    if phase_end.verify is not None and phase_end.verify.checked_bytes:
        bad = phase_end.verify.mismatches
        checked = format_bytes(phase_end.verify.checked_bytes)
        sentences.append(f"{bad} mismatches in {checked}" if bad else f"{checked} verified")
    sentences += [f"{stream['id']} {format_rate(stream['bytes_per_s'])}" for stream in _list_duplex_streams(phase_end)]
    sentences += _describe_read_and_write_rates(phase_end)
    sentences += _describe_training(phase_end)
    if phase_end.ops.failed:
        sentences.append(f"{format_count_with_noun(phase_end.ops.failed, 'operation')} failed")
    if _STOP_REASON_PHRASES.get(phase_end.stopped_by):
        sentences.append(_STOP_REASON_PHRASES[phase_end.stopped_by])
    if not is_measured:
        sentences.append("preparation, not rated")
    return ", ".join(sentences)


def _describe_read_and_write_rates(phase_end: PhaseEndLine) -> list[str]:
    """Rates of reads and of writes of a mixed phase."""
    if phase_end.directions is None:
        return []
    rates = (("read", phase_end.directions.read), ("write", phase_end.directions.write))
    return [f"{name} {format_rate(rate.bytes_per_s)}" for name, rate in rates if rate is not None]


def _describe_training(phase_end: PhaseEndLine) -> list[str]:
    """How busy emulated accelerators were, beside where their bytes came from, as far as can be estimated."""
    training = phase_end.training
    if training is None or training.utilization is None:
        return []
    return [
        f"accelerators computed {100 * training.utilization:.1f} % of the time",
        f"{training.samples_per_s or 0.0:,.1f} samples/s",
        replace_no_break_spaces(describe_sample_source(training)),
    ]


def _list_duplex_streams(phase_end: PhaseEndLine) -> list[dict[str, Any]]:
    """The streams of a duplex phase for which the rate while both were active is recorded."""
    streams = phase_end.streams if isinstance(phase_end.streams, list) else []
    return [stream for stream in streams if isinstance(stream, dict) and stream.get("id") and stream.get("bytes_per_s")]


def describe_preparation(phase_plan: Mapping[str, Any]) -> str:
    """Describes the treatments before a phase, from its plan."""
    kinds = [str(item.get("kind")) for item in phase_plan.get("before", ())]
    actions = [_TREATMENT_PHRASES.get(kind, kind) for kind in kinds]
    return actions[-1] if actions else "preparing"
