# SPDX-License-Identifier: Apache-2.0
"""Plans: read from TOML and JSON, changed by settings, resolved with defaults, and what they amount to."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.experiments.shipped_experiments import list_shipped_plans, resolve_plan_source
from sonde.model.errors import PlanError
from sonde.model.plan import Plan, read_plan_document
from sonde.model.schemas import read_schema_text
from sonde.model.settings import apply_settings, parse_setting
from sonde.model.volume import compute_phase_volumes

TOML = """
title = "A plan"
[target]
path = "/scratch"
[tasks]
threads = 4
[data]
access = { transfer = "1MiB", block = "16MiB", segments = 2 }
[[phases]]
id = "write"
op = "write"
[[phases]]
id = "small"
op = "read"
access = { transfer = "4KiB", block = "64KiB", volume = "1MiB" }
io = { queue_depth = 8 }
process = "separate"
"""


def plan_of(document: dict[str, Any], *settings: str) -> Plan:
    base = {"id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", "op": "write"}]}
    return Plan.from_document({**base, **document}, "test", settings)


def complaint(make: Callable[[], Plan]) -> str:
    """The error text of the plan that `make` returns; empty when it is valid."""
    try:
        make()
    except PlanError as reason:
        return str(reason)
    return ""


def test_toml_and_json_mean_the_same(tmp_path: Path) -> None:
    toml, text = tmp_path / "same.toml", tmp_path / "same.json"
    toml.write_text(TOML)
    text.write_text(json.dumps(read_plan_document(str(toml))))
    assert Plan.read(str(toml)).document == Plan.read(str(text)).document


def test_schema_and_id_are_filled_in_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "my plan (2).toml"
    file.write_text(TOML)
    plan = Plan.read(str(file))
    assert plan.document["schema"] == "sonde-plan/2"
    assert plan.id == "my-plan-2"


def test_standard_input_may_be_either_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(TOML))
    first = Plan.read("-")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({**first.document, "id": "stdin"})))
    assert Plan.read("-").document == {**first.document, "id": "stdin"}


def test_the_worked_example_of_the_schema_is_a_plan() -> None:
    example = json.loads(read_schema_text("plan/example.json"))
    assert Plan.from_document(example, "example").document == example


def test_phase_members_override_plan_members(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(TOML)
    plan = Plan.read(str(file))
    access = plan.resolve_data(plan.phases[1])["access"]
    # its volume takes away the plan's segments, because the two cannot stand together
    assert (access["transfer"], access["block"], access.get("segments"), access["volume"]) == (
        "4KiB",
        "64KiB",
        None,
        "1MiB",
    )
    assert plan.resolve_data(plan.phases[1])["io"]["queue_depth"] == 8
    assert plan.resolve_data(plan.phases[0])["io"]["queue_depth"] == 1
    assert plan.stage_count == 2


def test_phase_inherits_members_it_does_not_set() -> None:
    data = {"access": {"transfer": "1MiB", "block": "16MiB", "segments": 4}}
    plan = plan_of({"data": data, "phases": [{"id": "w", "op": "write", "access": {"transfer": "4KiB"}}]})
    access = plan.resolve_data(plan.phases[0])["access"]
    assert (access["transfer"], access["block"], access["segments"]) == ("4KiB", "16MiB", 4)
    phase = {"id": "w", "op": "write", "access": {"transfer": "3MiB"}}
    assert "the block is that of data, so give phases.w.access a block, too" in complaint(
        lambda: plan_of({"data": data, "phases": [phase]})
    )


def test_a_resolved_plan_is_the_same_plan_and_complete(tmp_path: Path) -> None:
    for file in list_shipped_plans().values():
        plan = Plan.read(str(file), ["target.path=/x"])
        resolved = Plan.from_document(plan.resolve(), "resolved")
        assert resolved.resolve() == plan.resolve(), file
        assert compute_phase_volumes(resolved, 4) == compute_phase_volumes(plan, 4)
        for phase in resolved.phases:
            if resolved.is_tree_phase(phase):
                assert {"backend", "tree", "names", "file", "select", "lookup", "verify"} <= phase["meta"].keys()
            else:
                assert {"backend", "access", "io", "verify"} <= phase.keys()


def test_volume_of_tree_phases_counts_items_and_directories() -> None:
    document = {
        "id": "p",
        "target": {"path": "/x"},
        "meta": {"tree": {"depth": 2, "branching": 3, "items_per_dir": 10, "leaf_only": True, "copies": 2}},
        "phases": [
            {"id": "mktree", "op": "mktree"},
            {"id": "create", "op": "create", "meta": {"file": {"write": "1KiB"}}},
            {"id": "stat", "op": "stat", "stop": {"items": 7}},
            {"id": "remove", "op": "remove", "meta": {"tree": {"scope": "per_task"}}},
            {"id": "rmtree", "op": "rmtree", "meta": {"tree": {"scope": "per_task"}}},
        ],
    }
    volumes = {volume.id: volume for volume in compute_phase_volumes(Plan.from_document(document, "test"), 4)}
    assert volumes["mktree"].operations == 2 * 13
    assert volumes["create"].operations == volumes["create"].files == 2 * 9 * 10 * 4
    assert volumes["create"].bytes == 720 * 1024
    assert volumes["stat"].operations == 28
    assert volumes["remove"].operations == 720
    assert volumes["rmtree"].operations == 4 * 2 * 13


def test_reading_a_plan_does_not_modify_its_document() -> None:
    document: dict[str, Any] = {"id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", "op": "write"}]}
    before = json.dumps(document)
    Plan.from_document(document, "test", ["tasks.threads=3", "phases.w.stop.time=1s"])
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    ("setting", "member_path", "setting_value"),
    [
        ("a.b=4KiB", ["a", "b"], "4KiB"),
        ("a=4", ["a"], 4),
        ("a=4.5", ["a"], 4.5),
        ("a=true", ["a"], True),
        ("a=null", ["a"], None),
        ('a="4"', ["a"], "4"),
        ("a='4'", ["a"], "4"),
        ("a=", ["a"], ""),
        ("a=b=c", ["a"], "b=c"),
        ('a={"x": 1}', ["a"], {"x": 1}),
        ("a={x = 1}", ["a"], {"x": 1}),
        ("a=[1, 2]", ["a"], [1, 2]),
        ("a=NaN", ["a"], "NaN"),
    ],
)
def test_setting_text_is_parsed_into_path_and_value(setting: str, member_path: list[str], setting_value: Any) -> None:
    assert parse_setting(setting) == (member_path, setting_value)


def test_settings_reach_phases_by_id_and_by_number() -> None:
    document: dict[str, Any] = {"phases": [{"id": "w"}, {"id": "r", "before": [{"kind": "sync"}]}]}
    apply_settings(document, ["phases.r.stop.time=5s", "phases.0.op=write", "phases.r.before.0.kind=fadvise"])
    assert document == {
        "phases": [{"id": "w", "op": "write"}, {"id": "r", "before": [{"kind": "fadvise"}], "stop": {"time": "5s"}}]
    }


def test_an_id_that_is_a_number_wins_over_a_position() -> None:
    document: dict[str, Any] = {"phases": [{"id": "1"}, {"id": "0"}]}
    apply_settings(document, ["phases.1.op=read"])
    assert document["phases"][0] == {"id": "1", "op": "read"}


def test_setting_segments_or_volume_replaces_the_alternative() -> None:
    plan = plan_of({"data": {"access": {"segments": 3}}}, "data.access.volume=1GiB")
    assert plan.document["data"]["access"] == {"volume": "1GiB"}


def test_setting_backend_null_selects_the_null_backend() -> None:
    """`--set data.backend=null` once removed the member, and wrote a gigabyte."""
    phases = [{"id": "w", "op": "write", "backend": "mmap"}]
    plan = plan_of({"data": {"backend": "posix"}, "phases": phases}, "data.backend=null", "phases.w.backend=null")
    assert plan.document["data"]["backend"] == plan.phases[0]["backend"] == "null"


@pytest.mark.parametrize(
    ("setting", "expected_text"),
    [
        ("tasks.threads=2.0", "tasks.threads is 2.0; it must be a whole number"),
        ("data.access.transfer=65536.0", "data.access.transfer is 65536.0"),
        ("data.io.queue_depth=1e0", "data.io.queue_depth is 1.0"),
    ],
)
def test_fractional_float_is_rejected_as_a_whole_number(setting: str, expected_text: str) -> None:
    """The engine rejects it too, although 2.0 is an integer for JSON Schema."""
    assert expected_text in complaint(lambda: plan_of({}, setting))


def test_phase_set_to_null_is_removed_from_the_plan() -> None:
    plan = plan_of({"phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]}, "phases.r=null")
    assert [phase["id"] for phase in plan.phases] == ["w"]


@given(st.text(max_size=30))
def test_random_setting_works_or_gets_a_one_line_error(text: str) -> None:
    assert "\n" not in complaint(lambda: plan_of({}, text))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
known_names = st.sampled_from(["target", "tasks", "data", "phases", "observe", "limits", "title", "id", "schema"])


@given(st.dictionaries(known_names, json_values, max_size=5))
def test_random_document_is_a_plan_or_gets_a_one_line_error(document: dict[str, Any]) -> None:
    assert "\n" not in complaint(lambda: Plan.from_document(document, "test"))


@given(
    st.sampled_from(
        ["access", "io", "files", "payload", "paced", "stop", "before", "streams", "volume", "op", "shift"]
    ),
    json_values,
)
def test_random_member_value_is_valid_or_gets_a_one_line_error(name: str, value: Any) -> None:
    for document in (
        {"data": {name: value}},
        {"data": {"access": {name: value}}},
        {"phases": [{"id": "w", "op": "write", name: value}]},
    ):
        assert "\n" not in complaint(lambda document=document: plan_of(document))  # type: ignore[misc]


def test_the_arithmetic_of_a_plan(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(TOML)
    write, small = compute_phase_volumes(Plan.read(str(file)), task_count=4)
    assert (write.segments, write.bytes, write.operations, write.files) == (2, 4 * 32 << 20, 128, 4)
    assert (small.segments, small.bytes, small.operations) == (16, 4 << 20, 1024)


@pytest.mark.parametrize(
    ("volume", "per_task"),
    [
        ("10MiB", 10 << 20),
        ({"of": "bytes", "bytes": "8MiB", "per": "total"}, 2 << 20),
        ({"of": "bytes", "bytes": "8MiB", "per": "node"}, 4 << 20),
        ({"of": "node_memory", "x": 0.5, "per": "node"}, 256 << 20),
        ({"of": "node_memory", "x": 2, "per": "total"}, 512 << 20),
        ("1000kB", 1 << 20),  # rounded up to whole blocks
    ],
)
def test_volumes_are_divided_among_tasks(volume: Any, per_task: int) -> None:
    plan = plan_of({"data": {"access": {"transfer": "1MiB", "volume": volume}}})
    (phase_volume,) = compute_phase_volumes(plan, task_count=4, node_count=2, node_memory=1 << 30)
    assert phase_volume.bytes == 4 * per_task


@pytest.mark.parametrize(
    ("files", "expected_count"),
    [
        ({"mapping": "shared"}, 1),
        ({"mapping": "per_task"}, 6),
        ({"mapping": "per_node"}, 2),
        ({"mapping": "per_group", "group_size": 4}, 2),
        ({"mapping": "many", "count": 10}, 60),
    ],
)
def test_files_of_a_mapping(files: dict[str, Any], expected_count: int) -> None:
    (volume,) = compute_phase_volumes(plan_of({"data": {"files": files}}), task_count=6, node_count=2)
    assert volume.files == expected_count


def test_operations_on_names_move_no_bytes() -> None:
    phases = [{"id": "w", "op": "write"}, {"id": "s", "op": "stat"}, {"id": "r", "op": "remove"}]
    data = {"files": {"mapping": "many", "count": 10}, "access": {"transfer": "4KiB"}}
    write, stat, remove = compute_phase_volumes(plan_of({"data": data, "phases": phases}), task_count=3)
    assert write.bytes == 30 * 4096
    assert (stat.bytes, stat.operations, stat.files) == (0, 30, 30)
    assert remove.operations == 30


def test_each_shipped_plan_is_valid_and_resolved_by_name() -> None:
    names = list_shipped_plans()
    assert {"quick", "shared-file", "small-files", "sustained", "known-answer", "metadata"} <= names.keys()
    for name, file in names.items():
        plan = Plan.read(str(file), ["target.path=/x"])
        assert plan.id == name
        assert resolve_plan_source(name) == str(file)


def test_bundled_name_wins_over_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quick").write_text(TOML)
    assert Path(resolve_plan_source("quick")).name == "quick.toml"
    assert resolve_plan_source("./quick") == "./quick"
