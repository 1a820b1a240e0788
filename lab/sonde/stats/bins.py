# SPDX-License-Identifier: Apache-2.0
"""Series of slices in other widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def rebin(values: Sequence[float], bins: int) -> list[float]:
    """Sums of `values` in `bins` equally wide pieces; a slice on a border is divided between its two sides.

    Nothing is lost: the sum stays the same. Fewer values than bins are returned as they are.
    """
    if bins < 1:
        raise ValueError("bins must be at least 1")
    if len(values) <= bins:
        return [float(value) for value in values]
    edges = np.linspace(0.0, len(values), bins + 1)
    running = np.concatenate(([0.0], np.cumsum(np.asarray(values, dtype=float))))
    at_edges = np.interp(edges, np.arange(len(values) + 1), running)
    return [float(part) for part in np.diff(at_edges)]


def padded(values: Sequence[float], length: int) -> list[float]:
    """`values` as floats, with zeros behind the last up to `length` of them."""
    return [*map(float, values), *[0.0] * (length - len(values))]


def trim(values: Sequence[float], active: Sequence[int]) -> tuple[int, int]:
    """First and one past the last slice in which all tasks that ever were active are active.

    The slices before and after hold starts and ends, which say nothing about the level of a rate. With nobody active
    it is the whole.
    """
    if not active or len(active) != len(values):
        return 0, len(values)
    full = max(active)
    inside = [position for position, count in enumerate(active) if count == full]
    return inside[0], inside[-1] + 1
