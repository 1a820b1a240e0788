# SPDX-License-Identifier: Apache-2.0
"""The survey: calibrates the detectors on the noise of all histories, finds changes, and analyzes each history."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log

import numpy as np

from sonde.model.event import Event
from sonde.stats.ranks import Floats
from sonde.stats.ratio import simulate_detectable_drop
from sonde.stats.segments import Segment, find_segments
from sonde.stats.spread import compute_robust_sd
from sonde.trends.budget import (
    MIN_NOISE_RUNS,
    AlarmBudget,
    DetectorCalibration,
    calibrate_detector,
    compute_log_residuals,
)
from sonde.trends.changes import Change, JointChange, group_changes, measure_changes
from sonde.trends.detectors import DetectorSettings
from sonde.trends.history import History, select_distinguishing_labels
from sonde.trends.result_cache import ResultCache, compute_digest
from sonde.trends.run_caveats import CaveatCount
from sonde.trends.watch import sort_alarms, watch_from_earlier_state

# A history shorter than this has no level yet.
MIN_HISTORY_RUNS = 5
# Runs that "now" is the median of.
_RUNS_OF_PRESENT_LEVEL = 3
# The drop that is asked about: would so many runs show it against so many before?
_NEW_RUNS, _KNOWN_RUNS = 10, 40
# Runs of a history that its noise is learned from at most, and of all of them together: what more would add to what is
# known of the noise of a site with hundreds of histories is nothing, and cutting takes the square of the runs.
_MAX_LEARNED, _LEARNED_TOGETHER = 2000, 200_000
_MIN_TRAINING_RUNS = 500
# DetectorSettings are learned from what was before the Monday (UTC) of the week of the latest run.
_WEEK_S, _MONDAY_S = 7 * 86400.0, 4 * 86400.0
# A change is fresh for so many runs.
MAX_RUNS_OF_NEW_CHANGE = 10
# Histories that a joint change must affect to be marked in the charts of the others.
MIN_LARGE_JOINT_HISTORIES = 3


@dataclass(frozen=True)
class HistoryAnalysis:
    """One history. `segments` lie between its changes; `level` is the median of the one it is in, `now` that of its
    last three runs; `noise` the robust standard deviation of the logarithms; `visible` the drop that ten more runs
    would probably show (None: too short); `caveats` what was found against its last `MAX_RUNS_OF_NEW_CHANGE` runs."""

    history: History
    segments: tuple[Segment, ...]
    now: float
    noise: float
    visible: float | None
    changes: tuple[Change, ...]
    caveats: tuple[CaveatCount, ...] = ()

    @property
    def current_level(self) -> float:
        return self.segments[-1].level

    @property
    def is_newly_slower(self) -> bool:
        """Whether its latest change is a drop that is not over and was noticed within its last ten runs."""
        last = self.changes[-1] if self.changes else None
        if last is None or not last.is_drop or last.is_temporary:
            return False
        return int(np.sum(self.history.times > last.noticed)) < MAX_RUNS_OF_NEW_CHANGE

    @property
    def is_still_slower(self) -> bool:
        """Whether its latest change is a drop of earlier runs that is not over."""
        last = self.changes[-1] if self.changes else None
        return last is not None and last.is_drop and not last.is_temporary and not self.is_newly_slower


@dataclass(frozen=True)
class Survey:
    """Histories that are long enough, the number of short ones, and the number of simulated ones that were omitted."""

    analyses: tuple[HistoryAnalysis, ...]
    joint: tuple[JointChange, ...]
    budget: AlarmBudget
    calibration: DetectorCalibration
    short: int
    simulated: int = 0
    environment_events: tuple[Event, ...] = ()

    @functools.cached_property
    def histories(self) -> tuple[History, ...]:
        return tuple(analysis.history for analysis in self.analyses)

    @functools.cached_property
    def distinguishing_labels(self) -> tuple[str, ...]:
        """Labels that distinguish these histories."""
        return select_distinguishing_labels(self.histories)

    @functools.cached_property
    def _count_joint_sizes(self) -> Mapping[tuple[int, float], int]:
        """Numbers of changes of joint changes, by history and time of each member."""
        return {
            (change.history, change.first_after): len(joint.changes) for joint in self.joint for change in joint.changes
        }

    @functools.cached_property
    def _find_large_joint_changes(self) -> Sequence[tuple[float, frozenset[float]]]:
        """Times of joint changes of at least `MANY` histories, each with the times of its changes."""
        return [
            (joint.begin_time, frozenset(change.first_after for change in joint.changes))
            for joint in self.joint
            if len(joint.changes) >= MIN_LARGE_JOINT_HISTORIES
        ]

    def count_histories_changed_together(self, change: Change) -> int:
        """The other histories that changed together with this change."""
        return self._count_joint_sizes.get((change.history, change.first_after), 1) - 1

    def find_changes_elsewhere(self, analysis: HistoryAnalysis) -> list[float]:
        """Times of joint changes of at least `MANY` histories at which this history did not change."""
        own_times = {change.first_after for change in analysis.changes}
        return [time for time, times in self._find_large_joint_changes if own_times.isdisjoint(times)]


def _split_into_segments_at_changes(history: History, changes: Sequence[Change]) -> tuple[Segment, ...]:
    """The segments between the noticed changes."""
    cuts = [0, *(int(np.searchsorted(history.times, change.first_after)) for change in changes), len(history)]
    return tuple(
        Segment(first, end, float(np.median(history.values[first:end])))
        for first, end in itertools.pairwise(cuts)
        if first < end
    )


@dataclass(frozen=True)
class _NoiseEstimate:
    """Noise of a history, estimated from its training runs: their segments, the robust standard deviation of the
    residuals, and the smallest drop that would be detected."""

    values: Floats
    parts: tuple[Segment, ...]
    noise: float
    visible: float | None

    @property
    def residuals(self) -> Floats:
        return compute_log_residuals(self.values, self.parts)


def survey_histories(
    histories: Sequence[History],
    alarms_per_year: float = 1.0,
    smallest_change: float = DetectorSettings.smallest_change,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    cache: ResultCache | None = None,
) -> Survey:
    """Watches all histories. `alarms_per_year` is the budget of false alarms of one history; `on_progress` is told how
    far the work is. `cache` supplies results of an earlier survey; the results are the same without
    it."""
    cache = cache or ResultCache()
    long = [history for history in histories if len(history) >= MIN_HISTORY_RUNS]
    total = 4 * len(long)
    taught = _select_training_runs(long)
    pace = float(np.median([history.runs_per_year for history in taught])) if long else 365.0
    budget = AlarmBudget(alarms_per_year, max(1.0, pace))
    most = min(_MAX_LEARNED, max(_MIN_TRAINING_RUNS, _LEARNED_TOGETHER // max(1, len(long))))
    learned = []
    for done, item in enumerate(taught):
        learned.append(_estimate_noise(item.values[-most:], cache))
        on_progress(done + 1, total)
    calibration = _calibrate_detector_settings(
        learned, budget, DetectorSettings(smallest_change=smallest_change), cache, on_progress
    )
    noticed = _find_changes(long, calibration.settings, cache, on_progress)
    least = -log(1 - smallest_change)
    noticed = [change for change in noticed if abs(log(change.size.value)) >= least]
    of_series: dict[int, list[Change]] = {}
    for change in noticed:
        of_series.setdefault(change.history, []).append(change)
    analyses = []
    for index, item in enumerate(long):
        own_changes = tuple(of_series.get(index, ()))
        analyses.append(
            HistoryAnalysis(
                history=item,
                segments=_split_into_segments_at_changes(item, own_changes),
                now=float(np.median(item.values[-_RUNS_OF_PRESENT_LEVEL:])),
                noise=learned[index].noise,
                visible=learned[index].visible,
                changes=own_changes,
            )
        )
        on_progress(3 * len(long) + 1 + index, total)
    joint = tuple(group_changes(long, noticed, cache.get_rate_ratio, cache.get_explanations))
    return Survey(tuple(analyses), joint, budget, calibration, len(histories) - len(long))


def _select_training_runs(long_histories: Sequence[History]) -> list[History]:
    """The runs that noise and pace are learned from: of histories that are long enough those before the week of the
    latest run of all. The settings therefore stay the same for a week, and a new run requires only the analysis of its
    own history."""
    latest = max((float(history.times[-1]) for history in long_histories), default=0.0)
    week = (latest - _MONDAY_S) // _WEEK_S * _WEEK_S + _MONDAY_S
    counts = [int(np.searchsorted(history.times, week)) for history in long_histories]
    return [
        History(history.labels, history.times[:count], history.values[:count], history.unit)
        if count >= MIN_NOISE_RUNS
        else history
        for history, count in zip(long_histories, counts, strict=True)
    ]


def _estimate_noise(log_rates: Floats, result_cache: ResultCache) -> _NoiseEstimate:
    def compute_noise_estimate() -> _NoiseEstimate:
        parts = tuple(find_segments(log_rates))
        noise = compute_log_residuals(log_rates, parts)
        return _NoiseEstimate(
            log_rates, parts, compute_robust_sd(noise), simulate_detectable_drop(noise, _KNOWN_RUNS, _NEW_RUNS)
        )

    return result_cache.get_or_compute(
        f"noise {compute_digest(log_rates)}",
        compute_noise_estimate,
        lambda stored: _NoiseEstimate(log_rates, tuple(Segment(*part) for part in stored[0]), stored[1], stored[2]),
        lambda item: [[[part.first, part.end, part.level] for part in item.parts], item.noise, item.visible],
    )


def _calibrate_detector_settings(
    noise_estimates: Sequence[_NoiseEstimate],
    budget: AlarmBudget,
    settings: DetectorSettings,
    result_cache: ResultCache,
    on_progress: Callable[[int, int], None],
) -> DetectorCalibration:
    tries = 0

    def report_try() -> None:
        # nobody knows how many it takes: each goes a tenth of what is left
        nonlocal tries
        tries += 1
        on_progress(len(noise_estimates) + int(len(noise_estimates) * (1 - 0.9**tries)), 4 * len(noise_estimates))

    return result_cache.get_or_compute(
        f"settings {compute_digest(repr(budget), repr(settings), *(estimate.values for estimate in noise_estimates))}",
        lambda: calibrate_detector(
            [estimate.residuals for estimate in noise_estimates], budget, settings, on_step=report_try
        ),
        DetectorCalibration.from_json,
        asdict,
    )


def _find_changes(
    long_histories: Sequence[History],
    settings: DetectorSettings,
    result_cache: ResultCache,
    on_progress: Callable[[int, int], None],
) -> list[Change]:
    before = {
        index: stood
        for index, history in enumerate(long_histories)
        if (stood := result_cache.find_stored_watch(history, settings)) is not None
    }

    def report_watch_progress(done_count: int, total_count: int) -> None:
        on_progress(2 * len(long_histories) + len(long_histories) * done_count // total_count, 4 * len(long_histories))

    result = watch_from_earlier_state(
        [history.log_rates for history in long_histories], settings, before, report_watch_progress
    )
    for history, far in zip(long_histories, result, strict=True):
        result_cache.store_watch(history, settings, far)
    return measure_changes(long_histories, sort_alarms(result), result_cache.get_rate_ratio)
