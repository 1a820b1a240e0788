# SPDX-License-Identifier: Apache-2.0
"""Runs probes with the engine and stores them in the archive; finds the runs of a group that a kill left there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sonde.conduct.run import RunSetup, conduct_run, make_engine_failure
from sonde.findings.assessment import assess_phase_rate
from sonde.launch.session import LineObserver
from sonde.model.bundled_files import find_bundled_toml_files, is_file_reference
from sonde.model.errors import EXIT_OK, EventError, UserError
from sonde.model.file_trust import require_file_not_writable_by_others
from sonde.model.plan import Plan, read_plan_document
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.run import read_recorded_run_folder
from sonde.model.target_names import make_target_absolute
from sonde.store.archive import Archive
from sonde.store.events import add_archive_events, read_archive_events, select_new_events
from sonde.store.rows import parse_epoch_seconds
from sonde.store.summary import Summary, read_summary
from sonde.trends.nearby_events import find_events_between
from sonde.trends.sides import collect_values_by_number
from sonde.watch.description import ProbeEntry
from sonde.watch.history_gate import ProbeNumber
from sonde.watch.watch_state import WatchState
from sonde.watch.watcher import ProbeRun

_EVENT_SOURCE = "sonde watch"


def load_probe_plan(probe: ProbeEntry, plan_name: str) -> Plan:
    """The plan of a probe on its directory. Raises PlanError or UserError."""
    if not Path(probe.on).is_dir():
        raise UserError(f"There is no directory {probe.on}, on which the probe {probe.id} runs.")
    bundled = find_bundled_toml_files("experiments")
    if is_file_reference(plan_name, bundled) or plan_name not in bundled:
        require_file_not_writable_by_others(Path(plan_name), "plan")
        document = read_plan_document(plan_name)
    else:
        document = read_plan_document(str(bundled[plan_name]))
    target = document.setdefault("target", {})
    if isinstance(target, dict):
        target["path"] = make_target_absolute(str(probe.on))
    return Plan.from_document(document, plan_name, probe.set)


@dataclass(frozen=True)
class ArchiveRunner:
    """Runs probes with `make_setup()` and an observer of record lines."""

    archive: Archive
    make_setup: Callable[[], RunSetup]
    observe: LineObserver

    def run_probe(self, probe: ProbeEntry, run_group: str) -> ProbeRun:
        """See `ProbeRunner`."""
        return convert_to_probe_run(self._conduct_plan(probe, probe.plan, run_group))

    def find_probe_runs(self, run_group: str) -> list[ProbeRun]:
        """See `ProbeRunner`."""
        self.archive.recover_unfinished_runs()
        try:
            folders = self.archive.find_run_folders(run_group)
        except UserError:
            return []
        summaries = [read_summary(folder) for folder in folders]
        return [
            convert_to_probe_run(run) for run in sorted(summaries, key=lambda run: run.started) if run.status == "done"
        ]

    def localize_slow_part(self, probe: ProbeEntry, run_group: str) -> str:
        """See `ProbeRunner`. Sentences about slow storage targets, servers, nodes and tasks of each phase."""
        summary = self._conduct_plan(probe, probe.localize, run_group)
        run = read_recorded_run_folder(summary.folder)
        assessments = [assess_phase_rate(run, phase) for phase in run.phases if phase.begin.measured]
        texts = [
            text for a in assessments for text in (a.slow_targets, a.slow_units, a.slow_nodes, a.stragglers) if text
        ]
        sentences = " ".join(dict.fromkeys(texts)) or "It names no slow target or node."
        return f"Localizing run {summary.id}: {replace_no_break_spaces(sentences)}"

    def _conduct_plan(self, probe: ProbeEntry, plan_name: str, run_group: str) -> Summary:
        plan = load_probe_plan(probe, plan_name)
        result = conduct_run(
            plan, self.make_setup(), self.observe, extra_run_facts={"group": run_group, "watch": {"probe": probe.id}}
        )
        if result.exit_code != EXIT_OK:
            raise make_engine_failure(result.exit_code, result.text)
        return read_summary(result.folder)


def convert_to_probe_run(run_summary: Summary) -> ProbeRun:
    """The numbers of a stored run that may be judged: storage numbers, not those of caches or too short phases."""
    measurements = []
    not_judged: list[str] = []
    for number in collect_values_by_number([run_summary]):
        judged = number.select_judged_values()
        if not judged.values:
            not_judged.append(f"{number.key.phase} {number.classification_text}")
            continue
        key = number.key
        labels = {"system": key.system, "phase": key.phase, "operation": key.op}
        unit = {"bytes_per_s": "bytes/s", "ops_per_s": "op/s"}.get(key.unit, key.unit)
        measurements.append(ProbeNumber(key.id, labels, unit, judged.values[-1]))
    return ProbeRun(
        run_summary.id,
        parse_epoch_seconds(run_summary.started),
        run_summary.seconds or 0.0,
        tuple(measurements),
        ", ".join(not_judged),
    )


def record_incident_events(archive_root: Path, watch_state: WatchState) -> None:
    """Enters each incident as an event, and its end as another. Repeating this adds nothing."""
    documents = []
    for incident in watch_state.incidents:
        opened = _format_time(incident.opened)
        base = {"schema": "sonde-event/1", "source": _EVENT_SOURCE, "tags": ["watch"]}
        documents.append(
            {**base, "id": incident.id, "when": opened, "kind": "incident", "title": incident.summary.rstrip(".")}
        )
        if incident.closed is not None:
            documents.append(
                {
                    **base,
                    "id": f"{incident.id}-fixed",
                    "when": f"{opened}/{_format_time(incident.closed)}",
                    "kind": "repair" if incident.status == "fixed" else "change",
                    "title": f"{incident.status}: {incident.summary.rstrip('.')}",
                }
            )
    new = select_new_events(archive_root, documents)
    if new:
        add_archive_events(archive_root, new)


def describe_nearby_events(archive_root: Path, last_time_before: float, first_time_after: float) -> str:
    """Sentences about the events of the archive that are nearest to the time between two runs."""
    try:
        events = [event for event in read_archive_events(archive_root) if event.source != _EVENT_SOURCE]
    except EventError:
        return ""  # `sonde event list` says what is wrong with the file
    return " ".join(
        entry.describe_in_sentence() for entry in find_events_between(last_time_before, first_time_after, events)
    )


def _format_time(unix_time: float) -> str:
    return f"{datetime.fromtimestamp(unix_time, UTC):%Y-%m-%dT%H:%M:%SZ}"
