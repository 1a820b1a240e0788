# SPDX-License-Identifier: Apache-2.0
"""Each part of the key of a series as it is written, and the keys of runs of other tools and of simulated ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from sonde.model.history_key import (
    BYTES_PER_S,
    CLUSTER_VARIABLE,
    EPOCH_VARIABLE,
    FILE_SYSTEM_VARIABLE,
    OPS_PER_S,
    SYSTEM_VARIABLE,
    HistoryKey,
    RunKey,
    compute_run_key,
    describe_node_class,
    estimate_installed_gib,
    read_site_facts,
    strip_host_numbers,
)
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.model.line_members import FileSystemFacts
from sonde.model.lines import NodeLine, RunLine
from sonde.model.parents import GENERIC_SERVER_LEVEL, SERVER_LEVELS, TargetParents, parse_parents, strip_host_suffix
from sonde.model.plan_hash import compute_plan_hash, hash_json

LUSTRE = FileSystemFacts(type="lustre", mount_point="/scratch", source="b@o2ib:a@o2ib:/snx", network=True)
DISK = FileSystemFacts(type="ext4", mount_point="/", source="/dev/sda1")


def node(host: str, system: FileSystemFacts = LUSTRE, **more: Any) -> NodeLine:
    return NodeLine(host=host, file_system=system, **more)


def file_system_of(*machines: NodeLine, target: str = "/scratch/probe") -> str:
    return compute_run_key(RunLine(), machines, target, {}).file_system


@pytest.mark.parametrize(
    ("machines", "target", "expected"),
    [
        ([node("n1")], "/scratch/probe", "lustre:a@o2ib:b@o2ib:/snx probe"),
        ([node("n1")], "/scratch", "lustre:a@o2ib:b@o2ib:/snx /"),
        ([node("n1")], "/scratch/", "lustre:a@o2ib:b@o2ib:/snx /"),
        ([node("n1")], "/scratchy/x", "lustre:a@o2ib:b@o2ib:/snx scratchy/x"),
        ([node("n1", DISK)], "/a/b", "ext4:/dev/sda1@n1 a/b"),
        ([node("n1", DISK), node("n1", DISK)], "/", "ext4:/dev/sda1@n1 /"),
        ([node("n1", FileSystemFacts())], "/a", "unknown@n1 a"),
        ([node("n1", FileSystemFacts(type="nfs", network=True))], "/a", "nfs: a"),
        ([node("n1", FileSystemFacts(source="x", network=True))], "/a", ":x a"),
        ([], "/a/b", "unknown /a/b"),
    ],
)
def test_file_system_key_has_mount_and_relative_directory(machines: list[NodeLine], target: str, expected: str) -> None:
    assert file_system_of(*machines, target=target) == expected


def test_local_disks_of_several_nodes_carry_a_hash_of_names() -> None:
    both = file_system_of(node("n2", DISK), node("n1", DISK), target="/a")
    assert both == f"ext4:/dev/sda1@2 nodes {hash_json(['n1', 'n2'], 6)} a"


@pytest.mark.parametrize(
    ("hosts", "system"),
    [
        (["nid00123.local"], "nid"),
        (["nid1", "nid2"], "nid"),
        (["login-1", "nid2"], "login+nid"),
        (["_42"], "_42"),
        (["1234"], "1234"),
        ([""], "unknown"),
        ([], "unknown"),
    ],
)
def test_system_name_is_the_common_part_of_host_names(hosts: list[str], system: str) -> None:
    assert compute_run_key(RunLine(), [node(host) for host in hosts], "/a", {}).system == system


def test_host_stem_has_no_numbers_and_no_domain() -> None:
    assert [strip_host_numbers(host) for host in ("nid00123.x1.org", "gpu-07-a", "-9-", "")] == [
        "nid",
        "gpu--a",
        "-9-",
        "",
    ]


def test_all_parts_of_the_key_of_a_run() -> None:
    plan = {"schema": "sonde-plan/2", "id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", "op": "write"}]}
    run = RunLine(schema="sonde-record/2", processes=2, threads=3, nodes=4, plan=plan)
    machine = node("nid1", cpu_model=" AMD  EPYC ", cpus=64, memory_bytes=251 << 30)
    run_key = compute_run_key(run, [machine], "/scratch/a", {"epoch": "refit"})
    hashed = compute_plan_hash(plan, 2, 3, 4)
    assert run_key == RunKey("nid", "lustre:a@o2ib:b@o2ib:/snx a", hashed, "AMD EPYC, 64 cpus, 256 GiB",
                           "sonde-record/2 refit")  # fmt: skip
    simulated = replace(run, simulated={"system": "demo", "mount": "m"})
    site = {"system": "edison", "file_system": "scratch", "epoch": "refit"}
    simulated_key = compute_run_key(simulated, [machine], "/scratch/a", site)
    assert (simulated_key.system, simulated_key.file_system, simulated_key.epoch) == (
        "simulated demo",
        "m",
        "sonde-record/2",
    )
    bare = compute_run_key(replace(run, simulated={"x": 1}), [machine], "/scratch/a", site)
    assert (bare.system, bare.file_system) == ("simulated ", "lustre:a@o2ib:b@o2ib:/snx a")


def test_the_key_of_a_series_has_an_id_and_that_of_its_run_inside() -> None:
    key = HistoryKey("s", "f", "h", "n", "e", "write", "write", "cold", "sonde total", "bytes_per_s")
    assert key.run_key == RunKey("s", "f", "h", "n", "e")
    assert key.id == "b820a59c19"
    assert len({key.id, *(replace(key, **{name: "x"}).id for name in vars(key))}) == 11
    assert (BYTES_PER_S, OPS_PER_S) == ("bytes_per_s", "ops_per_s")


@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        ([node("a", cpus=4)], "4 cpus"),
        ([node("a", memory_bytes=1 << 30)], "1 GiB"),
        ([node("a", cpu_model="X")], "X"),
        ([node("a"), node("b", cpus=4), node("c", cpu_model="A", cpus=0)], "4 cpus + A"),
        ([node("a")], ""),
    ],
)
def test_node_class_contains_the_available_facts(machines: list[NodeLine], expected: str) -> None:
    assert describe_node_class(machines) == expected


@pytest.mark.parametrize(
    ("gib", "expected"),
    [(0, 1), (1, 1), (1.1, 2), (2, 2), (2.5, 3), (3, 3), (3.1, 4), (5, 6), (7, 8), (95, 96), (97, 128)],
)
def test_installed_memory_is_the_next_common_size(gib: float, expected: int) -> None:
    assert estimate_installed_gib(int(gib * 2**30)) == expected


def test_site_variables_precede_the_scheduler_cluster_name() -> None:
    assert (SYSTEM_VARIABLE, FILE_SYSTEM_VARIABLE, EPOCH_VARIABLE, CLUSTER_VARIABLE) == (
        "SONDE_SYSTEM", "SONDE_FILE_SYSTEM", "SONDE_EPOCH", "SLURM_CLUSTER_NAME",
    )  # fmt: skip
    every = {SYSTEM_VARIABLE: "a", CLUSTER_VARIABLE: "b", FILE_SYSTEM_VARIABLE: " c ", EPOCH_VARIABLE: "d"}
    assert read_site_facts(every) == {"system": "a", "file_system": "c", "epoch": "d"}
    assert read_site_facts({SYSTEM_VARIABLE: "", CLUSTER_VARIABLE: " b"}) == {"system": "b"}
    assert read_site_facts({SYSTEM_VARIABLE: "  "}) == {}


STARTED = datetime(2026, 11, 21, 20, 45, 1, tzinfo=UTC)


def make_imported_run(**more: Any) -> ImportedRun:
    members: dict[str, Any] = {"tool": "IOR 4.1.0", "name": "ior easy", "started": STARTED, "experiment": {"t": 1}}
    return ImportedRun(**members | {"phases": ()} | more)


def test_imported_run_has_the_same_id_each_time() -> None:
    first = make_imported_run()
    assert first.make_run_id() == make_imported_run().make_run_id()
    assert first.make_run_id().startswith("20261121T204501Z-ior-easy-")
    assert len(first.make_run_id()) == len("20261121T204501Z-ior-easy-") + 8
    assert make_imported_run(title="x").make_run_id() != first.make_run_id()
    assert make_imported_run(name="--ä.").make_run_id().startswith("20261121T204501Z-run-")
    assert make_imported_run(name="a" * 50).make_run_id().startswith(f"20261121T204501Z-{'a' * 40}-")


def test_the_key_of_a_run_of_another_tool() -> None:
    bare = make_imported_run(tasks=4).make_history_key_of_all_phases()
    source = {"tool": "IOR", "tasks": 4, "nodes": None, "t": 1}
    assert bare == {
        "system": "unknown", "file_system": "unknown", "plan_hash": hash_json(["imported/1", source]),
        "node_class": "", "epoch": "imported/1",
    }  # fmt: skip
    run = make_imported_run(tasks=4, host="nid0012", target="/scratch", node_class="N")
    assert run.make_history_key_of_all_phases() == bare | {
        "system": "nid",
        "file_system": "/scratch",
        "node_class": "N",
    }
    named_run = replace(run, system="edison", file_system="snx")
    assert (
        named_run.make_history_key_of_all_phases()["system"],
        named_run.make_history_key_of_all_phases()["file_system"],
    ) == ("edison", "snx")


def test_unset_members_of_an_imported_phase_are_unknown() -> None:
    phase = ImportedPhase("w", "write", "IOR 4.1.0 bw")
    assert vars(phase) == {
        "phase": "w", "op": "write", "definition": "IOR 4.1.0 bw", "bytes_per_s": None, "ops_per_s": None,
        "bytes": None, "ops": None, "seconds": None, "backend": "", "cache": "unknown", "done": True, "also": {},
    }  # fmt: skip
    members = {
        name: value for name, value in vars(make_imported_run()).items() if name not in ("tool", "name", "started")
    }
    assert members == {
        "experiment": {"t": 1}, "phases": (), "title": "", "system": "", "host": "", "target": "", "file_system": "",
        "node_class": "", "tasks": None, "nodes": None, "seconds": None, "group": None, "status": "done", "text": "",
        "command": "", "context": {}, "findings": (),
    }  # fmt: skip


LEVELS: dict[str, dict[str, tuple[str, ...]]] = {"SSU": {"ssu0": ("1", "2")}, "OSS": {"oss0": ("1",), "oss1": ("2",)}}


def test_recorded_target_name_finds_its_server_and_unit() -> None:
    parents = TargetParents("site", LEVELS)
    assert (parents.find_server_of_target("2@b"), parents.find_unit_of_target("2@b")) == ("oss1", "ssu0")
    assert (parents.find_server_of_target("3"), parents.find_unit_of_target("3")) == (None, None)
    assert TargetParents("", {"server": {"s": ("1",)}}).find_server_of_target("1") == "s"
    assert TargetParents("", {"MDS": {"m": ("1",)}}).find_unit_of_target("1") is None
    assert parents.map_targets_to_parts("OSS") == {"1": "oss0", "2": "oss1"}
    assert parents.map_targets_to_parts("rack") == {}
    assert (bool(parents), bool(TargetParents("site"))) == (True, False)
    assert (SERVER_LEVELS, GENERIC_SERVER_LEVEL) == ({"ost": "OSS", "mdt": "MDS", "nsd": "NSD server"}, "server")
    assert strip_host_suffix("4201@oss-4@x") == "4201"


def test_parents_are_restricted_to_the_recorded_targets() -> None:
    parents = TargetParents("site", LEVELS)
    assert parents.restrict_to_targets(["2@b"]) == TargetParents(
        "site", {"SSU": {"ssu0": ("2",)}, "OSS": {"oss1": ("2",)}}
    )
    assert parents.restrict_to_targets(["9"]) == TargetParents("site", {})
    assert parents.to_json() == {
        "system": "site", "levels": {"SSU": {"ssu0": ["1", "2"]}, "OSS": {"oss0": ["1"], "oss1": ["2"]}},
    }  # fmt: skip
    assert parse_parents(parents.to_json()) == parents
    assert parse_parents({"levels": {"OSS": {"a": [1], "b": "c"}, "x": 3}}) == TargetParents("", {"OSS": {"a": ("1",)}})
    assert parse_parents({"system": None, "levels": {}}) == TargetParents("", {})
