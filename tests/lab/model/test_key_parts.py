# SPDX-License-Identifier: Apache-2.0
"""Each part of the key of a series as it is written, and the keys of runs of other tools and of simulated ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from sonde.model.imported import ImportedPhase, ImportedRun
from sonde.model.lines import FileSystem, NodeLine, RunLine
from sonde.model.parents import SERVER, SERVERS, Parents, parents_from, plain_name
from sonde.model.sameness import plan_hash, short_hash
from sonde.model.series import (
    BYTES,
    CLUSTER,
    EPOCH,
    FILE_SYSTEM,
    OPERATIONS,
    SYSTEM,
    RunKey,
    SeriesKey,
    host_stem,
    node_class,
    nominal_gib,
    run_key,
    site_facts,
)

LUSTRE = FileSystem(type="lustre", mount_point="/scratch", source="b@o2ib:a@o2ib:/snx", network=True)
DISK = FileSystem(type="ext4", mount_point="/", source="/dev/sda1")


def node(host: str, system: FileSystem = LUSTRE, **more: Any) -> NodeLine:
    return NodeLine(host=host, file_system=system, **more)


def place(*machines: NodeLine, target: str = "/scratch/probe") -> str:
    return run_key(RunLine(), machines, target, {}).file_system


@pytest.mark.parametrize(
    ("machines", "target", "shown"),
    [
        ([node("n1")], "/scratch/probe", "lustre:a@o2ib:b@o2ib:/snx probe"),
        ([node("n1")], "/scratch", "lustre:a@o2ib:b@o2ib:/snx /"),
        ([node("n1")], "/scratch/", "lustre:a@o2ib:b@o2ib:/snx /"),
        ([node("n1")], "/scratchy/x", "lustre:a@o2ib:b@o2ib:/snx scratchy/x"),
        ([node("n1", DISK)], "/a/b", "ext4:/dev/sda1@n1 a/b"),
        ([node("n1", DISK), node("n1", DISK)], "/", "ext4:/dev/sda1@n1 /"),
        ([node("n1", FileSystem())], "/a", "unknown@n1 a"),
        ([node("n1", FileSystem(type="nfs", network=True))], "/a", "nfs: a"),
        ([node("n1", FileSystem(source="x", network=True))], "/a", ":x a"),
        ([], "/a/b", "unknown /a/b"),
    ],
)
def test_a_place_is_the_file_system_and_the_directory_in_it(machines: list[NodeLine], target: str, shown: str) -> None:
    assert place(*machines, target=target) == shown


def test_disks_of_several_nodes_carry_how_many_and_a_hash_of_their_names() -> None:
    both = place(node("n2", DISK), node("n1", DISK), target="/a")
    assert both == f"ext4:/dev/sda1@2 nodes {short_hash(['n1', 'n2'], 6)} a"


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
def test_a_system_is_what_its_hosts_share_in_their_names(hosts: list[str], system: str) -> None:
    assert run_key(RunLine(), [node(host) for host in hosts], "/a", {}).system == system


def test_the_stem_of_a_host_has_no_numbers_and_no_domain() -> None:
    assert [host_stem(one) for one in ("nid00123.x1.org", "gpu-07-a", "-9-", "")] == ["nid", "gpu--a", "-9-", ""]


def test_all_parts_of_the_key_of_a_run() -> None:
    plan = {"schema": "sonde-plan/1", "id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", "op": "write"}]}
    run = RunLine(schema="sonde-record/1", processes=2, threads=3, nodes=4, plan=plan, overlay=2)
    machine = node("nid1", cpu_model=" AMD  EPYC ", cpus=64, memory_bytes=251 << 30)
    found = run_key(run, [machine], "/scratch/a", {"epoch": "refit"})
    hashed = plan_hash(plan, 2, 3, 4)
    assert found == RunKey("nid", "lustre:a@o2ib:b@o2ib:/snx a", hashed, "AMD EPYC, 64 cpus, 256 GiB",
                           "sonde-record/1 refit")  # fmt: skip
    simulated = replace(run, simulated={"system": "demo", "mount": "m"})
    site = {"system": "edison", "file_system": "scratch", "epoch": "refit"}
    told = run_key(simulated, [machine], "/scratch/a", site)
    assert (told.system, told.file_system, told.epoch) == ("simulated demo", "m", "sonde-record/1")
    bare = run_key(replace(run, simulated={"x": 1}), [machine], "/scratch/a", site)
    assert (bare.system, bare.file_system) == ("simulated ", "lustre:a@o2ib:b@o2ib:/snx a")


def test_the_key_of_a_series_has_an_id_and_that_of_its_run_inside() -> None:
    key = SeriesKey("s", "f", "h", "n", "e", "write", "write", "cold", "sonde total", "bytes_per_s")
    assert key.run_key == RunKey("s", "f", "h", "n", "e")
    assert key.id == "b820a59c19"
    assert len({key.id, *(replace(key, **{name: "x"}).id for name in vars(key))}) == 11
    assert (BYTES, OPERATIONS) == ("bytes_per_s", "ops_per_s")


@pytest.mark.parametrize(
    ("machines", "shown"),
    [
        ([node("a", cpus=4)], "4 cpus"),
        ([node("a", memory_bytes=1 << 30)], "1 GiB"),
        ([node("a", cpu_model="X")], "X"),
        ([node("a"), node("b", cpus=4), node("c", cpu_model="A", cpus=0)], "4 cpus + A"),
        ([node("a")], ""),
    ],
)
def test_a_class_of_nodes_says_what_is_known(machines: list[NodeLine], shown: str) -> None:
    assert node_class(machines) == shown


@pytest.mark.parametrize(
    ("gib", "shown"),
    [(0, 1), (1, 1), (1.1, 2), (2, 2), (2.5, 3), (3, 3), (3.1, 4), (5, 6), (7, 8), (95, 96), (97, 128)],
)
def test_memory_is_the_next_size_that_is_sold(gib: float, shown: int) -> None:
    assert nominal_gib(int(gib * 2**30)) == shown


def test_a_site_says_itself_by_variables_of_which_the_schedulers_is_the_last() -> None:
    assert (SYSTEM, FILE_SYSTEM, EPOCH, CLUSTER) == (
        "SONDE_SYSTEM", "SONDE_FILE_SYSTEM", "SONDE_EPOCH", "SLURM_CLUSTER_NAME",
    )  # fmt: skip
    every = {SYSTEM: "a", CLUSTER: "b", FILE_SYSTEM: " c ", EPOCH: "d"}
    assert site_facts(every) == {"system": "a", "file_system": "c", "epoch": "d"}
    assert site_facts({SYSTEM: "", CLUSTER: " b"}) == {"system": "b"}
    assert site_facts({SYSTEM: "  "}) == {}


STARTED = datetime(2026, 11, 21, 20, 45, 1, tzinfo=UTC)


def imported(**more: Any) -> ImportedRun:
    members: dict[str, Any] = {"tool": "IOR 4.1.0", "name": "ior easy", "started": STARTED, "experiment": {"t": 1}}
    return ImportedRun(**members | {"phases": ()} | more)


def test_a_run_of_another_tool_has_one_id_however_often_it_is_imported() -> None:
    first = imported()
    assert first.id() == imported().id()
    assert first.id().startswith("20261121T204501Z-ior-easy-")
    assert len(first.id()) == len("20261121T204501Z-ior-easy-") + 8
    assert imported(title="x").id() != first.id()
    assert imported(name="--ä.").id().startswith("20261121T204501Z-run-")
    assert imported(name="a" * 50).id().startswith(f"20261121T204501Z-{'a' * 40}-")


def test_the_key_of_a_run_of_another_tool() -> None:
    bare = imported(tasks=4).key()
    what = {"tool": "IOR", "tasks": 4, "nodes": None, "t": 1}
    assert bare == {
        "system": "unknown", "file_system": "unknown", "plan_hash": short_hash(["imported/1", what]),
        "node_class": "", "epoch": "imported/1",
    }  # fmt: skip
    told = imported(tasks=4, host="nid0012", target="/scratch", node_class="N")
    assert told.key() == bare | {"system": "nid", "file_system": "/scratch", "node_class": "N"}
    named = replace(told, system="edison", file_system="snx")
    assert (named.key()["system"], named.key()["file_system"]) == ("edison", "snx")


def test_what_nobody_said_of_another_tools_number_is_not_known() -> None:
    phase = ImportedPhase("w", "write", "IOR 4.1.0 bw")
    assert vars(phase) == {
        "phase": "w", "op": "write", "definition": "IOR 4.1.0 bw", "bytes_per_s": None, "ops_per_s": None,
        "bytes": None, "ops": None, "seconds": None, "backend": "", "cache": "unknown", "done": True, "also": {},
    }  # fmt: skip
    rest = {name: value for name, value in vars(imported()).items() if name not in ("tool", "name", "started")}
    assert rest == {
        "experiment": {"t": 1}, "phases": (), "title": "", "system": "", "host": "", "target": "", "file_system": "",
        "node_class": "", "tasks": None, "nodes": None, "seconds": None, "group": None, "status": "done", "text": "",
        "command": "", "context": {}, "findings": (),
    }  # fmt: skip


LEVELS: dict[str, dict[str, tuple[str, ...]]] = {"SSU": {"ssu0": ("1", "2")}, "OSS": {"oss0": ("1",), "oss1": ("2",)}}


def test_a_target_has_a_server_and_a_unit_by_the_name_that_a_record_has() -> None:
    parents = Parents("site", LEVELS)
    assert (parents.server_of("2@b"), parents.unit_of("2@b")) == ("oss1", "ssu0")
    assert (parents.server_of("3"), parents.unit_of("3")) == (None, None)
    assert Parents("", {"server": {"s": ("1",)}}).server_of("1") == "s"
    assert Parents("", {"MDS": {"m": ("1",)}}).unit_of("1") is None
    assert parents.by_target("OSS") == {"1": "oss0", "2": "oss1"}
    assert parents.by_target("rack") == {}
    assert (bool(parents), bool(Parents("site"))) == (True, False)
    assert (SERVERS, SERVER) == ({"ost": "OSS", "mdt": "MDS", "nsd": "NSD server"}, "server")
    assert plain_name("4201@oss-4@x") == "4201"


def test_of_targets_that_a_record_names_the_parts_are_kept() -> None:
    parents = Parents("site", LEVELS)
    assert parents.only(["2@b"]) == Parents("site", {"SSU": {"ssu0": ("2",)}, "OSS": {"oss1": ("2",)}})
    assert parents.only(["9"]) == Parents("site", {})
    assert parents.as_json() == {
        "system": "site", "levels": {"SSU": {"ssu0": ["1", "2"]}, "OSS": {"oss0": ["1"], "oss1": ["2"]}},
    }  # fmt: skip
    assert parents_from(parents.as_json()) == parents
    assert parents_from({"levels": {"OSS": {"a": [1], "b": "c"}, "x": 3}}) == Parents("", {"OSS": {"a": ("1",)}})
    assert parents_from({"system": None, "levels": {}}) == Parents("", {})
