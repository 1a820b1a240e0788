# SPDX-License-Identifier: Apache-2.0
"""The survey of an archive: from the cache while the archive is unchanged, else computed and stored there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.model.errors import UserError
from sonde.model.event import Event
from sonde.model.simulation import is_simulated_key
from sonde.store.catalog import Catalog
from sonde.store.history import StoredHistory, list_histories_in_catalog
from sonde.store.selection import Selection
from sonde.trends.archive_histories import ProbeValue, merge_repeats_into_histories
from sonde.trends.detectors import DetectorSettings
from sonde.trends.doubtful_histories import add_caveats_to_survey
from sonde.trends.environment_events import find_environment_events
from sonde.trends.history import History
from sonde.trends.survey import Survey, survey_histories
from sonde.trends.survey_cache import SurveyCache, make_histories_key, make_selection_key, make_survey_key

# Makes a block in which `step(done, total)` shows the progress.
OpenProgressBar = Callable[[], AbstractContextManager[Callable[[int, int], None]]]


@dataclass(frozen=True)
class SurveyRequest:
    """Which runs are surveyed, and how. `budget`: false alarms per history and year."""

    wanted: Selection = field(default_factory=Selection)
    measure: ProbeValue = "delivered"
    budget: float = 1.0
    smallest_change: float = DetectorSettings.smallest_change

    @property
    def result_settings(self) -> tuple[object, ...]:
        """Settings that a result depends on besides the runs."""
        return self.wanted, self.measure, self.budget, self.smallest_change


def read_survey(
    catalog: Catalog, request: SurveyRequest, progress: OpenProgressBar, needs_values: bool = False
) -> Survey:
    """The survey of the archive. It is empty when no history was measured; simulated histories are only counted.

    `needs_values`: the histories have all their values; otherwise a cached survey may have outlines of them.
    """
    cache = SurveyCache(catalog.find_cache_folder("trend"))
    stamps = catalog.list_index_stamps()
    if stamps is not None and not needs_values:
        remembered = cache.load_cached_survey(make_survey_key(stamps, *request.result_settings))
        if remembered is not None:
            return remembered
    return read_survey_and_histories(catalog, request, progress)[0]


def read_measured_survey(
    catalog: Catalog, request: SurveyRequest, progress: OpenProgressBar, needs_values: bool = False
) -> Survey:
    """`read_survey`. Raises UserError if the archive has no measured history that matches the request."""
    survey = read_survey(catalog, request, progress, needs_values)
    if survey.analyses or survey.short:
        return survey
    if survey.simulated:
        raise UserError(
            f"All histories ({survey.simulated:,}) are simulated; a trend watches what was measured."
            " `sonde compare` compares simulated runs."
        )
    raise UserError(f"The archive {catalog.root} holds no history like that; `sonde list` shows its runs.")


def read_survey_and_histories(
    catalog: Catalog, request: SurveyRequest, progress: OpenProgressBar
) -> tuple[Survey, list[History]]:
    """The survey, whose histories have all their values, and all measured histories, also those too short for it."""
    cache = SurveyCache(catalog.find_cache_folder("trend"))
    stamps = catalog.list_index_stamps()
    measured, simulated = _select_measured(catalog, request)
    histories = merge_repeats_into_histories(measured, request.measure)
    key = make_histories_key(histories, *request.result_settings[1:])
    computed = cache.load_cached_survey(key, histories)
    if computed is None:
        computed = _compute_survey(cache, histories, request, progress)
        cache.store_survey(key, computed)
    # The caveats of runs do not follow from their values.
    computed = replace(
        add_caveats_to_survey(computed, catalog.root),
        simulated=simulated,
        environment_events=_find_environment_events(cache, computed, request, catalog.root),
    )
    # The files of the index may have been replaced while they were read.
    if stamps is not None and catalog.list_index_stamps() == stamps:
        cache.store_survey(make_survey_key(stamps, *request.result_settings), computed)
    return computed, histories


def _select_measured(catalog: Catalog, request: SurveyRequest) -> tuple[Sequence[StoredHistory], int]:
    selected = list_histories_in_catalog(catalog, request.wanted)
    measured = [history for history in selected if not is_simulated_key(history.key.system, history.key.file_system)]
    return measured, len(selected) - len(measured)


def _find_environment_events(
    cache: SurveyCache, survey: Survey, request: SurveyRequest, archive_root: Path
) -> tuple[Event, ...]:
    """The events from records; those of changes that an earlier survey had are cached."""
    wanted = replace(request.wanted, since_s=None, until_s=None)
    question = make_selection_key("environment", wanted, *request.result_settings[1:])
    results = cache.load_results(question)
    events = find_environment_events(archive_root, survey, results)
    cache.store_results(question, results, is_finished=True)
    return events


def _compute_survey(
    cache: SurveyCache, histories: Sequence[History], request: SurveyRequest, progress: OpenProgressBar
) -> Survey:
    """A new survey, which uses the results of an earlier one; an interrupted survey leaves its results too."""
    # Results belong to values, so they hold for any time span.
    question = make_selection_key(replace(request.wanted, since_s=None, until_s=None), *request.result_settings[1:])
    known_results = cache.load_results(question)
    is_finished = False
    try:
        with progress() as step:
            computed = survey_histories(histories, request.budget, request.smallest_change, step, known_results)
        is_finished = True
    finally:
        cache.store_results(question, known_results, is_finished)
    return computed
