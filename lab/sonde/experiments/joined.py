# SPDX-License-Identifier: Apache-2.0
"""A pool of several directories: the files of tasks go to them in turn, so that each directory is a target of the pool.

Without a volume that joins them, this can be done where every task has a file of its own. One file, one tree of names
and many files in one directory lie in one place; what they ask for is refused in a sentence.
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
    if why := _why_not(plan):
        raise UserError(
            f"The pool {pool} has {len(directories)} directories, and {why}; give the pool one directory, of a file"
            " system that stripes over its targets."
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


def _why_not(plan: Plan) -> str:
    """What of a plan lies in one directory, in words; empty where it can be spread."""
    if "meta" in plan.document or any(plan.on_tree(phase) for phase in plan.phases):
        return "the names of this test lie in one tree"
    files = plan.resolved()["data"]["files"]
    if files["mapping"] not in ("per_task", "per_group"):
        return {
            "shared": "all tasks share one file here",
            "many": "each task has many files of one directory here",
            "per_node": "the tasks of a node share a file here",
        }[str(files["mapping"])]
    if any("files" in phase for phase in plan.phases):
        return "a phase of this test names files of its own"
    if any(phase.get("process") == "separate" for phase in plan.phases):
        return "a phase of this test is started anew and finds its files by a run directory"
    return ""
