# SPDX-License-Identifier: Apache-2.0
"""The public class for an archive of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sonde.model.errors import UserError
from sonde.public.arguments import Texts, list_texts, require_choice, require_range
from sonde.public.runs import Run, RunList, load_run
from sonde.store.archive import Archive
from sonde.store.selection import RUN_STATUSES, VALIDITIES, Selection, parse_moment

if TYPE_CHECKING:
    from sonde.public.comparing import GateResult, RunComparison, TrendResult
    from sonde.public.experiment_results import ExecutedExperiment
    from sonde.store.catalog import Catalog
    from sonde.store.summary import Summary


class ArchiveReader:
    """An archive that was opened. Nothing is locked; each call sees what is there then."""

    def __init__(self, archive: str | Path | None = None) -> None:
        """See `sonde.open`."""
        self._archive = Archive.from_option(str(archive) if archive is not None else None)
        if archive is not None and not self._archive.root.is_dir():
            raise UserError(f"There is no archive {self._archive.root}; name the folder that holds the runs.")

    @property
    def root(self) -> Path:
        """The folder of the archive."""
        return self._archive.root

    def __repr__(self) -> str:
        return f"<archive {self.root}>"

    def runs(
        self,
        *,
        plan: str = "",
        on: str = "",
        system: str = "",
        source: str = "",
        status: str = "",
        validity: str = "",
        tag: Texts = (),
        finding: str = "",
        since: str = "",
        until: str = "",
        last: int | None = None,
    ) -> RunList:
        """Runs that match all filters, the oldest first; the filters are those of `sonde list`.

        `since` and `until` are days, times (UTC) or spans like "7d". Calibrations of checks are left out. Raises
        UserError for an invalid time, status, validity or number.
        """
        if last is not None:
            require_range("last", last, 1, 2**62)
        selection = build_selection(plan, on, system, source, status, validity, tag, finding, since, until)
        return RunList(self._open_catalog, selection, last)

    def run(self, name: str = "last") -> Run:
        """One run: an id, a unique beginning of one, a folder, or "last". Raises UserError unless it is exactly one."""
        return load_run(self._archive.find_run_folders(name)[-1])

    def experiment(self, name: str = "last") -> ExecutedExperiment:
        """An experiment that was run, completely or partly: its group, a unique beginning of one, or "last". Raises
        UserError unless it is exactly one."""
        from sonde.public.experiment_results import read_executed_experiment

        return read_executed_experiment(self._archive, name)

    def compare(
        self,
        before: str,
        after: str,
        *,
        smallest_change: float = 0.10,
        with_simulated: bool = False,
        system: str | Path | None = None,
    ) -> RunComparison:
        """Compares two sides number by number, as `sonde compare` does.

        A side is a run, a group of runs, "last", "tag:WORD", "baseline:NAME", "plan:TEXT" or a time like
        "2026-08-01..2026-08-31". Changes smaller than the fraction `smallest_change` count as no change. `system` is a
        system file or the name of a shipped one. Raises UserError if the sides have no number in common.
        """
        from sonde.model.bundled_files import find_system_file
        from sonde.model.system import read_system
        from sonde.public.comparing import make_comparison
        from sonde.trends.archive_comparison import compare_archive_sides

        require_range("smallest_change", smallest_change, 0, 0.99)
        machine = read_system(find_system_file(str(system))) if system else None
        hint = "with_simulated=True compares them all the same."
        return make_comparison(
            compare_archive_sides(self._archive, before, after, hint, smallest_change, with_simulated, machine)
        )

    def trends(
        self,
        *,
        plan: str = "",
        on: str = "",
        system: str = "",
        tag: Texts = (),
        since: str = "",
        until: str = "",
        measure: Literal["delivered", "capability"] = "delivered",
        budget: float = 1.0,
        smallest_change: float = 0.10,
    ) -> TrendResult:
        """Watches the histories of the runs that match all filters, as `sonde trend` does.

        `measure`: of several repeats of a probe take the median or the best. `budget`: false alarms that a history may
        raise in a year. Raises UserError if no measured history matches.
        """
        from contextlib import nullcontext

        from sonde.public.comparing import convert_survey_to_trends
        from sonde.store.events import read_archive_events
        from sonde.trends.archive_survey import SurveyRequest, read_measured_survey

        require_choice("measure", measure, ("delivered", "capability"))
        require_range("budget", budget, 0.01, 50)
        require_range("smallest_change", smallest_change, 0, 0.99)
        selection = build_selection(plan, on, system, "", "", "", tag, "", since, until)
        request = SurveyRequest(selection, measure, budget, smallest_change)
        survey = read_measured_survey(
            self._open_catalog(), request, lambda: nullcontext(lambda done, total: None), needs_values=True
        )
        return convert_survey_to_trends(survey, measure, [*read_archive_events(self.root), *survey.environment_events])

    def gate(self, run: str = "last", *, baseline: str = "", at_least: Texts = (), retests: int = 0) -> GateResult:
        """Checks a run against a baseline or limits, as `sonde gate` does.

        `baseline` is the name of a baseline, or a side as for `compare`; `at_least` are texts like "write=10GB/s-10%".
        A run that is too slow is repeated up to `retests` times. Raises UserError, also if there is nothing to compare.
        """
        from sonde.public.comparing import make_gate_result
        from sonde.trends.archive_gate import gate_against_baseline, gate_against_limits, repeat_run
        from sonde.trends.stated_limits import parse_limit

        require_range("retests", retests, 0, 20)
        if bool(baseline) == bool(at_least):
            raise UserError("Say what to compare with: either baseline=NAME or at_least=[PHASE=RATE].")

        def repeat(summary: Summary) -> Summary:
            return repeat_run(summary, self._archive, lambda kind, line: None)

        if baseline:
            return make_gate_result(gate_against_baseline(self._archive, run, baseline, retests, repeat))
        limits = [parse_limit(text) for text in list_texts(at_least)]
        return make_gate_result(gate_against_limits(self._archive, run, limits, retests, repeat))

    def query(self, sql: str, allow_files: bool = False) -> Any:
        """The answer to SQL over the tables `runs`, `phases`, `series` and `tasks`, as a pyarrow table.

        The statement reaches no other file unless `allow_files` is true. Raises UserError with the reason when it
        cannot be answered.
        """
        from sonde.store import sql as database

        return database.execute_query(self._open_catalog(), Selection(), sql, allow_files).table

    def _open_catalog(self) -> Catalog:
        # importing pyarrow takes long, and a caller that needs only the version does not need it
        from sonde.store.catalog import Catalog

        return Catalog(self.root)


def open_archive(archive: str | Path | None = None) -> ArchiveReader:
    """Opens an archive: that folder, else $SONDE_ARCHIVE, else ./sonde-archive, as for the command.

    Raises UserError if the given folder is not there. Without one, an archive that is not there has no runs.
    """
    return ArchiveReader(archive)


def build_selection(
    plan: str,
    on: str,
    system: str,
    source: str,
    status: str,
    validity: str,
    tag: Texts,
    finding: str,
    since: str,
    until: str,
) -> Selection:
    """Returns the selection for the filters of the public methods. Raises UserError for an invalid time, status or
    validity."""
    for name, value, choices in (("status", status, RUN_STATUSES), ("validity", validity, VALIDITIES)):
        if value:
            require_choice(name, value, choices)
    return Selection(
        plan=plan,
        target=on,
        system=system,
        source=source,
        status=status,
        validity=validity,
        tags=list_texts(tag),
        finding=finding,
        since_s=parse_moment(since, "since") if since else None,
        until_s=parse_moment(until, "until") if until else None,
    )
