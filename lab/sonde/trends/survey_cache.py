# SPDX-License-Identifier: Apache-2.0
"""The cache of surveys next to the index: an unchanged archive needs no computation and no reading of its runs.

A survey has two keys: the names of the index files (months with time stamps), which identify an unchanged archive, and
a digest of the histories, so that runs outside all histories cause no new survey. For changed archives the results for
single histories are cached too (`sonde.trends.result_cache`). The keys contain the version of the code; entries that
are damaged or have another form are ignored.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sonde.model.confined_files import ConfinedDirectory, open_file
from sonde.model.version import __version__
from sonde.stats.ratio import RateRatio
from sonde.stats.segments import Segment
from sonde.trends.budget import AlarmBudget, DetectorCalibration
from sonde.trends.changes import Change, JointChange, JointChangePart
from sonde.trends.environment_events import convert_event_from_json, convert_event_to_json
from sonde.trends.history import History
from sonde.trends.result_cache import ResultCache
from sonde.trends.run_caveats import CaveatCount
from sonde.trends.scope import JointChangeExplanation
from sonde.trends.survey import MAX_RUNS_OF_NEW_CHANGE, HistoryAnalysis, Survey

# Sources that determine a survey, below the package: a change of one invalidates the cache.
_PACKAGE_FOLDER = Path(__file__).resolve().parent.parent
_SURVEY_CODE_PATHS = ("stats", "trends", "findings", "store/history.py")
_MAX_CACHE_FILES = 40
_CACHE_FILE_SUFFIX = ".kept"


@dataclass(frozen=True)
class HistoryOutline(History):
    """A history with its labels, length and last times only."""

    count: int = field(kw_only=True)

    def __len__(self) -> int:
        return self.count


def make_survey_key(index_file_names: Sequence[str], *settings: object) -> str:
    """The key of a survey by the names of the index files."""
    return _compute_key("index", *index_file_names, *map(repr, settings))


def make_selection_key(*settings: object) -> str:
    """The key of the cached results for one selection of histories."""
    return _compute_key("question", *map(repr, settings))


def make_histories_key(histories: Sequence[History], *settings: object) -> str:
    """The key of a survey by its histories."""
    cache = hashlib.sha256(_compute_key("histories", *map(repr, settings)).encode())
    for history in histories:
        cache.update(json.dumps([dict(history.labels), history.unit, len(history)]).encode())
        cache.update(np.ascontiguousarray(history.times).tobytes())
        cache.update(np.ascontiguousarray(history.values).tobytes())
    return cache.hexdigest()[:32]


def _compute_key(*parts: str) -> str:
    return hashlib.sha256(json.dumps([hash_survey_code(), *parts]).encode()).hexdigest()[:32]


@functools.cache
def hash_survey_code(package_folder: Path = _PACKAGE_FOLDER) -> str:
    """A digest of the code that computes a survey, with the versions of Sonde and NumPy (random numbers)."""
    cache = hashlib.sha256(f"{__version__} {np.__version__}".encode())
    for rule in _SURVEY_CODE_PATHS:
        for file in sorted((package_folder / rule).glob("*.py")) or [package_folder / rule]:
            # The version identifies sources that cannot be read.
            with contextlib.suppress(OSError):
                cache.update(file.read_bytes())
    return cache.hexdigest()[:16]


@dataclass(frozen=True)
class SurveyCache:
    """Surveys in a folder; None disables the cache."""

    folder: Path | None

    def load_cached_survey(self, survey_key: str, histories: Sequence[History] | None = None) -> Survey | None:
        """The survey with this key, None if absent. Its histories come from `histories`, else they are outlines."""
        try:
            return _convert_survey_from_json(self._read_document(survey_key), histories)
        except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError):
            return None  # absent, damaged, or of another form

    def load_results(self, results_key: str) -> ResultCache:
        """The cached results with this key; empty if absent."""
        try:
            document = self._read_document(results_key)
        except (OSError, ValueError, RecursionError):
            document = {}
        return ResultCache(document)

    def store_survey(self, survey_key: str, survey: Survey) -> None:
        """Stores a survey under a key."""
        self._write_document(survey_key, _convert_survey_to_json(survey))

    def store_results(self, results_key: str, result_cache: ResultCache, is_finished: bool) -> None:
        """Stores results for the next survey, also those of an interrupted one."""
        self._write_document(results_key, result_cache.build_document(is_finished))

    def _read_document(self, file_key: str) -> dict[str, Any]:
        """Raises OSError or ValueError for a file that is absent or damaged."""
        if self.folder is None:
            raise FileNotFoundError(file_key)
        checksum, _, body = self._read_file_content(file_key).partition(b"\n")
        if checksum != _compute_checksum(body):
            raise ValueError("the checksum does not match")
        document: dict[str, Any] = json.loads(body)
        return document

    def _write_document(self, file_key: str, cached_document: Mapping[str, Any]) -> None:
        if self.folder is None:
            return
        body = json.dumps(cached_document).encode()
        # No space, or a folder of another user: the next survey is computed again.
        with contextlib.suppress(OSError), ConfinedDirectory.open(self.folder, create_if_absent=True) as folder:
            folder.write_bytes(f"{file_key}{_CACHE_FILE_SUFFIX}", _compute_checksum(body) + b"\n" + body)
            names = [name for name in folder.list_names() if name.endswith(_CACHE_FILE_SUFFIX)]
            for old in sorted(names, key=lambda name: folder.stat_entry(name).st_mtime_ns)[:-_MAX_CACHE_FILES]:
                folder.remove_file(old, missing_ok=True)

    def _read_file_content(self, file_key: str) -> bytes:
        assert self.folder is not None
        with open_file(self.folder / f"{file_key}{_CACHE_FILE_SUFFIX}") as file:
            return file.read()


def _compute_checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _convert_survey_to_json(survey: Survey) -> dict[str, Any]:
    places = {id(change): index for index, change in enumerate(_list_all_changes(survey))}
    return {
        "budget": asdict(survey.budget),
        "calibration": asdict(survey.calibration),
        "short": survey.short,
        "simulated": survey.simulated,
        "environment_events": [convert_event_to_json(event) for event in survey.environment_events],
        "changes": [asdict(change) for change in _list_all_changes(survey)],
        "joint": [
            [
                {"changes": [places[id(change)] for change in part.changes], "explanation": asdict(part.explanation)}
                for part in joint.parts
            ]
            for joint in survey.joint
        ],
        "analyses": [
            {
                "labels": dict(analysis.history.labels),
                "unit": analysis.history.unit,
                "runs": len(analysis.history),
                "last": [float(time) for time in analysis.history.times[-MAX_RUNS_OF_NEW_CHANGE - 1 :]],
                "segments": [asdict(part) for part in analysis.segments],
                "now": analysis.now,
                "noise": analysis.noise,
                "visible": analysis.visible,
                "changes": [places[id(change)] for change in analysis.changes],
                "caveats": [caveat.to_json() for caveat in analysis.caveats],
            }
            for analysis in survey.analyses
        ],
    }


def _list_all_changes(survey: Survey) -> list[Change]:
    """Every change once; joint changes refer to the changes of the histories."""
    return list({id(change): change for analysis in survey.analyses for change in analysis.changes}.values())


def _convert_survey_from_json(survey_document: Mapping[str, Any], histories: Sequence[History] | None) -> Survey:
    changes = [_convert_change_from_json(item) for item in survey_document["changes"]]
    cache = {line.labels["history"]: line for line in histories} if histories is not None else None
    return Survey(
        analyses=tuple(_read_analysis(item, changes, cache) for item in survey_document["analyses"]),
        joint=tuple(
            JointChange(tuple(_convert_part_from_json(part, changes) for part in joint))
            for joint in survey_document["joint"]
        ),
        budget=AlarmBudget(**survey_document["budget"]),
        calibration=DetectorCalibration.from_json(survey_document["calibration"]),
        short=survey_document["short"],
        simulated=survey_document["simulated"],
        environment_events=tuple(convert_event_from_json(item) for item in survey_document["environment_events"]),
    )


def _read_analysis(
    analysis_document: Mapping[str, Any], changes: Sequence[Change], history_by_id: Mapping[str, History] | None
) -> HistoryAnalysis:
    labels = analysis_document["labels"]
    if history_by_id is None:
        last = np.array(analysis_document["last"], dtype=float)
        history: History = HistoryOutline(
            labels, last, np.ones_like(last), analysis_document["unit"], count=analysis_document["runs"]
        )
    else:
        history = history_by_id[labels["history"]]
    return HistoryAnalysis(
        history=history,
        segments=tuple(Segment(**item) for item in analysis_document["segments"]),
        now=analysis_document["now"],
        noise=analysis_document["noise"],
        visible=analysis_document["visible"],
        changes=tuple(changes[index] for index in analysis_document["changes"]),
        caveats=tuple(CaveatCount(**item) for item in analysis_document["caveats"]),
    )


def _convert_change_from_json(change_document: Mapping[str, Any]) -> Change:
    return Change(
        **{
            **change_document,
            "size": RateRatio(**change_document["size"]),
            "since": RateRatio(**change_document["since"]),
        }
    )


def _convert_part_from_json(part_document: Mapping[str, Any], changes: Sequence[Change]) -> JointChangePart:
    return JointChangePart(
        tuple(changes[index] for index in part_document["changes"]),
        JointChangeExplanation.from_json(part_document["explanation"]),
    )
