# SPDX-License-Identifier: Apache-2.0
"""One history: the same measurement of the same system, over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from sonde.stats.ranks import Floats

YEAR_S = 365.25 * 86400.0
# A history of a few hours says nothing about how often somebody measures in a year.
_MIN_PACE_SPAN_S = 14 * 86400.0


@dataclass(frozen=True)
class History:
    """Rates (above 0) at times (seconds since 1970, UTC, ascending), one a run.

    `labels` say what was measured where: two histories are comparable when their labels are equal. `runs` are the ids
    of the runs where they are known.
    """

    labels: Mapping[str, str]
    times: Floats
    values: Floats
    unit: str = "bytes/s"
    runs: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        if self.times.shape != self.values.shape or self.times.ndim != 1:
            raise ValueError("a history needs one time for each value")
        if np.any(np.diff(self.times) < 0):
            raise ValueError("the times of a history ascend")
        if not np.all(np.isfinite(self.values)) or np.any(self.values <= 0):
            raise ValueError("the values of a history are above 0; a run that measured nothing has none")

    def __len__(self) -> int:
        return int(self.values.size)

    @property
    def joined_labels(self) -> str:
        """The labels in their order, joined."""
        return " · ".join(value for value in self.labels.values() if value)

    @property
    def log_rates(self) -> Floats:
        logarithms: Floats = np.log(self.values)
        return logarithms

    @property
    def usual_interval_s(self) -> float:
        """The usual time between two runs; a day where there are no two."""
        gaps = np.diff(self.times)
        gaps = gaps[gaps > 0]
        return float(np.median(gaps)) if gaps.size else 86400.0

    @property
    def runs_per_year(self) -> float:
        """Runs a year at the pace of the whole history; 365 if the history is too short."""
        span = float(self.times[-1] - self.times[0]) if len(self) > 1 else 0.0
        return (len(self) - 1) / span * YEAR_S if span >= _MIN_PACE_SPAN_S else 365.0

    def select_runs_until(self, last_time: float) -> History:
        """The runs up to and including `last_time`."""
        count = int(np.searchsorted(self.times, last_time, side="right"))
        return History(self.labels, self.times[:count], self.values[:count], self.unit, tuple(self.runs[:count]))


def select_distinguishing_labels(histories: Sequence[History]) -> tuple[str, ...]:
    """Names of the labels in which the histories differ."""
    names = ("system", "file_system", "cache", "node_class", "epoch")
    return tuple(name for name in names if len({line.labels.get(name) for line in histories}) > 1)


def convert_run_time_to_utc(unix_time: float) -> datetime:
    """The time of a run as UTC."""
    return datetime.fromtimestamp(unix_time, UTC)
