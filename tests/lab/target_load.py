# SPDX-License-Identifier: Apache-2.0
"""Operations on storage targets that answer as real ones do, drawn, and what a record says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sonde.model.line_members import IntervalSeconds
from sonde.model.lines import PhaseBeginLine, PhaseEndLine, SeriesLine, TargetsLine
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run

COLUMNS = ("target", "kind", "bytes", "ops", "single_ops", "single_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")


def drawn_answers(
    random: np.random.Generator, targets: int, slices: int, slow: slice, factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Operations and the ns they took together, a row for each target, a column for each slice of a second.

    Targets differ by 3 %, what hits all of them wanders by 30 %, each target's own load wanders by 15 % over half a
    minute, and one slice in a hundred holds a stall of a second. Those of `slow` take `factor` times as long.
    """
    target_factor = np.exp(random.normal(0, 0.03, (targets, 1)))
    both = np.exp(np.cumsum(random.normal(0, 0.06, slices)))
    noise = random.normal(0, 1, (targets, slices))
    wander = np.empty_like(noise)
    wander[:, 0] = noise[:, 0]
    for index in range(1, slices):
        wander[:, index] = 0.9 * wander[:, index - 1] + np.sqrt(1 - 0.81) * noise[:, index]
    each = 5e6 * target_factor * both * np.exp(0.15 * wander)
    each[slow] *= factor
    ops = random.poisson(20, (targets, slices))
    ns = (ops * each * np.exp(random.normal(0, 0.5 / np.sqrt(np.maximum(ops, 1))))).astype(int)
    ns += np.where((random.random((targets, slices)) < 0.01) & (ops > 0), 10**9, 0)
    return ops, ns


def phase_of(ops: np.ndarray, ns: np.ndarray, kind: str = "write") -> PhaseRecord:
    """A row for each target, a column for each slice of a second; operations of 1 MiB, ten seconds in all.

    The median operation of a target is taken to last as long as the mean one of its median slice.
    """
    phase = PhaseRecord(PhaseBeginLine(phase="p", op=kind, measured=True))
    phase.end = PhaseEndLine(phase="p", seconds=IntervalSeconds(elapsed=10.0))
    rows: list[tuple[Any, ...]] = []
    for index, (counts, times) in enumerate(zip(ops.tolist(), ns.tolist(), strict=True)):
        name, moved = f"OST{index:04x}", tuple(count << 20 for count in counts)
        phase.series.append(
            SeriesLine(
                phase="p", scope="target", target=name, kind=kind, slice_s=1.0,
                bytes=moved, ops=tuple(counts), single_ops=tuple(counts), single_ns=tuple(times),
            )
        )  # fmt: skip
        p50 = float(np.median([time / count for count, time in zip(counts, times, strict=True) if count] or [5e6]))
        rows.append((name, kind, sum(moved), sum(counts), sum(counts), sum(times), p50, 8e6, 1e7 * (1 + index), 9e9))
    total = sum(row[2] for row in rows)
    phase.targets = TargetsLine(
        phase="p", files=8, known_files=8, bytes=total, known_bytes=total, columns=COLUMNS, rows=tuple(rows)
    )
    return phase


def run_with(targets: int, each: int) -> RecordedRun:
    """Servers of half as many targets as an SSU has, `each`."""
    names = [f"OST{index:04x}" for index in range(targets)]
    half = max(1, each // 2)
    levels = {
        "OSS": {f"oss{index // half:02d}": names[index : index + half] for index in range(0, targets, half)},
        "SSU": {f"ssu{index // each}": names[index : index + each] for index in range(0, targets, each)},
    }
    return make_recorded_run(RecordReader(), Path(), {"parents": {"system": "s", "levels": levels}})
