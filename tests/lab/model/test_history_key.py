# SPDX-License-Identifier: Apache-2.0
"""Comparable and incomparable runs: near-miss pairs for every part of the history key."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sonde.model.history_key import (
    classify_cache,
    compute_run_key,
    describe_node_class,
    estimate_installed_gib,
    read_site_facts,
)
from sonde.model.line_members import FileSystemFacts
from sonde.model.lines import NodeLine, RunLine
from sonde.model.plan_hash import compute_plan_hash

PLAN: dict[str, Any] = {
    "schema": "sonde-plan/2",
    "id": "daily",
    "target": {"path": "/scratch/probe"},
    "tasks": {"threads": 2},
    "data": {"access": {"transfer": "1MiB", "volume": "1GiB", "seed": 7}, "io": {"fsync": "end"}},
    "phases": [
        {"id": "write", "op": "write"},
        {"id": "read", "op": "read", "before": [{"kind": "drop_page_cache"}]},
    ],
}
LUSTRE = FileSystemFacts(type="lustre", mount_point="/scratch", source="10.0.0.1@o2ib:10.0.0.2@o2ib:/snx", network=True)
DISK = FileSystemFacts(type="ext4", mount_point="/", source="/dev/sda1", network=False)
NODE = NodeLine(
    host="nid00123", kernel="5.14", cpus=64, cpu_model="AMD EPYC 7763", memory_bytes=251 << 30, file_system=LUSTRE
)
RUN = RunLine(schema="sonde-record/2", tasks=4, processes=2, threads=2, nodes=1, plan=PLAN)


def change_plan_members(**steps: Any) -> dict[str, Any]:
    """The plan with one member set, named like phases__0__op; None removes it."""
    plan = copy.deepcopy(PLAN)
    for name, value in steps.items():
        *path, last = name.split("__")
        here: Any = plan
        for step in path:
            here = here[int(step)] if step.isdigit() else here.setdefault(step, {})
        if value is None:
            here.pop(last)
        else:
            here[last] = value
    return plan


def digest(plan: dict[str, Any], processes: int = 2, threads: int = 2, nodes: int = 1) -> str:
    return compute_plan_hash(plan, processes, threads, nodes)


@pytest.mark.parametrize(
    "same",
    [
        change_plan_members(data__access__transfer=1 << 20),
        change_plan_members(data__access__transfer="1024KiB"),
        change_plan_members(data__access__volume="1024MiB"),
        change_plan_members(data__access__order="sequential"),
        change_plan_members(data__io__direct=False),
        change_plan_members(data__access__seed=8),
        change_plan_members(data__payload={"seed": 3}),
        change_plan_members(id="other", title="The same thing under another name"),
        change_plan_members(target__path="/scratch/elsewhere"),
        change_plan_members(target__min_free="1GiB"),
        change_plan_members(observe={"slice": "10ms"}),
        change_plan_members(limits={"time": "1h"}),
        change_plan_members(phases__0__measure=True),
        change_plan_members(phases__0__open="truncate"),
        change_plan_members(phases__0__io={"fsync": "end"}),
        change_plan_members(phases__1__before=[{"kind": "drop_page_cache", "need": "required"}]),
        change_plan_members(phases__1__valid={"min_time": "10s"}),
        change_plan_members(tasks=None),
    ],
    ids=lambda plan: "plan",
)
def test_equivalent_plans_have_equal_digests(same: dict[str, Any]) -> None:
    assert digest(same) == digest(PLAN)


def test_a_stripe_is_the_same_in_any_unit() -> None:
    sizes = [digest(change_plan_members(target__striping={"size": size})) for size in ("1MiB", "1024KiB", 1 << 20)]
    assert len(set(sizes)) == 1


def test_data_members_may_move_into_each_phase() -> None:
    spread = copy.deepcopy(PLAN)
    access = spread["data"].pop("access")
    for phase in spread["phases"]:
        phase["access"] = dict(access)
    assert digest(spread) == digest(PLAN)


DIFFERENT: list[tuple[str, Callable[[], str]]] = [
    ("transfer size", lambda: digest(change_plan_members(data__access__transfer="2MiB"))),
    ("MB is not MiB", lambda: digest(change_plan_members(data__access__transfer="1MB", data__access__volume="1GB"))),
    ("volume", lambda: digest(change_plan_members(data__access__volume="2GiB"))),
    ("order", lambda: digest(change_plan_members(data__access__order="random_permute"))),
    ("direct I/O", lambda: digest(change_plan_members(data__io__direct=True))),
    ("no fsync", lambda: digest(change_plan_members(data__io__fsync="none"))),
    ("fsync after instead of inside", lambda: digest(change_plan_members(data__io__fsync="end_timed_separately"))),
    ("shared file", lambda: digest(change_plan_members(data__files={"mapping": "shared"}))),
    ("backend", lambda: digest(change_plan_members(data__backend="io_uring"))),
    ("files on four targets", lambda: digest(change_plan_members(target__striping={"count": 4}))),
    ("files on two targets", lambda: digest(change_plan_members(target__striping={"count": 2}))),
    ("smaller stripes", lambda: digest(change_plan_members(target__striping={"count": 4, "size": "64KiB"}))),
    ("zeros are cheaper", lambda: digest(change_plan_members(data__payload={"kind": "zero"}))),
    ("verified", lambda: digest(change_plan_members(data__verify="on_read"))),
    ("stop rule", lambda: digest(change_plan_members(phases__0__stop={"time": "30s"}))),
    ("no cache drop", lambda: digest(change_plan_members(phases__1__before=[]))),
    ("read by another process", lambda: digest(change_plan_members(phases__1__process="separate"))),
    ("neighbor's data", lambda: digest(change_plan_members(phases__1__shift={"by": "tasks"}))),
    ("an earlier phase", lambda: digest(change_plan_members(phases__0__op="rewrite"))),
    ("pinned", lambda: digest(change_plan_members(tasks={"pin": True}))),
    ("4 x 1 is not 2 x 2", lambda: digest(PLAN, processes=4, threads=1)),
    ("two nodes", lambda: digest(PLAN, nodes=2)),
]


@pytest.mark.parametrize("compute_other_hash", [case[1] for case in DIFFERENT], ids=[case[0] for case in DIFFERENT])
def test_another_experiment_has_another_hash(compute_other_hash: Callable[[], str]) -> None:
    assert compute_other_hash() != digest(PLAN)


def test_all_different_experiments_differ_among_each_other() -> None:
    assert len({make() for _, make in DIFFERENT}) == len(DIFFERENT)


def test_plan_of_unknown_schema_has_a_distinct_digest() -> None:
    assert digest({**PLAN, "schema": "sonde-plan/9", "novelty": 1}) != digest(PLAN)
    assert digest({}) != digest(PLAN)


def key(node_line: NodeLine = NODE, target: str = "/scratch/probe", run_line: RunLine = RUN, **site: str) -> Any:
    return compute_run_key(run_line, [node_line], target, site)


SAME_KEY: list[tuple[str, Any]] = [
    ("another node of the same kind", key(replace(NODE, host="nid00007"))),
    ("another kernel is what is to be noticed", key(replace(NODE, kernel="6.1"))),
    ("other mount options too", key(replace(NODE, file_system=replace(LUSTRE, options="flock,localflock")))),
    ("the kernel keeps a little more memory", key(replace(NODE, memory_bytes=(251 << 30) - (300 << 20)))),
    (
        "failed over to the other server",
        key(replace(NODE, file_system=replace(LUSTRE, source="10.0.0.2@o2ib:10.0.0.1@o2ib:/snx"))),
    ),
    (
        "mounted elsewhere",
        key(replace(NODE, file_system=replace(LUSTRE, mount_point="/global/snx")), "/global/snx/probe"),
    ),
]
OTHER_KEY: list[tuple[str, Any]] = [
    ("system by its hosts", key(replace(NODE, host="login01"))),
    ("system by its name", key(system="edison")),
    ("file system", key(replace(NODE, file_system=replace(LUSTRE, source="10.0.0.1@o2ib:10.0.0.2@o2ib:/snx2")))),
    ("servers", key(replace(NODE, file_system=replace(LUSTRE, source="10.9.0.1@o2ib:10.0.0.2@o2ib:/snx")))),
    ("a directory with another striping", key(target="/scratch/wide")),
    ("type", key(replace(NODE, file_system=replace(LUSTRE, type="nfs4")))),
    ("less memory", key(replace(NODE, memory_bytes=125 << 30))),
    ("fewer cores", key(replace(NODE, cpus=32))),
    ("another processor", key(replace(NODE, cpu_model="Intel Xeon Phi 7250"))),
    ("geometry", key(run_line=replace(RUN, processes=4, threads=1))),
    ("counted by another definition", key(run_line=replace(RUN, schema="sonde-record/3"))),
    ("the site said that from here on all is different", key(epoch="2026-refit")),
]


@pytest.mark.parametrize("other_key", [case[1] for case in SAME_KEY], ids=[case[0] for case in SAME_KEY])
def test_irrelevant_facts_do_not_change_the_history_key(other_key: Any) -> None:
    assert other_key == key()


@pytest.mark.parametrize("other_key", [case[1] for case in OTHER_KEY], ids=[case[0] for case in OTHER_KEY])
def test_incomparable_runs_have_different_history_keys(other_key: Any) -> None:
    assert other_key != key()


def test_local_disks_of_two_hosts_have_different_keys() -> None:
    here = replace(NODE, host="ws1", file_system=DISK)
    assert key(here, "/data") != key(replace(here, host="ws2"), "/data")
    both = [replace(here, host="n1"), replace(here, host="n2", node=1)]
    others = [replace(here, host="n1"), replace(here, host="n3", node=1)]
    assert compute_run_key(RUN, both, "/data", {}) != compute_run_key(RUN, others, "/data", {})
    assert compute_run_key(RUN, both, "/data", {}) == compute_run_key(RUN, both[::-1], "/data", {})


def test_site_variables_override_system_and_file_system() -> None:
    named_key = key(system="edison", file_system="scratch1")
    assert (named_key.system, named_key.file_system) == ("edison", "scratch1")
    assert named_key == key(target="/scratch/job-4711", system="edison", file_system="scratch1")
    assert read_site_facts({"SONDE_SYSTEM": " edison ", "SLURM_CLUSTER_NAME": "c", "SONDE_EPOCH": ""}) == {
        "system": "edison"
    }
    assert read_site_facts({"SLURM_CLUSTER_NAME": "c"}) == {"system": "c"}


def test_mixed_node_types_form_a_distinct_node_class() -> None:
    knl = replace(NODE, cpu_model="Xeon Phi", host="nid2")
    assert describe_node_class([NODE, knl]) == describe_node_class([knl, NODE, NODE])
    assert describe_node_class([NODE, knl]) not in (describe_node_class([NODE]), describe_node_class([knl]))
    assert describe_node_class([]) == ""


@pytest.mark.parametrize(
    ("visible", "installed"), [(251 << 30, 256), (187 << 30, 192), (23 << 30, 24), (1 << 30, 1), (95 << 30, 96)]
)
def test_visible_memory_is_rounded_to_installed_memory(visible: int, installed: int) -> None:
    assert estimate_installed_gib(visible) == installed


@pytest.mark.parametrize(
    ("planned_state", "findings", "expected_state"),
    [
        ("cold", [], "cold"),
        ("cold", ["too_short"], "cold"),
        ("cold", ["cache_suspect"], "cached"),
        ("warm", [], "cached"),
        ("direct", [], "direct"),
        ("", [], "unknown"),
    ],
)
def test_cached_reads_are_classified_separately(planned_state: str, findings: list[str], expected_state: str) -> None:
    assert classify_cache(planned_state, findings) == expected_state


def in_place(*paths: str) -> dict[str, Any]:
    return change_plan_members(data__files={"mapping": "per_task", "paths": list(paths)})


def search(file: str, size: int = 1) -> dict[str, Any]:
    phase = {"id": "find", "op": "walk", "meta": {"find": {"newer_than_file": file, "size": size}}}
    return {"schema": "sonde-plan/2", "id": "s", "target": {"path": "/s"}, "meta": {"tree": {}}, "phases": [phase]}


def test_location_of_files_does_not_change_the_digest() -> None:
    """Job scripts write into a new directory each time."""
    assert digest(in_place("/a/1/f")) == digest(in_place("/a/2/f"))
    assert digest(in_place("/a/1/f")) != digest(in_place("/a/1/f", "/b/f"))
    moved = {**search("/results/1/stamp"), "target": {"path": "/elsewhere"}}
    assert digest(search("/results/1/stamp")) == digest(moved)
    assert digest(search("/results/1/stamp")) == digest(search("/results/2/stamp"))
    assert digest(search("/results/1/stamp")) != digest(search("/results/1/stamp", size=2))


def test_payload_seed_does_not_change_the_plan_hash() -> None:
    def hash_of(**payload: object) -> str:
        meta = {"payload": payload, "file": {"write": "1KiB"}}
        plan = {"id": "p", "target": {"path": "/x"}, "meta": meta, "phases": [{"id": "c", "op": "create"}]}
        return compute_plan_hash(plan, 1, 1, 1)

    assert hash_of(seed=1) == hash_of(seed=2)
    assert hash_of(seed=1, kind="zero") != hash_of(seed=1, kind="random")
