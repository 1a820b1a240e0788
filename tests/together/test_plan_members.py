# SPDX-License-Identifier: Apache-2.0
"""A simulated run uses each member of a plan, refuses it, or names it as ignored.

Each case changes one member of a plan. The record must then differ, the simulator must refuse the plan, or a finding
`model_ignores` must name the member.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError
from sonde.model.system import read_system

ROOT = Path(__file__).resolve().parents[2]
try:
    SIMULATOR = find_simulator()
except MachineError as reason:  # a tree without C++ programs
    pytest.skip(str(reason), allow_module_level=True)

PATCH = dict[str, Any]
FILES: PATCH = {
    "schema": "sonde-plan/2",
    "id": "t",
    "target": {"path": "/scratch"},
    "tasks": {"processes": 4},
    "data": {"access": {"transfer": "64KiB", "block": "256KiB", "segments": 8}, "io": {"fsync": "end"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read", "shift": {"by": "nodes", "n": 1}}],
}
MANY: PATCH = {**FILES, "data": {**FILES["data"], "files": {"mapping": "many", "count": 4}}}
SHARED: PATCH = {**FILES, "data": {**FILES["data"], "files": {"mapping": "shared"}}}
URING: PATCH = {**FILES, "data": {**FILES["data"], "backend": "io_uring", "io": {"direct": True}}}
TREE: PATCH = {
    "schema": "sonde-plan/2",
    "id": "t",
    "target": {"path": "/scratch"},
    "tasks": {"processes": 4},
    "meta": {"tree": {"depth": 2, "branching": 3, "items_per_dir": 4}},
    "phases": [{"id": name, "op": name} for name in ("mktree", "create", "stat", "walk", "read")],
}
WRITTEN: PATCH = {**TREE, "meta": {**TREE["meta"], "file": {"write": 65536, "read": 65536}}}
GROUPED: PATCH = {**FILES, "data": {**FILES["data"], "files": {"mapping": "per_group", "group_size": 2}}}
REWRITE: PATCH = {**FILES, "phases": [{"id": "write", "op": "write"}, {"id": "again", "op": "write"}]}
CYCLE_ITEMS = {"first": 0, "count": 5, "across": True}
CYCLE: PATCH = {
    **TREE,
    "meta": {
        "tree": {"copies": 2, "scope": "per_task", "items_per_dir": 1000},
        "file": {"write": 8, "read": 8, "exclusive": False},
        "payload": {"kind": "ior_timestamp"},
        "lookup": {"paths": "full"},
    },
    "phases": [
        {"id": "mktree", "op": "mktree"},
        {"id": "create", "op": "create", "meta": {"window": CYCLE_ITEMS}},
        {"id": "cycle", "op": "cycle", "meta": {"window": {**CYCLE_ITEMS, "count": 3}, "cycle": {"working": 5}}},
    ],
}
TRAIN: PATCH = {
    **MANY,
    "phases": [
        {"id": "write", "op": "write"},
        {"id": "train", "op": "train", "training": {"batch_size": 2, "compute_time": "5ms"}},
    ],
}
PACED: PATCH = {
    **FILES,
    "data": {**FILES["data"], "backend": "paced", "io": {}, "paced": {"rate": "100MB/s"}},
    "phases": FILES["phases"][:1],
}
# Members for people, and those that say where a real run puts its files and how it is watched.
WITHOUT_EFFECT = {
    "schema", "id", "title", "notes", "source", "calibrated", "target.path", "target.directory", "target.keep",
    "target.keep_manifest", "target.use_existing", "target.min_free", "target.full_stripe", "observe.progress",
    "phases.id", "phases.streams.id",
}  # fmt: skip


def with_access(plan: Mapping[str, Any], **members: Any) -> PATCH:
    data = plan["data"]
    access = {name: value for name, value in {**data["access"], **members}.items() if value is not None}
    return {**plan, "data": {**data, "access": access}}


def with_mpiio(plan: Mapping[str, Any]) -> PATCH:
    return {**plan, "data": {**plan["data"], "backend": "mpiio"}}


def with_hdf5(plan: Mapping[str, Any]) -> PATCH:
    return {**plan, "data": {**plan["data"], "backend": "hdf5"}}


def with_paced(**members: Any) -> PATCH:
    return {
        **PACED,
        "data": {**PACED["data"], "paced": {name: value for name, value in members.items() if value is not None}},
    }


# Members that the model does not use, and says so.
IGNORED = {
    "data.verify",
    "data.payload.kind",
    "data.payload.compressible",
    "data.payload.duplicates",
    "data.payload.period",
    "data.payload.seed",
    "tasks.pin",
    "data.io.view",
    "data.io.hints",
    "data.io.collective",
    "data.io.gpus",
    "data.io.chunk",
    "data.io.alignment",
    "data.io.collective_metadata",
    "data.io.registered",
    "data.io.sqpoll",
    "data.io.iopoll",
    "data.io.continue_short",
    "data.files.directories",
    "phases.operations_file",
    "phases.process",
    "phases.unless_mismatch",
    "limits.time",
    "meta.lookup.stat",
    "meta.lookup.freshness",
    "meta.lookup.fields",
    "meta.lookup.paths",
    "meta.verify",
    "meta.payload.kind",
    "meta.payload.seed",
    "meta.payload.period",
    "meta.payload.compressible",
    "meta.payload.duplicates",
}
CASES: list[tuple[str, PATCH, Any]] = [
    ("data.verify", FILES, "on_read"),
    ("target.s3", FILES, {"region": "us-east-2"}),
    ("target.device", SHARED, True),
    ("data.payload.kind", FILES, "random"),
    ("data.payload.compressible", FILES, 0.5),
    ("data.payload.duplicates", FILES, 0.5),
    ("data.payload.period", FILES, "1MiB"),
    ("data.payload.seed", FILES, 7),
    ("tasks.pin", FILES, True),
    ("data.io.view", with_mpiio(SHARED), True),
    ("data.io.hints", with_mpiio(SHARED), {"romio_cb_write": "enable"}),
    ("data.io.gpus", FILES, [0]),
    ("data.io.registered", FILES, False),
    ("data.io.continue_short", FILES, False),
    ("data.io.collective", with_mpiio(SHARED), True),
    ("data.io.chunk", with_hdf5(SHARED), "64KiB"),
    ("data.io.alignment", with_hdf5(SHARED), "1MiB"),
    ("data.io.collective_metadata", with_hdf5(SHARED), True),
    ("data.io.direct", FILES, True),
    ("data.io.sync", FILES, "dsync"),
    ("data.io.pause", FILES, "1ms"),
    ("data.io.queue_depth", URING, 8),
    ("data.io.sqpoll", URING, True),
    ("data.io.iopoll", URING, True),
    ("data.io.fsync", FILES, "none"),
    ("data.backend", FILES, "mmap"),
    ("data.access.order", FILES, "random_permute"),
    ("data.files.mapping", FILES, "shared"),
    ("data.files.directories", FILES, "per_task"),
    ("data.files.count", MANY, 8),
    (
        "data.files.group_size",
        {**FILES, "data": {**FILES["data"], "files": {"mapping": "per_group", "group_size": 2}}},
        4,
    ),
    ("data.access.gap", FILES, "64KiB"),
    ("data.access.offset", FILES, "1MiB"),
    ("data.access.stride", with_access(FILES, order="stride", stride="128KiB"), "256KiB"),
    ("data.access.scope", with_access(SHARED, order="random_permute"), "file"),
    ("data.access.seed", with_access(FILES, order="random_permute"), 9),
    ("target.striping", FILES, {"count": 4}),
    ("phases.operations_file", FILES, "calls.csv"),
    ("phases.process", FILES, "separate"),
    ("phases.barrier", FILES, "intra"),
    ("phases.measure", FILES, False),
    ("phases.unless_mismatch", FILES, True),
    ("phases.before", FILES, [{"kind": "command", "command": "true"}]),
    ("phases.valid", FILES, {"min_time": "1h"}),
    ("phases.shift", FILES, {"by": "random", "seed": 3}),
    ("phases.stop", FILES, {"time": "1s"}),
    ("limits.time", FILES, "1us"),
    ("limits.begin", FILES, "1us"),
    ("observe.slice", FILES, "10ms"),
    ("observe.max_slices", {**FILES, "observe": {"slice": "1us"}}, 64),
    ("meta.file.create", TREE, "mknod"),
    ("meta.file.direct", WRITTEN, True),
    ("meta.file.fsync", WRITTEN, True),
    ("meta.file.shared_single", TREE, True),
    ("meta.lookup.stat", TREE, "statx"),
    ("meta.lookup.freshness", {**TREE, "meta": {**TREE["meta"], "lookup": {"stat": "statx"}}}, "force"),
    ("meta.lookup.fields", {**TREE, "meta": {**TREE["meta"], "lookup": {"stat": "statx"}}}, ["size"]),
    ("meta.lookup.paths", TREE, "full"),
    ("meta.lookup.examine_all", TREE, False),
    ("meta.lookup.walk_from", TREE, "directory"),
    ("meta.sync", TREE, True),
    ("meta.single_task", TREE, True),
    ("meta.verify", WRITTEN, "on_read"),
    ("meta.payload.kind", WRITTEN, "random"),
    ("meta.select.order", TREE, "permute"),
    ("meta.objects", {**TREE, "phases": TREE["phases"][:3]}, "directories"),
    ("meta.names.file", TREE, "long-name"),
    ("meta.tree.scope", TREE, "per_task"),
    ("meta.tree.leaf_only", TREE, True),
    ("meta.tree.copies", TREE, 2),
    ("meta.cycle.wait", CYCLE, 2.0),
    ("meta.cycle.spread", CYCLE, 2),
    ("data.paced.latency", PACED, "1ms"),
    ("data.paced.fail_after", PACED, 3),
    ("data.access.transfer", FILES, "128KiB"),
    ("data.access.block", FILES, "128KiB"),
    ("data.access.segments", FILES, 9),
    ("data.access.volume", with_access(FILES, segments=None), "4MiB"),
    ("data.access.within", with_access(FILES, order="random_replace"), "1MiB"),
    ("data.access.distribution", with_access(FILES, order="random_replace"), {"kind": "zipf", "theta": 1.5}),
    (
        "data.access.sizes",
        with_access(FILES, order="random_replace"),
        [{"size": "4KiB", "percent": 60}, {"size": "64KiB", "percent": 40}],
    ),
    ("data.io.rate_limit", FILES, "10MB/s"),
    ("data.io.iops_limit", FILES, 100),
    ("phases.training", TRAIN, {"batch_size": 4, "compute_time": "5ms"}),
    ("data.paced.ramp", with_paced(schedule=[{"at": "0s", "rate": "50MB/s"}, {"at": "5ms", "rate": "10MB/s"}]), True),
    ("tasks.processes", FILES, 6),
    ("tasks.threads", FILES, 2),
    ("tasks.active", FILES, 2),
    ("phases.op", FILES, "reread"),
    ("phases.files", MANY, [0]),
    ("meta.file.write", WRITTEN, 131072),
    ("meta.file.read", WRITTEN, 4096),
    ("meta.tree.depth", TREE, 1),
    ("meta.tree.branching", TREE, 2),
    ("meta.tree.items_per_dir", TREE, 5),
    ("meta.tree.home_shift", {**TREE, "meta": {"tree": {**TREE["meta"]["tree"], "scope": "per_task"}}}, 1),
    ("meta.names.branch", TREE, "long-branch"),
    ("meta.find.type", TREE, "directory"),
    ("meta.find.name", TREE, "*3"),
    ("meta.find.size", TREE, "1KiB"),
    ("meta.cycle.keep", CYCLE, True),
    ("meta.payload.seed", WRITTEN, 5),
    ("meta.payload.period", WRITTEN, "1MiB"),
    ("meta.payload.compressible", WRITTEN, 0.5),
    ("meta.payload.duplicates", WRITTEN, 0.5),
    ("data.paced.rate", PACED, "200MB/s"),
    ("data.paced.slow_tasks", PACED, {"1": 3}),
    ("data.paced.schedule", with_paced(rate=None), [{"at": "0s", "rate": "50MB/s"}]),
]


def set_member(plan: Mapping[str, Any], path: str, value: Any) -> PATCH:
    """The plan with the member changed; of phases in the last one."""
    changed = copy.deepcopy(dict(plan))
    steps = path.split(".")
    table = changed["phases"][-1] if steps[0] == "phases" else changed
    for step in steps[1 if steps[0] == "phases" else 0 : -1]:
        table = table.setdefault(step, {})
    table[steps[-1]] = value
    return changed


def simulate(folder: Path, system: Path, plan: PATCH) -> tuple[int, str, list[dict[str, Any]]]:
    """Exit code, message and the lines of the record but those that repeat the plan."""
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    record = folder / "record.ndjson"
    record.unlink(missing_ok=True)
    command = [
        str(SIMULATOR),
        "run",
        str(folder / "plan.json"),
        "--system",
        str(system),
        "--nodes",
        "2",
    ]
    command += ["--record", str(record), "--started", "2014-08-23T12:00:00Z"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    return done.returncode, done.stderr, [_without_plan(line) for line in lines]


def _without_plan(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in ("plan", "plan_hash", "hash", "seed")}


# Members of the loops of the engine, which the simulator executes too; tests/engine tests their effect. The calls that
# they choose cost the same in the model, or they need a plan of a special form.
OF_THE_LOOPS = {
    "data.access.read_ratio", "data.files.across", "data.files.name", "data.files.paths", "data.files.suffix",
    "data.io.preallocate", "data.paced.delays", "data.paced.fail_errno", "data.paced.virtual_clock", "meta.backend",
    "meta.cycle.working", "meta.file.exclusive", "meta.find.newer_than", "meta.find.newer_than_file",
    "meta.find.size_max", "meta.find.size_min", "meta.missing", "meta.names.directory", "phases.streams",
    "phases.open", "meta.paced",
    "meta.select.exponent", "meta.select.seed",
    "meta.tree.items_per_task", "meta.tree.top", "meta.window", "phases.data_of", "phases.on", "phases.suffix",
    "phases.io", "phases.backend", "phases.access", "phases.verify", "phases.replay_file", "phases.think_time",
}  # fmt: skip


def list_members(node: Mapping[str, Any], schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of all members without tables below them; `meta` of a phase is that of the plan."""
    if "$ref" in node:
        target: Any = schema
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    for choice in ("oneOf", "anyOf", "allOf"):
        for option in node.get(choice, ()):
            yield from list_members(option, schema, path)
    if "properties" in node:
        for name, child in node["properties"].items():
            yield from list_members(child, schema, (*path, name))
    elif node.get("type") == "array" and isinstance(node.get("items"), dict):
        yield from list_members(node["items"], schema, path)
    elif path:
        yield ".".join(path).replace("phases.meta.", "meta.")


def test_each_member_of_a_plan_has_a_use_when_simulated() -> None:
    schema = json.loads((ROOT / "schema" / "plan" / "plan.schema.json").read_text(encoding="utf-8"))
    members = set(list_members(schema, schema))
    described = {member for member, _, _ in CASES} | WITHOUT_EFFECT | OF_THE_LOOPS
    missing = {member for member in members if not any(f"{member}.".startswith(f"{path}.") for path in described)}
    assert len(members) > 100
    assert missing == set()
    assert {path for path in described if not any(f"{member}.".startswith(f"{path}.") for member in members)} == set()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("system") / "sonexion.json"
    path.write_text(read_system(str(ROOT / "systems" / "sonexion-1300.toml")).to_json(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def records() -> dict[str, list[dict[str, Any]]]:
    """Records of plans that several cases change."""
    return {}


@pytest.mark.parametrize(("member", "plan", "member_value"), CASES, ids=[member for member, _, _ in CASES])
def test_simulated_run_uses_or_names_the_member(
    member: str, plan: PATCH, member_value: Any, tmp_path: Path, system: Path, records: dict[str, list[dict[str, Any]]]
) -> None:
    key = json.dumps(plan)
    if key not in records:
        code, message, records[key] = simulate(tmp_path, system, plan)
        assert code == 0, message
    code, message, changed_lines = simulate(tmp_path, system, set_member(plan, member, member_value))
    if code in (2, 3):
        assert message.count("\n") == 1
        assert member.split(".")[-1] in message
    else:
        assert changed_lines != records[key]
        ignored = " ".join(line["text"] for line in changed_lines if line.get("id") == "model_ignores")
        assert (member in re.split(r"[ ,:]+", ignored)) == (member in IGNORED)
