# SPDX-License-Identifier: Apache-2.0
"""The command of IOR, mdtest or fio that does what a plan does, or why there is none.

For those who want to see the same numbers from a tool that they know. The words are those that Sonde's own dialects of
these tools read back as the same plan (``tests/lab/experiments/test_classic.py``).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.plan import Plan
from sonde.model.units import parse_bytes, parse_duration
from sonde.model.volume import PhaseVolume, items_of_task

_IOR_BACKENDS = {"posix": "POSIX", "mpiio": "MPIIO"}
_FIO_BACKENDS = {"io_uring": "io_uring", "libaio": "libaio", "posix": "psync", "mmap": "mmap"}
_TREE_OPS = {"create": "-C", "stat": "-T", "read": "-E", "remove": "-r"}
_WRITES, _READS = ("write", "rewrite"), ("read", "reread", "read_only")


@dataclass(frozen=True)
class Classic:
    """A command line, or one sentence about why there is none."""

    command: str = ""
    why_not: str = ""


class _NoneError(Exception):
    """There is no such command. The message says why, as the end of a sentence."""


def classic(plan: Plan, volumes: list[PhaseVolume]) -> Classic:
    """What a person would type instead; `volumes` are those of the plan's phases."""
    try:
        trees = [plan.on_tree(phase) for phase in plan.phases if phase["op"] != "remove"]
        if trees and all(trees):
            return Classic(shlex.join(_mdtest(plan)))
        if any(trees):
            raise _NoneError("data and trees are in one plan, and no classic tool has both")
        data = plan.data_of(plan.phases[0])
        if data["io"]["queue_depth"] > 1 or data["backend"] in ("io_uring", "libaio", "mmap"):
            return Classic(shlex.join(_fio(plan, volumes)))
        return Classic(shlex.join(_ior(plan, volumes)))
    except _NoneError as reason:
        return Classic(why_not=f"none: {reason}")


def _tasks(plan: Plan) -> int:
    return plan.processes * plan.threads


def _launched(plan: Plan, words: list[str]) -> list[str]:
    tasks = _tasks(plan)
    return ["mpiexec", "-n", str(tasks), *words] if tasks > 1 else words


def _same_data(plan: Plan) -> Mapping[str, Any]:
    """The data of all phases, which a classic tool describes once. Raises _NoneError where they differ."""
    found = [plan.data_of(phase) for phase in plan.phases if phase["op"] not in ("stat", "remove")]
    for member in ("backend", "access", "io", "files"):
        if any(one[member] != found[0][member] for one in found[1:]):
            raise _NoneError(f"phases differ in {member}")
    return found[0]


def _no_other(plan: Plan, tool: str) -> None:
    """Raises _NoneError for phases that `tool` does not have."""
    for phase in plan.phases:
        op = phase["op"]
        if op not in (*_WRITES, *_READS, "stat", "remove"):
            raise _NoneError(f"{tool} has no phase like {op}")
        if phase.get("before"):
            raise _NoneError(f"{tool} does nothing to caches before a phase ({phase['id']}.before)")
        if "files" in phase:
            raise _NoneError(f"{tool} cannot work on some of the files only ({phase['id']}.files)")
        stop = phase.get("stop", {})
        unknown = next((name for name in stop if name not in ("time", "stonewall", "wearout")), None)
        if unknown:
            raise _NoneError(f"{tool} has no stop rule like {unknown}")


def _ior(plan: Plan, volumes: list[PhaseVolume]) -> list[str]:
    data = _same_data(plan)
    _no_other(plan, "IOR")
    access, io, files = data["access"], data["io"], data["files"]
    if data["backend"] not in _IOR_BACKENDS:
        raise _NoneError(f"IOR has no interface like {data['backend']}")
    for member, nothing, what in (
        ("offset", 0, "begin at an offset in the file"),
        ("gap", 0, "leave gaps between blocks"),
    ):
        if parse_bytes(access[member]) != nothing:
            raise _NoneError(f"IOR cannot {what} (data.access.{member})")
    if access["order"] not in ("sequential", "random_permute"):
        raise _NoneError(f"IOR has no order like {access['order']}")
    if files["mapping"] not in ("shared", "per_task"):
        raise _NoneError(f"IOR has no files that are {files['mapping']}")
    if io["preallocate"] != "none":
        raise _NoneError("IOR's preallocation is another one (data.io.preallocate)")
    words = ["ior", "-a", _IOR_BACKENDS[data["backend"]], "-t", str(parse_bytes(access["transfer"]))]
    words += ["-b", str(parse_bytes(access["block"])), "-s", str(volumes[0].segments)]
    words += ["-w"] * any(one["op"] in _WRITES for one in plan.phases)
    words += ["-r"] * any(one["op"] in _READS for one in plan.phases)
    words += ["-F"] * (files["mapping"] == "per_task") + ["-z"] * (access["order"] == "random_permute")
    words += ["-e"] * (io["fsync"] in ("end", "end_timed_separately")) + ["-Y"] * (io["fsync"] == "per_op")
    words += ["--posix.odirect"] * bool(io["direct"]) + _shift(plan) + _wall(plan)
    return _launched(plan, [*words, "-o", "@".join(f"{one}/data" for one in _directories(plan, data))])


def _directories(plan: Plan, data: Mapping[str, Any]) -> list[str]:
    """Where the files lie: those of tasks go to several directories in turn."""
    return [str(plan.target), *(str(one) for one in data["files"].get("across", ()))]


def _shift(plan: Plan) -> list[str]:
    shifts = [phase.get("shift", {}) for phase in plan.phases if phase["op"] in _READS]
    moved = [one for one in shifts if one.get("by", "none") != "none"]
    if not moved:
        return []
    if any(one != moved[0] for one in moved) or moved[0]["by"] not in ("tasks", "nodes"):
        raise _NoneError(f"IOR shifts tasks in another way than by {moved[0]['by']}")
    words = ["-C"]
    if moved[0]["by"] == "tasks":
        words += ["-Q", str(moved[0].get("n", 1))]
    elif moved[0].get("n", 1) != 1:
        raise _NoneError("IOR's -C moves on by one node only")
    return words


def _wall(plan: Plan) -> list[str]:
    walls = {str(one.get("stop", {}).get("stonewall") or one.get("stop", {}).get("time") or "") for one in plan.phases}
    if walls <= {""}:
        return []
    if len(walls) > 1:
        raise _NoneError("the time limit is not the same for all phases")
    words = ["-D", f"{parse_duration(walls.pop()):.0f}"]
    wear = [bool(one.get("stop", {}).get("wearout")) for one in plan.phases]
    return [*words, "-O", "stoneWallingWearOut=1"] if all(wear) else words


def _mdtest(plan: Plan) -> list[str]:
    phases = [one for one in plan.phases if one["op"] not in ("mktree", "rmtree")]
    known = [_TREE_OPS.get(str(one["op"])) for one in phases]
    if None in known or not known:
        raise _NoneError(
            f"mdtest has no phase like {next(p['op'] for p, k in zip(phases, known, strict=True) if k is None)}"
        )
    meta = plan.meta_of(phases[0])
    tree, file = meta["tree"], meta["file"]
    if tree["scope"] == "per_node":
        raise _NoneError("mdtest has no trees of nodes")
    if meta["select"]["order"] not in ("creation", "permute"):
        raise _NoneError(f"mdtest does not choose items by {meta['select']['order']}")
    words = ["mdtest", "-n", str(items_of_task(tree)), "-z", str(tree["depth"]), "-b", str(tree["branching"])]
    words += ["-L"] * bool(tree["leaf_only"]) + ["-u"] * (tree["scope"] == "per_task")
    words += {"files": ["-F"], "directories": ["-D"]}.get(str(meta["objects"]), [])
    words += [str(one) for one in dict.fromkeys(known)]
    for flag, member in (("-w", "write"), ("-e", "read")):
        if parse_bytes(file[member]):
            words += [flag, str(parse_bytes(file[member]))]
    words += ["-y"] * bool(file["fsync"]) + ["-R"] * (meta["select"]["order"] == "permute")
    shifts = {phase.get("shift", {}).get("n", 1) for phase in phases if phase.get("shift", {}).get("by") == "tasks"}
    words += ["-N", str(shifts.pop())] if len(shifts) == 1 else []
    walls = {phase["stop"]["stonewall"] for phase in phases if "stonewall" in phase.get("stop", {})}
    words += ["-W", f"{parse_duration(walls.pop()):.0f}"] if len(walls) == 1 else []
    return _launched(plan, [*words, "-d", str(plan.target / "tree")])


def _fio(plan: Plan, volumes: list[PhaseVolume]) -> list[str]:
    data = _same_data(plan)
    _no_other(plan, "fio")
    access, io = data["access"], data["io"]
    if data["backend"] not in _FIO_BACKENDS:
        raise _NoneError(f"fio has no engine like {data['backend']}")
    if len([one for one in plan.phases if one["op"] not in ("stat", "remove")]) > 1:
        raise _NoneError("fio needs a command for each phase, and this plan has several")
    if data["files"]["mapping"] != "per_task" and (_tasks(plan) > 1 or data["files"]["mapping"] == "many"):
        raise _NoneError(f"fio has no files that are {data['files']['mapping']}")
    if access["order"] not in ("sequential", "random_permute") or parse_bytes(access["gap"]):
        raise _NoneError(f"fio does not walk a file like this ({access['order']})")
    op = "write" if plan.phases[0]["op"] in _WRITES else "read"
    size = volumes[0].bytes // volumes[0].tasks
    where = ":".join(_directories(plan, data))
    words = ["fio", "--name=sonde", f"--directory={where}", f"--ioengine={_FIO_BACKENDS[data['backend']]}"]
    words += [
        f"--rw={'rand' if access['order'] != 'sequential' else ''}{op}",
        f"--bs={parse_bytes(access['transfer'])}",
    ]
    words += [f"--size={size}", f"--iodepth={io['queue_depth']}", f"--numjobs={_tasks(plan)}", "--group_reporting"]
    words += ["--direct=1"] * bool(io["direct"]) + ["--end_fsync=1"] * (io["fsync"] == "end")
    if offset := parse_bytes(access["offset"]):
        words.append(f"--offset={offset}")
    stop = plan.phases[0].get("stop", {})
    if "time" in stop:
        words += ["--time_based", f"--runtime={parse_duration(stop['time']):.0f}"]
    elif "stonewall" in stop:
        words.append(f"--runtime={parse_duration(stop['stonewall']):.0f}")
    return words
