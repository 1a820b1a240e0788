# SPDX-License-Identifier: Apache-2.0
"""Experiments: defaults, axes, cells and settings."""

from __future__ import annotations

from typing import Any

import pytest
from experiment_builders import PLAN, SIZES, build_experiment, make_experiment_with_plans

from sonde.model.errors import ExperimentError
from sonde.model.experiment import change_members_by_path
from sonde.model.experiment.axes import AxisError, AxisValue, SweepAxis, build_cell_axes, expand_values, get_axis_name
from sonde.model.experiment.description import (
    Clients,
    Expectation,
    ExperimentFile,
    PublishedNumber,
    RunSchedule,
    Storage,
    Sweep,
    Treatment,
    Variant,
)
from sonde.model.experiment.experiment import PLACEHOLDER_TARGET, Cell


def test_omitted_experiment_members_have_defaults() -> None:
    bare = build_experiment()
    file = bare.file
    assert (file.id, file.title, file.source, file.status, file.notes, file.tags) == ("x", "", (), "", (), ())
    assert (file.plans, file.clients, file.storage, file.treatments, file.variants) == ((), None, None, (), ())
    assert (file.sweep, file.repeat, file.expect, file.published, file.figures, file.tables) == ((), None, *[()] * 4)
    assert (file.profiles, bare.profile_names, bare.title, bare.id) == (None, (), "x", "x")
    assert vars(Clients()) == dict.fromkeys(("nodes", "per_target", "tasks_per_node", "threads")) | {
        "mapping": "", "group": "", "origin": "", "launcher": "", "pin": "",
    }  # fmt: skip
    assert vars(Storage()) == {
        "system": "", "file_systems": (), "mounts": (), "pool": "", "units": None, "targets": None, "kind": "any",
        "purpose": "", "stripe_count": None, "stripe_size": None, "data_width": None, "segment": None, "peak": None,
    }  # fmt: skip
    assert vars(Treatment(kind="sync")) == {
        "kind": "sync", "when": "run", "on": "clients", "need": "best_effort", "time": None, "command": "", "undo": "",
    }  # fmt: skip
    assert vars(Variant(id="v")) == {"id": "v", "set": None, "environment": None} | dict.fromkeys(
        ("title", "iobuf", "engine", "mount", "before", "after"), ""
    )
    assert vars(Sweep(values=[1])) == {
        "name": "", "paths": (), "values": [1], "kind": "grid", "plans": (), "labels": (),
    }  # fmt: skip
    assert vars(RunSchedule()) == {
        "min": 3, "max": None, "interval": None, "warmup": 0, "order": "block_random", "seed": None, "fresh": "files",
        "cooldown": None,
    }  # fmt: skip
    expectation = Expectation(id="e", level="math", claim="c")
    assert (
        expectation.needs, expectation.published, expectation.why, expectation.confidence, expectation.control,
        expectation.profiles,
    ) == (
        (), "", "", 0.95, None, (),
    )  # fmt: skip
    number = PublishedNumber(of="x", value=1, source="s")
    assert (number.to, number.limit, number.quote) == (None, "", "")


def test_axes_are_variant_file_system_mount_then_sweeps() -> None:
    experiment = build_experiment(
        sweep=[SIZES | {"labels": ["small", "large"]}], storage={"mounts": ["m"], "file_systems": ["f", "g"]},
        variants=[{"id": "v", "title": "The one"}, {"id": "u"}],
    )  # fmt: skip
    assert [axis.name for axis in experiment.axes] == ["variant", "file_system", "mount", "transfer"]
    assert [value.label for axis in experiment.axes for value in axis.values] == [
        "The one", "u", "f", "g", "m", "small", "large",
    ]  # fmt: skip
    assert experiment.axes[3] == SweepAxis(
        "transfer",
        (AxisValue("4KiB", (("data.access.transfer", "4KiB"),), "small"),
         AxisValue("64KiB", (("data.access.transfer", "64KiB"),), "large")),
    )  # fmt: skip
    assert build_cell_axes(ExperimentFile(schema="sonde-experiment/2", plan=PLAN)) == ()
    assert get_axis_name(Sweep(values=[])) == ""
    assert get_axis_name(Sweep(values=[], paths=("a.b", "c.d"))) == "b"
    assert get_axis_name(Sweep(values=[], paths=("a.b",), name="n")) == "n"


@pytest.mark.parametrize(
    ("written", "expected_values"),
    [
        ({"from": 1, "to": 1, "step": 1}, [1]),
        ({"from": 0, "to": 2, "step": 1}, [0, 1, 2]),
        ({"from": 1, "to": 10, "factor": 3}, [1, 3, 9]),
        ({"from": 0.5, "to": 2, "step": 0.5}, [0.5, 1, 1.5, 2]),
        ({"from": "1KiB", "to": "3KiB", "step": 1024}, ["1KiB", "2KiB", "3KiB"]),
        ({"from": "1KiB", "to": "3000B", "factor": 2}, ["1KiB", "2KiB"]),
        ({"from": 1, "to": 10_000, "step": 1}, list(range(1, 10_001))),
    ],
)
def test_values_run_from_one_end_to_the_other(written: dict[str, Any], expected_values: list[Any]) -> None:
    assert expand_values(written) == expected_values


@pytest.mark.parametrize(
    ("written", "expected_sentence"),
    [
        (
            {"from": 2, "to": 1, "step": 1},
            "runs from 2 to 1, which never arrives; write the smaller end first, above 0.",
        ),
        (
            {"from": 0, "to": 1, "factor": 2},
            "runs from 0 to 1, which never arrives; write the smaller end first, above 0.",
        ),
        (
            {"from": 1, "to": 2, "step": 0},
            "runs from 1 to 2, which never arrives; write the smaller end first, above 0.",
        ),
        (
            {"from": "4k", "to": "8KiB", "factor": 2},
            'cannot be read: "4k" does not say which unit is meant: write 4KiB (4,096 bytes) or 4kB (4,000 bytes).',
        ),
        ({"from": 1, "to": 10_001, "step": 1}, "has more than 10000 values, which cannot be meant."),
    ],
)
def test_invalid_value_ranges_have_exact_error_messages(written: dict[str, Any], expected_sentence: str) -> None:
    with pytest.raises(AxisError) as caught:
        expand_values(written)
    assert str(caught.value) == expected_sentence


def test_cell_id_lists_its_plan_and_axis_values() -> None:
    assert Cell("", {}, ()).id == "base"
    assert Cell("p", {}, ()).id == "plan=p"
    assert Cell("p", {"x": 1, "y": "a"}, ()).id == "plan=p,x=1,y=a"
    assert Cell("", {"x": 1}, ()).id == "x=1"


@pytest.mark.parametrize(
    ("clients", "storage", "tasks"),
    [
        ({"nodes": 3}, {}, {"processes": 3}),
        ({"tasks_per_node": 4}, {}, {"processes": 4}),
        ({"nodes": 3, "tasks_per_node": 4}, {}, {"processes": 12}),
        ({"threads": 2}, {}, {"threads": 2}),
        ({"per_target": 2, "threads": 5}, {"targets": 4}, {"processes": 8, "threads": 5}),
        ({"group": "g"}, {}, None),
        ({}, {}, None),
    ],
)
def test_clients_are_processes_and_threads(
    clients: dict[str, Any], storage: dict[str, Any], tasks: dict[str, int] | None
) -> None:
    experiment = build_experiment(clients=clients, storage=storage)
    document = experiment.build_plan_of_cell(experiment.cells[0]).document
    assert document.get("tasks") == tasks
    assert document["target"] == {"path": "/no-target-yet"} == {"path": PLACEHOLDER_TARGET}
    assert document["id"] == "x"


def test_plan_members_override_experiment_members() -> None:
    plan = PLAN | {"id": "own", "target": {"path": "/own", "full_stripe": "1MiB"}, "tasks": {"pin": True}}
    experiment = build_experiment(plan=plan, clients={"nodes": 2}, storage={"data_width": 8, "segment": "1 MiB"})
    document = experiment.build_plan_of_cell(experiment.cells[0], "/other").document
    assert (document["id"], document["target"]) == ("own", {"path": "/own", "full_stripe": "1MiB"})
    assert document["tasks"] == {"pin": True, "processes": 2}
    bare = build_experiment(storage={"data_width": 8})
    assert "full_stripe" not in bare.build_plan_of_cell(bare.cells[0]).document["target"]
    of_two_plans = make_experiment_with_plans()
    assert [of_two_plans.build_plan_of_cell(cell).id for cell in of_two_plans.cells] == ["x.a", "x.b"]


def test_variant_settings_apply_before_axis_settings() -> None:
    sides = [{"id": "v", "set": {"data.access.transfer": "1KiB", "data.io.direct": True, "clients.nodes": 5}}]
    experiment = build_experiment(variants=sides, sweep=[SIZES])
    document = experiment.build_plan_of_cell(experiment.cells[0]).document
    assert document["data"] == {"access": {"transfer": "4KiB"}, "io": {"direct": True}}
    assert document["tasks"] == {"processes": 5}
    assert experiment.resolve_clients(experiment.cells[0]) == Clients(nodes=5)


@pytest.mark.parametrize(
    ("settings", "expected_sentence"),
    [
        ({"sweep.z": [1]}, 'sweep.z: there is no axis "z" whose values could be replaced.'),
        ({"variants.w.engine": "x"}, 'variants.w.engine: there is no variant "w".'),
        ({"variants.v": "x"}, 'variants.v: "variants.v" names no member; say which, like variants.v.engine=PATH.'),
        ({"plans.c.title": "x"}, 'plans.c.title: there is no plan "c".'),
    ],
)
def test_setting_with_unknown_path_is_rejected(settings: dict[str, Any], expected_sentence: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        change_members_by_path(make_experiment_with_plans(variants=[{"id": "v"}], sweep=[SIZES]), settings)
    assert str(caught.value) == f"x.toml: {expected_sentence}"


def test_setting_applies_to_all_plans_or_the_plan_in_its_path() -> None:
    changed = change_members_by_path(
        make_experiment_with_plans(), {"tasks.threads": 3, "plans.b.title": "B", "repeat.min": 5, "storage.pool": "p"}
    )
    assert [plan.get("title") for plan in changed.plans.values()] == [None, "B"]
    assert [plan["tasks"] for plan in changed.plans.values()] == [{"threads": 3}] * 2
    assert changed.file.repeat is not None
    assert changed.file.storage is not None
    assert (changed.file.repeat.min, changed.file.storage.pool) == (5, "p")
    data = change_members_by_path(make_experiment_with_plans(), {"data.access.transfer": "8KiB", "meta.sync": True})
    assert [plan.get("data") for plan in data.plans.values()] == [{"access": {"transfer": "8KiB"}}, None]
    assert [plan.get("meta") for plan in data.plans.values()] == [{"sync": True}] * 2, "no plan has meta, so all get it"


@pytest.mark.parametrize(
    ("values", "labels"),
    [(["64KiB"], ("large",)), (["64KiB", "4KiB"], ("large", "small")), (["4KiB", "1MiB"], ())],
)
def test_labels_stay_with_their_values(values: list[str], labels: tuple[str, ...]) -> None:
    experiment = build_experiment(sweep=[SIZES | {"labels": ["small", "large"]}])
    (sweep,) = change_members_by_path(experiment, {"sweep.transfer": values}).file.sweep
    assert (sweep.values, sweep.labels) == (values, labels)
