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
from sonde.trends.scope import Explanation
from sonde.trends.watch import HistoryWatch

Answer = TypeVar("Answer")


def compute_digest(*parts: Floats | str) -> str:
    """One digest for arrays and texts."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part.encode() if isinstance(part, str) else np.ascontiguousarray(part, dtype=float).tobytes()
        hasher.update(f"{type(part).__name__} {len(content)} ".encode())
        hasher.update(content)
    return hasher.hexdigest()


class ResultCache:
    """OperationTimes of the survey before, and those that this one gave: only these go into the next."""

    def __init__(self, before: Mapping[str, Any] | None = None) -> None:
        """`before` is the `document` of the previous survey."""
        self._before: Mapping[str, Any] = before or {}
        self._now: dict[str, Any] = {}

    def document(self, finished: bool = True) -> dict[str, Any]:
        """The JSON form of the results to store; an unfinished survey keeps the previous ones too."""
        return dict(self._now) if finished else {**self._before, **self._now}

    def answer(
        self, key: str, make: Callable[[], Answer], read: Callable[[Any], Answer], write: Callable[[Answer], Any]
    ) -> Answer:
        """The result with key `key`, computed by `make` if absent. `read` and `write` convert from and to JSON."""
        stored = self._now.get(key, self._before.get(key))
        result = self._read_stored(stored, read)
        if result is None:
            result = make()
            stored = write(result)
        self._now[key] = stored
        return result

    @staticmethod
    def _read_stored(stored: Any, read: Callable[[Any], Answer]) -> Answer | None:
        if stored is None:
            return None
        try:
            return read(stored)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return None  # of another form

    def ratio(self, before: Floats, after: Floats, test: bool = True) -> RateRatio:
        """The cached `sonde.stats.ratio.ratio` of two sides."""
        return self.answer(
            f"ratio {compute_digest(before, after)} {test:d}",
            lambda: compare_rates(before, after, with_p_value=test),
            lambda stored: RateRatio(*stored),
            lambda item: [item.value, item.low, item.high, item.p, item.before, item.after, item.confidence, item.why],
        )

    def explanations(self, key: str, make: Callable[[], list[Explanation]]) -> list[Explanation]:
        """The cached explanations of the parts of a joint change."""
        return self.answer(
            f"explanations {key}",
            make,
            lambda stored: [Explanation.from_json(item) for item in stored],
            lambda explanations: [asdict(explanation) for explanation in explanations],
        )

    def watched(self, history: History, settings: DetectorSettings) -> HistoryWatch | None:
        """The stored watch of a history, if the history begins with the runs watched then."""

        def read(stored: Any) -> HistoryWatch | None:
            state = DetectorState(
                stored["runs"], stored["filled"], tuple(stored["reference"]) if stored["reference"] else None
            )
            if state.runs > len(history) or stored["values"] != compute_digest(history.values[: state.runs]):
                return None
            return HistoryWatch(state, tuple(Alarm(0, *alarm) for alarm in stored["alarms"]))

        return self._read_stored(self._before.get(_make_watch_key(history, settings)), read)

    def store_watch(self, history: History, settings: DetectorSettings, watched: HistoryWatch) -> None:
        """Stores the watch of a history after all its runs."""
        self._now[_make_watch_key(history, settings)] = {
            "values": compute_digest(history.values),
            "runs": watched.state.runs,
            "filled": watched.state.filled,
            "reference": watched.state.reference,
            "alarms": [
                [alarm.detector, alarm.noticed, alarm.first, alarm.before, alarm.after, alarm.strength]
                for alarm in watched.alarms
            ],
        }


def _make_watch_key(history: History, settings: DetectorSettings) -> str:
    return f"watch {compute_digest(json.dumps(dict(history.labels), sort_keys=True), repr(settings))}"
