# SPDX-License-Identifier: Apache-2.0
"""A survey that was made is kept beside the index: while nothing is new, nothing is computed or even read again.

Two keys lead to it. One is what the index itself is named by (months with their time stamps), so that an unchanged
archive is recognized by a few file names; the other is the histories themselves, so that runs which are in none of them
cost a look, not a survey. Where something is new, what was found out of the rest is kept too (`sonde.trends.known`).
Whatever does not fit, is damaged, or was made by other code, is as good as not there: like the index, what is kept here
is never the truth.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import sonde
from sonde.stats.ratio import Ratio
from sonde.stats.segments import Segment
from sonde.trends.budget import Budget, Calibration
from sonde.trends.changes import Change, JointChange, Part
from sonde.trends.doubted import Doubted
from sonde.trends.known import Known
from sonde.trends.scope import Explanation, Scope
from sonde.trends.series import Series
from sonde.trends.survey import FRESH, Standing, Survey

# Where the rules of a survey are written, below the package: when one says something else, what was kept is forgotten.
_PACKAGE = Path(__file__).resolve().parent.parent
_RULES = ("stats", "trends", "findings", "store/history.py")
_MOST_KEPT = 40
_ENDING = ".kept"


@dataclass(frozen=True)
class Remembered(Series):
    """A history of which only its labels, its length and its last times are at hand."""

    count: int = field(kw_only=True)

    def __len__(self) -> int:
        return self.count


def of_index(stamps: Sequence[str], *settings: object) -> str:
    """The key by what the index is named by."""
    return _digest("index", *stamps, *map(repr, settings))


def of_question(*settings: object) -> str:
    """The key to what is known of the histories that a question was about."""
    return _digest("question", *map(repr, settings))


def of_histories(found: Sequence[Series], *settings: object) -> str:
    """The key by the histories themselves."""
    known = hashlib.sha256(_digest("histories", *map(repr, settings)).encode())
    for one in found:
        known.update(json.dumps([dict(one.labels), one.unit, len(one)]).encode())
        known.update(np.ascontiguousarray(one.times).tobytes())
        known.update(np.ascontiguousarray(one.values).tobytes())
    return known.hexdigest()[:32]


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps([rules(), *parts]).encode()).hexdigest()[:32]


@functools.cache
def rules(package: Path = _PACKAGE) -> str:
    """A name for the code that makes a survey, and for the library that draws its random numbers."""
    known = hashlib.sha256(f"{sonde.__version__} {np.__version__}".encode())
    for place in _RULES:
        for file in sorted((package / place).glob("*.py")) or [package / place]:
            # where sources cannot be read the version stands for them
            with contextlib.suppress(OSError):
                known.update(file.read_bytes())
    return known.hexdigest()[:16]


@dataclass(frozen=True)
class Memory:
    """Surveys in a folder; none are kept where there is no folder to write to."""

    folder: Path | None

    def recall(self, key: str, series: Sequence[Series] | None = None) -> Survey | None:
        """The survey of that key. Its histories are those of `series` (all that were surveyed), else `Remembered`."""
        try:
            return _survey(self._read(key), series)
        except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError):
            return None  # absent, damaged, or of another form

    def recall_known(self, key: str) -> Known:
        """What is known of the histories of that key; nothing when nothing was kept."""
        try:
            document = self._read(key)
        except (OSError, ValueError, RecursionError):
            document = {}
        return Known(document)

    def keep(self, key: str, found: Survey) -> None:
        """Keeps a survey under a key."""
        self._write(key, _document(found))

    def keep_known(self, key: str, known: Known, finished: bool) -> None:
        """Keeps it for the next survey, of one that did not finish too."""
        self._write(key, known.document(finished))

    def _read(self, key: str) -> dict[str, Any]:
        """Raises OSError or ValueError when there is no such file as we write it."""
        if self.folder is None:
            raise FileNotFoundError(key)
        checksum, _, body = (self.folder / f"{key}{_ENDING}").read_bytes().partition(b"\n")
        if checksum != _checksum(body):
            raise ValueError("it was not written like that")
        document: dict[str, Any] = json.loads(body)
        return document

    def _write(self, key: str, document: Mapping[str, Any]) -> None:
        if self.folder is None:
            return
        body = json.dumps(document).encode()
        beside = self.folder / f".{secrets.token_hex(8)}.part"
        # no space, or somebody else's folder: it is computed again then
        with contextlib.suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            beside.write_bytes(_checksum(body) + b"\n" + body)
            beside.replace(self.folder / f"{key}{_ENDING}")
            kept = sorted(self.folder.glob(f"*{_ENDING}"), key=lambda path: path.stat().st_mtime_ns)
            for old in kept[:-_MOST_KEPT]:
                old.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.unlink(beside)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _document(found: Survey) -> dict[str, Any]:
    places = {id(change): at for at, change in enumerate(_all_changes(found))}
    return {
        "budget": asdict(found.budget),
        "calibration": asdict(found.calibration),
        "short": found.short,
        "changes": [asdict(one) for one in _all_changes(found)],
        "joint": [
            [
                {"changes": [places[id(one)] for one in part.changes], "explanation": asdict(part.explanation)}
                for part in joint.parts
            ]
            for joint in found.joint
        ],
        "standings": [
            {
                "labels": dict(one.series.labels),
                "unit": one.series.unit,
                "runs": len(one.series),
                "last": [float(time) for time in one.series.times[-FRESH - 1 :]],
                "stretches": [asdict(part) for part in one.stretches],
                "now": one.now,
                "noise": one.noise,
                "visible": one.visible,
                "changes": [places[id(change)] for change in one.changes],
                "doubts": [doubt.as_json() for doubt in one.doubts],
            }
            for one in found.standings
        ],
    }


def _all_changes(found: Survey) -> list[Change]:
    """Every change once: those of joint changes are those of the histories."""
    return list({id(one): one for standing in found.standings for one in standing.changes}.values())


def _survey(document: Mapping[str, Any], series: Sequence[Series] | None) -> Survey:
    changes = [_change(one) for one in document["changes"]]
    known = {one.labels["series"]: one for one in series} if series is not None else None
    return Survey(
        standings=tuple(_standing(one, changes, known) for one in document["standings"]),
        joint=tuple(JointChange(tuple(_part(part, changes) for part in joint)) for joint in document["joint"]),
        budget=Budget(**document["budget"]),
        calibration=Calibration.from_json(document["calibration"]),
        short=document["short"],
    )


def _standing(document: Mapping[str, Any], changes: Sequence[Change], known: Mapping[str, Series] | None) -> Standing:
    labels = document["labels"]
    if known is None:
        last = np.array(document["last"], dtype=float)
        series: Series = Remembered(labels, last, np.ones_like(last), document["unit"], count=document["runs"])
    else:
        series = known[labels["series"]]
    return Standing(
        series=series,
        stretches=tuple(Segment(**one) for one in document["stretches"]),
        now=document["now"],
        noise=document["noise"],
        visible=document["visible"],
        changes=tuple(changes[at] for at in document["changes"]),
        doubts=tuple(Doubted(**one) for one in document["doubts"]),
    )


def _change(document: Mapping[str, Any]) -> Change:
    return Change(**{**document, "size": Ratio(**document["size"]), "since": Ratio(**document["since"])})


def _part(document: Mapping[str, Any], changes: Sequence[Change]) -> Part:
    why = document["explanation"]
    scopes = tuple(
        Scope(**{**one, "spans": {name: (span[0], span[1]) for name, span in one["spans"].items()}})
        for one in why["scopes"]
    )
    return Part(tuple(changes[at] for at in document["changes"]), Explanation(**{**why, "scopes": scopes}))
