# SPDX-License-Identifier: Apache-2.0
"""Plans for a pool of several directories: files are distributed over them, so that each is a target of the pool.

Only plans in which each task has its own files can be distributed. A single file or tree would become a different
test in parts, so such plans are refused with advice.
"""

from __future__ import annotations

from collections.abc import Sequence

from sonde.model.errors import UserError
from sonde.model.plan import Plan


def distribute_files_over_directories(plan: Plan, pool_directories: Sequence[str], pool_name: str) -> Plan:
    """Returns the plan with its files distributed over all directories. Raises UserError if that is impossible."""
    reason, advice = _find_reason_against_distribution(plan)
    if reason:
        raise UserError(
            f"The pool {pool_name} has {len(pool_directories)} directories, and {reason};"
            " give the pool one directory of a"
            f" file system that stripes over its targets{f', or {advice}' if advice else ''}."
        )
    document = plan.document
    data = document.get("data", {})
    files = {**data.get("files", {}), "across": list(pool_directories[1:])}
    changed = {
        **document,
        "target": {**document["target"], "path": pool_directories[0]},
        "data": {**data, "files": files},
    }
    return Plan.from_document(changed, plan.origin)


def _find_reason_against_distribution(plan: Plan) -> tuple[str, str]:
    """Returns why a plan needs one directory, and what the user can do; both empty if it can be distributed."""
    if "meta" in plan.document or any(plan.is_tree_phase(phase) for phase in plan.phases):
        is_walked = any(phase["op"] == "walk" for phase in plan.phases)
        tree = "the tree that is walked here lies in one of them" if is_walked else "the names here lie in one of them"
        return tree, "measure each directory by itself (--on DIR)"
    document = plan.resolve()
    files, target = document["data"]["files"], document["target"]
    own_files_advice = 'give tasks files of their own (data.files.mapping = "per_task" or "per_group")'
    if files["mapping"] == "shared":
        return "all tasks share one file here, which lies in one of them", own_files_advice
    if files["mapping"] == "per_node":
        return "the tasks of a node share a file here", own_files_advice
    if files["directories"] == "per_node":
        return "the tasks of a node share a directory here", 'say data.files.directories = "one"'
    if files.get("paths") or target.get("use_existing"):
        return "the runs here use files that stay where they are", "let every run make its own files"
    if any(treatment["kind"] == "remount" for phase in plan.phases for treatment in phase.get("before", ())):
        return "one file system is mounted anew before a phase", "empty the cache by drop_page_cache"
    if target.get("striping"):
        return "files here have a striping of their own", "leave target.striping out"
    return "", ""
