# SPDX-License-Identifier: Apache-2.0
"""Tunes settings one after the other, each on top of those that were better, and leaves the system as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from sonde.model.errors import MachineError, PlanError, StoppedError, UserError
from sonde.model.plan import Plan
from sonde.model.units import parse_bytes
from sonde.tune.description import Tunable, TuneRequest
from sonde.tune.journal import ChangeJournal, JournalEntry, block_stop_signals
from sonde.tune.search import (
    RejectedValueError,
    SearchResult,
    SearchRule,
    compare_candidate_with_present_value,
    estimate_min_and_max_runs,
    search_best_value,
)
from sonde.tune.system_settings import ResolvedSetting, SettingError, require_setting_can_be_undone, resolve_setting

UNSET = "off"  # of an environment variable: without it
_NOT_STATED = "not stated"


@dataclass(frozen=True)
class TuneVariant:
    """Plan, environment variables and model parameters of a run, next to the settings of the machine."""

    plan: Plan
    title: str = "present values"
    environment: Mapping[str, str] = field(default_factory=dict)
    model: Mapping[str, str] = field(default_factory=dict)  # parameters of a simulated machine, by name


class TuneRunner(Protocol):
    """Executes one run."""

    simulated: bool
    expected: int  # runs at most

    def measure_variant(self, variant: TuneVariant) -> float:
        """Runs the plan and returns the rate that is tuned. Raises UserError when the run fails."""


@dataclass(frozen=True)
class TunedSetting:
    """A tunable, its present value and what the search found."""

    tunable: Tunable
    present: str
    result: SearchResult


@dataclass(frozen=True)
class TuneOutcome:
    """All tuned settings. `together` compares all better values with the present ones, if there are several."""

    settings: tuple[TunedSetting, ...]
    together: SearchResult | None = None
    applied: tuple[str, ...] = ()  # tunables whose value was left in place
    problems: tuple[str, ...] = ()  # settings that could not be restored


@dataclass
class _SystemChange:
    """A setting of the machine with its values from before."""

    setting: ResolvedSetting
    state: dict[str, str]


@dataclass
class TuningSession:
    """One tuning. `report` gets a sentence for each step."""

    plan: Plan
    directory: Path
    runner: TuneRunner
    journal: ChangeJournal
    rule: SearchRule = field(default_factory=SearchRule)
    seed: int = 1
    device: str = ""
    report: Callable[[str], None] = lambda sentence: None
    _changes: dict[str, _SystemChange] = field(default_factory=dict, init=False)
    _values: dict[str, str] = field(default_factory=dict, init=False)  # tunable -> value that is set now
    _tunables: dict[str, Tunable] = field(default_factory=dict, init=False)

    def tune_all_settings(self, requests: Sequence[TuneRequest], keeps_best_values: bool) -> TuneOutcome:
        """Tunes all settings. Restores the machine at the end, also after an error or a signal; `keeps_best_values`
        leaves the better values of the machine in place."""
        self._tunables = {request.tunable.id: request.tunable for request in requests}
        self.runner.expected = sum(estimate_min_and_max_runs(len(request.values), self.rule)[1] for request in requests)
        winners: dict[str, str] = {}
        tuned: list[TunedSetting] = []
        together: SearchResult | None = None
        applied: tuple[str, ...] = ()
        try:
            self._bind_settings(requests)
            for request in requests:
                setting = self._tune_setting(request, winners)
                tuned.append(setting)
                if setting.result.is_better and setting.result.best is not None:
                    winners[request.tunable.id] = setting.result.best
            if len(winners) > 1:
                self.report("All better values together, against the present ones.")
                together = self._compare_together(winners)
            if keeps_best_values and (together is None or together.is_better):
                applied = self._apply_winners(winners)
        finally:
            problems = self.journal.restore_pending()
            for problem in problems:
                self.report(problem)
        return TuneOutcome(tuple(tuned), together, applied, tuple(problems))

    def _bind_settings(self, requests: Sequence[TuneRequest]) -> None:
        """Reads each setting, stores it in the journal, and requires that it can be set again. Raises UserError."""
        for request in requests:
            tunable = request.tunable
            if self.runner.simulated:
                if not tunable.model and tunable.kind != "plan":
                    raise UserError(f"{tunable.id} is no setting of simulated machines; leave out --system.")
                continue
            if not tunable.changes_system:
                continue
            try:
                setting = resolve_setting(tunable, self.directory, self.device)
                state = setting.read_state()
            except SettingError as reason:
                raise MachineError(f"{tunable.id} cannot be tuned here: {reason}.") from None
            self.journal.add_pending_change(JournalEntry(tunable.id, setting, state))
            require_setting_can_be_undone(setting, state)
            self._changes[tunable.id] = _SystemChange(setting, state)

    def _tune_setting(self, tune_request: TuneRequest, best_value_by_tunable: Mapping[str, str]) -> TunedSetting:
        tunable = tune_request.tunable
        present = self._get_present_value(tunable)
        values = [value for value in tune_request.values if not _is_same_value(value, present)]
        self.report(f"{tunable.id}: {present} now; trying {', '.join(values)}.")

        def measure_value(tried_value: str | None) -> float:
            if tried_value is None:
                return self._measure_values(best_value_by_tunable)
            try:
                return self._measure_values({**best_value_by_tunable, tunable.id: tried_value})
            except (MachineError, StoppedError):
                raise
            except UserError as reason:  # the engine refuses the value, or the run fails with it
                raise RejectedValueError(str(reason).rstrip(".")) from None

        result = search_best_value(values, measure_value, self.rule, self.seed + len(best_value_by_tunable))
        return TunedSetting(tunable, present, result)

    def _compare_together(self, best_value_by_tunable: Mapping[str, str]) -> SearchResult:
        """Compares all better values with the present ones."""
        try:
            return compare_candidate_with_present_value(
                "all", lambda value: self._measure_values(best_value_by_tunable if value else {}), self.rule, self.seed
            )
        except RejectedValueError as reason:
            raise MachineError(f"The better values could not be set together: {reason}.") from None

    def _measure_values(self, values_by_tunable: Mapping[str, str]) -> float:
        """One run with these values; all other tunables have their present ones. Raises RejectedValueError."""
        for name in self._tunables:
            self._set_system_value(name, values_by_tunable.get(name))
        return self.runner.measure_variant(self._make_variant(values_by_tunable))

    def _set_system_value(self, tunable_id: str, tunable_value: str | None) -> None:
        change = self._changes.get(tunable_id)
        if change is None or self._values.get(tunable_id) == tunable_value:
            return
        try:
            if tunable_value is None:
                change.setting.write_state(change.state)
            else:
                change.setting.write_value(tunable_value)
        except SettingError as reason:
            if tunable_value is None:
                raise MachineError(f"{tunable_id} could not be restored between two runs: {reason}.") from None
            self._values.pop(tunable_id, None)
            change.setting.write_state(change.state)
            raise RejectedValueError(str(reason)) from None
        self._values[tunable_id] = tunable_value or ""
        if tunable_value is None:
            del self._values[tunable_id]

    def _make_variant(self, values_by_tunable: Mapping[str, str]) -> TuneVariant:
        title = ", ".join(f"{name}={value}" for name, value in values_by_tunable.items()) or "present values"
        variant = TuneVariant(self.plan, title)
        for name, value in values_by_tunable.items():
            tunable = self._tunables[name]
            if self.runner.simulated and tunable.model:
                variant = replace(
                    variant, model={**variant.model, tunable.model: _convert_to_model_value(tunable, value)}
                )
            elif tunable.kind == "plan":
                try:
                    plan = variant.plan.with_settings([f"{tunable.name}={value}"])
                except PlanError as reason:
                    raise RejectedValueError(str(reason).rstrip(".")) from None
                variant = replace(variant, plan=plan)
            elif tunable.kind == "environment" and value != UNSET:
                variant = replace(variant, environment={**variant.environment, tunable.name: value})
        return variant

    def _get_present_value(self, tunable: Tunable) -> str:
        if tunable.id in self._changes:
            change = self._changes[tunable.id]
            return change.setting.describe_state(change.state)
        if tunable.kind == "environment":
            return UNSET
        return _get_plan_member(self.plan, tunable.name) if tunable.kind == "plan" else _NOT_STATED

    def _apply_winners(self, best_value_by_tunable: Mapping[str, str]) -> tuple[str, ...]:
        """Sets the better values of the machine permanently. The earlier values stay in the journal."""
        names = tuple(name for name in best_value_by_tunable if name in self._changes)
        with block_stop_signals():
            self.journal.mark_changes_applied(set(names))
            for name in names:
                self._changes[name].setting.write_value(best_value_by_tunable[name])
        return names


def require_clean_journal(journal: ChangeJournal) -> None:
    """Raises UserError while settings of a killed tuning are not restored."""
    if journal.pending:
        names = ", ".join(dict.fromkeys(entry.tunable for entry in journal.pending))
        raise UserError(
            f"A tuning was killed and left {names} changed; `sonde tune --restore` restores what was there before."
        )


def _is_same_value(tried_value: str, present_value: str) -> bool:
    if tried_value == present_value:
        return True
    try:
        return parse_bytes(tried_value) == parse_bytes(present_value)
    except UserError:
        return False


def _get_plan_member(plan: Plan, member_path: str) -> str:
    value: Any = plan.resolve()
    for step in member_path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if value is None:
        return _NOT_STATED
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert_to_model_value(tunable: Tunable, tunable_value: str) -> str:
    """The value as the system file states it: bytes where the tunable has a unit."""
    if not tunable.model_unit:
        return tunable_value
    unit = parse_bytes(tunable.model_unit if tunable.model_unit[0].isdigit() else f"1 {tunable.model_unit}")
    return f"{round(float(tunable_value) * unit)} B"
