# SPDX-License-Identifier: Apache-2.0
"""A pool of several directories: the files of tasks go to them in turn, so that each directory is a target of the pool.

Without a volume that joins them, this can be done where every task, or group of tasks, has a file of its own. One file
and one tree are what other tests are about, in parts they would be other tests; many files of a task, and phases that
are started anew, need the one directory that the engine makes for a run. They are refused, with what to do instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sonde.model.errors import UserError
from sonde.model.plan import Plan

REMOVE = "remove-files-of-pool"  # the phase that ends each run: no run directory is there to be removed
_FILE = "data"


def joined(plan: Plan, directories: Sequence[str], pool: str, group: str, cell: str) -> tuple[Plan, tuple[str, ...]]:
    """The plan with its files in all the directories, and the folders there that are ours to make and to remove.

    Raises UserError where the plan cannot be spread over several directories.
    """
    why, instead = _why_not(plan)
    if why:
        raise UserError(
            f"The pool {pool} has {len(directories)} directories, and {why}; give the pool one directory of a file"
            f" system that stripes over its targets, or {instead}."
        )
    name = f"sonde-{group}-{hashlib.sha256(cell.encode()).hexdigest()[:8]}"
    folders = tuple(f"{one.rstrip('/')}/{name}" for one in directories)
    document = plan.document
    files = {key: value for key, value in _files(document).items() if key not in ("name", "directories")}
    target = {key: value for key, value in document["target"].items() if key not in ("directory", "keep")}
    changed = {
        **document,
        "target": {**target, "path": directories[0], "use_existing": True},
        "data": {**document["data"], "files": {**files, "paths": [f"{one}/{_FILE}" for one in folders]}},
        "phases": [*document["phases"], {"id": REMOVE, "op": "remove", "measure": False}],
    }
    return Plan.from_document(changed, plan.origin), folders


def _files(document: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = document.get("data", {}).get("files", {})
    return found


def _why_not(plan: Plan) -> tuple[str, str]:
    """What of a plan lies in one directory, and what to do besides, in words; both empty where it can be spread."""
    if "meta" in plan.document or any(plan.on_tree(phase) for phase in plan.phases):
        walked = any(phase["op"] == "walk" for phase in plan.phases)
        tree = "the tree that is walked here lies in one of them" if walked else "the names here lie in one of them"
        return tree, "measure each directory by itself (--on DIR)"
    files = plan.resolved()["data"]["files"]
    own = 'give tasks files of their own (data.files.mapping = "per_task" or "per_group")'
    if files["mapping"] == "shared":
        return "all tasks share one file here, which lies in one of them", own
    if files["mapping"] == "many":
        return "the many files of each task lie in one of them together", 'give each task one (mapping = "per_task")'
    if files["mapping"] == "per_node":
        return "the tasks of a node share a file here", own
    if any(phase.get("process") == "separate" for phase in plan.phases):
        told = "a phase here is started anew and finds its files by the manifest of one run directory"
        return told, "leave process out of its phases"
    if any(before["kind"] == "remount" for phase in plan.phases for before in phase.get("before", ())):
        return "only one file system would be mounted anew before a phase", "empty the cache by drop_page_cache"
    return "", ""
