# SPDX-License-Identifier: Apache-2.0
"""Loads the plan of a run: from a file, a shipped name or a document, with settings, target directory and tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sonde.experiments.locations import existing_directory
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.launch.launchers.list import LOCAL
from sonde.model.errors import UserError
from sonde.model.plan import Plan, read_document
from sonde.model.target_names import is_bucket, make_absolute


def load_plan(
    name: str, settings: Sequence[str], target: str | None, document_read: dict[str, Any] | None = None
) -> Plan:
    """Returns the plan of that file or shipped name, with `settings` applied and `target` as its directory.

    `document_read` is the document if it was read already; its target is changed in place. Raises UserError, also if
    `target` is no directory.
    """
    document = read_document(resolve_plan_source(name)) if document_read is None else document_read
    if target is not None:
        if not is_bucket(target):
            existing_directory(target)
        target_table = document.setdefault("target", {})
        if isinstance(target_table, dict):
            target_table["path"] = target
    plan = Plan.from_document(document, "standard input" if name == "-" else name, settings)
    if settings and not any(setting.startswith("title=") for setting in settings):
        # The title describes the plan before the change.
        title = f"{plan.title} (with {', '.join(settings)})"
        plan = plan.with_settings([f"title={json.dumps(title)}"])
    # The stored plan must be valid from any working directory.
    return plan.with_settings([f"target.path={json.dumps(make_absolute(plan.target_name))}"])


def divide_tasks(plan: Plan, launcher: str, tasks: int | None, processes: int | None) -> tuple[Plan, int]:
    """Returns the plan with its tasks divided, and the number of processes that the launcher must start.

    Tasks are processes times threads. Without `processes`, there is one process on this machine alone, and one for each
    task under a launcher, whose plan states no processes. Raises UserError.
    """
    if tasks is None and processes is None:
        ranks = plan.processes if launcher != LOCAL else 1
        return (_without_processes(plan) if launcher != LOCAL else plan), ranks
    process_count = processes or ((tasks or 1) if launcher != LOCAL else 1)
    if tasks is None:
        threads = plan.threads
    elif tasks % process_count:
        raise UserError(f"--tasks {tasks} cannot be divided evenly among --processes {process_count}.")
    else:
        threads = tasks // process_count
    if threads > 4096:
        raise UserError(f"{threads} tasks in one process are too many (4096 at most); add --processes.")
    plan = plan.with_settings([f"tasks.threads={threads}"])
    if launcher != LOCAL:
        return _without_processes(plan), process_count
    return plan.with_settings([f"tasks.processes={process_count}"]), 1


def _without_processes(plan: Plan) -> Plan:
    return plan.with_settings(["tasks.processes=null"])
