# SPDX-License-Identifier: Apache-2.0
"""The rate over time of the runs on two sides: whether its shape changed, the name of the shape, and who was late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.model.record import PhaseRecord, RecordReader, read_record
from sonde.stats.imbalance import StragglerAttribution, attribute_slowness_to_nodes_or_tasks
from sonde.stats.profiles import BandDistance, build_reference_band, measure_band_distance
from sonde.stats.ranks import Floats
from sonde.stats.shapes import RateShape, find_rate_shape
from sonde.store.archive import RECORD
from sonde.store.summary import Summary

# Runs of a side whose records are read.
MAX_COMPARED_RUNS = 24
_CURVE_POINTS = 120


@dataclass(frozen=True)
class ProfileComparison:
    """Curves (rates over equal slices) of one phase on both sides. `likeness` is that of the latest run after; `shape`
    is what sets the median after apart from the median before; `seconds` is how long the latest took; `late` is who
    made it wait, with the names in `blamed`."""

    before: tuple[Floats, ...]
    after: tuple[Floats, ...]
    likeness: BandDistance
    shape: RateShape | None
    seconds: float
    late: StragglerAttribution | None
    blamed: tuple[str, ...]


class RunRecords:
    """The records of some runs, each read once. Unreadable records are skipped."""

    def __init__(self, run_summaries: Sequence[Summary]) -> None:
        self._readers: list[RecordReader] = []
        for run in run_summaries[-MAX_COMPARED_RUNS:]:
            try:
                self._readers.append(read_record(run.folder / RECORD))
            except OSError:
                continue

    def list_phase_records(self, phase_id: str) -> list[tuple[RecordReader, PhaseRecord]]:
        """Each run's phase of that id, the latest last."""
        return [(reader, reader.phases[phase_id]) for reader in self._readers if phase_id in reader.phases]


def compute_rate_curve(phase: PhaseRecord) -> tuple[Floats, float] | None:
    """Bytes (or operations) a second by slice, and the length in seconds; None when the record has no series."""
    series = phase.total_series
    if series is None or not series.slice_s:
        return None
    moved = np.asarray(series.bytes if any(series.bytes) else series.ops, dtype=float)
    if moved.size == 0 or not moved.sum() > 0:
        return None
    return moved / series.slice_s, float(moved.size * series.slice_s)


def compare_profiles(
    records_before: RunRecords, records_after: RunRecords, phase_before: str, phase_after: str
) -> ProfileComparison | None:
    """Compares one phase of both sides; None where a side has no curve."""
    old = [
        result for _, item in records_before.list_phase_records(phase_before) if (result := compute_rate_curve(item))
    ]
    latest = records_after.list_phase_records(phase_after)
    new = [result for _, item in latest if (result := compute_rate_curve(item))]
    if not old or not new:
        return None
    usual_band = build_reference_band([values for values, _ in old])
    usual, now = (_compute_median_curve([values for values, _ in side]) for side in (old, new))
    reader, phase = latest[-1]
    late = find_late_members(phase)
    return ProfileComparison(
        before=tuple(values for values, _ in old),
        after=tuple(values for values, _ in new),
        likeness=measure_band_distance(new[-1][0], usual_band),
        shape=find_rate_shape(now, usual),
        seconds=new[-1][1],
        late=late,
        blamed=_list_names_of_late_members(reader, late),
    )


def _compute_median_curve(curves: Sequence[Floats]) -> Floats:
    """The median of curves of any length, each by its own mean, over equal shares of the time."""
    u = (np.arange(_CURVE_POINTS) + 0.5) / _CURVE_POINTS
    resampled = [
        np.interp(u, (np.arange(curve.size) + 0.5) / curve.size, curve / curve.mean())
        if curve.size < _CURVE_POINTS
        else _coarsen_curve(curve)
        for curve in curves
    ]
    middle: Floats = np.median(resampled, axis=0)
    return middle


def _coarsen_curve(slice_rates: Floats) -> Floats:
    running = np.concatenate([[0.0], np.cumsum(slice_rates / slice_rates.mean())])
    edges = np.linspace(0, slice_rates.size, _CURVE_POINTS + 1)
    coarse: Floats = (
        np.diff(np.interp(edges, np.arange(slice_rates.size + 1), running)) * _CURVE_POINTS / slice_rates.size
    )
    return coarse


def find_late_members(phase: PhaseRecord) -> StragglerAttribution | None:
    """The nodes or tasks that made a phase of equal shares as long as it was; None when it was even, or when tasks
    stopped by the clock."""
    if phase.end is None or phase.end.stopped_by not in ("volume", "stonewall"):
        return None
    seconds, nodes = phase.task_times
    return attribute_slowness_to_nodes_or_tasks(seconds, nodes) if len(seconds) >= 3 else None


def _list_names_of_late_members(
    reader: RecordReader, straggler_attribution: StragglerAttribution | None
) -> tuple[str, ...]:
    if straggler_attribution is None:
        return ()
    hosts = {node.node: node.host for node in reader.nodes}
    if straggler_attribution.is_of_nodes:
        return tuple(hosts.get(node) or f"node {node}" for node in straggler_attribution.stragglers.members)
    return tuple(str(task) for task in straggler_attribution.stragglers.members)


def describe_rate_shape(rate_shape: RateShape, phase_seconds: float) -> str:
    """The shape with its place: periodic dips every 4.2 s, by 60 % each."""
    depth = f"{100 * rate_shape.depth:.0f} %"
    if rate_shape.name == "periodic dips":
        return (
            f"periodic dips: {rate_shape.count}, every {(rate_shape.period or 0.0) * phase_seconds:.3g} s, by {depth}"
        )
    if rate_shape.name == "stall":
        length = (rate_shape.end - rate_shape.start) * phase_seconds
        return f"a stall of {length:.3g} s at {rate_shape.start * phase_seconds:.3g} s, by {depth}"
    if rate_shape.name == "slow start":
        return f"a slow start of {rate_shape.end * phase_seconds:.3g} s, {depth} lower at first"
    if rate_shape.name == "steady decline":
        return f"a steady decline by {depth}"
    return f"a {rate_shape.name} at {rate_shape.start * phase_seconds:.3g} s, by {depth}"
