# SPDX-License-Identifier: Apache-2.0
"""What a study of these detectors found on the noise of 48 year-long series of three systems (daily probes of IOR,
HACC-IO, VPIC-IO and BD-CATS, published by the TOKIO project).

Power cells rest on 48 trials each, false-alarm rates on about 10,000 watched runs. Half of its series come from a
system that need not be among the data at hand, and systems differ: a figure of other systems agrees when the
difference is within twice the error of both. The study looked at the last 50 runs, Sonde looks at 80.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from sonde.trends.detectors import DetectorSettings

TRIALS = 48
SMALLEST_ERROR = 0.07
_NEVER = 0.9999  # a change of this share never happens: the detector is off


@dataclass(frozen=True)
class DocumentedRow:
    """One detector with probes of `repeats` runs: false alarms per 100 runs, and the share found of each drop."""

    name: str
    settings: DetectorSettings
    repeats: int
    false_alarms: float
    detected_shares: tuple[float, float, float, float]  # drops of 10, 20, 30, 70 %


_TREND_500 = DetectorSettings(arl0=500, collapse_change=_NEVER)
_TREND_2000 = DetectorSettings(arl0=2000, collapse_change=_NEVER)
_GATE = DetectorSettings(smallest_change=_NEVER)
DOCUMENTED_ROWS = (
    DocumentedRow("trend, ARL0 500", _TREND_500, 1, 1.14, (0.38, 0.73, 0.88, 0.98)),
    DocumentedRow("trend, ARL0 500", _TREND_500, 3, 0.46, (0.46, 0.94, 1.00, 1.00)),
    DocumentedRow("trend, ARL0 2000", _TREND_2000, 1, 0.53, (0.23, 0.60, 0.79, 0.98)),
    DocumentedRow("trend, ARL0 2000", _TREND_2000, 3, 0.21, (0.40, 0.90, 1.00, 1.00)),
    DocumentedRow("gate", _GATE, 1, 0.57, (0.04, 0.19, 0.54, 1.00)),
    DocumentedRow("gate", _GATE, 3, 0.12, (0.04, 0.48, 0.83, 1.00)),
    DocumentedRow("both, ARL0 2000", DetectorSettings(), 1, 0.99, (0.27, 0.65, 0.81, 1.00)),
    DocumentedRow("both, ARL0 2000", DetectorSettings(), 3, 0.31, (0.40, 0.94, 1.00, 1.00)),
)


def compute_allowed_error(share: float) -> float:
    """Standard error of a documented power cell, no less than what was stated for them."""
    return max(SMALLEST_ERROR, sqrt(share * (1 - share) / TRIALS))
