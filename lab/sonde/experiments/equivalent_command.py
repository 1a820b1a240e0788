# SPDX-License-Identifier: Apache-2.0
"""The IOR, mdtest or fio command that does the same as a plan, or the reason why there is none.

Sonde's dialects of these tools parse the command back to the same plan (tested).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.plan import Plan
from sonde.model.shell import quote_command
from sonde.model.units import parse_bytes, parse_duration
from sonde.model.volume import PhaseVolume, count_task_items

_IOR_BACKENDS = {"posix": "POSIX", "mpiio": "MPIIO", "hdf5": "HDF5", "pnetcdf": "NCMPI"}
_FIO_BACKENDS = {"io_uring": "io_uring", "libaio": "libaio", "posix": "psync", "mmap": "mmap"}
_TREE_OPS = {"create": "-C", "stat": "-T", "read": "-E", "remove": "-r"}
_WRITE_OPS, _READ_OPS = ("write", "rewrite"), ("read", "reread", "read_only")


@dataclass(frozen=True)
class EquivalentCommand:
    """A command line, or the reason why there is none."""

    command: str = ""
    reason: str = ""


class _NoEquivalentError(Exception):
    """No equivalent command exists. The message is the reason."""


def find_equivalent_command(plan: Plan, volumes: list[PhaseVolume]) -> EquivalentCommand:
    """Returns the equivalent command; `volumes` are those of the plan's phases."""
    try:
        trees = [plan.is_tree_phase(phase) for phase in plan.phases if phase["op"] != "remove"]
        if trees and all(trees):
            return EquivalentCommand(quote_command(_make_mdtest_arguments(plan)))
        if any(trees):
            raise _NoEquivalentError("data and trees are in one plan, and no classic tool has both")
        data = plan.resolve_data(plan.phases[0])
        if data["io"]["queue_depth"] > 1 or data["backend"] in ("io_uring", "libaio", "mmap"):
            return EquivalentCommand(quote_command(_make_fio_arguments(plan, volumes)))
        return EquivalentCommand(quote_command(_make_ior_arguments(plan, volumes)))
    except _NoEquivalentError as reason:
        return EquivalentCommand(reason=str(reason))


def _count_tasks(plan: Plan) -> int:
    return plan.processes * plan.threads


def _prepend_mpiexec(plan: Plan, tool_arguments: list[str]) -> list[str]:
    tasks = _count_tasks(plan)
    return ["mpiexec", "-n", str(tasks), *tool_arguments] if tasks > 1 else tool_arguments


def _require_same_data_in_all_phases(plan: Plan) -> Mapping[str, Any]:
    """Returns the data description that all phases share. Raises _NoEquivalentError if they differ."""
    descriptions = [plan.resolve_data(phase) for phase in plan.phases if phase["op"] not in ("stat", "remove")]
    for member in ("backend", "access", "io", "files"):
        if any(description[member] != descriptions[0][member] for description in descriptions[1:]):
            raise _NoEquivalentError(f"phases differ in {member}")
    return descriptions[0]


def _require_known_phases(plan: Plan, tool_name: str) -> None:
    """Raises _NoEquivalentError for phases that `tool_name` lacks."""
    for phase in plan.phases:
        op = phase["op"]
        if op not in (*_WRITE_OPS, *_READ_OPS, "stat", "remove"):
            raise _NoEquivalentError(f"{tool_name} has no phase like {op}")
        if phase.get("before"):
            raise _NoEquivalentError(f"{tool_name} does nothing to caches before a phase ({phase['id']}.before)")
        if "files" in phase:
            raise _NoEquivalentError(f"{tool_name} cannot work on some of the files only ({phase['id']}.files)")
        stop = phase.get("stop", {})
        unknown_rule = next((name for name in stop if name not in ("time", "stonewall", "wearout")), None)
        if unknown_rule:
            raise _NoEquivalentError(f"{tool_name} has no stop rule like {unknown_rule}")


def _make_ior_arguments(plan: Plan, volumes: list[PhaseVolume]) -> list[str]:
    data = _require_same_data_in_all_phases(plan)
    _require_known_phases(plan, "IOR")
    access, io, files = data["access"], data["io"], data["files"]
    if data["backend"] not in _IOR_BACKENDS:
        raise _NoEquivalentError(f"IOR has no interface like {data['backend']}")
    for member, neutral, ability in (
        ("offset", 0, "begin at an offset in the file"),
        ("gap", 0, "leave gaps between blocks"),
    ):
        if parse_bytes(access[member]) != neutral:
            raise _NoEquivalentError(f"IOR cannot {ability} (data.access.{member})")
    if access["order"] not in ("sequential", "random_permute"):
        raise _NoEquivalentError(f"IOR has no order like {access['order']}")
    if files["mapping"] not in ("shared", "per_task"):
        raise _NoEquivalentError(f"IOR has no files that are {files['mapping']}")
    if io["preallocate"] != "none":
        raise _NoEquivalentError("IOR's preallocation is another one (data.io.preallocate)")
    arguments = ["ior", "-a", _IOR_BACKENDS[data["backend"]], "-t", str(parse_bytes(access["transfer"]))]
    arguments += ["-b", str(parse_bytes(access["block"])), "-s", str(volumes[0].segments)]
    arguments += ["-w"] * any(item["op"] in _WRITE_OPS for item in plan.phases)
    arguments += ["-r"] * any(item["op"] in _READ_OPS for item in plan.phases)
    arguments += ["-F"] * (files["mapping"] == "per_task") + ["-z"] * (access["order"] == "random_permute")
    arguments += ["-e"] * (io["fsync"] in ("end", "end_timed_separately")) + ["-Y"] * (io["fsync"] == "per_op")
    arguments += _make_ior_mpi_arguments(io)
    arguments += (
        ["--posix.odirect"] * bool(io["direct"]) + _make_ior_reorder_arguments(plan) + _make_time_limit_arguments(plan)
    )
    return _prepend_mpiexec(
        plan, [*arguments, "-o", "@".join(f"{item}/data" for item in _list_data_directories(plan, data))]
    )


def _make_ior_mpi_arguments(io_members: Mapping[str, Any]) -> list[str]:
    """Returns the options of transfers through MPI and of HDF5."""
    if io_members.get("hints"):
        raise _NoEquivalentError("IOR reads hints from a file only (data.io.hints)")
    arguments = ["-c"] * bool(io_members["collective"]) + ["--mpiio.useFileView"] * bool(io_members["view"])
    arguments += ["--hdf5.collectiveMetadata"] * bool(io_members["collective_metadata"])
    for member, option, unit in (("alignment", "--hdf5.setAlignment", 1), ("chunk", "--hdf5.chunkSize", 8)):
        if size := parse_bytes(io_members[member]):
            arguments.append(f"{option}={size // unit}")
    return arguments


def _list_data_directories(plan: Plan, data_table: Mapping[str, Any]) -> list[str]:
    """Returns the directories that hold the files."""
    return [str(plan.target), *(str(directory) for directory in data_table["files"].get("across", ()))]


def _make_ior_reorder_arguments(plan: Plan) -> list[str]:
    shifts = [phase.get("shift", {}) for phase in plan.phases if phase["op"] in _READ_OPS]
    active_shifts = [shift for shift in shifts if shift.get("by", "none") != "none"]
    if not active_shifts:
        return []
    if any(shift != active_shifts[0] for shift in active_shifts) or active_shifts[0]["by"] not in ("tasks", "nodes"):
        raise _NoEquivalentError(f"IOR shifts tasks in another way than by {active_shifts[0]['by']}")
    arguments = ["-C"]
    if active_shifts[0]["by"] == "tasks":
        arguments += ["-Q", str(active_shifts[0].get("n", 1))]
    elif active_shifts[0].get("n", 1) != 1:
        raise _NoEquivalentError("IOR's -C moves on by one node only")
    return arguments


def _make_time_limit_arguments(plan: Plan) -> list[str]:
    limits = {
        str(phase.get("stop", {}).get("stonewall") or phase.get("stop", {}).get("time") or "") for phase in plan.phases
    }
    if limits <= {""}:
        return []
    if len(limits) > 1:
        raise _NoEquivalentError("the time limit is not the same for all phases")
    arguments = ["-D", f"{parse_duration(limits.pop()):.0f}"]
    wearouts = [bool(phase.get("stop", {}).get("wearout")) for phase in plan.phases]
    return [*arguments, "-O", "stoneWallingWearOut=1"] if all(wearouts) else arguments


def _make_mdtest_arguments(plan: Plan) -> list[str]:
    phases = [item for item in plan.phases if item["op"] not in ("mktree", "rmtree")]
    flags = [_TREE_OPS.get(str(item["op"])) for item in phases]
    if None in flags or not flags:
        raise _NoEquivalentError(
            f"mdtest has no phase like {next(p['op'] for p, k in zip(phases, flags, strict=True) if k is None)}"
        )
    meta = plan.resolve_meta(phases[0])
    tree, file = meta["tree"], meta["file"]
    if tree["scope"] == "per_node":
        raise _NoEquivalentError("mdtest has no trees of nodes")
    if meta["select"]["order"] not in ("creation", "permute"):
        raise _NoEquivalentError(f"mdtest does not choose items by {meta['select']['order']}")
    arguments = ["mdtest", "-n", str(count_task_items(tree)), "-z", str(tree["depth"]), "-b", str(tree["branching"])]
    arguments += ["-L"] * bool(tree["leaf_only"]) + ["-u"] * (tree["scope"] == "per_task")
    arguments += {"files": ["-F"], "directories": ["-D"]}.get(str(meta["objects"]), [])
    arguments += [str(item) for item in dict.fromkeys(flags)]
    for flag, member in (("-w", "write"), ("-e", "read")):
        if parse_bytes(file[member]):
            arguments += [flag, str(parse_bytes(file[member]))]
    arguments += ["-y"] * bool(file["fsync"]) + ["-R"] * (meta["select"]["order"] == "permute")
    shifts = {phase.get("shift", {}).get("n", 1) for phase in phases if phase.get("shift", {}).get("by") == "tasks"}
    arguments += ["-N", str(shifts.pop())] if len(shifts) == 1 else []
    limits = {phase["stop"]["stonewall"] for phase in phases if "stonewall" in phase.get("stop", {})}
    arguments += ["-W", f"{parse_duration(limits.pop()):.0f}"] if len(limits) == 1 else []
    return _prepend_mpiexec(plan, [*arguments, "-d", str(plan.target / "tree")])


def _make_fio_arguments(plan: Plan, volumes: list[PhaseVolume]) -> list[str]:
    data = _require_same_data_in_all_phases(plan)
    _require_known_phases(plan, "fio")
    access, io = data["access"], data["io"]
    if data["backend"] not in _FIO_BACKENDS:
        raise _NoEquivalentError(f"fio has no engine like {data['backend']}")
    if len([phase for phase in plan.phases if phase["op"] not in ("stat", "remove")]) > 1:
        raise _NoEquivalentError("fio needs a command for each phase, and this plan has several")
    if data["files"]["mapping"] != "per_task" and (_count_tasks(plan) > 1 or data["files"]["mapping"] == "many"):
        raise _NoEquivalentError(f"fio has no files that are {data['files']['mapping']}")
    if access["order"] not in ("sequential", "random_permute") or parse_bytes(access["gap"]):
        raise _NoEquivalentError(f"fio does not walk a file like this ({access['order']})")
    op = "write" if plan.phases[0]["op"] in _WRITE_OPS else "read"
    size = volumes[0].bytes // volumes[0].tasks
    directories = ":".join(_list_data_directories(plan, data))
    arguments = ["fio", "--name=sonde", f"--directory={directories}", f"--ioengine={_FIO_BACKENDS[data['backend']]}"]
    arguments += [
        f"--rw={'rand' if access['order'] != 'sequential' else ''}{op}",
        f"--bs={parse_bytes(access['transfer'])}",
    ]
    arguments += [
        f"--size={size}",
        f"--iodepth={io['queue_depth']}",
        f"--numjobs={_count_tasks(plan)}",
        "--group_reporting",
    ]
    if data["backend"] == "io_uring":
        arguments += ["--sqthread_poll=1"] * bool(io["sqpoll"]) + ["--hipri=1"] * bool(io["iopoll"])
    arguments += ["--direct=1"] * bool(io["direct"]) + ["--end_fsync=1"] * (io["fsync"] == "end")
    if offset := parse_bytes(access["offset"]):
        arguments.append(f"--offset={offset}")
    stop = plan.phases[0].get("stop", {})
    if "time" in stop:
        arguments += ["--time_based", f"--runtime={parse_duration(stop['time']):.0f}"]
    elif "stonewall" in stop:
        arguments.append(f"--runtime={parse_duration(stop['stonewall']):.0f}")
    return arguments
