# SPDX-License-Identifier: Apache-2.0
"""Loads the plan of a run: from a file, a shipped name or a document, with settings, target directory and tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sonde.experiments.locations import require_existing_directory
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.launch.launchers.list import LOCAL
from sonde.model.errors import UserError
from sonde.model.plan import Plan, read_plan_document
from sonde.model.plan_title import list_title_members
from sonde.model.target_names import is_block_device, is_object_store_target, make_target_absolute


def load_plan(
    file_or_plan_name: str,
    setting_texts: Sequence[str],
    target_path: str | None,
    plan_document: dict[str, Any] | None = None,
) -> Plan:
    """Returns the plan of that file or shipped name, with `setting_texts` applied and `target_path` as its directory,
    block device or bucket. A plan for a bucket gets the backend s3 unless it states another than posix.

    `plan_document` is the document if it was read already; it is changed in place. Raises UserError, also if
    `target_path` is none of these."""
    document = read_plan_document(resolve_plan_source(file_or_plan_name)) if plan_document is None else plan_document
    if target_path is not None:
        is_device = is_block_device(target_path)
        if not is_object_store_target(target_path) and not is_device:
            require_existing_directory(target_path)
        target_table = document.setdefault("target", {})
        if isinstance(target_table, dict):
            target_table["path"] = target_path
            if is_device or target_table.get("device"):
                target_table["device"] = is_device
        data_table = document.get("data")
        if (
            is_object_store_target(target_path)
            and isinstance(data_table, dict)
            and data_table.get("backend", "posix") == "posix"
        ):
            data_table["backend"] = "s3"
    plan = Plan.from_document(
        document, "standard input" if file_or_plan_name == "-" else file_or_plan_name, setting_texts
    )
    if setting_texts and not any(setting.startswith("title=") for setting in setting_texts):
        # A title states the members that it names as they are now, and others as they were before the change.
        members = list_title_members(plan.title_template)
        unnamed = [setting for setting in setting_texts if setting.partition("=")[0].strip() not in members]
        if unnamed:
            title = f"{plan.title_template} (with {', '.join(unnamed)})"
            plan = plan.with_settings([f"title={json.dumps(title, ensure_ascii=False)}"])
    # The stored plan must be valid from any working directory.
    return plan.with_settings([f"target.path={json.dumps(make_target_absolute(plan.target_name))}"])


def divide_tasks_into_processes(
    plan: Plan, launcher: str, task_count: int | None, stated_processes: int | None
) -> tuple[Plan, int]:
    """Returns the plan with its tasks divided, and the number of processes that the launcher must start.

    Tasks are processes times threads. Without `stated_processes`, there is one process on this machine alone, and one
    for each task under a launcher, whose plan states no processes. Raises UserError.
    """
    if task_count is None and stated_processes is None:
        ranks = plan.processes if launcher != LOCAL else 1
        return (_remove_processes_member(plan) if launcher != LOCAL else plan), ranks
    process_count = stated_processes or ((task_count or 1) if launcher != LOCAL else 1)
    if task_count is None:
        threads = plan.threads
    elif task_count % process_count:
        raise UserError(f"--tasks {task_count} cannot be divided evenly among --processes {process_count}.")
    else:
        threads = task_count // process_count
    if threads > 4096:
        raise UserError(f"{threads} tasks in one process are too many (4096 at most); add --processes.")
    plan = plan.with_settings([f"tasks.threads={threads}"])
    if launcher != LOCAL:
        return _remove_processes_member(plan), process_count
    return plan.with_settings([f"tasks.processes={process_count}"]), 1


def _remove_processes_member(plan: Plan) -> Plan:
    return plan.with_settings(["tasks.processes=null"])
