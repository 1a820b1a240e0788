# SPDX-License-Identifier: Apache-2.0
"""Cells of an experiment: grid, together, one at a time; and the plan of each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.model.errors import ExperimentError, UserError
from sonde.model.experiment import change_members_by_path, make_experiment
from sonde.model.experiment.axes import expand_values
from sonde.model.experiment.experiment import Experiment

PLAN: dict[str, Any] = {
    "data": {"access": {"transfer": "64KiB", "block": "1MiB", "segments": 2}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}


def build_experiment(**members: Any) -> Experiment:
    return make_experiment({"schema": "sonde-experiment/2", "plan": PLAN, **members}, "made.toml")


def make_sweep(path: str, values: Any, **more: Any) -> dict[str, Any]:
    return {"paths": path, "values": values, **more}


def test_an_experiment_without_a_sweep_is_one_cell() -> None:
    assert [cell.id for cell in build_experiment().cells] == ["base"]


def test_a_grid_has_every_pair_and_the_last_axis_runs_fastest() -> None:
    experiment = build_experiment(
        sweep=[make_sweep("data.access.transfer", ["4KiB", "64KiB"]), make_sweep("data.io.queue_depth", [1, 8])]
    )
    assert [cell.id for cell in experiment.cells] == [
        "transfer=4KiB,queue_depth=1",
        "transfer=4KiB,queue_depth=8",
        "transfer=64KiB,queue_depth=1",
        "transfer=64KiB,queue_depth=8",
    ]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_a_grid_has_as_many_cells_as_the_product_and_no_two_alike(sizes: list[int]) -> None:
    paths = ["data.io.queue_depth", "tasks.threads", "data.access.segments"]
    experiment = build_experiment(
        sweep=[make_sweep(path, list(range(1, size + 1))) for path, size in zip(paths, sizes, strict=False)]
    )
    total = 1
    for size in sizes:
        total *= size
    assert len({cell.id for cell in experiment.cells}) == len(experiment.cells) == total


def test_one_at_a_time_sweep_varies_each_axis_from_the_plan_values() -> None:
    experiment = build_experiment(
        sweep=[
            make_sweep("data.access.transfer", ["4KiB", "64KiB", "1MiB"], kind="one_at_a_time"),
            make_sweep("data.io.queue_depth", [4, 8], kind="one_at_a_time"),
        ]
    )
    # the plan's own transfer is on the first axis; its queue depth is not on the second one
    assert [cell.id for cell in experiment.cells] == [
        "transfer=64KiB",
        "transfer=4KiB",
        "transfer=1MiB",
        "transfer=64KiB,queue_depth=4",
        "transfer=64KiB,queue_depth=8",
    ]


def test_members_that_change_together_are_one_axis() -> None:
    experiment = build_experiment(
        sweep=[{"paths": ["data.access.transfer", "data.access.block"], "values": [["4KiB", "8KiB"], ["1MiB", "2MiB"]]}]
    )
    plans = [experiment.build_plan_of_cell(cell).resolve_data(PLAN["phases"][0])["access"] for cell in experiment.cells]
    assert [(plan["transfer"], plan["block"]) for plan in plans] == [("4KiB", "8KiB"), ("1MiB", "2MiB")]
    assert [cell.id for cell in experiment.cells] == ["transfer=4KiB", "transfer=1MiB"]


def test_cell_changes_its_member_and_no_other() -> None:
    experiment = build_experiment(sweep=[make_sweep("phases.read.stop.stonewall", ["1s"], name="wall")])
    plan = experiment.build_plan_of_cell(experiment.cells[0], "/d")
    assert plan.document["phases"][1]["stop"] == {"stonewall": "1s"}
    assert "stop" not in plan.document["phases"][0]
    assert plan.document["target"] == {"path": "/d"}
    assert plan.id == experiment.id == "made"
    assert "stop" not in PLAN["phases"][1]


def test_variants_file_systems_and_mounts_are_axes() -> None:
    experiment = build_experiment(
        variants=[{"id": "plain"}, {"id": "direct", "set": {"data.io.direct": True}}],
        storage={"file_systems": ["a", "b"], "mounts": ["native"]},
    )
    assert [cell.id for cell in experiment.cells] == [
        f"variant={variant},file_system={name},mount=native" for variant in ("plain", "direct") for name in ("a", "b")
    ]
    direct = [
        experiment.build_plan_of_cell(cell).resolve_data(PLAN["phases"][0])["io"]["direct"] for cell in experiment.cells
    ]
    assert direct == [False, False, True, True]


def test_clients_become_processes_and_a_raid_stripe_the_full_stripe() -> None:
    experiment = build_experiment(
        clients={"nodes": 3, "tasks_per_node": 4, "threads": 2}, storage={"data_width": 8, "segment": "256 KiB"}
    )
    plan = experiment.build_plan_of_cell(experiment.cells[0])
    assert (plan.processes, plan.threads) == (12, 2)
    assert plan.document["target"]["full_stripe"] == 2 << 20


def test_clients_for_each_target_follow_the_pool() -> None:
    experiment = build_experiment(
        clients={"per_target": 4, "tasks_per_node": 2},
        storage={"pool": "p1", "targets": 8},
        sweep=[{"name": "pool", "paths": ["storage.pool", "storage.targets"], "values": [["p1", 8], ["p2", 16]]}],
    )
    assert [experiment.build_plan_of_cell(cell).processes for cell in experiment.cells] == [64, 128]
    storage = experiment.resolve_storage(experiment.cells[1])
    assert (storage.pool, storage.targets) == ("p2", 16)


def test_axis_limited_to_some_plans_varies_only_these_plans() -> None:
    other = {"phases": [{"id": "rewrite", "op": "write"}]}
    experiment = make_experiment(
        {
            "schema": "sonde-experiment/2",
            "plans": [{"id": "one", "plan": PLAN}, {"id": "two", "plan": other}],
            "sweep": [make_sweep("data.io.queue_depth", [1, 2], plans="one")],
        },
        "made.toml",
    )
    assert [cell.id for cell in experiment.cells] == ["plan=one,queue_depth=1", "plan=one,queue_depth=2", "plan=two"]
    assert experiment.build_plan_of_cell(experiment.cells[-1]).phases[0]["id"] == "rewrite"


@pytest.mark.parametrize(
    ("written", "expected_values"),
    [
        ({"from": "4KiB", "to": "64KiB", "factor": 4}, ["4KiB", "16KiB", "64KiB"]),
        ({"from": "1MB", "to": "3MB", "step": "1MB"}, ["1MB", "2MB", "3MB"]),
        ({"from": 1, "to": 20, "factor": 2}, [1, 2, 4, 8, 16]),
        ({"from": 1, "to": 2, "step": 0.5}, [1, 1.5, 2]),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_values_from_one_end_to_the_other(written: Any, expected_values: list[Any]) -> None:
    assert expand_values(written) == expected_values


def test_a_profile_changes_members_and_values_of_an_axis() -> None:
    document = {
        "schema": "sonde-experiment/2",
        "plan": PLAN,
        "clients": {"nodes": 8},
        "sweep": [make_sweep("data.access.transfer", ["4KiB", "64KiB"])],
        "expect": [{"id": "e", "level": "measured", "claim": 'bandwidth(read, transfer="64KiB") > 1'}],
        "profiles": {"ci": {"clients.nodes": 1, "sweep.transfer": ["4KiB"], "data.access.segments": 1}},
    }
    small = make_experiment(document, "made.toml", "ci")
    assert [cell.id for cell in small.cells] == ["transfer=4KiB"]
    plan = small.build_plan_of_cell(small.cells[0])
    assert (plan.processes, plan.document["data"]["access"]["segments"]) == (1, 1)
    assert small.find_missing_cell(small.claims["e"]) == "transfer=64KiB"
    complete = make_experiment(document, "made.toml")
    assert complete.find_missing_cell(complete.claims["e"]) is None
    assert complete.build_plan_of_cell(complete.cells[0]).processes == 8


def test_a_setting_reaches_one_variant() -> None:
    sides = build_experiment(variants=[{"id": "before"}, {"id": "after", "title": "new"}])
    changed = change_members_by_path(sides, {"variants.after.engine": "/opt/new"})
    assert [variant.engine for variant in changed.file.variants] == ["", "/opt/new"]
    assert changed.file.variants[1].title == "new"


@pytest.mark.parametrize(
    ("path", "expected_text"),
    [
        ("variants.afer.engine", 'Did you mean "after"'),
        ("variants.after", "names no member"),
        ("variants.after.engin", '"engin"'),
    ],
)
def test_setting_of_an_unknown_variant_is_rejected(path: str, expected_text: str) -> None:
    with pytest.raises(UserError, match=expected_text):
        change_members_by_path(build_experiment(variants=[{"id": "before"}, {"id": "after"}]), {path: "x"})


def test_settings_are_checked_again() -> None:
    changed = change_members_by_path(build_experiment(), {"repeat.min": 5, "data.access.segments": 7})
    assert changed.file.repeat is not None
    assert changed.file.repeat.min == 5
    assert changed.build_plan_of_cell(changed.cells[0]).document["data"]["access"]["segments"] == 7


def test_axis_value_matches_its_text_or_an_equal_byte_count() -> None:
    axis = build_experiment(sweep=[make_sweep("data.access.transfer", ["4KiB", "1MiB"])]).axes[0]
    assert [
        getattr(axis.find_axis_value(spelling), "value", None) for spelling in ("1MiB", "1024KiB", 4096, "2MiB", "big")
    ] == [
        "1MiB",
        "1MiB",
        "4KiB",
        None,
        None,
    ]


def test_every_value_of_a_large_sweep_is_validated() -> None:
    wrong = [*range(1, 20), -1]
    axes = [make_sweep("data.io.queue_depth", list(range(1, 21))), make_sweep("tasks.threads", wrong)]
    with pytest.raises(ExperimentError, match="threads=-1"):
        build_experiment(sweep=axes)
    axes[1]["values"] = wrong[:-1]
    assert len(build_experiment(sweep=axes).cells) == 20 * 19


def test_profile_changes_data_members_of_data_plans_only() -> None:
    names = {"meta": {"tree": {"items_per_task": 5}}, "phases": [{"id": "tree", "op": "mktree"}]}
    experiment = make_experiment(
        {
            "schema": "sonde-experiment/2",
            "plans": [{"id": "bytes", "plan": PLAN}, {"id": "names", "plan": names}],
            "profiles": {"ci": {"data.access.segments": 1, "meta.tree.items_per_task": 2, "tasks.threads": 3}},
        },
        "made.toml",
        "ci",
    )
    data, tree = (experiment.build_plan_of_cell(cell).document for cell in experiment.cells)
    assert data["data"]["access"]["segments"] == 1
    assert "meta" not in data
    assert tree["meta"]["tree"]["items_per_task"] == 2
    assert "data" not in tree
    assert data["tasks"] == tree["tasks"] == {"threads": 3}


@pytest.mark.parametrize(("most", "refused"), [(6, False), (5, True)])
def test_experiment_with_too_many_cells_is_rejected(monkeypatch: pytest.MonkeyPatch, most: int, refused: bool) -> None:
    monkeypatch.setattr("sonde.model.experiment.checks.MAX_CELLS", most)
    grid = [make_sweep("data.access.transfer", ["4KiB", "64KiB"]), make_sweep("data.io.queue_depth", [1, 8, 16])]
    if refused:
        with pytest.raises(ExperimentError, match="sweep makes 6 cells; more than 5 cannot be meant"):
            build_experiment(sweep=grid)
    else:
        assert len(build_experiment(sweep=grid).cells) == 6
