# SPDX-License-Identifier: Apache-2.0
"""Operations on storage targets that answer as real ones do, drawn."""

from __future__ import annotations

import numpy as np


def drawn_answers(
    random: np.random.Generator, targets: int, slices: int, slow: slice, factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Operations and the ns they took together, a row for each target, a column for each slice of a second.

    Targets differ by 3 %, what hits all of them wanders by 30 %, each target's own load wanders by 15 % over half a
    minute, and one slice in a hundred holds a stall of a second. Those of `slow` take `factor` times as long.
    """
    own = np.exp(random.normal(0, 0.03, (targets, 1)))
    both = np.exp(np.cumsum(random.normal(0, 0.06, slices)))
    noise = random.normal(0, 1, (targets, slices))
    wander = np.empty_like(noise)
    wander[:, 0] = noise[:, 0]
    for at in range(1, slices):
        wander[:, at] = 0.9 * wander[:, at - 1] + np.sqrt(1 - 0.81) * noise[:, at]
    each = 5e6 * own * both * np.exp(0.15 * wander)
    each[slow] *= factor
    ops = random.poisson(20, (targets, slices))
    ns = (ops * each * np.exp(random.normal(0, 0.5 / np.sqrt(np.maximum(ops, 1))))).astype(int)
    ns += np.where((random.random((targets, slices)) < 0.01) & (ops > 0), 10**9, 0)
    return ops, ns
