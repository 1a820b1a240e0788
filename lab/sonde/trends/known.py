# SPDX-License-Identifier: Apache-2.0
"""What a survey found out of some numbers is true of these numbers for good: the next survey takes it over.

Every answer is kept by a digest of all that it follows from: the noise of a history by its runs, the settings by all
noises, a ratio by its two sides. The watch of a history is kept with where it stands after so many runs, and goes on
from there when the history begins with exactly these runs. So nothing has to be told that a run was removed, or came in
between, or that somebody asks with other options: these are other numbers, and are not found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from sonde.stats.ranks import Floats
from sonde.stats.ratio import Ratio, ratio
from sonde.trends.lanes import Alarm, Place, Settings
from sonde.trends.series import Series
from sonde.trends.watch import Watched

Answer = TypeVar("Answer")


def digest(*parts: Floats | str) -> str:
    """One name for arrays and texts."""
    known = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part.encode() if isinstance(part, str) else np.ascontiguousarray(part, dtype=float).tobytes()
        known.update(f"{type(part).__name__} {len(content)} ".encode())
        known.update(content)
    return known.hexdigest()


class Known:
    """Answers of the survey before, and those that this one gave: only these go into the next."""

    def __init__(self, before: Mapping[str, Any] | None = None) -> None:
        """`before`: what `document` said then."""
        self._before: Mapping[str, Any] = before or {}
        self._now: dict[str, Any] = {}

    def document(self, finished: bool = True) -> dict[str, Any]:
        """All that is to be kept, as JSON. A survey that did not finish has asked for some of it only: the rest of what
        was known stays."""
        return dict(self._now) if finished else {**self._before, **self._now}

    def answer(
        self, question: str, make: Callable[[], Answer], read: Callable[[Any], Answer], write: Callable[[Answer], Any]
    ) -> Answer:
        """The answer to a question, `make` where it is not known. `read` and `write` lead from JSON and to it."""
        kept = self._now.get(question, self._before.get(question))
        found = self._read(kept, read)
        if found is None:
            found = make()
            kept = write(found)
        self._now[question] = kept
        return found

    @staticmethod
    def _read(kept: Any, read: Callable[[Any], Answer]) -> Answer | None:
        if kept is None:
            return None
        try:
            return read(kept)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return None  # not what we write

    def ratio(self, before: Floats, after: Floats, test: bool = True) -> Ratio:
        """`sonde.stats.ratio.ratio` of these two sides."""
        return self.answer(
            f"ratio {digest(before, after)} {test:d}",
            lambda: ratio(before, after, test=test),
            lambda kept: Ratio(*kept),
            lambda one: [one.value, one.low, one.high, one.p, one.before, one.after, one.confidence, one.why],
        )

    def watched(self, one: Series, settings: Settings) -> Watched | None:
        """Where the watch of a history stood, if it begins with the runs that were watched then."""

        def read(kept: Any) -> Watched | None:
            place = Place(kept["runs"], kept["filled"], tuple(kept["held"]) if kept["held"] else None)
            if place.runs > len(one) or kept["values"] != digest(one.values[: place.runs]):
                return None
            return Watched(place, tuple(Alarm(0, *alarm) for alarm in kept["alarms"]))

        return self._read(self._before.get(_watch_of(one, settings)), read)

    def keep_watched(self, one: Series, settings: Settings, watched: Watched) -> None:
        """Keeps where the watch of a history stands now, after all of its runs."""
        self._now[_watch_of(one, settings)] = {
            "values": digest(one.values),
            "runs": watched.place.runs,
            "filled": watched.place.filled,
            "held": watched.place.held,
            "alarms": [
                [alarm.lane, alarm.noticed, alarm.first, alarm.before, alarm.after, alarm.strength]
                for alarm in watched.alarms
            ],
        }


def _watch_of(one: Series, settings: Settings) -> str:
    return f"watch {digest(json.dumps(dict(one.labels), sort_keys=True), repr(settings))}"
