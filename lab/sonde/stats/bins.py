# SPDX-License-Identifier: Apache-2.0
"""Changes the number and width of slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def sum_into_bins(slice_amounts: Sequence[float], bin_count: int) -> list[float]:
    """Returns the sums of `slice_amounts` in `bin_count` equally wide bins; a slice on an edge is split between both
    bins.

    The total is preserved. With fewer values than bins, the values are returned unchanged.
    """
    if bin_count < 1:
        raise ValueError("bins must be at least 1")
    if len(slice_amounts) <= bin_count:
        return [float(value) for value in slice_amounts]
    edges = np.linspace(0.0, len(slice_amounts), bin_count + 1)
    cumulative = np.concatenate(([0.0], np.cumsum(np.asarray(slice_amounts, dtype=float))))
    cumulative_at_edges = np.interp(edges, np.arange(len(slice_amounts) + 1), cumulative)
    return [float(bin_sum) for bin_sum in np.diff(cumulative_at_edges)]


def pad_with_zeros(values: Sequence[float], value_count: int) -> list[float]:
    """Returns `values` as floats, followed by zeros up to `value_count` values."""
    return [*map(float, values), *[0.0] * (value_count - len(values))]


def find_steady_slices(slice_amounts: Sequence[float], active_tasks: Sequence[int]) -> tuple[int, int]:
    """Returns the first and one past the last slice with the maximum number of active tasks.

    Slices outside contain starts and ends of tasks, which distort the rate. Without activity data, all slices count.
    """
    if not active_tasks or len(active_tasks) != len(slice_amounts):
        return 0, len(slice_amounts)
    full_count = max(active_tasks)
    full_positions = [position for position, count in enumerate(active_tasks) if count == full_count]
    return full_positions[0], full_positions[-1] + 1
