# SPDX-License-Identifier: Apache-2.0
"""Which directory a cell is measured in, and what is said where nothing says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.cli.options import parse_locations
from sonde.experiments.cells import prepare_cells
from sonde.experiments.directories import Directories
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.experiment import Experiment, make_experiment
from sonde.model.system import make_system, read_system


def make_experiment_on_directories(**more: Any) -> Experiment:
    document = {"schema": "sonde-experiment/2", "id": "e", "plan": {"phases": [{"id": "w", "op": "write"}]}}
    return make_experiment({**document, **more}, "x.toml")


TWO = {"storage": {"file_systems": ["fs1", "fs2"]}}
POOLS = {
    "storage": {"pool": "FS1"},
    "clients": {"per_target": 2, "tasks_per_node": 3},
    "sweep": [{"name": "pool", "paths": "storage.pool", "values": ["FS1", "FS2", "FS3"]}],
}


def list_directories(experiment: Experiment, directories: Directories) -> list[str]:
    return [directories.find_directory(experiment, cell) for cell in experiment.cells]


def test_explicit_file_system_directory_overrides_the_default() -> None:
    assert list_directories(make_experiment_on_directories(**TWO), Directories("/d", {"fs2": "/two"})) == ["/d", "/two"]


def test_mount_of_variant_overrides_file_system() -> None:
    variants = [{"id": "native"}, {"id": "dvs", "mount": "forwarded"}]
    tested = make_experiment_on_directories(**TWO, variants=variants)
    assert list_directories(tested, Directories("", {"fs1": "/1", "fs2": "/2", "forwarded": "/f"})) == [
        "/1",
        "/2",
        "/f",
        "/f",
    ]


def test_pool_has_directory_and_clients_per_target() -> None:
    system = read_system(find_system_file("hpcs-demo"))
    directories = Directories("", pools={"FS1": ("/1",), "FS2": ("/2",), "FS3": ("/3",)}, system=system)
    ready = prepare_cells(make_experiment_on_directories(**POOLS), directories, "g")
    assert [cell.directory for cell in ready] == ["/1", "/2", "/3"]
    targets = [len(system.find_targets(name)) for name in ("FS1", "FS2", "FS3")]
    assert targets[2] == 2 * targets[1] == 4 * targets[0]
    assert [cell.plan.processes for cell in ready] == [6 * count for count in targets]
    assert [cell.clients.nodes for cell in ready] == [2 * count for count in targets]


def test_existing_mount_of_system_file_is_used(tmp_path: Path) -> None:
    here = tmp_path / "fs1"
    here.mkdir()
    document = {
        "schema": "sonde-system/2",
        "nodes": [{"id": "n"}],
        "file_systems": [{"id": "fs1", "kind": "lustre"}, {"id": "fs2", "kind": "lustre"}],
        "mounts": [{"id": "m1", "file_system": "fs1", "path": str(here), "on": "n"},
                   {"id": "m2", "file_system": "fs2", "path": "/nowhere", "on": "n"}],
    }  # fmt: skip
    ready = prepare_cells(
        make_experiment_on_directories(**TWO), Directories(system=make_system(document, "s.toml")), "g"
    )
    assert [cell.directory for cell in ready] == [str(here), ""]
    assert ready[1].refusal == "Nothing says where this is to be measured; give --on fs2=DIR."


def test_plan_directory_is_used_without_options(tmp_path: Path) -> None:
    plan = {"target": {"path": str(tmp_path)}, "phases": [{"id": "w", "op": "write"}]}
    assert list_directories(make_experiment_on_directories(plan=plan), Directories()) == [str(tmp_path)]


TWO_OF_A_POOL = Directories(pools={"FS1": ("/1",), "FS2": ("/1", "/2"), "FS3": ("/1", "/2", "/3", "/4")})


SEPARATE = [{"id": "w", "op": "write"}, {"id": "r", "op": "read", "data_of": "w", "process": "separate"}]


@pytest.mark.parametrize("files", [{"mapping": "per_task"}, {"mapping": "many", "count": 3},
                                   {"mapping": "per_group", "group_size": 2}])  # fmt: skip
def test_files_are_distributed_over_pool_directories(files: dict[str, Any]) -> None:
    plan = {"data": {"files": {**files, "name": "x"}}, "phases": SEPARATE}
    ready = prepare_cells(make_experiment_on_directories(**{**POOLS, "plan": plan}), TWO_OF_A_POOL, "g")
    assert [cell.refusal for cell in ready] == ["", "", ""]
    across = [cell.plan.document["data"]["files"].get("across", []) for cell in ready]
    assert across == [[], ["/2"], ["/2", "/3", "/4"]]
    assert [cell.plan.document["target"]["path"] for cell in ready] == ["/1", "/1", "/1"]
    assert ready[1].plan.document["data"]["files"]["name"] == "x"
    assert [cell.clients.nodes for cell in ready[1:]] == [2 * 2, 2 * 4], "clients for each target stay the same"
    assert [cell.measured_directories for cell in ready] == [("/1",), ("/1", "/2"), ("/1", "/2", "/3", "/4")]


WRITE: list[dict[str, Any]] = [{"id": "w", "op": "write"}]
MAKE = [{"id": "m", "op": "mktree"}, {"id": "c", "op": "create"}]
TREE: dict[str, Any] = {"meta": {"tree": {"items_per_task": 3}}, "phases": MAKE}


@pytest.mark.parametrize(
    ("plan", "expected_text", "instead"),
    [
        ({"data": {"files": {"mapping": "shared"}}, "phases": WRITE}, "all tasks share one file here", "per_group"),
        ({"data": {"files": {"mapping": "per_node"}}, "phases": WRITE}, "tasks of a node share a file", "per_task"),
        ({"data": {"files": {"mapping": "many", "count": 2, "directories": "per_node"}}, "phases": WRITE},
         "tasks of a node share a directory", 'directories = "one"'),
        (TREE, "the names here lie in one of them", "each directory by itself"),
        ({**TREE, "phases": [*MAKE, {"id": "w", "op": "walk"}]}, "the tree that is walked here", "--on DIR"),
        ({"data": {"files": {"mapping": "per_task"}}, "phases": [{**WRITE[0], "before": [{"kind": "remount"}]}]},
         "mounted anew before a phase", "drop_page_cache"),
        ({"data": {"files": {"mapping": "per_task"}}, "target": {"striping": {"count": 1}}, "phases": WRITE},
         "a striping of their own", "leave target.striping out"),
    ],
)  # fmt: skip
def test_plan_needing_one_directory_is_rejected(plan: dict[str, Any], expected_text: str, instead: str) -> None:
    ready = prepare_cells(make_experiment_on_directories(**{**POOLS, "plan": plan}), TWO_OF_A_POOL, "g")
    assert not ready[0].refusal
    assert ready[1].refusal.startswith("The pool FS2 has 2 directories, and ")
    assert expected_text in ready[1].refusal
    assert "give the pool one directory of a file system that stripes" in ready[1].refusal
    assert instead in ready[1].refusal


def test_runs_sharing_files_reject_several_directories() -> None:
    plan = {"data": {"files": {"mapping": "per_task"}}, "phases": WRITE}
    ready = prepare_cells(
        make_experiment_on_directories(**{**POOLS, "plan": plan, "repeat": {"min": 1, "fresh": "none"}}),
        TWO_OF_A_POOL,
        "g",
    )
    assert not ready[0].refusal
    assert "use files that stay where they are" in ready[1].refusal


def test_pool_option_splits_directories_at_commas(tmp_path: Path) -> None:
    a, b, odd = (str(tmp_path / name) for name in ("a", "b", "c,d"))
    for path in (a, b, odd):
        Path(path).mkdir()
    read = parse_locations([], [f"P1={a},{b},P2={odd}"], None, "", "")
    assert read.pools == {"P1": (a, b), "P2": (odd,)}
    with pytest.raises(UserError, match="names a directory twice"):
        parse_locations([], [f"P1={a},{a}"], None, "", "")
    with pytest.raises(UserError, match="write its directories together"):
        parse_locations([], [f"P1={a}", f"P1={b}"], None, "", "")


@pytest.mark.parametrize(
    ("members", "directories", "expected_text"),
    [
        (TWO, Directories("/d", {"fs3": "/3"}), 'names no file system or mount "fs3"; it names fs1, fs2. Did you mean'),
        (POOLS, Directories("/d", pools={"FS4": ("/4",)}), 'names no pool "FS4"; it names FS1, FS2, FS3. Did you mean'),
        (POOLS, Directories("/d", {"FS2": "/2"}), "Say --pool FS2=/2."),
        (TWO, Directories("/d", pools={"fs1": ("/1",)}), "Say --on fs1=/1."),
        (TWO, Directories(), "give --on DIR, or --on fs1=DIR for each of fs1, fs2."),
        (POOLS, Directories(), "give --on DIR, or --pool FS1=DIR for each of FS1, FS2, FS3."),
        ({}, Directories(), "Nothing says where e is to be measured; give --on DIR."),
        ({}, Directories("/d", {"fs1": "/1"}), 'names no file system or mount "fs1"; it names none.'),
    ],
)
def test_unknown_location_name_is_rejected(
    members: dict[str, Any], directories: Directories, expected_text: str
) -> None:
    with pytest.raises(UserError) as caught:
        prepare_cells(make_experiment_on_directories(**members), directories, "g")
    assert expected_text in str(caught.value)


def test_location_options_become_directories(tmp_path: Path) -> None:
    for name in ("a", "b", "c=d"):
        (tmp_path / name).mkdir()
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    read = parse_locations([a, f"fs1={b}"], [f"P1={a},P2={b}", f"P3={a}"], None, "", "")
    assert (read.default, read.by_name, read.pools) == (a, {"fs1": b}, {"P1": (a,), "P2": (b,), "P3": (a,)})
    assert parse_locations([str(tmp_path / "c=d")], [], None, "", "").default == str(tmp_path / "c=d")


@pytest.mark.parametrize(
    ("on", "pools", "expected_text"),
    [
        (["/", "/tmp"], [], "--on is given twice, with / and /tmp; for several write --on NAME=DIR."),
        (["fs1=/", "fs1=/tmp"], [], "--on fs1 is given twice"),
        (["fs1=/no/such"], [], "--on fs1: There is no directory /no/such"),
        (["/no/such"], [], "There is no directory /no/such"),
        ([], ["/tmp"], '--pool "/tmp" does not say which directory a pool is; write --pool NAME=DIR.'),
        ([], ["P=/no/such"], "--pool P: There is no directory /no/such"),
    ],
)
def test_invalid_location_options_are_rejected(on: list[str], pools: list[str], expected_text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_locations(on, pools, None, "", "")
    assert expected_text in str(caught.value)
