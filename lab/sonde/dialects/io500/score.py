# SPDX-License-Identifier: Apache-2.0
"""The score: geometric means of the results of each group, and of the two means.

Formula of the IO500 rules: BW = (product of the ior results, GiB/s)^(1/n), MD = (product of the mdtest and find
results, kIOPS)^(1/n), score = sqrt(BW * MD). A result that is zero has no part in its mean; IO500 marks the run as
invalid then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sonde.dialects.io500.hashes import hash_unordered_pairs
from sonde.dialects.io500.phases import Io500Phase, ScoreGroup


@dataclass(frozen=True)
class Io500Score:
    """BW in GiB/s, MD in kIOPS, and both together."""

    bandwidth: float
    metadata: float

    @property
    def total_score(self) -> float:
        """The geometric mean of the bandwidth score and the metadata score."""
        return math.sqrt(self.bandwidth * self.metadata)


def compute_score(phase_results: Iterable[tuple[Io500Phase, float]], is_extended: bool = False) -> Io500Score:
    """The score of these results; `is_extended`: with those of the phases that extended mode adds."""
    rows = [(phase, value) for phase, value in phase_results if is_extended or not phase.extra]

    def compute_group_mean(group: ScoreGroup) -> float:
        logs = [math.log(value) for phase, value in rows if phase.group is group and value > 0]
        return math.exp(math.fsum(logs) / len(logs)) if logs else 0.0

    return Io500Score(compute_group_mean(ScoreGroup.BW), compute_group_mean(ScoreGroup.MD))


def hash_score(
    score: Io500Score, phase_results: Iterable[tuple[Io500Phase, float]], is_valid: bool, io500_version: str | None
) -> str:
    """The hash that stands below a score: of its parts and, for the standard one, of the version that it was made with.
    Without a version: that of the extended score, whose own part are the phases that extended mode adds."""
    extra = io500_version is None
    pairs = [] if io500_version is None else [("version", io500_version)]
    pairs += [
        (phase.name, f"{value:f}")
        for phase, value in phase_results
        if phase.group is not ScoreGroup.NONE and phase.extra == extra
    ]
    pairs += [("MD", f"{score.metadata:f}"), ("BW", f"{score.bandwidth:f}"), ("SCORE", f"{score.total_score:f}")]
    pairs += [] if is_valid else [("valid", "NO")]
    return f"{hash_unordered_pairs(pairs):X}"
