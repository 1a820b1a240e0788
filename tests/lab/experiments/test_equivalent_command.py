# SPDX-License-Identifier: Apache-2.0
"""The command of a classic tool for a plan: the engine reads the words of IOR and mdtest back as the same plan."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sonde.conduct.run import RunSetup
from sonde.conduct.tool_run import ToolCommand, resolve_plans_of_tool
from sonde.experiments.equivalent_command import find_equivalent_command
from sonde.launch.engine import Engine
from sonde.model.plan import Plan
from sonde.model.units import parse_bytes
from sonde.model.volume import compute_phase_volumes
from sonde.store.archive import Archive

WRITE, READ = {"id": "write", "op": "write"}, {"id": "read", "op": "read"}


def plan(target: Path, phases: list[dict[str, Any]], **members: Any) -> Plan:
    return Plan.from_document({"id": "p", "target": {"path": str(target)}, "phases": phases, **members}, "p")


def print_command(plan: Plan) -> list[str]:
    equivalent = find_equivalent_command(plan, compute_phase_volumes(plan, plan.processes * plan.threads))
    assert equivalent.command, equivalent.reason
    return shlex.split(equivalent.command)


def read_back(engine: Engine, archive: Path, arguments: list[str]) -> Plan:
    """The plan that the engine's dialect makes of the arguments."""
    arguments = arguments[3:] if arguments[0] == "mpiexec" else arguments
    (plan,) = resolve_plans_of_tool(ToolCommand(arguments[0], tuple(arguments[1:])), RunSetup(engine, Archive(archive)))
    return plan


DATA = {"access": {"transfer": "1MiB", "block": "4MiB", "segments": 3}, "files": {"mapping": "per_task"}}


@pytest.mark.engine
@pytest.mark.parametrize(
    "data",
    [
        DATA,
        {**DATA, "files": {"mapping": "shared"}},
        {**DATA, "io": {"direct": True, "fsync": "end"}},
        {**DATA, "backend": "mpiio", "files": {"mapping": "shared"}},
        {**DATA, "backend": "mpiio", "files": {"mapping": "shared"}, "io": {"collective": True, "view": True}},
        {**DATA, "backend": "hdf5", "io": {"chunk": "1MiB", "alignment": "4KiB", "collective_metadata": True}},
        {**DATA, "access": {"transfer": "64KiB", "block": "1MiB", "volume": "8MiB"}},
    ],
)
def test_ior_command_parses_to_same_plan(data: dict[str, Any], target: Path, archive: Path, engine: Engine) -> None:
    original = plan(target, [WRITE, READ], data=data)
    parsed = read_back(engine, archive, print_command(original))
    wanted, got = original.resolve_data(original.phases[0]), parsed.resolve_data(parsed.phases[0])
    assert compute_phase_volumes(parsed, 4)[0].bytes == compute_phase_volumes(original, 4)[0].bytes
    assert [phase["op"] for phase in parsed.phases][:2] == ["write", "read"]
    for member in ("transfer", "block", "order"):
        units = compute_phase_volumes(parsed, 4)[0], compute_phase_volumes(original, 4)[0]
        in_bytes = f"{member}_bytes"
        assert getattr(units[0], in_bytes, got["access"][member]) == getattr(
            units[1], in_bytes, wanted["access"][member]
        )
    assert (got["backend"], got["files"]["mapping"]) == (wanted["backend"], wanted["files"]["mapping"])
    for member in ("direct", "fsync", "collective", "view", "collective_metadata"):
        assert got["io"][member] == wanted["io"][member]
    for member in ("chunk", "alignment"):
        assert parse_bytes(got["io"][member]) == parse_bytes(wanted["io"][member])


@pytest.mark.engine
def test_mdtest_command_parses_to_same_tree(target: Path, archive: Path, engine: Engine) -> None:
    meta = {"objects": "files", "tree": {"depth": 2, "branching": 3, "items_per_task": 130, "scope": "per_task"},
            "file": {"write": "4KiB", "read": "4KiB"}}  # fmt: skip
    phases = [{"id": operation, "op": operation} for operation in ("mktree", "create", "stat", "remove")]
    phases[2] = {**phases[2], "on": "meta"}
    phases[3] = {**phases[3], "on": "meta"}
    original = plan(target, phases, meta=meta)
    parsed = read_back(engine, archive, print_command(original))
    assert [phase["op"] for phase in parsed.phases if phase["op"] not in ("mktree", "rmtree")] == [
        "create",
        "stat",
        "remove",
    ]
    tree = parsed.resolve_meta(next(phase for phase in parsed.phases if phase["op"] == "create"))
    assert (tree["tree"]["depth"], tree["tree"]["branching"], tree["tree"]["scope"]) == (2, 3, "per_task")
    assert tree["tree"]["items_per_dir"] == 130 // 13
    assert int(tree["file"]["write"]) == 4096


def test_several_tasks_have_launcher_in_command(target: Path) -> None:
    arguments = print_command(plan(target, [WRITE], data=DATA, tasks={"processes": 2, "threads": 4}))
    assert arguments[:4] == ["mpiexec", "-n", "8", "ior"]


def test_time_limit_and_shift_become_ior_options(target: Path) -> None:
    stop = {"stonewall": "30s", "wearout": True}
    arguments = print_command(plan(target, [{**WRITE, "stop": stop},
        {**READ, "stop": stop, "shift": {"by": "tasks", "n": 2}}],
                      data=DATA))  # fmt: skip
    assert arguments[arguments.index("-D") + 1] == "30"
    assert "stoneWallingWearOut=1" in arguments
    assert arguments[arguments.index("-Q") + 1] == "2"


def test_queued_phase_becomes_valid_fio_command(target: Path) -> None:
    data = {"backend": "io_uring", "access": {"transfer": "2MiB", "volume": "8MiB", "offset": "256KiB"},
            "files": {"mapping": "per_task"}, "io": {"queue_depth": 8, "direct": True, "sqpoll": True}}  # fmt: skip
    arguments = print_command(plan(target, [WRITE], data=data))
    for word in (
        "--iodepth=8",
        "--direct=1",
        "--sqthread_poll=1",
        "--offset=262144",
        "--bs=2097152",
        "--size=8388608",
        "--rw=write",
    ):
        assert word in arguments
    import shutil

    if shutil.which("fio"):
        done = subprocess.run([*arguments, "--parse-only"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("phases", "members", "expected_reason"),
    [
        ([WRITE], {"data": {"access": {"transfer": "1MiB", "offset": "4KiB"}}}, "begin at an offset in the file"),
        ([WRITE], {"data": {"access": {"transfer": "1MiB", "gap": "4KiB"}}}, "leave gaps"),
        ([WRITE, {**READ, "before": [{"kind": "sync"}]}], {"data": DATA}, "does nothing to caches before a phase"),
        ([WRITE, {"id": "d", "op": "mixed"}], {"data": DATA}, "no phase like mixed"),
        ([WRITE, {**READ, "access": {"order": "random_permute"}}], {"data": DATA}, "phases differ in access"),
        ([WRITE], {"data": {**DATA, "io": {"preallocate": "fallocate"}}}, "preallocation"),
        ([WRITE, READ], {"data": {**DATA, "backend": "io_uring"}}, "a command for each phase"),
        ([{"id": "w", "op": "walk"}], {"meta": {"tree": {"items_per_task": 5}}}, "mdtest has no phase like walk"),
        ([WRITE, {"id": "c", "op": "create"}], {"data": DATA, "meta": {"tree": {"items_per_task": 5}}}, "in one plan"),
    ],
)
def test_plan_without_equivalent_has_reason(
    phases: list[dict[str, Any]], members: dict[str, Any], expected_reason: str, target: Path
) -> None:
    original = plan(target, phases, **members)
    equivalent = find_equivalent_command(original, compute_phase_volumes(original, 1))
    assert equivalent.command == ""
    assert expected_reason in equivalent.reason
