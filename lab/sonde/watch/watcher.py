# SPDX-License-Identifier: Apache-2.0
"""One round of a watch: due probes run, their numbers pass the gate and the detectors, incidents open and close.

The state is saved before a run begins, after its numbers were taken, and after each delivery of a notice. Every step
can therefore be repeated after a kill: a stored run is taken from the archive by its group, events have ids that follow
from the incident, and a notice that a channel has is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from sonde.model.errors import UserError
from sonde.trends.changes import MAX_RUNS_BETWEEN_JOINT_CHANGES
from sonde.trends.detectors import DetectorSettings
from sonde.watch.description import ProbeEntry, WatchFile
from sonde.watch.history_gate import (
    DetectedDrop,
    ProbeNumber,
    compute_lower_limit,
    detect_drop_in_newest_value,
    is_below_limit,
)
from sonde.watch.incident_text import summarize_changes
from sonde.watch.schedule import ProbeDecision, find_due_probes
from sonde.watch.watch_state import HistoryState, Incident, Notice, PendingRun, StateStore, WatchState

_MAX_STORED_INCIDENTS = 500


@dataclass(frozen=True)
class ProbeRun:
    """A run that is stored: its measurements and how long it took."""

    run: str
    started: float
    seconds: float
    measurements: tuple[ProbeNumber, ...]
    not_judged: str = ""  # what its numbers describe, where that is not storage


class ProbeRunner(Protocol):
    """Runs probes and finds runs that were stored before a kill."""

    def run_probe(self, probe: ProbeEntry, run_group: str) -> ProbeRun:
        """Runs the plan once and stores the run under `run_group`. Raises UserError when it fails."""

    def find_probe_runs(self, run_group: str) -> list[ProbeRun]:
        """Runs of the group that are stored, in order of time."""

    def localize_slow_part(self, probe: ProbeEntry, run_group: str) -> str:
        """Runs the localizing plan; returns what it showed."""


@dataclass
class RoundReport:
    """Result of a round: runs, skipped and failed probes, incidents opened and closed, events of logs."""

    runs: list[str] = field(default_factory=list)
    skipped: list[ProbeDecision] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)  # probes without a number of storage
    opened: list[Incident] = field(default_factory=list)
    closed: list[Incident] = field(default_factory=list)
    log_events: dict[str, list[str]] = field(default_factory=dict)  # log -> titles of its new events


@dataclass
class Watcher:
    """A watch at work on its state. `clock` gives seconds since 1970."""

    watch: WatchFile
    store: StateStore
    runner: ProbeRunner
    host: str
    clock: Callable[[], float]
    settings: DetectorSettings = field(default_factory=DetectorSettings)
    describe_events: Callable[[float, float], str] = lambda last_before, first_after: ""  # sentences about near events
    state: WatchState = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.store.load_state()

    def run_round(self, io_stall: float | None = None, is_forced: bool = False) -> RoundReport:
        """Finishes what a kill interrupted, runs the due probes, and opens and closes incidents. Sends nothing.

        `is_forced`: all probes run now, whatever schedule, quiet hours, load and budget say.
        """
        report = RoundReport()
        self._resume_interrupted_probe(report)
        now = self.clock()
        slots = {} if is_forced else self.state.slots
        due = find_due_probes(self.watch, slots, self.state.durations, now, self.host, io_stall)
        for decision in due:
            if decision.skip_reason and not is_forced:
                report.skipped.append(decision)
                self.state.skips[decision.probe.id] = decision.skip_reason
                continue
            group = f"watch-{decision.probe.id}-{int(self.clock())}"
            self.state.pending = PendingRun(decision.probe.id, decision.slot, group, self.clock())
            self.store.save_state(self.state)
            self._run_probe_with_retests(decision.probe, [], report)
        self.state.rounds += 1
        self.store.save_state(self.state)
        return report

    def _resume_interrupted_probe(self, round_report: RoundReport) -> None:
        """Continues the probe that a kill interrupted with its stored runs."""
        pending = self.state.pending
        if pending is None:
            return
        probe = next((probe for probe in self.watch.probes if probe.id == pending.probe), None)
        if probe is None:  # removed from the file meanwhile
            self.state.pending = None
            return
        self._run_probe_with_retests(probe, self.runner.find_probe_runs(pending.group), round_report)

    def _run_probe_with_retests(
        self, probe: ProbeEntry, stored_runs: Sequence[ProbeRun], round_report: RoundReport
    ) -> None:
        """Runs a probe, and repeats it while its numbers are low. Takes over all its runs in one step."""
        pending = self.state.pending
        assert pending is not None
        runs = list(stored_runs)
        try:
            while not runs or (self._needs_retest(runs) and len(runs) <= probe.retests):
                runs.append(self.runner.run_probe(probe, pending.group))
        except UserError as error:
            round_report.failed.append(f"{probe.id}: {error}")
            self.state.skips[probe.id] = f"it failed: {error}"
        for run in runs:
            self.state.add_run_duration(probe.id, run.started, run.seconds)
            round_report.runs.append(run.run)
        changes: dict[str, DetectedDrop] = {}
        if runs:
            self.state.skips.pop(probe.id, None)
            changes = self._add_runs_to_histories(runs, probe)
            if not any(run.measurements for run in runs):
                round_report.not_judged.append(
                    f"{probe.id}: its run has no number of storage ({runs[-1].not_judged}); change the plan with `set`."
                )
        self.state.slots[probe.id] = pending.slot
        self.state.pending = None
        incident = self._update_incidents(round_report, changes)
        self.store.save_state(self.state)
        if incident is not None and probe.localize and not incident.localization:
            self._localize_incident(incident, probe, round_report)

    def _localize_incident(self, incident: Incident, probe: ProbeEntry, round_report: RoundReport) -> None:
        """Runs the localizing plan once for an incident; the notice contains what it showed."""
        try:
            incident.localization = self.runner.localize_slow_part(probe, f"watch-localize-{incident.id}")
        except UserError as error:
            incident.localization = f"The localizing run failed: {error}"
            round_report.failed.append(f"{probe.id}: {error}")
        self._rewrite_notice(incident)
        self.store.save_state(self.state)

    def _needs_retest(self, probe_runs: Sequence[ProbeRun]) -> bool:
        """Whether a number of all runs so far is low, or the first good ones of an incident must be confirmed."""
        for measurement in probe_runs[-1].measurements:
            history = self.state.histories.get(measurement.history)
            values = [
                entry.value for run in probe_runs for entry in run.measurements if entry.history == measurement.history
            ]
            all_low = all(is_below_limit(history, value) for value in values)
            none_low = not any(is_below_limit(history, value) for value in values)
            has_incident = history is not None and bool(history.incident)
            if (all_low and not has_incident) or (none_low and has_incident):
                return True
        return False

    def _add_runs_to_histories(self, probe_runs: Sequence[ProbeRun], probe: ProbeEntry) -> dict[str, DetectedDrop]:
        """Adds the numbers of a probe to their histories. Returns the changed histories."""
        changed: dict[str, DetectedDrop] = {}
        by_history: dict[str, list[ProbeNumber]] = {}
        for run in probe_runs:
            for measurement in run.measurements:
                by_history.setdefault(measurement.history, []).append(measurement)
        for name, measurements in by_history.items():
            first = measurements[0]
            history = self.state.histories.setdefault(
                name,
                HistoryState(
                    {**first.labels, "probe": probe.id, "plan": probe.plan, "directory": probe.on}, first.unit
                ),
            )
            limit = compute_lower_limit(history)
            values = [measurement.value for measurement in measurements]
            confirmed = limit is not None and len(values) > probe.retests and all(value < limit[1] for value in values)
            history.is_recovered = limit is not None and len(values) > probe.retests and min(values) >= limit[1]
            middle = sorted(values)[len(values) // 2]
            history.add_value(
                middle, probe_runs[0].started, is_accepted=not history.incident and not is_below_limit(history, middle)
            )
            drop = detect_drop_in_newest_value(history, self.settings)
            if history.incident:
                continue
            if confirmed and limit is not None:
                changed[name] = DetectedDrop(middle / limit[0], probe_runs[0].started)
            elif drop is not None:
                changed[name] = drop
        return changed

    def _update_incidents(self, report: RoundReport, detected_drops: dict[str, DetectedDrop]) -> Incident | None:
        """Opens an incident for the changes, or adds them to a recent one, which is returned. Closes incidents that are
        over."""
        now = self.clock()
        changed_incident = self._open_incident(report, detected_drops, now) if detected_drops else None
        for incident in self.state.list_open_incidents():
            histories = [self.state.histories[name] for name in incident.histories if name in self.state.histories]
            if histories and all(history.is_recovered for history in histories):
                incident.status, incident.closed = "fixed", now
                for history in histories:
                    history.incident = ""
                report.closed.append(incident)
                days = (now - incident.opened) / 86400
                self._add_incident_notice(incident, "fixed", f"Fixed after {days:.1f} days: {incident.summary}")
        self.state.incidents = self.state.incidents[-_MAX_STORED_INCIDENTS:]
        return changed_incident

    def _open_incident(self, round_report: RoundReport, new_drops: dict[str, DetectedDrop], now_s: float) -> Incident:
        changed_time = min(drop.time for drop in new_drops.values())
        reach = max(self.watch.join, MAX_RUNS_BETWEEN_JOINT_CHANGES * max(probe.every for probe in self.watch.probes))
        recent = [entry for entry in self.state.list_open_incidents() if abs(changed_time - entry.changed) <= reach]
        changed = {**(recent[-1].histories if recent else {}), **{name: drop.ratio for name, drop in new_drops.items()}}
        everything = {name: history.labels for name, history in self.state.histories.items()}
        summary = summarize_changes(changed, everything)
        if recent:
            incident = recent[-1]
            incident.histories, incident.summary = changed, summary
            incident.events = self._describe_events(incident)
            self._rewrite_notice(incident)
        else:
            stamp = datetime.fromtimestamp(now_s, UTC)
            incident = Incident(
                f"{stamp:%Y-%m-%d}-slower-{self.state.incident_count + 1}", now_s, changed, summary, changed_time
            )
            self.state.incidents.append(incident)
            self.state.incident_count += 1
            round_report.opened.append(incident)
            incident.events = self._describe_events(incident)
            self._add_incident_notice(incident, "slower", incident.make_notice_text())
        for name in new_drops:
            self.state.histories[name].incident = incident.id
            self.state.histories[name].is_recovered = False
        return incident

    def _describe_events(self, incident: Incident) -> str:
        """The events nearest to the time between the last run before the change and the first one after it."""
        before = [
            max(
                (time for time in self.state.histories[name].times if time < incident.changed), default=incident.changed
            )
            for name in incident.histories
            if name in self.state.histories
        ]
        return self.describe_events(min(before, default=incident.changed), incident.changed)

    def _rewrite_notice(self, incident: Incident) -> None:
        """Brings the notice of an incident up to date while no channel has it."""
        for notice in self.state.notices:
            if notice.id == f"{incident.id}-slower" and not notice.delivered:
                notice.text = incident.make_notice_text()

    def _add_incident_notice(self, incident: Incident, notice_kind: str, notice_text: str) -> None:
        now = self.clock()
        directories = {self.state.histories[name].labels["directory"] for name in incident.histories}
        silenced = all(
            max(self.state.silences.get(directory, 0), self.state.silences.get("", 0)) > now
            for directory in directories
        )
        if silenced:
            return
        title = {"slower": "Storage became slower", "fixed": "Storage is as fast as before"}[notice_kind]
        channels = [channel.id for channel in self.watch.channels if channel.to != "metrics"]
        self.state.notices.append(
            Notice(
                f"{incident.id}-{notice_kind}",
                notice_kind,
                incident.id,
                now,
                f"{title} ({incident.id})",
                notice_text,
                channels,
            )
        )
