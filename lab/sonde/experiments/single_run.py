# SPDX-License-Identifier: Apache-2.0
"""Runs one plan once: on this machine, or on a simulated machine in virtual time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunResult, RunSetup, conduct_run
from sonde.experiments.plan_loading import load_plan
from sonde.experiments.simulated_executor import find_mount_path, run_plan_in_simulator
from sonde.launch.session import LineObserver
from sonde.launch.simulator import MESSAGES_FILE, SimulatedLauncher, find_simulator
from sonde.logs.log_findings import find_logged_events
from sonde.model.confined_files import ConfinedDirectory, write_file
from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.system import System
from sonde.store.groups import check_group_name
from sonde.store.tags import change_tags, check_tag

_TASK_COUNT_MEMBERS = ("tasks.processes=", "tasks.threads=")


@dataclass(frozen=True)
class RunLabels:
    """Group, tags and comment that the user attaches to a run. Raises UserError for an invalid group or tag."""

    group: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.group:
            check_group_name(self.group)
        for tag in self.tags:
            check_tag(tag)

    def to_facts(self) -> dict[str, Any]:
        """Returns the members of run.json."""
        return {"group": self.group or None, **({"note": self.note} if self.note else {})}


def run_plan_once(plan: Plan, setup: RunSetup, observer: LineObserver, labels: RunLabels) -> RunResult:
    """Runs the plan once and stores the run with its labels. Raises UserError if nothing was measured."""
    result = conduct_run(plan, setup, observer, extra_run_facts=labels.to_facts())
    if labels.tags:
        change_tags(result.folder, added_tags=labels.tags)
    return result


@contextmanager
def prepare_simulation(
    system: System, mount_id: str, fault_texts: Sequence[str], seed: int, node_count: int | None, task_count: int | None
) -> Iterator[SimulatedLauncher]:
    """Yields the launcher of the simulator, whose files exist until the end of the block. Raises MachineError."""
    with tempfile.TemporaryDirectory(prefix="sonde-system-") as folder:
        resolved = Path(folder) / "system.json"
        write_file(resolved, system.to_json())
        yield SimulatedLauncher(
            simulator=find_simulator(),
            system=resolved,
            mount=mount_id,
            faults=tuple(fault_texts),
            seed=seed,
            nodes=node_count,
            processes=task_count,
        )


def load_simulated_plan(
    plan_name: str,
    setting_texts: Sequence[str],
    plan_document: dict[str, Any],
    system: System,
    mount_name: str,
    task_count: int | None = None,
) -> Plan:
    """Returns the plan of the document. A plan without a target has the mount point on the machine's nodes. With a
    `task_count` each task is a process with one thread. Raises UserError if `setting_texts` state the tasks, too.
    """
    if task_count and any(setting.strip().startswith(_TASK_COUNT_MEMBERS) for setting in setting_texts):
        raise UserError("--tasks and --set tasks.… both set the number of tasks; leave out one of them.")
    target_table = plan_document.setdefault("target", {})
    if isinstance(target_table, dict):
        target_table.setdefault("path", find_mount_path(system, mount_name))
    plan = load_plan(plan_name, setting_texts, None, plan_document)
    return plan.with_settings(["tasks.threads=1"]) if task_count else plan


def simulate_plan_once(
    plan: Plan,
    setup: RunSetup,
    observer: LineObserver,
    launcher: SimulatedLauncher,
    labels: RunLabels,
    stores_traces: bool = False,
) -> RunResult:
    """Runs the plan once on the launcher's machine and stores the run. `stores_traces`: with counters and messages of
    the servers. Raises UserError if nothing was simulated."""
    trace_folder = Path(tempfile.mkdtemp(prefix="sonde-traces-")) if stores_traces else None

    def find_logged_events_of_run(_record: RecordReader) -> list[dict[str, Any]]:
        return find_logged_events(trace_folder / MESSAGES_FILE) if trace_folder else []

    with_traces = replace(launcher, traces=trace_folder)
    result = run_plan_in_simulator(
        plan, setup, observer, with_traces, extra_run_facts=labels.to_facts(), inspect_record=find_logged_events_of_run
    )
    if trace_folder is not None:
        with (
            ConfinedDirectory.open(trace_folder.parent) as source,
            ConfinedDirectory.open(result.folder) as destination,
        ):
            source.rename_entry(trace_folder.name, destination, "traces")
    if labels.tags:
        change_tags(result.folder, added_tags=labels.tags)
    return result
