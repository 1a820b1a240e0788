# SPDX-License-Identifier: Apache-2.0
"""A pool of several directories: the files of tasks go to them in turn, so that each directory is a target of the pool.

That has a meaning where tasks have files of their own, one or many: the engine deals them out, and one manifest joins
them for phases that are started anew. One file and one tree are what other tests are about: in parts they would be
other tests. These are refused, in a sentence that says what to do instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from sonde.model.errors import UserError
from sonde.model.plan import Plan


def joined(plan: Plan, directories: Sequence[str], pool: str) -> Plan:
    """The plan with its files in all the directories. Raises UserError where it cannot be spread over several."""
    why, instead = _why_not(plan)
    if why:
        raise UserError(
            f"The pool {pool} has {len(directories)} directories, and {why}; give the pool one directory of a file"
            f" system that stripes over its targets{f', or {instead}' if instead else ''}."
        )
    document = plan.document
    data = document.get("data", {})
    files = {**data.get("files", {}), "across": list(directories[1:])}
    changed = {
        **document,
        "target": {**document["target"], "path": directories[0]},
        "data": {**data, "files": files},
    }
    return Plan.from_document(changed, plan.origin)


def _why_not(plan: Plan) -> tuple[str, str]:
    """What of a plan lies in one directory, and what to do about it besides, in words; both empty where it can be
    spread."""
    if "meta" in plan.document or any(plan.on_tree(phase) for phase in plan.phases):
        walked = any(phase["op"] == "walk" for phase in plan.phases)
        tree = "the tree that is walked here lies in one of them" if walked else "the names here lie in one of them"
        return tree, "measure each directory by itself (--on DIR)"
    document = plan.resolved()
    files, target = document["data"]["files"], document["target"]
    own = 'give tasks files of their own (data.files.mapping = "per_task" or "per_group")'
    if files["mapping"] == "shared":
        return "all tasks share one file here, which lies in one of them", own
    if files["mapping"] == "per_node":
        return "the tasks of a node share a file here", own
    if files["directories"] == "per_node":
        return "the tasks of a node share a directory here", 'say data.files.directories = "one"'
    if files.get("paths") or target.get("use_existing"):
        return "the runs here use files that stay where they are", "let every run make its own files"
    if any(before["kind"] == "remount" for phase in plan.phases for before in phase.get("before", ())):
        return "one file system is mounted anew before a phase", "empty the cache by drop_page_cache"
    if target.get("striping"):
        return "files here have a striping of their own", "leave target.striping out"
    return "", ""
