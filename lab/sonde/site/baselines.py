# SPDX-License-Identifier: Apache-2.0
"""Baseline of each history on the overview: runs tagged as a baseline, else its first level."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from sonde.trends.baseline_gate import MIN_BASELINE_RUNS, compute_median_and_limit
from sonde.trends.history import History
from sonde.trends.survey import HistoryAnalysis


@dataclass(frozen=True)
class BaselineRatio:
    """The level of a history now over its baseline. `is_sure`: the difference is more than noise."""

    baseline: float
    level: float
    is_sure: bool
    is_tagged: bool  # from runs tagged baseline:NAME; otherwise from the runs before the first change

    @property
    def rate_ratio(self) -> float:
        return self.level / self.baseline


def compute_baseline_ratio(
    history: History, analysis: HistoryAnalysis | None, tagged_run_ids: Collection[str]
) -> BaselineRatio | None:
    """The ratio of a history; None while it has too few runs. `tagged_run_ids`: runs of a baseline."""
    if analysis is None:
        return None
    level = analysis.current_level
    chosen = [index for index, run in enumerate(history.runs) if run in tagged_run_ids] if tagged_run_ids else []
    if len(chosen) >= MIN_BASELINE_RUNS:
        values = history.values[chosen]
        baseline, limit = compute_median_and_limit(values.tolist())
        return BaselineRatio(baseline, level, level < limit or level > baseline * baseline / limit, True)
    baseline = analysis.segments[0].level
    is_sure = len(analysis.segments) > 1 and abs(np.log(level / baseline)) > _MIN_LOG_DIFFERENCE
    return BaselineRatio(baseline, level, bool(is_sure), False)


# Levels that differ by less have no color, even if changes lie between them.
_MIN_LOG_DIFFERENCE = 0.02
