# SPDX-License-Identifier: Apache-2.0
"""A cache of the results that a survey computes from numbers, keyed by a digest of these numbers.

The noise of a history is keyed by its runs, detector settings by all noises, a ratio by its two sides. The detectors'
state of a history is stored with its number of runs, and resumed if the history begins with exactly these runs. Added
or removed runs and other options give other digests, so that nothing has to be invalidated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from sonde.stats.ranks import Floats
from sonde.stats.ratio import RateRatio, compare_rates
from sonde.trends.detectors import Alarm, DetectorSettings, DetectorState
from sonde.trends.history import History
from sonde.trends.scope import JointChangeExplanation
from sonde.trends.watch import HistoryWatch

CachedResult = TypeVar("CachedResult")


def compute_digest(*parts: Floats | str) -> str:
    """One digest for arrays and texts."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part.encode() if isinstance(part, str) else np.ascontiguousarray(part, dtype=float).tobytes()
        hasher.update(f"{type(part).__name__} {len(content)} ".encode())
        hasher.update(content)
    return hasher.hexdigest()


class ResultCache:
    """Results of the previous survey, and those that this survey used or computed; only the latter are stored for the
    next one."""

    def __init__(self, previous_document: Mapping[str, Any] | None = None) -> None:
        """`previous_document` is what `build_document` made of the previous survey."""
        self._before: Mapping[str, Any] = previous_document or {}
        self._now: dict[str, Any] = {}

    def build_document(self, is_finished: bool = True) -> dict[str, Any]:
        """The JSON form of the results to store; an unfinished survey keeps the previous ones too."""
        return dict(self._now) if is_finished else {**self._before, **self._now}

    def get_or_compute(
        self,
        cache_key: str,
        compute: Callable[[], CachedResult],
        convert_from_json: Callable[[Any], CachedResult],
        convert_to_json: Callable[[CachedResult], Any],
    ) -> CachedResult:
        """The result with key `cache_key`, computed by `compute` if absent. `convert_from_json` and `convert_to_json`
        convert from and to JSON."""
        stored = self._now.get(cache_key, self._before.get(cache_key))
        result = self._convert_stored_result(stored, convert_from_json)
        if result is None:
            result = compute()
            stored = convert_to_json(result)
        self._now[cache_key] = stored
        return result

    @staticmethod
    def _convert_stored_result(
        stored_document: Any, convert_from_json: Callable[[Any], CachedResult]
    ) -> CachedResult | None:
        if stored_document is None:
            return None
        try:
            return convert_from_json(stored_document)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return None  # of another form

    def get_rate_ratio(self, rates_before: Floats, rates_after: Floats, with_p_value: bool = True) -> RateRatio:
        """The cached `sonde.stats.ratio.ratio` of two sides."""
        return self.get_or_compute(
            f"ratio {compute_digest(rates_before, rates_after)} {with_p_value:d}",
            lambda: compare_rates(rates_before, rates_after, with_p_value=with_p_value),
            lambda stored: RateRatio(*stored),
            lambda item: [item.value, item.low, item.high, item.p, item.before, item.after, item.confidence, item.why],
        )

    def get_explanations(
        self, explanation_key: str, compute_explanations: Callable[[], list[JointChangeExplanation]]
    ) -> list[JointChangeExplanation]:
        """The cached explanations of the parts of a joint change."""
        return self.get_or_compute(
            f"explanations {explanation_key}",
            compute_explanations,
            lambda stored: [JointChangeExplanation.from_json(item) for item in stored],
            lambda explanations: [asdict(explanation) for explanation in explanations],
        )

    def find_stored_watch(self, history: History, settings: DetectorSettings) -> HistoryWatch | None:
        """The stored watch of a history, if the history begins with the runs watched then."""

        def convert_watch_from_json(stored_document: Any) -> HistoryWatch | None:
            state = DetectorState(
                stored_document["runs"],
                stored_document["filled"],
                tuple(stored_document["reference"]) if stored_document["reference"] else None,
            )
            if state.runs > len(history) or stored_document["values"] != compute_digest(history.values[: state.runs]):
                return None
            return HistoryWatch(state, tuple(Alarm(0, *alarm) for alarm in stored_document["alarms"]))

        return self._convert_stored_result(
            self._before.get(_make_watch_key(history, settings)), convert_watch_from_json
        )

    def store_watch(self, history: History, settings: DetectorSettings, history_watch: HistoryWatch) -> None:
        """Stores the watch of a history after all its runs."""
        self._now[_make_watch_key(history, settings)] = {
            "values": compute_digest(history.values),
            "runs": history_watch.state.runs,
            "filled": history_watch.state.filled,
            "reference": history_watch.state.reference,
            "alarms": [
                [alarm.detector, alarm.noticed, alarm.first, alarm.before, alarm.after, alarm.strength]
                for alarm in history_watch.alarms
            ],
        }


def _make_watch_key(history: History, settings: DetectorSettings) -> str:
    return f"watch {compute_digest(json.dumps(dict(history.labels), sort_keys=True), repr(settings))}"
