# SPDX-License-Identifier: Apache-2.0
"""The history of the archive: every series in it, ready for statistics.

A series holds only values that may be compared: see ``sonde.model.series``. What a run left unfinished, what an error
or a signal cut short and what failed verification is in none; neither are calibrations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.model.series import BYTES, OPERATIONS, RunKey, SeriesKey, cache_state
from sonde.store.archive import Archive
from sonde.store.summary import Summary

_CUT_SHORT = ("error", "interrupt", "time_limit")
_UNCOUNTED = ("calibration",)


@dataclass(frozen=True)
class Series:
    """One number over time, the oldest first."""

    key: SeriesKey
    plan: str  # what people call the experiment: the id of the latest plan
    times: NDArray[np.float64]  # starts of the runs, seconds since 1970 (UTC)
    values: NDArray[np.float64]  # in key.unit, above zero
    runs: Sequence[str]  # ids
    groups: Sequence[str]  # what the run was a part of (repeats of one probe, one check); "" when it stood alone

    def __len__(self) -> int:
        return len(self.runs)


def all_series(archive: Archive) -> list[Series]:
    """Every series, sorted by key. Empty when the archive is."""
    runs, _ = archive.runs()
    found: dict[SeriesKey, list[tuple[float, float, Summary]]] = {}
    for run in runs:
        for key, value in values_of(run):
            found.setdefault(key, []).append((epoch_seconds(run.started), value, run))
    return [_series(key, found[key]) for key in sorted(found)]


def values_of(run: Summary) -> list[tuple[SeriesKey, float]]:
    """What one run adds to which series."""
    shared = run.document.get("series")
    if not isinstance(shared, Mapping) or run.role in _UNCOUNTED or run.status == "mismatch":
        return []
    try:
        key = RunKey(**{str(name): str(value) for name, value in shared.items()})
    except TypeError:
        return []
    return [one for phase in run.phases if (one := _value(key, phase)) is not None]


def _value(key: RunKey, phase: Mapping[str, Any]) -> tuple[SeriesKey, float] | None:
    if not phase.get("done") or not phase.get("measured", True) or phase.get("stopped_by") in _CUT_SHORT:
        return None
    unit = OPERATIONS if not phase.get("bytes_per_s") else BYTES
    value = phase.get(unit)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        return None
    cache = cache_state(str(phase.get("cache") or ""), phase.get("findings") or ())
    full = SeriesKey(
        **asdict(key),
        phase=str(phase.get("phase") or ""),
        op=str(phase.get("op") or ""),
        cache=cache,
        definition=str(phase.get("definition") or ""),
        unit=unit,
    )
    return full, float(value)


def _series(key: SeriesKey, points: list[tuple[float, float, Summary]]) -> Series:
    points.sort(key=lambda one: (one[0], one[2].id))
    return Series(
        key=key,
        plan=points[-1][2].plan,
        times=np.array([one[0] for one in points]),
        values=np.array([one[1] for one in points]),
        runs=[one[2].id for one in points],
        groups=[one[2].group or "" for one in points],
    )


def epoch_seconds(started: str) -> float:
    """Seconds since 1970 of an ISO time; a time without zone is UTC, and 0 stands for no time at all."""
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
